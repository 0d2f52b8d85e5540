"""The program `report`: a suite is run, or what an earlier run found is read, and its report is written.

What renders is loaded after the run, whose record names the libraries that were loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, ExitCode, RunError
from boosters_eval.core.files import check_writable, open_in_browser, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import the
from boosters_eval.core.text import count_of
from boosters_eval.programs.benchmark.compare import announce, explain_failure, is_success, prepare_suite
from boosters_eval.programs.benchmark.request import Settings, SuiteRequest
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import execute_prepared, load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rich.console import Console

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.benchmark.tables.generate import ReportFormat
    from boosters_eval.programs.report.request import ReportRequest

_FORMATS: dict[str, ReportFormat] = {
    "md": "md",
    "markdown": "md",
    "json": "json",
    "html": "html",
    "tex": "tex",
    "latex": "tex",
}
_ENDINGS: dict[str, ReportFormat] = {
    **{f".{name}": form for name, form in _FORMATS.items()},
    ".txt": "md",
    ".htm": "html",
}
_OTHERS = (".csv", ".yaml", ".yml")  # files too, but none that a report can be


@dataclass(frozen=True)
class WrittenReport(Findings):
    """The files of a report, and the results that it is on."""

    files: Mapping[Path, str]
    results: ResultCollection
    request: ReportRequest
    formats: tuple[str, ...]
    preview: Callable[[Console], None]  # what a terminal shows of it

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are, or would be."""
        return tuple(self.files)

    @property
    def exit_code(self) -> int:
        """What an earlier run failed in is in the report, but what it never ran is not."""
        accepted = self.request.continue_on_error or self.request.suite is None
        good = is_success(self.results, continue_on_error=accepted)
        return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        """The paths; of a dry run also the first of the files, or what fits a terminal instead of Markdown."""
        if self.request.dry_run:
            if screen.is_terminal and self.formats[0] == "md":
                self.preview(screen.console())
            else:
                screen.write(next(iter(self.files.values())))
        for path in () if screen.quiet else self.paths:
            screen.note(f"{'Would write' if self.request.dry_run else 'Written'}: {path}")

    def conclude(self, screen: Screen) -> None:
        """What the report lacks."""
        missing = self.results.metadata.n_missing
        if missing:
            have = f"{count_of(missing, 'cell')} {'has' if missing == 1 else 'have'}"
            screen.note(f"Note: {have} no outcome: this is not a report on the whole run.")
        if self.exit_code:
            screen.note(explain_failure(self.results))


def write(request: ReportRequest) -> WrittenReport:
    """Write a report on a suite, an earlier run or a results file."""
    formats, file = _place(request)
    if request.run is not None and _is_explained(request.run, request.home):
        made = _on_importances(request, formats, file)
    else:
        made = _on_benchmark(request, formats, file)
    if not request.dry_run:
        for path, text in made.files.items():
            write_atomically(path, text)
    if request.open and not request.dry_run:
        readable = [path for suffix in (".html", ".md", ".json") for path in made.files if path.suffix == suffix]
        open_in_browser((readable or made.paths)[0])
    return made


def _is_explained(run: str, home: Path | None) -> bool:
    from boosters_eval.programs.importances.results import is_explained  # noqa: PLC0415

    return is_explained(run, home)


def _on_benchmark(request: ReportRequest, formats: list[ReportFormat], file: Path | None) -> WrittenReport:
    if request.suite is not None:
        results = _run_suite(request, file)
    elif request.results is not None:
        results = ResultCollection.load_partial(request.results)
    else:
        results = load_run(request.run or "last", request.home)
    if not results.results and not results.errors:
        raise RunError("There is nothing to report: no cell has an outcome.")
    from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415
    from boosters_eval.programs.benchmark.tables.generate import render_files  # noqa: PLC0415
    from boosters_eval.reports.terminal import print_document  # noqa: PLC0415

    kind, test = request.report_type, request.test

    def preview(console: Console) -> None:
        print_document(build_document(results, kind, test=test).document(), console)

    files = render_files(results, kind, request.output, formats, test=test)
    return WrittenReport(_placed(files, file), results, request, tuple(formats), preview)


def _on_importances(request: ReportRequest, formats: list[ReportFormat], file: Path | None) -> WrittenReport:
    """A run of `importances` has a report of its own, with the same formats."""
    from boosters_eval.programs.importances.document import render_files  # noqa: PLC0415
    from boosters_eval.programs.importances.results import load_explanations  # noqa: PLC0415
    from boosters_eval.reports.terminal import print_document  # noqa: PLC0415

    found = load_explanations(request.run or "last", request.home)
    if not found.results:
        raise RunError("There is nothing to report: no cell has an outcome.")

    def preview(console: Console) -> None:
        print_document(found.document(), console)

    files = render_files(found, request.output, formats)
    return WrittenReport(_placed(files, file), found.collection, request, tuple(formats), preview)


def _run_suite(request: ReportRequest, file: Path | None) -> ResultCollection:
    settings = {name: getattr(request, name) for name in Settings.parameters}
    suite = SuiteRequest(suite=request.suite, seeds=request.seeds, libraries=request.libraries, **settings)
    prepared = prepare_suite(suite)
    if not request.dry_run:
        check_writable(file or request.output / "report")  # it may create the directory
    announce(prepared)
    return execute_prepared(prepared)


def _place(request: ReportRequest) -> tuple[list[ReportFormat], Path | None]:
    """The formats that are wanted, and the file for the report, if not a folder was named."""
    output, ending = request.output, request.output.suffix.lower()
    is_file = (ending in _ENDINGS or ending in _OTHERS) and not output.is_dir()
    given = list(dict.fromkeys(_FORMATS[name] for name in request.format))
    if is_file and not given:
        if ending in _OTHERS:
            raise ConfigError(
                f"{the('output')} must be a folder, or end in .md, .json, .html or .tex. Got '{output}' instead."
            )
        given = [_ENDINGS[ending]]
    if is_file and len(given) > 1:
        raise ConfigError(
            f"{the('output')} must be a folder for several formats ({', '.join(given)}). Got '{output}' instead."
        )
    return given or ["md", "json", "html"], output if is_file else None


def _placed(files: dict[Path, str], file: Path | None) -> dict[Path, str]:
    """The files of a report under their own names, or the only one where it was wanted."""
    return files if file is None else {file: next(iter(files.values()))}
