"""One table model, and its renderings: terminal, Markdown, JSON, CSV and HTML. It is independent of any result type."""

from __future__ import annotations

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
    "render_markdown",
    "render_page",
    "render_report",
]
