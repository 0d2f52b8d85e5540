"""Where one library loses to another, laid out: the answer, the slices with their chart, and the worst rows."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, count_of, format_share, group_digits, join_words
from boosters_eval.metrics.task import Task
from boosters_eval.reports.document import Charts, Document, Notes, PlainTable, Results, Section
from boosters_eval.reports.numbers import MISSING, as_given, name_error, number, percent
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell
from boosters_eval.stats.slices import LEAST_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.where.findings import ConditionFound, ErrorGap, FoundSlices, LosingSlice, LostRow
    from boosters_eval.reports.html.svg import Figure

_NAMED = 2  # further slices in the answer
_VALUES = 5  # columns of a row that are shown; the data has all
_LONGEST = 40  # characters of a value
_LARGE = 1e4  # from which a value is shown with more digits
_ROW = 26  # the height of a slice in the chart


def lay_out(found: FoundSlices) -> Document:
    table = _build_table(found)
    worst = tuple(_tell_row(found, row) for row in found.worst)
    target = () if all(row.target is None for row in found.worst) else ("Target",)
    headings = (found.noun.capitalize(), *target, found.a, found.b, "Values")
    rows = PlainTable("Worst rows", headings, worst, measured=True)
    title = f"The {_plural(found)} on which {found.a} loses most, with {_SAID.get(found.task, found.label)}"
    return Document(
        f"Where {found.a} loses to {found.b} on {found.config}",
        tuple(_answer(found)),
        sections=(
            Section("slices", "", (Results(table, Charts(partial(_draw, found, table))),), short="Slices"),
            Section("worst", title, (rows,) if worst else (), short="Worst rows"),
            Section("notes", "Notes", (Notes(tuple(_notes(found))),)),
        ),
    )


_SAID = {
    Task.REGRESSION: "what was predicted",
    Task.BINARY: "the probability of their class",
    Task.MULTICLASS: "the probability of their class",
}


def _answer(found: FoundSlices) -> Iterator[str]:
    """Where, by how much, and what else can be asked."""
    a, b, whole = found.a, found.b, found.overall
    overall = f"On all {_plural(found)}: {_tell_gap(found, whole)}."
    if found.slices:
        worst, *others = found.slices
        share = _tell_share(worst.share)
        yield (
            f"{a} loses to {b} most where {describe(worst)} ({share} of the {_plural(found)}):"
            f" {_tell_gap(found, worst.gap)}."
        )
        if others:
            also = [f"where {describe(one)} ({_tell_percent(one.gap, whole=False)})" for one in others]
            yield f"It loses also {join_words(also[:_NAMED])}{'; more parts are below' if also[_NAMED:] else ''}."
        yield f"{overall} Outside that part: {_tell_percent(worst.elsewhere)}."
    elif found.tested is None:
        yield (
            f"It cannot be told where {a} loses to {b}: {count_of(found.units, _unit(found))} are too few to look for"
            f" parts of them, {LEAST_UNITS} are needed. {overall}"
        )
    elif not whole.difference and whole.low == whole.high:
        yield f"{a} and {b} err alike on every {found.noun} of {found.dataset}: neither loses anywhere."
        return
    else:
        nowhere = f"no part of {found.dataset} was found where"
        if whole.low is not None and whole.low > 0:
            yield f"{a} loses to {b} on the whole, and {nowhere} it loses more. {overall}"
        else:
            yield f"N{nowhere[1:]} {a} loses to {b} by more than chance. {overall}"
        if found.detectable is not None:
            yield (
                f"A part of a tenth of the {_plural(found)} would have been found from an error about"
                f" {percent(found.detectable / 100, sign=False)} larger on."
            )
    again = shlex.join(["boosters-eval", "where", found.run, "-d", found.config, "-l", b, a])
    yield f"Next: see where {b} loses to {a}: {again}"


def describe(part: LosingSlice) -> str:
    return join_words(_describe(each) for each in part.conditions)


def _describe(condition: ConditionFound) -> str:
    low, high = (None if each is None else _show(each) for each in (condition.low, condition.high))
    if condition.value is not None or (low is not None and low == high):
        return f"{condition.column} is {low or _show(condition.value)}"
    bounds = {(True, True): f"from {low} to {high}", (True, False): f"at least {low}", (False, True): f"at most {high}"}
    return f"{condition.column} is {bounds.get((low is not None, high is not None), 'missing')}"


def _sign(condition: ConditionFound) -> str:
    """The same in signs, for tables and charts."""
    column, low, high = condition.column, condition.low, condition.high
    if condition.value is not None or (low is None and high is None):
        return _describe(condition)
    left, right = "" if low is None else f"{_show(low)} \u2264 ", "" if high is None else f" \u2264 {_show(high)}"
    return f"{column} \u2265 {_show(low)}" if high is None else f"{left}{column}{right}"


def _show(value: float | str | None) -> str:
    if value is None:
        return MISSING
    if isinstance(value, str):
        return f"'{value if len(value) <= _LONGEST else f'{value[:_LONGEST]}...'}'"
    return as_given(value) if value.is_integer() or abs(value) >= _LARGE else f"{value:.5g}"


def _plural(found: FoundSlices) -> str:
    return "queries" if found.noun == "query" else "rows"


def _unit(found: FoundSlices) -> str:
    return found.noun if found.units == found.rows else "group"


def _tell_gap(found: FoundSlices, gap: ErrorGap) -> str:
    return f"{found.label} {number(gap.a)} against {number(gap.b)}, {_tell_percent(gap, found)}"


def _tell_share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _tell_percent(gap: ErrorGap, found: FoundSlices | None = None, *, whole: bool = True) -> str:
    """The difference in percent of the second one's error, with its interval if it is to be whole."""
    if gap.percent is None:
        return f"{gap.difference:+.3g}"
    of = "" if found is None else name_error(found.label, found.best or 0.0, " of ")
    text = f"{percent(gap.percent / 100)}{of}"
    if not whole or gap.percent_low is None or gap.percent_high is None:
        return text
    return f"{text} ({percent(gap.percent_low / 100)} to {percent(gap.percent_high / 100)})"


