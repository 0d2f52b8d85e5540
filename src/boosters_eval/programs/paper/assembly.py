"""From a table that is laid out to its entries: every cell under its row, model, data set and metric."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.terms import named
from boosters_eval.core.text import count_of
from boosters_eval.programs.paper import composites, labels, values
from boosters_eval.programs.paper.documents.grid import Unread
from boosters_eval.programs.paper.labels import Better
from boosters_eval.programs.paper.layout import DataRow, Layout, lay_out, split_sections
from boosters_eval.programs.paper.roles import KnownNames, assign_roles
from boosters_eval.programs.paper.specification import StdOver, make_row_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boosters_eval.programs.paper.documents import FoundTable
    from boosters_eval.programs.paper.documents.grid import RawCell
    from boosters_eval.programs.paper.request import Decimal, ExtractPaperRequest, Parentheses, Role
    from boosters_eval.programs.paper.values import CellReading

UNNAMED = "unnamed"  # stands where the table and its caption do not say a name
ALL = "all"  # the data set of a column that sums up the others, such as a mean rank
_OURS = re.compile(r"\b(?:ours?|this work|this paper|proposed)\b", re.IGNORECASE)
_BASELINE = re.compile(r"\bbaselines?\b", re.IGNORECASE)
_PARAMETERS = re.compile(r"#?\s*(?:num\.?|number of)?\s*param(?:eter)?s?\.?\s*#?", re.IGNORECASE)
_SCALES = {"K": 1e3, "k": 1e3, "M": 1e6, "million": 1e6, "B": 1e9, "G": 1e9, "billion": 1e9}
_BARE_STD = re.compile(r"(?:std|st\.? ?dev|sd|std\.? ?dev|standard deviation)\.?", re.IGNORECASE)
_AVERAGE = re.compile(r"(?:mean|average|avg\.?|overall|all|total|median)(?:\s+(?:rank|score))?", re.IGNORECASE)
_UNIT_METRICS = {"s": "time", "ms": "time", "min": "time", "h": "time", "sec": "time", "x": "speed-up", "×": "speed-up"}
_SHORT = {"P": "precision", "R": "recall", "F": "f1"}  # where a header has them side by side
_WORD = re.compile(r"\w[\w-]*\w")
_REFERENCE = re.compile(
    r"\b(?:notations?|follow(?:s|ing)?|same|as in|see)\b[^.]{0,40}?\btable\s+([A-Z]?\.?\d+)", re.IGNORECASE
)


class BenchmarkEntry(Model):
    """What a table prints for a model on a data set, in one of its rows."""

    table_id: str
    model_name: str
    group: str = ""  # what else tells its row: the group, the row that it is a variant of, other names
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
    conditions: dict[str, str] = Field(default_factory=dict)  # all others, as printed
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
    doubtful: tuple[Unread, ...] = ()  # what was read, but may mean something else
    line: int
    rows: int
    cells: int  # with something printed in them
    values: int  # that were read


class EntryKey(NamedTuple):
    """What values are known by besides their metric. `row` is the row, or what the rows of one entry share."""

    row: tuple[str, ...] | int
    group: str
    model: str
    dataset: str


@dataclass(slots=True)
class _Draft:
    """An entry while it is being filled."""

    line: int
    hardware: str | None = None
    notes: list[str] = field(default_factory=list)
    readings: dict[str, CellReading] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Column:
    names: dict[Role, str]
    extra: str  # what the header says besides
    condition: str
    label: str
    direction: Better | None
    unit: str
    parentheses: Parentheses | None
    decimal: Decimal
    clear: bool  # whether the decimal sign is known


def assemble(
    found: FoundTable, about: Mapping[str, str], options: ExtractPaperRequest, known: KnownNames | None = None
) -> BenchmarkTable:
    """Read a table. `about` is what the document says of all its tables, because captions refer to each other."""
    parts = [
        _Assembly(found, lay_out(section), about, options, known or KnownNames())
        for section in split_sections(found.table)
    ]
    for part in parts:
        part.read()
    return _conclude(found, parts)


class _Assembly:
    """A part of a table that has one header."""

    def __init__(
        self,
        found: FoundTable,
        layout: Layout,
        about: Mapping[str, str],
        options: ExtractPaperRequest,
        known: KnownNames,
    ) -> None:
        self.found = found
        self.layout = layout
        self.options = options
        self.about = about[found.id]
        inherited = [about[name] for number in _REFERENCE.findall(self.about) if (name := f"Table {number}") in about]
        self.notation = {**labels.find_arrows(" ".join(inherited)), **labels.find_arrows(self.about)}
        assign_roles(layout, " ".join([self.about, *inherited]), known, options.columns, " ".join(found.nearby))
        self.no_deviation = labels.is_not_deviation(self.about)
        self.unread: list[Unread] = []
        self.doubtful: list[Unread] = []
        self.drafts: dict[EntryKey, _Draft] = {}
        self.directions: dict[str, Better | None] = {}
        self.cells = 0
        self.groups = list(self._name_groups())
        thousands = [self._choose_decimal(c) for c in range(len(layout.kinds))]
        self.some_comma = any(decimal == "comma" for decimal, _ in thousands) and options.decimal == "point"
        self.columns = [self._read_column(c, *thousands[c]) for c in range(len(layout.kinds))]
        self.named = self._find_named()
        pairs = (labels.split_alternatives(column.label)[1:] for column in self.columns)
        self.alternatives = Counter(labels.find_metric(name) or name for names in pairs for name in names)

    def _choose_decimal(self, c: int) -> tuple[Decimal, bool]:
        if self.options.decimal != "point" or self.layout.kinds[c] not in {"value", "condition"}:
            return self.options.decimal, True
        return values.choose_decimal(row.cells[c].text for row in self.layout.rows)

    def _find_named(self) -> list[str]:
        """The metric that the texts about the table name: the nearest text that names one only."""
        texts = (self.found.title, f"{self.found.title}. {self.found.description}", *self.found.nearby)
        for text in texts:
            if found := labels.find_metrics(self._of_all(text)):
                return found
        return []

    def _axes(self, role: Role, *, of_rows: bool) -> Iterator[int]:
        for i, axis in enumerate(self.layout.axes):
            if self.layout.roles.get(i) == role and axis.is_of_rows == of_rows:
                yield i

    def _row_names(self, row: DataRow, r: int) -> tuple[dict[Role, str], list[str], Better | None, str]:
        """What a row names by role, what else it is known by, and the direction and unit that it states."""
        names: dict[Role, str] = {}
        others: list[str] = []
        unit, way = "", next((part.direction for part in row.keys if part.direction), None)
        for i, axis in enumerate(self.layout.axes):
            if not axis.is_of_rows:
                continue
            role, value = self.layout.roles.get(i), axis.labels[r]
            label = labels.read_label(row.title) if axis.kind == "group" else row.keys[axis.number]
            if role:
                names[role] = value
                if role == "metrics":
                    unit, way = label.unit, label.direction or way
                elif label.unit:
                    unit = label.unit
            elif axis.kind == "group":
                others.insert(0, value)
            elif value and not labels.is_hardware(axis.name):
                others.append(value)
        title = [others.pop(0)] if others and row.title and labels.read_label(row.title).name == others[0] else []
        return names, [*title, *(each for each in row.parents), *others], way, unit

    def _name_groups(self) -> Iterator[tuple[tuple[str, ...] | int, list[tuple[int, str]]]]:
        """The identity of each row: all its names, its parents and its group, and more where rows still are alike.

        Rows that differ in the metric alone belong together; those that do not differ at all are told apart by line.
        """
        rows = self.layout.rows
        told = [self._row_names(row, r) for r, row in enumerate(rows)]
        by_metric = next(self._axes("metrics", of_rows=True), None) is not None
        whole = [(tuple(sorted(names.items())), tuple(others)) for names, others, _, _ in told]
        extra: list[tuple[tuple[int, str], ...]] = [() for _ in rows]  # each with its column
        own = [c for c in self.layout.columns("condition") if labels.split_label(self._label(c)).rest]
        shared = [c for c in self.layout.columns("condition") if c not in own]
        for columns in (*([c] for c in shared), own, *([c] for c in self.layout.columns("note"))):
            twins: dict[object, list[tuple[str, ...]]] = {}
            texts = [tuple(values.spell(row.cells[c].text) for c in columns) for row in rows]
            for key, text in zip(zip(whole, extra, strict=True), texts, strict=True):
                twins.setdefault(key, []).append(text)
            extra = [
                (*more, *self._label_all(columns, text))
                if len(set(twins[name, more])) > 1 else more
                for name, more, text in zip(whole, extra, texts, strict=True)
            ]  # fmt: skip
        counts = Counter(zip(whole, extra, strict=True))
        for r, (name, more) in enumerate(zip(whole, extra, strict=True)):
            others = told[r][1]
            place = [(-1, f"line {rows[r].line}")] if counts[name, more] > 1 else []
            named = tuple(f"{role} {value}" for role, value in name[0] if role != "metrics")
            told_by = [*((-1, other) for other in others), *more, *place]
            yield (*named, *(text for _, text in told_by)) if by_metric else r, told_by

    def _label_all(self, columns: Sequence[int], texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        yield from ((c, f"{self._label(c)} {each}".strip()) for c, each in zip(columns, texts, strict=True) if each)

    def _label(self, c: int) -> str:
        return self.layout.label(c)

    def read(self) -> None:
        for line, name in self.layout.empty_groups:
            self.unread.append(
                Unread(line=line, row=name, why="it has no values and no rows below it: a row or a group?")
            )
        failed: dict[int, list[Unread]] = {}
        # How often a conversion wrote each number of this table; a whole number cannot tell it by itself.
        counts = (values.count_repeats(cell.text) for row in self.layout.rows for cell in row.cells)
        repeats = next((count for count in counts if count > 1), 1)
        for r, row in enumerate(self.layout.rows):
            for c in self.layout.columns("value"):
                self._read_value(r, c, repeats, failed)
            self._read_conditions(r, row)
        self._report(failed)
        line = self.found.table.line
        self.doubtful += [Unread(line=line, why=why) for why in self.layout.doubts]
        self._doubt_names()

    def _read_column(self, c: int, decimal: Decimal, clear: bool) -> _Column:
        names: dict[Role, str] = {}
        loose: list[str] = []  # of levels that name nothing on their own: joined to the next one that does
        header = [level[c] for level in self.layout.headers if level[c]]
        said = [labels.read_label(part) for part in header]
        label = self.layout.label(c)
        for i, axis in enumerate(self.layout.axes):
            if axis.is_of_rows:
                continue
            role, name = self.layout.roles.get(i), axis.labels[c]
            if role is None:
                loose += [name] if name and len(axis.distinct) > 1 else []
            elif name or axis.kind != "rest" or role == "datasets":
                names[role] = " / ".join([*loose, name] if name else loose)
                loose = []
        if loose and names and "metrics" not in names:
            last = list(names)[-1]
            names[last] = " / ".join([names[last], *loose])
            loose = []
        condition = labels.find_condition(names.get("metrics", "") or label) or ""
        text = " ".join(header)
        return _Column(
            names=names,
            extra=" / ".join(loose),
            condition=condition,
            label=label,
            direction=next((part.direction for part in said if part.direction), None),
            unit=next((part.unit for part in reversed(said) if part.unit), ""),
            # A header that is only a number or a letter is decided by the caption.
            parentheses=self.options.parentheses
            or labels.find_parentheses(text)
            or labels.find_parentheses(self.about),
            decimal=decimal,
            clear=clear,
        )

    def _find_names(self, named: Mapping[Role, str], column: _Column, unit: str) -> tuple[str, str, tuple[str, ...]]:
        """The model, the data set and the metrics of a cell, by the names of its row and column."""
        model, dataset, metric = (named.get(role, "") for role in ("models", "datasets", "metrics"))
        metrics: tuple[str, ...] = ()
        if metric:
            metrics, more = self._read_metric(metric)
            dataset = dataset or more
        for name, role in ((dataset, "datasets"), (model, "models")):
            part = labels.split_label(name)
            alone = part.metric and not part.rest and not (labels.is_dataset(name) or labels.is_model(name))
            if metrics or not part.metric or not (part.rest or (alone and role == "datasets")):
                continue
            metrics = (part.metric,)
            if role == "datasets":
                dataset = part.rest or ALL
            else:
                model = part.rest
        if _AVERAGE.fullmatch(dataset):
            dataset = ALL
        summed = "datasets" in column.names and not column.names["datasets"]
        texts = (f"{self.found.title}. {self.found.description}", *self.found.nearby)
        told = next((found[0] for text in texts if len(found := labels.find_datasets(text)) == 1), "")
        dataset = dataset or (ALL if summed else "") or self.options.dataset or told or UNNAMED
        metrics = metrics or (self._unsaid_metric(column.direction, column.unit or unit),)
        if column.extra:
            metrics = tuple(f"{column.extra} / {each}" if each != UNNAMED else column.extra for each in metrics)
        return model or self.options.model or UNNAMED, dataset, metrics

    def _read_metric(self, name: str) -> tuple[tuple[str, ...], str]:
        """The metrics that a label names, and the data set if it names one too."""
        parts = labels.split_alternatives(name)
        known = [labels.find_metric(part) for part in parts]
        if len(parts) > 1 and all(known) and not labels.find_metric(name):
            return tuple(each or "" for each in known), ""
        part = labels.split_label(name)
        if part.metric and part.rest and labels.is_dataset(part.rest):
            return (part.metric,), part.rest
        if part.metric and part.rest and re.search(r"\(|\^", name):
            return (f"{part.metric} ({part.rest})",), ""
        return (labels.find_metric(name) or name,), ""

    def _unsaid_metric(self, direction: Better | None, unit: str) -> str:
        """The metric that the table leaves to its caption, or to the user."""
        if self.options.metric:
            return self.options.metric
        if direction and direction in self.notation:
            return self.notation[direction]
        arrows = {labels.read_label(part).direction for level in self.layout.headers for part in level} - {None}
        is_cost = unit in _UNIT_METRICS or re.fullmatch(r"[KMGT]i?B", unit)
        if not is_cost and len(self.named) == 1 and len(arrows) < 2:
            return self.named[0]
        for text in (f"{self.found.title}. {self.found.description}", *self.found.nearby):
            if (is_cost or not self.named) and (found := labels.find_cost(text, unit)):
                return found
        if is_cost:
            return _UNIT_METRICS.get(unit, "memory")
        return f"{UNNAMED}_{direction}" if direction and len(arrows) > 1 else UNNAMED

    def _of_all(self, caption: str) -> str:
        """The caption without sentences that are of some data sets only: "QQP and MRPC are F1"."""
        axes = [self.layout.axes[i] for i, role in self.layout.roles.items() if role == "datasets"]
        words = {match[0] for axis in axes for name in axis.distinct if (match := _WORD.match(name))}

        def partial(sentence: str) -> bool:
            return 0 < len(words.intersection(_WORD.findall(sentence))) < len(words)

        return " ".join(each for each in re.split(r"(?<=[.;])\s+", caption) if not partial(each))

    def _read_value(self, r: int, c: int, repeats: int, failed: dict[int, list[Unread]]) -> None:
        row, column = self.layout.rows[r], self.columns[c]
        cell = row.cells[c]
        if not values.spell(cell.text) or (
            cell.columns > 1 and cell.spread
        ):  # the latter was looked at where it begins
            return
        self.cells += 1
        if column.condition and column.names.get("metrics"):
            self._note_condition(r, c, cell)
            return
        names, _, way, row_unit = self._row_names(row, r)
        told = {**names, **{role: name for role, name in column.names.items() if name}}
        model, dataset, metrics = self._find_names(told, column, row_unit)
        metrics, parts = self._split_cell(cell, column, metrics, dataset)
        problem = self._doubt_span(cell, c)
        if not problem and not parts:
            parts, problem = (
                [cell.text],
                f"the header names {len(metrics)} metrics, the cell has another number of them",
            )
        draft = self._draft(r, model, dataset)
        for part, metric in zip(parts, metrics, strict=False):
            reading = values.read_cell(
                part, emphasis=cell.emphasis, parentheses=column.parentheses, decimal=column.decimal
            )
            condition = labels.find_condition(metric) if "metrics" in names else None
            if reading.missing or condition:
                draft.notes += [f"{metric}: {note}" for note in reading.notes]
                self._set_condition(draft, condition or "", reading.text)
                continue
            refused = problem or _doubt_repeats(reading, repeats)
            if not refused and reading.value is not None and metric in draft.readings:
                refused = f"there is already a value of '{metric}' for '{model}' on '{dataset}'"
            if not self._accept(self._place(row, c, reading.text, refused or reading.why), reading, refused, failed, c):
                continue
            if not column.clear and self.some_comma and re.search(r"\d[.,]\d{3}(?!\d)", reading.text):
                self.doubtful.append(
                    self._place(row, c, reading.text, "decimals or thousands? Other columns have thousands")
                )
            unit = reading.unit or column.unit or row_unit or self._unit_of_all(metric)
            _note(draft, metric, reading, unit)
            self.directions[metric] = column.direction or way or self.directions.get(metric)

    def _accept(
        self, place: Unread, reading: CellReading, refused: str, failed: dict[int, list[Unread]], c: int
    ) -> bool:
        """Whether a reading has a value that counts. What is wrong with it, or in doubt, is listed."""
        if refused or reading.value is None:
            failed.setdefault(c, []).append(place)
            return False
        self.doubtful += [place] if reading.problem else []
        return True

    def _unit_of_all(self, metric: str) -> str:
        texts = (f"{self.found.title}. {self.found.description}", *self.found.nearby[:1])
        unit = next((found for text in texts if (found := labels.find_unit(text))), "")
        return unit if unit and (labels.find_cost(metric, "") or metric == UNNAMED or unit in {"%", "percent"}) else ""

    def _place(self, row: DataRow, c: int, text: str, why: str) -> Unread:
        return Unread(line=row.line, row=row.name, column=self.layout.names[c] or f"{c + 1}", text=text, why=why)

    def _draft(self, r: int, model: str, dataset: str) -> _Draft:
        key, group = self.groups[r]
        row = self.layout.rows[r]
        # A condition of one model tells the rows of the others apart only where they have none of their own.
        rests = {c: labels.split_label(self._label(c)).rest for c, _ in group if c >= 0}
        others = {c for c, rest in rests.items() if rest not in ("", model)} if model in rests.values() else set()
        identity = EntryKey(key, " / ".join(text for c, text in group if c not in others), model, dataset)
        if identity not in self.drafts:
            draft = self.drafts[identity] = _Draft(row.line)
            for i, axis in enumerate(self.layout.axes):
                if axis.kind == "key" and labels.is_hardware(axis.name) and i not in self.layout.roles:
                    draft.hardware = axis.labels[r] or None
        return self.drafts[identity]

    def _split_cell(
        self, cell: RawCell, column: _Column, metrics: tuple[str, ...], dataset: str
    ) -> tuple[tuple[str, ...], list[str]]:
        """The metrics and the parts of a cell that holds several values, by its header or by what it says itself."""
        names = labels.split_alternatives(column.label)
        if len(metrics) > 1:
            parts = composites.split_cell(cell.text, len(metrics))
            told = [metrics[0], *(f"{it} ({metrics[0]})" if self.alternatives[it] > 1 else it for it in metrics[1:])]
            if len(parts) == len(metrics):
                return tuple(told), [text for _, text in parts]
            return metrics, [cell.text] if values.read_cell(cell.text).missing else []
        if len(names) > 1 and len(parts := composites.split_cell(cell.text, len(names))) == len(names) and dataset:
            head = metrics[0]
            by_pair = "(" in column.label
            whole = by_pair and head not in (UNNAMED, column.label)
            told = [
                labels.find_metric(name) or _SHORT.get(name) or (f"{head} ({name})" if whole else name)
                for name in names
            ]
            told[1:] = [f"{name} ({told[0]})" if self.alternatives[name] > 1 else name for name in told[1:]]
            alike = {labels.find_metric(name) is None for name in names}
            if not by_pair or (len(alike) == 1 and not column.parentheses):
                return tuple(told), [text for _, text in parts]
        parts = composites.split_cell(cell.text)
        if len(parts) == 1 and not parts[0][0]:
            return metrics, [cell.text]
        found: list[str] = []
        for name, text in parts:
            unit = values.read_cell(text).unit
            fits = not found and (unit not in _UNIT_METRICS or labels.find_cost(metrics[0], unit))
            other = _UNIT_METRICS.get(unit, "memory" if re.fullmatch(r"[KMGT]i?B", unit) else metrics[0])
            found.append(labels.find_metric(name) or name if name else metrics[0] if fits else other)
        return tuple(found), [text for _, text in parts]

    def _doubt_span(self, cell: RawCell, c: int) -> str:
        spanned = {self.layout.names[i] for i in range(c, min(c + cell.columns, len(self.layout.names)))}
        return "a value over several columns: of which?" if len(spanned) > 1 else ""

    def _note_condition(self, r: int, c: int, cell: RawCell) -> None:
        """A column that is a condition of one model: those of the row's entries that are of it have it."""
        column = self.columns[c]
        names, _, _, _ = self._row_names(self.layout.rows[r], r)
        names.update({role: name for role, name in column.names.items() if name})
        model, dataset, _ = self._find_names({**names, "metrics": "value"}, column, "")
        for identity, draft in self.drafts.items():
            if identity.row == self.groups[r][0] and identity.model == model:
                self._set_condition(draft, column.condition, values.spell(cell.text))
        if not any(identity.row == self.groups[r][0] and identity.model == model for identity in self.drafts):
            self._set_condition(self._draft(r, model, dataset), column.condition, values.spell(cell.text))

    def _read_conditions(self, r: int, row: DataRow) -> None:
        """The columns of conditions and remarks: they hold for all entries of the row."""
        mine = {key: draft for key, draft in self.drafts.items() if key.row == self.groups[r][0]}
        for c in (*self.layout.columns("condition"), *self.layout.columns("note")):
            text, label = values.spell(row.cells[c].text), self.columns[c].label
            part = labels.split_label(label)
            own = [draft for key, draft in mine.items() if part.rest and part.condition and key.model == part.rest]
            for draft in own or mine.values() if text else ():
                if self.layout.kinds[c] == "condition":
                    name = part.condition if own else labels.find_condition(label) or label
                    self._set_condition(draft, name, text)
                elif labels.is_hardware(label):
                    draft.hardware = text
                else:
                    draft.notes.append(f"{label}: {text}" if label else text)

    def _set_condition(self, draft: _Draft, name: str, text: str) -> None:
        reading = values.read_cell(text)
        if (
            name in {"batch_size", "sequence_length"}
            and reading.value
            and reading.value.value == int(reading.value.value)
        ):
            draft.numbers[name] = int(reading.value.value)
        elif text and not reading.missing:
            draft.conditions[name] = text

    def _doubt_names(self) -> None:
        """What neither the table nor the texts about it name: once for the metric and once for the model."""
        drafts = [(key, draft, name) for key, draft in self.drafts.items() for name in draft.readings]
        lines = {
            "metric": [draft.line for _, draft, name in drafts if name.startswith(UNNAMED)],
            "model": [draft.line for key, draft, _ in drafts if key.model == UNNAMED],
        }
        for what, found in lines.items():
            if found:
                count = count_of(len(found), "value")
                why = f"neither the table nor the text about it names the {what} of {count} ({named(what)})"
                self.doubtful.append(Unread(line=min(found), why=why))

    def _report(self, failed: Mapping[int, Sequence[Unread]]) -> None:
        """A column of words is named once, not cell by cell."""
        for c, faults in failed.items():
            printed = sum(bool(values.spell(row.cells[c].text)) for row in self.layout.rows)
            words = not any(values.looks_like_result(fault.text) for fault in faults)
            if words and len(faults) > 3 and len(faults) == printed and len({fault.why for fault in faults}) == 1:
                first = faults[0]
                self.unread.append(first.replace(row="", why=f"and {printed - 1} more: {first.why}"))
            else:
                self.unread += faults

    def entries(self) -> list[BenchmarkEntry]:
        return [entry for each in self.drafts.items() if (entry := self._finish(*each)).metrics]

    def _finish(self, identity: EntryKey, draft: _Draft) -> BenchmarkEntry:
        metrics: dict[str, float] = {}
        stds: dict[str, float] = {}
        printed: dict[str, str] = {}
        notes = list(draft.notes)
        last = ""  # the metric to the left, of which a column "Std" is the deviation
        for metric, reading in draft.readings.items():
            assert reading.value is not None  # noqa: S101 (for the type checker)
            base = re.sub(r"[ _](?:std|sd)$", "", metric, flags=re.IGNORECASE)
            base = last if _BARE_STD.fullmatch(metric) else labels.find_metric(base) or base
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
            hardware=draft.hardware, notes=tuple(dict.fromkeys(notes)), std_values=stds, has_std=bool(stds),
            conditions=draft.conditions, line=draft.line,
            is_baseline=_BASELINE.search(f"{identity.group} {identity.model}") is not None, **draft.numbers,
        )  # fmt: skip


