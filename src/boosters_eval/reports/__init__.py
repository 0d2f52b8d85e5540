"""One table model, and its renderings: terminal, Markdown, JSON, CSV and HTML."""

from __future__ import annotations

from boosters_eval.reports.build import build_tables
from boosters_eval.reports.document import ReportDocument, build_document
from boosters_eval.reports.generate import check_request, check_test, generate_report, render_files, report_schema
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
    "ReportDocument",
    "Row",
    "Table",
    "build_document",
    "build_tables",
    "check_request",
    "check_test",
    "generate_report",
    "print_report",
    "render_csv",
    "render_files",
    "render_fragment",
    "render_json",
    "render_markdown",
    "render_page",
    "report_schema",
]
