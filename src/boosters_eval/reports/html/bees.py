"""Many values per row as a swarm of points, each colored by another value from low to high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.reports.html.figures import AXIS, RIGHT, WIDTH, Figure, RowNames, x_axis
from boosters_eval.reports.html.svg import fit, holdable, label, line, px, short, swarm, text_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.reports.html.svg import Scale

SHADES = 7  # from low to high
_HEADING, _LEGEND, _ROW = 20, 20, 26
_SIZE = 3.2  # the width of a point


@dataclass(frozen=True)
class Bees:
    """The points of one row: where each is, and its shade from 0 (low) to 1 (high); None is neutral."""

    places: Sequence[float]
    shades: Sequence[float | None]


def bee_charts(
    what: str, axis: str, order: Sequence[str], panels: Mapping[str, Mapping[str, Bees]], low_high: tuple[str, str]
) -> list[Figure]:
    """One figure per panel, all on the same scale and in the same order."""
    every = [0.0, *(place for bees in panels.values() for one in bees.values() for place in one.places)]
    if not order or len(every) == 1 or not holdable(every):
        return []
    names = RowNames.of(order)
    scale = fit(every, names.left + 8, WIDTH - RIGHT)
    figures = []
    for panel, rows in panels.items():
        y = float(_HEADING + _LEGEND)
        parts = [label(4, 13, short(panel, 44), "heading"), *_legend(low_high)]
        for name in order:
            middle = y + names.extra + _ROW / 2
            parts.append(names.write(name, y, middle - 0.5))
            parts += _points(rows[name], scale, middle) if name in rows else []
            y += _ROW + names.extra
        zero = line(scale(0.0), _HEADING + _LEGEND, scale(0.0), y, "axis")
        widest = {name: max(map(abs, rows[name].places), default=0.0) for name in order if name in rows}
        said = "; ".join(f"{name} up to {value:.3g}" for name, value in widest.items())
        figures.append(
            Figure(
                name=f"{what} {panel} swarm",
                title=f"{what}: {panel}",
                height=y + AXIS,
                parts=[*x_axis(scale, _HEADING + _LEGEND, y, axis), zero, *parts],
                description=f"{what} of {panel}: {said}.",
                caption=f"{panel}: each point is a row",
            )
        )
    return figures


def _points(bees: Bees, scale: Scale, middle: float) -> list[str]:
    """One path per shade: a point of its own for each would make the page several times as large."""
    xs = [round(scale(place), 1) for place in bees.places]
    levels = swarm(xs, _SIZE)
    step = min(_SIZE, (_ROW - 4) / (max(levels, default=0) + 1))
    paths: dict[str, list[str]] = {}
    for x, level, shade in zip(xs, levels, bees.shades, strict=True):
        offset = (level + 1) // 2 * (1 if level % 2 else -1) * step
        kind = "neutral" if shade is None else f"q{min(int(shade * SHADES), SHADES - 1)}"
        paths.setdefault(kind, []).append(f"M{px(x)} {px(middle + offset)}h0")
    return [f'<path class="bee {kind}" d="{"".join(found)}"/>' for kind, found in sorted(paths.items())]


def _legend(low_high: tuple[str, str]) -> list[str]:
    low, high = low_high
    start = WIDTH - RIGHT - text_width(high, 10.5) - 10 * SHADES - 8
    y = _HEADING + 8
    squares = [
        f'<path class="bee {f"q{shade}"}" d="M{px(start + 10 * shade + 5)} {px(y - 3)}h0"/>' for shade in range(SHADES)
    ]
    end = start + 10 * SHADES + 4
    return [label(start - 4, y, low, "tick", "end"), *squares, label(end, y, high, "tick")]
