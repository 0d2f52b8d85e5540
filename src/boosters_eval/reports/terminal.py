"""Reports on a terminal: the answers first, then the tables, then as many notes as fit a screen."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.text import Text

from boosters_eval.core.text import count_of
from boosters_eval.reports.document import Code, Details, Listing, Paragraph, PlainTable
from boosters_eval.reports.full_markdown import (
    RANK_PAIRS,
    plain_text,
    rank_pairs,
    rank_rows,
    verdict_headings,
    verdict_rows,
)
from boosters_eval.reports.grid import print_grid, print_lines, width_of
from boosters_eval.reports.layout import Grid, Span, lay_out, wrapped_with_indent
from boosters_eval.reports.model import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from boosters_eval.reports.document import Block, ReportDocument
    from boosters_eval.reports.model import CellStatus, ReportTable, Row, TableCell

NOTE_LINES = 16  # for the notes of a whole report, which leaves a third of a small screen for the tables
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


def print_report(report: Report, console: Console, *, every_note: bool = True, how: str = "-v") -> None:
    """Print answers, tables and notes; without `every_note`, those that fit, and `how` to see the others.

    On a terminal everything fits its width, and nothing is cut; elsewhere lines are as long as they must be.
    """
    width = width_of(console)
    tables = report.tables
    shown = _chosen([report.notes, *(table.notes for table in tables)], width, every=every_note)
    if len(tables) > 1 and any(table.answer for table in tables):
        print_lines(console, (_sentence(f"{t.name}: {t.answer}", width) for t in tables if t.answer))
        console.print()
    for table, notes in zip(tables, shown[1:], strict=True):
        print_lines(console, [_sentence(table.title, width, "bold")])
        if len(tables) == 1 and table.answer:
            print_lines(console, [_sentence(table.answer, width)])
        print_lines(console, [lay_out(_grid(table, styled=_styled(console)), width)])
        print_lines(console, (_sentence(f"Note: {note}", width, "dim") for note in notes))
        console.print()
    print_lines(console, (_sentence(f"Note: {note}", width, "dim") for note in shown[0]))
    hidden = sum(len(table.notes) for table in tables) + len(report.notes) - sum(map(len, shown))
    if hidden:
        text = f"{count_of(hidden, 'more note')} with {how}"
        print_lines(console, [_sentence(text, width, "dim")])


def print_document(document: ReportDocument, console: Console) -> None:
    """Print all that the Markdown file has, but the answers and tables first."""
    print_lines(console, [_sentence(document.title, width_of(console), "bold")])
    console.print()
    print_report(Report(document.tables, document.notes), console)
    for ranking in document.rankings:
        _print_table(console, ranking.title, (ranking.heading, "Rank"), rank_rows(ranking))
        _print_table(console, "", RANK_PAIRS, rank_pairs(ranking), keys=2)
        print_lines(console, (_sentence(note, width_of(console)) for note in ranking.notes))
    _print_table(console, "Statistical tests", verdict_headings(document), verdict_rows(document), keys=4)
    for section in document.sections:
        console.print()
        print_lines(console, [_sentence(section.title, width_of(console), "bold")])
        for block in section.blocks:
            _print_block(console, block)
    _print_table(console, "Configuration", ("Property", "Value"), document.configuration)
    _print_table(console, "Environment", ("Property", "Value"), document.environment)
    if document.reproduce:
        console.print()
        print_lines(console, [[Text("Reproducing", style="bold")], map(Text, document.reproduce)])


def _print_block(console: Console, block: Block | Details) -> None:
    width = width_of(console)
    match block:
        case Paragraph():
            print_lines(console, [_sentence(block.text, width)])
        case Code():
            print_lines(console, [map(Text, block.text.splitlines())])
        case PlainTable():
            _print_table(console, "", block.headings, [[plain_text(cell) for cell in row] for row in block.rows])
        case Listing():
            print_lines(console, (_sentence(f"- {i.text}{i.mark}{i.rest}", width) for i in block.items))
        case Details():
            print_lines(console, [_sentence(block.title, width, "bold")])
            for part in block.blocks:
                _print_block(console, part)


def _print_table(
    console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int = 1
) -> None:
    if rows:
        console.print()
        print_lines(console, [_sentence(title, width_of(console), "bold")] if title else [])
        cells = tuple(tuple(map(Span, row)) for row in rows)
        print_grid(Grid(tuple(headings), cells, keys=keys), console)


def _styled(console: Console) -> bool:
    """Whether bold and colors are seen: a dumb terminal has neither."""
    return console.is_terminal and console.color_system is not None


def _sentence(text: str, width: int | None, style: str = "") -> list[Text]:
    """Text is inserted as such, so that no name is read as markup."""
    lines = [text] if width is None else wrapped_with_indent(text, width)
    return [Text(line, style=style) for line in lines]


def _chosen(groups: Sequence[Sequence[str]], width: int | None, *, every: bool) -> list[list[str]]:
    """The notes to show of each group: the first one of every group, then the second ones, while there is room."""
    if every or width is None:
        return [list(notes) for notes in groups]
    shown: list[list[str]] = [[] for _ in groups]
    left = NOTE_LINES
    for place in range(max(map(len, groups), default=0)):
        for notes, chosen in zip(groups, shown, strict=True):
            if place < len(notes):
                left -= len(wrapped_with_indent(f"Note: {notes[place]}", width))
                if left < 0:
                    return shown
                chosen.append(notes[place])
    return shown


def _grid(table: ReportTable, *, styled: bool) -> Grid:
    rows = [_spans(table, row, styled=styled) for row in table.rows]
    rows += [tuple(Span(span.text, "dim") for span in _spans(table, row, styled=styled)) for row in table.trivial]
    first = len(table.row_names) + len(table.row_facts)
    return Grid(
        headings=table.headings,
        rows=tuple(rows),
        keys=first,
        whole=True,
        framed=True,
        right=frozenset({len(table.headings) - 1}) if table.counted else frozenset(),
        rules=frozenset({len(table.rows)}) if table.trivial else frozenset(),
        kinds=frozenset(
            first + place + 1
            for place, (before, column) in enumerate(pairwise(table.columns))
            if column.kind != before.kind
        ),
    )


def _spans(table: ReportTable, row: Row, *, styled: bool) -> tuple[Span, ...]:
    first, last = map(Span, table.beginning(row)), [Span(row.count)] if table.counted else []
    return (*first, *(_span(cell, styled=styled) for cell in row.cells), *last)


def _span(cell: TableCell, *, styled: bool) -> Span:
    """Bold and colored if the terminal supports it, otherwise with asterisks. The status is always shown as a word."""
    if cell.best and not styled:
        return Span(f"**{cell.shown}**")
    return Span(cell.shown, "bold green" if cell.best else _STYLES[cell.status])
