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
from boosters_eval.programs.benchmark.tables.document import TESTS, BenchmarkDocument, build_document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from boosters_eval.stats.significance import TestName

OUTPUT_DIR = Path("docs/benchmarks")
ReportFormat = Literal["md", "json", "html", "tex"]
NO_GIT = "nogit"  # in the file name if the results do not record their commit


_RENDERERS: dict[ReportFormat, Callable[[BenchmarkDocument], str]] = {
    "md": BenchmarkDocument.to_markdown,
    "json": BenchmarkDocument.to_json,
    "html": BenchmarkDocument.to_html,
    "tex": BenchmarkDocument.to_latex,
}
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
    files = render_files(results, report_type, output_dir, formats, test=test, alpha=alpha, now=now)
    for path, text in files.items():
        write_atomically(path, text)
    return tuple(files)


def render_files(
    results: ResultCollection,
    report_type: ReportType = "quality",
    output_dir: str | Path = OUTPUT_DIR,
    formats: Sequence[ReportFormat] = ("md", "json"),
    *,
    test: TestName = "corrected",
    alpha: float | None = None,
    now: datetime | None = None,
) -> dict[Path, str]:
    """What `generate_report` would write, without writing it."""
    check_request(report_type, formats, test)
    document = build_document(results, report_type, test=test, alpha=alpha, now=now)
    stem = name_files(document)
    return {Path(output_dir) / f"{stem}.{name}": _RENDERERS[name](document) for name in dict.fromkeys(formats)}


def name_files(document: BenchmarkDocument) -> str:
    """YYYY-MM-DD-<sha>-<type>-report, the date in UTC."""
    environment = document.data.environment
    return f"{environment.timestamp:%Y-%m-%d}-{environment.short_sha or NO_GIT}-{document.data.report_type}-report"


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
