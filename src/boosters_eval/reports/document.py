"""What a program tells, laid out as blocks: the only thing that renderings know.

Blocks hold plain text and numbers, no markup. A program fills a document from its findings; the terminal, Markdown,
LaTeX and the page are made from the document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Literal, NamedTuple

from boosters_eval.core.text import group_digits
from boosters_eval.reports.numbers import MISSING, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from boosters_eval.reports.html.svg import Figure
    from boosters_eval.reports.tables import ReportTable

_ANCHOR = re.compile("[a-z][a-z0-9-]*")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A number at the top of the page."""

    label: str
    value: str
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class MarkedCell:
    """A cell of a table that is more than its text."""

    text: str
    kind: str = ""  # a word that a style sheet colors: "better", "worse", "pass", "fail", "warn"
    value: float | None = None  # what the cell is sorted by
    title: str = ""  # what a pointer reads


PlainCell = str | int | float | None | MarkedCell


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text whose lines and spaces are kept."""

    text: str
    language: str = "text"


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table. Numbers are sorted by value, digits of whole numbers are grouped, and None is a dash."""

    name: str  # for screen readers
    headings: tuple[str, ...]
    rows: tuple[tuple[PlainCell, ...], ...]
    keys: int = 1  # columns that name a row
    measured: bool = False  # whether it holds measurements; other tables have settings and long texts
    facts: bool = False  # whether rows are names and values, which need no headings on a terminal

    @classmethod
    def of_facts(cls, name: str, facts: Mapping[str, PlainCell]) -> PlainTable:
        """What is known, a row each; what is empty is left out."""
        rows = tuple((label, value) for label, value in facts.items() if value not in (None, ""))
        return cls(name, ("Property", "Value"), rows, facts=True)


@dataclass(frozen=True, slots=True)
class ListItem:
    """A line of a list; `mark` is a word in it to be emphasized."""

    text: str
    mark: str = ""
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of lines."""

    items: tuple[ListItem, ...]

    @classmethod
    def of(cls, *lines: str) -> Listing:
        """Lines without a mark."""
        return cls(tuple(map(ListItem, lines)))


@dataclass(frozen=True, slots=True)
class Notes:
    """What a reader should know besides; a terminal shows as many as fit."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Charts:
    """Drawings, made only where they can be shown: on the page, in a notebook and as files."""

    draw: Callable[[], Sequence[Figure]]


@dataclass(frozen=True, slots=True)
class Results:
    """A table of measurements with its answer, its notes and its charts."""

    table: ReportTable
    charts: Charts | None = None
    more: Charts | None = None  # folded
    more_title: str = ""


@dataclass(frozen=True, slots=True)
class MatrixStatus:
    """A word that cells of a matrix have in common, by which a reader filters them."""

    word: str
    meaning: str
    tone: str  # a color of the style sheet: exact, near, edge, habit, chance, apart, none, lost
    mark: str = ""  # the sign of a cell without a result
    n: int = 0  # cells that have it


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A cell, and what is told of it where a reader opens it."""

    status: str
    shown: str
    aside: str = ""
    warning: str = ""
    sentence: str = ""
    output: str = ""  # what a program said
    facts: tuple[tuple[str, Pairs], ...] = ()  # by heading
    command: tuple[str, ...] = ()  # in parts that many cells share
    samples: tuple[float, ...] = ()  # the first is the warm start
    level: float | None = None  # what was made of the samples

    @property
    def text(self) -> str:
        """All that is seen of it, in one line."""
        warning = f" ({self.warning})" if self.warning else ""
        return f"{self.status}{warning} {self.shown}{f', {self.aside}' if self.aside else ''}"


@dataclass(frozen=True, slots=True)
class MatrixGroup:
    """One side of a matrix: it has a cell for each item and each combination of choices, in this order."""

    name: str
    items: tuple[str, ...]
    choices: tuple[tuple[str, tuple[str, ...]], ...]  # a label, and the options of which one is drawn at a time
    cells: Iterable[MatrixCell]
    about: str = ""
    reference: str = ""  # the item whose samples are drawn beside those of the others


@dataclass(frozen=True, slots=True)
class Matrix:
    """More cells than a table can hold, each with a status: the page's script draws groups by items."""

    nouns: tuple[str, str]  # what a group and an item are
    statuses: tuple[MatrixStatus, ...]
    absent: str  # the status of a combination that a group does not have
    groups: Callable[[], Iterable[MatrixGroup]]
    shared: tuple[tuple[int, ...], ...]  # the groups that share a matrix, by number
    samples: str  # what the samples are, as the title of their axis
    search: str  # the label of the search field

    def cards(self) -> Iterator[Card]:
        """The same where no script runs: a table per group."""
        marks = {status.word: status.mark for status in self.statuses}
        for group in self.groups():
            columns = [", ".join(chosen) for chosen in product(*(options for _, options in group.choices))]
            shown = (marks[cell.status] or cell.text for cell in group.cells)
            rows = tuple((item, *islice(shown, len(columns))) for item in group.items)
            table = PlainTable(group.name, (self.nouns[1].capitalize(), *columns), rows)
            about = (Paragraph(f"{group.about[0].upper()}{group.about[1:]}."),) if group.about else ()
            yield Card(group.name, (*about, table))


