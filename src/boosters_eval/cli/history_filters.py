"""Which runs of the history are meant: the options of all commands that choose some."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from boosters_eval.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from boosters_eval.programs.history.model import HistoryFilter

_SPANS = {"h": "hours", "d": "days", "w": "weeks"}

RunLimit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the latest so many runs.")]


@dataclass(frozen=True)
class RunFilters:
    """The options, as they are given."""

    suite: Annotated[
        str | None, typer.Option("--suite", metavar="NAME", help="Only runs of this suite, or 'compare'.")
    ] = None
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", "-d", metavar="NAME", help="Only runs on these data sets.")
    ] = None
    library: Annotated[
        list[str] | None,
        typer.Option("--library", "-l", metavar="NAME", help="Only runs of these libraries, or builds of them."),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="NAME", help="Only runs that measured these; the verdict is on them."),
    ] = None
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="NAME", help="Only this machine: the start of its digest, or its CPU."),
    ] = None
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only runs since a date, 2026-01-31, or so long: 12h, 30d, 8w."),
    ] = None

    def chosen(self, limit: int | None = None) -> "HistoryFilter":
        """What the options ask for."""
        from boosters_eval.programs.history.model import HistoryFilter

        return HistoryFilter(
            suite=self.suite,
            datasets=tuple(self.dataset or ()),
            libraries=tuple(self.library or ()),
            metrics=tuple(map(_metric, self.metric or ())),
            machine=self.machine,
            since=None if self.since is None else _since(self.since),
            limit=limit,
        )


def _metric(name: str) -> str:
    """The name under which results have a metric."""
    from boosters_eval.metrics.catalog import resolve

    found = resolve(name)
    return found.name if found else name


def _since(text: str) -> str:
    """A date or a span as runs record times."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", text)
    try:
        if match:
            start = datetime.now(UTC) - timedelta(**{_SPANS[match[2]]: int(match[1])})
        else:
            start = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"The '--since' option must be a date such as 2026-01-31, or a time such as 12h, 30d or 8w."
            f" Got '{text}' instead."
        ) from None
    return start.isoformat(timespec="seconds")


def nothing(wanted: "HistoryFilter") -> str:
    """Why nothing is listed: most often a name that no run has."""
    from boosters_eval.core.home import home
    from boosters_eval.programs.history import query

    if not query.names_known("suite", look=False):
        return f"there are no runs in {home()}."
    asked = {
        "suite": ("suite", (wanted.suite,) if wanted.suite else ()),
        "dataset": ("data set", wanted.datasets),
        "library": ("library", wanted.libraries),
        "metric": ("metric", wanted.metrics),
    }
    for kind, (word, names) in asked.items():
        known = query.names_known(kind, look=False) if names else []
        for name in names:
            if name not in known:
                return f"no run in the history has the {word} '{name}'.{suggest(name, known)}"
    return "no run in the history meets all of these."
