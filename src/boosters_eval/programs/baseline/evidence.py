"""What two records of one pair say about each other: which cells match, and what the paired test makes of them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boosters_eval.core.repeat import Repeat
from boosters_eval.programs.baseline.model import MetricStats
from boosters_eval.programs.benchmark.comparisons import resolution_of, split_fields
from boosters_eval.reports.numbers import p_value
from boosters_eval.stats.observations import ASSUMED_RATIO, Observation, Side, split_ratio

if TYPE_CHECKING:
    from boosters_eval.programs.baseline.model import BaselineResult
    from boosters_eval.stats.inference import Design
    from boosters_eval.stats.significance import Comparison


@dataclass(frozen=True)
class Evidence:
    """Both values over the cells that both have, and why they may not be comparable."""

    before: MetricStats
    after: MetricStats
    higher_is_better: bool
    obstacle: str = ""  # why it would not be comparing like with like
    remark: str = ""
    tested: Comparison | None = None  # now against then; None: not asked, or so few cells that no test can reject
    overlap: float = 0.0  # n_test / n_train of the splits
    design: Design | None = None  # None: the splits are random

    @property
    def p_value(self) -> float | None:
        """Of "nothing has changed"."""
        return None if self.tested is None else self.tested.p_value

    @property
    def worse(self) -> bool | None:
        """Whether it is significantly worse; None where nothing was tested."""
        if self.tested is None or self.tested.p_value is None or self.tested.difference is None:
            return None
        wrong_way = (self.tested.difference < 0) == self.higher_is_better
        return wrong_way and self.tested.p_value <= self.tested.alpha

    @property
    def worst(self) -> float | None:
        """The worst mean that is compatible with the run: the end of the interval; None where nothing was tested."""
        if self.tested is None or self.tested.interval is None:
            return None
        low, high = self.tested.interval
        return self.before.mean + (low if self.higher_is_better else high)


def paired_evidence(
    then: BaselineResult, now: BaselineResult, metric: str, *, statistical: bool, alpha: float
) -> Evidence:
    """The means over the common cells; with `statistical` also the corrected paired test."""
    higher = _higher_is_better(then, now, metric)
    before, after = then.metrics[metric], now.metrics[metric]
    if _contradict(then, now, metric):
        say = ("more", "less") if then.higher_is_better else ("less", "more")
        obstacle = f"the baseline says that {say[0]} {metric} is better, the run that {say[1]} is"
        return Evidence(before, after, higher, obstacle=obstacle)
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
    found = Evidence(before, after, higher, remark=remark)
    if not statistical:
        return found
    if before.per_seed == after.per_seed:  # no proof where one row is all that a score can resolve
        coarse = resolution_of(metric, now.n_valid)
        return replace(_tested(then, now, found, metric, alpha), remark=remark) if coarse else found
    return _tested(then, now, found, metric, alpha)


def _higher_is_better(then: BaselineResult, now: BaselineResult, metric: str) -> bool:
    recorded = next((r.higher_is_better for r in (then, now) if r.primary_metric == metric), None)
    if recorded is not None:
        return recorded
    from boosters_eval.metrics import higher_is_better  # noqa: PLC0415 (metrics load when they are needed)

    return higher_is_better(metric)


def _contradict(then: BaselineResult, now: BaselineResult, metric: str) -> bool:
    """Whether they differ in which way is better; of a user's metric, only the two of them know."""
    stated = {side.higher_is_better for side in (then, now) if side.primary_metric == metric}
    return len(stated - {None}) > 1


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
    from boosters_eval.stats.observations import design_of  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.significance import DEFAULT_ALPHA  # noqa: PLC0415
    from boosters_eval.stats.tables import compare_table  # noqa: PLC0415

    sides = {"then": _observe(then, evidence.before, metric), "now": _observe(now, evidence.after, metric)}
    table = compare_table(sides, metric=metric, higher_is_better=evidence.higher_is_better, alpha=alpha)
    found = table.get("now", "then")
    p = found.p_value
    if p is None or (p > alpha and found.interval is None):
        # Too few cells for any change to be significant: what is beyond tolerance is not merely suspected.
        return _remarked(evidence, "too few cells for a test: the tolerance alone decides")
    text = p_value(p)
    level = "" if alpha == DEFAULT_ALPHA else f" at alpha = {alpha:.3g}"
    overlap = split_ratio(sides["then"].values()) or ASSUMED_RATIO
    return _remarked(
        replace(evidence, tested=found, overlap=overlap, design=design_of(sides["then"], "corrected")),
        (f"p {text}" if text.startswith("<") else f"p = {text}") + level,
    )


def _remarked(evidence: Evidence, remark: str) -> Evidence:
    return replace(evidence, remark=", ".join(filter(None, (evidence.remark, remark))))


def seeds_needed(evidence: Evidence, *, looks: bool = False) -> int | None:
    """How many seeds make the change significant if it stays as it is; None if no number does.

    With `looks`, they are added by the sequential rule, whose level falls with its number of looks.
    """
    from boosters_eval.stats.sequential import SequentialRule, splits_to_decide  # noqa: PLC0415 (loads scipy)

    if evidence.tested is None or (evidence.design is not None and evidence.design.ordered):
        return None  # seeds add no windows
    level = (lambda seeds: SequentialRule(max_seeds=seeds).level) if looks else None
    splits = splits_to_decide(evidence.tested, evidence.overlap, level, evidence.design)
    cells = [Repeat.parse(cell) for cell in evidence.before.per_seed]
    per_seed = len(cells) / len({repeat.seed for repeat in cells})  # more than one where there are folds
    return None if splits is None else math.ceil(splits / per_seed)


def _observe(record: BaselineResult, stats: MetricStats, metric: str) -> Side:
    resolution = resolution_of(metric, record.n_valid)
    return Side(
        (
            Repeat.parse(cell),
            Observation(
                value,
                record.split_digests.get(cell),
                record.n_train,
                record.n_valid,
                record.data_digest,
                resolution=resolution,
                **split_fields(record.split),
            ),
        )
        for cell, value in stats.per_seed.items()
    )
