"""Observers of a run: progress, history, trackers. Several may be active; each hears typed events and the results."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, TextIO

from boosters_eval.core.errors import BoostersEvalWarning
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.core.text import clean, clean_message, count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from rich.progress import Progress, TaskID

    from boosters_eval.engine.cell import Cell, Failure, Outcome
    from boosters_eval.engine.folder import Run
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

    @property
    def failure(self) -> Failure | None:
        from boosters_eval.engine.cell import Failure  # noqa: PLC0415 (no model is loaded where nothing runs)

        return self.outcome if isinstance(self.outcome, Failure) else None


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
        self._tell("begin", event)

    def phase(self, event: PhaseStarted) -> None:
        self._tell("phase", event)

    def outcome(self, event: CellEnded) -> None:
        self._tell("outcome", event)

    def end(self, event: RunEnded) -> None:
        self._tell("end", event)

    def close(self, *, interrupted: bool = False) -> None:
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
def watch(
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


_ROOM_FOR_BAR = 100  # columns; on a narrower terminal the counts must do


@dataclass(frozen=True)
class Expectation:
    """What is known before a run of how long it takes."""

    seconds: Callable[[Plan], Mapping[str, float]]  # of every cell of a plan, by its key; empty if nothing is known
    jobs: int = 1  # cells at a time


class _Tally:
    """How many cells are done, over all looks of a run, and how long the others will take.

    The estimate is made of what cells took, each from its own start: the imports before the first one are no work.
    If it is known what each cell should take, there is an estimate from the start, and what cells took only says by how
    much it was wrong.
    """

    def __init__(self, clock: Callable[[], float], expected: Expectation | None = None) -> None:
        self._clock = clock
        self._expected = expected
        self._seconds: Mapping[str, float] = {}  # that each cell should take, by its key
        self._ahead = 0.0  # expected seconds of the cells that have not ended
        self._behind = 0.0  # and of those that have, and whose time is known
        self._running: dict[str, list[tuple[str, float]]] = {}  # the phases of each running cell, and when they began
        self._took = 0.0  # by all that ended, in seconds
        self._timed = 0  # cells in it
        self._most = 1  # cells that ran at the same time
        self._targets: set[str] = set()
        self.total = self.done = self.failed = 0

    def begin(self, event: RunStarted) -> None:
        """A further look of seeds="auto" keeps all that the earlier ones did, and adds to it; any other run is new.

        So is the next step of a bisection, which may keep as much, but has another target. What failed is not kept: it
        runs again.
        """
        self.done, self.failed = self.done - self.failed, 0
        before, self._targets = self._targets, {ref.target for ref in event.plan.refs}
        if not self.done or event.kept < self.done or before != self._targets:
            self.done = self._timed = 0
            self._took = 0.0
        self._running.clear()
        self.total = self.done + event.todo
        if self._expected is not None and event.plan.cells:
            self._seconds = self._expected.seconds(event.plan)
            # Which cells are kept is not known here, and hardly matters.
            self._ahead = math.fsum(self._seconds.values()) * event.todo / len(event.plan.cells)
            self._most = max(self._most, self._expected.jobs)

    def enter(self, event: PhaseStarted) -> None:
        self._running.setdefault(event.cell.key, []).append((event.phase, self._clock()))
        self._most = max(self._most, len(self._running))

    def end(self, event: CellEnded) -> str:
        """Count a cell that ended, and return a line about it: its outcome, and how long each phase took."""
        self.done += 1
        self.total = max(self.total, self.done)
        self.failed += event.failure is not None
        now, phases = self._clock(), self._running.pop(event.cell.key, [])
        due = self._seconds.get(event.cell.key, 0.0)
        self._ahead = max(0.0, self._ahead - due)
        if phases:  # a cell whose library could not be imported never began
            self._took += now - phases[0][1]
            self._timed += 1
            self._behind += due
        took = [
            f"{phase} {end - start:.2f} s"
            for (phase, start), (_, end) in itertools.pairwise([*phases, ("", now)])
            if phase not in ("start", "done")
        ]
        return clean_message(f"{event.cell}: {event.outcome.summary()}" + (f" ({', '.join(took)})" if took else ""))

    def left(self) -> float | None:
        """The seconds that the remaining cells will take at the pace so far; None if nothing is known of it."""
        if self.done == self.total:
            return 0.0
        if not self._timed and not self._seconds:
            return None
        now, ahead = self._clock(), self.total - self.done
        if self._seconds:
            one = math.fsum(self._seconds.values()) / len(self._seconds)  # so that the first cell does not decide alone
            each, work = one, self._ahead * (self._took + one) / (self._behind + one)
        else:
            each = self._took / self._timed
            work = each * ahead
        behind = sum(min(now - phases[0][1], each) for phases in self._running.values())
        return max(0.0, (work - behind) / min(self._most, ahead))


class ProgressBar(Observer):
    """Rich's bar with the current cell, the counts of finished and failed cells, and the time left.

    With `each`, a line about every finished cell stays above it.
    """

    def __init__(
        self,
        *,
        each: bool = False,
        clock: Callable[[], float] = time.monotonic,
        expected: Expectation | None = None,
    ) -> None:
        self._each = each
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._tally = _Tally(clock, expected)
        self._told: set[tuple[str, str]] = set()  # whose failure of which kind is above it

    def begin(self, event: RunStarted) -> None:
        """Show the bar; it counts only the cells that run, those of earlier looks included."""
        from rich.console import Console  # noqa: PLC0415 (only where a bar is shown)
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column  # noqa: PLC0415

        console = Console(stderr=True)
        whole = Column(no_wrap=True)  # where there is little room, the name of the cell is broken, never a number
        self._bar = Progress(
            SpinnerColumn(),
            *([BarColumn(bar_width=24)] if console.width >= _ROOM_FOR_BAR else []),
            MofNCompleteColumn(table_column=whole),
            TextColumn("{task.fields[failed]}"),
            TimeElapsedColumn(table_column=whole),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
            console=console,
            transient=True,
        )
        self._tally.begin(event)
        known: dict[str, Any] = {"total": self._tally.total, "completed": self._tally.done}
        self._task = self._bar.add_task("importing", **known, **self._fields())
        self._bar.start()

    def _fields(self) -> dict[str, Any]:
        failed, left = self._tally.failed, self._tally.left()
        return {
            "failed": f"{failed} failed" if failed else "",
            "left": "" if left is None else f"left {format_duration(left)}",
        }

    def phase(self, event: PhaseStarted) -> None:
        self._tally.enter(event)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=clean(f"{event.cell}, {event.phase}"))

    def outcome(self, event: CellEnded) -> None:
        """Advance the bar, and print the first failure of a library above it, where it stays; the bar counts them."""
        if self._bar is None or self._task is None:
            return
        line = self._tally.end(event)
        failure = event.failure
        if failure is not None and (kind := (event.cell.target.name, failure.error_type)) not in self._told:
            self._told.add(kind)
            self._bar.console.print(describe_failure(event.cell, failure), markup=False, highlight=False, style="red")
        if self._each:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._bar.update(self._task, completed=self._tally.done, total=self._tally.total, **self._fields())

    def end(self, event: RunEnded) -> None:  # noqa: ARG002 (the bar is removed, however the run ended)
        if self._bar is not None:
            self._bar.stop()


class PlainLines(Observer):
    """For logs: at most one line every few seconds, plus every failure and a last line; or one line per cell."""

    def __init__(
        self,
        stream: TextIO | None = None,
        every: float = 5.0,
        *,
        each: bool = False,
        clock: Callable[[], float] = time.monotonic,
        expected: Expectation | None = None,
    ) -> None:
        self._stream = stream or sys.stderr
        self._every = 0.0 if each else every
        self._each = each
        self._clock = clock
        self._tally = _Tally(clock, expected)
        self._said = 0.0

    def begin(self, event: RunStarted) -> None:
        self._tally.begin(event)
        self._said = self._clock()
        kept = f", {event.kept} kept" if event.kept else ""
        left = self._tally.left() if event.todo else None
        about = "" if left is None else f", about {format_duration(left)}"
        self._print(f"run {event.plan.run_id}: {count_of(event.todo, 'cell')} to do{kept}{about}")

    def phase(self, event: PhaseStarted) -> None:
        self._tally.enter(event)

    def outcome(self, event: CellEnded) -> None:
        tally = self._tally
        line = tally.end(event)
        if event.failure is not None:
            self._print(describe_failure(event.cell, event.failure))
        if self._each:
            self._print(line)
        now = self._clock()
        if tally.done == tally.total or now - self._said >= self._every:
            self._said = now
            left = tally.left()
            about = "" if left is None else f", about {format_duration(left)} left"
            self._print(f"{tally.done}/{tally.total} done, {tally.failed} failed{about}")

    def _print(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a closed stderr is no reason to stop the run
            self._stream.write(f"{clean_message(text)}\n")
            self._stream.flush()


def is_in_notebook() -> bool:
    """Whether a kernel runs this: its user watches, as one does at a terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def make_progress(stream: TextIO, *, every_cell: bool = False, expected: Expectation | None = None) -> Observer:
    """A bar where the stream can show one, else lines."""
    bar = stream.isatty() or (is_in_notebook() and find_spec("ipywidgets") is not None)  # or Rich shows none
    return (ProgressBar if bar else PlainLines)(each=every_cell, expected=expected)


def format_duration(seconds: float) -> str:
    """Seconds up to two minutes, then minutes and hours: nobody reads 7381 s."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def describe_failure(cell: Cell, failure: Failure) -> str:
    first = failure.error_message.splitlines()[0] if failure.error_message else "no message"
    return clean_message(f"failed: {cell} in {failure.phase}: {failure.error_type}: {first}")
