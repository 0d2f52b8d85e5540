"""Where cells run: on this machine, or wherever a third party's executor takes them. The outcomes are the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from boosters_eval.core.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.outcome import Failure, Outcome


@dataclass(frozen=True)
class Limits:
    """What a cell may use."""

    timeout_s: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class Work:
    """A cell, where its inputs lie, and what it may use."""

    cell: Cell
    inputs: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()


class Executor(ABC):
    """Runs work and yields how it ended. It outlives a run, and whoever made it closes it."""

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs

    @abstractmethod
    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        """One outcome or failure per cell, as they come; the next cell starts only when the caller asks for more.

        `started` is told each cell and phase as it begins. Abandoning the iterator ends what is under way.
        """

    @abstractmethod
    def close(self) -> None:
        """End everything that is still running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_executor(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Executor)


EXECUTORS: Registry[type[Executor]] = Registry("executor", group="boosters_eval.executors", accepts=_is_executor)
