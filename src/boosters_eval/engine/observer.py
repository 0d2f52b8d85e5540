"""Observers of a run: progress, history, trackers. Several may be active; each hears typed events and the results."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from boosters_eval.core.errors import BoostersEvalWarning
from boosters_eval.core.registry import Registry, must_extend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
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


@dataclass(frozen=True)
class ObserverSettings:
    """What an observer that is created by its name may need to know."""

    home: Path | None = None  # of the runs; None: the usual one
    say: Callable[[str], None] = lambda _: None  # a sentence for the user
    track: Any = None  # trackers: a name, a class, or several of them


class Observer:
    """The base of all observers; a subclass overrides the events that it needs."""

    @classmethod
    def for_run(cls, settings: ObserverSettings) -> Self:  # noqa: ARG003 (most need to know nothing)
        """An observer that was asked for by its name. It is closed by whoever asked."""
        return cls()

    @classmethod
    def expected_seconds(cls, plan: Plan, home: Path | None) -> Mapping[str, float]:  # noqa: ARG003 (none is known here)
        """What it knows of how long each cell of a plan takes, by its key."""
        return {}

    def begin(self, event: RunStarted) -> None:
        """The run has started."""

    def phase(self, event: PhaseStarted) -> None:
        """A cell entered a phase."""

    def outcome(self, event: CellEnded) -> None:
        """A cell ended."""

    def end(self, event: RunEnded) -> None:
        """The run has ended."""

    def close(self, *, interrupted: bool = False) -> None:
        """No further run follows; `interrupted` says that one did not come to its end, and somebody waits."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.close(interrupted=error[0] is not None)
        except Exception as fault:  # noqa: BLE001 (the run has its results all the same)
            message = f"The observer {type(self).__name__} failed when it was closed: {fault!r}"
            warnings.warn(message, BoostersEvalWarning, stacklevel=3)


class Observers(Observer):
    """Several observers as one. One that fails gets no further events: a tracker that is down must not cost the run."""

    def __init__(self, *observers: Observer) -> None:
        self._given, self._observers = observers, list(observers)

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

    def close(self, *, interrupted: bool = False) -> None:
        """Close all, those too that failed."""
        with contextlib.ExitStack() as closing:
            for observer in self._given:
                closing.callback(observer.close, interrupted=interrupted)

    def _tell(self, name: str, event: Any) -> None:
        for observer in list(self._observers):
            try:
                getattr(observer, name)(event)
            except Exception as error:  # noqa: BLE001 (an observer may fail in any way)
                self._observers.remove(observer)
                who = type(observer).__name__
                message = f"The observer {who} failed and receives no further events: {error!r}"
                warnings.warn(message, BoostersEvalWarning, stacklevel=2)


HISTORY, TRACKING = "history", "tracking"  # observers of every run, and of those that are tracked
OBSERVERS: Registry[type[Observer]] = Registry("observer", group="boosters_eval.observers", fault=must_extend(Observer))


@contextlib.contextmanager
def watching(
    given: Iterable[Observer | str],
    settings: ObserverSettings = ObserverSettings(),  # noqa: B008 (frozen)
) -> Iterator[Observers]:
    """All observers of a session as one: those given, the history, and trackers if there are any.

    Those that are named are created and closed here; any other is left open.
    """
    named = list(given)
    standing = [HISTORY, *([TRACKING] if settings.track else [])]
    with contextlib.ExitStack() as created:
        observers = [
            created.enter_context(OBSERVERS[item].for_run(settings)) if isinstance(item, str) else item
            for item in (*named, *(name for name in standing if name not in named))
        ]
        yield Observers(*observers)
