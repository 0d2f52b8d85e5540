"""Reference against measurement: what was expected, what was found, and what is accepted, on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.html.figures import AXIS, WIDTH, Figure, legend, x_axis
from boosters_eval.reports.html.svg import band, color, fit, holdable, label, line, marker, short

if TYPE_CHECKING:
    from boosters_eval.reports.html.svg import Scale
    from boosters_eval.reports.model import ReportTable, Row, TableCell

_ROW = 54  # the name, the reference, the measurement
_NAME, _REFERENCE_AT, _MEASURED_AT = 13, 27, 41  # their heights in a row
_REFERENCE, _MEASURED = 3, 0  # their colors and shapes: a diamond and a circle
_LONGEST = 54  # characters of a name


def reference_chart(table: ReportTable) -> Figure | None:
    """One row per pair of cells: mean ± standard deviation of both, over the band that is accepted.

    For a table with a column of the kind "reference", whose low and high are the band, and one of the kind "measured".
    """
    columns = {column.kind: position for position, column in enumerate(table.columns)}
    first, second = columns.get("reference"), columns.get("measured")
    if first is None or second is None:
        return None
    rows = [(row, row.cells[first], row.cells[second]) for row in table.rows if row.cells[first].mean is not None]
    every = [bound for _, expected, found in rows for cell in (expected, found) for bound in _extent(cell)]
    if not holdable(every):
        return None
    names = (table.columns[first].label, table.columns[second].label)
    parts, top = legend(names, {names[0]: _REFERENCE, names[1]: _MEASURED})
    bottom = top + _ROW * len(rows)
    scale = fit(every, 16, WIDTH - 16)
    title = table.columns[second].quantity or names[1]
    parts += x_axis(scale, top, bottom, title)
    for index, (row, expected, found) in enumerate(rows):
        parts += _pair(row, expected, found, scale, top + _ROW * index, names)
    said = "; ".join(f"{row.label}: {names[0]} {e.shown}, {names[1]} {f.shown}" for row, e, f in rows)
    accepted = "; the band is what is accepted" if any(e.low is not None for _, e, _ in rows) else ""
    return Figure(
        name=f"{table.name} {title}",
        title=table.title,
        height=bottom + AXIS,
        parts=parts,
        description=f"{title} of {table.name}. {said}.",
        caption=f"{title}: {names[0]} and {names[1]}, mean ± standard deviation{accepted}",
    )


def _pair(
    row: Row, expected: TableCell, found: TableCell, scale: Scale, top: float, names: tuple[str, str]
) -> list[str]:
    parts = []
    if expected.low is not None and expected.high is not None:
        parts.append(band(scale(expected.low), top + _NAME + 5, scale(expected.high), top + _ROW - 4))
    absent = f" ({found.status})" if found.mean is None else ""
    parts.append(label(8, top + _NAME, short(row.label, _LONGEST) + absent, "name"))
    for cell, name, series, y in (
        (expected, names[0], _REFERENCE, top + _REFERENCE_AT),
        (found, names[1], _MEASURED, top + _MEASURED_AT),
    ):
        if cell.mean is None:
            continue
        if cell.std:
            low, high = cell.mean - cell.std, cell.mean + cell.std
            parts.append(line(scale(low), y, scale(high), y, f"whisker {color(series)}"))
        parts.append(marker(scale(cell.mean), y, series, 5, "mean", f"{row.label}, {name}: {cell.shown}"))
    return parts


def _extent(cell: TableCell) -> list[float]:
    """Everything that the axis must hold of a cell."""
    if cell.mean is None:
        return []
    std = cell.std or 0.0
    return [cell.mean - std, cell.mean + std, *(bound for bound in (cell.low, cell.high) if bound is not None)]
