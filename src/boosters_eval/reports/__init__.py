"""One table model, and its renderings: terminal, Markdown, JSON, CSV and HTML."""

from __future__ import annotations

from boosters_eval.reports.html.page import render_page
from boosters_eval.reports.html.tables import render_fragment
from boosters_eval.reports.model import Cell, Column, Comparison, Ranking, Report, Row, Table
from boosters_eval.reports.terminal import print_report
from boosters_eval.reports.text import render_csv, render_json, render_markdown

__all__ = [
    "Cell",
    "Column",
    "Comparison",
    "Ranking",
    "Report",
    "Row",
    "Table",
    "print_report",
    "render_csv",
    "render_fragment",
    "render_json",
    "render_markdown",
    "render_page",
]
