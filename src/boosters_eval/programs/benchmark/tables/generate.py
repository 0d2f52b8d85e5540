"""Writing reports: named by date and commit, in any of four formats."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from boosters_eval.core.errors import ConfigError, UnknownNameError, require
from boosters_eval.core.files import write_atomically
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.data import ReportType
from boosters_eval.programs.benchmark.tables.document import TESTS, build_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from boosters_eval.programs.benchmark.tables.document import ReportDocument
    from boosters_eval.stats.significance import TestName

OUTPUT_DIR = Path("docs/benchmarks")
ReportFormat = Literal["md", "json", "html", "tex"]
_RENDERINGS = {"md": "markdown", "tex": "latex"}  # by the ending of a file
FORMATS = get_args(ReportFormat)


def generate_report(
    results: ResultCollection,
    report_type: ReportType = "quality",
    output_dir: str | Path = OUTPUT_DIR,
    formats: Sequence[ReportFormat] = ("md", "json"),
    *,
    test: TestName = "corrected",
    alpha: float | None = None,
    now: datetime | None = None,
) -> tuple[Path, ...]:
    """Write the report and return its paths, one per format, in the requested order."""
    require("results", results, ResultCollection, "a ResultCollection")
    require("output_dir", output_dir, (str, Path), "a folder")
    check_request(report_type, formats, test)
    report = build_document(results, report_type, test=test, alpha=alpha, now=now)
    files = render_files(report, Path(output_dir), formats)
    for path, text in files.items():
        write_atomically(path, text)
    return tuple(files)


def render_files(report: ReportDocument, folder: Path, formats: Sequence[str]) -> dict[Path, str]:
    """The files of a report, which are not written yet."""
    names = {name: folder / f"{report.file_name}.{name}" for name in formats}
    return {path: report.render(_RENDERINGS.get(name, name)) for name, path in names.items()}


def check_request(report_type: str, formats: Sequence[str], test: str) -> None:
    """Refuse what cannot be rendered before any work is done."""
    check_test(test)
    if report_type not in get_args(ReportType):
        raise UnknownNameError("report type", report_type, get_args(ReportType))
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError("report format", name, FORMATS)
    if not formats:
        raise ConfigError(
            f"The 'formats' parameter must name at least one of {', '.join(FORMATS)}. Got nothing instead."
        )


def check_test(test: str) -> TestName:
    """The name of a test, if it is one."""
    if test not in TESTS:
        raise UnknownNameError("test", test, TESTS)
    return cast("TestName", test)


def report_schema() -> dict[str, Any]:
    """The JSON schema of a report's JSON file, as this package carries it."""
    text = resources.files(__package__).joinpath("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
