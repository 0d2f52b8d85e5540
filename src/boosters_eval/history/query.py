"""Questions to the history. Each looks for new, changed and removed runs first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.history.model import HistoryFilter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.history.model import Change, MetricSeries, RunEntry

EVERYTHING = HistoryFilter()


def runs(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> list[RunEntry]:
    """The runs, the latest first."""
    raise NotImplementedError


def find(reference: str, home: Path | None = None) -> RunEntry:
    """One run by its id, the beginning of its id, its name, or `last`; ID/ATTEMPT names an attempt."""
    raise NotImplementedError


def series(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> Iterator[MetricSeries]:
    """What the runs measured, in the order of time; a run to which a later one added seeds is left out."""
    raise NotImplementedError


def series_of(entry: RunEntry, home: Path | None = None) -> list[MetricSeries]:
    """What one run measured, in the order of its plan."""
    raise NotImplementedError


def changes(entry: RunEntry, home: Path | None = None) -> list[Change]:
    """What one run measured against the run before, as the index has it."""
    raise NotImplementedError


def seconds_by_cell(home: Path | None = None) -> dict[tuple[str, str, str, str], float]:
    """Median seconds per cell on this machine, by data set, booster, library and training (as canonical JSON)."""
    raise NotImplementedError
