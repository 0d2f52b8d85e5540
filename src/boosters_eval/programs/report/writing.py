"""The programs `report`, `figures` and `runs open`: what a suite, an earlier run or a results file found, as files.

What renders is loaded after the run, whose record names the libraries that were loaded.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError, ConfigError, ExitCode, RunError
from boosters_eval.core.files import check_writable, open_in_browser, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import the
from boosters_eval.core.text import count_of
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.benchmark.compare import (
    announce,
    describe_plan,
    explain_failure,
    is_success,
    prepare_suite,
)
from boosters_eval.programs.benchmark.request import Settings, SuiteRequest
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import execute_prepared, load_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.tables.data import ReportType
    from boosters_eval.programs.benchmark.tables.document import ReportDocument
    from boosters_eval.programs.report.request import FiguresRequest, OpenRunRequest, ReportRequest
    from boosters_eval.reports.findings import Reported
    from boosters_eval.reports.html.svg import Figure
    from boosters_eval.stats.significance import TestName

_FORMATS = {"md": "md", "markdown": "md", "json": "json", "html": "html", "tex": "tex", "latex": "tex"}
_ENDINGS = {**{f".{name}": form for name, form in _FORMATS.items()}, ".txt": "md", ".htm": "html"}
_NOTHING = "There is nothing to report: no cell has an outcome."
_OTHERS = (".csv", ".docx", ".pdf", ".png", ".svg", ".xlsx", ".yaml", ".yml")  # files that no report can be


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


def write(request: ReportRequest) -> Findings:
    """Write a report on a suite, an earlier run or a results file. A dry run of a suite shows only what would run."""
    formats, file = _place(request)
    if request.suite is not None:
        prepared = _prepare_suite(request)
        if request.dry_run:
            announce(prepared)
            where = f"the report would be written to {file or request.output}."
            planned = describe_plan(prepared)
            return replace(planned, notes=(*planned.notes, where))
        check_writable(file or request.output / "report")  # it may create the directory
        announce(prepared)
        results = execute_prepared(prepared)
        report = _build_report(results, request.report_type, request.test)
    elif request.results is not None:
        results = ResultCollection.load_partial(request.results)
        report = _build_report(results, request.report_type, request.test, request.margin)
    else:
        how = (request.report_type, request.test, request.margin)
        results, report = load_report(request.run or "last", request.home, *how)
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


def _prepare_suite(request: ReportRequest) -> PreparedRun:
    settings = {name: getattr(request, name) for name in Settings.parameters}
    return prepare_suite(
        SuiteRequest(
            suite=request.suite,
            seeds=request.seeds,
            libraries=request.libraries,
            margin=request.margin,
            **settings,
        )
    )


def load_report(
    run: str,
    home: Path | None,
    report_type: ReportType = "comparison",
    test: TestName = "rows",
    margin: tuple[str, ...] = (),
) -> tuple[ResultCollection, ReportDocument]:
    """What is told of a run, and its results; one of `importances` has a report of its own, with the same formats."""
    from boosters_eval.programs.importances.results import is_explained, load_explanations  # noqa: PLC0415

    if not is_explained(run, home):
        results = load_run(run, home)
        return results, _build_report(results, report_type, test, margin)
    found = load_explanations(run, home)
    if not found.results:
        raise RunError(_NOTHING)
    return found.collection, found.to_model()


def _build_report(
    results: ResultCollection, report_type: ReportType, test: TestName, margin: tuple[str, ...] = ()
) -> ReportDocument:
    from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415

    if not results.results and not results.errors:
        raise RunError(_NOTHING)
    return build_document(results, report_type, test=test, margin=margin or None)


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


@dataclass(frozen=True)
class DrawnFigures(Findings):
    """The files, and the sentence that belongs below each."""

    files: Mapping[Path, str]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(self.files)

    def show(self, screen: Screen) -> None:
        for path in () if screen.quiet else self.paths:
            screen.note(f"Written: {path}")


def draw_figures(request: FiguresRequest) -> DrawnFigures:
    """Write every chart of a run."""
    from boosters_eval.reports.html.plots import Plot  # noqa: PLC0415 (a report needs it later)

    figures = load_report(request.run, request.home)[1].document().figures()
    if not figures:
        raise RunError(f"There is nothing to draw: no cell of the run '{request.run}' has a result.")
    files = {}
    for name, figure in _named(figures):
        for form in dict.fromkeys(request.format):
            path = request.output / f"{name}.{form}"
            write_atomically(path, Plot((figure,)).drawn(form))
            files[path] = figure.caption
    return DrawnFigures(files)


def _named(figures: list[Figure]) -> Iterator[tuple[str, Figure]]:
    """Each figure with the name of its file: letters, digits and dashes, and a number where two would be the same."""
    known: dict[str, int] = {}
    for figure in figures:
        name = re.sub(r"[^a-z0-9]+", "-", figure.name.lower()).strip("-") or "figure"
        known[name] = known.get(name, 0) + 1
        yield name if known[name] == 1 else f"{name}-{known[name]}", figure


@dataclass(frozen=True)
class RunPage(Findings):
    path: Path

    def show(self, screen: Screen) -> None:
        screen.say(str(self.path))


def open_run(request: OpenRunRequest) -> RunPage:
    """Write the page of a run into its folder, and open it."""
    results, report = load_report(request.reference, request.home)
    page = report.to_html()
    path = find_run(results.run_id or request.reference, request.home).path / "report.html"
    try:
        write_atomically(path, page, own=True)
    except BoostersEvalError:  # a home that may only be read
        path = Path(tempfile.mkdtemp(prefix="boosters-eval-")) / "report.html"
        write_atomically(path, page)
    if request.browser:
        open_in_browser(path)
    return RunPage(path.resolve())
