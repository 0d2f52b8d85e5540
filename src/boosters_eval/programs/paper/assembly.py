"""From a table that is laid out to its entries: every cell under its model, data set and metric."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.programs.paper.documents.grid import RawCell
from boosters_eval.programs.paper.layout import Axis, DataRow, Layout, lay_out, text
from boosters_eval.programs.paper.lexicon import (
    Better,
    Label,
    arrows_in,
    direction_in,
    is_dataset,
    is_not_deviation,
    known_metric,
    label,
    metric_with_dataset,
    metrics_in,
    parentheses_in,
    std_over_in,
)
from boosters_eval.programs.paper.specification import StdOver
from boosters_eval.programs.paper.values import CellReading, read_cell, repeats_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.programs.paper.documents import FoundTable
    from boosters_eval.programs.paper.request import ExtractPaperRequest, Parentheses

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
_WORD = re.compile(r"\w[\w-]*\w")
_REFERENCE = re.compile(
    r"\b(?:notations?|follow(?:s|ing)?|same|as in|see)\b[^.]{0,40}?\btable\s+([A-Z]?\.?\d+)", re.IGNORECASE
)


class Unread(Model):
    """Something that was not read, or not entirely, and where it is."""

    line: int
    row: str = ""
    column: str = ""
    text: str = ""
    why: str

    @property
    def place(self) -> str:
        """Where it is."""
        parts = [
            f"line {self.line}",
            f"row '{self.row}'" if self.row else "",
            f"column '{self.column}'" if self.column else "",
        ]
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {f'{self.text!r}: ' if self.text else ''}{self.why}"


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


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of results: what its header says."""

    header: str
    names: dict[str, Label]  # by role
    metrics: tuple[str, ...]
    dataset: str | None
    direction: Better | None
    unit: str
    parentheses: Parentheses | None


