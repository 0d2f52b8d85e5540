"""The charts of the page, each made from the table model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.html.svg import Scale, drawing, fit, label, line, marker
from boosters_eval.reports.html.tables import text
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.reports.document import ReportDocument
    from boosters_eval.reports.model import Column, RankingTable, ReportTable, Row, TableCell

Series = dict[str, int]  # a competitor's colour and shape, the same in every chart

WIDTH = 400
_ROW = 34
_MAX_ROWS = 60  # in the ratio chart


def series_of(document: ReportDocument) -> Series:
    """Competitors in the order of first appearance."""
    names = dict.fromkeys(row.label for table in document.tables for row in table.rows)
    names |= dict.fromkeys(name for ranking in document.rankings for name, _ in ranking.ranks)
    return {name: index for index, name in enumerate(names)}


def metric_chart(table: ReportTable, position: int, series: Mapping[str, int], alpha: float) -> str:
    """One row per competitor: every value is a dot, the mean a mark, the interval a bar."""
    column = table.columns[position]
    rows = [(row, row.cells[position]) for row in table.rows if row.cells[position].mean is not None]
    if not rows:
        return ""
    left, top = _gutter([row.label for row, _ in rows]), 10
    bottom = top + _ROW * len(rows)
    every = [v for _, cell in rows for v in (*cell.values, cell.low, cell.high) if v is not None]
    scale = fit(every, left + 8, WIDTH - 10)
    parts = x_axis(scale, top, bottom, column.heading)
    for index, (row, cell) in enumerate(rows):
        y = top + _ROW * (index + 0.5)
        parts += _strip(row, cell, scale, y, series[row.label])
        parts.append(label(left, y + 4, short(row.label), "name best" if cell.best else "name", "end"))
    summary = "; ".join(f"{row.label} {cell.text}" for row, cell in rows)
    picture = drawing(WIDTH, bottom + 38, parts, f"{column.label} of {table.name}: {summary}.")
    interval = f" and its {_level(alpha)} interval" if any(cell.low is not None for _, cell in rows) else ""
    caption = f"{column.label}: each repeat a dot, the mean{interval}"
    return figure(picture, caption + _caveat(column))


def _strip(row: Row, cell: TableCell, scale: Scale, y: float, series: int) -> list[str]:
    parts = []
    if cell.low is not None and cell.high is not None:
        parts.append(f'<g class="s{series % 8}">{line(scale(cell.low), y, scale(cell.high), y, "bar")}</g>')
    for value, name in zip(cell.values, row.points, strict=True):
        if value is not None:
            parts.append(marker(scale(value), y, 0, 2.6, f"dot t{series % 8}", f"{name}: {number(value, 5)}"))
    if cell.mean is not None:
        parts.append(marker(scale(cell.mean), y, series, 5, "mean", f"{row.label}: {cell.text} (n = {cell.n})"))
    return parts


def cost_chart(table: ReportTable, series: Mapping[str, int]) -> str:
    """The cost against the primary metric: the good corner is where both are best."""
    metric, position = next((i for i, column in enumerate(table.columns) if column.primary), None), table.cost
    if metric is None or position is None:
        return ""
    points = [
        (row, row.cells[position], row.cells[metric])
        for row in table.rows
        if _mean(row.cells[position]) > 0 and row.cells[metric].mean is not None
    ]
    if len(points) < 2:
        return ""
    column, cost = table.columns[metric], table.columns[position]
    left, top, bottom = 58, 12, 176
    costs = [_mean(cell) for _, cell, _ in points]
    x = fit(
        [bound for _, cell, _ in points for bound in _cost_spread(cell)],
        left + 8,
        WIDTH - 14,
        log=max(costs) > 5 * min(costs),
    )
    y = fit(
        [bound for _, _, cell in points for bound in _spread(cell, column.floor, column.ceiling)], bottom - 6, top + 6
    )
    parts = x_axis(x, top, bottom, cost.heading) + _y_axis(y, left, column)
    unit = f" {cost.unit}" if cost.unit else ""
    for row, price, score in points:
        at_x, at_y = x(_mean(price)), y(_mean(score))
        (x1, x2), (y1, y2) = _cost_spread(price), _spread(score, column.floor, column.ceiling)
        kind = f'<g class="s{series[row.label] % 8}">'
        parts.append(
            kind + line(x(x1), at_y, x(x2), at_y, "whisker") + line(at_x, y(y1), at_x, y(y2), "whisker") + "</g>"
        )
        hover = f"{row.label}: {price.text}{unit}, {column.label} {score.text}"
        parts.append(marker(at_x, at_y, series[row.label], 5, "mean", hover))
    summary = "; ".join(f"{row.label} {price.text}{unit}, {score.text}" for row, price, score in points)
    against = f"{_quantity(cost)} against {column.label}"
    picture = drawing(WIDTH, bottom + 38, parts, f"{against} of {table.name}: {summary}.")
    key = legend([row.label for row, _, _ in points], series)
    return figure(key + picture, f"{against}, mean ± standard deviation{_caveat(cost)}")


def ratio_chart(document: ReportDocument, series: Mapping[str, int]) -> str:
    """The cost of each competitor relative to a reference, on a log axis, one row per table."""
    reference = document.reference if document.reference in series else next(iter(series), None)
    column = next((table.columns[table.cost] for table in document.tables if table.cost is not None), None)
    if reference is None or column is None:
        return ""
    rows = [(table, _ratios(table, column, reference)) for table in document.tables]
    rows = [(table, found) for table, found in rows if found]
    if not rows:
        return ""
    hidden, rows = len(rows) - _MAX_ROWS, rows[:_MAX_ROWS]
    left, top, row_height = min(_gutter([table.name for table, _ in rows]), 170), 10, 26
    bottom = top + row_height * len(rows)
    every = [v for _, found in rows for ratio in found.values() for v in ratio]
    scale = fit([*every, 1.0], left + 8, WIDTH - 10, log=True)
    quantity = _quantity(column)
    parts = x_axis(scale, top, bottom, f"{quantity} over that of {short(reference)} (log axis)")
    parts.append(line(scale(1), top, scale(1), bottom, "unit"))
    for index, (table, found) in enumerate(rows):
        y = top + row_height * (index + 0.5)
        parts.append(label(left, y + 4, short(table.name, 26), "name", "end"))
        for name, (ratio, low, high) in found.items():
            parts.append(f'<g class="s{series[name] % 8}">{line(scale(low), y, scale(high), y, "whisker")}</g>')
            times = f"{number(ratio, 3)} times ({number(low, 3)} to {number(high, 3)})"
            hover = f"{table.name}: {quantity} of {name} is {times} that of {reference}"
            parts.append(marker(scale(ratio), y, series[name], 4.5, "mean", hover))
    over = f"{quantity} over that of {reference}"
    picture = drawing(WIDTH, bottom + 38, parts, f"{over}, for each {document.table_noun}.")
    others = [name for name in series if any(name in found for _, found in rows)]
    more = f" The first {_MAX_ROWS} {document.table_noun}s; {hidden} more are in the tables." if hidden > 0 else ""
    less = "faster" if column.kind == "time" else "less"
    return figure(legend(others, series) + picture, f"{over}, with interval: left of 1 is {less}.{more}")


def _ratios(table: ReportTable, column: Column, reference: str) -> dict[str, tuple[float, float, float]]:
    """The ratio of each other competitor, with its interval."""
    out = {}
    for item in table.pairs:
        if item.metric == column.name and item.ratio and reference in (item.a, item.b):
            ratio, low, high = item.ratio, item.low or item.ratio, item.high or item.ratio
            if item.a == reference:
                ratio, low, high = 1 / ratio, 1 / high, 1 / low
            out[item.b if item.a == reference else item.a] = (ratio, low, high)
    return out


def rank_chart(ranking: RankingTable, series: Mapping[str, int]) -> str:
    """Average ranks on a line; a bar joins those that cannot be told apart."""
    count = len(ranking.ranks)
    axis, edge = 26, 118
    scale = Scale(1, count, edge, WIDTH - edge)
    parts = [line(scale(1), axis, scale(count), axis, "axis")]
    for rank in range(1, count + 1):
        parts.append(line(scale(rank), axis - 4, scale(rank), axis, "axis"))
        parts.append(label(scale(rank), axis - 9, str(rank), "tick", "middle"))
    ranks = dict(ranking.ranks)
    for index, group in enumerate(ranking.groups):
        y = axis + 11 + 8 * index
        parts.append(line(scale(ranks[group[0]]) - 4, y, scale(ranks[group[-1]]) + 4, y, "clique"))
    top = axis + 24 + 8 * len(ranking.groups)
    half = (count + 1) // 2
    for index, (name, average) in enumerate(ranking.ranks):
        left = index < half
        y = top + 20 * (index if left else count - 1 - index)
        end = edge - 16 if left else WIDTH - edge + 16
        path = f"M{scale(average):.1f} {axis}V{y}H{end}"
        parts.append(f'<path class="stem" d="{path}"/>')
        parts.append(marker(scale(average), axis, series[name], 4.5, "mean", f"{name}: {average:.2f}"))
        shown = f"{short(name, 12)} {average:.2f}"
        parts.append(label(end - 5 if left else end + 5, y + 4, shown, "name", "end" if left else "start"))
    summary = "; ".join(f"{name} {rank:.2f}" for name, rank in ranking.ranks)
    picture = drawing(WIDTH, top + 20 * half, parts, f"Average ranks of {ranking.name}: {summary}.")
    joined = "a bar joins what Wilcoxon's test with Holm's correction cannot tell apart"
    tested = joined if not ranking.descriptive else f"descriptive only, too few {ranking.over}"
    return figure(picture, f"{ranking.title}, 1 is best; {tested}.")


def legend(names: list[str], series: Mapping[str, int]) -> str:
    """What each colour and shape stands for."""
    items = []
    for name in names:
        mark = marker(7, 7, series[name], 5, "mean")
        items.append(f'<li><svg viewBox="0 0 14 14" aria-hidden="true">{mark}</svg>{text(name)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def x_axis(scale: Scale, top: float, bottom: float, title: str) -> list[str]:
    parts = [line(scale.start - 8, bottom, scale.end + 8, bottom, "axis")]
    for tick, shown in scale.ticks():
        parts.append(line(scale(tick), top, scale(tick), bottom, "grid"))
        parts.append(label(scale(tick), bottom + 14, shown, "tick", "middle"))
    parts.append(label((scale.start + scale.end) / 2, bottom + 31, title, "title", "middle"))
    return parts


def _y_axis(scale: Scale, left: float, column: Column) -> list[str]:
    parts = []
    for tick, shown in scale.ticks():
        parts.append(line(left, scale(tick), WIDTH - 6, scale(tick), "grid"))
        parts.append(label(left - 5, scale(tick) + 4, shown, "tick", "end"))
    middle = (scale.start + scale.end) / 2
    turned = f'<g transform="rotate(-90 12 {middle:.1f})">'
    parts.append(turned + label(12, middle, column.heading, "title", "middle") + "</g>")
    return parts


def _caveat(column: Column) -> str:
    return f"; {column.caveat}" if column.caveat else ""


def _quantity(column: Column) -> str:
    return column.quantity or column.label


def _spread(cell: TableCell, floor: float | None, ceiling: float | None = None) -> tuple[float, float]:
    mean, std = _mean(cell), cell.std or 0.0
    low, high = mean - std, mean + std
    return low if floor is None else max(low, floor), high if ceiling is None else min(high, ceiling)


def _cost_spread(cell: TableCell) -> tuple[float, float]:
    """The spread, kept above 0, which a log axis cannot show."""
    return _spread(cell, _mean(cell) / 4)


def _mean(cell: TableCell) -> float:
    return 0.0 if cell.mean is None else cell.mean


def _gutter(names: list[str]) -> float:
    """The width needed for the longest name."""
    return 14 + 6.6 * max(len(short(name)) for name in names)


def short(name: str, limit: int = 18) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def _level(alpha: float) -> str:
    return f"{100 * (1 - alpha):g} %"


def figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{text(caption)}</figcaption></figure>"
