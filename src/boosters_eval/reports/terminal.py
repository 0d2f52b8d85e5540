"""The tables on a terminal, through Rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from boosters_eval.reports.model import Cell, Report, Table


def print_report(report: Report, console: Console) -> None:
    """Every table with its notes. Names are put in as Text, so that no name is read as markup."""
    for table in report.tables:
        console.print(Text(table.title, style="bold"))
        console.print(_grid(table, styled=console.is_terminal))
        for note in table.notes:
            console.print(Text(f"Note: {note}", style="dim"))
        console.print()
    for note in report.notes:
        console.print(Text(f"Note: {note}", style="dim"))


def _grid(table: Table, *, styled: bool) -> RichTable:
    grid = RichTable(box=box.SQUARE, header_style="bold")
    grid.add_column("Library", no_wrap=True)
    if table.has_variants:
        grid.add_column("Variant", no_wrap=True)
    for column in table.columns:
        grid.add_column(Text(column.heading), no_wrap=True)
    grid.add_column("n", justify="right")
    for row in table.rows:
        names = [Text(row.library)] + ([Text(row.variant or "")] if table.has_variants else [])
        n = Text(f"{row.n} ({row.failed} failed)" if row.failed else str(row.n))
        grid.add_row(*names, *(_text(cell, styled=styled) for cell in row.cells), n)
    return grid


def _text(cell: Cell, *, styled: bool) -> Text:
    """Bold where the terminal has it, asterisks where it has not."""
    if not cell.best:
        return Text(cell.text)
    return Text(cell.text, style="bold green") if styled else Text(f"**{cell.text}**")
