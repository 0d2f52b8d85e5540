"""A value that changes with what was spent: a line for each competitor, with a mark at each point that was reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.reports.html import svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.reports.tables import Column

_PLOT = 190  # the height of the plot
_MARKS = 24  # of a line; more would hide it


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Where a line has come to, and what a pointer reads."""

    x: float
    y: float
    told: str


def draw_curves(
    lines: Mapping[str, Sequence[CurvePoint]], series: Mapping[str, int], column: Column, across: str, **about: str
) -> svg.Figure | None:
    """The lines with their legend above; None if there is nothing that the axes can hold."""
    every = [point for points in lines.values() for point in points]
    xs, ys = [point.x for point in every], [point.y for point in every]
    if not (svg.holdable(xs) and svg.holdable(ys)):
        return None
    parts, top = svg.legend(lines, series)
    bottom = top + _PLOT
    vertical = svg.fit(ys, bottom - 4, top + 6)
    left = svg.y_room(vertical)
    horizontal = svg.fit(xs, left + 6, svg.WIDTH - svg.RIGHT)
    parts += svg.y_axis(vertical, left, column)
    parts += svg.x_axis(horizontal, top, bottom, across)
    for name, points in lines.items():
        path = " ".join(f"{svg.px(horizontal(one.x))},{svg.px(vertical(one.y))}" for one in points)
        parts.append(f'<g class="{svg.color(series[name])}"><polyline class="trace" points="{path}"/></g>')
        for one in points[:: -(-len(points) // _MARKS)]:
            parts.append(svg.marker(horizontal(one.x), vertical(one.y), series[name], 3.2, "mean", one.told))
    return svg.Figure(height=bottom + svg.AXIS, parts=parts, **about)
