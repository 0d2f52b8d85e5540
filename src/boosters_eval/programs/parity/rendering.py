"""Results of parity runs as files to be read: the rendering follows from the file's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.text import escape_json
from boosters_eval.engine.journal import pause_collection
from boosters_eval.programs.parity.catalog import register_files
from boosters_eval.programs.parity.dashboard import render_dashboard
from boosters_eval.programs.parity.findings import build_parity_report
from boosters_eval.programs.parity.markdown import render_parity_markdown
from boosters_eval.programs.parity.method import METHODS
from boosters_eval.programs.parity.rows import merge, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.findings import ParityReport
    from boosters_eval.programs.parity.request import ParityRenderRequest
    from boosters_eval.programs.parity.rows import ParityRow


def render_results(request: ParityRenderRequest) -> RenderedParity:
    """Render results as Markdown, as a dashboard of one HTML file, or as JSON."""
    register_files(request.registry)
    with pause_collection():
        rows = merge(*map(read_rows, request.csv))
        report = build_parity_report(rows, declared_backends(rows))
        write_atomically(request.out, _RENDERERS[request.out.suffix.lower()](report))
    return RenderedParity(report, request.out)


@dataclass(frozen=True)
class RenderedParity(Findings):
    """A report, and the file that it was written to."""

    report: ParityReport
    out: Path

    def show(self, screen: Screen) -> None:
        """Nothing: the file is the result."""

    def conclude(self, screen: Screen) -> None:
        """Where the file is."""
        if not screen.quiet:
            screen.note(f"Written: {self.out}")


def render_parity_json(report: ParityReport) -> str:
    """The report itself; a number that JSON cannot hold is null."""
    return escape_json(report.model_dump_json(indent=1)) + "\n"


_RENDERERS: dict[str, Callable[[ParityReport], str]] = {
    ".md": render_parity_markdown,
    ".html": render_dashboard,
    ".json": render_parity_json,
}


def declared_backends(rows: Iterable[ParityRow]) -> dict[str, tuple[str, ...]]:
    """The backends that the registry declares for the methods of these rows; an unknown method has none."""
    names = dict.fromkeys(row.method for row in rows)
    return {name: METHODS[name].backends for name in names if name in METHODS}
