"""One table model, and its renderings: terminal, Markdown, JSON, CSV, HTML, LaTeX. It knows no result type.

What is imported from here is loaded when it is used, so that a plain listing waits for no model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boosters_eval.reports.document import (
        Code,
        Details,
        Fact,
        Listing,
        ListItem,
        Paragraph,
        PlainTable,
        ReportDocument,
        Section,
    )
    from boosters_eval.reports.full_markdown import render_report
    from boosters_eval.reports.html.page import render_page
    from boosters_eval.reports.html.tables import render_fragment
    from boosters_eval.reports.latex import render_latex
    from boosters_eval.reports.model import (
        CellStatus,
        Column,
        PairVerdict,
        RankingPair,
        RankingTable,
        Report,
        ReportTable,
        Row,
        TableCell,
    )
    from boosters_eval.reports.terminal import print_document, print_report
    from boosters_eval.reports.text import render_csv, render_json, render_markdown

_HOME: dict[str, tuple[str, ...]] = {
    "document": (
        "Code",
        "Details",
        "Fact",
        "Listing",
        "ListItem",
        "Paragraph",
        "PlainTable",
        "ReportDocument",
        "Section",
    ),
    "full_markdown": ("render_report",),
    "html.page": ("render_page",),
    "html.tables": ("render_fragment",),
    "latex": ("render_latex",),
    "model": (
        "CellStatus",
        "Column",
        "PairVerdict",
        "RankingPair",
        "RankingTable",
        "Report",
        "ReportTable",
        "Row",
        "TableCell",
    ),
    "terminal": (
        "print_document",
        "print_report",
    ),
    "text": (
        "render_csv",
        "render_json",
        "render_markdown",
    ),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CellStatus",
    "Code",
    "Column",
    "Details",
    "Fact",
    "ListItem",
    "Listing",
    "PairVerdict",
    "Paragraph",
    "PlainTable",
    "RankingPair",
    "RankingTable",
    "Report",
    "ReportDocument",
    "ReportTable",
    "Row",
    "Section",
    "TableCell",
    "print_document",
    "print_report",
    "render_csv",
    "render_fragment",
    "render_json",
    "render_latex",
    "render_markdown",
    "render_page",
    "render_report",
]


if not TYPE_CHECKING:  # a type checker must see a misspelt name

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module 'boosters_eval.reports' has no attribute '{name}'")
        return getattr(import_module(f"boosters_eval.reports.{_WHERE[name]}"), name)
