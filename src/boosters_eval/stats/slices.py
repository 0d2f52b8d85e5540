"""Slices: the parts of the data on which one library loses to another, by ranges and values of one or two columns.

Thousands of parts are looked at, and the worst of so many always looks bad. So slices are found on one half of the
units (rows, or whole groups) and tested on the other half, then the other way around; few are tested, and the tests
share the level. A slice is told if both hold on the half that it was not found on:

- its mean error is larger for the first library than for the second, and
- by more than elsewhere: a library that is worse everywhere has no slice of its own.

Halves share their models, so the luck of the training (see `stats/rows.py`) is in both. In variances of the rows of a
slice it is what it is for all rows, and half of it counts for half of the rows.

Squared errors vary in proportion to their size, so a difference is the less sure the larger it is. The roots of their
means are compared by the logarithm of their ratio instead, in which what both have in common cancels; by their
difference, as other means are, where that rests on more rows or one library has no error.

One row in twenty differs by so much that it would decide where to look: for the search alone, differences are limited
to what the others have. What is told of a slice is computed from all its rows as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from boosters_eval.stats.inference import StudentT
from boosters_eval.stats.rows import LUCK, count_freedom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.rows import IntArray

    Mask = NDArray[np.bool_]

LEAST_UNITS = 100  # of the data, below which halves of parts are too small for a test
TENTH = 0.1  # the share of the slice whose detectable difference is told
_LEAST, _LEAST_SHARE, _MOST_SHARE = 25, 0.02, 0.6  # rows of a slice in one half: most rows are no part of the data
_FINE, _COARSE = 20, 8  # quantile ranges of a number: alone and for the final bounds, and while pairs are searched
_MOST_TESTED = 3  # from either half
_FEWEST_TESTS = 2  # that the level is shared by: the interval of a slice is then never below 1 - alpha
_MOST_COLUMNS = 10  # those that lose most by themselves, of which pairs are made
_USUAL = 0.95  # of the differences, which the others are limited to


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column is in a slice: a value, within inclusive bounds, or missing if none of them is given."""

    column: int
    low: float | None = None
    high: float | None = None
    value: float | None = None

    @property
    def is_missing(self) -> bool:
        return self.low is self.high is self.value is None

    def holds(self, values: FloatArray) -> Mask:
        if self.is_missing:
            return np.isnan(values)
        if self.value is not None:
            return np.asarray(values == self.value)
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        return np.asarray((values >= low) & (values <= high))


@dataclass(frozen=True)
class Features:
    """What rows can be sliced by: a column each, NaN where a value is missing."""

    values: FloatArray  # (rows, columns)
    categorical: frozenset[int] = frozenset()

    def select(self, conditions: Iterable[Condition]) -> Mask:
        """The rows for which all conditions hold."""
        return np.asarray(np.logical_and.reduce([each.holds(self.values[:, each.column]) for each in conditions]))


@dataclass(frozen=True)
class PairedErrors:
    """The errors of two libraries on the same rows; the metric is their weighted mean, or the root of it."""

    a: FloatArray
    b: FloatArray
    weights: FloatArray | None = None
    units: IntArray | None = None  # rows of one unit are not independent; None: each row is a unit
    root: bool = False
    tested: float = 1.0  # the share of all rows of the data set that these are

    @property
    def unit(self) -> IntArray:
        """Of each row, counted from 0."""
        return np.arange(len(self.a)) if self.units is None else np.unique(self.units, return_inverse=True)[1]

    def take(self, rows: Mask) -> PairedErrors:
        weights = None if self.weights is None else self.weights[rows]
        units = None if self.units is None else self.units[rows]
        return replace(self, a=self.a[rows], b=self.b[rows], weights=weights, units=units)

    @property
    def shares(self) -> FloatArray:
        weights = np.ones(len(self.a)) if self.weights is None else self.weights
        return np.asarray(weights / weights.mean())

    @property
    def luck(self) -> float:
        """That of the training, in variances of these rows."""
        return LUCK * min(self.tested, 1.0)

    def value(self, errors: FloatArray) -> float:
        """The metric's own scale."""
        mean = float(np.average(errors, weights=self.weights))
        return math.sqrt(mean) if self.root else mean


