"""In which half did a number change? A candidate is compared with both of the sides that it lies between.

The two sides are known to differ. If the candidate differs from the earlier one, a change lies before it; if it differs
from the later one, a change lies after it. It cannot equal both, but it can be within the tolerance of both, so
either test may be wrong and they share the error rate of the step.
A difference counts once its whole interval is beyond the tolerance, so whatever is found is larger than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from boosters_eval.stats.observations import same_predictions
from boosters_eval.stats.sequential import DEFAULT_MAX_SEEDS, SequentialRule
from boosters_eval.stats.significance import DEFAULT_ALPHA
from boosters_eval.stats.tables import compare_table

if TYPE_CHECKING:
    from boosters_eval.stats.observations import Side
    from boosters_eval.stats.significance import Comparison

ShiftOutcome = Literal["changed", "unchanged", "undecided"]
Likeness = Literal["earlier", "later", "undecided"]  # which side a candidate belongs to

SPARE = 2  # candidates that may stay undecided before the search gives up


@dataclass(frozen=True, slots=True)
class SearchRule:
    """How the error rate of a whole search is shared by its tests, and by the looks of each (Bonferroni)."""

    versions: int
    alpha: float = DEFAULT_ALPHA
    max_seeds: int = DEFAULT_MAX_SEEDS

    @property
    def tries(self) -> int:
        """How many candidates may be judged: those of a halving search, and some that nothing can be told of."""
        between = self.versions - 2
        return min(between, math.ceil(math.log2(self.versions - 1)) + SPARE) if between > 0 else 0

    @property
    def equal_alpha(self) -> float:
        """The alpha of the interval by which the ends are called equal: one search does so once, on two sides."""
        return 2 * self.alpha / len(self.seeds.schedule)

    @property
    def seeds(self) -> SequentialRule:
        """When each of the tests looks, and at which level; the first test compares the two ends."""
        return SequentialRule(max_seeds=self.max_seeds, alpha=self.alpha / (1 + self.tries))


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The number that is compared: by its difference, or by its ratio if it is a time or a size."""

    metric: str
    higher_is_better: bool
    as_ratio: bool
    tolerance: float  # relative: the smallest change that counts

    def margin(self, reference: float) -> float:
        """The tolerance in the test's unit; a share of the reference, which is the mean of the first version."""
        return math.log1p(self.tolerance) if self.as_ratio else self.tolerance * abs(reference)


@dataclass(frozen=True, slots=True)
class Shift:
    """What became of a number between two versions."""

    outcome: ShiftOutcome
    comparison: Comparison | None  # of the later version with the earlier one; None if they share nothing
    bounds: tuple[float, float] | None = None  # in the test's unit: a difference, or a logarithm of the ratio

    @property
    def size(self) -> float:
        """The estimate in the test's unit."""
        found = self.comparison
        if found is None or found.difference is None:
            return 0.0
        return found.difference if found.ratio is None else math.log(found.ratio)


@dataclass(frozen=True, slots=True)
class Placement:
    """Which side a candidate belongs to, with the changes before and after it."""

    likeness: Likeness
    before: Shift  # from the earlier side to the candidate
    after: Shift  # from the candidate to the later side
    identical: bool = False  # the predictions are those of that side: no test was needed
    settled: bool = False  # further seeds could not show more


def find_shift(
    earlier: Side,
    later: Side,
    yardstick: Yardstick,
    *,
    alpha: float,
    margin: float | None = None,
    equal_alpha: float | None = None,
) -> Shift:
    """Whether the number changed by more than the margin; without one, that of the tolerance and the earlier mean.

    That it did not is another claim, with an error rate of its own: `equal_alpha`, by default the same.
    """
    found = _shift(earlier, later, yardstick, alpha, margin)
    if found.outcome != "undecided" or equal_alpha is None:
        return found
    equal = _shift(earlier, later, yardstick, equal_alpha, margin)
    return equal if equal.outcome == "unchanged" else found


def _shift(earlier: Side, later: Side, yardstick: Yardstick, alpha: float, margin: float | None) -> Shift:
    table = compare_table(
        {"earlier": earlier, "later": later},
        metric=yardstick.metric,
        higher_is_better=yardstick.higher_is_better,
        as_ratio=yardstick.as_ratio,
        alpha=alpha,
        rope=yardstick.tolerance,
    )
    if not table.pairs:
        return Shift("undecided", None)
    found = table.get("later", "earlier")
    if found.interval is None or found.mean_b is None:
        return Shift("undecided", found)
    low, high = found.interval
    bounds = (math.log(low), math.log(high)) if found.ratio is not None else (low, high)
    allowed = yardstick.margin(found.mean_b) if margin is None else margin
    if bounds[0] > allowed or bounds[1] < -allowed:
        return Shift("changed", found, bounds)
    inside = -allowed <= bounds[0] and bounds[1] <= allowed
    return Shift("unchanged" if inside else "undecided", found, bounds)


def place(
    earlier: Side, candidate: Side, later: Side, yardstick: Yardstick, *, rising: bool, level: float, margin: float
) -> Placement:
    """Which side the candidate belongs to, where the later side is known to be above the earlier one, or below it.

    Two one-sided tests, since the direction is known, share the level: each takes one end of an interval at the level.
    """
    before = find_shift(earlier, candidate, yardstick, alpha=level, margin=margin)
    after = find_shift(candidate, later, yardstick, alpha=level, margin=margin)
    for side, likeness in ((earlier, "earlier"), (later, "later")):
        if _identical(candidate, side):
            return Placement("earlier" if likeness == "earlier" else "later", before, after, True, True)
    shown = [part for part in (before, after) if _goes(part, rising=rising)]
    if shown:
        # If both halves contain a change, the search follows the larger one.
        largest = max(shown, key=lambda part: abs(part.size))
        return Placement("later" if largest is before else "earlier", before, after, settled=True)
    return Placement("undecided", before, after, settled=before.outcome == after.outcome == "unchanged")


def _goes(part: Shift, *, rising: bool) -> bool:
    return part.outcome == "changed" and (part.size > 0) == rising


def _identical(a: Side, b: Side) -> bool:
    shared = [repeat for repeat in a if repeat in b]
    return len(shared) > 1 and len(shared) == len(a) and same_predictions((a[repeat], b[repeat]) for repeat in shared)
