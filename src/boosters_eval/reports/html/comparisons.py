"""Paired differences from one competitor, with the intervals that the verdicts are read from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.reports.html.svg import (
    AXIS,
    RIGHT,
    WIDTH,
    Figure,
    RowNames,
    caveat,
    color,
    dot,
    fit,
    holdable,
    label,
    level,
    line,
    marker,
    px,
    quantity,
    swarm,
    text_width,
    verdict_mark,
    x_axis,
)
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.reports.html.svg import Scale
    from boosters_eval.reports.tables import Column, PairVerdict, ReportTable, Row, TableCell


_MEAN = 16  # the height for mean and interval, above the dots
_STACK = 44  # the greatest height of a stack of dots
_MANY = 30  # repeats from which the dots are smaller


def metric_chart(table: ReportTable, position: int, series: Mapping[str, int], alpha: float) -> Figure | None:
    """One row per competitor: the mean with its interval, and below it every value as a dot; equal ones are stacked."""
    column = table.columns[position]
    rows = [(row, row.cells[position]) for row in table.rows if row.cells[position].mean is not None]
    every = [v for _, cell in rows for v in (*cell.values, cell.low, cell.high, cell.mean) if v is not None]
    if not holdable(every):
        return None
    names = RowNames.of(row.label for row, _ in rows)
    lines, beyond = _references(table, position, every)
    scale = fit([*every, *lines.values()], names.left + 8, WIDTH - RIGHT)
    top = y = 6.0 + 13 * len(lines)
    parts: list[str] = []
    for row, cell in rows:
        strip, height = _strip(row, cell, scale, y + names.extra, series[row.label])
        kind = "name best" if cell.best else "name"
        parts += [*strip, names.write(row.label, y, y + _MEAN / 2 + 4, kind)]
        y += names.extra + height
    parts = [*x_axis(scale, top, y, column.heading), *_lines(lines, scale, y), *parts]
    said = "; ".join(f"{row.label} {cell.text}" for row, cell in rows)
    interval = f" with its {level(alpha)} interval" if any(cell.low is not None for _, cell in rows) else ""
    return Figure(
        name=f"{table.name} {column.name} strips",
        title=table.title,
        height=y + AXIS,
        parts=parts,
        description=f"{column.label} of {table.name}: {said}.",
        caption=f"{column.label}: the mean{interval}, and each repeat as a dot{beyond}{caveat(column)}",
    )


def _strip(row: Row, cell: TableCell, scale: Scale, top: float, series: int) -> tuple[list[str], float]:
    """The marks of a row, and their height."""
    parts, y = [], top + _MEAN / 2 + 2
    if cell.low is not None and cell.high is not None:
        parts.append(line(scale(cell.low), y, scale(cell.high), y, f"bar {color(series)}"))
    if cell.mean is not None:
        parts.append(marker(scale(cell.mean), y, series, 5, "mean", f"{row.label}: {cell.text} (n = {cell.n})"))
    found = [(value, name) for value, name in zip(cell.values, row.points, strict=True) if value is not None]
    size = 2.6 if len(found) <= _MANY else 1.8
    levels = swarm([round(scale(value), 1) for value, _ in found], 2 * size)
    step = min(2 * size, _STACK / (max(levels, default=0) + 1))
    first = top + _MEAN + 4 + size
    for (value, name), stacked in zip(found, levels, strict=True):
        parts.append(dot(scale(value), first + step * stacked, size, series, f"{name}: {number(value, 5)}"))
    return parts, first + step * max(levels, default=0) + size + 5 - top


def _references(table: ReportTable, position: int, every: list[float]) -> tuple[dict[str, float], str]:
    """The trivial predictions that fit on the axis without squeezing the rest, and a remark on those that do not."""
    low, high = min(every), max(every)
    room = (high - low) or abs(high) or 1.0
    shown, beyond = {}, ""
    for row in table.trivial:
        mean = row.cells[position].mean
        if mean is None:
            continue
        if low - room <= mean <= high + room:
            shown[row.label] = mean
        else:
            beyond += f"; {row.label} is beyond the axis ({row.cells[position].text})"
    return shown, beyond


def _lines(values: Mapping[str, float], scale: Scale, bottom: float) -> list[str]:
    parts, top = [], 13 * len(values) + 3  # below all names, which a line must not cross
    for index, (name, value) in enumerate(values.items()):
        y, half = 13 * (index + 1), text_width(name, 10.5) / 2
        at = min(max(scale(value), half), WIDTH - half)
        parts += [line(scale(value), top, scale(value), bottom, "unit"), label(at, y, name, "tick", "middle")]
    return parts


_OPPOSITE = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Contrast:
    """A competitor against the reference."""

    name: str
    size: float | None  # the difference, or the ratio of times and memory
    low: float | None
    high: float | None
    verdict: str  # of the competitor
    text: str

    def numbers(self) -> list[float]:
        """What the axis must hold."""
        return [v for v in (self.size, self.low, self.high) if v is not None]


def leader(table: ReportTable, position: int) -> str | None:
    """Who has the best mean over the splits that all have, or over their own splits if there is none.

    As in the statistics, nobody leads whom another one was shown to be better than, unless all were.
    """
    higher = table.columns[position].higher_is_better
    values = {row.label: by_point(row, position) for row in table.rows if row.cells[position].mean is not None}
    if higher is None or not values:
        return None
    shared = set.intersection(*(set(found) for found in values.values()))
    means = {
        name: math.fsum(value for point, value in found.items() if point in shared or not shared)
        / (len(shared) or len(found) or 1)
        for name, found in values.items()
    }
    beaten = {lost for pair in table.pairs if pair.metric == table.columns[position].name for lost in _losers(pair)}
    standing = {name: mean for name, mean in means.items() if name not in beaten} or means
    return (max if higher else min)(standing, key=standing.__getitem__)


def _losers(pair: PairVerdict) -> tuple[str, ...]:
    return {"better": (pair.b,), "worse": (pair.a,)}.get(pair.verdict, ())


def by_point(row: Row, position: int) -> dict[str, float]:
    """The values of a row in one column, by the repeat of each."""
    pairs = zip(row.points, row.cells[position].values, strict=False)
    return {point: value for point, value in pairs if value is not None}


def contrast(pair: PairVerdict, reference: str, *, as_ratio: bool) -> Contrast:
    """A pair, turned so that the reference is its second member."""
    given = (pair.ratio if as_ratio else pair.difference, pair.low, pair.high)
    size, low, high = (_drawable(value, as_ratio=as_ratio) for value in given)
    if pair.a != reference:
        return Contrast(pair.a, size, low, high, pair.verdict, pair.text)
    size, high, low = (None if v is None else 1 / v if as_ratio else -v for v in (size, low, high))
    return Contrast(pair.b, size, low, high, _OPPOSITE.get(pair.verdict, pair.verdict), pair.text)


def _drawable(value: float | None, *, as_ratio: bool) -> float | None:
    """The value, if an axis can show it."""
    return value if value is not None and math.isfinite(value) and (value > 0 or not as_ratio) else None


_ROW, _TOP, _BOTTOM = 26, 20, 4
_WORDS = 84  # the width of the verdicts at the right


def forest_chart(table: ReportTable, position: int, *, reference: str | None = None) -> Figure | None:
    """One row per competitor other than the reference: the paired difference, its interval and the verdict."""
    column = table.columns[position]
    pairs = [pair for pair in table.pairs if pair.metric == column.name]
    reference = reference or leader(table, position)
    as_ratio = any(pair.ratio is not None for pair in pairs)
    rows = [contrast(pair, reference, as_ratio=as_ratio) for pair in pairs if reference in (pair.a, pair.b)]
    every = [value for row in rows for value in row.numbers()]
    if reference is None or not holdable(every):
        return None
    names = RowNames.of(row.name for row in rows)
    same = 1.0 if as_ratio else 0.0
    scale = fit([*every, same], names.left + 8, WIDTH - _WORDS - 8, log=as_ratio)
    height = _ROW + names.extra
    bottom = _TOP + height * len(rows) + _BOTTOM
    relation = "over" if as_ratio else "minus"
    title = f"{quantity(column)} {relation} that of {reference}"
    parts = [*x_axis(scale, _TOP, bottom, title), *_sides(scale, same, column, bottom)]
    for index, row in enumerate(rows):
        top = _TOP + height * index
        middle = top + names.extra + _ROW / 2
        parts += [names.write(row.name, top, middle), *_contrast(row, scale, middle)]
    alpha = next((pair.alpha for pair in pairs if pair.alpha is not None), None)
    interval = "" if alpha is None else f", with its {level(alpha)} interval (all pairs)"
    said = "; ".join(f"{row.name} {row.verdict}" for row in rows)
    return Figure(
        name=f"{table.name} {column.name} differences",
        title=table.title,
        height=bottom + AXIS,
        parts=parts,
        description=f"{title}, {table.name}: {said}.",
        caption=f"{title}{interval} and verdict: it may exclude {same:g} where the bars of the means overlap",
    )


def _contrast(row: Contrast, scale: Scale, y: float) -> list[str]:
    word = row.verdict if row.size is not None else "not compared"
    parts = [label(WIDTH - 4, y + 4, word, f"v {row.verdict}", "end")]
    if row.low is not None and row.high is not None:
        low, high = scale(row.low), scale(row.high)
        ends = "".join(f"M{px(end)} {px(y - 4)}v8" for end in (low, high))
        parts.append(f'<path class="interval {row.verdict}" d="M{px(low)} {px(y)}H{px(high)}{ends}"/>')
    if row.size is not None:
        parts.append(verdict_mark(scale(row.size), y, row.verdict, f"{row.name}: {number(row.size, 3)}. {row.text}"))
    return parts


def _sides(scale: Scale, same: float, column: Column, bottom: float) -> list[str]:
    """The line of no difference, and what its sides mean, where there is room for it."""
    at = scale(same)
    left, right = ("← worse", "better →") if column.higher_is_better else ("← better", "worse →")
    parts = [line(at, _TOP - 4, at, bottom, "unit")]
    if at - text_width(left) - 5 > 0:
        parts.append(label(at - 5, _TOP - 7, left, "tick", "end"))
    if at + text_width(right) + 5 < WIDTH:
        parts.append(label(at + 5, _TOP - 7, right, "tick"))
    return parts
