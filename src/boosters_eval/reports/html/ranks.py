"""Average ranks over the data sets, and who cannot be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.html.figures import WIDTH, Figure, RowNames
from boosters_eval.reports.html.svg import Scale, label, line, marker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.reports.model import RankingTable

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
