"""A matrix of names by names: each cell its number, on a shade of one color, which no reader can take for another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from boosters_eval.reports.html import svg
from boosters_eval.reports.html.markup import text
from boosters_eval.reports.numbers import MISSING, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_HEADING = 20
_ROW = 18


class Dot(NamedTuple):
    """A value with its interval, if there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def dot_charts(
    what: str,
    axis: str,
    order: Sequence[str],
    panels: Mapping[str, Mapping[str, Dot]],
    series: Mapping[str, int],
    note: str,
) -> list[svg.Figure]:
    """One figure per panel: its dots in the given order, from the top. What a panel lacks has no dot."""
    every = [0.0, *(v for dots in panels.values() for name in order for v in dots.get(name, ()) if v is not None)]
    if not order or len(every) == 1 or not svg.holdable(every):
        return []
    figures = []
    for panel, dots in panels.items():
        chart = svg.RowChart(order, every, top=_HEADING)
        scale = chart.scale
        for name in order:
            y = chart.add(name, _ROW)
            dot = dots.get(name)
            if dot is not None and dot.low is not None and dot.high is not None:
                chart.parts.append(svg.line(scale(dot.low), y, scale(dot.high), y, f"bar {svg.color(series[panel])}"))
            if dot is not None:
                hover = f"{name}: {number(dot.value, 4)}"
                chart.parts.append(svg.marker(scale(dot.value), y, series[panel], 4.5, "mean", hover))
        zero = [svg.line(scale(0.0), _HEADING, scale(0.0), chart.bottom, "axis")] if scale.low < 0 else []
        said = "; ".join(f"{name} {number(dots[name].value, 3)}" for name in order if name in dots)
        figures.append(
            chart.draw(
                axis,
                *zero,
                svg.label(4, 13, svg.short(panel, 44), "heading"),
                name=f"{what} {panel} dots",
                title=f"{what}: {panel}",
                description=f"{what} of {panel}: {said}.",
                caption=f"{panel}: {note}",
            )
        )
    return figures


_CELL = 34  # the height of a row
_WIDEST = 72
_STEEPNESS = 6  # what matters lies between 0.8 and 1
_DEEPEST = 0.5  # the share of color in the darkest cell: its number stays readable


def heat_chart(
    what: str, names: Sequence[str], values: Mapping[tuple[str, str], float | None], caption: str
) -> svg.Figure | None:
    """The values of pairs, from 0 (no color, as everything below) to 1, on the same shades in every chart.

    A pair without a value is a dash.
    """
    if not names:
        return None
    limit = 14 if len(names) <= 6 else 9
    shown = [svg.short(name, limit) for name in names]
    left = 18 + max(svg.text_width(name) for name in shown)
    width = min(_WIDEST, (svg.WIDTH - left - 4) / len(names))
    slanted = max(svg.text_width(name) for name in shown) > width - 4
    top = 10 + (max(svg.text_width(name) for name in shown) if slanted else 12)
    parts = []
    for index, name in enumerate(shown):
        x, y = left + width * (index + 0.5), top + _CELL * (index + 0.5)
        parts.append(svg.label(left - 6, y + 4, name, "name", "end"))
        heading = svg.label(x, top - 6, name, "name", "start" if slanted else "middle")
        parts.append(
            f'<g transform="rotate(-90 {svg.px(x + 4)} {svg.px(top - 6)})">{heading}</g>' if slanted else heading
        )
    for row, a in enumerate(names):
        for column, b in enumerate(names):
            value = values.get((a, b), values.get((b, a)))
            parts += _cell(left + width * column, top + _CELL * row, width, value, f"{a} and {b}" if a != b else a)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    said = "; ".join(f"{a} with {'itself' if a == b else b} {_number(values.get((a, b)))}" for a, b in pairs)
    return svg.Figure(
        name=f"{what} heat",
        title=what,
        height=top + _CELL * len(names) + 4,
        parts=parts,
        description=f"{what}: {said}.",
        caption=caption,
    )


