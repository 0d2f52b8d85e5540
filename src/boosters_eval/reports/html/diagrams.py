"""What was predicted against what was found: a small panel per competitor, all with the same axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.text import count_of
from boosters_eval.reports.html import svg
from boosters_eval.reports.html.svg import AXIS, RIGHT, WIDTH, Figure, Scale, label, line, marker, px
from boosters_eval.reports.numbers import number
from boosters_eval.reports.tables import Strict
from boosters_eval.stats.calibration import Bin  # noqa: TC001 (read when a report is validated)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DiagramKind = Literal["reliability", "residuals", "coverage"]

_HEAD = 24  # the height of a name above its panel
_TALL = {"reliability": 150, "residuals": 110, "coverage": 150}
_GAP = 26  # between panels
_TICK = 10.5  # the size of its font
_COUNTS = 18  # the greatest height of a bar that tells how many rows a bin has


@dataclass(frozen=True, slots=True)
class Panel(Strict):
    """The bins of one competitor."""

    name: str
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Diagram(Strict):
    """How far the predictions of each competitor can be taken at their word."""

    kind: DiagramKind
    table: str  # that it belongs to
    target: str  # of several; else empty
    x: str  # the titles of the axes
    y: str
    panels: tuple[Panel, ...]
    caption: str

    def expected(self, one: Bin) -> float:
        """What is found where predictions hold."""
        return 0.0 if self.kind == "residuals" else one.at


def draw_diagram(diagram: Diagram, series: Mapping[str, int]) -> Figure:
    """Bins with their intervals; where these are on the dashed line, what was predicted is what was found."""
    columns = min(2, len(diagram.panels))
    x, y = _fit(diagram)
    left = max(46.0, 26 + max(svg.text_width(shown, _TICK) for _, shown in y.ticks()))
    width = (WIDTH - RIGHT - left - _GAP * (columns - 1)) / columns
    tall, parts, top = _TALL[diagram.kind], list[str](), 0.0
    for start in range(0, len(diagram.panels), columns):
        for column, panel in enumerate(diagram.panels[start : start + columns]):
            begin = left + column * (width + _GAP)
            across = Scale(x.low, x.high, begin, begin + width)
            up = Scale(y.low, y.high, top + _HEAD + tall, top + _HEAD)
            parts += [*_axes(across, up, numbered=not column), *_panel(diagram, panel, across, up, series[panel.name])]
        top += _HEAD + tall + 24
    parts += [svg.y_title(svg.short(diagram.y, 40), (top - 24 + _HEAD) / 2)]
    parts += [label((left + WIDTH - RIGHT) / 2, top + 8, diagram.x, "title", "middle")]
    of = f" of {diagram.target}" if diagram.target else ""
    return Figure(
        name=" ".join(filter(None, (diagram.table, diagram.target, diagram.kind))),
        title=f"{diagram.kind.capitalize()}{of}: {diagram.table}",
        height=top + AXIS - 24,
        parts=parts,
        description=f"{diagram.y} by {diagram.x}{of}, {diagram.table}: {'; '.join(_tell(diagram))}.",
        caption=diagram.caption,
    )


def draw_diagrams(diagrams: Sequence[Diagram], series: Mapping[str, int], *, named: bool = False) -> list[Figure]:
    """All of them; the captions of those that stand together have names."""
    found = [draw_diagram(diagram, series) for diagram in diagrams]
    return [replace(one, caption=f"{one.title}. {one.caption}") for one in found] if named else found


def count_missed(diagram: Diagram, panel: Panel) -> str:
    """How many intervals exclude what was predicted, in words."""
    missed = sum(one.misses(diagram.expected(one)) for one in panel.bins)
    return f"{missed} of {len(panel.bins)} off" if missed else "none off"


def _tell(diagram: Diagram) -> list[str]:
    return [f"{panel.name} {count_missed(diagram, panel)}" for panel in diagram.panels]


def _fit(diagram: Diagram) -> tuple[Scale, Scale]:
    """The scales that all panels share, in values alone."""
    if diagram.kind != "residuals":
        return Scale(0.0, 1.0, 0, 1), Scale(0.0, 1.0, 1, 0)
    every = [one for panel in diagram.panels for one in panel.bins]
    bounds = [bound for one in every for bound in (one.low, one.high, one.found, *(one.spread or ()), 0.0)]
    return svg.fit([one.at for one in every], 0, 1), svg.fit([it for it in bounds if it is not None], 1, 0)


def _axes(x: Scale, y: Scale, *, numbered: bool) -> list[str]:
    parts = [line(x.start, y.start, x.end, y.start, "axis")]
    ticks = x.ticks()
    widest = max(svg.text_width(shown, _TICK) for _, shown in ticks)
    every = next((n for n in range(1, len(ticks)) if x(ticks[n][0]) - x(ticks[0][0]) > widest + 6), len(ticks))
    for tick, shown in ticks[::every]:
        reach = svg.text_width(shown, _TICK) / 2 - _GAP / 2 + 2  # the label stays on its half of the gap
        at = min(max(x(tick), x.start + reach), x.end - reach)
        parts += [line(x(tick), y.end, x(tick), y.start, "grid")]
        parts += [label(at, y.start + 14, shown, "tick", "middle")]
    for tick, shown in y.ticks():
        parts.append(line(x.start, y(tick), x.end, y(tick), "grid"))
        parts += [label(x.start - 5, y(tick) + 4, shown, "tick", "end")] if numbered else []
    return parts


def _panel(diagram: Diagram, panel: Panel, x: Scale, y: Scale, series: int) -> list[str]:
    kind, top = svg.color(series), y.end - 9
    missed = count_missed(diagram, panel)
    room = int((x.end - x.start - svg.text_width(missed, _TICK) - 18) / svg.text_width("n"))
    parts = [
        marker(x.start + 5, top - 3, series, 4.5, "mean"),
        label(x.start + 13, top + 1, svg.short(panel.name, room)),
    ]
    parts += [label(x.end, top + 1, missed, "tick", "end")]
    ends = (0.0, 0.0) if diagram.kind == "residuals" else (x.low, x.high)
    parts.append(line(x.start, y(ends[0]), x.end, y(ends[1]), "unit"))
    most = max(one.share for one in panel.bins)
    for one in panel.bins if diagram.kind == "reliability" else ():
        height = _COUNTS * one.share / most
        begin, end = max(x(one.at) - 4, x.start), min(x(one.at) + 4, x.end)
        parts.append(svg.rect(begin, y.start - height, end - begin, height, f"area {kind}"))
    if len(panel.bins) > 1 and all(one.spread for one in panel.bins):
        parts.append(_band(panel, x, y, kind))
    for one in panel.bins:
        at = x(one.at)
        if one.low is not None and one.high is not None:
            parts.append(line(at, y(one.low), at, y(one.high), f"interval {kind}"))
        parts.append(marker(at, y(one.found), series, 3.4, "mean", _hover(panel.name, one)))
    return parts


def _band(panel: Panel, x: Scale, y: Scale, kind: str) -> str:
    """Where the middle of the residuals lies."""
    spreads = [(x(one.at), *one.spread) for one in panel.bins if one.spread]
    lower = [(at, y(low)) for at, low, _ in spreads]
    upper = [(at, y(high)) for at, _, high in reversed(spreads)]
    points = " ".join(f"{px(at)},{px(height)}" for at, height in (*lower, *upper))
    return f'<polygon class="area {kind}" points="{points}"/>'


def _hover(name: str, one: Bin) -> str:
    within = "" if one.low is None or one.high is None else f" ({number(one.low, 3)} to {number(one.high, 3)})"
    return f"{name} at {number(one.at, 3)}: {number(one.found, 3)}{within}, {count_of(one.rows, 'row')}"
