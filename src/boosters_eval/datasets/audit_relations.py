"""What is suspicious between columns, rows and classes: leaks, copies, rare classes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.datasets.generated import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets.audit_columns import SampledColumn

    _Floats = NDArray[np.float64]
    _Codes = NDArray[np.int64]

_LEAST_ROWS_OF_TREE = 30  # with fewer, a random column predicts a rare class now and then
LEAST_OF_CLASS = 5  # rows: with fewer, even a random column can sort a class out perfectly
_DEPTH_OF_CLASSES, _DEPTH_OF_NUMBERS = 3, 6  # a number needs more steps to be followed
_ROWS_OF_LEAF = 8  # on average, if a number has few rows
_BINS = 256
_FOLDS, _FEW_ROWS = 5, 2_000  # folds below so many rows; above, two halves are enough
_STREAM = 6  # keeps this use of the stream apart from its others


class AuditTarget:
    """The target as columns of numbers that a tree averages: the ranks of a quantity, or a column for each class."""

    def __init__(self, y: _Floats, *, classes: bool) -> None:
        self.classes = classes
        rows = len(y)
        labels, codes = np.unique(y, return_inverse=True) if classes else (y, np.zeros(rows, dtype=np.int64))
        self.folds = _folds(codes)
        self.n_folds = int(self.folds.max()) + 1
        self.ranks = rank_values(y)
        bits = max(rows // _ROWS_OF_LEAF, 1).bit_length() - 1
        self.depth = _DEPTH_OF_CLASSES if classes else min(_DEPTH_OF_NUMBERS, bits)
        counts = np.bincount(codes)
        self._kept = np.flatnonzero(counts >= LEAST_OF_CLASS)[-1 if len(labels) == 2 else 0 :]
        self._codes, self._labels = codes, len(counts)
        if classes:
            enough = counts[counts >= LEAST_OF_CLASS]
            self.usable = len(enough) >= 2 and int(enough.sum()) >= max(_LEAST_ROWS_OF_TREE, 0.9 * rows)
        else:
            self.usable = rows >= _LEAST_ROWS_OF_TREE and bool(y.min() < y.max())

    @property
    def measure(self) -> str:
        return "AUC" if self.classes else "R² of the ranks"

    def count(self, bins: _Codes, size: int) -> tuple[_Floats, _Floats]:
        """The rows of each fold and bin, and the sums of the target's columns in them."""
        place = self.folds * size + bins
        width = self.n_folds * size
        if not self.classes:
            counts = np.bincount(place, minlength=width).reshape(self.n_folds, size)
            sums = np.bincount(place, weights=self.ranks, minlength=width).reshape(self.n_folds, size, 1)
            return counts.astype(float), sums
        flat = np.bincount(place * self._labels + self._codes, minlength=width * self._labels).astype(np.float64)
        by_class: _Floats = flat.reshape(self.n_folds, size, self._labels)
        return by_class.sum(axis=2), by_class[:, :, self._kept]

    def score(self, predicted: _Floats, counts: _Floats, sums: _Floats) -> float:
        """AUC or R² of what is predicted for each bin, from the rows that are in it and the sums of their targets."""
        if self.classes:
            return float(np.mean([_auc(predicted[:, k], sums[:, k], counts) for k in range(sums.shape[1])]))
        squares = float((self.ranks**2).sum())
        missed = squares - float((predicted * (2 * sums - predicted * counts[:, None])).sum())
        return 1 - missed / (squares - float(self.ranks.sum()) ** 2 / len(self.ranks))


