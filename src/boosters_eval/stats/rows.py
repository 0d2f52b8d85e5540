"""Rows as evidence: whether two libraries differ by more than the luck of the rows and of the training.

Each split tests hundreds of rows, and a metric is a mean of what they contribute (`metrics/linear.py`). Let row i
contribute a difference d(i) where it is tested, and change a model's risk by g(i) / m where it is one of its m training
rows. In K folds of n rows every row is tested once and trained on K - 1 times, so the mean difference varies by
Var(d + g) / n. Rows show Var(d); g is the luck of the training, which one partition does not show:

- Two learners that estimate the same function with errors of variance v, from noise of variance s², have
  Var(d) = 8 s² v. The variance v is itself a quadratic form in the noise: v = p s² / m for p parameters, and it varies
  by 4 v² / p. Two folds share (K - 2) / (K - 1) of their training rows, and a quadratic form the square of that. So the
  luck of the mean of all folds is 0.41 (K = 5) to 0.5 (K = 2, or many) of Var(d) / n, whatever n, m and p are.
- Learners that differ for good have less, since what makes them differ is not estimated. Learners with a bias of their
  own have more, because then g is of the first order. Simulated, the luck is -0.2 to 0.1 for ridge regressions and 0.1
  to 0.8 for trees and boosters, from 300 to 20 000 rows: it is stated as LUCK. What no rule for all can hold is a
  learner that comes upon something by chance, in all folds alike: an interaction of columns that do nothing alone gave
  a LightGBM of 40 trees 0.5 on 1 000 rows and 2.2 on 5 000.
- Rows that are tested again, by models of another partition, show how much retraining moves (`within`), but not the
  luck: the first-order part moves all rows together, and ten models do not tell it from noise.
- With f of K folds in a partition, or several partitions, the rows that are not tested have luck too: that of S splits
  is (1 + sum over partitions (f / S)² (K / f - 1) / (K - 1)²) Var(g) / n.

Rows that belong together (a group, a query) are one unit. A row that is tested several times is summed up first.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.stats.inference import HUGE, StudentT
from boosters_eval.stats.significance import PendingComparison, begin_comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from boosters_eval.core.request import Part
    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.significance import Criteria

    IntArray = NDArray[np.integer]

LUCK = 0.8  # of the training, in variances of the rows
LEAST_UNITS = 10  # rows, groups or queries
LEAST_AGAIN = 30  # units that were tested again, from which on they tell how much estimation moves
USUAL_WITHIN = 0.3  # the share of the variance within rows, where it is not known
_MOST_SPLITS = 1000


@dataclass(frozen=True, slots=True)
class RowScores:
    """One metric of one library on one split, row by row; `rows` says which, the same for all libraries."""

    block: int  # the partition: test sets of one block are disjoint
    fold: int
    folds: float  # of a whole partition: all rows over test rows
    rows: IntArray  # numbers in the whole data set; of a query, any that stands for it
    value: float
    contributions: FloatArray  # whose weighted mean is the value
    units: IntArray | None = None  # what rows belong to that are not independent: a group
    weights: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class RowTest(StudentT):
    """A mean difference over splits, whose error comes from rows and from the luck of the training."""

    units: int = 0
    splits: int = 0
    folds: float = 0.0
    within: float | None = None  # the share of the variance within rows; None: rows were tested once

    def error_with(self, splits: int) -> float:
        """The standard error that so many splits would have."""
        return self.error * math.sqrt(self._variance(splits) / self._variance(self.splits))

    def splits_to_decide(self, level: Callable[[int], float]) -> int | None:
        """How many splits would show a difference as large as this one, at the level of a test with so many."""
        for count in range(self.splits + 1, _MOST_SPLITS + 1):
            test = replace(self, estimate=abs(self.estimate), error=self.error_with(count))
            if 2 * test.greater(0.0) <= level(count):
                return count
        return None

    def _variance(self, splits: int) -> float:
        return _relative_variance(splits, self.folds, USUAL_WITHIN if self.within is None else self.within)


def prepare_rows(
    a: Sequence[RowScores],
    b: Sequence[RowScores],
    criteria: Criteria,
    *,
    resolution: float | None = 0.0,
    identical: bool = False,
) -> PendingComparison:
    """Compare two libraries by their rows, up to the correction for the table: `conclude` takes it like any other.

    `resolution` and `identical` are those of `prepare`: what one row changes in a value, and whether all predictions
    are the same. Splits that only one library has are left out. The note says so, or why rows cannot serve.
    """
    mine, other = ({(one.block, one.fold): one for one in side} for side in (a, b))
    pairs = [(mine[split], other[split]) for split in sorted(mine.keys() & other.keys())]
    fault = _find_fault(pairs)
    if fault:
        return criteria.refusal(fault)
    alone = len(mine) + len(other) - 2 * len(pairs)
    note = f"{alone} result(s) without a partner on the same split are left out." if alone else ""
    left, right = (np.array([pair[side].value for pair in pairs]) for side in (0, 1))
    begun = begin_comparison(left, right, criteria, resolution, identical=identical).noted(note)
    if begun.answered:
        return begun
    test = fit_rows(pairs, resolution=resolution or 0.0)
    if len({one.rows.tobytes() for one, _ in pairs}) == 1:
        return begun.noted("One split only: its rows cannot tell the luck of its training.")
    if test.units < LEAST_UNITS:
        return begun.noted(f"{test.units} groups are too few for a test: {LEAST_UNITS} are needed.")
    margin = criteria.region(float(left.mean()), float(right.mean()))
    if not test.error:
        return begun.noted("No row differs.")
    return replace(begun, blank=replace(begun.blank, evidence=test), fitted=test, margin=margin)


def find_mean(scores: Sequence[RowScores]) -> RowTest | None:
    """The mean of one library over its splits, with its error; None where rows cannot tell it."""
    nothing = [replace(one, value=0.0, contributions=np.zeros(len(one.rows))) for one in scores]
    if len({one.rows.tobytes() for one in scores}) < 2 or _find_fault(list(zip(scores, nothing, strict=True))):
        return None
    test = fit_rows(list(zip(scores, nothing, strict=True)))
    return test if test.units >= LEAST_UNITS and test.error else None


def fit_rows(pairs: Sequence[tuple[RowScores, RowScores]], *, resolution: float = 0.0) -> RowTest:
    """The test behind `prepare_rows`, of splits that both libraries have."""
    estimate = fmean(a.value - b.value for a, b in pairs)
    splits = len(pairs)
    shares = np.concatenate([_shares(a) / splits for a, _ in pairs])
    away = np.concatenate([a.contributions - b.contributions for a, b in pairs]) - estimate
    unit_of = np.concatenate([a.rows if a.units is None else a.units for a, _ in pairs])
    names, unit = np.unique(unit_of, return_inverse=True)
    count = len(names)
    weight = np.bincount(unit, shares)
    # Leaving out a unit moves the mean by this much, as in the jackknife: large units would hide their own spread.
    pulls = np.bincount(unit, shares * away) / np.maximum(1 - weight, 0.5)
    pulls -= pulls.mean()
    variance = max((count - 1) / count * float(pulls @ pulls), (resolution / splits) ** 2)
    block = np.concatenate([np.full(len(a.rows), a.block) for a, _ in pairs])
    within = _share_within(unit, block, shares, away)
    folds = fmean(a.folds for a, _ in pairs)
    size = folds * fmean(len(a.rows) for a, _ in pairs)
    tested = len(np.unique(np.concatenate([a.rows for a, _ in pairs]))) / size
    sizes = list(Counter(a.block for a, _ in pairs).values())
    total = variance * (1 + LUCK * _exposure(sizes, folds, min(tested, 1.0)))
    return RowTest(
        estimate,
        math.sqrt(total),
        count_freedom(pulls),
        units=count,
        splits=splits,
        folds=folds,
        within=within,
    )


def _find_fault(pairs: Sequence[tuple[RowScores, RowScores]]) -> str:
    """A sentence on why two sides cannot be compared with each other; empty if they can."""
    for a, b in pairs:
        where = f"fold {a.fold} of block {a.block}"
        if not np.array_equal(a.rows, b.rows):
            return f"The splits differ for {where}: the results cannot be compared."
        if not (abs(a.value) < HUGE and abs(b.value) < HUGE):
            return f"A value is not a finite number for {where}."
    return "" if pairs else "Unmatched seeds: the two sides share no split."


def _shares(scores: RowScores) -> FloatArray:
    weights = np.ones(len(scores.rows)) if scores.weights is None else scores.weights
    shares: FloatArray = weights / weights.sum()
    return shares


def find_overlap(parts: Iterable[Part], folds: float) -> float | None:
    """What a mean over disjoint splits varies by beyond 1 / splits, in variances of a split: luck, rows tested again.

    It takes the place of Nadeau and Bengio's n_test / n_train, which is that of splits that were drawn independently.
    None where several partitions are not whole: their test sets overlap like those of any splits.
    """
    blocks = Counter(part.seed for part in set(parts))
    if len(blocks) > 1 and min(blocks.values()) < round(folds):
        return None
    splits = blocks.total()
    return _relative_variance(splits, folds, USUAL_WITHIN) / folds - 1 / splits


def _relative_variance(splits: int, folds: float, within: float) -> float:
    """The variance of a mean over splits, in that of the rows of one whole partition."""
    whole = splits / folds
    rows = 1 - within + within / whole if whole > 1 else 1 / whole
    return rows * (1 + LUCK * _exposure([min(splits, folds)], folds, min(whole, 1.0)))


def _exposure(sizes: Sequence[float], folds: float, tested: float) -> float:
    """How much of the luck of a whole partition there is, given the splits of each and the share of rows tested."""
    splits = sum(sizes)
    incomplete = sum((size / splits) ** 2 * max(folds / size - 1, 0.0) for size in sizes)
    return tested * (1 + incomplete / (folds - 1) ** 2)


def _share_within(unit: IntArray, block: IntArray, shares: FloatArray, away: FloatArray) -> float | None:
    """The share of the variance that lies within units, between partitions; None where too few were tested again."""
    names, place = np.unique(block, return_inverse=True)
    cells, cell = np.unique(unit * len(names) + place, return_inverse=True)
    of = cells // len(names)
    times = np.bincount(of)
    again = int((times - 1).sum())
    if again < LEAST_AGAIN:
        return None
    means = np.bincount(cell, shares * away) / np.bincount(cell, shares)
    center = np.bincount(of, means) / times
    total = float(means @ means) / len(means)
    residual = float(((means - center[of]) ** 2).sum()) / again
    return min(1.0, residual / total) if total else 0.0


def count_freedom(pulls: FloatArray) -> float:
    """Degrees of freedom of a variance, given its terms: few that outweigh the others count as few (Satterthwaite)."""
    squares = pulls * pulls
    total = float(squares.sum())
    if not total:
        return float(max(len(pulls) - 1, 1))
    unevenness = float(squares @ squares) / (total * total) - 1 / len(pulls)
    return max(1.0, min(len(pulls) - 1, 2 / unevenness if unevenness > 0 else math.inf))