@dataclass(frozen=True)
class Slice:
    """A part of the data that was found on one half, and its difference on the other."""

    conditions: tuple[Condition, ...]
    a: float  # the metric's error of either library
    b: float
    difference: StudentT  # a - b, or the logarithm of a / b
    elsewhere: StudentT  # how much more that is than elsewhere
    relative: bool = False

    def interval(self, alpha: float) -> tuple[float, float]:
        """Of a - b."""
        low, high = self.difference.interval(alpha)
        return (self.b * math.expm1(low), self.b * math.expm1(high)) if self.relative else (low, high)

    def is_shown(self, level: float) -> bool:
        return max(self.difference.greater(0.0), self.elsewhere.greater(0.0)) < level


@dataclass(frozen=True)
class SearchedSlices:
    """What was found, the largest sure difference first, and how many were tested at which level."""

    slices: tuple[Slice, ...]
    tested: int
    level: float  # of each one-sided test
    overall: StudentT  # the difference on all rows
    detectable: float | None  # the difference in a slice of a tenth of the rows that four of five runs would confirm

    def interval(self, found: Slice) -> tuple[float, float]:
        """Of a slice: together they hold at least at 1 - alpha."""
        return found.interval(2 * self.level)


def find_slices(features: Features, errors: PairedErrors, *, alpha: float = 0.05, seed: int = 0) -> SearchedSlices:
    """The slices on which the first library loses to the second."""
    unit = errors.unit
    count = int(unit.max()) + 1
    first = np.random.default_rng(seed).permutation(count).argsort()[unit] < count // 2
    tests = [_test(features, one, errors, ~half) for half in (first, ~first) for one in _search(features, errors, half)]
    level = alpha / max(len(tests), _FEWEST_TESTS)
    shown = [one for one in tests if one is not None and one.is_shown(level)]
    shown.sort(key=lambda one: -one.interval(2 * level)[0])
    overall = _estimate(errors, np.ones(len(errors.a), dtype=bool), luck=errors.luck)[0]
    tenth = overall.error * math.sqrt((1 + errors.luck / 2) / (1 + errors.luck) * 2 / (TENTH * (1 - TENTH)))
    detectable = StudentT(0.0, tenth, max(1.0, TENTH * count / 2)).detectable(2 * level) if tenth else None
    return SearchedSlices(tuple(_drop_repeated(features, shown)), len(tests), level, overall, detectable)


def _drop_repeated(features: Features, slices: Sequence[Slice]) -> Iterator[Slice]:
    """Both halves may find the same part, with other bounds: what is half covered by another is left out."""
    kept: list[Mask] = []
    for one in slices:
        rows = features.select(one.conditions)
        if all((rows & other).sum() <= (rows | other).sum() / 2 for other in kept):
            kept.append(rows)
            yield one


@dataclass(frozen=True)
class _Candidate:
    conditions: tuple[Condition, ...]
    evidence: float


@dataclass(frozen=True)
class _Cut:
    """A column in bins. Each condition joins neighboring ones: those from its start up to, not including, its end."""

    codes: IntArray
    size: int
    conditions: tuple[Condition, ...]
    starts: IntArray
    ends: IntArray

    @classmethod
    def of(cls, features: Features, column: int, bins: int) -> _Cut:
        values = features.values[:, column]
        missing = np.isnan(values)
        known, counts = np.unique(values[~missing], return_counts=True)
        if column in features.categorical:
            tops = bottoms = known[counts >= _LEAST_SHARE * len(values)]
            found = [(place, place + 1, Condition(column, value=float(top))) for place, top in enumerate(tops)]
            place = np.minimum(np.searchsorted(tops, values), max(len(tops) - 1, 0))
            codes = np.where(tops[place] == values, place, len(tops)) if len(tops) else np.zeros(len(values), int)
        else:
            cuts = np.arange(1, bins + 1) / bins
            few = len(known) <= bins
            tops = known if few else np.unique(np.quantile(values[~missing], cuts, method="inverted_cdf"))
            bottoms = (
                known[np.concatenate([[0], np.searchsorted(known, tops[:-1], side="right")])] if len(tops) else tops
            )
            found = list(_join_ranges(column, bottoms, tops, whole=bool(missing.any())))
            codes = np.searchsorted(tops, np.where(missing, tops[0] if len(tops) else 0.0, values))
        size = len(tops) + 2  # rare categories, and missing values
        codes = np.where(missing, size - 1, codes)
        found += [(size - 1, size, Condition(column))] if missing.any() else []
        starts, ends = (np.array([each[side] for each in found], dtype=np.intp) for side in (0, 1))
        return cls(codes, size, tuple(each[2] for each in found), starts, ends)


