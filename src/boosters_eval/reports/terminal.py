"""The tables on a terminal, through Rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from boosters_eval.reports.model import CellStatus, Report, ReportTable, Row, TableCell

_STYLES: dict[CellStatus, str] = {
    "ok": "",
    "pass": "green",
    "warn": "yellow",
    "fail": "bold red",
    "error": "bold red",
    "missing": "red",
    "skipped": "dim",
    "unsupported": "dim",
    "unavailable": "yellow",
}


def print_report(report: Report, console: Console) -> None:
    """Print every table with its notes. Names are inserted as Text, so that none is read as markup."""
    for table in report.tables:
        console.print(Text(table.title, style="bold"))
        console.print(_grid(table, styled=console.is_terminal))
        for note in table.notes:
            console.print(Text(f"Note: {note}", style="dim"))
        console.print()
    for note in report.notes:
        console.print(Text(f"Note: {note}", style="dim"))


def _grid(table: ReportTable, *, styled: bool) -> RichTable:
    grid = RichTable(box=box.SQUARE, header_style="bold")
    for heading in (*table.row_names, *(column.heading for column in table.columns)):
        grid.add_column(Text(heading), no_wrap=True)
    if table.counted:
        grid.add_column("n", justify="right")
    for row in table.rows:
        grid.add_row(*_texts(row, styled=styled), *([Text(row.count)] if table.counted else []))
    if table.trivial:
        grid.add_section()
    for row in table.trivial:
        cells = [*_texts(row, styled=styled), *([Text(row.count)] if table.counted else [])]
        grid.add_row(*cells, style="dim")
    return grid


def _texts(row: Row, *, styled: bool) -> list[Text]:
    return [*map(Text, row.names), *(_text(cell, styled=styled) for cell in row.cells)]


def _text(cell: TableCell, *, styled: bool) -> Text:
    """Bold and coloured if the terminal supports it, otherwise with asterisks. The status is always shown as a word."""
    if cell.best and not styled:
        return Text(f"**{cell.shown}**")
    return Text(cell.shown, style="bold green" if cell.best else _STYLES[cell.status])
