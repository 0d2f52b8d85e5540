"""A comparison as its user meets it: with a verdict, a table and reports. It needs neither the engine nor a library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.core.findings import Findings
from boosters_eval.programs.paper.compare import compare_results
from boosters_eval.programs.paper.files import digest_of, read_comparison, read_results, to_json, to_yaml
from boosters_eval.programs.paper.page import document_of, render_html
from boosters_eval.programs.paper.reading import read_specification
from boosters_eval.programs.paper.report import reasons, render_markdown, row_name, unexplained
from boosters_eval.programs.paper.wording import (
    CONFIDENCE,
    OVERALL,
    difference_text,
    metric_label,
    our_text,
    overall,
    paper_text,
    status_text,
)
from boosters_eval.reports.latex import render_latex

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.comparison import PaperComparison
    from boosters_eval.programs.paper.request import ComparePaperRequest, ReportPaperRequest


def _latex(comparison: PaperComparison) -> str:
    return render_latex(document_of(comparison))


_RENDERINGS = {"yaml": to_yaml, "json": to_json, "markdown": render_markdown, "html": render_html, "latex": _latex}


def compare(request: ComparePaperRequest) -> JudgedPaper:
    """Compare results with what a paper prints."""
    files = [str(path) for path in (request.results, request.output) if isinstance(path, Path)]
    spec, results = read_specification(request.paper), read_results(request.results)
    found = compare_results(spec, results, digest=digest_of(request.paper), files=files)
    return JudgedPaper(found, written=request.output is not None)


def report(request: ReportPaperRequest) -> PaperReport:
    """The report of a comparison that was made before."""
    return PaperReport(read_comparison(request.comparison))


@dataclass(frozen=True)
class PaperReport(Findings):
    """A comparison in every format. That it can be shown says nothing of its verdict."""

    comparison: PaperComparison

    def render(self, form: str) -> str:
        """The same comparison always gives the same bytes."""
        if form not in _RENDERINGS:
            raise UnknownNameError("format", form, _RENDERINGS)
        return _RENDERINGS[form](self.comparison)


@dataclass(frozen=True)
class JudgedPaper(PaperReport):
    """A comparison whose verdict is the answer."""

    written: bool = False  # to a file, so that it is shown besides

    @property
    def exit_code(self) -> int:
        """What the comparison says."""
        return self.comparison.exit_code

    def show(self, screen: Screen) -> None:
        """The comparisons and the verdict, for a person; the reports have the details."""
        if screen.quiet:
            return
        found = self.comparison
        rows = []
        for target in found.targets:
            for metric in target.metrics:
                numbers = paper_text(metric), our_text(metric), difference_text(metric)
                name = metric_label(metric.metric_name)
                rows.append((target.table, row_name(target), target.dataset, name, *numbers, status_text(metric)))
        screen.rows(("table", "row", "data set", "metric", "paper", "ours", "diff", "status"), rows, keys=4)
        for place, target, deviating in unexplained(found):
            if deviating is not None and deviating.status != "missing":
                screen.say(f"{place}: {' '.join(reasons(found, target, deviating))}")
        for text in found.notes:
            screen.say(f"Note: {text}")
        mark, verdict = OVERALL[found.verdict]
        screen.say(f"{mark} {verdict} ({CONFIDENCE[found.confidence].lower()}): {overall(found)}")

    def conclude(self, screen: Screen) -> None:
        """What could not be compared is told, even if quiet."""
        if self.written:
            self.show(screen)
        for place, target, metric in unexplained(self.comparison):
            if metric is None or metric.status == "missing":
                screen.note(f"Error: {place}: {' '.join(reasons(self.comparison, target, metric))}")
