"""The tests behind a verdict, each on one sample of differences (or two samples, for Welch).

A test answers for any shift of the null, so that "different from zero" and "inside the region of practical
equivalence" come from the same arithmetic. Only scipy.special is used: scipy.stats takes a second to import.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its `special` is loaded when a test is made: identical scores need none

from boosters_eval.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

POWER = 0.8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_STEPS = 40  # bisections: twelve digits


@lru_cache(maxsize=4096)
def detectable_errors(critical: float, freedom: float, known: float | None = None) -> float:
    """The true difference, in estimated standard errors, that a test with this critical value finds in 80 % of runs.

    Both runs only estimate the error: the one that the answer is computed from (with `known` degrees of freedom, by
    default as many), and the one that is to find the difference. The plain formula (critical value plus the t quantile
    of the power) ignores this, and finds 70 to 76 %.
    """
    estimated = _spreads(freedom if known is None else known)
    weights = np.outer(_WEIGHTS, _WEIGHTS) / 4
    needed = critical * _spreads(freedom)[None, :]

    def power(errors: float) -> float:
        return float((weights * scipy.special.ndtr(errors * estimated[:, None] - needed)).sum())

    low, high = 0.0, critical + 1
    while power(high) < POWER and math.isfinite(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def _spreads(freedom: float) -> NDArray[np.float64]:
    """Estimated standard deviations, in true ones, at the nodes of the integral."""
    return np.asarray(np.sqrt(2 * scipy.special.gammaincinv(freedom / 2, (_NODES + 1) / 2) / freedom))


SAME = 1e-12  # relative: differences closer than this are rounding, not variance
TINY = 1e-140  # the square of anything smaller underflows
HUGE = 1e140  # the square of anything larger overflows: such a score is a failure
SMALLEST_P = sys.float_info.min  # a p-value is never 0
MOST_FREEDOM = 10  # of splits that share rows: more of them do not make their variance better known
MOST_ALIKE = 0.9  # the largest correlation of neighboring windows that is reckoned with
_EXACT_RANKS = 200  # differences up to which the distribution of their ranks is enumerated


class StatisticsInputError(ConfigError):
    """Values or settings from which no statistic can be computed."""


@dataclass(frozen=True, slots=True)
class Design:
    """How splits depend on each other, besides the rows that they share."""

    most_freedom: int = MOST_FREEDOM
    ordered: bool = False  # windows of time, in their order: neighbors may be alike
    refusal: str = ""  # why no test holds its level on such splits


@dataclass(frozen=True, slots=True)
class StudentT:
    """A mean difference with its standard error: paired, corrected or Welch's."""

    estimate: float
    error: float
    freedom: float
    spread_freedom: float | None = None  # of the error itself, where the test's freedom is limited
    attainable: float = 0.0  # the smallest two-sided p-value that this sample size can give

    def greater(self, shift: float) -> float:
        """The p-value of "the true difference is at most `shift`"."""
        return max(float(scipy.special.stdtr(self.freedom, (shift - self.estimate) / self.error)), SMALLEST_P)

    def less(self, shift: float) -> float:
        """The p-value of "the true difference is at least `shift`"."""
        return max(float(scipy.special.stdtr(self.freedom, (self.estimate - shift) / self.error)), SMALLEST_P)

    def interval(self, alpha: float) -> tuple[float, float]:
        """The two-sided interval; other tests have None where the sample cannot bound it."""
        half = float(scipy.special.stdtrit(self.freedom, 1 - alpha / 2)) * self.error
        return self.estimate - half, self.estimate + half

    def detectable(self, alpha: float) -> float:
        """The true difference that four out of five such runs would detect."""
        critical = float(scipy.special.stdtrit(self.freedom, 1 - alpha / 2))
        return detectable_errors(critical, self.spread_freedom or self.freedom) * self.error

    def positive(self) -> float:
        """The probability that the true difference is above zero."""
        return float(scipy.special.stdtr(self.freedom, self.estimate / self.error))


@dataclass(frozen=True, slots=True)
class Constant:
    """Differences without any variance: only the permutation test applies, and it is exact."""

    value: float
    attainable: float

    def greater(self, shift: float) -> float:
        return self.attainable / 2 if self.value > shift else 1.0

    def less(self, shift: float) -> float:
        return self.attainable / 2 if self.value < shift else 1.0

    def interval(self, alpha: float) -> tuple[float, float] | None:
        return (self.value, self.value) if self.attainable <= alpha else None

    def detectable(self, alpha: float) -> None:  # noqa: ARG002 (the signature of a test)
        return None

    def positive(self) -> float:
        return 1 - self.attainable / 2 if self.value > 0 else self.attainable / 2


@dataclass(frozen=True, slots=True)
class SignedRank:
    """Wilcoxon's test: the exact distribution of these ranks, ties included, or the normal one for many pairs."""

    differences: tuple[float, ...]
    attainable: float  # with the differences that are not zero
    resolution: float = 0.0

    def greater(self, shift: float) -> float:
        return _signed_rank_tail(np.asarray(self.differences) - shift)

    def less(self, shift: float) -> float:
        return _signed_rank_tail(shift - np.asarray(self.differences))

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """The Walsh averages between the test's critical ranks, never narrower than the resolution allows.

        It excludes zero only if the test, which leaves out differences of zero, rejects it as well.
        """
        values = np.asarray(self.differences)
        count = len(values)
        below = np.cumsum(_rank_sums(2 * np.arange(1, count + 1)))[::2]  # doubled ranks: odd sums are empty
        cut = int(np.searchsorted(below, alpha / 2, side="right"))
        if cut == 0:
            return None
        rows, columns = np.triu_indices(count)
        walsh = np.sort((values[rows] + values[columns]) / 2)
        low, high = float(walsh[cut - 1]), float(walsh[-cut])
        floor = StudentT((low + high) / 2, self.resolution / math.sqrt(count), count - 1).interval(alpha)
        low, high = min(low, floor[0]), max(high, floor[1])
        return (
            min(low, 0.0) if 2 * self.greater(0.0) > alpha else low,
            max(high, 0.0) if 2 * self.less(0.0) > alpha else high,
        )

    def detectable(self, alpha: float) -> float | None:
        """Student's answer on the same differences: ranks have no closed form."""
        return paired(np.asarray(self.differences)).detectable(alpha) if self.attainable <= alpha else None

    def positive(self) -> float:
        """The mid-p value, so that a mirrored sample gives the complement."""
        return (1 - self.greater(0.0) + self.less(0.0)) / 2


