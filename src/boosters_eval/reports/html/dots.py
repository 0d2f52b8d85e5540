"""Ranked values as dots with their intervals: one drawing per competitor, on one scale and in one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.reports.html.figures import AXIS, RIGHT, WIDTH, Figure, RowNames, x_axis
from boosters_eval.reports.html.svg import color, fit, holdable, label, line, marker, short
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.reports.html.svg import Scale

_HEADING = 20
_ROW = 18


@dataclass(frozen=True)
class Dot:
    """A value with its interval, if there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def places(self) -> list[float]:
        """All that the scale must hold."""
        return [place for place in (self.value, self.low, self.high) if place is not None]


def dot_charts(
    what: str,
    axis: str,
    order: Sequence[str],
    panels: Mapping[str, Mapping[str, Dot]],
    series: Mapping[str, int],
    note: str,
) -> list[Figure]:
    """One figure per panel: its dots in the given order, from the top. What a panel lacks has no dot."""
    every = [0.0, *(place for dots in panels.values() for name in order if name in dots for place in dots[name].places)]
    if not order or len(every) == 1 or not holdable(every):
        return []
    names = RowNames.of(order)
    scale = fit(every, names.left + 8, WIDTH - RIGHT)
    height = _ROW + names.extra
    figures = []
    for panel, dots in panels.items():
        parts, y = [label(4, 13, short(panel, 44), "heading")], float(_HEADING)
        for name in order:
            middle = y + names.extra + _ROW / 2
            parts.append(names.write(name, y, middle - 0.5))
            if name in dots:
                parts += _drawn(dots[name], name, scale, middle, series[panel])
            y += height
        axes = x_axis(scale, _HEADING, y, axis)
        zero = [line(scale(0.0), _HEADING, scale(0.0), y, "axis")] if scale.low < 0 else []
        said = "; ".join(f"{name} {number(dots[name].value, 3)}" for name in order if name in dots)
        figures.append(
            Figure(
                name=f"{what} {panel} dots",
                title=f"{what}: {panel}",
                height=y + AXIS,
                parts=[*axes, *zero, *parts],
                description=f"{what} of {panel}: {said}.",
                caption=f"{panel}: {note}",
            )
        )
    return figures


def _drawn(dot: Dot, name: str, at: Scale, y: float, series: int) -> list[str]:
    parts = []
    if dot.low is not None and dot.high is not None:
        parts.append(line(at(dot.low), y, at(dot.high), y, f"bar {color(series)}"))
    parts.append(marker(at(dot.value), y, series, 4.5, "mean", f"{name}: {number(dot.value, 4)}"))
    return parts