def _cell(x: float, y: float, width: float, value: float | None, named: str) -> list[str]:
    depth = 0.0 if value is None else _DEEPEST * min(max(value, 0.0), 1.0) ** _STEEPNESS
    place = f'x="{svg.px(x + 1)}" y="{svg.px(y + 1)}" width="{svg.px(width - 2)}" height="{_CELL - 2}"'
    hover = f"<title>{text(f'{named}: {_number(value)}')}</title>"
    return [
        f'<rect class="heat" {place} fill-opacity="{depth:.2f}">{hover}</rect>',
        svg.label(x + width / 2, y + _CELL / 2 + 4, _number(value), "", "middle"),
    ]


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


SHADES = 7  # from low to high
_LEGEND, _BEE_ROW = 20, 26
_SIZE = 3.2  # the width of a point


@dataclass(frozen=True)
class Bees:
    """The points of one row: where each is, and its shade from 0 (low) to 1 (high); None is neutral."""

    places: Sequence[float]
    shades: Sequence[float | None]


def bee_charts(
    what: str, axis: str, order: Sequence[str], panels: Mapping[str, Mapping[str, Bees]], low_high: tuple[str, str]
) -> list[svg.Figure]:
    """One figure per panel, all on the same scale and in the same order."""
    every = [0.0, *(place for bees in panels.values() for one in bees.values() for place in one.places)]
    if not order or len(every) == 1 or not svg.holdable(every):
        return []
    top, figures = _HEADING + _LEGEND, []
    for panel, rows in panels.items():
        chart = svg.RowChart(order, every, top=top)
        for name in order:
            middle = chart.add(name, _BEE_ROW)
            chart.parts += _points(rows[name], chart.scale, middle) if name in rows else []
        zero = chart.scale(0.0)
        widest = {name: max(map(abs, rows[name].places), default=0.0) for name in order if name in rows}
        said = "; ".join(f"{name} up to {value:.3g}" for name, value in widest.items())
        figures.append(
            chart.draw(
                axis,
                svg.line(zero, top, zero, chart.bottom, "axis"),
                svg.label(4, 13, svg.short(panel, 44), "heading"),
                *_legend(low_high),
                name=f"{what} {panel} swarm",
                title=f"{what}: {panel}",
                description=f"{what} of {panel}: {said}.",
                caption=f"{panel}: each point is a row",
            )
        )
    return figures


def _points(bees: Bees, scale: svg.Scale, middle: float) -> list[str]:
    """One path per shade: a point of its own for each would make the page several times as large."""
    xs = [round(scale(place), 1) for place in bees.places]
    levels = svg.swarm(xs, _SIZE)
    step = min(_SIZE, (_BEE_ROW - 4) / (max(levels, default=0) + 1))
    paths: dict[str, list[str]] = {}
    for x, level, shade in zip(xs, levels, bees.shades, strict=True):
        offset = (level + 1) // 2 * (1 if level % 2 else -1) * step
        kind = "neutral" if shade is None else f"q{min(int(shade * SHADES), SHADES - 1)}"
        paths.setdefault(kind, []).append(f"M{svg.px(x)} {svg.px(middle + offset)}h0")
    return [f'<path class="bee {kind}" d="{"".join(found)}"/>' for kind, found in sorted(paths.items())]


def _legend(low_high: tuple[str, str]) -> list[str]:
    low, high = low_high
    start = svg.WIDTH - svg.RIGHT - svg.text_width(high, 10.5) - 10 * SHADES - 8
    y = _HEADING + 8
    squares = [
        f'<path class="bee {f"q{shade}"}" d="M{svg.px(start + 10 * shade + 5)} {svg.px(y - 3)}h0"/>'
        for shade in range(SHADES)
    ]
    end = start + 10 * SHADES + 4
    return [svg.label(start - 4, y, low, "tick", "end"), *squares, svg.label(end, y, high, "tick")]