def _join_ranges(
    column: int, bottoms: FloatArray, tops: FloatArray, *, whole: bool
) -> Iterator[tuple[int, int, Condition]]:
    """All ranges of neighboring bins; the one of all bins is a slice only where values are missing."""
    last = len(tops) - 1
    for start, end in combinations(range(len(tops) + 1), 2):
        if end - start <= last:
            low, high = (None if start == 0 else float(bottoms[start])), (None if end > last else float(tops[end - 1]))
            yield start, end, Condition(column, low, high)
        elif whole:
            yield start, end, Condition(column, low=float(bottoms[0]))


def _search(features: Features, errors: PairedErrors, half: Mask) -> Iterator[_Candidate]:
    """The most suspicious parts of one half, each outside those before it."""
    rows, view = errors.take(half), Features(features.values[half], features.categorical)
    difference, shares = rows.a - rows.b, rows.shares
    limit = float(np.quantile(np.abs(difference), _USUAL)) or float(np.abs(difference).max())
    if not limit:
        return
    difference = np.clip(difference / limit, -1.0, 1.0)
    sums = _Sums(difference, shares, max(float(_LEAST), _LEAST_SHARE * len(shares)))
    columns = range(view.values.shape[1])
    fine, coarse = ([_Cut.of(view, column, bins) for column in columns] for bins in (_FINE, _COARSE))
    left = np.ones(len(shares), dtype=bool)
    for _ in range(_MOST_TESTED):
        found = _find_worst(fine, coarse, sums, left)
        if found is None or found.evidence > 0:  # not even one in as many as were looked at
            return
        yield found
        left &= ~view.select(found.conditions)


def _find_worst(fine: Sequence[_Cut], coarse: Sequence[_Cut], sums: _Sums, left: Mask) -> _Candidate | None:
    """The part with the strongest evidence; parts of one column pay for their number, and pairs for theirs."""
    alone = [sums.score(left, cut) for cut in fine]
    best = [float(scores.max(initial=-math.inf)) for scores in alone]
    order = sorted(range(len(fine)), key=lambda column: -best[column])
    if not order or best[order[0]] == -math.inf:
        return None
    top = order[0]
    worst = [_Candidate((fine[top].conditions[int(alone[top].argmax())],), _weigh(best[top], alone))]
    columns = sorted(column for column in order[:_MOST_COLUMNS] if best[column] > -math.inf)
    pairs = {pair: sums.score(left, *(coarse[column] for column in pair)) for pair in combinations(columns, 2)}
    if pairs:
        pair = max(pairs, key=lambda pair: float(pairs[pair].max(initial=-math.inf)))
        score = float(pairs[pair].max(initial=-math.inf))
        if score > -math.inf:
            one, two = (fine[column] for column in pair)
            exact = sums.score(left, one, two)
            row, column = np.unravel_index(int(exact.argmax()), exact.shape)
            conditions = one.conditions[int(row)], two.conditions[int(column)]
            worst.append(_Candidate(conditions, _weigh(score, pairs.values())))
    return min(worst, key=lambda one: one.evidence)


def _weigh(score: float, every: Iterable[FloatArray]) -> float:
    """The logarithm of a p-value times the number of parts that were looked at."""
    return float(log_ndtr(-score)) + math.log(sum(int(np.isfinite(scores).sum()) for scores in every))