FittedTest = StudentT | Constant | SignedRank


def paired(
    differences: FloatArray, *, overlap: float = 0.0, resolution: float = 0.0, design: Design | None = None
) -> StudentT:
    """Student's test on differences; `overlap` is Nadeau and Bengio's n_test / n_train, 0 for no correction.

    `resolution` is the least spread that differences of a metric can show: what one row changes in it.
    """
    count = len(differences)
    mean, spread = mean_and_spread(differences)
    share = 1 / count + overlap
    if design is not None and design.ordered:
        share = max(share, _long_run_share(differences, mean))
    most = MOST_FREEDOM if design is None else design.most_freedom
    error = max(spread, resolution) * math.sqrt(share)
    known = count - 1 if most >= MOST_FREEDOM else min(count - 1, most)
    return StudentT(mean, error, freedom(count, overlap, most), known)


def freedom(count: int, overlap: float, most: int = MOST_FREEDOM) -> int:
    return min(count - 1, most) if overlap else count - 1


def _long_run_share(differences: FloatArray, mean: float) -> float:
    """The variance of the mean over that of one window, if each is like the one before it as much as was seen.

    That is (1 + r) / (1 - r) / k, with the correlation r of neighbors, which k windows show too low by 1 / k.
    """
    centered = (differences - mean).tolist()
    count = len(centered)
    squares = math.fsum(value * value for value in centered)
    products = math.fsum(a * b for a, b in pairwise(centered))
    alike = products / squares + 1 / count if squares > 0 else 0.0
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return (1 + alike) / (1 - alike) / count


def mean_and_spread(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation (ddof 1); for a handful of values this is ten times as fast as numpy."""
    numbers = values.tolist()
    mean = math.fsum(numbers) / len(numbers)
    return mean, math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1))


def welch(a: FloatArray, b: FloatArray, *, resolution: float = 0.0, overlap: float = 0.0) -> FittedTest:
    """Welch's test, which assumes that the two samples are independent.

    `overlap` widens it for splits within a sample that share rows, as the corrected test is widened.
    """
    part_a, part_b = (max(float(side.var(ddof=1)), resolution**2) * (1 / len(side) + overlap) for side in (a, b))
    error = math.sqrt(part_a + part_b)
    # Shares of the variance, because its square could underflow.
    share_a, share_b = part_a / (part_a + part_b), part_b / (part_a + part_b)
    known_a, known_b = freedom(len(a), overlap), freedom(len(b), overlap)
    return StudentT(float(a.mean() - b.mean()), error, 1 / (share_a * share_a / known_a + share_b * share_b / known_b))


def signed_rank(differences: FloatArray, *, resolution: float = 0.0) -> FittedTest:
    """Wilcoxon's test; a pair without a difference says nothing about zero, but counts once the null is shifted."""
    return SignedRank(tuple(differences.tolist()), sign_flip_floor(int(np.count_nonzero(differences))), resolution)


def sign_flip_floor(count: int) -> float:
    """The smallest two-sided p-value of any test that flips signs of `count` pairs."""
    return min(1.0, math.ldexp(1.0, 1 - count)) if count < 1000 else SMALLEST_P


def permutation_floor(count_a: int, count_b: int) -> float:
    """The smallest two-sided p-value of any test that permutes two samples."""
    return max(min(1.0, 2 / math.comb(count_a + count_b, count_a)), SMALLEST_P)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment, in the order given."""
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - step) * p_values[index]))
        adjusted[index] = running
    return adjusted


def spread_is_zero(values: FloatArray, scale: float) -> bool:
    return float(np.ptp(values)) <= max(SAME * scale, TINY)


def doubled_ranks(values: FloatArray) -> NDArray[np.int64]:
    """Twice the mid-ranks, which are whole numbers."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((2 * np.cumsum(counts) - counts + 1)[group], dtype=np.int64)


def _rank_sums(doubled: NDArray[np.int64]) -> FloatArray:
    """The probability of each sum of (doubled) ranks when every sign is a fair coin."""
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled.tolist():
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: len(chances) - rank]
        chances = (chances + moved) / 2
    return chances


def _signed_rank_tail(values: FloatArray) -> float:
    kept = values[values != 0]
    doubled = doubled_ranks(np.abs(kept))
    observed = int(doubled[kept > 0].sum())
    if len(kept) > _EXACT_RANKS:
        # The sum of this many ranks is as good as normal; the 1 is half a rank, the usual continuity correction.
        spread = math.sqrt(float((doubled.astype(np.float64) ** 2).sum())) / 2
        z = (observed - 1 - float(doubled.sum()) / 2) / spread
        return max(0.5 * math.erfc(z / math.sqrt(2)), SMALLEST_P)
    return max(float(_rank_sums(doubled)[observed:].sum()), SMALLEST_P)
