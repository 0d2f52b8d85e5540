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
    from collections.abc import Mapping
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.benchmark.tables.document import ReportDocument
    from boosters_eval.programs.report.request import ReportRequest
    from boosters_eval.reports.findings import Reported

_FORMATS = {"md": "md", "markdown": "md", "json": "json", "html": "html", "tex": "tex", "latex": "tex"}
_ENDINGS = {**{f".{name}": form for name, form in _FORMATS.items()}, ".txt": "md", ".htm": "html"}
_OTHERS = (".csv", ".yaml", ".yml")  # files too, but none that a report can be


@dataclass(frozen=True)
class WrittenReport(Findings):
    """The files of a report, and the results that it is on."""

    files: Mapping[Path, str]
    results: ResultCollection
    request: ReportRequest
    report: Reported

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
            path, text = next(iter(self.files.items()))
            if screen.is_terminal and _ENDINGS.get(path.suffix.lower()) == "md":
                from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

                print_document(self.report.document(), screen.console())
            else:
                screen.write(text)
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
    results, report = _explain(request) or _evaluate(request, file)
    from boosters_eval.programs.benchmark.tables.document import render_files  # noqa: PLC0415

    files = render_files(report, request.output, formats)
    if file is not None:
        files = {file: next(iter(files.values()))}
    if not request.dry_run:
        for path, text in files.items():
            write_atomically(path, text)
        if request.open:
            readable = [path for suffix in (".html", ".md", ".json") for path in files if path.suffix == suffix]
            open_in_browser((readable or list(files))[0])
    return WrittenReport(files, results, request, report)


def _explain(request: ReportRequest) -> tuple[ResultCollection, ReportDocument] | None:
    """A run of `importances` has a report of its own, with the same formats."""
    from boosters_eval.programs.importances.results import is_explained, load_explanations  # noqa: PLC0415

    if request.run is None or not is_explained(request.run, request.home):
        return None
    found = load_explanations(request.run, request.home)
    if not found.results:
        raise RunError("There is nothing to report: no cell has an outcome.")
    return found.collection, found.to_model()


def _evaluate(request: ReportRequest, file: Path | None) -> tuple[ResultCollection, ReportDocument]:
    if request.suite is not None:
        results = _run_suite(request, file)
    elif request.results is not None:
        results = ResultCollection.load_partial(request.results)
    else:
        results = load_run(request.run or "last", request.home)
    if not results.results and not results.errors:
        raise RunError("There is nothing to report: no cell has an outcome.")
    from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415

    return results, build_document(results, request.report_type, test=request.test)


def _run_suite(request: ReportRequest, file: Path | None) -> ResultCollection:
    settings = {name: getattr(request, name) for name in Settings.parameters}
    suite = SuiteRequest(suite=request.suite, seeds=request.seeds, libraries=request.libraries, **settings)
    prepared = prepare_suite(suite)
    if not request.dry_run:
        check_writable(file or request.output / "report")  # it may create the directory
    announce(prepared)
    return execute_prepared(prepared)


def _place(request: ReportRequest) -> tuple[list[str], Path | None]:
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
