"""How well one column alone predicts the target: a shallow tree on that column, scored on rows it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.datasets.streams import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Floats = NDArray[np.float64]
    _Codes = NDArray[np.int64]

LEAST_ROWS = 30  # with fewer, a random column predicts a rare class now and then
LEAST_OF_CLASS = 5  # rows: with fewer, even a random column can sort a class out perfectly
_DEPTH_OF_CLASSES, _DEPTH_OF_NUMBERS = 3, 6  # a number needs more steps to be followed
_ROWS_OF_LEAF = 8  # on average, if a number has few rows
_BINS = 256
_FOLDS, _FEW_ROWS = 5, 2_000  # folds below so many rows; above, two halves are enough
_STREAM = 6  # keeps this use of the stream apart from its others


class Target:
    """The target as columns of numbers that a tree averages: the ranks of a quantity, or a column for each class."""

    def __init__(self, y: _Floats, *, classes: bool) -> None:
        self.classes = classes
        if classes:
            labels, codes = np.unique(y, return_inverse=True)
            counts = np.bincount(codes)
            kept = np.flatnonzero(counts >= LEAST_OF_CLASS)
            self.columns = (codes[:, None] == kept[-1:] if len(labels) == 2 else codes[:, None] == kept).astype(float)
            self.usable = len(kept) >= 2 and counts[kept].sum() >= max(LEAST_ROWS, 0.9 * len(y))
            order = codes
        else:
            self.columns = ranks(y)[:, None]
            self.usable = len(y) >= LEAST_ROWS and y.min() < y.max()
            order = np.zeros(len(y), dtype=np.int64)
        self.folds = _folds(order)
        bits = max(len(y) // _ROWS_OF_LEAF, 1).bit_length() - 1
        self.depth = _DEPTH_OF_CLASSES if classes else min(_DEPTH_OF_NUMBERS, bits)

    @property
    def measure(self) -> str:
        """What `alone` gives."""
        return "AUC" if self.classes else "R² of the ranks"

    def score(self, found: _Floats) -> float:
        """AUC or R² of predictions."""
        if self.classes:
            pairs = zip(found.T, self.columns.T, strict=True)
            return float(np.mean([_auc(scores, hits > 0) for scores, hits in pairs]))
        truth = self.columns[:, 0]
        return 1 - float(((truth - found[:, 0]) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def alone(column: _Floats, target: Target, bound: float, *, categorical: bool) -> float | None:
    """AUC (the mean over the classes, each against the others) or R² out of sample; None if it is below the bound.

    A missing value is a value like any other. What does not reach the bound on the rows that it has learned from is
    not tried on others.
    """
    if not (target.classes or categorical or np.isnan(column).any() or column.min() == column.max()):
        same_order = _correlation(ranks(column), target.columns[:, 0]) ** 2
        if same_order >= bound:  # few rows make a tree too coarse to see it
            return same_order
    bins = _levels(column) if categorical else _binned(column)
    size = int(bins.max()) + 1
    truth = target.columns
    if target.score(_means(bins, truth, size)[bins]) < bound:
        return None
    if not categorical and target.score(_learned(bins, truth, size, target, categorical)[bins]) < bound:
        return None
    found = np.empty_like(truth)
    for fold in range(int(target.folds.max()) + 1):
        test = target.folds == fold
        found[test] = _learned(bins[~test], truth[~test], size, target, categorical)[bins[test]]
    score = target.score(found)
    return score if score >= bound else None


def ranks(values: _Floats) -> _Floats:
    """From 0 to 1; equal values share a rank."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: _Floats = (ends - (counts + 1) / 2)[codes] / max(len(values) - 1, 1)
    return middle


def _correlation(a: _Floats, b: _Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _folds(labels: _Codes) -> _Codes:
    """A part for each row; every class is spread evenly over the parts."""
    rows = len(labels)
    order = Stream(0, _STREAM, rows).order(rows)
    parts = np.empty(rows, dtype=np.int64)
    parts[order[np.argsort(labels[order], kind="stable")]] = np.arange(rows) % (_FOLDS if rows < _FEW_ROWS else 2)
    return parts


def _levels(column: _Floats) -> _Codes:
    return np.unique(column, return_inverse=True)[1]


def _binned(column: _Floats) -> _Codes:
    """Bins in the order of their values, a missing value in the first one."""
    known = np.unique(column[~np.isnan(column)])
    if len(known) > _BINS:
        known = np.unique(np.nanquantile(column, np.linspace(0, 1, _BINS + 1)[1:], method="higher"))
    found = np.searchsorted(known, column) + 1
    return np.where(np.isnan(column), 0, found)


def _sums(bins: _Codes, target: _Floats, size: int) -> tuple[_Floats, _Floats]:
    counts = np.bincount(bins, minlength=size).astype(float)
    return counts, np.stack([np.bincount(bins, weights=column, minlength=size) for column in target.T], axis=1)


def _means(bins: _Codes, target: _Floats, size: int) -> _Floats:
    """The mean of each bin: no tree on these bins fits better."""
    counts, sums = _sums(bins, target, size)
    found: _Floats = sums / np.maximum(counts, 1)[:, None]
    return found


def _learned(bins: _Codes, target: _Floats, size: int, kind: Target, categorical: bool) -> _Floats:
    """What is predicted for each bin: the mean of its leaf, or of its category."""
    counts, sums = _sums(bins, target, size)
    if categorical:
        shrunk: _Floats = (sums + target.mean(axis=0)) / (counts + 1)[:, None]  # a rare category is not trusted
        return shrunk
    above = np.concatenate([[0.0], np.cumsum(counts)])
    totals = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    means = np.empty_like(sums)
    todo = [(0, size, kind.depth)]
    while todo:
        low, high, depth = todo.pop()
        cut = _cut(above[low : high + 1], totals[low : high + 1]) if depth else None
        if cut is None:
            rows = above[high] - above[low]
            means[low:high] = (totals[high] - totals[low]) / rows if rows else target.mean(axis=0)
        else:
            todo += [(low, low + cut, depth - 1), (low + cut, high, depth - 1)]
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


def _auc(scores: _Floats, hits: NDArray[np.bool_]) -> float:
    """The chance that a row of the class has the higher score; half of a tie counts."""
    _, codes = np.unique(scores, return_inverse=True)
    inside, outside = np.bincount(codes[hits], minlength=codes.max() + 1), np.bincount(codes[~hits])
    outside = np.pad(outside, (0, len(inside) - len(outside)))
    below = np.cumsum(outside) - outside
    return float((inside * (below + outside / 2)).sum() / (inside.sum() * outside.sum()))
