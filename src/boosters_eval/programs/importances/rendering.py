"""The report on explanations in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from rich.text import Text

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.core.text import escape_json
from boosters_eval.programs.benchmark.tables.environment import Environment
from boosters_eval.programs.benchmark.tables.generate import NO_GIT
from boosters_eval.programs.importances.document import build_document
from boosters_eval.programs.importances.page import render_importances_page
from boosters_eval.programs.importances.tables import records_of
from boosters_eval.reports.full_markdown import render_report
from boosters_eval.reports.grid import print_lines, width_of
from boosters_eval.reports.latex import render_latex
from boosters_eval.reports.layout import wrapped_with_indent
from boosters_eval.reports.model import Report
from boosters_eval.reports.terminal import print_document
from boosters_eval.reports.text import render_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    import pandas as pd
    from rich.console import Console

    from boosters_eval.programs.importances.document import ImportancesDocument
    from boosters_eval.programs.importances.results import Explanations

ReportedFormat = Literal["markdown", "json", "csv", "html", "latex"]
FrameName = Literal["importances", "agreement", "checks", "correlated"]


def render(document: ImportancesDocument, format_: str) -> str:
    """The whole report as text."""
    if format_ not in _RENDERERS:
        raise UnknownNameError("format", format_, list(_RENDERERS))
    return _RENDERERS[format_](document)


def _json(document: ImportancesDocument) -> str:
    return escape_json(document.model_dump_json(indent=1)) + "\n"


def _csv(document: ImportancesDocument) -> str:
    return render_csv(Report(document.tables, document.notes))


_RENDERERS: dict[str, Callable[[ImportancesDocument], str]] = {
    "markdown": render_report,
    "json": _json,
    "csv": _csv,
    "html": render_importances_page,
    "latex": render_latex,
}


def render_files(
    explanations: Explanations, output_dir: Path, formats: Sequence[str], *, now: datetime | None = None
) -> dict[Path, str]:
    """What a report on the run writes, named by date and commit as those of benchmarks are."""
    document = build_document(explanations, now=now)
    environment = Environment.collect(explanations.collection, now=now)
    stem = f"{environment.timestamp:%Y-%m-%d}-{environment.short_sha or NO_GIT}-importances-report"
    names = {"md": "markdown", "tex": "latex"}
    return {
        output_dir / f"{stem}.{name}": _RENDERERS[names.get(name, name)](document) for name in dict.fromkeys(formats)
    }


def print_importances(document: ImportancesDocument, console: Console, *, every: bool = True) -> None:
    """The answer first, then the tables; with `every`, also rows, environment and how to reproduce it."""
    width = width_of(console)
    for sentence in document.headline:
        lines = [sentence] if width is None else wrapped_with_indent(sentence, width)
        print_lines(console, [map(Text, lines)])
    console.print()
    told = {"headline": ()} if every else {"headline": (), "environment": (), "configuration": (), "sections": ()}
    print_document(document.replace(**told), console)


def frame_of(document: ImportancesDocument, about: FrameName) -> pd.DataFrame:
    """The findings of one name over all benchmarks, one row each."""
    import pandas as pd  # noqa: PLC0415 (takes long to import)

    if about not in get_args(FrameName):
        raise UnknownNameError("frame", about, list(get_args(FrameName)))
    return pd.DataFrame.from_records(list(records_of(document.findings, about)))
