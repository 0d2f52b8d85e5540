"""The charts of tables: values with their intervals, differences, costs, ranks, and references with measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.text import format_share
from boosters_eval.reports.html import svg
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.reports.tables import Column, PairVerdict, RankingTable, ReportTable, Row, TableCell


_MEAN = 16  # the height for mean and interval, above the dots
_STACK = 44  # the greatest height of a stack of dots
_MANY = 30  # repeats from which the dots are smaller


def metric_chart(table: ReportTable, position: int, series: Mapping[str, int], alpha: float) -> svg.Figure | None:
    """One row per competitor: the mean with its interval, and below it every value as a dot; equal ones are stacked."""
    column = table.columns[position]
    rows = [(row, row.cells[position]) for row in table.rows if row.cells[position].mean is not None]
    every = [v for _, cell in rows for v in (*cell.values, cell.low, cell.high, cell.mean) if v is not None]
    if not svg.holdable(every):
        return None
    lines, beyond = _references(table, position, every)
    chart = svg.RowChart([row.label for row, _ in rows], [*every, *lines.values()], top=6.0 + 13 * len(lines))
    for row, cell in rows:
        strip, height = _strip(row, cell, chart.scale, chart.bottom + chart.names.extra, series[row.label])
        chart.add(row.label, height, "name best" if cell.best else "name", middle=_MEAN / 2 + 4)
        chart.parts += strip
    said = "; ".join(f"{row.label} {cell.text}" for row, cell in rows)
    interval = f" with its {format_share(1 - alpha)} interval" if any(cell.low is not None for _, cell in rows) else ""
    return chart.draw(
        column.heading,
        *_lines(lines, chart.scale, chart.bottom),
        name=f"{table.name} {column.name} strips",
        title=table.title,
        description=f"{column.label} of {table.name}: {said}.",
        caption=f"{column.label}: the mean{interval}, and each repeat as a dot{beyond}{svg.caveat(column)}",
    )


def _strip(row: Row, cell: TableCell, scale: svg.Scale, top: float, series: int) -> tuple[list[str], float]:
    parts, y = [], top + _MEAN / 2 + 2
    if cell.low is not None and cell.high is not None:
        parts.append(svg.line(scale(cell.low), y, scale(cell.high), y, f"bar {svg.color(series)}"))
    if cell.mean is not None:
        parts.append(svg.marker(scale(cell.mean), y, series, 5, "mean", f"{row.label}: {cell.text} (n = {cell.n})"))
    found = [(value, name) for value, name in zip(cell.values, row.points, strict=True) if value is not None]
    size = 2.6 if len(found) <= _MANY else 1.8
    levels = svg.swarm([round(scale(value), 1) for value, _ in found], 2 * size)
    step = min(2 * size, _STACK / (max(levels, default=0) + 1))
    first = top + _MEAN + 4 + size
    for (value, name), stacked in zip(found, levels, strict=True):
        parts.append(svg.dot(scale(value), first + step * stacked, size, series, f"{name}: {number(value, 5)}"))
    return parts, first + step * max(levels, default=0) + size + 5 - top


def _references(table: ReportTable, position: int, every: list[float]) -> tuple[dict[str, float], str]:
    """The trivial predictions that fit on the axis without squeezing the rest, and a remark on those that do not."""
    low, high = min(every), max(every)
    room = (high - low) or abs(high) or 1.0
    shown, beyond = {}, ""
    for row in table.trivial:
        mean = row.cells[position].mean
        if mean is None:
            continue
        if low - room <= mean <= high + room:
            shown[row.label] = mean
        else:
            beyond += f"; {row.label} is beyond the axis ({row.cells[position].text})"
    return shown, beyond


def _lines(values: Mapping[str, float], scale: svg.Scale, bottom: float) -> list[str]:
    parts, top = [], 13 * len(values) + 3  # below all names, which a line must not cross
    for index, (name, value) in enumerate(values.items()):
        y, half = 13 * (index + 1), svg.text_width(name, 10.5) / 2
        at = min(max(scale(value), half), svg.WIDTH - half)
        parts += [svg.line(scale(value), top, scale(value), bottom, "unit"), svg.label(at, y, name, "tick", "middle")]
    return parts


_OPPOSITE = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Contrast:
    """A competitor against the reference."""

    name: str
    size: float | None  # the difference, or the ratio of times and memory
    low: float | None
    high: float | None
    verdict: str  # of the competitor
    text: str


def leader(table: ReportTable, position: int) -> str | None:
    """Who has the best mean over the splits that all have, or over their own splits if there is none.

    As in the statistics, nobody leads whom another one was shown to be better than, unless all were.
    """
    higher = table.columns[position].higher_is_better
    values = {row.label: by_point(row, position) for row in table.rows if row.cells[position].mean is not None}
    if higher is None or not values:
        return None
    shared = set.intersection(*(set(found) for found in values.values()))
    means = {
        name: math.fsum(value for point, value in found.items() if point in shared or not shared)
        / (len(shared) or len(found) or 1)
        for name, found in values.items()
    }
    losers = {"better": "b", "worse": "a"}
    judged = [pair for pair in table.pairs if pair.metric == table.columns[position].name and pair.verdict in losers]
    beaten = {getattr(pair, losers[pair.verdict]) for pair in judged}
    standing = {name: mean for name, mean in means.items() if name not in beaten} or means
    return (max if higher else min)(standing, key=standing.__getitem__)


def by_point(row: Row, position: int) -> dict[str, float]:
    pairs = zip(row.points, row.cells[position].values, strict=False)
    return {point: value for point, value in pairs if value is not None}


def contrast(pair: PairVerdict, reference: str, *, as_ratio: bool) -> Contrast:
    """A pair, turned so that the reference is its second member; what no axis can show is None."""
    given = (pair.ratio if as_ratio else pair.difference, pair.low, pair.high)
    size, low, high = (
        value if value is not None and math.isfinite(value) and (value > 0 or not as_ratio) else None for value in given
    )
    if pair.a != reference:
        return Contrast(pair.a, size, low, high, pair.verdict, pair.text)
    size, high, low = (None if v is None else 1 / v if as_ratio else -v for v in (size, low, high))
    return Contrast(pair.b, size, low, high, _OPPOSITE.get(pair.verdict, pair.verdict), pair.text)


_ROW, _TOP, _BOTTOM = 26, 20, 4
_WORDS = 84  # the width of the verdicts at the right


def forest_chart(table: ReportTable, position: int, *, reference: str | None = None) -> svg.Figure | None:
    """One row per competitor other than the reference: the paired difference, its interval and the verdict."""
    column = table.columns[position]
    pairs = [pair for pair in table.pairs if pair.metric == column.name]
    reference = reference or leader(table, position)
    as_ratio = any(pair.ratio is not None for pair in pairs)
    rows = [contrast(pair, reference, as_ratio=as_ratio) for pair in pairs if reference in (pair.a, pair.b)]
    every = [value for row in rows for value in (row.size, row.low, row.high) if value is not None]
    if reference is None or not svg.holdable(every):
        return None
    same = 1.0 if as_ratio else 0.0
    chart = svg.RowChart([row.name for row in rows], [*every, same], top=_TOP, right=_WORDS + 8, log=as_ratio)
    for row in rows:
        chart.parts += _contrast(row, chart.scale, chart.add(row.name, _ROW))
    chart.bottom += _BOTTOM
    alpha = next((pair.alpha for pair in pairs if pair.alpha is not None), None)
    interval = "" if alpha is None else f", with its {format_share(1 - alpha)} interval (all pairs)"
    title = f"{svg.quantity(column)} {'over' if as_ratio else 'minus'} that of {reference}"
    said = "; ".join(f"{row.name} {row.verdict}" for row in rows)
    return chart.draw(
        title,
        *_sides(chart.scale, same, column, chart.bottom),
        name=f"{table.name} {column.name} differences",
        title=table.title,
        description=f"{title}, {table.name}: {said}.",
        caption=f"{title}{interval} and verdict: it may exclude {same:g} where the bars of the means overlap",
    )


def _contrast(row: Contrast, scale: svg.Scale, y: float) -> list[str]:
    word = row.verdict if row.size is not None else "not compared"
    parts = [svg.label(svg.WIDTH - 4, y + 4, word, f"v {row.verdict}", "end")]
    if row.low is not None and row.high is not None:
        low, high = scale(row.low), scale(row.high)
        ends = "".join(f"M{svg.px(end)} {svg.px(y - 4)}v8" for end in (low, high))
        parts.append(f'<path class="interval {row.verdict}" d="M{svg.px(low)} {svg.px(y)}H{svg.px(high)}{ends}"/>')
    if row.size is not None:
        parts.append(
            svg.verdict_mark(scale(row.size), y, row.verdict, f"{row.name}: {number(row.size, 3)}. {row.text}")
        )
    return parts


def _sides(scale: svg.Scale, same: float, column: Column, bottom: float) -> list[str]:
    """The line of no difference, and what its sides mean, where there is room for it."""
    at = scale(same)
    left, right = ("← worse", "better →") if column.higher_is_better else ("← better", "worse →")
    parts = [svg.line(at, _TOP - 4, at, bottom, "unit")]
    if at - svg.text_width(left) - 5 > 0:
        parts.append(svg.label(at - 5, _TOP - 7, left, "tick", "end"))
    if at + svg.text_width(right) + 5 < svg.WIDTH:
        parts.append(svg.label(at + 5, _TOP - 7, right, "tick"))
    return parts


_MAX_ROWS = 60  # in the ratio chart
_PLOT = 170  # the height of the trade-off
_LANE = 9  # the height of a competitor in a row of the ratio chart

Point = tuple["Row", "TableCell", "TableCell"]  # a competitor, its cost, its score


def cost_chart(table: ReportTable, series: Mapping[str, int]) -> svg.Figure | None:
    """The cost against the primary metric, and the Pareto front of the means."""
    metric, position = next((i for i, column in enumerate(table.columns) if column.primary), None), table.cost
    if metric is None or position is None:
        return None
    points = [
        (row, row.cells[position], row.cells[metric])
        for row in table.rows
        if row.cells[position].mean is not None and row.cells[metric].mean is not None
    ]
    if len(points) < 2 or not svg.holdable([_mean(cell) for _, _, cell in points]):
        return None
    column, cost = table.columns[metric], table.columns[position]
    parts, top = svg.legend([row.label for row, _, _ in points], series)
    top, bottom = top + 4, top + 4 + _PLOT
    y = svg.fit(
        [bound for _, _, cell in points for bound in _spread(cell, column.floor, column.ceiling)], bottom - 6, top + 6
    )
    left = svg.y_room(y)
    costs = [_mean(cell) for _, cell, _ in points]
    x = svg.fit(
        [bound for _, cell, _ in points for bound in _cost_spread(cell)],
        left + 8,
        svg.WIDTH - svg.RIGHT,
        log=max(costs) > 5 * min(costs) > 0,
    )
    parts += [*svg.x_axis(x, top, bottom, cost.heading), *svg.y_axis(y, left, column)]
    if column.higher_is_better is not None:
        parts.append(_front_line(pareto_front(points, higher_is_better=column.higher_is_better), x, y, column, cost))
    parts += _points(points, x, y, series, column, cost)
    unit = f" {cost.unit}" if cost.unit else ""
    said = "; ".join(f"{row.label} {price.text}{unit}, {score.text}" for row, price, score in points)
    against = f"{svg.quantity(cost)} against {column.label}"
    joined = ""
    if column.higher_is_better is not None:
        joined = f". The {'faint ' if cost.indicative else ''}line is the Pareto front: no other mean is better in both"
    return svg.Figure(
        name=f"{table.name} pareto",
        title=table.title,
        height=bottom + svg.AXIS,
        parts=parts,
        description=f"{against} of {table.name}: {said}.",
        caption=f"{against}, mean ± standard deviation{joined}{svg.caveat(cost)}",
    )


def pareto_front(points: list[Point], *, higher_is_better: bool) -> list[Point]:
    sign = 1.0 if higher_is_better else -1.0
    out: list[Point] = []
    for point in sorted(points, key=lambda item: (_mean(item[1]), -sign * _mean(item[2]))):
        if not out or sign * _mean(point[2]) > sign * _mean(out[-1][2]):
            out.append(point)
    return out


def _front_line(front: list[Point], x: svg.Scale, y: svg.Scale, column: Column, cost: Column) -> str:
    """Steps from the cheapest to the best: what is reached at each cost."""
    worst = y.low if column.higher_is_better else y.high
    path = f"M{svg.px(x(_mean(front[0][1])))} {svg.px(y(worst))}"
    for _, price, score in front:
        path += f"H{svg.px(x(_mean(price)))}V{svg.px(y(_mean(score)))}"
    return f'<path class="front{" faint" if cost.indicative else ""}" d="{path}H{svg.px(x.end)}"/>'


def _points(
    points: list[Point], x: svg.Scale, y: svg.Scale, series: Mapping[str, int], column: Column, cost: Column
) -> list[str]:
    parts, marks = [], []
    unit = f" {cost.unit}" if cost.unit else ""
    places = [(x(_mean(price)), y(_mean(score))) for _, price, score in points]
    for (row, price, score), (at_x, at_y), (mark_x, mark_y) in zip(
        points, places, svg.part_marks(places, 6, 8), strict=True
    ):
        (x1, x2), (y1, y2) = _cost_spread(price), _spread(score, column.floor, column.ceiling)
        kind = svg.color(series[row.label])
        parts += [
            svg.line(x(x1), at_y, x(x2), at_y, f"whisker {kind}"),
            svg.line(at_x, y(y1), at_x, y(y2), f"whisker {kind}"),
        ]
        if (mark_x, mark_y) != (at_x, at_y):
            marks.append(svg.line(at_x, at_y, mark_x, mark_y, f"whisker {kind}"))
        hover = f"{row.label}: {price.text}{unit}, {column.label} {score.text}"
        marks.append(svg.marker(mark_x, mark_y, series[row.label], 5, "mean", hover))
    return [*parts, *marks]


def ratio_chart(tables: Sequence[ReportTable], series: Mapping[str, int], reference: str | None) -> svg.Figure | None:
    """The cost of each competitor relative to a reference, on a log axis, one row per table."""
    reference = reference if reference in series else next(iter(series), None)
    column = next((table.columns[table.cost] for table in tables if table.cost is not None), None)
    if reference is None or column is None:
        return None
    rows = [(table.name, found) for table in tables if (found := _ratios(table, column, reference))]
    if not rows:
        return None
    hidden, rows = len(rows) - _MAX_ROWS, rows[:_MAX_ROWS]
    others = [name for name in series if any(name in found for _, found in rows)]
    parts, top = svg.legend(others, series)
    lanes = _LANE * len(others) + 8
    every = [v for _, found in rows for ratio in found.values() for v in ratio]
    chart = svg.RowChart([name for name, _ in rows], [*every, 1.0], top=top, log=True)
    scale, cost = chart.scale, svg.quantity(column)
    for benchmark, found in rows:
        begin = chart.add(benchmark, lanes) - lanes / 2
        for name, (ratio, low, high) in found.items():
            y = begin + 4 + _LANE * (others.index(name) + 0.5)
            chart.parts.append(svg.line(scale(low), y, scale(high), y, f"whisker {svg.color(series[name])}"))
            times = f"{number(ratio, 3)} times ({number(low, 3)} to {number(high, 3)})"
            hover = f"{benchmark}: {cost} of {name} is {times} that of {reference}"
            chart.parts.append(svg.marker(scale(ratio), y, series[name], 4, "mean", hover))
    what = f"{cost} over that of {reference}"
    more = f" The first {_MAX_ROWS} benchmarks; {hidden} more are in the tables." if hidden > 0 else ""
    less = "faster" if column.kind == "time" else "less"
    return chart.draw(
        what,
        *parts,
        svg.line(scale(1), top, scale(1), chart.bottom, "unit"),
        name=f"{column.name} ratios",
        title=what,
        description=f"{what}, for each benchmark.",
        caption=f"{what}, with interval: left of 1 is {less}.{more}",
    )


def _ratios(table: ReportTable, column: Column, reference: str) -> dict[str, tuple[float, float, float]]:
    out = {}
    for pair in table.pairs:
        if pair.metric == column.name and pair.ratio and reference in (pair.a, pair.b):
            found = contrast(pair, reference, as_ratio=True)
            if found.size is not None:
                out[found.name] = (found.size, found.low or found.size, found.high or found.size)
    return out


def _spread(cell: TableCell, floor: float | None = None, ceiling: float | None = None) -> tuple[float, float]:
    mean, std = _mean(cell), cell.std or 0.0
    low, high = mean - std, mean + std
    return low if floor is None else max(low, floor), high if ceiling is None else min(high, ceiling)


def _cost_spread(cell: TableCell) -> tuple[float, float]:
    """The spread, kept above 0, which a log axis cannot show."""
    return _spread(cell, _mean(cell) / 4)


def _mean(cell: TableCell) -> float:
    return 0.0 if cell.mean is None else cell.mean


_RANK_ROW = 24
_RANK_TOP = 24
_NUMBER = 38  # the width of a rank as text
_BARS = 90  # the greatest width of all bars together


def rank_chart(ranking: RankingTable, series: Mapping[str, int]) -> svg.Figure:
    """One row per competitor, so that equal ranks are all seen; a bar joins those that cannot be told apart."""
    count = len(ranking.ranks)
    names = svg.RowNames.of(name for name, _ in ranking.ranks)
    gap = min(10.0, _BARS / max(len(ranking.groups), 1))
    end = svg.WIDTH - 4 - gap * len(ranking.groups)
    scale = svg.Scale(1, count, names.left + 12, end - _NUMBER - 12)
    height = _RANK_ROW + names.extra
    bottom = _RANK_TOP + height * count
    parts = [svg.line(scale(1) - 8, _RANK_TOP, scale(count) + 8, _RANK_TOP, "axis")]
    for rank in range(1, count + 1, 1 + count // 12):
        parts.append(svg.line(scale(rank), _RANK_TOP, scale(rank), bottom, "grid"))
        parts.append(svg.label(scale(rank), _RANK_TOP - 7, str(rank), "tick", "middle"))
    rows = {}
    for index, (name, average) in enumerate(ranking.ranks):
        top = _RANK_TOP + height * index
        rows[name] = y = top + names.extra + _RANK_ROW / 2
        parts.append(names.write(name, top, y))
        parts.append(svg.line(scale(1) - 8, y, scale(average), y, "stem"))
        parts.append(svg.marker(scale(average), y, series[name], 5, "mean", f"{name}: {average:.2f}"))
        parts.append(svg.label(end - 6, y + 4, f"{average:.2f}", "name", "end"))
    for index, group in enumerate(ranking.groups):
        x = end + gap * (index + 0.5)
        parts.append(svg.line(x, rows[group[0]] - 5, x, rows[group[-1]] + 5, "clique"))
    said = "; ".join(f"{name} {rank:.2f}" for name, rank in ranking.ranks)
    joined = "a bar joins what Wilcoxon's test with Holm's correction cannot tell apart"
    tested = joined if not ranking.descriptive else f"descriptive only, too few {ranking.over}"
    return svg.Figure(
        name=f"{ranking.name} ranks",
        title=ranking.title,
        height=bottom + 6,
        parts=parts,
        description=f"Average ranks of {ranking.name}: {said}.",
        caption=f"{ranking.title}, 1 is best; {tested}.",
    )


_PAIR_ROW = 54  # the name, the reference, the measurement
_NAME, _REFERENCE_AT, _MEASURED_AT = 13, 27, 41  # their heights in a row
_REFERENCE, _MEASURED = 3, 0  # their colors and shapes: a diamond and a circle
_LONGEST = 54  # characters of a name


def reference_chart(table: ReportTable) -> svg.Figure | None:
    """One row per pair of cells: mean ± standard deviation of both, over the band that is accepted.

    For a table with a column of the kind "reference", whose low and high are the band, and one of the kind "measured".
    """
    columns = {column.kind: position for position, column in enumerate(table.columns)}
    first, second = columns.get("reference"), columns.get("measured")
    if first is None or second is None:
        return None
    rows = [(row, row.cells[first], row.cells[second]) for row in table.rows if row.cells[first].mean is not None]
    cells = [cell for _, *pair in rows for cell in pair if cell.mean is not None]
    every = [bound for cell in cells for bound in (*_spread(cell), cell.low, cell.high) if bound is not None]
    if not svg.holdable(every):
        return None
    names = (table.columns[first].label, table.columns[second].label)
    parts, top = svg.legend(names, {names[0]: _REFERENCE, names[1]: _MEASURED})
    bottom = top + _PAIR_ROW * len(rows)
    scale = svg.fit(every, 16, svg.WIDTH - 16)
    title = table.columns[second].quantity or names[1]
    parts += svg.x_axis(scale, top, bottom, title)
    for index, (row, expected, found) in enumerate(rows):
        parts += _pair(row, expected, found, scale, top + _PAIR_ROW * index, names)
    said = "; ".join(f"{row.label}: {names[0]} {e.shown}, {names[1]} {f.shown}" for row, e, f in rows)
    accepted = "; the band is what is accepted" if any(e.low is not None for _, e, _ in rows) else ""
    return svg.Figure(
        name=f"{table.name} {title}",
        title=table.title,
        height=bottom + svg.AXIS,
        parts=parts,
        description=f"{title} of {table.name}. {said}.",
        caption=f"{title}: {names[0]} and {names[1]}, mean ± standard deviation{accepted}",
    )


def _pair(
    row: Row, expected: TableCell, found: TableCell, scale: svg.Scale, top: float, names: tuple[str, str]
) -> list[str]:
    parts = []
    if expected.low is not None and expected.high is not None:
        low, high = scale(expected.low), scale(expected.high)
        parts.append(svg.rect(low, top + _NAME + 5, high - low, _PAIR_ROW - _NAME - 9, "band"))
    absent = f" ({found.status})" if found.mean is None else ""
    parts.append(svg.label(8, top + _NAME, svg.short(row.label, _LONGEST) + absent, "name"))
    for cell, name, series, y in (
        (expected, names[0], _REFERENCE, top + _REFERENCE_AT),
        (found, names[1], _MEASURED, top + _MEASURED_AT),
    ):
        if cell.mean is None:
            continue
        if cell.std:
            low, high = _spread(cell)
            parts.append(svg.line(scale(low), y, scale(high), y, f"whisker {svg.color(series)}"))
        parts.append(svg.marker(scale(cell.mean), y, series, 5, "mean", f"{row.label}, {name}: {cell.shown}"))
    return parts


def draw_table(table: ReportTable, series: Mapping[str, int], alpha: float) -> list[svg.Figure]:
    """Reference against measurement, or charts of the repeats on the column that decides."""
    if pairs := reference_chart(table):
        return [pairs]
    if not _has_repeats(table):
        return []
    position = _primary(table)
    found = metric_chart(table, position, series, alpha), forest_chart(table, position), cost_chart(table, series)
    return [figure for figure in found if figure]


def draw_others(table: ReportTable) -> list[svg.Figure]:
    if not _has_repeats(table) or reference_chart(table):
        return []
    found = (forest_chart(table, i) for i in range(len(table.columns)) if i != _primary(table))
    return [figure for figure in found if figure]


def _has_repeats(table: ReportTable) -> bool:
    return bool(table.columns) and any(row.points for row in table.rows)


def _primary(table: ReportTable) -> int:
    return next((i for i, column in enumerate(table.columns) if column.primary), 0)
