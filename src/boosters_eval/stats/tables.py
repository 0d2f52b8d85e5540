"""All pairs of one table: observations paired by repeat, splits checked, one correction over the whole table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.stats.inference import HUGE, mean_and_spread, paired
from boosters_eval.stats.observations import (
    ASSUMED_RATIO,
    by_split,
    coarsest_resolution,
    find_design,
    in_order,
    same_predictions,
    split_ratio,
)
from boosters_eval.stats.rows import find_mean, prepare_rows
from boosters_eval.stats.significance import (
    DEFAULT_ALPHA,
    DEFAULT_ROPE,
    Comparison,
    Criteria,
    PendingComparison,
    TestName,
    conclude,
    prepare,
    prepare_times,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.stats.observations import AnySide, Observations


@dataclass(frozen=True, slots=True)
class SideSummary:
    mean: float  # NaN when a value is not finite
    std: float | None  # ddof 1; None for a single value
    n: int
    interval: tuple[float, float] | None  # of the mean, as `mean_interval` gives it for the table's test


@dataclass(frozen=True, slots=True)
class SharedMeans:
    """Means over the splits that every side has, so that a side does not gain by failing on the hard ones."""

    means: Mapping[str, float]  # empty when no split is shared; NaN when a value is not finite
    n: int
    total: int  # splits that any side has


def shared_means(scores: Mapping[str, Mapping[Hashable, float]]) -> SharedMeans:
    splits = list(dict.fromkeys(split for row in scores.values() for split in row))
    common = [split for split in splits if all(split in row for row in scores.values())]
    shared = {name: [row[split] for split in common] for name, row in scores.items()} if common else {}
    means = {name: fmean(row) if all(abs(value) < HUGE for value in row) else math.nan for name, row in shared.items()}
    return SharedMeans(means, len(common), len(splits))


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    metric: str
    higher_is_better: bool
    test: TestName
    alpha: float
    summaries: Mapping[str, SideSummary]
    shared: SharedMeans
    pairs: Mapping[tuple[str, str], Comparison]
    one_machine: bool = True  # or no machine matters

    def get(self, a: str, b: str) -> Comparison:
        return self.pairs[a, b] if (a, b) in self.pairs else self.pairs[b, a].flipped()

    @property
    def leaders(self) -> list[str]:
        """The sides with the best mean, significant or not; over their own splits if no split is shared.

        Means over splits of several machines say nothing of the sides, so then nobody leads.
        A side that another one was shown to be better than does not lead, even if its mean over the few splits that
        all sides have is the best: that pair shares more splits, on which it lost.
        """
        own = {name: summary.mean for name, summary in self.summaries.items()} if self.one_machine else {}
        means = self.shared.means or own
        signed = {name: self._signed(mean) for name, mean in means.items()}
        standing = [name for name in signed if not any(self._beats(other, name) for other in signed if other != name)]
        best = min((signed[name] for name in standing or signed), default=0.0)
        return [name for name in standing or signed if signed[name] == best]

    @property
    def leader(self) -> str | None:
        return next(iter(self.leaders), None)

    @property
    def winner(self) -> str | None:
        """The side that may be called best, or None."""
        leader = self.leader
        others = [name for name in self.summaries if name != leader]
        if leader is None or not others:
            return None
        return leader if all(self._beats(leader, other) for other in others) else None

    @property
    def tied(self) -> list[str]:
        """The leader, and the sides that were not shown to be worse."""
        leader = self.leader
        return [name for name in self.summaries if leader and (name == leader or not self._beats(leader, name))]

    def ruled(self, a: str, b: str) -> Comparison:
        """The comparison with the verdict by the rule of the table: for Welch's test the RFC's, which has its own."""
        pair = self.get(a, b)
        if self.test != "welch":
            return pair
        if self._beats(a, b) or self._beats(b, a):
            return replace(pair, verdict="better" if self._beats(a, b) else "worse")
        if pair.verdict not in ("better", "worse"):
            return pair
        note = "By the RFC's rule nothing is decided: the intervals of the two means overlap."
        return replace(pair, verdict="inconclusive", note=f"{pair.note} {note}".lstrip())

    def _signed(self, mean: float) -> float:
        """The mean with its sign changed so that lower is better; NaN is the worst."""
        if math.isnan(mean):
            return math.inf
        return -mean if self.higher_is_better else mean

    def _beats(self, a: str, b: str) -> bool:
        turned = (a, b) not in self.pairs
        pair = self.pairs[b, a] if turned else self.pairs[a, b]
        if self.test != "welch":
            return pair.verdict == ("worse" if turned else "better")
        # RFC-0015's rule: the better mean, intervals that do not overlap, and Welch's p below alpha.
        first, second = self.summaries[a], self.summaries[b]
        if first.interval is None or second.interval is None or pair.p_value is None:
            return False
        apart = first.interval[1] < second.interval[0] or second.interval[1] < first.interval[0]
        return apart and pair.p_value < self.alpha and self._signed(first.mean) < self._signed(second.mean)


def compare_table(
    observations: Observations,
    *,
    metric: str,
    higher_is_better: bool,
    as_ratio: bool = False,
    test: TestName = "corrected",
    alpha: float = DEFAULT_ALPHA,
    rope: float = DEFAULT_ROPE,
    best: float = 0.0,
    margin: float | None = None,
) -> ComparisonTable:
    """Compare each pair of sides. A pair that cannot be compared gets a note with the reason and no p-value.

    With `as_ratio` (times and memory) values are compared by their ratio with the plain paired test, whatever the
    test of the table. Only Welch's test, the RFC's, still compares their difference. The test by rows takes those of
    the observations; a pair that lacks them is compared by the corrected test, and says so by its `test`. `best` and
    `margin` are those of `Criteria`.
    """
    criteria = Criteria(higher_is_better, test, alpha, rope, best, margin)
    sides = {name: side for name, side in observations.items() if side}
    faults = {name: _find_fault(name, side, metric, as_ratio=as_ratio) for name, side in sides.items()}
    names = list(combinations(sides, 2))
    pending = [_prepare_pair(sides[a], sides[b], faults[a] or faults[b], criteria, as_ratio=as_ratio) for a, b in names]
    values: dict[str, dict[Hashable, float]] = {
        name: {(repeat, one.machine): one.value for repeat, one in side.items()} for name, side in sides.items()
    }
    splits = {repeat for side in sides.values() for repeat in side}
    machines = {one.machine for side in sides.values() for one in side.values()}
    return ComparisonTable(
        metric=metric,
        higher_is_better=higher_is_better,
        test=test,
        alpha=alpha,
        summaries={name: _summary(observations[name], criteria, as_ratio=as_ratio) for name in sides},
        shared=replace(shared_means(values), total=len(splits)),
        pairs=dict(zip(names, conclude(pending), strict=True)),
        one_machine=len(machines) <= 1,
    )


def compare_sides(a: AnySide, b: AnySide, *, metric: str, criteria: Criteria, as_ratio: bool = False) -> Comparison:
    """The one comparison of a table of two sides, without the rest of the table; neither side is empty."""
    faults = [_find_fault(name, side, metric, as_ratio=as_ratio) for name, side in (("a", a), ("b", b))]
    return conclude([_prepare_pair(a, b, faults[0] or faults[1], criteria, as_ratio=as_ratio)])[0]


def mean_interval(
    side: AnySide, *, test: TestName = "corrected", alpha: float = DEFAULT_ALPHA, as_ratio: bool = False
) -> tuple[float, float] | None:
    """The 1 - alpha interval of one side's mean, by the rules of the test that judges it.

    The corrected test counts repeats on the same split as one observation and widens the interval for the rows that
    splits share. None if the mean cannot be bounded: a single split, a value that is not finite, a repeat given twice.
    """
    if getattr(side, "repeated", False):
        return None
    side = {repeat: side[repeat] for repeat in in_order(side)}
    if test == "rows" and not as_ratio:
        scores = [one.rows for one in side.values() if one.rows is not None]
        found = find_mean(scores) if len(scores) == len(side) else None
        if found is not None:
            return found.interval(alpha)
        test = "corrected"
    corrected = test == "corrected" and not as_ratio
    values = _averaged(side, by_split(side)) if corrected else _values(side, side)
    if len(values) < 2 or not all(abs(value) < HUGE for value in values):
        return None
    resolution = coarsest_resolution(side.values()) or 0.0
    if min(values) == max(values) and not resolution:  # the rounding of the mean must not look like variation
        return values[0], values[0]
    overlap = (split_ratio(side.values()) or ASSUMED_RATIO) if corrected else 0.0
    design = None if as_ratio else find_design(side, test)
    if design is not None and design.refusal:
        return None
    return paired(np.asarray(values), overlap=overlap, resolution=resolution, design=design).interval(alpha)


def _prepare_pair(a: AnySide, b: AnySide, fault: str, criteria: Criteria, *, as_ratio: bool) -> PendingComparison:
    test = criteria.test
    both = in_order({repeat: a[repeat] for repeat in a if repeat in b})
    common = [repeat for repeat in both if a[repeat].machine == b[repeat].machine]
    reason = fault or _find_obstacle(a, b, both, common, test)
    if reason:
        return criteria.refusal(reason)
    resolution = coarsest_resolution((*a.values(), *b.values()))
    identical = same_predictions((a[repeat], b[repeat]) for repeat in common)
    if test == "rows":
        by_rows = None if as_ratio else _prepare_by_rows(a, b, common, criteria, identical=identical)
        if by_rows is not None:
            return by_rows
        test, criteria = "corrected", replace(criteria, test="corrected")
    design = None if as_ratio else find_design({repeat: a[repeat] for repeat in common}, test)
    if test == "welch" and not (design and design.refusal):
        whole = len(common) == len(a) == len(b)
        left, right = (_values(a, common), _values(b, common)) if whole else (_values(a, a), _values(b, b))
        identical = identical and whole
        return prepare(left, right, criteria, test_train_ratio=None, resolution=resolution, identical=identical)
    alone = len(a) + len(b) - 2 * len(both)
    notes = [f"{alone} result(s) without a partner on the same split are left out."] if alone else []
    apart = len(both) - len(common)
    were = f"{apart} of {len(both)} pairs {'was' if apart == 1 else 'were'}"
    notes += [f"{were} measured on two machines and not compared."] if apart else []
    if as_ratio:
        ratios = prepare_times(_values(a, common), _values(b, common), replace(criteria, test="paired"))
        return ratios.noted(*notes)
    ratio = split_ratio(a[repeat] for repeat in common)
    if ratio is None and test == "corrected":
        notes.append("The sizes of the splits are unknown: 80 % training and 20 % test rows are assumed.")
    groups = by_split({repeat: a[repeat] for repeat in common}) if test == "corrected" else [[r] for r in common]
    if len(groups) < len(common):
        notes.append(
            f"{len(common)} seeds share {len(groups)} distinct split(s): scores on the same split are averaged."
        )
    left, right, ratio = _averaged(a, groups), _averaged(b, groups), ratio or ASSUMED_RATIO
    known: Any = {"resolution": resolution, "identical": identical, "design": design}
    return prepare(left, right, criteria, test_train_ratio=ratio, **known).noted(*notes)


def _prepare_by_rows(
    a: AnySide, b: AnySide, common: Sequence[Repeat], criteria: Criteria, *, identical: bool
) -> PendingComparison | None:
    """The comparison by rows, or None where they cannot serve."""
    sides = [[rows for repeat in common if (rows := side[repeat].rows) is not None] for side in (a, b)]
    if any(len(scores) < len(common) for scores in sides):
        return None
    resolution = coarsest_resolution([*a.values(), *b.values()])
    found = prepare_rows(sides[0], sides[1], criteria, resolution=resolution, identical=identical)
    if found.fitted is None and not found.answered:
        return None
    alone = len(a) + len(b) - 2 * len(common)
    return found.noted(f"{alone} result(s) without a partner on the same split are left out." if alone else "")


def _find_fault(name: str, side: AnySide, metric: str, *, as_ratio: bool) -> str:
    """A sentence on why a side cannot be compared with any other; empty if it can."""
    if getattr(side, "repeated", False):
        return f"{name} has more than one result for the same seed and fold."
    for repeat, one in side.items():
        if not abs(one.value) < HUGE:
            return f"{metric} of {name} is not a finite number for {repeat}."
    negative = next((repeat for repeat, one in side.items() if as_ratio and one.value <= 0), None)
    return "" if negative is None else f"{metric} of {name} is not positive for {negative}."


def _find_obstacle(a: AnySide, b: AnySide, both: Sequence[Repeat], common: Sequence[Repeat], test: TestName) -> str:
    """A sentence on why two sides cannot be compared with each other; empty if they can."""
    every = (*a.values(), *b.values())
    if len({one.kind for one in every}) > 1:
        return "The results were made with splits of different kinds."
    if len({one.data_digest for one in every if one.data_digest}) > 1:
        return "The results were made on different data."
    for repeat in both:
        first, second = a[repeat].split_digest, b[repeat].split_digest
        if first and second and first != second:
            return f"The splits differ for {repeat}: the results cannot be compared."
    if test == "welch":
        pairs_nothing = "Welch's test pairs nothing, so values that were measured on several machines are not compared."
        return pairs_nothing if len({one.machine for one in every}) > 1 else ""
    if both and not common:
        return "All pairs were measured on two machines, so none is compared."
    return "" if common else "Unmatched seeds: the two sides share no split."


def _values(side: AnySide, repeats: Iterable[Repeat]) -> list[float]:
    return [side[repeat].value for repeat in repeats]


def _averaged(side: AnySide, groups: Iterable[Sequence[Repeat]]) -> list[float]:
    return [side[group[0]].value if len(group) == 1 else float(np.mean(_values(side, group))) for group in groups]


def _summary(side: AnySide, criteria: Criteria, *, as_ratio: bool) -> SideSummary:
    values = np.asarray(_values(side, side))
    if not (np.abs(values) < HUGE).all():
        return SideSummary(math.nan, None, len(values), None)
    if len(values) < 2:
        return SideSummary(float(values.mean()), None, 1, None)
    mean, std = mean_and_spread(values)
    interval = mean_interval(side, test=criteria.test, alpha=criteria.alpha, as_ratio=as_ratio)
    return SideSummary(mean, std, len(values), interval)
