"""How a table is laid out: its header, the columns that name its rows, its groups, and the parent of each row."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from boosters_eval.programs.paper import composites, labels, values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.paper.documents.grid import RawCell, RawTable
    from boosters_eval.programs.paper.request import Role

MAX_HEADERS = 5
ColumnKind = Literal["key", "condition", "value", "note"]
AxisKind = Literal["key", "level", "rest", "kind", "group"]
_NUMBERING = frozenset({"#", "no", "no.", "nr", "nr.", "id", "idx", "index", "rank"})
_CHILD = re.compile(r"(?:\+|–|−|—|-|•|·|↳|∟|└|├|w/o?(?=[\s.])|w/|with(?:out)?(?=\s))\s*\S")


@dataclass(frozen=True, slots=True)
class Axis:
    """One of the things that a value is known by: a naming column, a level of the header, the groups of rows.

    A level whose labels name two things, such as `XGBoost RMSE`, is two axes: `kind` is its metric, `rest` the other.
    """

    kind: AxisKind
    number: int
    name: str  # the header of a naming column
    labels: tuple[str, ...]  # by row for a key or the groups, by column for a level

    @property
    def is_of_rows(self) -> bool:
        return self.kind in {"key", "group"}

    @property
    def distinct(self) -> list[str]:
        return list(dict.fromkeys(text for text in self.labels if text))


@dataclass(frozen=True, slots=True)
class DataRow:
    """A row with all that it is known by. `title` is that of its group, `parents` the rows that it is a variant of."""

    line: int
    keys: tuple[labels.Label, ...]
    title: str
    parents: tuple[str, ...]
    cells: tuple[RawCell, ...]  # all, those of the naming columns included

    @property
    def name(self) -> str:
        return " ".join(filter(None, [self.title, *self.parents, *(key.name for key in self.keys)]))


@dataclass(slots=True)
class Layout:
    """A table taken apart. `why` says how the roles were chosen, `doubts` which of them are in doubt."""

    rows: list[DataRow]
    kinds: list[ColumnKind]  # by column
    headers: list[tuple[str, ...]]  # by level, for all columns
    names: list[str]  # the whole header of each column
    axes: list[Axis] = field(default_factory=list)
    roles: dict[int, Role] = field(default_factory=dict)  # by the place of the axis
    why: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    empty_groups: list[tuple[int, str]] = field(default_factory=list)

    def label(self, c: int) -> str:
        """What the lowest level of the header calls a column."""
        return labels.read_label(next((level[c] for level in reversed(self.headers) if level[c]), "")).name

    def columns(self, kind: ColumnKind) -> list[int]:
        return [c for c, each in enumerate(self.kinds) if each == kind]


def split_sections(table: RawTable) -> Iterator[RawTable]:
    """The parts of a table that have a header of their own."""
    first = _count_headers(table)
    starts = [0]
    for i in range(first + 1, len(table.rows)):
        if i > starts[-1] + 1 and _is_new_header(table.rows[i], table.rows[:first]):
            starts.append(i - 1 if i - 1 > starts[-1] + 1 and _is_title(table.rows[i - 1]) else i)
    for start, end in zip(starts, [*starts[1:], len(table.rows)], strict=True):
        rows, lines = list(table.rows[start:end]), list(table.lines[start:end])
        if start and _is_title(rows[0]):  # the title of a part stands above its header
            rows[0], rows[1], lines[0], lines[1] = rows[1], rows[0], lines[1], lines[0]
        yield replace(table, rows=tuple(rows), lines=tuple(lines), headers=1 if start else table.headers)


def _is_new_header(row: Sequence[RawCell], header: Sequence[Sequence[RawCell]]) -> bool:
    """Whether a row among the values names its columns anew: only words, of which the first or most are known."""
    first, *texts = _spell_row(row)
    told = [text for text in texts if text]
    if (
        len(set(told)) < 2
        or len(told) * 2 <= len(texts)
        or tuple(_spell_row(row)) in {_spell_row(one) for one in header}
    ):
        return False
    if any(values.looks_like_result(text) or values.read_cell(text).missing for text in told):
        return False
    known = sum(bool(labels.split_label(labels.read_label(text).name).kind) for text in told)
    return known * 2 > len(told) or bool(header and first and first == values.spell(header[0][0].text))


def lay_out(table: RawTable) -> Layout:
    """Take a table apart, without saying what its axes name."""
    first = _count_headers(table)
    header = [row for row in table.rows[:first] if any(_spell_row(row))]
    titles = {_spell_row(row) for row in header}  # a long table repeats them on every page
    header = _join_marks(header)
    below = zip(table.lines[first:], table.rows[first:], strict=True)
    body = [(line, row) for line, row in below if any(_spell_row(row)) and _spell_row(row) not in titles]
    headers = _read_levels(header, len(table.rows[0]) if table.rows else 0)
    names = (
        [" / ".join(dict.fromkeys(level[c] for level in headers if level[c])) for c in range(len(headers[0]))]
        if headers
        else []
    )
    names = names or ["" for _ in (table.rows[0] if table.rows else ())]
    found = Layout([], [], headers, names)
    found.kinds = _find_kinds(
        [row for _, row in body if not _is_title(row)], [found.label(c) for c in range(len(names))]
    )
    _fill_rows(found, body)
    found.axes = list(_find_axes(found))
    return found


def _spell_row(row: Sequence[RawCell]) -> tuple[str, ...]:
    return tuple(values.spell(cell.text) for cell in row)


def _count_headers(table: RawTable) -> int:
    """How many rows at the top are header.

    Those that the document marks, or the first one that says something; and those below it with texts but no number.
    """
    rows = table.rows
    count = table.headers or 0
    if not any(any(_spell_row(row)) for row in rows[:count]):
        while count < len(rows) and not any(_spell_row(rows[count])):
            count += 1
        first = rows[count] if count < len(rows) else ()
        numeric = (values.looks_like_result(cell.text) and not _is_counted(cell.text) for cell in first[1:])
        if first and (not values.spell(first[0].text) or not any(numeric)):
            count += 1
    while 0 < count < min(len(rows), MAX_HEADERS) and _continues(rows[count]):
        count += 1
    return min(count, len(rows))


def _is_counted(text: str) -> bool:
    """A number with its condition, as a header has it: 128 bins."""
    number, _, rest = values.spell(text).partition(" ")
    return number.isdecimal() and labels.find_condition(rest) is not None


def _continues(row: Sequence[RawCell]) -> bool:
    first, *texts = _spell_row(row)
    texts = [shown for shown in texts if shown]
    if not texts or _is_title(row) or (first and len(set(texts)) == 1):
        return False
    filled = [cell.text for cell in row[1:] if values.spell(cell.text)]
    if any(values.looks_like_result(raw) or not values.read_cell(raw).problem for raw in filled):
        return False
    return not first or not any(name for raw in filled for name, _ in composites.split_cell(raw))


def _join_marks(header: Sequence[tuple[RawCell, ...]]) -> list[tuple[RawCell, ...]]:
    """The rows of the header, with one that has only arrows and units joined to the row above it."""
    found: list[tuple[RawCell, ...]] = []
    for row in header:
        if found and all(_is_mark(shown) for shown in _spell_row(row) if shown):
            pairs = zip(found.pop(), row, strict=True)
            found.append(tuple(replace(cell, text=f"{cell.text} {mark.text}") for cell, mark in pairs))
        else:
            found.append(row)
    return found


def _is_mark(shown: str) -> bool:
    return not labels.read_label(shown).name or re.fullmatch(rf"[(\[]\s*(?:{values.UNIT})\s*[)\]]|%", shown) is not None


def _is_title(row: Sequence[RawCell]) -> bool:
    """A row that says one thing only, in words: the title of the rows below it."""
    texts = _spell_row(row)
    told = {text for text in texts if text}
    if len(told) != 1 or len(texts) < 2:
        return False
    text = told.pop()
    if values.read_cell(text).missing or not (texts[0] or not values.looks_like_result(text)):
        return False
    return set(texts) != {text} or not values.looks_like_result(text)


def _read_levels(header: Sequence[Sequence[RawCell]], width: int) -> list[tuple[str, ...]]:
    """The labels of the columns. In all levels but the last an empty cell belongs to the label on its left."""
    levels: list[tuple[str, ...]] = []
    for number, row in enumerate(header):
        shown = list(_spell_row(row))
        if number < len(header) - 1:
            for i in range(2, len(shown)):
                shown[i] = shown[i] or shown[i - 1]
        if any(shown) and (not levels or tuple(shown) != levels[-1]):
            levels.append(tuple(shown))
    return levels or ([tuple("" for _ in range(width))] if width else [])


def _find_kinds(data: Sequence[Sequence[RawCell]], names: Sequence[str]) -> list[ColumnKind]:
    """What each column holds. Words name the rows where no value stands to their left; behind it they are notes."""
    found: list[ColumnKind] = []
    for c, label in enumerate(names):
        cells = [text for row in data if (text := values.spell(row[c].text))]
        printed = [text for text in cells if not values.read_cell(text).missing and len(text) < values.MAX_CELL]
        numbers = sum(map(composites.holds_value, printed))
        is_text = numbers * 2 <= len(printed) and (len(printed) > numbers or not cells)
        numbering = label.lower() in _NUMBERING and all(text.rstrip(".").isdecimal() for text in printed)
        counted = labels.split_label(label).condition and not (is_text and labels.find_role(label))
        if numbering and len(names) > 2 and c == 0:
            found.append("condition")
        elif counted and (c or not is_text):
            found.append("condition" if not is_text or "value" in found else "key")
        elif is_text and "value" not in found:
            found.append("key")
        elif is_text:
            found.append("note")
        elif c == 0 and not (label and labels.split_label(label).metric):
            found.append("key")
        else:
            found.append("value")
    if "value" not in found and "note" not in found and len(found) > 1 and found[-1] == "key":
        found[-1] = "value"  # cells that cannot be read are listed, not taken for names
    return found


def _fill_rows(found: Layout, body: Sequence[tuple[int, Sequence[RawCell]]]) -> None:
    title: tuple[int, str, int] = (0, "", 0)  # of the group: its line, its text, its indentation
    used = True
    inside = False  # whether rows of the group stand further to the right than its title
    above: tuple[labels.Label, ...] = ()
    keys = found.columns("key")
    ancestors: list[tuple[tuple[int, bool], str]] = []
    for line, row in body:
        if _is_title(row):
            if not used:
                found.empty_groups.append(title[:2])
            text = next(text for text in _spell_row(row) if text)
            title, used, inside, above, ancestors = (line, text, row[0].indent), False, False, (), []
            continue
        indent = row[keys[0]].indent if keys else 0
        if inside and indent <= title[2]:
            title, inside, ancestors = (line, "", 0), False, []
        inside = inside or (not used and indent > title[2])
        used = True
        told = tuple(labels.read_label(row[c].text) for c in keys)
        # Names that a row leaves empty before its first one are those of the row above.
        empty = next((i for i, part in enumerate(told) if part.name), 0)
        above = told = (*above[:empty], *told[empty:]) if above else told
        name = told[0].name if told else ""
        level = (indent, _CHILD.match(name) is not None)
        while ancestors and (ancestors[-1][0] >= level or (ancestors[-1][0][0] == indent and not level[1])):
            ancestors.pop()
        parents = tuple(dict.fromkeys(each for _, each in ancestors)) if name else ()
        if not (empty and ancestors and ancestors[-1][1] == name):
            ancestors.append((level, name))
        found.rows.append(DataRow(line, told, title[1], tuple(each for each in parents if each != name), tuple(row)))
    if not used:
        found.empty_groups.append(title[:2])


def _find_axes(found: Layout) -> Iterator[Axis]:
    for number, c in enumerate(found.columns("key")):
        yield Axis("key", number, found.names[c], tuple(row.keys[number].name for row in found.rows))
    if any(row.title for row in found.rows):
        yield Axis("group", 0, "", tuple(labels.read_label(row.title).name for row in found.rows))
    columns = found.columns("value")
    for number, level in enumerate(found.headers):
        shown = tuple(labels.read_label(text).name if c in columns else "" for c, text in enumerate(level))
        rests = find_rests([labels.read_label(text).name for text in level], columns)
        if rests:
            kept = [labels.split_label(labels.read_label(text).name) for text in level]
            kinds = ((kept[c].kind if c in rests else shown[c]) if c in columns else "" for c in range(len(level)))
            yield Axis("rest", number, "", tuple(rests.get(c, "") for c in range(len(level))))
            yield Axis("kind", number, "", tuple(kinds))
        elif any(shown):
            yield Axis("level", number, "", shown)


def find_rests(level: Sequence[str], columns: Sequence[int]) -> dict[int, str]:
    """What the labels of a level name besides their metric, if they do, by column.

    That is told by what varies, the same name with several metrics or the same metric with several, or by known names.
    """
    parts = {c: labels.split_label(text) for c, text in enumerate(level)}
    names = Counter(part.rest for part in parts.values() if part.rest and part.kind)
    kinds = Counter(part.kind.lower() for part in parts.values() if part.rest and part.kind)
    alone = {part.kind.lower() for part in parts.values() if not part.rest}
    return {
        c: part.rest
        for c, part in parts.items()
        if c in columns and part.rest and part.metric
        and (names[part.rest] > 1 or labels.is_dataset(part.rest) or labels.is_model(part.rest)
             or (kinds[part.kind.lower()] > 1 and part.kind.lower() not in alone and not labels.is_cost(part.metric)))
    }  # fmt: skip
