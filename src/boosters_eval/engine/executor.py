"""Where cells run: on this machine, or wherever a third-party executor sends them. The outcomes are the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.registry import Registry, must_extend

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from boosters_eval.core.machine import MachineInfo
    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.outcome import Failure, Outcome


@dataclass(frozen=True)
class Limits:
    """The resources that a cell may use."""

    timeout_s: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class Work:
    """A cell, the location of its inputs, and its limits."""

    cell: Cell
    inputs: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()


class Executor(ABC):
    """Runs work and yields the outcomes. It may serve several runs, and whoever created it closes it."""

    local: bool = True  # whether cells run on this machine, so that it must have what they need

    def __init__(self, jobs: int = 1) -> None:
        if not isinstance(jobs, int) or jobs < 1:
            raise ConfigError(f"The 'jobs' parameter of an executor must be at least 1. Got {jobs!r} instead.")
        self.jobs = jobs

    def facts(self) -> dict[str, Any]:
        """What the record of a run says about its executor: `executor`, `start_method`, and further details as text."""
        return {"executor": type(self).__name__}

    def machines(self) -> Mapping[str, MachineInfo]:
        """The machines that its outcomes name, by digest. One that runs cells here alone names none."""
        return {}

    @abstractmethod
    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        """Yield one outcome or failure per cell as it arrives; the next cell starts only when the caller asks for more.

        `started` is called with each cell and phase as it begins. Closing the iterator stops the running cells.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop everything that is still running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


EXECUTORS: Registry[type[Executor]] = Registry("executor", group="boosters_eval.executors", fault=must_extend(Executor))
