"""The chart of a series: its value run after run, its versions, and the levels before and after each change."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of
from boosters_eval.reports.html import svg
from boosters_eval.reports.html.markup import text
from boosters_eval.reports.numbers import number
from boosters_eval.reports.tables import Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.history.report import HistoryLine, HistoryPoint

_PLOT = 118  # the height of the plot
_MARKS = 14  # the height of a row of marks above it
_TICK = 10.5
_GAP = 6.0  # between two labels of runs
_ROOM = 2.0  # spans of the values that intervals may take on either side of them
_FEW = 60  # runs that are drawn one by one; more of them are a trace with a band
_VERSION = 14  # characters of a version


def draw_line(drawn: HistoryLine, series: int) -> svg.Figure | None:
    """The chart, or None if there is nothing that an axis can hold."""
    every = list_values(drawn)
    if not svg.holdable(every):
        return None
    found = [(index, point) for index, point in enumerate(drawn.points) if point.value is not None]
    top = 6.0 + _MARKS * (bool(drawn.steps) + bool(_find_version_changes(drawn.points)))
    bottom = top + _PLOT
    vertical, clipped = _fit_vertical(found, every, top, bottom)
    column = Column(drawn.metric, drawn.label, drawn.higher_is_better)
    left = svg.y_room(vertical)
    last = len(drawn.points) - 1
    across = (
        svg.Scale(0, last, left + 8, svg.WIDTH - svg.RIGHT)
        if last
        else svg.Scale(-1, 1, left + 8, svg.WIDTH - svg.RIGHT)
    )
    runs = _draw_runs(found, across, vertical, banded=clipped or len(found) > _FEW)
    parts = [
        *svg.y_axis(vertical, left, column),
        svg.line(left, bottom, svg.WIDTH - 6, bottom, "axis"),
        *_draw_ticks(drawn.points, across, bottom),
        *_draw_versions(drawn.points, across, top, bottom),
        f'<g class="{svg.color(series)}">{"".join(runs)}</g>',
        *_draw_steps(drawn, across, vertical, bottom),
    ]
    return svg.Figure(
        name=f"{drawn.config} {drawn.target} {drawn.metric} {drawn.variant} history",
        title=f"{drawn.config}: {drawn.target}",
        height=bottom + 46,
        parts=parts,
        description=_describe_line(drawn),
        caption=_caption_line(drawn, clipped=clipped),
    )


def list_values(drawn: HistoryLine) -> list[float]:
    found = [point for point in drawn.points if point.value is not None]
    return [v for point in found for v in (point.value, point.low, point.high) if v is not None]


def _fit_vertical(
    found: Sequence[tuple[int, HistoryPoint]], every: list[float], top: float, bottom: float
) -> tuple[svg.Scale, bool]:
    """An axis that shows the changes: it holds the intervals only if they do not squeeze the values into a line."""
    values = [point.value for _, point in found if point.value is not None]
    span = max(values) - min(values)
    room = _ROOM * span
    kept = [min(max(value, min(values) - room), max(values) + room) for value in every] if span else every
    return svg.fit(kept, bottom - 4, top + 4), kept != every


def _draw_runs(
    found: Sequence[tuple[int, HistoryPoint]], across: svg.Scale, vertical: svg.Scale, *, banded: bool
) -> Iterator[str]:
    """Each run with its interval; a band if bars would hide the values, and a trace alone if there are many."""
    bounded = [
        (across(index), _within(vertical, point.low), _within(vertical, point.high))
        for index, point in found
        if point.low is not None and point.high is not None
    ]
    few = len(found) <= _FEW
    if not banded or len(bounded) == 1:
        for x, low, high in bounded:
            yield svg.line(x, low, x, high, "whisker")
    elif bounded:
        upper, lower = [(x, high) for x, _, high in bounded], [(x, low) for x, low, _ in reversed(bounded)]
        yield f'<polygon class="area" points="{_path([*upper, *lower])}"/>'
    yield f'<polyline class="trace" points="{_path([(across(i), vertical(p.value or 0.0)) for i, p in found])}"/>'
    for index, point in found:
        if few or not point.searched:
            kind = "mean" if point.searched else "open"
            title = f"<title>{text(_describe_point(point))}</title>"
            at = f'cx="{svg.px(across(index))}" cy="{svg.px(vertical(point.value or 0.0))}"'
            yield f'<circle class="{kind}" {at} r="{"3" if few else "2"}">{title}</circle>'


def _within(scale: svg.Scale, value: float) -> float:
    return scale(min(max(value, scale.low), scale.high))


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{svg.px(x)},{svg.px(y)}" for x, y in places)


def _describe_point(point: HistoryPoint) -> str:
    bounds = "" if point.low is None or point.high is None else f" ({number(point.low)} to {number(point.high)})"
    failed = f", {count_of(point.failed, 'cell')} failed" if point.failed else ""
    reserve = failed + ("" if point.searched else ", not searched")
    when = f"{point.started_at[:10]}, version {point.version}, run {point.run}"
    return f"{point.name}: {number(point.value or 0.0, 5)}{bounds}{reserve}; {when}"


def _draw_ticks(points: Sequence[HistoryPoint], across: svg.Scale, bottom: float) -> Iterator[str]:
    """The commit and the date of some runs: the latest, and as many before it as there is room for."""
    free = svg.WIDTH + _GAP
    for index in range(len(points) - 1, -1, -1):
        names = (svg.short(points[index].commit, 11), points[index].started_at[:10])
        half = max(svg.text_width(name, _TICK) for name in names) / 2
        middle = min(max(across(index), half + 1), svg.WIDTH - half - 1)
        if middle + half + _GAP > free or middle - half < 0:
            continue
        free = middle - half
        yield svg.line(across(index), bottom, across(index), bottom + 4, "axis")
        for row, name in enumerate(filter(None, names)):
            yield svg.label(middle, bottom + 15 + 12 * row, name, "tick", "middle")
    yield svg.label((across.start + across.end) / 2, bottom + 42, "runs, the latest on the right", "title", "middle")


def _draw_versions(points: Sequence[HistoryPoint], across: svg.Scale, top: float, bottom: float) -> Iterator[str]:
    """A mark where the version changes; its name where there is room."""
    free = 0.0
    for index in _find_version_changes(points):
        x = (across(index - 1) + across(index)) / 2
        yield svg.line(x, top - 2, x, bottom, "version")
        name = svg.short(points[index].version, _VERSION)
        half = svg.text_width(name, _TICK) / 2
        middle = min(max(x, half + 1), svg.WIDTH - half - 1)
        if middle - half > free:
            free = middle + half + 4
            yield svg.label(middle, top - 6, name, "tick", "middle")


def _draw_steps(drawn: HistoryLine, across: svg.Scale, vertical: svg.Scale, bottom: float) -> Iterator[str]:
    """The levels before and after each step, and a mark above it."""
    for step in drawn.steps:
        x = (across(step.index - 1) + across(step.index)) / 2
        yield f'<g class="{step.verdict}">{svg.line(x, 8, x, bottom, "step")}</g>'
    for step in drawn.steps:
        x = (across(step.index - 1) + across(step.index)) / 2
        levels = ((step.first, step.index - 1, step.before), (step.index, step.end - 1, step.after))
        drawn_levels = "".join(
            svg.line(across(a), vertical(at), across(b), vertical(at), "level") for a, b, at in levels
        )
        yield f'<g class="{step.verdict}">{drawn_levels}</g>'
        yield svg.verdict_mark(x, 8, step.verdict, step.sentence)


def _describe_line(drawn: HistoryLine) -> str:
    values = [point for point in drawn.points if point.value is not None]
    first, last = values[0], values[-1]
    said = (
        f"{drawn.label} of {drawn.target} on {drawn.config}, {len(drawn.points)} runs on {drawn.machine_label}:"
        f" {number(first.value or 0.0)} in {first.name}, {number(last.value or 0.0)} in {last.name}."
    )
    return " ".join([said, *(f"{step.sentence}." for step in drawn.steps[-5:])])


def _caption_line(drawn: HistoryLine, *, clipped: bool) -> str:
    """What is drawn, and the latest steps in words."""
    many = "mean" if drawn.n_splits > 1 else "value"
    over = f" of {drawn.n_splits} splits" if drawn.n_splits > 1 else ""
    bounds = ", with its 95 % interval" if any(point.low is not None for point in drawn.points) else ""
    bounds += ", which is wider than the axis" if clipped else ""
    parts = [f"{drawn.label}: the {many}{over} per run{bounds}"]
    shown = drawn.steps[-3:]
    if len(drawn.steps) > len(shown):
        parts.append(f"{len(drawn.steps)} changes, the latest {len(shown)}")
    parts += [f"{step.verdict} since {step.name}: {step.levels}" for step in shown]
    if not drawn.steps and drawn.n_searched:
        from boosters_eval.stats.changepoints import fewest_for_any_step  # noqa: PLC0415 (loads scipy)

        few = drawn.n_searched < fewest_for_any_step()
        parts.append("too few runs to detect a change" if few else "no change detected")
    return "; ".join(parts)


def _find_version_changes(points: Sequence[HistoryPoint]) -> list[int]:
    """The indices of the runs whose version is not that of the run before."""
    return [index for index, (a, b) in enumerate(pairwise(points), 1) if a.version != b.version]
