"""Cost against quality, with the front of those that no other one beats in both; and costs relative to a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.html.comparisons import contrast, forest_chart, metric_chart
from boosters_eval.reports.html.svg import (
    AXIS,
    RIGHT,
    WIDTH,
    Figure,
    RowNames,
    Scale,
    band,
    caveat,
    color,
    fit,
    holdable,
    label,
    legend,
    line,
    marker,
    part_marks,
    px,
    quantity,
    short,
    x_axis,
    y_axis,
    y_room,
)
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.reports.tables import Column, RankingTable, ReportTable, Row, TableCell


_MAX_ROWS = 60  # in the ratio chart
_PLOT = 170  # the height of the trade-off
_LANE = 9  # the height of a competitor in a row of the ratio chart

Point = tuple["Row", "TableCell", "TableCell"]  # a competitor, its cost, its score


def cost_chart(table: ReportTable, series: Mapping[str, int]) -> Figure | None:
    """The cost against the primary metric, and the Pareto front of the means."""
    metric, position = next((i for i, column in enumerate(table.columns) if column.primary), None), table.cost
    if metric is None or position is None:
        return None
    points = [
        (row, row.cells[position], row.cells[metric])
        for row in table.rows
        if row.cells[position].mean is not None and row.cells[metric].mean is not None
    ]
    if len(points) < 2 or not holdable([_mean(cell) for _, _, cell in points]):
        return None
    column, cost = table.columns[metric], table.columns[position]
    parts, top = legend([row.label for row, _, _ in points], series)
    top, bottom = top + 4, top + 4 + _PLOT
    y = fit(
        [bound for _, _, cell in points for bound in _spread(cell, column.floor, column.ceiling)], bottom - 6, top + 6
    )
    left = y_room(y)
    costs = [_mean(cell) for _, cell, _ in points]
    x = fit(
        [bound for _, cell, _ in points for bound in _cost_spread(cell)],
        left + 8,
        WIDTH - RIGHT,
        log=max(costs) > 5 * min(costs) > 0,
    )
    parts += [*x_axis(x, top, bottom, cost.heading), *y_axis(y, left, column)]
    if column.higher_is_better is not None:
        parts.append(_front_line(pareto_front(points, higher_is_better=column.higher_is_better), x, y, column, cost))
    parts += _points(points, x, y, series, column, cost)
    unit = f" {cost.unit}" if cost.unit else ""
    said = "; ".join(f"{row.label} {price.text}{unit}, {score.text}" for row, price, score in points)
    against = f"{quantity(cost)} against {column.label}"
    joined = ""
    if column.higher_is_better is not None:
        joined = f". The {'faint ' if cost.indicative else ''}line is the Pareto front: no other mean is better in both"
    return Figure(
        name=f"{table.name} pareto",
        title=table.title,
        height=bottom + AXIS,
        parts=parts,
        description=f"{against} of {table.name}: {said}.",
        caption=f"{against}, mean ± standard deviation{joined}{caveat(cost)}",
    )


def pareto_front(points: list[Point], *, higher_is_better: bool) -> list[Point]:
    """Those that no other one beats in cost and score, the cheapest first."""
    sign = 1.0 if higher_is_better else -1.0
    out: list[Point] = []
    for point in sorted(points, key=lambda item: (_mean(item[1]), -sign * _mean(item[2]))):
        if not out or sign * _mean(point[2]) > sign * _mean(out[-1][2]):
            out.append(point)
    return out


def _front_line(front: list[Point], x: Scale, y: Scale, column: Column, cost: Column) -> str:
    """Steps from the cheapest to the best: what is reached at each cost."""
    worst = y.low if column.higher_is_better else y.high
    path = f"M{px(x(_mean(front[0][1])))} {px(y(worst))}"
    for _, price, score in front:
        path += f"H{px(x(_mean(price)))}V{px(y(_mean(score)))}"
    return f'<path class="front{" faint" if cost.indicative else ""}" d="{path}H{px(x.end)}"/>'


def _points(
    points: list[Point], x: Scale, y: Scale, series: Mapping[str, int], column: Column, cost: Column
) -> list[str]:
    parts, marks = [], []
    unit = f" {cost.unit}" if cost.unit else ""
    places = [(x(_mean(price)), y(_mean(score))) for _, price, score in points]
    for (row, price, score), (at_x, at_y), (mark_x, mark_y) in zip(
        points, places, part_marks(places, 6, 8), strict=True
    ):
        (x1, x2), (y1, y2) = _cost_spread(price), _spread(score, column.floor, column.ceiling)
        kind = color(series[row.label])
        parts += [line(x(x1), at_y, x(x2), at_y, f"whisker {kind}"), line(at_x, y(y1), at_x, y(y2), f"whisker {kind}")]
        if (mark_x, mark_y) != (at_x, at_y):
            marks.append(line(at_x, at_y, mark_x, mark_y, f"whisker {kind}"))
        hover = f"{row.label}: {price.text}{unit}, {column.label} {score.text}"
        marks.append(marker(mark_x, mark_y, series[row.label], 5, "mean", hover))
    return [*parts, *marks]


def ratio_chart(tables: Sequence[ReportTable], series: Mapping[str, int], reference: str | None) -> Figure | None:
    """The cost of each competitor relative to a reference, on a log axis, one row per table."""
    reference = reference if reference in series else next(iter(series), None)
    column = next((table.columns[table.cost] for table in tables if table.cost is not None), None)
    if reference is None or column is None:
        return None
    rows = [(table, _ratios(table, column, reference)) for table in tables]
    rows = [(table, found) for table, found in rows if found]
    if not rows:
        return None
    hidden, rows = len(rows) - _MAX_ROWS, rows[:_MAX_ROWS]
    others = [name for name in series if any(name in found for _, found in rows)]
    names = RowNames.of(table.name for table, _ in rows)
    parts, top = legend(others, series)
    lanes = _LANE * len(others) + 8
    bottom = top + (lanes + names.extra) * len(rows)
    every = [v for _, found in rows for ratio in found.values() for v in ratio]
    scale = fit([*every, 1.0], names.left + 8, WIDTH - RIGHT, log=True)
    what = f"{quantity(column)} over that of {reference}"
    parts += [*x_axis(scale, top, bottom, what), line(scale(1), top, scale(1), bottom, "unit")]
    for index, (table, found) in enumerate(rows):
        begin = top + (lanes + names.extra) * index
        parts.append(names.write(table.name, begin, begin + lanes / 2))
        for name, (ratio, low, high) in found.items():
            y = begin + names.extra + 4 + _LANE * (others.index(name) + 0.5)
            parts.append(line(scale(low), y, scale(high), y, f"whisker {color(series[name])}"))
            times = f"{number(ratio, 3)} times ({number(low, 3)} to {number(high, 3)})"
            hover = f"{table.name}: {quantity(column)} of {name} is {times} that of {reference}"
            parts.append(marker(scale(ratio), y, series[name], 4, "mean", hover))
    more = f" The first {_MAX_ROWS} benchmarks; {hidden} more are in the tables." if hidden > 0 else ""
    less = "faster" if column.kind == "time" else "less"
    return Figure(
        name=f"{column.name} ratios",
        title=what,
        height=bottom + AXIS,
        parts=parts,
        description=f"{what}, for each benchmark.",
        caption=f"{what}, with interval: left of 1 is {less}.{more}",
    )


def _ratios(table: ReportTable, column: Column, reference: str) -> dict[str, tuple[float, float, float]]:
    """The ratio of each other competitor, with its interval."""
    out = {}
    for pair in table.pairs:
        if pair.metric == column.name and pair.ratio and reference in (pair.a, pair.b):
            found = contrast(pair, reference, as_ratio=True)
            if found.size is not None:
                out[found.name] = (found.size, found.low or found.size, found.high or found.size)
    return out


def _spread(cell: TableCell, floor: float | None, ceiling: float | None = None) -> tuple[float, float]:
    mean, std = _mean(cell), cell.std or 0.0
    low, high = mean - std, mean + std
    return low if floor is None else max(low, floor), high if ceiling is None else min(high, ceiling)


def _cost_spread(cell: TableCell) -> tuple[float, float]:
    """The spread, kept above 0, which a log axis cannot show."""
    return _spread(cell, _mean(cell) / 4)


def _mean(cell: TableCell) -> float:
    return 0.0 if cell.mean is None else cell.mean


_ROW, _TOP = 24, 24
_NUMBER = 38  # the width of a rank as text
_BARS = 90  # the greatest width of all bars together


def rank_chart(ranking: RankingTable, series: Mapping[str, int]) -> Figure:
    """One row per competitor, so that equal ranks are all seen; a bar joins those that cannot be told apart."""
    count = len(ranking.ranks)
    names = RowNames.of(name for name, _ in ranking.ranks)
    gap = min(10.0, _BARS / max(len(ranking.groups), 1))
    end = WIDTH - 4 - gap * len(ranking.groups)
    scale = Scale(1, count, names.left + 12, end - _NUMBER - 12)
    height = _ROW + names.extra
    bottom = _TOP + height * count
    parts = [line(scale(1) - 8, _TOP, scale(count) + 8, _TOP, "axis")]
    for rank in range(1, count + 1, 1 + count // 12):
        parts.append(line(scale(rank), _TOP, scale(rank), bottom, "grid"))
        parts.append(label(scale(rank), _TOP - 7, str(rank), "tick", "middle"))
    rows = {}
    for index, (name, average) in enumerate(ranking.ranks):
        top = _TOP + height * index
        rows[name] = y = top + names.extra + _ROW / 2
        parts.append(names.write(name, top, y))
        parts.append(line(scale(1) - 8, y, scale(average), y, "stem"))
        parts.append(marker(scale(average), y, series[name], 5, "mean", f"{name}: {average:.2f}"))
        parts.append(label(end - 6, y + 4, f"{average:.2f}", "name", "end"))
    for index, group in enumerate(ranking.groups):
        x = end + gap * (index + 0.5)
        parts.append(line(x, rows[group[0]] - 5, x, rows[group[-1]] + 5, "clique"))
    said = "; ".join(f"{name} {rank:.2f}" for name, rank in ranking.ranks)
    joined = "a bar joins what Wilcoxon's test with Holm's correction cannot tell apart"
    tested = joined if not ranking.descriptive else f"descriptive only, too few {ranking.over}"
    return Figure(
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


def reference_chart(table: ReportTable) -> Figure | None:
    """One row per pair of cells: mean ± standard deviation of both, over the band that is accepted.

    For a table with a column of the kind "reference", whose low and high are the band, and one of the kind "measured".
    """
    columns = {column.kind: position for position, column in enumerate(table.columns)}
    first, second = columns.get("reference"), columns.get("measured")
    if first is None or second is None:
        return None
    rows = [(row, row.cells[first], row.cells[second]) for row in table.rows if row.cells[first].mean is not None]
    every = [bound for _, expected, found in rows for cell in (expected, found) for bound in _extent(cell)]
    if not holdable(every):
        return None
    names = (table.columns[first].label, table.columns[second].label)
    parts, top = legend(names, {names[0]: _REFERENCE, names[1]: _MEASURED})
    bottom = top + _PAIR_ROW * len(rows)
    scale = fit(every, 16, WIDTH - 16)
    title = table.columns[second].quantity or names[1]
    parts += x_axis(scale, top, bottom, title)
    for index, (row, expected, found) in enumerate(rows):
        parts += _pair(row, expected, found, scale, top + _PAIR_ROW * index, names)
    said = "; ".join(f"{row.label}: {names[0]} {e.shown}, {names[1]} {f.shown}" for row, e, f in rows)
    accepted = "; the band is what is accepted" if any(e.low is not None for _, e, _ in rows) else ""
    return Figure(
        name=f"{table.name} {title}",
        title=table.title,
        height=bottom + AXIS,
        parts=parts,
        description=f"{title} of {table.name}. {said}.",
        caption=f"{title}: {names[0]} and {names[1]}, mean ± standard deviation{accepted}",
    )


def _pair(
    row: Row, expected: TableCell, found: TableCell, scale: Scale, top: float, names: tuple[str, str]
) -> list[str]:
    parts = []
    if expected.low is not None and expected.high is not None:
        parts.append(band(scale(expected.low), top + _NAME + 5, scale(expected.high), top + _PAIR_ROW - 4))
    absent = f" ({found.status})" if found.mean is None else ""
    parts.append(label(8, top + _NAME, short(row.label, _LONGEST) + absent, "name"))
    for cell, name, series, y in (
        (expected, names[0], _REFERENCE, top + _REFERENCE_AT),
        (found, names[1], _MEASURED, top + _MEASURED_AT),
    ):
        if cell.mean is None:
            continue
        if cell.std:
            low, high = cell.mean - cell.std, cell.mean + cell.std
            parts.append(line(scale(low), y, scale(high), y, f"whisker {color(series)}"))
        parts.append(marker(scale(cell.mean), y, series, 5, "mean", f"{row.label}, {name}: {cell.shown}"))
    return parts


def _extent(cell: TableCell) -> list[float]:
    """Everything that the axis must hold of a cell."""
    if cell.mean is None:
        return []
    std = cell.std or 0.0
    return [cell.mean - std, cell.mean + std, *(bound for bound in (cell.low, cell.high) if bound is not None)]


def draw_table(table: ReportTable, series: Mapping[str, int], alpha: float) -> list[Figure]:
    """Reference against measurement, or charts of the repeats on the column that decides."""
    if pairs := reference_chart(table):
        return [pairs]
    if not _has_repeats(table):
        return []
    position = _primary(table)
    found = metric_chart(table, position, series, alpha), forest_chart(table, position), cost_chart(table, series)
    return [figure for figure in found if figure]


def draw_others(table: ReportTable) -> list[Figure]:
    """The differences in the columns that do not decide."""
    if not _has_repeats(table) or reference_chart(table):
        return []
    found = (forest_chart(table, i) for i in range(len(table.columns)) if i != _primary(table))
    return [figure for figure in found if figure]


def _has_repeats(table: ReportTable) -> bool:
    return bool(table.columns) and any(row.points for row in table.rows)


def _primary(table: ReportTable) -> int:
    return next((i for i, column in enumerate(table.columns) if column.primary), 0)
