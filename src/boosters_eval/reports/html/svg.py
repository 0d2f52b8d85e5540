"""Scales, ticks and marks as SVG text. Colors come from the page's style sheet."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from boosters_eval.reports.html.markup import sentence, text
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.reports.tables import Column, RankingTable, ReportTable


SERIES = 8  # colors, and shapes; together they repeat only after 64 series
EM = 0.62  # the width of a character, in font sizes: that of a wide font, so that nothing overlaps in any


@dataclass(frozen=True)
class Scale:
    """Maps values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        """Three to seven round values inside the scale, with their labels."""
        found = _log_ticks(self.low, self.high) if self.log else _linear_ticks(self.low, self.high)
        return list(zip(found, _tick_labels(found, log=self.log), strict=True))


def holdable(values: list[float]) -> bool:
    """Whether an axis can hold the values: all are numbers, and the span of the largest floats is infinite."""
    return bool(values) and all(map(math.isfinite, values)) and math.isfinite(4 * (max(values) - min(values)))


def fit(values: list[float], start: float, end: float, *, log: bool = False) -> Scale:
    """A scale that holds all values with some padding; it extends below 0 only if a value does."""
    low, high = min(values), max(values)
    if log:
        low, high = low / 1.15, high * 1.15
        if high / low < 1.5:
            middle = math.sqrt(low * high)
            low, high = middle / 1.25, middle * 1.25
        return Scale(low, high, start, end, log=True)
    air = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(max(low - air, 0.0) if low >= 0 else low - air, high + air, start, end)


def _linear_ticks(low: float, high: float) -> list[float]:
    power = 10.0 ** math.floor(math.log10(high - low))
    for step in (5 * power, 2 * power, power, power / 2, power / 5):
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first >= 2:
            return [step * i for i in range(first, last + 1)]
    return [low, high]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 3, 4, 5, 6, 7, 8, 9)):
        found = [d * 10.0**e for e in decades for d in digits if low <= d * 10.0**e <= high]
        if len(found) >= 3:
            return found[:: math.ceil(len(found) / 7)]
    return [math.sqrt(low * high)]


def _tick_labels(ticks: list[float], *, log: bool) -> list[str]:
    """Labels of round values: on a linear axis all with the same decimals, on a log axis without trailing zeros."""
    if not log and len(ticks) > 1 and 1e-5 <= ticks[1] - ticks[0] < 1e6:
        decimals = max(0, math.ceil(-math.log10(ticks[1] - ticks[0]) - 1e-9))
        return [f"{tick + 0.0:.{decimals}f}" for tick in ticks]
    found = ([number(tick, digits) for tick in ticks] for digits in range(3, 18))
    labels = next((labels for labels in found if len(set(labels)) == len(ticks)), [])  # digits as differences need
    return [t.rstrip("0").rstrip(".") if "." in t and "e" not in t else t for t in labels]


