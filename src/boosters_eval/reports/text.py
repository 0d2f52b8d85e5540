"""The table model as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from boosters_eval.core.text import csv_cell
from boosters_eval.reports.numbers import estimate, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.reports.model import Report, ReportTable

_SPECIAL = re.compile(r"([\\`*\[\]|<>&])|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")


def escape(text: str) -> str:
    """Text escaped for Markdown: no markup, no HTML, no broken table rows."""
    html = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _SPECIAL.sub(lambda match: html.get(match[0], f"\\{match[0]}"), text.replace("\n", " "))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table with a readable source; cells are already escaped."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(headings))]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * width for width in widths])
    return "".join(f"| {' | '.join(line)} |\n" for line in padded)


def markdown_section(table: ReportTable, *, level: int = 2) -> str:
    """One table: heading, answer, cells, total costs, notes."""
    rows = []
    for row in table.rows:
        cells = [f"**{escape(cell.shown)}**" if cell.best else escape(cell.shown) for cell in row.cells]
        rows.append([*map(escape, table.beginning(row)), *cells, *([row.count] if table.counted else [])])
    for row in table.trivial:
        cells = [*map(escape, table.beginning(row)), *(escape(cell.shown) for cell in row.cells)]
        rows.append([f"*{cells[0]}*", *cells[1:], *([row.count] if table.counted else [])])
    parts = [f"{'#' * level} {escape(table.title)}\n", *([f"{escape(table.answer)}\n"] if table.answer else [])]
    parts.append(markdown_table([*map(escape, table.headings)], rows))
    if totals := _totals(table):
        parts.append(totals)
    if table.notes:
        parts.append("**Notes:**\n\n" + markdown_list(table.notes))
    return "\n".join(parts)


def markdown_list(notes: Sequence[str]) -> str:
    """Notes as a list."""
    return "".join(f"- {escape(note)}\n" for note in notes)


def render_markdown(report: Report) -> str:
    """All tables and notes."""
    parts = [markdown_section(table) for table in report.tables]
    if report.notes:
        parts.append("## Notes\n\n" + markdown_list(report.notes))
    return "\n".join(parts) or "No results.\n"


def render_csv(report: Report) -> str:
    """One line per cell: full numbers for programs, the text for people. Trivial rows have a status of their own."""
    keys = list(dict.fromkeys(key for table in report.tables for key in table.keys))
    names = list(dict.fromkeys(name for table in report.tables for name in (*table.row_names, *table.row_facts)))
    identity = [key.lower().replace(" ", "_") for key in (*keys, *names)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    headings = ["table", *identity, "column", "mean", "std", "n", "failed", "status", "text", "best"]
    writer.writerow(map(csv_cell, _unique(headings)))
    for table in report.tables:
        for row, status in (*((row, "") for row in table.rows), *((row, "trivial") for row in table.trivial)):
            named = dict(zip((*table.row_names, *table.row_facts), table.beginning(row), strict=True))
            start = [table.name, *(table.keys.get(key) for key in keys), *(named.get(name) for name in names)]
            for column, cell in zip(table.columns, row.cells, strict=True):
                numbers = (cell.mean, cell.std, cell.n, row.failed)
                line = (*start, column.name, *numbers, status or cell.status, cell.text, str(cell.best).lower())
                writer.writerow(map(csv_cell, line))
    return buffer.getvalue()


def _unique(names: list[str]) -> list[str]:
    """Unique headings: a second "model" becomes "model_2"."""
    return [name if (n := names[:i].count(name)) == 0 else f"{name}_{n + 1}" for i, name in enumerate(names)]


def render_json(report: Report) -> str:
    """The table model itself; a number that JSON cannot hold becomes null."""
    return TypeAdapter(type(report)).dump_json(report, indent=1).decode() + "\n"


def _totals(table: ReportTable) -> str:
    """The RFC's run-time list: average and total cost of each competitor."""
    position = table.cost
    if position is None:
        return ""
    column = table.columns[position]
    unit = f" {escape(column.unit)}" if column.unit else ""
    lines = [f"**{'Runtime' if column.kind == 'time' else 'Cost'} Statistics:**\n\n"]
    for row in table.rows:
        cell = row.cells[position]
        values = [value for value in cell.values if value is not None]
        if values:
            total = number(math.fsum(values))
            lines.append(f"- {escape(row.label)}: avg {estimate(cell.mean, cell.std)}{unit}, total {total}{unit}\n")
    return "".join(lines) if len(lines) > 1 else ""
