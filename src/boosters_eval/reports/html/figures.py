"""What all charts share: the figure itself, its axes, its legend, and where the names of its rows go."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from boosters_eval.reports.html.svg import label, line, marker, px, short, text_width
from boosters_eval.reports.html.tables import sentence, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.reports.html.svg import Scale
    from boosters_eval.reports.model import Column, RankingTable, ReportTable

Series = dict[str, int]  # a competitor's color and shape, the same in every chart

WIDTH = 400
RIGHT = 14  # the margin at the end of an axis
AXIS = 38  # the height of an axis with its title
_TICK = 10.5  # the font size of ticks and titles
_BESIDE = 18  # characters of a name beside its row; if one is longer, all are above their rows
_ABOVE = 50  # characters of a name above its row


@dataclass(frozen=True)
class Figure:
    """A chart for the page, a notebook or a file."""

    name: str  # for its file
    title: str  # above it, where nothing else says what it is about
    height: float
    parts: Sequence[str]
    description: str  # for screen readers
    caption: str

    def svg(self) -> str:
        """The drawing; its colors come from the style sheet."""
        box = f"0 0 {WIDTH} {px(self.height)}"
        return f'<svg viewBox="{box}" role="img" aria-label="{text(self.description)}">{"".join(self.parts)}</svg>'

    def html(self) -> str:
        """The drawing with its caption."""
        caption = f"<figcaption>{sentence(self.caption)}</figcaption>"
        return f'<figure data-name="{text(self.name)}">{self.svg()}{caption}</figure>'


def series_of(tables: Iterable[ReportTable], rankings: Iterable[RankingTable]) -> Series:
    """Competitors in the order of first appearance."""
    names = dict.fromkeys(row.label for table in tables for row in table.rows)
    names |= dict.fromkeys(name for ranking in rankings for name, _ in ranking.ranks)
    return {name: index for index, name in enumerate(names)}


@dataclass(frozen=True)
class RowNames:
    """Where the names of rows are written: beside them, or above them if one of them is long."""

    above: bool
    left: float  # where the drawing begins
    extra: float  # what a name above adds to the height of its row

    @classmethod
    def of(cls, names: Iterable[str]) -> RowNames:
        """The place that the longest name needs."""
        widest = max((text_width(name) for name in names), default=0)
        if widest > text_width("n" * _BESIDE):
            return cls(above=True, left=8, extra=15)
        return cls(above=False, left=14 + widest, extra=0)

    def write(self, name: str, top: float, middle: float, kind: str = "name") -> str:
        """The name of the row that begins at `top` and whose marks are at `middle`."""
        if self.above:
            return label(4, top + 11, short(name, _ABOVE), kind)
        return label(self.left - 6, middle + 4, name, kind, "end")


def x_axis(scale: Scale, top: float, bottom: float, title: str) -> list[str]:
    """A horizontal axis; it is said if it is logarithmic, and ticks that would overlap are left out."""
    parts = [line(scale.start - 8, bottom, scale.end + 8, bottom, "axis")]
    ticks = scale.ticks()
    every = next((n for n in range(1, len(ticks) + 1) if _fits(scale, ticks[::n])), len(ticks))
    for tick, shown in ticks[::every]:
        half = text_width(shown, _TICK) / 2
        at = min(max(scale(tick), half + 1), WIDTH - half - 1)
        parts.append(line(scale(tick), top, scale(tick), bottom, "grid"))
        parts.append(label(at, bottom + 14, shown, "tick", "middle"))
    parts.append(_title(title + (" (log axis)" if scale.log else ""), (scale.start + scale.end) / 2, bottom + 31))
    return parts


def _fits(scale: Scale, ticks: list[tuple[float, str]]) -> bool:
    ends = [(scale(tick), text_width(shown, _TICK) / 2 + 3) for tick, shown in ticks]
    return all(b - a >= half + other for (a, half), (b, other) in pairwise(ends))


def _title(title: str, middle: float, y: float) -> str:
    """The title below the middle of its axis, or as near to it as the width allows."""
    shown = short(title, int(WIDTH / text_width("n", _TICK)))
    half = text_width(shown, _TICK) / 2
    return label(min(max(middle, half), WIDTH - half), y, shown, "title", "middle")


def y_room(scale: Scale) -> float:
    """Where the drawing beside a vertical axis begins: behind its title and its longest label."""
    return max(58.0, 24 + max(text_width(shown, _TICK) for _, shown in scale.ticks()))


def y_axis(scale: Scale, left: float, column: Column) -> list[str]:
    """A vertical axis with its title turned."""
    parts = []
    for tick, shown in scale.ticks():
        parts.append(line(left, scale(tick), WIDTH - 6, scale(tick), "grid"))
        parts.append(label(left - 5, scale(tick) + 4, shown, "tick", "end"))
    middle = (scale.start + scale.end) / 2
    turned = f'<g transform="rotate(-90 12 {middle:.1f})">'
    parts.append(turned + label(12, middle, short(column.heading, 26), "title", "middle") + "</g>")
    return parts


def legend(names: Iterable[str], series: Mapping[str, int], top: float = 2) -> tuple[list[str], float]:
    """What each color and shape stands for, inside the drawing, and where the legend ends."""
    parts, x, y = [], 4.0, top + 8
    for name in names:
        shown = short(name, _ABOVE)
        width = 14 + text_width(shown) + 14
        if x > 4 and x + width > WIDTH:
            x, y = 4.0, y + 17
        parts += [marker(x + 5, y, series[name], 5, "mean"), label(x + 14, y + 4, shown)]
        x += width
    return parts, y + 14


def caveat(column: Column) -> str:
    """Why the values of a column are not judged, to follow a caption."""
    return f"; {column.caveat}" if column.caveat else ""


def quantity(column: Column) -> str:
    """What is measured, in a caption."""
    return column.quantity or column.label


def level(alpha: float) -> str:
    """The level of intervals."""
    return f"{100 * (1 - alpha):.4g} %"