def score_alone(column: _Floats, target: AuditTarget, bound: float, *, categorical: bool) -> float | None:
    """AUC (the mean over the classes, each against the others) or R² out of sample; None if it is below the bound.

    A missing value is a value like any other. What does not reach the bound on the rows that it has learned from is
    not tried on others.
    """
    if not (target.classes or categorical or np.isnan(column).any() or column.min() == column.max()):
        a, b = (each - each.mean() for each in (rank_values(column), target.ranks))
        same_order = float(a @ b / np.sqrt((a @ a) * (b @ b))) ** 2
        if same_order >= bound:  # few rows make a tree too coarse to see it
            return same_order
    bins = np.unique(column, return_inverse=True)[1] if categorical else _binned(column)
    counts, sums = target.count(bins, int(bins.max()) + 1)
    all_counts, all_sums = counts.sum(axis=0), sums.sum(axis=0)
    best = all_sums / np.maximum(all_counts, 1)[:, None]  # no tree on these bins fits better
    if target.score(best, all_counts, all_sums) < bound:
        return None

    def learned(counts: _Floats, sums: _Floats) -> _Floats:
        return _by_level(counts, sums) if categorical else _by_leaf(counts, sums, target.depth)

    if target.score(learned(all_counts, all_sums), all_counts, all_sums) < bound:
        return None
    folds = range(target.n_folds)
    predicted = np.concatenate([learned(all_counts - counts[fold], all_sums - sums[fold]) for fold in folds])
    score = target.score(predicted, counts.reshape(-1), sums.reshape(len(predicted), -1))
    return score if score >= bound else None


def rank_values(values: _Floats) -> _Floats:
    """From 0 to 1; equal values share a rank."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: _Floats = (ends - (counts + 1) / 2)[codes] / max(len(values) - 1, 1)
    return middle


def _folds(labels: _Codes) -> _Codes:
    """A part for each row; every class is spread evenly over the parts."""
    rows = len(labels)
    order = Stream(0, _STREAM, rows).order(rows)
    parts = np.empty(rows, dtype=np.int64)
    parts[order[np.argsort(labels[order], kind="stable")]] = np.arange(rows) % (_FOLDS if rows < _FEW_ROWS else 2)
    return parts


def _binned(column: _Floats) -> _Codes:
    """Bins in the order of their values, a missing value in the first one."""
    known = np.unique(column[~np.isnan(column)])
    if len(known) > _BINS:
        known = np.unique(np.nanquantile(column, np.linspace(0, 1, _BINS + 1)[1:], method="higher"))
    found = np.searchsorted(known, column) + 1
    return np.where(np.isnan(column), 0, found)


def _by_level(counts: _Floats, sums: _Floats) -> _Floats:
    """The mean of each category, drawn towards that of all rows: a rare category is not trusted."""
    found: _Floats = (sums + sums.sum(axis=0) / counts.sum()) / (counts + 1)[:, None]
    return found


def _by_leaf(counts: _Floats, sums: _Floats, depth: int) -> _Floats:
    """The means of the leaves of a tree, for each bin."""
    above = np.concatenate([[0.0], np.cumsum(counts)])
    totals = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    means = np.empty_like(sums)
    todo = [(0, len(counts), depth)]
    while todo:
        low, high, left = todo.pop()
        cut = _cut(above[low : high + 1], totals[low : high + 1]) if left else None
        if cut is None:
            means[low:high] = (totals[high] - totals[low]) / max(above[high] - above[low], 1)
        else:
            todo += [(low, low + cut, left - 1), (low + cut, high, left - 1)]
    return means


def _cut(above: _Floats, totals: _Floats) -> int | None:
    """Where a run of bins falls apart best: the position, or None where no cut gains anything."""
    left, right = above[1:-1] - above[0], above[-1] - above[1:-1]
    possible = (left > 0) & (right > 0)
    if not possible.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = ((totals[1:-1] - totals[0]) ** 2).sum(axis=1) / left
        gain += ((totals[-1] - totals[1:-1]) ** 2).sum(axis=1) / right
    gain[~possible] = -np.inf
    best = int(np.argmax(gain))
    nothing = float(((totals[-1] - totals[0]) ** 2).sum() / (above[-1] - above[0]))
    return best + 1 if gain[best] > nothing * (1 + 1e-12) + 1e-12 else None


def _auc(scores: _Floats, inside: _Floats, counts: _Floats) -> float:
    """The chance that a row of the class has the higher score; half of a tie counts."""
    _, codes = np.unique(scores, return_inverse=True)
    hits = np.bincount(codes, weights=inside)
    others = np.bincount(codes, weights=counts - inside)
    below = np.cumsum(others) - others
    return float((hits * (below + others / 2)).sum() / (hits.sum() * others.sum()))


LEAK_AUC = 0.99
LEAK_R2 = 0.98
SAME = 0.999  # the absolute correlation from which two columns say the same
LEAST_ROWS = 20
_MOST_LEVELS = 1_000
_MOST_COMPARED = 500  # columns: their correlations are a matrix
COPIES, COPIES_BUT_TARGET, FEW_COPIES = 0.01, 0.05, 5  # the shares of rows that repeat an earlier one, and how many
_CHANCE = 100  # possible rows for each row: with fewer, rows repeat by chance
RARE = 10  # rows of a class
IMBALANCE = 0.99  # the share of the largest class
REPEATED = 0.5  # the share of one value of a target that is a quantity


def find_leaks(columns: Sequence[SampledColumn], target: AuditTarget) -> Iterator[tuple[str, float]]:
    bound = LEAK_AUC if target.classes else LEAK_R2
    for column in columns if target.usable else ():
        score = score_alone(column.numbers, target, bound, categorical=column.categorical)
        if score is not None:
            yield column.name, score


def find_same_columns(columns: Sequence[SampledColumn], y: NDArray[np.float64]) -> Iterator[tuple[str, str, str]]:
    """A column, an earlier one that says the same, and in which sense. Each column is named at most once as a copy."""
    if not columns or len(columns[0].numbers) < LEAST_ROWS:
        return
    told: set[str] = set()
    seen: dict[bytes, str] = {}
    rows = len(np.unique(hash_rows([*(column.numbers for column in columns), y])))  # copies of a row are no evidence
    for column in columns:
        if 2 <= len(column.counts) <= min(_MOST_LEVELS, rows / 2):
            other = seen.setdefault(_pattern(column.numbers).tobytes(), column.name)
            if other != column.name:
                told.add(column.name)
                yield column.name, other, "each value of one goes with one value of the other"
    numeric = [column for column in columns if not column.categorical and column.name not in told]
    for first, second, correlation in _correlated(numeric[:_MOST_COMPARED]):
        if second not in told:
            told.add(second)
            yield second, first, f"their correlation is {correlation:.5f}"


def _pattern(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Codes in the order of first appearance: equal for columns that are one to one."""
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    renamed = np.empty(len(first), dtype=np.int64)
    renamed[np.argsort(first)] = np.arange(len(first))
    return renamed[codes]


