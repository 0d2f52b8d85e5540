"""How a table fits a terminal: nothing is ever cut.

What does not fit beside each other goes below each other: first headings and long texts are broken into lines, then
columns move to further tables that repeat the names of the rows, and on a narrow terminal the cells are stacked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.text import Text

from boosters_eval.core.text import clean_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console


NARROWEST = 40  # columns; a narrower terminal is treated as this wide
STACKED_BELOW = 72  # columns of a terminal on which a table that does not fit is stacked
_NAME, _TEXT = 30, 20  # the widths down to which a column of names and one of other texts may be narrowed
_INDENT = "  "
_SPACE = re.compile(r"(?<!--seeds)(?<!--cv) (?![↑↓%]|(?:s|MB)\b)")  # what is one thing to a reader stays on one line
_AFTER = re.compile(r"(?<=[/_\-.:,;=@+])(?=[^/_\-.:,;=@+])")  # where a long word is broken, if it can be


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one style of Rich."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to be laid out."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Span, ...], ...]
    keys: int = 1  # leading columns that name a row, and are repeated where columns move to another table
    facts: int = 0  # columns after the keys that tell more of a row, once
    whole: bool = False  # all other cells are values to be compared: none is broken into lines
    framed: bool = False
    right: frozenset[int] = frozenset()  # columns that are aligned to the right
    rules: frozenset[int] = frozenset()  # rows above which a line is drawn
    kinds: frozenset[int] = frozenset()  # columns that begin a kind of their own, and so, if need be, a further table


def lay_out(grid: Grid, width: int | None = None) -> list[Text]:
    """The lines of a table, none longer than `width`; without a width, one line per row.

    Names come from files of others, so whatever a terminal would obey is replaced here, for every table.
    """
    if not grid.headings:
        return []
    rows = tuple(tuple(Span(clean_lines(span.text), span.style) for span in row) for row in grid.rows)
    grid = replace(grid, headings=tuple(map(clean_lines, grid.headings)), rows=rows)
    room = _Room.of(grid)
    if width is None:
        return list(_table(grid, range(len(grid.headings)), room.natural))
    width = max(width, NARROWEST)
    tables = _tables(room, width)
    if tables is None:
        return list(stack(grid, width))
    out: list[Text] = []
    for columns, widths in tables:
        out += [Text()] if out else []
        out += _table(grid, columns, widths)
    return out


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most this width, broken at spaces; a word that is longer still, behind a sign or else anywhere."""
    return [line for part in text.splitlines() or [""] for line in _wrapped_line(part, width)]


def wrapped_with_indent(text: str, width: int) -> list[str]:
    """The same for a line that may be indented or labeled: its further lines begin below its text."""
    if cell_len(text) <= width:
        return [text]
    label = re.match(r"\s*(?:\S+(?: \S+)*\s{2,})?", text)
    start = label[0] if label and cell_len(label[0]) <= width // 2 else ""
    hanging = " " * max(cell_len(start), len(_INDENT))
    first, *rest = wrapped(text[len(start) :], width - len(hanging))
    return [f"{start}{first}", *(f"{hanging}{line}" for line in rest)]


def _wrapped_line(text: str, width: int) -> Iterator[str]:
    if cell_len(text) <= width:
        yield text
        return
    line = ""
    for word in _SPACE.split(text):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line = ""
        elif line:
            word = f"{line} {word}"  # noqa: PLW2901 (the line so far is what the word is added to)
        *full, line = _pieces(word, width)
        yield from full
    if line:
        yield line


def _pieces(word: str, width: int) -> list[str]:
    if cell_len(word) <= width:
        return [word]
    out = [""]
    for part in _AFTER.split(word):
        if cell_len(out[-1]) + cell_len(part) <= width:
            out[-1] += part
        else:
            out += [*chop_cells(part, width)]
    return [piece for piece in out if piece]


def _widest(texts: Sequence[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.splitlines()), default=0)


@dataclass(frozen=True, slots=True)
class _Room:
    """What the columns of a grid take: each is measured once."""

    least: tuple[int, ...]  # below which a column must not be narrowed
    natural: tuple[int, ...]
    keys: int
    framed: bool
    kinds: frozenset[int]

    @classmethod
    def of(cls, grid: Grid) -> _Room:
        cells = [_widest([row[column].text for row in grid.rows]) for column in range(len(grid.headings))]
        words = [_widest(_SPACE.split(heading)) for heading in grid.headings]
        natural = [max(cell, cell_len(heading), 1) for cell, heading in zip(cells, grid.headings, strict=True)]
        least = [max(cell, word, 1) for cell, word in zip(cells, words, strict=True)]
        for column in range(grid.keys + grid.facts if grid.whole else len(least)):
            least[column] = min(least[column], _NAME if column < grid.keys + grid.facts else _TEXT)
        return cls(tuple(least), tuple(natural), grid.keys, grid.framed, grid.kinds)

    def fitted(self, columns: Sequence[int], width: int) -> list[int] | None:
        """The widths of columns that fit beside each other, or None. Those that lack least are widened first."""
        between = 3 * len(columns) + 1 if self.framed else 2 * (len(columns) - 1)
        widths = {column: self.least[column] for column in columns}
        left = width - between - sum(widths.values())
        if left < 0:
            return None
        for column in sorted(columns, key=lambda column: self.natural[column] - widths[column]):
            more = max(0, min(self.natural[column] - widths[column], left))
            widths[column] += more
            left -= more
        return [widths[column] for column in columns]

    def whole_kinds(self, parts: Sequence[Sequence[int]]) -> bool:
        return all(part[self.keys] in self.kinds for part in parts[1:])

    def parts(self, width: int) -> list[list[int]] | None:
        """Columns in groups that fit, each with the keys, or None if some column does not fit beside them."""
        keys = list(range(self.keys))
        found = [keys]
        for column in range(self.keys, len(self.least)):
            if len(found[-1]) > len(keys) and self.fitted([*found[-1], column], width) is None:
                found.append(keys)
            found[-1] = [*found[-1], column]
            if self.fitted(found[-1], width) is None:
                return None
        return found


