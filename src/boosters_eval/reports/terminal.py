"""Documents on a terminal: the answers first, then the tables, then as many notes as fit a screen."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from boosters_eval.core.text import clean, clean_lines, count_of
from boosters_eval.reports import document as doc
from boosters_eval.reports.layout import Grid, Span, lay_out, print_grid, print_lines, width_of, wrapped_with_indent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from boosters_eval.reports.document import Block, Document, PlainCell
    from boosters_eval.reports.tables import ReportTable, Row, TableCell

NOTE_LINES = 16  # for the notes of a whole document, which leaves a third of a small screen for the tables
_STYLES: dict[str, str] = {
    "ok": "",
    "pass": "green",
    "warn": "yellow",
    "fail": "bold red",
    "error": "bold red",
    "missing": "red",
    "skipped": "dim",
    "unsupported": "dim",
    "unavailable": "yellow",
    "better": "green",
    "worse": "bold red",
}


def print_document(
    document: Document, console: Console, *, whole: bool = True, every_note: bool = True, how: str = "-v"
) -> None:
    """Print a document; unless `whole` without its details, and with as many notes as fit and `how` to see the others.

    On a terminal everything fits its width, and nothing is cut; elsewhere lines are as long as they must be.
    """
    sections = [section for section in document.shown("text") if whole or not section.detail]
    _Printer(replace(document, sections=tuple(sections)), console, every_note=every_note).print(how)


class _Printer:
    """A document on its way to a console."""

    def __init__(self, document: Document, console: Console, *, every_note: bool) -> None:
        self.document, self.console = document, console
        self.width = width_of(console)
        self.tidy = clean_lines if console.is_terminal else _one_line  # in a pipe, a row is one line
        self.styled = console.is_terminal and console.color_system is not None  # a dumb terminal shows neither
        self.tables = document.tables()
        notes = [block.texts for block in document.blocks() if isinstance(block, doc.Notes)]
        notes += [table.notes for table in self.tables]
        shown = _choose(notes, self.width, every=every_note)
        self.notes = {id(given): chosen for given, chosen in zip(notes, shown, strict=True)}
        self.hidden = sum(map(len, notes)) - sum(map(len, shown))
        self.spaced = True  # whether the last line is empty

    def print(self, how: str) -> None:
        self._head()
        for section in self.document.sections:
            if section.title and not all(isinstance(block, doc.Notes) for block in section.blocks):
                self._space()
                self._lines([section.title], "bold")
            for block in section.blocks:
                self._block(block)
        if self.hidden:
            self._lines([f"{count_of(self.hidden, 'more note')} with {how}"], "dim")

    def _head(self) -> None:
        """The answer; where there is none and there are several tables, the answers of these."""
        if self.document.title:
            self._lines([self.document.title], "bold")
            if not any(doc.split_line(line).label for line in self.document.answer):
                self._space()
        self._answer(self.document.answer or [f"{one.name}: {' '.join(one.answer)}" for one in self._listed()])
        if self.document.leaderboard or self.document.sections:
            self._space()
        if board := self.document.leaderboard:
            self._lines([board.name], "bold")
            self._table(board)

    def _listed(self) -> list[ReportTable]:
        several = len(self.tables) > 1 and not self.document.answer
        return [table for table in self.tables if table.answer] if several else []

    def _block(self, block: Block) -> None:  # noqa: C901 (one case per block)
        match block:
            case doc.Paragraph():
                self._lines([block.text])
            case doc.Code():
                print_lines(self.console, [map(Text, clean_lines(block.text).splitlines())])
                self.spaced = False
            case doc.PlainTable():
                self._table(block)
            case doc.Listing():
                self._lines(f"- {item.text}{item.mark}{item.rest}" for item in block.items)
            case doc.Notes():
                self._lines((f"Note: {note}" for note in self.notes[id(block.texts)]), "dim")
            case doc.Results():
                self._results(block.table)
            case doc.Details() | doc.Card() | doc.Group():
                self._lines([block.title] if block.title else [], "bold")
                for part in block.blocks:
                    self._block(part)
            case doc.Matrix():
                for part in block.cards():
                    self._block(part)
            case doc.Charts():
                pass

    def _results(self, table: ReportTable) -> None:
        self._space()
        self._lines([table.title], "bold")
        if table not in self._listed() and not set(table.answer) <= set(self.document.answer):
            self._answer(table.answer)
        print_lines(self.console, [lay_out(_grid(table, styled=self.styled), self.width)])
        self.spaced = False
        self._lines((f"Note: {note}" for note in self.notes[id(table.notes)]), "dim")
        self._space()

    def _answer(self, lines: Iterable[str]) -> None:
        """Each line with its label; a command that does not fit is broken so that it can still be pasted."""
        for label, text, command in map(doc.split_line, map(self.tidy, lines)):
            whole = f"{label}{text}{command}"
            if self.width is None or cell_len(whole) <= self.width:
                shown = [whole]
            else:
                shown = [*wrapped_with_indent(f"{label}{text}".rstrip(), self.width), *_break(command, self.width)]
            first = Text.assemble((label, "bold"), shown[0][len(label) :])
            print_lines(self.console, [[first, *map(Text, shown[1:])]])
            self.spaced = False

    def _table(self, table: doc.PlainTable) -> None:
        if table.facts:
            shown = [(doc.show_cell(name), doc.show_cell(value)) for name, value in table.rows]
            width = max((len(name) for name, _ in shown), default=0)
            self._lines(f"{name:<{width}}  {value}" for name, value in shown)
            self._space()
        elif table.rows:
            rows = tuple(tuple(self._mark(cell) for cell in row) for row in table.rows)
            print_grid(Grid(table.headings, rows, keys=table.keys), self.console)
            self.spaced = False
            self._space()

    def _mark(self, cell: PlainCell) -> Span:
        return Span(self.tidy(doc.show_cell(cell)), _STYLES.get(getattr(cell, "kind", ""), "") if self.styled else "")

    def _lines(self, texts: Iterable[str], style: str = "") -> None:
        """Text is inserted as such, so that no name is read as markup."""
        for text in map(self.tidy, texts):
            lines = [text] if self.width is None else wrapped_with_indent(text, self.width)
            print_lines(self.console, [[Text(line, style=style) for line in lines]])
            self.spaced = False

    def _space(self) -> None:
        """One empty line, never two."""
        if not self.spaced:
            self.console.print()
        self.spaced = True


def _choose(groups: Sequence[Sequence[str]], width: int | None, *, every: bool) -> list[list[str]]:
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
        keys=len(table.row_names),
        facts=len(table.row_facts),
        whole=True,
        framed=not table.plain,
        right=frozenset({len(table.headings) - 1}) if table.is_counted else frozenset(),
        rules=frozenset({len(table.rows)}) if table.trivial and not table.plain else frozenset(),
        kinds=frozenset(
            first + place + 1
            for place, (before, column) in enumerate(pairwise(table.columns))
            if column.kind != before.kind
        ),
    )


def _spans(table: ReportTable, row: Row, *, styled: bool) -> tuple[Span, ...]:
    first, last = map(Span, table.beginning(row)), [Span(row.count)] if table.is_counted else []
    return (*first, *(_span(cell, styled=styled) for cell in row.cells), *last)


def _span(cell: TableCell, *, styled: bool) -> Span:
    """Bold and colored if the terminal supports it, otherwise with asterisks. The status is always shown as a word."""
    if cell.best and not styled:
        return Span(f"**{cell.shown}**")
    return Span(cell.shown, "bold green" if cell.best else _STYLES[cell.status])


def _break(command: str, width: int) -> Iterator[str]:
    """A command over several lines, as a shell takes it."""
    line = " "
    for word in (word if word == "&&" else shlex.quote(word) for word in shlex.split(command)):
        if line.strip() and cell_len(line) + cell_len(word) + 3 > width:
            yield f"{line} \\"
            line = "   "
        line += f" {word}"
    if line.strip():
        yield line


def _one_line(text: str) -> str:
    return clean(" ".join(text.split("\n")))
