"""What two records of one pair say about each other: which cells match, and what the paired test makes of them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.baseline.model import MetricStats
from boosters_eval.core.repeat import Repeat
from boosters_eval.reports.numbers import p_value
from boosters_eval.stats.observations import Observation, Side

if TYPE_CHECKING:
    from boosters_eval.baseline.model import BaselineResult


@dataclass(frozen=True)
class Evidence:
    """Both values over the cells that both have, and why they may not be comparable."""

    before: MetricStats
    after: MetricStats
    higher_is_better: bool
    obstacle: str = ""  # why it would not be comparing like with like
    remark: str = ""
    p_value: float | None = None
    significant: bool | None = None  # None: not asked, or so few cells that no change could be significant


def paired_evidence(
    then: BaselineResult, now: BaselineResult, metric: str, *, statistical: bool, alpha: float
) -> Evidence:
    """The means over the common cells; with `statistical` also the corrected paired test."""
    higher = _higher_is_better(then, now, metric)
    before, after = then.metrics[metric], now.metrics[metric]
    if not before.per_seed or not after.per_seed:
        remark = "no values per seed were recorded, so the means are compared"
        remark += f" though n is {before.n} and {after.n}" if before.n != after.n else ""
        remark += " and nothing can be tested: the tolerance alone decides" if statistical else ""
        return Evidence(before, after, higher, remark=remark if before.n != after.n or statistical else "")
    common = [cell for cell in before.per_seed if cell in after.per_seed]
    obstacle = _obstacle(then, now, common)
    if obstacle:
        return Evidence(before, after, higher, obstacle=obstacle)
    remark = "" if len(common) == before.n else f"over {len(common)} of the {before.n} recorded seeds"
    before, after = _over(before, common), _over(after, common)
    if not statistical or before.per_seed == after.per_seed:
        return Evidence(before, after, higher, remark=remark)
    return _tested(then, now, Evidence(before, after, higher, remark=remark), metric, alpha)


def _higher_is_better(then: BaselineResult, now: BaselineResult, metric: str) -> bool:
    recorded = next((r.higher_is_better for r in (then, now) if r.primary_metric == metric), None)
    if recorded is not None:
        return recorded
    from boosters_eval.metrics import higher_is_better  # noqa: PLC0415 (metrics load when they are needed)

    return higher_is_better(metric)


def _obstacle(then: BaselineResult, now: BaselineResult, common: list[str]) -> str:
    if then.data_digest and now.data_digest and then.data_digest != now.data_digest:
        return "the data is not the recorded data; record a new baseline"
    if not common:
        return "no seed is in both"
    for cell in common:
        first, second = then.split_digests.get(cell), now.split_digests.get(cell)
        if first and second and first != second:
            return f"the split of cell {cell} is not the recorded split; record a new baseline"
    return ""


def _over(stats: MetricStats, cells: list[str]) -> MetricStats:
    if len(cells) == stats.n:
        return stats
    values = {cell: stats.per_seed[cell] for cell in cells}
    numbers = list(values.values())
    return MetricStats(
        mean=math.fsum(numbers) / len(numbers),
        std=statistics.stdev(numbers) if len(numbers) > 1 else None,
        n=len(numbers),
        per_seed=values,
    )


def _tested(then: BaselineResult, now: BaselineResult, evidence: Evidence, metric: str, alpha: float) -> Evidence:
    """The same test as between two libraries: paired by split, corrected for the rows that splits share."""
    from boosters_eval.stats.tables import compare_table  # noqa: PLC0415 (loads scipy)

    sides = {"then": _observe(then, evidence.before), "now": _observe(now, evidence.after)}
    table = compare_table(sides, metric=metric, higher_is_better=evidence.higher_is_better, alpha=alpha)
    found = table.get("now", "then")
    p = found.p_value
    remarks = [evidence.remark]
    if p is None or (p > alpha and found.interval is None):
        # Too few cells for any change to be significant: demanding significance would let everything pass.
        remarks.append("too few cells for a test: the tolerance alone decides")
        significant = None
    else:
        significant = p <= alpha
        text = p_value(p)
        remarks.append(f"p {text}" if text.startswith("<") else f"p = {text}")
        if not significant and found.min_detectable_percent is not None:
            remarks.append(f"{found.n} cells could have shown a change of {found.min_detectable_percent:.1f} %")
    return Evidence(
        evidence.before,
        evidence.after,
        evidence.higher_is_better,
        remark=", ".join(filter(None, remarks)),
        p_value=p,
        significant=significant,
    )


def _observe(record: BaselineResult, stats: MetricStats) -> Side:
    return Side(
        (
            Repeat.parse(cell),
            Observation(value, record.split_digests.get(cell), record.n_train, record.n_valid, record.data_digest),
        )
        for cell, value in stats.per_seed.items()
    )