def text_width(content: str, size: float = 11) -> float:
    """About how wide a text is; Chinese, Japanese and Korean characters count twice."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in content)
    return EM * size * (len(content) + wide)


def short(name: str, limit: int) -> str:
    """A long name without its middle: variants differ at the end, data sets at the beginning."""
    half = (limit - 1) // 2
    return name if len(name) <= limit else f"{name[: limit - 1 - half]}…{name[-half:]}"


def swarm(places: list[float], gap: float) -> list[int]:
    """A level for each mark, so that no mark covers another one of its level."""
    ends: list[float] = []  # the last mark of each level
    levels = [0] * len(places)
    for index in sorted(range(len(places)), key=places.__getitem__):
        level = next((i for i, end in enumerate(ends) if places[index] - end >= gap), len(ends))
        ends[level : level + 1] = [places[index]]
        levels[index] = level
    return levels


def part_marks(places: list[tuple[float, float]], near: float, radius: float) -> list[tuple[float, float]]:
    """The places of marks, where those that would cover each other are put around their common place."""
    groups: list[list[int]] = []
    for index, place in enumerate(places):
        group = next((g for g in groups if math.dist(places[g[0]], place) < near), None)
        groups.append([index]) if group is None else group.append(index)
    out = list(places)
    for group in groups:
        for turn, index in enumerate(group if len(group) > 1 else ()):
            angle = 2 * math.pi * turn / len(group)
            x, y = places[group[0]]
            out[index] = (x + radius * math.cos(angle), y + radius * math.sin(angle))
    return out


def px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{px(x1)}" y1="{px(y1)}" x2="{px(x2)}" y2="{px(y2)}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}"/>'


def label(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{px(x)}" y="{px(y)}" text-anchor="{anchor}">{text(content)}</text>'


def marker(x: float, y: float, series: int, size: float, kind: str = "", title: str = "") -> str:
    """A mark of a series. Each series also has its own shape, for readers who cannot tell the colors apart."""
    shape = _SHAPES[(series + series // SERIES) % SERIES]
    hover = f"<title>{text(title)}</title>" if title else ""
    return _shape(x, y, shape, size, f"{color(series)} {kind}" if kind else color(series), hover)


def dot(x: float, y: float, size: float, series: int, title: str) -> str:
    return _shape(x, y, (), size, f"dot {color(series)}", f"<title>{text(title)}</title>")


def verdict_mark(x: float, y: float, verdict: str, title: str) -> str:
    """A mark of a verdict: its shape says the same as its color."""
    return _shape(x, y, _VERDICTS.get(verdict, ()), 5, f"v {verdict}", f"<title>{text(title)}</title>")


def color(series: int) -> str:
    return f"s{series % SERIES}"


def _shape(x: float, y: float, shape: Points, size: float, style: str, hover: str) -> str:
    if not shape:
        return f'<circle class="{style}" cx="{px(x)}" cy="{px(y)}" r="{px(size)}">{hover}</circle>'
    points = " ".join(f"{px(x + size * dx)},{px(y + size * dy)}" for dx, dy in shape)
    return f'<polygon class="{style}" points="{points}">{hover}</polygon>'


Points = tuple[tuple[float, float], ...]
_SHAPES: tuple[Points, ...] = (
    (),  # a circle
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    ((-0.5, -1.1), (0.5, -1.1), (1.1, 0), (0.5, 1.1), (-0.5, 1.1), (-1.1, 0)),
    ((-1.15, 0), (0.85, -1.1), (0.85, 1.1)),
    ((1.15, 0), (-0.85, -1.1), (-0.85, 1.1)),
)
_VERDICTS = {"better": _SHAPES[2], "worse": _SHAPES[4], "equivalent": _SHAPES[1]}  # inconclusive: an open circle


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
        box = f"0 0 {WIDTH} {px(self.height)}"
        return f'<svg viewBox="{box}" role="img" aria-label="{text(self.description)}">{"".join(self.parts)}</svg>'

    def html(self) -> str:
        caption = f"<figcaption>{sentence(self.caption)}</figcaption>"
        return f'<figure data-name="{text(self.name)}">{self.svg()}{caption}</figure>'


def series_of(tables: Iterable[ReportTable], rankings: Iterable[RankingTable]) -> Series:
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


class RowChart:
    """Named rows below each other, above one horizontal axis."""

    def __init__(
        self, names: Sequence[str], values: list[float], *, top: float, right: float = RIGHT, log: bool = False
    ) -> None:
        self.names = RowNames.of(names)
        self.scale = fit(values, self.names.left + 8, WIDTH - right, log=log)
        self.top = self.bottom = top
        self.parts: list[str] = []

    def add(self, name: str, height: float, kind: str = "name", *, middle: float | None = None) -> float:
        """Begin a row below the others; returns where the middle of its marks is."""
        top = self.bottom
        self.bottom += height + self.names.extra
        at = top + self.names.extra + (height / 2 if middle is None else middle)
        self.parts.append(self.names.write(name, top, at, kind))
        return at

    def draw(self, axis: str, *behind: str, **about: str) -> Figure:
        parts = [*x_axis(self.scale, self.top, self.bottom, axis), *behind, *self.parts]
        return Figure(height=self.bottom + AXIS, parts=parts, **about)


def y_room(scale: Scale) -> float:
    """Where the drawing beside a vertical axis begins: behind its title and its longest label."""
    return max(58.0, 24 + max(text_width(shown, _TICK) for _, shown in scale.ticks()))


def y_axis(scale: Scale, left: float, column: Column) -> list[str]:
    parts = []
    for tick, shown in scale.ticks():
        parts.append(line(left, scale(tick), WIDTH - 6, scale(tick), "grid"))
        parts.append(label(left - 5, scale(tick) + 4, shown, "tick", "end"))
    return [*parts, y_title(short(column.heading, 26), (scale.start + scale.end) / 2)]


def y_title(title: str, middle: float) -> str:
    return f'<g transform="rotate(-90 12 {middle:.1f})">{label(12, middle, title, "title", "middle")}</g>'


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
    return f"; {column.caveat}" if column.caveat else ""


def quantity(column: Column) -> str:
    return column.quantity or column.label
