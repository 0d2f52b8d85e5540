"""How a table is laid out: its header, the columns that name its rows, its groups, and what each of these names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.terms import named
from boosters_eval.programs.paper import values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boosters_eval.programs.paper.documents.grid import RawCell, RawTable
    from boosters_eval.programs.paper.request import Role

MAX_HEADERS = 5
_SHOWN = {"datasets": "data sets", "metrics": "metrics", "models": "models"}
_NUMBERING = frozenset({"", "#", "no", "no.", "nr", "nr.", "id", "idx", "index", "rank"})


@dataclass(frozen=True, slots=True)
class Axis:
    """One of the things that a cell is known by: a naming column, a level of the header, the groups of rows."""

    kind: Literal["key", "level", "group"]
    number: int
    name: str  # the header of a naming column
    labels: tuple[str, ...]  # by row for a key or the groups, by data column for a level

    @property
    def distinct(self) -> list[str]:
        return list(dict.fromkeys(text for text in self.labels if text))


@dataclass(frozen=True, slots=True)
class DataRow:
    line: int
    keys: tuple[str, ...]
    labels: tuple[values.Label, ...]  # the keys with their directions and units
    group: str
    cells: tuple[RawCell, ...]


@dataclass(slots=True)
class Layout:
    """A table taken apart. `why` says how the roles were chosen."""

    rows: list[DataRow]
    headers: list[tuple[str, ...]]  # by level, for the data columns
    keys: int
    axes: list[Axis]
    roles: dict[int, Role] = field(default_factory=dict)  # by the place of the axis
    why: list[str] = field(default_factory=list)
    empty_groups: list[tuple[int, str]] = field(default_factory=list)


def lay_out(table: RawTable, about: str, columns: Role | None = None) -> Layout:
    """Take a table apart. `about` is what the document says of it; `columns` what the user says the columns are."""
    first = _count_headers(table)
    header = [row for row in table.rows[:first] if any(_spell_row(row))]
    titles = {_spell_row(row) for row in header}  # a long table repeats them on every page
    header = _join_marks(header)
    below = zip(table.lines[first:], table.rows[first:], strict=True)
    body = [(line, row) for line, row in below if any(_spell_row(row)) and _spell_row(row) not in titles]
    data = [row for _, row in body if not _is_group(row)]
    keys = _count_keys(data, header)
    found = Layout([], _read_levels(header, keys), keys, [])
    _fill_rows(found, body)
    for i in range(keys):
        name = " ".join(dict.fromkeys(shown for row in header if (shown := values.spell(row[i].text))))
        found.axes.append(Axis("key", i, name, tuple(row.keys[i] for row in found.rows)))
    if any(row.group for row in found.rows):
        found.axes.append(Axis("group", 0, "", tuple(row.group for row in found.rows)))
    found.axes += [Axis("level", i, "", labels) for i, labels in enumerate(found.headers)]
    _assign_roles(found, about, columns)
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
        if first and (
            not values.spell(first[0].text) or not any(values.looks_like_result(cell.text) for cell in first[1:])
        ):
            count += 1
    while 0 < count < min(len(rows), MAX_HEADERS) and _continues(rows[count]):
        count += 1
    return min(count, len(rows))


def _continues(row: Sequence[RawCell]) -> bool:
    first, *texts = _spell_row(row)
    texts = [shown for shown in texts if shown]
    if not texts or _is_group(row) or (first and len(set(texts)) == 1):
        return False
    filled = (cell.text for cell in row[1:] if values.spell(cell.text))
    return not any(values.looks_like_result(raw) or not values.read_cell(raw).problem for raw in filled)


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
    return not values.read_label(shown).name or re.fullmatch(rf"[(\[]\s*(?:{values.UNIT})\s*[)\]]|%", shown) is not None


def _is_group(row: Sequence[RawCell]) -> bool:
    """A row with one text in its first cell, or the same one in all: the title of the rows below it."""
    first, *others = _spell_row(row)
    if not first or not others or not set(others) <= {"", first}:
        return False
    return set(others) != {first} or not values.looks_like_result(first)


def _count_keys(data: Sequence[Sequence[RawCell]], header: Sequence[Sequence[RawCell]]) -> int:
    """How many columns at the left name the rows: the first, and those after it that hold words but no results."""
    width = len(data[0]) if data else len(header[0]) if header else 1
    count = 1
    while count < width - 1 and data:
        cells = [row[count].text for row in data if values.spell(row[count].text)]
        if not any(values.read_cell(raw).problem for raw in cells) or any(map(values.looks_like_result, cells)):
            break
        count += 1
    return min(count, width)


def _read_levels(header: Sequence[Sequence[RawCell]], keys: int) -> list[tuple[str, ...]]:
    """The labels of the data columns. In all levels but the last an empty cell belongs to the label on its left."""
    levels: list[tuple[str, ...]] = []
    for number, row in enumerate(header):
        labels = list(_spell_row(row[keys:]))
        if number < len(header) - 1:
            for i in range(1, len(labels)):
                labels[i] = labels[i] or labels[i - 1]
        if any(labels) and (not levels or tuple(labels) != levels[-1]):
            levels.append(tuple(labels))
    return levels


def _fill_rows(found: Layout, body: Sequence[tuple[int, Sequence[RawCell]]]) -> None:
    title: tuple[int, str] = (0, "")  # of the group, with its line
    used = True
    above: tuple[values.Label, ...] = ()
    for line, row in body:
        if _is_group(row):
            if not used:
                found.empty_groups.append(title)
            title, used, above = (line, values.spell(row[0].text)), False, ()
            continue
        used = True
        labels = tuple(values.read_label(cell.text) for cell in row[: found.keys])
        # Names that a row leaves empty before its first one are those of the row above.
        empty = next((i for i, part in enumerate(labels) if part.name), 0)
        above = labels = (*above[:empty], *labels[empty:]) if above else labels
        keys = tuple(part.name for part in labels)
        found.rows.append(DataRow(line, keys, labels, title[1], tuple(row[found.keys :])))
    if not used:
        found.empty_groups.append(title)


def _assign_roles(found: Layout, about: str, columns: Role | None) -> None:
    """Decide what each axis names, by the first rule that says something."""
    _assign_by_user(found, columns)
    for i, axis in enumerate(found.axes):
        said = values.find_role(axis.name) if axis.kind == "key" else None
        if said and i not in found.roles and said not in found.roles.values():
            _give(found, i, said, f"headed '{axis.name}'")
    _assign_by_share(found, "metrics", values.is_metric, 0.5)
    _assign_by_share(found, "models", lambda name: values.is_model(name) and not values.is_dataset(name), 0.0)
    _assign_by_share(found, "datasets", values.is_dataset, 0.0)
    free = [i for i in range(len(found.axes)) if i not in found.roles]
    free.reverse()  # naming columns from the right, levels from below
    for i in (*_of_kind(found, free, "key"), *_of_kind(found, free, "level")):
        role = _choose_role(found, found.axes[i], about)
        if role:
            by_caption = role == "datasets" and "metrics" not in found.roles.values() and _names_metric(about)
            _give(found, i, role, "the caption names the metric" if by_caption else "nothing says otherwise")


def _of_kind(found: Layout, places: Iterable[int], kind: str) -> list[int]:
    return [i for i in places if found.axes[i].kind == kind]


def _assign_by_user(found: Layout, columns: Role | None) -> None:
    levels = _of_kind(found, range(len(found.axes)), "level")
    if columns is None or not levels:
        return
    inner = levels[-1]
    if columns != "metrics" and len(levels) > 1 and _share(found.axes[inner], values.is_metric) > 0.5:
        inner = levels[-2]
    _give(found, inner, columns, named("columns"))


def _assign_by_share(found: Layout, role: Role, test: Callable[[str], bool], least: float) -> None:
    """The axis most of whose labels are of this kind, if more than this share is."""
    free = [i for i in range(len(found.axes)) if i not in found.roles]
    if role in found.roles.values() or not free:
        return
    places = ("group", "level", "key") if role == "models" else ("group", "key", "level")  # the last is the likeliest
    best = max(free, key=lambda i: (_share(found.axes[i], test), places.index(found.axes[i].kind)))
    axis = found.axes[best]
    share = _share(axis, test)
    unsure = role == "datasets" and axis.kind == "group" and len(found.axes) > 2
    if share > least and not (unsure and "models" not in found.roles.values()):
        count = round(share * len(axis.distinct))
        _give(found, best, role, f"{count} of {len(axis.distinct)} names are known as such")


def _share(axis: Axis, test: Callable[[str], bool]) -> float:
    names = axis.distinct
    hits = [name for name in names if test(name)]
    if axis.kind == "level":  # `Adult (Acc)` is a data set with its metric, not a metric
        hits = [name for name in hits if values.split_metric(values.read_label(name).name) is None]
    return len(hits) / len(names) if names else 0.0


def _choose_role(found: Layout, axis: Axis, about: str) -> Role | None:
    taken = set(found.roles.values())
    order: tuple[Role, ...]
    if axis.kind == "key":
        numbered = axis.name.lower() in _NUMBERING and all(name.isdecimal() for name in axis.distinct)
        beside = any(found.axes[i].kind == "key" and role == "models" for i, role in found.roles.items())
        if (numbered and found.keys > 1) or (axis.name and beside):  # a column of its own meaning groups the rows
            return None
        order = ("models", "datasets")
    elif len(axis.distinct) < 2 and len(axis.labels) > 1:
        return None
    elif "datasets" in taken and "models" not in taken:
        order = ("models",)
    elif any(values.split_metric(values.read_label(name).name) for name in axis.distinct):
        order = ("datasets", "metrics")
    elif "metrics" in taken or _names_metric(about):
        order = ("datasets", "models")
    else:
        order = ("metrics", "datasets")
    return next((role for role in order if role not in taken), None)


def _names_metric(about: str) -> bool:
    return bool(values.find_arrows(about)) or len(values.find_metrics(about)) == 1


def _give(found: Layout, i: int, role: Role, why: str) -> None:
    found.roles[i] = role
    axis = found.axes[i]
    where = {"key": f"column {axis.number + 1}", "level": f"header {axis.number + 1}", "group": "groups"}[axis.kind]
    if axis.kind == "level" and sum(each.kind == "level" for each in found.axes) == 1:
        where = "columns"
    if axis.kind == "key" and found.keys == 1:
        where = "rows"
    found.why.append(f"{where}: {_SHOWN[role]} ({why})")