@dataclass(frozen=True, slots=True)
class Details:
    """Details for some readers: folded on the page, and in Markdown if long."""

    title: str
    blocks: tuple[Block, ...]
    aside: str = ""  # next to the title of a fold
    long: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """Blocks that belong together under a title."""

    title: str
    blocks: tuple[Block, ...]
    aside: str = ""  # next to the title
    words: str = ""  # what else a search finds it by


@dataclass(frozen=True, slots=True)
class Group:
    """Cards, tables of results or other blocks under a common heading."""

    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Code | PlainTable | Listing | Notes | Charts | Results | Matrix | Details | Card | Group


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a document."""

    anchor: str  # its address on the page: lower-case letters, digits, dashes
    title: str  # empty: no heading in text
    blocks: tuple[Block, ...]
    short: str = ""  # on the page and in its navigation; if empty, the title is used
    search: str = ""  # the label of a field that filters rows or cards; if empty, there is no such field
    only: Literal["", "page", "text"] = ""  # where the section is, if not everywhere
    detail: bool = False  # whether a terminal leaves it out unless everything is wanted
    preface: bool = False  # whether it precedes the results in Markdown, as RFC-0015 has it


@dataclass(frozen=True, slots=True)
class Document:
    """Everything a program tells about one question."""

    title: str  # empty: a part of something else
    answer: tuple[str, ...] = ()  # the decision, the most important first; what is indented belongs to the line before
    lead: str = ""  # below the title of the page
    facts: tuple[Fact, ...] = ()
    leaderboard: PlainTable | None = None  # how the competitors stand, below the answer
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        """An anchor is an address: there is one of each."""
        anchors = ["summary", "theme", *(section.anchor for section in self.shown("page"))]
        for anchor in anchors:
            if anchors.count(anchor) > 1 or not _ANCHOR.fullmatch(anchor):
                raise ValueError(f"A section needs an anchor of its own in lower case. Got '{anchor}' instead.")

    def shown(self, where: Literal["page", "text"]) -> Iterator[Section]:
        """The sections for the page, or for text, that are not empty."""
        return (section for section in self.sections if section.blocks and section.only in ("", where))

    def blocks(self) -> Iterator[Block]:
        return (block for section in self.sections for block in walk(section.blocks))

    def tables(self) -> list[ReportTable]:
        return [block.table for block in self.blocks() if isinstance(block, Results)]

    def figures(self) -> list[Figure]:
        return [figure for block in self.blocks() if isinstance(block, Charts) for figure in block.draw()]


class AnswerLine(NamedTuple):
    """A line of an answer: what it tells, the text, and a command at its end."""

    label: str
    text: str
    command: str


_LABEL = re.compile(r"(?:Which(?:, on [^:]+)?|By data set|Worth it(?:, on [^:]+)?|How sure|But|Cost|Pin|Next): ")


def split_line(line: str) -> AnswerLine:
    """A line in its parts; only what is to be run next, or written as a pin, is code."""
    found = _LABEL.match(line)
    label = found[0] if found else ""
    text = line.removeprefix(label)
    if label == "Pin: " and " " not in text:
        return AnswerLine(label, "", text)
    if label != "Next: ":
        return AnswerLine(label, text, "")
    why, begun, command = text.partition("boosters-eval ")
    return AnswerLine(label, why, begun + command)


def walk(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks and what is inside them, from top to bottom."""
    for block in blocks:
        yield block
        match block:
            case Details() | Card() | Group():
                yield from walk(block.blocks)
            case Results():
                yield from (part for part in (block.charts, block.more) if part is not None)


def show_cell(cell: PlainCell) -> str:
    if isinstance(cell, MarkedCell):
        return cell.text
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    return group_digits(cell) if isinstance(cell, int) else number(cell)
