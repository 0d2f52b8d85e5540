"""From a table that is laid out to its entries: every cell under its model, data set and metric."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.programs.paper.documents.grid import RawCell, Unread
from boosters_eval.programs.paper.layout import Axis, DataRow, Layout, lay_out
from boosters_eval.programs.paper.specification import Quantity, StdOver, make_row_key
from boosters_eval.programs.paper.values import (
    Better,
    CellReading,
    count_repeats,
    find_arrows,
    find_direction,
    find_metric,
    find_metrics,
    find_parentheses,
    find_std_over,
    is_dataset,
    is_not_deviation,
    read_cell,
    read_label,
    spell,
    split_metric,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.programs.paper.documents import FoundTable
    from boosters_eval.programs.paper.request import ExtractPaperRequest, Parentheses, Role

UNNAMED = "unnamed"  # stands where the table and its caption do not say a name
ALL = "all"  # the data set of a column that sums up the others, such as a mean rank
_OURS = re.compile(r"\b(?:ours?|this work|this paper|proposed)\b", re.IGNORECASE)
_BASELINE = re.compile(r"\bbaselines?\b", re.IGNORECASE)
_CONDITIONS = {
    "batchsize": "batch_size",
    "contextlength": "sequence_length",
    "sequencelength": "sequence_length",
    "seqlen": "sequence_length",
}
_PARAMETERS = re.compile(r"#?\s*(?:num\.?|number of)?\s*param(?:eter)?s\.?", re.IGNORECASE)
_SCALES = {"K": 1e3, "k": 1e3, "M": 1e6, "million": 1e6, "B": 1e9, "G": 1e9, "billion": 1e9}
_BARE_STD = re.compile(r"(?:std|st\.? ?dev|sd|std\.? ?dev|standard deviation)\.?", re.IGNORECASE)
# What a model costs or where it ranks, not how good it is.
_COSTS = re.compile(r"time|cost|memory|param|flop|rank|size|speed|latency|throughput|tokens", re.IGNORECASE)
_WORD = re.compile(r"\w[\w-]*\w")
_REFERENCE = re.compile(
    r"\b(?:notations?|follow(?:s|ing)?|same|as in|see)\b[^.]{0,40}?\btable\s+([A-Z]?\.?\d+)", re.IGNORECASE
)


class BenchmarkEntry(Model):
    """What a table prints for a model on a data set."""

    table_id: str
    model_name: str
    group: str = ""  # the group of rows that it is in; the same model may be in several
    dataset: str
    metrics: dict[str, float]
    printed: dict[str, str]  # the digits of each metric, and of its deviation as `<metric>_std`
    metric_units: dict[str, str] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)  # whole numbers in parentheses, by metric
    emphasized: tuple[str, ...] = ()  # metrics printed in bold, italics or underlined
    hardware: str | None = None
    batch_size: int | None = None
    sequence_length: int | None = None
    num_params: int | None = None
    notes: tuple[str, ...] = ()
    is_baseline: bool = False
    std_values: dict[str, float] = Field(default_factory=dict)
    has_std: bool = False
    line: int


class BenchmarkTable(Model):
    """A table of results of a paper."""

    schema_version: Format = FORMAT
    table_id: str
    title: str
    description: str
    columns: tuple[str, ...]
    row_groups: dict[str, tuple[str, ...]]
    entries: tuple[BenchmarkEntry, ...]
    datasets_used: tuple[str, ...]
    models_compared: tuple[str, ...]
    primary_metric: str
    our_model_row: str = ""
    baseline_rows: tuple[str, ...] = ()
    directions: dict[str, Better] = Field(default_factory=dict)
    std_over: StdOver | None = None
    layout: tuple[str, ...] = ()  # what rows and columns were taken for, and why
    notes: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    line: int
    rows: int
    cells: int  # with something printed in them
    values: int  # that were read


class EntryKey(NamedTuple):
    """What values are known by besides their metric: cells of the same identity are one entry."""

    group: str
    model: str
    dataset: str


@dataclass(frozen=True, slots=True)
class _Column:
    header: str
    names: dict[Role, str]
    direction: Better | None
    unit: str
    parentheses: Parentheses | None


@dataclass(slots=True)
class _Draft:
    """An entry while it is being filled."""

    line: int
    hardware: str | None = None
    notes: list[str] = field(default_factory=list)
    readings: dict[str, CellReading] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, int] = field(default_factory=dict)


def assemble(found: FoundTable, about: Mapping[str, str], options: ExtractPaperRequest) -> BenchmarkTable:
    """Read a table. `about` is what the document says of all its tables, because captions refer to each other."""
    return _Assembly(found, about, options).table()


class _Assembly:
    def __init__(self, found: FoundTable, about: Mapping[str, str], options: ExtractPaperRequest) -> None:
        self.found = found
        self.options = options
        self.about = about[found.id]
        inherited = [about[name] for number in _REFERENCE.findall(self.about) if (name := f"Table {number}") in about]
        self.notation = {**find_arrows(" ".join(inherited)), **find_arrows(self.about)}
        self.layout: Layout = lay_out(found.table, " ".join([self.about, *inherited]), options.columns)
        self.named = find_metrics(self._of_all(found.title)) or find_metrics(self._of_all(self.about))
        self.no_deviation = is_not_deviation(self.about)
        self.unread = list(found.table.faults)
        self.drafts: dict[EntryKey, _Draft] = {}
        self.directions: dict[str, Better | None] = {}
        self.cells = 0
        headers = self.layout.headers
        width = len(headers[-1]) if headers else max((len(row.cells) for row in self.layout.rows), default=0)
        self.columns = [self._read_column(c) for c in range(width)]

    def table(self) -> BenchmarkTable:
        for line, name in self.layout.empty_groups:
            why = "it has no values and no rows below it: a row or a group?"
            self.unread.append(Unread(line=line, row=name, why=why))
        failed: dict[int, list[Unread]] = {}
        # How often a conversion wrote each number of this table; a whole number cannot tell it by itself.
        counts = (count_repeats(cell.text) for row in self.layout.rows for cell in row.cells)
        repeats = next((count for count in counts if count > 1), 1)
        for row in self.layout.rows:
            for i, column in enumerate(self.columns):
                self._read_value(row, i, column, repeats, failed)
        self._report(failed)
        return self._conclude([entry for each in self.drafts.items() if (entry := self._finish(*each)).metrics])

    def _read_column(self, c: int) -> _Column:
        names: dict[Role, str] = {}
        loose: list[str] = []  # of levels that name nothing on their own: joined to the next one that does
        levels = [(i, axis) for i, axis in enumerate(self.layout.axes) if axis.kind == "level"]
        header = [axis.labels[c] for _, axis in levels if axis.labels[c]]
        for i, axis in levels:
            role = self.layout.roles.get(i)
            name = read_label(axis.labels[c]).name
            if role is None:
                loose += [name] if name and len(axis.distinct) > 1 else []
                continue
            names[role] = " / ".join([*loose, name] if name else loose)
            loose = []
        if loose and names:
            last = list(names)[-1]
            names[last] = " / ".join([names[last], *loose])
        said = [read_label(part) for part in header]
        return _Column(
            header=" / ".join(header) or f"{c + 1 + self.layout.keys}",
            names=names,
            direction=next((part.direction for part in said if part.direction), None),
            unit=next((part.unit for part in said if part.unit), ""),
            # A header that is only a number or a letter is decided by the caption.
            parentheses=self.options.parentheses or find_parentheses(" ".join(header)) or find_parentheses(self.about),
        )

    def _find_metrics(self, named: Mapping[Role, str], column: _Column) -> tuple[str, tuple[str, ...]]:
        """The data set and the metrics of a cell, by the names of its row and column: `Adult (Acc)` has both."""
        dataset = named.get("datasets", "") or (ALL if "datasets" in column.names else "")
        if "metrics" in column.names:
            name = named["metrics"]
            parts = [find_metric(part) or "" for part in name.split("/")]
            one = find_metric(name) or name or self._unsaid_metric(column.direction)
            metrics = tuple(parts) if len(parts) > 1 and all(parts) else (one,)
        elif "metrics" in named:
            name = read_label(named["metrics"]).name
            metrics = (find_metric(name) or name or UNNAMED,)
        elif both := _split_dataset(dataset):
            dataset, metrics = both[0], (both[1],)
        else:
            metrics = (self._unsaid_metric(column.direction),)
        return dataset or self.options.dataset or UNNAMED, metrics

    def _unsaid_metric(self, direction: Better | None) -> str:
        """The metric that the table leaves to its caption, or to the user."""
        if self.options.metric:
            return self.options.metric
        if direction and direction in self.notation:
            return self.notation[direction]
        arrows = {read_label(part).direction for level in self.layout.headers for part in level} - {None}
        if len(self.named) == 1 and len(arrows) < 2:
            return self.named[0]
        return f"{UNNAMED}_{direction}" if direction and len(arrows) > 1 else UNNAMED

    def _of_all(self, caption: str) -> str:
        """The caption without sentences that are of some data sets only: "QQP and MRPC are F1"."""
        axes = [self.layout.axes[i] for i, role in self.layout.roles.items() if role == "datasets"]
        words = {match[0] for axis in axes for name in axis.distinct if (match := _WORD.match(name))}

        def partial(sentence: str) -> bool:
            return 0 < len(words.intersection(_WORD.findall(sentence))) < len(words)

        return " ".join(each for each in re.split(r"(?<=[.;])\s+", caption) if not partial(each))

    def _read_value(self, row: DataRow, c: int, column: _Column, repeats: int, failed: dict[int, list[Unread]]) -> None:
        cell = row.cells[c] if c < len(row.cells) else RawCell()
        if not spell(cell.text) or (cell.columns > 1 and cell.spread):  # the latter was looked at where it begins
            return
        self.cells += 1
        identity, draft, metrics = self._find_draft(row, column)
        parts, whole = self._split_cell(cell, c, metrics)
        for part, metric in zip(parts, metrics, strict=False):
            reading = read_cell(
                part, emphasis=cell.emphasis, parentheses=column.parentheses, decimal=self.options.decimal
            )
            if reading.missing:
                draft.notes += [f"{metric}: {note}" for note in reading.notes]
                continue
            refused = whole or _doubt_repeats(reading, repeats)
            if not refused and reading.value is not None and metric in draft.readings:
                refused = f"there is already a value of '{metric}' for '{identity.model}' on '{identity.dataset}'"
            if refused or reading.problem:
                name = " ".join([row.group, *row.keys]).strip()
                why = refused or reading.why
                place = Unread(line=row.line, row=name, column=column.header, text=reading.text, why=why)
                failed.setdefault(c, []).append(place)
            if not refused and reading.value is not None:
                unit, way = self._said_by(row)
                _note(draft, metric, reading, reading.value, reading.unit or column.unit or unit)
                self.directions[metric] = column.direction or way or self.directions.get(metric)

    def _split_cell(self, cell: RawCell, c: int, metrics: Sequence[str]) -> tuple[list[str], str]:
        """The part of a cell that is of each metric, or the whole of it and what is wrong with that."""
        parts = cell.text.split("/") if len(metrics) > 1 else [cell.text]
        if len({each.header for each in self.columns[c : c + cell.columns]}) > 1:
            return [cell.text], "a value over several columns: of which?"
        if len(parts) != len(metrics):
            return [cell.text], f"the header names {len(metrics)} metrics, the cell has {len(parts)}"
        return parts, ""

    def _said_by(self, row: DataRow) -> tuple[str, Better | None]:
        """What a row says of its metric: the unit, if it is the row that names the metric, and the direction."""
        way = next((part.direction for part in row.labels if part.direction), None)
        for i, axis in enumerate(self.layout.axes):
            if axis.kind != "level" and self.layout.roles.get(i) == "metrics":
                part = read_label(row.group) if axis.kind == "group" else row.labels[axis.number]
                return part.unit, part.direction or way
        return "", way

    def _find_draft(self, row: DataRow, column: _Column) -> tuple[EntryKey, _Draft, tuple[str, ...]]:
        named: dict[Role, str] = dict(column.names)
        groups: list[str] = []
        notes: list[str] = []
        hardware = None
        axes = [(axis, self.layout.roles.get(i)) for i, axis in enumerate(self.layout.axes) if axis.kind != "level"]
        has_model_column = any(axis.kind == "key" and role == "models" for axis, role in axes)
        seen_model = False
        for axis, role in axes:
            value = row.group if axis.kind == "group" else row.keys[axis.number]
            if role:
                named[role] = value
                seen_model = seen_model or role == "models"
            elif re.search(r"\b(?:hardware|gpu|cpu|device)s?\b", axis.name, re.IGNORECASE):
                hardware = value or None
            elif axis.kind == "key" and seen_model and axis.name and has_model_column and not self._needs(axis):
                notes += [f"{axis.name}: {value}"] if value else []
            elif value and not (axis.kind == "key" and axis.number == 0 and self.layout.keys > 1 and value.isdecimal()):
                groups.append(value)
        dataset, metrics = self._find_metrics(named, column)
        identity = EntryKey(" / ".join(groups), named.get("models") or self.options.model or UNNAMED, dataset)
        return identity, self.drafts.setdefault(identity, _Draft(row.line, hardware, notes)), metrics

    def _needs(self, axis: Axis) -> bool:
        """Whether rows could not be told apart without this column."""
        others = [i for i in range(self.layout.keys) if i != axis.number]
        keys = [(row.group, *(row.keys[i] for i in others)) for row in self.layout.rows]
        return len(set(keys)) < len(keys)

    def _report(self, failed: Mapping[int, Sequence[Unread]]) -> None:
        """A column of words is named once, not cell by cell."""
        for c, faults in failed.items():
            printed = sum(c < len(row.cells) and bool(spell(row.cells[c].text)) for row in self.layout.rows)
            if len(faults) > 3 and len(faults) == printed and len({fault.why for fault in faults}) == 1:
                first = faults[0]
                self.unread.append(first.replace(row="", why=f"and {printed - 1} more: {first.why}"))
            else:
                self.unread += faults
        self.unread.sort(key=lambda each: each.line)

    def _finish(self, identity: EntryKey, draft: _Draft) -> BenchmarkEntry:
        metrics: dict[str, float] = {}
        stds: dict[str, float] = {}
        printed: dict[str, str] = {}
        notes = list(draft.notes)
        last = ""  # the metric to the left, of which a column "Std" is the deviation
        for metric, reading in draft.readings.items():
            assert reading.value is not None  # noqa: S101 (for the type checker)
            base = re.sub(r"[ _](?:std|sd)$", "", metric, flags=re.IGNORECASE)
            base = last if _BARE_STD.fullmatch(metric) else find_metric(base) or base
            if base != metric and base in draft.readings and draft.readings[base].std is None and not self.no_deviation:
                stds[base], printed[f"{base}_std"] = reading.value.value, reading.value.printed
                continue
            name = f"{metric[:-4]} std" if metric.endswith("_std") else metric
            metrics[name], printed[name] = reading.value.value, reading.value.printed
            last = metric
            if reading.std is not None and self.no_deviation:
                notes.append(f"{name}: ± {reading.std.printed}, which the caption does not call a standard deviation")
            elif reading.std is not None:
                stds[name], printed[f"{name}_std"] = reading.std.value, reading.std.printed
        return BenchmarkEntry(
            table_id=self.found.id, model_name=identity.model, group=identity.group, dataset=identity.dataset,
            metrics=metrics, printed=printed, metric_units={k: v for k, v in draft.units.items() if k in metrics},
            counts={k: v.count for k, v in draft.readings.items() if v.count is not None and k in metrics},
            emphasized=tuple(k for k, v in draft.readings.items() if v.emphasis and k in metrics),
            hardware=draft.hardware, notes=tuple(notes), std_values=stds, has_std=bool(stds), line=draft.line,
            is_baseline=_BASELINE.search(f"{identity.group} {identity.model}") is not None, **draft.conditions,
        )  # fmt: skip

    def _conclude(self, entries: Sequence[BenchmarkEntry]) -> BenchmarkTable:
        groups: dict[str, dict[str, None]] = {}
        for entry in entries:
            groups.setdefault(entry.group, {})[entry.model_name] = None
        keys = list(dict.fromkeys(make_row_key(entry.group, entry.model_name) for entry in entries))
        ours = [key for key in keys if _OURS.search(key)]
        metrics = list(dict.fromkeys(name for entry in entries for name in entry.metrics))
        named = [name for name in metrics if not _COSTS.search(name)] or metrics
        stated = find_direction(self.about) if len(metrics) == 1 else None
        has_std = any(entry.has_std for entry in entries)
        return BenchmarkTable(
            table_id=self.found.id, title=self.found.title, description=self.found.description,
            columns=tuple(column.header for column in self.columns),
            row_groups={group: tuple(names) for group, names in groups.items()}, entries=tuple(entries),
            datasets_used=tuple(dict.fromkeys(entry.dataset for entry in entries)),
            models_compared=tuple(dict.fromkeys(entry.model_name for entry in entries)),
            primary_metric=named[0] if named else "", our_model_row=ours[0] if len(ours) == 1 else "",
            baseline_rows=tuple(key for key in keys if _BASELINE.search(key)),
            directions={name: way for name in metrics if (way := self.directions.get(name) or stated)},
            std_over=find_std_over(self.about) if has_std else None, layout=tuple(self.layout.why),
            unread=tuple(self.unread), line=self.found.table.line, rows=len(self.layout.rows), cells=self.cells,
            values=sum(len(entry.printed) - len(entry.std_values) for entry in entries),
        )  # fmt: skip


def _note(draft: _Draft, metric: str, reading: CellReading, printed: Quantity, unit: str) -> None:
    condition = _CONDITIONS.get(re.sub(r"[\s_.-]", "", metric.lower()))
    if condition and printed.value == int(printed.value):
        draft.conditions[condition] = int(printed.value)
        return
    if _PARAMETERS.fullmatch(metric) and (unit in _SCALES or (not unit and printed.value >= 1000)):
        draft.conditions["num_params"] = round(printed.value * _SCALES.get(unit, 1))
    draft.readings[metric] = reading
    if unit:
        draft.units[metric] = unit
    draft.notes += [f"{metric}: {note}" for note in reading.notes]


def _split_dataset(name: str) -> tuple[str, str] | None:
    """The data set and the metric of a name among data sets: `Adult (Acc)` has both, a mean rank is of all of them."""
    alone = find_metric(name)
    return split_metric(name) or ((ALL, alone) if alone and not is_dataset(name) else None)


def _doubt_repeats(reading: CellReading, repeats: int) -> str:
    """In a table whose numbers are written several times, 313131 may be 31."""
    digits = reading.value.printed if reading.value else ""
    if repeats > 1 and reading.repeats == 1 and digits.isdecimal():
        for times in (2, 3):
            part = digits[: len(digits) // times]
            if part and part * times == digits:
                return f"a conversion may have written '{part}' {times} times"
    return ""
