"""A matrix of names by names: each cell its number, on a shade of one color, which no reader can take for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.html.figures import WIDTH, Figure
from boosters_eval.reports.html.svg import label, px, short, text_width
from boosters_eval.reports.html.tables import text
from boosters_eval.reports.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CELL = 34  # the height of a row
_WIDEST = 72
_STEEPNESS = 6  # what matters lies between 0.8 and 1
_DEEPEST = 0.5  # the share of color in the darkest cell: its number stays readable


def heat_chart(
    what: str, names: Sequence[str], values: Mapping[tuple[str, str], float | None], caption: str
) -> Figure | None:
    """The values of pairs, from 0 (no color, as everything below) to 1, on the same shades in every chart.

    A pair without a value is a dash.
    """
    if not names:
        return None
    limit = 14 if len(names) <= 6 else 9
    shown = [short(name, limit) for name in names]
    left = 18 + max(text_width(name) for name in shown)
    width = min(_WIDEST, (WIDTH - left - 4) / len(names))
    slanted = max(text_width(name) for name in shown) > width - 4
    top = 10 + (max(text_width(name) for name in shown) if slanted else 12)
    parts = []
    for index, name in enumerate(shown):
        x, y = left + width * (index + 0.5), top + _CELL * (index + 0.5)
        parts.append(label(left - 6, y + 4, name, "name", "end"))
        heading = label(x, top - 6, name, "name", "start" if slanted else "middle")
        parts.append(f'<g transform="rotate(-90 {px(x + 4)} {px(top - 6)})">{heading}</g>' if slanted else heading)
    for row, a in enumerate(names):
        for column, b in enumerate(names):
            value = values.get((a, b), values.get((b, a)))
            parts += _cell(left + width * column, top + _CELL * row, width, value, f"{a} and {b}" if a != b else a)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    said = "; ".join(f"{a} with {'itself' if a == b else b} {_number(values.get((a, b)))}" for a, b in pairs)
    return Figure(
        name=f"{what} heat",
        title=what,
        height=top + _CELL * len(names) + 4,
        parts=parts,
        description=f"{what}: {said}.",
        caption=caption,
    )


def _cell(x: float, y: float, width: float, value: float | None, named: str) -> list[str]:
    depth = 0.0 if value is None else _DEEPEST * min(max(value, 0.0), 1.0) ** _STEEPNESS
    place = f'x="{px(x + 1)}" y="{px(y + 1)}" width="{px(width - 2)}" height="{_CELL - 2}"'
    hover = f"<title>{text(f'{named}: {_number(value)}')}</title>"
    return [
        f'<rect class="heat" {place} fill-opacity="{depth:.2f}">{hover}</rect>',
        label(x + width / 2, y + _CELL / 2 + 4, _number(value), "", "middle"),
    ]


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
