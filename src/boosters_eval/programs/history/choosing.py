"""Which runs of the history a request means, and why that may be none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import suggest
from boosters_eval.core.home import home as home_of
from boosters_eval.programs.history import query
from boosters_eval.programs.history.model import HistoryFilter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boosters_eval.programs.history.request import HistoryFilters


def chosen(request: HistoryFilters) -> HistoryFilter:
    """What the request asks for."""
    return HistoryFilter(
        suite=request.suite,
        datasets=tuple(request.datasets),
        libraries=tuple(request.libraries),
        metrics=measured_names(request.metrics),
        machine=request.machine,
        since=request.since,
        limit=request.limit,
    )


def measured_names(metrics: Sequence[str]) -> tuple[str, ...]:
    """The names under which results have metrics."""
    if not metrics:
        return ()
    from boosters_eval.metrics.catalog import resolve  # noqa: PLC0415 (keeps a listing fast)

    return tuple(found.name if (found := resolve(name)) else name for name in metrics)


def nothing(wanted: HistoryFilter, home: Path | None = None) -> str:
    """Why nothing is listed: most often a name that no run has."""
    if not query.names_known("suite", home, look=False):
        return f"there are no runs in {home_of(home)}."
    asked = {
        "suite": ("suite", (wanted.suite,) if wanted.suite else ()),
        "dataset": ("data set", wanted.datasets),
        "library": ("library", wanted.libraries),
        "metric": ("metric", wanted.metrics),
    }
    for kind, (word, names) in asked.items():
        known = query.names_known(kind, home, look=False) if names else []
        for name in names:
            if name not in known:
                return f"no run in the history has the {word} '{name}'.{suggest(name, known)}"
    return "no run in the history meets all of these."
