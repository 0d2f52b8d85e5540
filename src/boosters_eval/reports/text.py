"""Markdown, CSV and JSON of the table model."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from boosters_eval.reports.numbers import estimate, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.reports.model import Report, Table

_SPECIAL = re.compile(r"([\\`*\[\]|<>&])|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")
_CSV_COLUMNS = (
    "config",
    "task",
    "dataset",
    "booster",
    "library",
    "variant",
    "metric",
    "mean",
    "std",
    "n",
    "failed",
    "text",
    "best",
)


def escape(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no broken table row."""
    html = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _SPECIAL.sub(lambda match: html.get(match[0], f"\\{match[0]}"), text.replace("\n", " "))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table whose source can be read too; cells are already escaped."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(headings))]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * width for width in widths])
    return "".join(f"| {' | '.join(line)} |\n" for line in padded)


def markdown_section(table: Table, *, level: int = 2) -> str:
    """One benchmark: heading, table, run times in total, notes."""
    headings = ["Library", *(["Variant"] if table.has_variants else [])]
    headings += [*(escape(column.heading) for column in table.columns), "n"]
    rows = []
    for row in table.rows:
        names = [escape(row.library), *([escape(row.variant or "")] if table.has_variants else [])]
        cells = [f"**{cell.text}**" if cell.best else cell.text for cell in row.cells]
        rows.append([*names, *cells, f"{row.n} ({row.failed} failed)" if row.failed else str(row.n)])
    parts = [f"{'#' * level} {escape(table.title)}\n", markdown_table(headings, rows)]
    if totals := _run_times(table):
        parts.append(totals)
    if table.notes:
        parts.append("**Notes:**\n\n" + "".join(f"- {escape(note)}\n" for note in table.notes))
    return "\n".join(parts)


def render_markdown(report: Report) -> str:
    """All tables and notes."""
    parts = [markdown_section(table) for table in report.tables]
    if report.notes:
        parts.append("## Notes\n\n" + "".join(f"- {escape(note)}\n" for note in report.notes))
    return "\n".join(parts) or "No results.\n"


def render_csv(report: Report) -> str:
    """One line a cell: full numbers for programs, the text for people."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for table in report.tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                writer.writerow(
                    (
                        table.name,
                        table.task,
                        table.dataset,
                        table.booster,
                        row.library,
                        row.variant,
                        column.name,
                        cell.mean,
                        cell.std,
                        cell.n,
                        row.failed,
                        cell.text,
                        str(cell.best).lower(),
                    )
                )
    return buffer.getvalue()


def render_json(report: Report) -> str:
    """The table model itself; a number that JSON cannot hold becomes null."""
    return TypeAdapter(type(report)).dump_json(report, indent=1).decode() + "\n"


def _run_times(table: Table) -> str:
    """The RFC's run-time list: average and total training time a competitor."""
    position = next((i for i, column in enumerate(table.columns) if column.name == "train_time_s"), None)
    if position is None:
        return ""
    lines = ["**Runtime Statistics:**\n\n"]
    for row in table.rows:
        cell = row.cells[position]
        values = [value for value in cell.values if value is not None]
        if values:
            total = number(math.fsum(values))
            lines.append(f"- {escape(row.label)}: avg {estimate(cell.mean, cell.std)} s, total {total} s\n")
    return "".join(lines)
