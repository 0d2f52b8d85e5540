"""Observers of a run: progress bars, trackers. Several may be active; each receives typed events and the results."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalWarning
from boosters_eval.core.registry import Registry, must_extend

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.outcome import Failure, Outcome
    from boosters_eval.engine.plan import Plan


@dataclass(frozen=True)
class RunStarted:
    """A run has started."""

    plan: Plan
    todo: int  # cells that will run
    kept: int  # cells that already have an outcome
    folder: Path | None = None  # of the run; None where nothing is kept
    attempt: int = 1


@dataclass(frozen=True)
class PhaseStarted:
    """A cell entered a phase."""

    cell: Cell
    phase: str


@dataclass(frozen=True)
class CellEnded:
    """A cell ended, and its outcome is on disk."""

    cell: Cell
    outcome: Outcome | Failure


@dataclass(frozen=True)
class RunEnded:
    """The run has ended; no further events follow."""

    run: Run | None  # None: the run was interrupted


class Observer:
    """The base of all observers; a subclass overrides the events that it needs."""

    def begin(self, event: RunStarted) -> None:
        """The run has started."""

    def phase(self, event: PhaseStarted) -> None:
        """A cell entered a phase."""

    def outcome(self, event: CellEnded) -> None:
        """A cell ended."""

    def end(self, event: RunEnded) -> None:
        """The run has ended."""


class Observers(Observer):
    """Several observers as one. One that fails gets no further events: a tracker that is down must not cost the run."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = list(observers)

    def begin(self, event: RunStarted) -> None:
        """Tell all."""
        self._tell("begin", event)

    def phase(self, event: PhaseStarted) -> None:
        """Tell all."""
        self._tell("phase", event)

    def outcome(self, event: CellEnded) -> None:
        """Tell all."""
        self._tell("outcome", event)

    def end(self, event: RunEnded) -> None:
        """Tell all."""
        self._tell("end", event)

    def _tell(self, name: str, event: Any) -> None:
        for observer in list(self._observers):
            try:
                getattr(observer, name)(event)
            except Exception as error:  # noqa: BLE001 (an observer may fail in any way)
                self._observers.remove(observer)
                who = type(observer).__name__
                message = f"The observer {who} failed and receives no further events: {error!r}"
                warnings.warn(message, BoostersEvalWarning, stacklevel=2)


OBSERVERS: Registry[type[Observer]] = Registry("observer", group="boosters_eval.observers", fault=must_extend(Observer))
