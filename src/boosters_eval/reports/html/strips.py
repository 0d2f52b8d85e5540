"""Every repeat of every competitor in one metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.html.figures import AXIS, RIGHT, WIDTH, Figure, RowNames, caveat, level, x_axis
from boosters_eval.reports.html.svg import color, dot, fit, holdable, label, line, marker, swarm, text_width
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.reports.html.svg import Scale
    from boosters_eval.reports.model import ReportTable, Row, TableCell

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
