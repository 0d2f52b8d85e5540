"""The report on explanations in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.programs.benchmark.tables.environment import Environment
from boosters_eval.programs.benchmark.tables.generate import NO_GIT
from boosters_eval.programs.importances.document import ImportancesDocument, build_document
from boosters_eval.programs.importances.tables import records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    import pandas as pd

    from boosters_eval.programs.importances.results import Explanations

ReportedFormat = Literal["markdown", "json", "csv", "html", "latex"]
FrameName = Literal["importances", "agreement", "checks", "correlated"]


def render(document: ImportancesDocument, format_: str) -> str:
    """The whole report as text."""
    if format_ not in _RENDERERS:
        raise UnknownNameError("format", format_, list(_RENDERERS))
    return _RENDERERS[format_](document)


_RENDERERS: dict[str, Callable[[ImportancesDocument], str]] = {
    "markdown": ImportancesDocument.to_markdown,
    "json": ImportancesDocument.to_json,
    "csv": ImportancesDocument.to_csv,
    "html": ImportancesDocument.to_html,
    "latex": ImportancesDocument.to_latex,
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


def frame_of(document: ImportancesDocument, about: FrameName) -> pd.DataFrame:
    """The findings of one name over all benchmarks, one row each."""
    import pandas as pd  # noqa: PLC0415 (takes long to import)

    if about not in get_args(FrameName):
        raise UnknownNameError("frame", about, list(get_args(FrameName)))
    return pd.DataFrame.from_records(list(records_of(document.findings, about)))