def _build_table(found: FoundSlices) -> ReportTable:
    """The slices, and all rows below them."""
    higher = found.higher_is_better
    columns = (
        Column("rows", _plural(found).capitalize(), None, kind="count"),
        Column("a", found.a, higher),
        Column("b", found.b, higher),
        Column("difference", "Difference", None, kind="difference", primary=True),
        Column("elsewhere", "Elsewhere", None, kind="difference"),
    )
    slices = tuple(
        Row((clean(", ".join(map(_sign, one.conditions))),), _cells(one.rows, one.share, one.gap, one.elsewhere))
        for one in found.slices
    )
    whole = Row((f"all {_plural(found)}",), _cells(found.rows, 1.0, found.overall, None))
    return ReportTable(
        found.config,
        ("Slice",),
        columns,
        slices or (whole,),
        keys={"dataset": found.dataset, "metric": found.metric},
        details=(found.label, count_of(len(found.slices), "slice")),
        trivial=(whole,) if slices else (),
    )


def _cells(rows: int, share: float, gap: ErrorGap, elsewhere: ErrorGap | None) -> tuple[TableCell, ...]:
    rest = None if elsewhere is None else elsewhere.difference
    return (
        TableCell(float(rows), None, rows, f"{group_digits(rows)} ({_tell_share(share)})"),
        TableCell(gap.a, None, rows, number(gap.a)),
        TableCell(gap.b, None, rows, number(gap.b)),
        TableCell(gap.difference, None, rows, _tell_percent(gap), low=gap.low, high=gap.high),
        TableCell(rest, None, rows, MISSING if elsewhere is None else _tell_percent(elsewhere)),
    )


def _tell_row(found: FoundSlices, row: LostRow) -> tuple[str | int | float | None, ...]:
    """The row by what was said of it, and the values that slices are made of first."""
    first = dict.fromkeys(each.column for part in found.slices for each in part.conditions)
    names = [*first, *(name for name in row.values if name not in first)][:_VALUES]
    values = ", ".join(f"{name} {_show(row.values[name])}" for name in names)
    target = () if row.target is None else (as_given(row.target),)
    return (row.row, *target, number(row.said_a), number(row.said_b), values)


def _notes(found: FoundSlices) -> Iterator[str]:
    yield from found.remarks
    if found.tested is not None:
        tested = f"{count_of(found.tested, 'slice')} {'was' if found.tested == 1 else 'were'}"
        half = "groups, kept whole," if _unit(found) == "group" else _plural(found)
        yield (
            f"Slices are looked for on one half of the {half} and tested on the other half, then the other way"
            f" around. {tested} tested; what is told of a slice is of the half that it was tested on,"
            f" and its interval, with the luck of training, holds for all slices together at"
            f" {format_share(1 - found.alpha)}."
        )
    if found.worst:
        yield (
            f"Rows are counted from 0 as in the data set; {_plural(found)} that were tested several times have the mean"
            f" of {count_of(found.splits, 'split')}."
        )


def _draw(found: FoundSlices, table: ReportTable) -> list[Figure]:
    """The difference of each slice and of all rows, with its interval."""
    from boosters_eval.reports.html import svg  # noqa: PLC0415 (only what is shown is drawn)

    place = next(index for index, column in enumerate(table.columns) if column.primary)
    rows = [(row.label, row.cells[place]) for row in (*table.rows, *table.trivial)]
    every = [value for _, cell in rows for value in (cell.mean, cell.low, cell.high) if value is not None]
    if not svg.holdable(every):
        return []
    chart = svg.RowChart([name for name, _ in rows], [*every, 0.0], top=8.0)
    for index, (name, cell) in enumerate(rows):
        y = chart.add(name, _ROW)
        series = 1 if index < len(found.slices) else 0
        if cell.low is not None and cell.high is not None:
            chart.parts.append(
                svg.line(chart.scale(cell.low), y, chart.scale(cell.high), y, f"bar {svg.color(series)}")
            )
        if cell.mean is not None:
            chart.parts.append(svg.marker(chart.scale(cell.mean), y, series, 5, "mean", f"{name}: {cell.text}"))
    zero = chart.scale(0.0)
    title = f"{found.label}: error of {found.a} minus that of {found.b}"
    said = "; ".join(f"{name} {cell.text}" for name, cell in rows)
    return [
        chart.draw(
            title,
            svg.line(zero, chart.top, zero, chart.bottom, "unit"),
            name=f"{found.config} slices",
            title=f"Where {found.a} loses to {found.b} on {found.config}",
            description=f"{title}. {said}.",
            caption=f"{title}, with its interval: right of 0 {found.a} loses",
        )
    ]