class _Sums:
    """Sums over parts, from which each one's mean follows. The variance is that of all rows.

    Errors that are larger on a part vary more there, too: judged by its own variance, a part would hide.
    """

    def __init__(self, difference: FloatArray, shares: FloatArray, least: float) -> None:
        self._terms = np.stack([shares, shares * shares, shares * difference])
        self._spread, self._least, self._most = float(difference.std()), least, _MOST_SHARE * len(shares)

    def score(self, left: Mask, *cuts: _Cut) -> FloatArray:
        """Of each condition, or each pair of them: how far the difference is above zero, and above that of the rest.

        In standard errors; -inf where a part, or the rest, is too small or too large.
        """
        sizes = [cut.size for cut in cuts]
        cell = np.ravel_multi_index([cut.codes[left] for cut in cuts], sizes)
        terms = self._terms[:, left]
        grid = np.stack([np.bincount(cell, term, math.prod(sizes)) for term in terms]).reshape(-1, *sizes)
        for axis, cut in enumerate(cuts, 1):
            total = np.cumsum(np.insert(grid, 0, 0.0, axis=axis), axis=axis)
            grid = np.take(total, cut.ends, axis=axis) - np.take(total, cut.starts, axis=axis)
        rest = terms.sum(axis=1).reshape(-1, *(1 for _ in cuts)) - grid
        with np.errstate(divide="ignore", invalid="ignore"):
            (mean, other), (count, others) = ((part[2] / part[0] for part in (grid, rest)), map(_count, (grid, rest)))
            score = np.minimum(mean * np.sqrt(count), (mean - other) / np.sqrt(1 / count + 1 / others)) / self._spread
        fits = (count >= self._least) & (others >= self._least) & (count <= self._most)
        return np.where(fits & np.isfinite(score), score, -np.inf)


def _count(sums: FloatArray) -> FloatArray:
    """The effective number of rows."""
    return np.asarray(sums[0] * sums[0] / sums[1])


def _test(features: Features, found: _Candidate, errors: PairedErrors, half: Mask) -> Slice | None:
    """A slice on the half that it was not found on; None where that half has no such rows, or no others."""
    rows, view = errors.take(half), Features(features.values[half], features.categorical)
    inside = view.select(found.conditions)
    if not 0 < inside.sum() < len(inside):
        return None
    part, rest = rows.take(inside), rows.take(~inside)
    a, b, *others = (side.value(errors) for side in (part, rest) for errors in (side.a, side.b))
    tests = (
        Slice(found.conditions, a, b, *_estimate(rows, inside, luck=errors.luck / 2, relative=relative), relative)
        for relative in ((False, True) if errors.root and min(a, b, *others) > 0 else (False,))
    )
    return max(tests, key=lambda one: min(one.difference.freedom, one.elsewhere.freedom))


def _measure(mean: float, *, root: bool, relative: bool) -> tuple[float, float]:
    """A mean of errors on the metric's scale, or the logarithm of its root, and its slope there."""
    if relative:
        return 0.5 * math.log(mean), 0.5 / mean
    return (math.sqrt(mean), 0.5 / math.sqrt(mean) if mean else 0.0) if root else (mean, 1.0)


def _estimate(errors: PairedErrors, inside: Mask, *, luck: float, relative: bool = False) -> tuple[StudentT, StudentT]:
    """The difference inside, and how much more it is than outside; of all rows, the same twice."""
    unit = errors.unit
    count = int(unit.max()) + 1

    def look_at(rows: Mask) -> tuple[float, FloatArray, Mask]:
        part = errors.take(rows)
        shares, pulls, value = part.shares / len(part.a), np.zeros(len(part.a)), 0.0
        for sign, side in ((1, part.a), (-1, part.b)):
            mean = float(shares @ side)
            place, slope = _measure(mean, root=errors.root, relative=relative)
            value, pulls = value + sign * place, pulls + sign * slope * (side - mean)
        present: Mask = np.bincount(unit[rows], minlength=count) > 0
        return value, np.bincount(unit[rows], shares * pulls, count), present

    def as_test(estimate: float, pulls: FloatArray) -> StudentT:
        n = len(pulls)
        pulls = pulls - pulls.mean()
        error = math.sqrt(float(pulls @ pulls) * n / max(n - 1, 1) * (1 + luck))
        return StudentT(estimate, max(error, abs(estimate) / n), count_freedom(pulls))

    value, pulls, present = look_at(inside)
    if inside.all():
        return (test := as_test(value, pulls[present])), test
    other, others, beside = look_at(~inside)
    return as_test(value, pulls[present]), as_test(value - other, (pulls - others)[present | beside])