@dataclass(slots=True)
class _Draft:
    """An entry while it is being filled."""

    model: str
    group: str
    dataset: str
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
        inherited = [
            about[f"Table {number}"] for number in _REFERENCE.findall(self.about) if f"Table {number}" in about
        ]
        self.notation = {**arrows_in(" ".join(inherited)), **arrows_in(self.about)}
        self.layout: Layout = lay_out(found.table, " ".join([self.about, *inherited]), options.columns)
        self.named = metrics_in(self._of_all(found.title)) or metrics_in(self._of_all(self.about))
        self.parentheses = options.parentheses or parentheses_in(self.about)
        self.no_deviation = is_not_deviation(self.about)
        self.unread = [Unread(line=fault.line, why=fault.what) for fault in found.table.faults]
        self.drafts: dict[tuple[str, str, str], _Draft] = {}
        self.directions: dict[str, Better | None] = {}
        self.cells = 0
        self.columns = self._columns()

    def table(self) -> BenchmarkTable:
        for line, name in self.layout.empty_groups:
            self.unread.append(
                Unread(line=line, row=name, why="it has no values and no rows below it: a row or a group?")
            )
        failed: dict[int, list[Unread]] = {}
        tripled = self._repeats()
        for row in self.layout.rows:
            for i, column in enumerate(self.columns):
                self._cell(row, i, column, tripled, failed)
        self._report(failed)
        entries = [entry for draft in self.drafts.values() if (entry := self._entry(draft)).metrics]
        return self._table(entries)

    def _columns(self) -> list[_Column]:
        width = (
            len(self.layout.headers[-1])
            if self.layout.headers
            else max((len(row.cells) for row in self.layout.rows), default=0)
        )
        levels = [(i, axis) for i, axis in enumerate(self.layout.axes) if axis.kind == "level"]
        return [self._column(c, levels) for c in range(width)]

    def _column(self, c: int, levels: Sequence[tuple[int, Axis]]) -> _Column:
        names: dict[str, Label] = {}
        loose: list[str] = []  # of levels that name nothing on their own: joined to the next one that does
        header = [axis.labels[c] for _, axis in levels if axis.labels[c]]
        said = [label(part) for part in header]
        for i, axis in levels:
            role = self.layout.roles.get(i)
            part = label(axis.labels[c])
            if role is None:
                loose += [part.name] if part.name and len(axis.distinct) > 1 else []
                continue
            names[role] = Label(
                " / ".join([*loose, part.name]) if part.name else " / ".join(loose), part.direction, part.unit
            )
            loose = []
        if loose and names:
            last = list(names)[-1]
            names[last] = Label(" / ".join([names[last].name, *loose]), names[last].direction, names[last].unit)
        direction = next((part.direction for part in said if part.direction), None)
        unit = next((part.unit for part in said if part.unit), "")
        metrics, dataset = self._metrics(names, direction)
        # A header that is only a number or a letter is decided by the caption.
        brackets = self.options.parentheses or parentheses_in(" ".join(header)) or self.parentheses
        return _Column(
            " / ".join(header) or f"{c + 1 + self.layout.keys}", names, metrics, dataset, direction, unit, brackets
        )

    def _metrics(self, names: Mapping[str, Label], direction: Better | None) -> tuple[tuple[str, ...], str | None]:
        """The metrics of a column and its data set; no metric where its rows name it."""
        dataset = (names["datasets"].name or ALL) if "datasets" in names else None
        if "metrics" in names:
            name = names["metrics"].name
            parts = [known_metric(part) for part in name.split("/")]
            if len(parts) > 1 and all(parts):
                return tuple(part for part in parts if part), dataset
            return (known_metric(name) or name or self._unsaid(direction),), dataset
        if dataset and (both := _metric_of(dataset)):
            return (both[1],), both[0]
        return (() if "metrics" in self.layout.roles.values() else (self._unsaid(direction),)), dataset

    def _unsaid(self, direction: Better | None) -> str:
        """The metric that the table leaves to its caption, or to the user."""
        if self.options.metric:
            return self.options.metric
        if direction and direction in self.notation:
            return self.notation[direction]
        arrows = {label(part).direction for level in self.layout.headers for part in level} - {None}
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

    def _repeats(self) -> int:
        """How often a conversion wrote each number of this table; a whole number cannot tell it by itself."""
        found = (repeats_of(cell.text) for row in self.layout.rows for cell in row.cells)
        return next((repeats for repeats in found if repeats > 1), 1)

    def _cell(self, row: DataRow, c: int, column: _Column, repeats: int, failed: dict[int, list[Unread]]) -> None:
        cell = row.cells[c] if c < len(row.cells) else RawCell()
        if not text(cell) or (cell.columns > 1 and cell.spread):  # the latter was looked at where it begins
            return
        self.cells += 1
        draft, metrics = self._draft(row, column)
        parts = cell.text.split("/") if len(metrics) > 1 else [cell.text]
        whole = ""  # what is wrong with the cell as a whole
        if len({each.header for each in self.columns[c : c + cell.columns]}) > 1:
            whole = "a value over several columns: of which?"
        elif len(parts) != len(metrics):
            whole = f"the header names {len(metrics)} metrics, the cell has {len(parts)}"
        for part, metric in zip([cell.text] if whole else parts, metrics, strict=False):
            reading = read_cell(
                part, emphasis=cell.emphasis, parentheses=column.parentheses, decimal=self.options.decimal
            )
            if reading.missing:
                draft.notes += [f"{metric}: {note}" for note in reading.notes]
                continue
            refused = whole or _doubtful(reading, repeats) or self._taken(draft, metric, reading)
            if refused or reading.problem:
                name = " ".join([row.group, *row.keys]).strip()
                why = refused or reading.why
                place = Unread(line=row.line, row=name, column=column.header, text=reading.text, why=why)
                failed.setdefault(c, []).append(place)
            if not refused and reading.value is not None:
                said = self._named_by(row)
                self._note(draft, metric, reading, reading.unit or column.unit or said.unit)
                way = column.direction or said.direction
                self.directions[metric] = way or self.directions.get(metric)

    def _named_by(self, row: DataRow) -> Label:
        """What a row says of its metric: its direction, and the unit if it is the row that names the metric."""
        way = next((part.direction for part in row.labels if part.direction), None)
        for i, axis in enumerate(self.layout.axes):
            if axis.kind != "level" and self.layout.roles.get(i) == "metrics":
                part = label(row.group) if axis.kind == "group" else row.labels[axis.number]
                return Label(part.name, part.direction or way, part.unit)
        return Label("", way)

    def _taken(self, draft: _Draft, metric: str, reading: CellReading) -> str:
        if reading.value is None or metric not in draft.readings:
            return ""
        return f"there is already a value of '{metric}' for '{draft.model}' on '{draft.dataset}'"

    def _note(self, draft: _Draft, metric: str, reading: CellReading, unit: str) -> None:
        condition = _CONDITIONS.get(re.sub(r"[\s_.-]", "", metric.lower()))
        assert reading.value is not None  # noqa: S101 (for the type checker)
        if condition and reading.value.value == int(reading.value.value):
            draft.conditions[condition] = int(reading.value.value)
            return
        if _PARAMETERS.fullmatch(metric) and (unit in _SCALES or (not unit and reading.value.value >= 1000)):
            draft.conditions["num_params"] = round(reading.value.value * _SCALES.get(unit, 1))
        draft.readings[metric] = reading
        if unit:
            draft.units[metric] = unit
        draft.notes += [f"{metric}: {note}" for note in reading.notes]

    def _draft(self, row: DataRow, column: _Column) -> tuple[_Draft, tuple[str, ...]]:
        named: dict[str, str] = {role: part.name for role, part in column.names.items()}
        groups: list[str] = []
        notes: list[str] = []
        hardware = None
        has_model_column = any(
            axis.kind == "key" and self.layout.roles.get(i) == "models" for i, axis in enumerate(self.layout.axes)
        )
        seen_model = False
        for i, axis in enumerate(self.layout.axes):
            if axis.kind == "level":
                continue
            value = row.group if axis.kind == "group" else row.keys[axis.number]
            role = self.layout.roles.get(i)
            if role:
                named[role] = value
                seen_model = seen_model or role == "models"
            elif re.search(r"\b(?:hardware|gpu|cpu|device)s?\b", axis.name, re.IGNORECASE):
                hardware = value or None
            elif axis.kind == "key" and seen_model and axis.name and has_model_column and not self._needed(axis):
                notes += [f"{axis.name}: {value}"] if value else []
            elif value and not (axis.kind == "key" and axis.number == 0 and self.layout.keys > 1 and value.isdecimal()):
                groups.append(value)
        metrics, dataset = self._metrics_and_dataset(named, column)
        model = named.get("models") or self.options.model or UNNAMED
        key = (" / ".join(groups), model, dataset)
        if key not in self.drafts:
            self.drafts[key] = _Draft(model, key[0], dataset, row.line, hardware, notes)
        return self.drafts[key], metrics

    def _metrics_and_dataset(self, named: Mapping[str, str], column: _Column) -> tuple[tuple[str, ...], str]:
        """By the names of the row, where those of the column do not say it."""
        metrics, dataset = column.metrics, column.dataset if "datasets" in column.names else named.get("datasets")
        if "metrics" in named and "metrics" not in column.names:
            part = label(named["metrics"])
            metrics = (known_metric(part.name) or part.name or UNNAMED,)
        elif dataset and not {"metrics", "datasets"} & set(column.names) and (both := _metric_of(dataset)):
            dataset, metrics = both[0], (both[1],)
        return metrics, dataset or self._dataset()

    def _needed(self, axis: Axis) -> bool:
        """Whether rows could not be told apart without this column."""
        others = [i for i in range(self.layout.keys) if i != axis.number]
        keys = [(row.group, *(row.keys[i] for i in others)) for row in self.layout.rows]
        return len(set(keys)) < len(keys)

    def _dataset(self) -> str:
        return self.options.dataset or UNNAMED

    def _report(self, failed: Mapping[int, Sequence[Unread]]) -> None:
        """A column of words is named once, not cell by cell."""
        for c, faults in failed.items():
            printed = sum(bool(c < len(row.cells) and text(row.cells[c])) for row in self.layout.rows)
            if len(faults) > 3 and len(faults) == printed and len({fault.why for fault in faults}) == 1:
                first = faults[0]
                self.unread.append(
                    Unread(
                        line=first.line,
                        column=first.column,
                        text=first.text,
                        why=f"and {printed - 1} more: {first.why}",
                    )
                )
            else:
                self.unread += faults
        self.unread.sort(key=lambda each: each.line)

    def _entry(self, draft: _Draft) -> BenchmarkEntry:
        metrics: dict[str, float] = {}
        stds: dict[str, float] = {}
        printed: dict[str, str] = {}
        notes = list(draft.notes)
        last = ""  # the metric to the left, of which a column "Std" is the deviation
        for metric, reading in draft.readings.items():
            assert reading.value is not None  # noqa: S101 (for the type checker)
            base = re.sub(r"[ _](?:std|sd)$", "", metric, flags=re.IGNORECASE)
            base = last if _BARE_STD.fullmatch(metric) else known_metric(base) or base
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
        names = f"{draft.group} {draft.model}"
        return BenchmarkEntry(
            table_id=self.found.id, model_name=draft.model, group=draft.group, dataset=draft.dataset,
            metrics=metrics, printed=printed, metric_units={k: v for k, v in draft.units.items() if k in metrics},
            counts={k: v.count for k, v in draft.readings.items() if v.count is not None and k in metrics},
            emphasized=tuple(k for k, v in draft.readings.items() if v.emphasis and k in metrics),
            hardware=draft.hardware, notes=tuple(notes), is_baseline=_BASELINE.search(names) is not None,
            std_values=stds, has_std=bool(stds), line=draft.line, **draft.conditions,
        )  # fmt: skip

    def _table(self, entries: Sequence[BenchmarkEntry]) -> BenchmarkTable:
        groups: dict[str, dict[str, None]] = {}
        for entry in entries:
            groups.setdefault(entry.group, {})[entry.model_name] = None
        rows = list(dict.fromkeys((entry.group, entry.model_name) for entry in entries))
        keys = [f"{group} / {name}" if group else name for group, name in rows]
        ours = [key for key in keys if _OURS.search(key)]
        metrics = list(dict.fromkeys(name for entry in entries for name in entry.metrics))
        named = [name for name in metrics if not known_is_cost(name)] or metrics
        stated = direction_in(self.about) if len(metrics) == 1 else None
        directions = {name: way for name in metrics if (way := self.directions.get(name) or stated)}
        has_std = any(entry.has_std for entry in entries)
        return BenchmarkTable(
            table_id=self.found.id, title=self.found.title, description=self.found.description,
            columns=tuple(column.header for column in self.columns),
            row_groups={group: tuple(names) for group, names in groups.items()}, entries=tuple(entries),
            datasets_used=tuple(dict.fromkeys(entry.dataset for entry in entries)),
            models_compared=tuple(dict.fromkeys(entry.model_name for entry in entries)),
            primary_metric=named[0] if named else "", our_model_row=ours[0] if len(ours) == 1 else "",
            baseline_rows=tuple(key for key in keys if _BASELINE.search(key)), directions=directions,
            std_over=std_over_in(self.about) if has_std else None, layout=tuple(self.layout.why),
            unread=tuple(self.unread), line=self.found.table.line, rows=len(self.layout.rows), cells=self.cells,
            values=sum(len(entry.printed) - len(entry.std_values) for entry in entries),
        )  # fmt: skip


def _metric_of(name: str) -> tuple[str, str] | None:
    """The data set and the metric of a name among data sets: `Adult (Acc)` has both, a mean rank is of all of them."""
    alone = known_metric(name)
    return metric_with_dataset(name) or ((ALL, alone) if alone and not is_dataset(name) else None)


def known_is_cost(name: str) -> bool:
    """Whether a metric says what a model costs or where it ranks, not how good it is."""
    return (
        re.search(r"time|cost|memory|param|flop|rank|size|speed|latency|throughput|tokens", name, re.IGNORECASE)
        is not None
    )


def _doubtful(reading: CellReading, tripled: int) -> str:
    """In a table whose numbers are written several times, 313131 may be 31."""
    digits = reading.value.printed if reading.value else ""
    if tripled > 1 and reading.repeats == 1 and digits.isdecimal():
        for times in (2, 3):
            part = digits[: len(digits) // times]
            if part and part * times == digits:
                return f"a conversion may have written '{part}' {times} times"
    return ""