def _correlated(columns: Sequence[SampledColumn]) -> Iterator[tuple[str, str, float]]:
    usable = [column for column in columns if len(column.counts) > 1]
    if len(usable) < 2:
        return
    scaled = np.stack([_standardized(column) for column in usable])
    found = scaled @ scaled.T
    missing = np.array([column.missing for column in usable])
    for second in range(1, len(usable)):
        for first in np.flatnonzero(np.abs(found[second, :second]) >= SAME):
            if missing[first] == missing[second]:
                yield usable[first].name, usable[second].name, float(found[second, first])


def _standardized(column: SampledColumn) -> NDArray[np.float64]:
    """Of mean 0 and length 1; a missing value is the mean."""
    centered = np.where(np.isnan(column.numbers), 0.0, column.numbers - column.known.mean())
    length = float(np.sqrt((centered**2).sum()))
    return centered / (length or 1.0)


def count_repeated_rows(
    columns: Sequence[SampledColumn], y: NDArray[np.float64], sides: NDArray[np.float64] | None
) -> tuple[int, int] | None:
    """How many rows repeat an earlier one, with the target and without; None where rows repeat by chance.

    A table of few possible rows must repeat them, and that is no fault of it. Rows of one group, or time, that a
    split keeps on one of its `sides` do no harm.
    """
    possible = prod(max(len(column.counts) + (column.missing > 0), 1) for column in columns)
    if not columns or len(y) < LEAST_ROWS or possible < _CHANCE * len(y):
        return None
    features = [column.numbers for column in columns]

    def count(values: list[NDArray[np.float64]]) -> int:
        apart = len(y) if sides is None else len(np.unique(hash_rows([*values, sides])))
        return apart - len(np.unique(hash_rows(values)))

    return count([*features, y]), count(features)


def hash_rows(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.uint64]:
    """A number for each row, equal for equal rows."""
    found = np.full(len(columns[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        words = np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
        found ^= words
        found *= np.uint64(0xFF51AFD7ED558CCD)
        found ^= found >> np.uint64(32)
    return found
