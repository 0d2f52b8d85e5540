"""The report on a run as a page, written into its folder and opened in the browser."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.browser import open_file
from boosters_eval.core.errors import BoostersEvalError, RunError
from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.programs.benchmark import tables
from boosters_eval.programs.benchmark.running import load_run
from boosters_eval.programs.importances.running import is_explained, load_explanations
from boosters_eval.programs.runs.showing import any_run
from boosters_eval.reports.html.page import render_page

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.runs.request import OpenRunRequest


@dataclass(frozen=True)
class RunPage(Findings):
    """A page that was written."""

    path: Path

    def show(self, screen: Screen) -> None:
        """Where it is."""
        screen.say(str(self.path))


def open_run(request: OpenRunRequest) -> RunPage:
    """Write the page of a run into its folder, and open it."""
    reference, home = request.reference, request.home
    run_id, page = (_explained_page if is_explained(reference, home) else _benchmark_page)(reference, home)
    path = any_run(run_id or reference, home).path / "report.html"
    try:
        write_atomically(path, page, own=True)
    except BoostersEvalError:  # a home that may only be read
        path = Path(tempfile.mkdtemp(prefix="boosters-eval-")) / "report.html"
        write_atomically(path, page)
    if request.browser:
        open_file(path)
    return RunPage(path.resolve())


def _benchmark_page(reference: str, home: Path | None) -> tuple[str | None, str]:
    results = load_run(reference, home)
    if not results.results and not results.errors:
        raise RunError("There is nothing to report: no cell has an outcome.")
    return results.run_id, render_page(tables.build_document(results, "comparison"))


def _explained_page(reference: str, home: Path | None) -> tuple[str | None, str]:
    found = load_explanations(reference, home)
    if not found.results:
        raise RunError("There is nothing to report: no cell has an outcome.")
    return found.collection.run_id, found.report("html")
