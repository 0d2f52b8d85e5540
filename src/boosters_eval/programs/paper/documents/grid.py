"""A table as it stands in a document: rows of cells with their spans filled, and the text around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_COLUMNS = 1_000
MAX_ROWS = 20_000
MAX_CELLS = 50_000  # of one document; a long paper has a few thousand
MAX_TABLES = 1_000


@dataclass(frozen=True, slots=True)
class RawCell:
    """The text of a cell, TeX and scripts included, and how many columns and rows it takes."""

    text: str = ""
    emphasis: str = ""  # bold, underline or italic
    header: bool = False
    columns: int = 1
    rows: int = 1
    spread: bool = False  # it is here because a cell further left or above reaches here
    indent: int = 0  # how far its text is moved to the right, in any unit


_INDENT = re.compile(
    r"(?:&nbsp;|&emsp;|&ensp;|[\u00a0\u2002\u2003]|\\qquad|\\quad|\\;|\\,|\\ |~|\\hspace\*?\{[^}]*\}|\\hskip\S*"
    r"|└|├|─|↳|∟|[ \t])"
)


def measure_indent(source: str) -> int:
    """How many wide spaces a cell begins with; plain ones, which align the source, do not count."""
    count = position = 0
    while match := _INDENT.match(source, position):
        count += not match[0].isspace() or match[0] not in " \t"
        position = match.end()
    return count


@dataclass(frozen=True, slots=True)
class RawTable:
    """A table of a document. Every row has as many cells as the widest."""

    rows: tuple[tuple[RawCell, ...], ...]
    lines: tuple[int, ...]  # of the rows
    headers: int | None  # how many rows the document itself calls header; None: it does not say
    caption: str = ""  # its own: <caption>, \caption{}
    number: str = ""  # by which the document calls it: "4", "A.1"
    faults: tuple[Unread, ...] = ()

    @property
    def line(self) -> int:
        return self.lines[0] if self.lines else 0


class Unread(Model):
    """Something that was not read, or not entirely, and where it is."""

    line: int
    row: str = ""
    column: str = ""
    text: str = ""
    why: str

    def __str__(self) -> str:
        row = f", row '{self.row}'" if self.row else ""
        column = f", column '{self.column}'" if self.column else ""
        return f"line {self.line}{row}{column}: {f'{self.text!r}: ' if self.text else ''}{self.why}"


@dataclass(frozen=True, slots=True)
class RawHeading:
    text: str
    level: int
    line: int


@dataclass(frozen=True, slots=True)
class RawParagraph:
    text: str
    line: int


RawBlock = RawHeading | RawParagraph | RawTable


@dataclass(slots=True)
class Budget:
    """How much of a document may still be read, so that no document takes all memory."""

    cells: int = MAX_CELLS
    nodes: int = 1_000_000  # of HTML, counted as often as they are looked at
    tables: int = MAX_TABLES
    faults: list[Unread] = field(default_factory=list)

    def take(self, count: int, line: int) -> bool:
        """Whether a table of so many cells may be read."""
        self.tables -= 1
        if self.tables < 0:
            if self.tables == -1:
                self.faults.append(Unread(line=line, why=f"more than {MAX_TABLES} tables: the rest is not read"))
            return False
        if count > self.cells:
            self.faults.append(Unread(line=line, why=f"a table of {count} cells: a document may have {MAX_CELLS}"))
            return False
        self.cells -= count
        return True


def make_table(
    rows: Sequence[Sequence[RawCell]],
    lines: Sequence[int],
    budget: Budget,
    *,
    headers: int | None,
    caption: str = "",
    faults: Sequence[Unread] = (),
) -> RawTable | None:
    """A table with every span written out and all rows of one width, or None for one beyond the limits."""
    line = lines[0] if lines else 0
    width = max((sum(cell.columns for cell in row) for row in rows), default=0)
    tall = max((cell.rows for row in rows for cell in row), default=1)
    if width > MAX_COLUMNS or len(rows) > MAX_ROWS or tall > MAX_ROWS:
        what = f"a table of {len(rows)} rows and {width} columns: at most {MAX_ROWS} and {MAX_COLUMNS} are read"
        budget.faults.append(Unread(line=line, why=what))
        return None
    if not width or not budget.take(width * len(rows), line):
        return None
    grid = _spread_cells(rows)
    width = min(max(map(len, grid)), MAX_COLUMNS)
    filled = tuple(tuple((row + [RawCell()] * width)[:width]) for row in grid)
    return RawTable(filled, tuple(lines), headers, caption, faults=tuple(faults))


def _spread_cells(rows: Sequence[Sequence[RawCell]]) -> list[list[RawCell]]:
    grid: list[list[RawCell]] = []
    reaching: dict[int, tuple[int, RawCell]] = {}  # by column: how many more rows, and what
    for row in rows:
        line: list[RawCell] = []
        given = list(reversed(row))
        while given or len(line) in reaching:
            left, above = reaching.pop(len(line), (0, RawCell()))
            if left:
                if left > 1:
                    reaching[len(line)] = (left - 1, above)
                line.append(above)
                continue
            if not given:
                break
            cell = given.pop()
            rest = replace(cell, spread=True)
            for offset in range(cell.columns):
                if cell.rows > 1:
                    reaching[len(line)] = (cell.rows - 1, rest)
                line.append(rest if offset else cell)
            if len(line) > 2 * MAX_COLUMNS:
                break
        grid.append(line)
    return grid
