"""Which rendering a file gets, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.text import escape_json
from boosters_eval.programs.parity.dashboard import render_dashboard
from boosters_eval.programs.parity.markdown import render_parity_markdown
from boosters_eval.programs.parity.method import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from boosters_eval.programs.parity.report import ParityReport
    from boosters_eval.programs.parity.rows import ParityRow


def render_parity_json(report: ParityReport) -> str:
    """The report itself; a number that JSON cannot hold is null."""
    return escape_json(report.model_dump_json(indent=1)) + "\n"


_RENDERERS: dict[str, Callable[[ParityReport], str]] = {
    ".md": render_parity_markdown,
    ".html": render_dashboard,
    ".json": render_parity_json,
}


def renderer_for(path: Path) -> Callable[[ParityReport], str]:
    """The renderer of a file's extension."""
    found = _RENDERERS.get(path.suffix.lower())
    if found is None:
        raise ConfigError(f"The '--out' option must end in .md, .html or .json. Got '{path}' instead.")
    return found


def declared_backends(rows: Iterable[ParityRow]) -> dict[str, tuple[str, ...]]:
    """The backends that the registry declares for the methods of these rows; an unknown method has none."""
    names = dict.fromkeys(row.method for row in rows)
    return {name: METHODS[name].backends for name in names if name in METHODS}
