"""When are there enough seeds? A rule that keeps its error rate even though it looks more than once.

The looks are fixed before the first seed runs, and each uses alpha divided by their number (the Bonferroni bound
over looks). However the looks depend on each other, the chance that any of them gives a wrong verdict is at most
alpha. Tests for independent increments would not be valid here, because splits of one data set share rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import scipy  # as in `inference`

from boosters_eval.core.text import count_of
from boosters_eval.stats.inference import MOST_FREEDOM, StatisticsInputError, StudentT, detectable_errors, freedom
from boosters_eval.stats.observations import same_predictions
from boosters_eval.stats.significance import DEFAULT_ALPHA, DEFAULT_ROPE
from boosters_eval.stats.tables import compare_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boosters_eval.stats.inference import Design
    from boosters_eval.stats.observations import Side
    from boosters_eval.stats.significance import Comparison

FIRST_LOOK = 5
DEFAULT_MAX_SEEDS = 50
_MANY_SPLITS = 1000  # beyond these, further splits add nothing: the rows that they share limit the test


@dataclass(frozen=True, slots=True)
class Decision:
    stop: bool
    undecided: int  # pairs that further seeds could decide
    reason: str
    seeds: int = 0  # of the next look


@dataclass(frozen=True, slots=True)
class SequentialRule:
    """`compare --seeds auto`: run `schedule[0]` seeds, look, and continue to the next count until `decide` says stop.

    Every table of a look is judged with alpha=`level`, and so is the final report.
    """

    max_seeds: int = DEFAULT_MAX_SEEDS
    alpha: float = DEFAULT_ALPHA
    rope: float = DEFAULT_ROPE

    def __post_init__(self) -> None:
        if self.max_seeds < 2:
            raise StatisticsInputError(f"The 'max_seeds' parameter must be at least 2. Got {self.max_seeds} instead.")

    @property
    def schedule(self) -> tuple[int, ...]:
        """The numbers of seeds at which to look: 5, 10, 20, ... and the maximum."""
        counts = []
        count = FIRST_LOOK
        while 4 * count <= 3 * self.max_seeds:  # a look just before the last one would waste part of the level
            counts.append(count)
            count *= 2
        return (*counts, self.max_seeds)

    @property
    def level(self) -> float:
        return self.alpha / len(self.schedule)

    def decide(
        self,
        look: int,
        comparisons: Iterable[Comparison],
        *,
        budget_left: bool = True,
        affordable: Callable[[int], int] | None = None,
    ) -> Decision:
        """Whether to stop after look number `look` (0 is the first), given every pair of every table.

        `affordable` says how many of the seeds of the next look the budget is enough for. A look that the budget
        brings forward takes the place of the next scheduled one.
        """
        pairs = list(comparisons)
        if any(pair.alpha != self.level for pair in pairs):
            raise StatisticsInputError(f"Each look must be judged with alpha={self.level}, the rule's level.")
        open_pairs = [pair for pair in pairs if pair.verdict == "inconclusive" and pair.n > 0]
        stop = partial(Decision, stop=True, undecided=len(open_pairs))
        if not open_pairs:
            refused = sum(pair.n == 0 for pair in pairs)
            return stop(reason="every pair has a verdict" + (f"; {refused} cannot be compared" if refused else ""))
        if look + 1 >= len(self.schedule):
            return stop(reason="no more are allowed")
        following = self.schedule[look + 1]
        within = affordable(following) if affordable is not None and budget_left else following
        if not budget_left or not within:
            return stop(reason="the time budget is used up")
        few = "" if within == following else ", for which the time budget is enough"
        are = "is" if len(open_pairs) == 1 else "are"
        pairs_ = f"{len(open_pairs)} of {count_of(len(pairs), 'pair')} {are} inconclusive"
        reason = f"{pairs_}; continuing to {within} seeds{few}"
        return Decision(stop=False, undecided=len(open_pairs), reason=reason, seeds=within)


def splits_to_decide(
    found: Comparison,
    overlap: float,
    level: Callable[[int], float] | None = None,
    design: Design | None = None,
) -> int | None:
    """How many splits make a difference significant that stays as large and as variable as the one observed.

    `overlap` is n_test / n_train of the corrected test, `level` the alpha of a test with so many splits, by default
    that of the comparison. None if no number of splits is enough, because the rows that
    they share limit the test, or if the comparison has no interval from which the variation is known.
    """
    if found.interval is None or found.difference is None or found.n < 2:
        return None
    if found.evidence is not None:
        return found.evidence.splits_to_decide(level or (lambda _: found.alpha))
    most = MOST_FREEDOM if design is None else design.most_freedom
    half = (found.interval[1] - found.interval[0]) / 2
    critical = float(scipy.special.stdtrit(freedom(found.n, overlap, most), 1 - found.alpha / 2))
    spread = half / critical / math.sqrt(1 / found.n + overlap)
    size = abs(found.difference)

    def significant(count: int) -> bool:
        fitted = StudentT(size, spread * math.sqrt(1 / count + overlap), freedom(count, overlap, most))
        return 2 * fitted.greater(0.0) <= (found.alpha if level is None else level(count))

    return next(filter(significant, range(found.n + 1, _MANY_SPLITS + 1)), None)


def detectable_with(splits: int, shown: float, n: int, *, level: float, overlap: float) -> float:
    """The difference that so many splits would show in four out of five runs, if `n` splits could show `shown`.

    How much the splits vary is known from those n only. `level` is the alpha of the test, `overlap` n_test / n_train
    of the corrected test and 0 of others. More splits of the same rows show less and less.
    """

    def errors(count: int) -> float:
        critical = float(scipy.special.stdtrit(freedom(count, overlap), 1 - level / 2))
        return detectable_errors(critical, count - 1, n - 1) * math.sqrt(1 / count + overlap)

    return shown * errors(splits) / errors(n)


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
    tolerance: float  # the smallest change that counts, relative to the error
    best: float = 0.0  # the value without any error

    def margin(self, reference: float) -> float:
        """The tolerance in the test's unit; a share of the error of the reference, the mean of the first version."""
        return math.log1p(self.tolerance) if self.as_ratio else self.tolerance * abs(reference - self.best)


@dataclass(frozen=True, slots=True)
class Shift:
    """What became of a number between two versions."""

    outcome: ShiftOutcome
    comparison: Comparison | None  # of the later version with the earlier one; None if they share nothing
    bounds: tuple[float, float] | None = None  # in the test's unit: a difference, or a logarithm of the ratio

    @property
    def size(self) -> float:
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
    settled: bool  # further seeds could not show more
    identical: bool = False  # the predictions are those of that side: no test was needed


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
        test="rows",
        alpha=alpha,
        rope=yardstick.tolerance,
        best=yardstick.best,
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
    if _identical(candidate, earlier) or _identical(candidate, later):
        likeness: Likeness = "earlier" if _identical(candidate, earlier) else "later"
        return Placement(likeness, before, after, settled=True, identical=True)
    shown = [part for part in (before, after) if part.outcome == "changed" and (part.size > 0) == rising]
    if shown:
        # If both halves contain a change, the search follows the larger one.
        largest = max(shown, key=lambda part: abs(part.size))
        return Placement("later" if largest is before else "earlier", before, after, settled=True)
    return Placement("undecided", before, after, settled=before.outcome == after.outcome == "unchanged")


def _identical(a: Side, b: Side) -> bool:
    shared = [repeat for repeat in a if repeat in b]
    return len(shared) > 1 and len(shared) == len(a) and same_predictions((a[repeat], b[repeat]) for repeat in shared)