def _conclude(found: FoundTable, parts: Sequence[_Assembly]) -> BenchmarkTable:
    entries = _tell_apart([entry for part in parts for entry in part.entries()])
    groups: dict[str, dict[str, None]] = {}
    for entry in entries:
        groups.setdefault(entry.group, {})[entry.model_name] = None
    keys = list(dict.fromkeys(make_row_key(entry.group, entry.model_name) for entry in entries))
    ours = [key for key in keys if _OURS.search(key)]
    metrics = list(dict.fromkeys(name for entry in entries for name in entry.metrics))
    quality = [name for name in metrics if not labels.is_cost(name)] or metrics
    about = parts[0].about if parts else ""
    stated = labels.find_direction(about) if len(metrics) == 1 else None
    ways = {name: way for part in parts for name, way in part.directions.items() if way}
    unread = [*found.table.faults, *(each for part in parts for each in part.unread)]
    return BenchmarkTable(
        table_id=found.id, title=found.title, description=found.description,
        columns=tuple(dict.fromkeys(name for part in parts for name in part.layout.names)),
        row_groups={group: tuple(names) for group, names in groups.items()}, entries=tuple(entries),
        datasets_used=tuple(dict.fromkeys(entry.dataset for entry in entries)),
        models_compared=tuple(dict.fromkeys(entry.model_name for entry in entries)),
        primary_metric=quality[0] if quality else "", our_model_row=ours[0] if len(ours) == 1 else "",
        baseline_rows=tuple(key for key in keys if _BASELINE.search(key)),
        directions={name: way for name in metrics if (way := ways.get(name) or stated)},
        std_over=labels.find_std_over(about) if any(entry.has_std for entry in entries) else None,
        layout=tuple(dict.fromkeys(why for part in parts for why in part.layout.why)),
        unread=tuple(sorted(unread, key=lambda each: each.line)),
        doubtful=tuple(sorted((each for part in parts for each in part.doubtful), key=lambda each: each.line)),
        line=found.table.line, rows=sum(len(part.layout.rows) for part in parts),
        cells=sum(part.cells for part in parts),
        values=sum(len(entry.printed) - len(entry.std_values) for entry in entries),
    )  # fmt: skip


