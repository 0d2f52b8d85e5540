"""What the history is asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 (a dataclass keeps its annotations)
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    OUTPUT,
    SPAN,
    Accepted,
    InHome,
    JsonOption,
    OutputOptions,
    Request,
    choice,
    count,
    parameter,
    path,
    text,
)
from boosters_eval.core.terms import named, the
from boosters_eval.engine.settings import RUN_REFERENCE
from boosters_eval.programs.benchmark.request import BEFORE_A_LIBRARY, BEFORE_A_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = text("a name", "NAME")
_REFERENCE = "A run id, the beginning of one, a name, or 'last'; with /ATTEMPT or @MACHINE where several have it."
_LATEST = "Only the latest so many runs."


def _since(value: Any) -> str:
    """A date or a span as runs record times."""
    try:
        if isinstance(value, str) and value.endswith(("h", "d", "w")):
            start: datetime = datetime.now(UTC) - SPAN.read(value)
        else:
            start = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return start.astimezone(UTC).isoformat(timespec="seconds")
    except (TypeError, OverflowError):
        raise ValueError from None


_SINCE = Accepted("a date such as 2026-01-31, or a time such as 12h, 30d or 8w", _since, _since, "TIME")


def _names(option: str, help: str, separator: str = ",") -> Any:  # noqa: A002 (as it reads)
    return parameter((), option=option, short=option[1:3], kind=_NAME, separator=separator, help=help)


class HistoryFilters(InHome):
    """Which runs and numbers are meant; by default all."""

    suite: str | None = parameter(None, kind=_NAME, help="Only runs of this suite, or 'compare'.")
    datasets: str | Sequence[str] = _names("--dataset", "Only runs on these data sets.")
    libraries: str | Sequence[str] = _names(
        "--library", "Only runs of these libraries, or builds of them.", BEFORE_A_LIBRARY
    )
    metrics: str | Sequence[str] = _names(
        "--metric", "Only runs that measured these; the verdict is on them.", BEFORE_A_NAME
    )
    machine: str | None = parameter(None, kind=_NAME, help="Only this machine: the start of its digest, or its CPU.")
    since: str | None = parameter(
        None, kind=_SINCE, help="Only runs since a date, 2026-01-31, or so long: 12h, 30d, 8w."
    )
    limit: int | None = parameter(None, short="-n", kind=count(1), help=_LATEST)


class ListHistoryRequest(HistoryFilters, JsonOption, Request):
    command: ClassVar = "history"
    help: ClassVar = "List the runs."
    program: ClassVar = "boosters_eval.programs.history.query:list_history"

    limit: int | None = parameter(30, short="-n", kind=count(1), help=_LATEST)


class ShowHistoryRequest(InHome, JsonOption, Request):
    command: ClassVar = "history show"
    help: ClassVar = "Show one run: what it measured, and every number against the run before on the same machine."
    program: ClassVar = "boosters_eval.programs.history.query:show_history"

    reference: str = parameter(kind=RUN_REFERENCE, argument=True, help=_REFERENCE)


class DiffRunsRequest(InHome, OutputOptions, Request):
    command: ClassVar = "history diff"
    help: ClassVar = """\
Compare two runs number by number, on the splits that both have; where they share none, the table says so.

Other data or settings are not compared, nor are times of different machines. Exit 0 whatever the verdicts: to gate on
them, use a baseline or 'compare --against'."""
    program: ClassVar = "boosters_eval.programs.history.difference:diff_runs"

    before: str = parameter(kind=text(RUN_REFERENCE.words, "BEFORE"), argument=True, help=_REFERENCE)
    after: str = parameter(kind=text(RUN_REFERENCE.words, "AFTER"), argument=True, help=_REFERENCE)
    metrics: str | Sequence[str] = _names(
        "--metric", "Only these. Default: all scores, times and memory.", BEFORE_A_NAME
    )


class ReportHistoryRequest(HistoryFilters, OutputOptions, Request):
    command: ClassVar = "history report"
    help: ClassVar = """\
Draw every benchmark, competitor and metric over all runs, and mark where a number changed its level.

Where nothing changed, a change is marked in at most 1 % of cases. Runs on different machines are never mixed."""
    program: ClassVar = "boosters_eval.programs.history.report:report_history"


class ImportHistoryRequest(InHome, Request):
    command: ClassVar = "history import"
    help: ClassVar = """\
Add results of other machines to the history. Importing a file twice is harmless.

A file that holds no results is told, and the others are still imported; the exit code is then 3."""
    program: ClassVar = "boosters_eval.programs.history.transfer:import_files"

    files: Sequence[Path] = parameter(
        kind=path(metavar="FILE..."),
        several=True,
        argument=True,
        help="Results of --format json, or what 'history export' wrote.",
    )


class ExportHistoryRequest(HistoryFilters, Request):
    command: ClassVar = "history export"
    help: ClassVar = """\
Write the benchmark runs of the history to a file or to stdout.

The filters choose runs for json, and numbers for csv. A run that cannot be read is told, and the exit code is 2."""
    program: ClassVar = "boosters_eval.programs.history.transfer:export_runs"

    output: Path | None = parameter(None, short="-o", kind=path(), panel=OUTPUT, help="Write to a file.")
    format: str | None = parameter(
        None,
        short="-f",
        kind=choice("json", "csv"),
        panel=OUTPUT,
        help="json: whole runs, which can be imported elsewhere; csv: one line per number. Default: by the ending of"
        " the file, else json.",
    )

    def check(self) -> None:
        """Refuse a file whose ending says nothing."""
        super().check()
        if self.format is None and self.output and self.output.suffix.lower() not in ("", ".json", ".csv"):
            raise ConfigError(
                f"{the('output')} must end in .json or .csv unless {named('format')} is given."
                f" Got '{self.output}' instead."
            )


class ReindexRequest(InHome, Request):
    command: ClassVar = "history reindex"
    help: ClassVar = (
        "Read all runs and imported files anew. Nothing but time is lost with the index: it only repeats what they say."
    )
    program: ClassVar = "boosters_eval.programs.history.index:rebuild_index"
