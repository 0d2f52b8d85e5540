"""Paired differences from one competitor, with the intervals that the verdicts are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.contrasts import contrast, leader
from boosters_eval.reports.html.figures import AXIS, WIDTH, Figure, RowNames, level, quantity, x_axis
from boosters_eval.reports.html.svg import fit, holdable, label, line, px, text_width, verdict_mark
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from boosters_eval.reports.contrasts import Contrast
    from boosters_eval.reports.html.svg import Scale
    from boosters_eval.reports.model import Column, ReportTable

_ROW, _TOP, _BOTTOM = 26, 20, 4
_WORDS = 84  # the width of the verdicts at the right


def forest_chart(table: ReportTable, position: int, *, reference: str | None = None) -> Figure | None:
    """One row per competitor other than the reference: the paired difference, its interval and the verdict."""
    column = table.columns[position]
    pairs = [pair for pair in table.pairs if pair.metric == column.name]
    reference = reference or leader(table, position)
    as_ratio = any(pair.ratio is not None for pair in pairs)
    rows = [contrast(pair, reference, as_ratio=as_ratio) for pair in pairs if reference in (pair.a, pair.b)]
    every = [value for row in rows for value in row.numbers()]
    if reference is None or not holdable(every):
        return None
    names = RowNames.of(row.name for row in rows)
    same = 1.0 if as_ratio else 0.0
    scale = fit([*every, same], names.left + 8, WIDTH - _WORDS - 8, log=as_ratio)
    height = _ROW + names.extra
    bottom = _TOP + height * len(rows) + _BOTTOM
    relation = "over" if as_ratio else "minus"
    title = f"{quantity(column)} {relation} that of {reference}"
    parts = [*x_axis(scale, _TOP, bottom, title), *_sides(scale, same, column, bottom)]
    for index, row in enumerate(rows):
        top = _TOP + height * index
        middle = top + names.extra + _ROW / 2
        parts += [names.write(row.name, top, middle), *_contrast(row, scale, middle)]
    alpha = next((pair.alpha for pair in pairs if pair.alpha is not None), None)
    interval = "" if alpha is None else f", with its {level(alpha)} interval (all pairs)"
    said = "; ".join(f"{row.name} {row.verdict}" for row in rows)
    return Figure(
        name=f"{table.name} {column.name} differences",
        title=table.title,
        height=bottom + AXIS,
        parts=parts,
        description=f"{title}, {table.name}: {said}.",
        caption=f"{title}{interval} and verdict: it may exclude {same:g} where the bars of the means overlap",
    )


def _contrast(row: Contrast, scale: Scale, y: float) -> list[str]:
    word = row.verdict if row.size is not None else "not compared"
    parts = [label(WIDTH - 4, y + 4, word, f"v {row.verdict}", "end")]
    if row.low is not None and row.high is not None:
        low, high = scale(row.low), scale(row.high)
        ends = "".join(f"M{px(end)} {px(y - 4)}v8" for end in (low, high))
        parts.append(f'<path class="interval {row.verdict}" d="M{px(low)} {px(y)}H{px(high)}{ends}"/>')
    if row.size is not None:
        parts.append(verdict_mark(scale(row.size), y, row.verdict, f"{row.name}: {number(row.size, 3)}. {row.text}"))
    return parts


def _sides(scale: Scale, same: float, column: Column, bottom: float) -> list[str]:
    """The line of no difference, and what its sides mean, where there is room for it."""
    at = scale(same)
    left, right = ("← worse", "better →") if column.higher_is_better else ("← better", "worse →")
    parts = [line(at, _TOP - 4, at, bottom, "unit")]
    if at - text_width(left) - 5 > 0:
        parts.append(label(at - 5, _TOP - 7, left, "tick", "end"))
    if at + text_width(right) + 5 < WIDTH:
        parts.append(label(at + 5, _TOP - 7, right, "tick"))
    return parts