def _tables(room: _Room, width: int) -> list[tuple[list[int], list[int]]] | None:
    """The columns of each table with their widths, or None if they must be stacked."""
    parts = room.parts(width)
    if parts is None or (len(parts) > 1 and width < STACKED_BELOW):
        return None
    for narrower in range(width - 1, 0, -1):  # as few tables as possible, of whole kinds or else about equally wide
        even = room.parts(narrower) if len(parts) > 1 else None
        if even is None or len(even) > len(parts):
            break
        if room.whole_kinds(even) or not room.whole_kinds(parts):
            parts = even
    return [(columns, room.fitted(columns, width) or []) for columns in parts]


def _table(grid: Grid, columns: Sequence[int], widths: Sequence[int]) -> Iterator[Text]:
    dashes = ["─" * width for width in widths]
    top, rule, bottom = (
        Text(f"{left}─{f'─{cross}─'.join(dashes)}─{right}") for left, cross, right in ("┌┬┐", "├┼┤", "└┴┘")
    )
    if grid.framed:
        yield top
    else:
        rule = Text("──".join(dashes))
    yield from _row(grid, [Span(grid.headings[column], "bold") for column in columns], columns, widths)
    yield rule
    for position, row in enumerate(grid.rows):
        if position in grid.rules:
            yield rule
        yield from _row(grid, [row[column] for column in columns], columns, widths)
    if grid.framed:
        yield bottom


def _row(grid: Grid, spans: Sequence[Span], columns: Sequence[int], widths: Sequence[int]) -> Iterator[Text]:
    lines = [wrapped(span.text, width) for span, width in zip(spans, widths, strict=True)]
    start, between, end = ("│ ", " │ ", " │") if grid.framed else ("", "  ", "")
    for number in range(max(map(len, lines))):
        text = Text(start)
        for position, (span, width, found) in enumerate(zip(spans, widths, lines, strict=True)):
            shown = found[number] if number < len(found) else ""
            space = " " * (width - cell_len(shown))
            text.append(between if position else "")
            text.append(space if columns[position] in grid.right else "")
            text.append(shown, span.style)
            text.append("" if columns[position] in grid.right else space)
        text.append(end)
        if not grid.framed:
            text.rstrip()
        yield text


def stack(grid: Grid, width: int) -> Iterator[Text]:
    """One block per column of values that are to be compared, and one per row of anything else."""
    names = [", ".join(span.text for span in row[: grid.keys] if span.text) for row in grid.rows]
    values = range(grid.keys, len(grid.headings))
    headings = [grid.headings[column] for column in values]
    if grid.whole:
        blocks = [(grid.headings[c], names, [row[c] for row in grid.rows]) for c in values]
    else:
        blocks = [(name, headings, [row[c] for c in values]) for name, row in zip(names, grid.rows, strict=True)]
    for title, labels, spans in blocks:
        for line in wrapped(title, width):
            yield Text(line, style="bold")
        aligned = max(map(cell_len, labels), default=0)
        for label, span in zip(labels, spans, strict=True):
            if not span.text:
                continue
            yield from _labeled(label, span, aligned, width, whole=grid.whole)


def _labeled(label: str, span: Span, aligned: int, width: int, *, whole: bool) -> Iterator[Text]:
    """A label and its value on one line if there is room for both, and otherwise below each other."""
    start = f"{_INDENT}{label}{' ' * (aligned - cell_len(label))}{_INDENT}"
    room, widest = width - cell_len(start), _widest([span.text])
    if room >= (widest if whole else min(widest, _TEXT)):
        for line in wrapped(span.text, max(room, 1)):
            yield Text.assemble(start, (line, span.style))
            start = " " * cell_len(start)
        return
    for line in wrapped(label, width - len(_INDENT)):
        yield Text(f"{_INDENT}{line}")
    for line in wrapped(span.text, width - 2 * len(_INDENT)):
        yield Text.assemble(2 * _INDENT, (line, span.style))


def print_grid(grid: Grid, console: Console) -> None:
    print_lines(console, [lay_out(grid, width_of(console))])


def width_of(console: Console) -> int | None:
    """The width to keep to; outside a terminal there is none."""
    return max(console.width, NARROWEST) if console.is_terminal else None


def print_lines(console: Console, blocks: Iterable[Iterable[Text]]) -> None:
    """Lines that are fitted already: Rich must neither wrap nor crop them."""
    for block in blocks:
        for line in block:
            console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