def _tell_apart(entries: Sequence[BenchmarkEntry]) -> list[BenchmarkEntry]:
    """Entries of one identity are told apart by their lines: parts of a table may name the same row."""
    counts = Counter((entry.group, entry.model_name, entry.dataset) for entry in entries)
    found = []
    for entry in entries:
        alike = counts[entry.group, entry.model_name, entry.dataset] > 1
        place = f"line {entry.line}"
        found.append(entry.replace(group=f"{entry.group} / {place}".removeprefix(" / ")) if alike else entry)
    return found


def _note(draft: _Draft, metric: str, reading: CellReading, unit: str) -> None:
    value = reading.value
    assert value is not None  # noqa: S101 (for the type checker)
    if _PARAMETERS.fullmatch(metric) and (unit in _SCALES or (not unit and value.value >= 1000)):
        draft.numbers["num_params"] = round(value.value * _SCALES.get(unit, 1))
    draft.readings[metric] = reading
    if unit:
        draft.units[metric] = unit
    draft.notes += [f"{metric}: {note}" for note in reading.notes]
    draft.notes += [f"{metric}: {reading.emphasis}"] if reading.emphasis else []


def _doubt_repeats(reading: CellReading, repeats: int) -> str:
    """In a table whose numbers are written several times, 313131 may be 31."""
    digits = reading.value.printed if reading.value else ""
    if repeats > 1 and reading.repeats == 1 and digits.isdecimal():
        for times in (2, 3):
            part = digits[: len(digits) // times]
            if part and part * times == digits:
                return f"a conversion may have written '{part}' {times} times"
    return ""
