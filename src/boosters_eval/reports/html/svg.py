"""Scales, ticks and marks as SVG text. Colors come from the page's style sheet."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass

from boosters_eval.reports.html.tables import text
from boosters_eval.reports.numbers import number

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
        """The pixel of a value."""
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


def spread(places: list[tuple[float, float]], near: float, radius: float) -> list[tuple[float, float]]:
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
    """A coordinate to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line; the class decides how it looks."""
    return f'<line class="{kind}" x1="{px(x1)}" y1="{px(y1)}" x2="{px(x2)}" y2="{px(y2)}"/>'


def band(x1: float, y1: float, x2: float, y2: float) -> str:
    """A range as an area behind the marks."""
    return f'<rect class="band" x="{px(x1)}" y="{px(y1)}" width="{px(x2 - x1)}" height="{px(y2 - y1)}"/>'


def label(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Escaped text at a position."""
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{px(x)}" y="{px(y)}" text-anchor="{anchor}">{text(content)}</text>'


def marker(x: float, y: float, series: int, size: float, kind: str = "", title: str = "") -> str:
    """A mark of a series. Each series also has its own shape, for readers who cannot tell the colors apart."""
    shape = _SHAPES[(series + series // SERIES) % SERIES]
    hover = f"<title>{text(title)}</title>" if title else ""
    return _shape(x, y, shape, size, f"{color(series)} {kind}" if kind else color(series), hover)


def dot(x: float, y: float, size: float, series: int, title: str) -> str:
    """A single value."""
    return _shape(x, y, (), size, f"dot {color(series)}", f"<title>{text(title)}</title>")


def verdict_mark(x: float, y: float, verdict: str, title: str) -> str:
    """A mark of a verdict: its shape says the same as its color."""
    return _shape(x, y, _VERDICTS.get(verdict, ()), 5, f"v {verdict}", f"<title>{text(title)}</title>")


def color(series: int) -> str:
    """The class with the color of a series."""
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
