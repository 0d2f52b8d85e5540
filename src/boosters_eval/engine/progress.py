"""Progress for people: a bar on a terminal or in a notebook, plain lines elsewhere. Both write to stderr only."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from typing import TYPE_CHECKING, TextIO

from boosters_eval.core.text import clean, message
from boosters_eval.engine.observer import Observer
from boosters_eval.engine.outcome import Failure

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.observer import CellEnded, PhaseStarted, RunEnded, RunStarted


class _Phases:
    """How long each phase of a running cell took, as seen from here, for those who want to know more."""

    def __init__(self) -> None:
        self._entered: dict[str, list[tuple[str, float]]] = {}

    def enter(self, event: PhaseStarted) -> None:
        self._entered.setdefault(event.cell.key, []).append((event.phase, time.monotonic()))

    def line(self, event: CellEnded) -> str:
        """One line about a finished cell: its outcome, then its phases."""
        entered = [*self._entered.pop(event.cell.key, []), ("", time.monotonic())]
        took = [
            f"{phase} {end - start:.2f} s"
            for (phase, start), (_, end) in itertools.pairwise(entered)
            if phase not in ("start", "done")
        ]
        done = "failed" if isinstance(event.outcome, Failure) else event.outcome.summary()
        return message(f"{event.cell}: {done}" + (f" ({', '.join(took)})" if took else ""))


class ProgressBar(Observer):
    """Rich's bar with the current cell, the counts of finished and failed cells, and the time left.

    With `each`, a line about every finished cell stays above it.
    """

    def __init__(self, *, each: bool = False) -> None:
        self._phases = _Phases() if each else None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._failed = 0

    def begin(self, event: RunStarted) -> None:
        """Show the bar; its ETA counts only the cells that will run."""
        from rich.console import Console  # noqa: PLC0415 (only where a bar is shown)
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._failed = 0
        self._task = self._bar.add_task("importing", total=event.todo, failed="")
        self._bar.start()

    def phase(self, event: PhaseStarted) -> None:
        """Show the current cell."""
        if self._phases is not None:
            self._phases.enter(event)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=clean(f"{event.cell}, {event.phase}"))

    def outcome(self, event: CellEnded) -> None:
        """Advance the bar, and print a failure above it, where it stays."""
        if self._bar is None or self._task is None:
            return
        if isinstance(event.outcome, Failure):
            self._failed += 1
            self._bar.console.print(failure_line(event.cell, event.outcome), markup=False, highlight=False, style="red")
        if self._phases is not None:
            self._bar.console.print(self._phases.line(event), markup=False, highlight=False, soft_wrap=True)
        self._bar.update(self._task, advance=1, failed=f"{self._failed} failed" if self._failed else "")

    def end(self, event: RunEnded) -> None:  # noqa: ARG002 (the bar is removed, however the run ended)
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


class PlainLines(Observer):
    """For logs: at most one line every few seconds, plus every failure and a last line; or one line per cell."""

    def __init__(self, stream: TextIO | None = None, every: float = 5.0, *, each: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._every = 0.0 if each else every
        self._phases = _Phases() if each else None
        self._total = self._done = self._failed = 0
        self._start = self._said = 0.0

    def begin(self, event: RunStarted) -> None:
        """Print what will run."""
        self._total = event.todo
        self._done = self._failed = 0
        self._start = self._said = time.monotonic()
        kept = f", {event.kept} kept" if event.kept else ""
        cells = "1 cell" if event.todo == 1 else f"{event.todo} cells"
        self._print(f"run {event.plan.run_id}: {cells} to do{kept}")

    def phase(self, event: PhaseStarted) -> None:
        """Take the time, if each cell is reported."""
        if self._phases is not None:
            self._phases.enter(event)

    def outcome(self, event: CellEnded) -> None:
        """Print the progress from time to time."""
        self._done += 1
        if isinstance(event.outcome, Failure):
            self._failed += 1
            self._print(failure_line(event.cell, event.outcome))
        if self._phases is not None:
            self._print(self._phases.line(event))
        now = time.monotonic()
        if self._done == self._total or now - self._said >= self._every:
            self._said = now
            left = (now - self._start) / self._done * (self._total - self._done)
            self._print(f"{self._done}/{self._total} done, {self._failed} failed, about {left:.0f} s left")

    def _print(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a closed stderr is no reason to stop the run
            self._stream.write(f"{message(text)}\n")
            self._stream.flush()


def progress_for(stream: TextIO, *, every_cell: bool = False) -> Observer:
    """A bar where the stream can show one, else lines."""
    bar = stream.isatty() or "ipykernel" in sys.modules
    return ProgressBar(each=every_cell) if bar else PlainLines(each=every_cell)


def failure_line(cell: Cell, failure: Failure) -> str:
    """One line about a failed cell."""
    first = failure.error_message.splitlines()[0] if failure.error_message else "no message"
    return message(f"failed: {cell} in {failure.phase}: {failure.error_type}: {first}")
