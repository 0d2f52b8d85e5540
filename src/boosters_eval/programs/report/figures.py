"""The program `figures`: every chart of a run's page as a file of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import RunError
from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.reports.html.plots import Plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.report.request import FiguresRequest
    from boosters_eval.reports.html.svg import Figure


@dataclass(frozen=True)
class DrawnFigures(Findings):
    """The files, and the sentence that belongs below each."""

    files: Mapping[Path, str]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(self.files)

    def show(self, screen: Screen) -> None:
        """A line per file."""
        for path in () if screen.quiet else self.paths:
            screen.note(f"Written: {path}")


def draw(request: FiguresRequest) -> DrawnFigures:
    """Write every chart of a run."""
    files = {}
    for name, figure in _named(_figures(request)):
        for form in dict.fromkeys(request.format):
            path = request.output / f"{name}.{form}"
            write_atomically(path, Plot((figure,)).drawn(form))
            files[path] = figure.caption
    return DrawnFigures(files)


def _figures(request: FiguresRequest) -> list[Figure]:
    from boosters_eval.programs.benchmark.runs import load_run  # noqa: PLC0415
    from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415
    from boosters_eval.programs.importances.results import is_explained, load_explanations  # noqa: PLC0415

    run, home = request.run, request.home
    if is_explained(run, home):
        document = load_explanations(run, home).document()
    else:
        document = build_document(load_run(run, home), "comparison").document()
    found = document.figures()
    if not found:
        raise RunError(f"There is nothing to draw: no cell of the run '{run}' has a result.")
    return found


def _named(figures: list[Figure]) -> Iterator[tuple[str, Figure]]:
    """Each figure with the name of its file: letters, digits and dashes, and a number where two would be the same."""
    known: dict[str, int] = {}
    for figure in figures:
        name = re.sub(r"[^a-z0-9]+", "-", figure.name.lower()).strip("-") or "figure"
        known[name] = known.get(name, 0) + 1
        yield name if known[name] == 1 else f"{name}-{known[name]}", figure
