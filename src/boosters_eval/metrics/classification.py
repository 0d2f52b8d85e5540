"""Classes: one column of scores for two of them, or a column of probabilities for each; calibration and fairness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.metrics.metric import get
from boosters_eval.metrics.rows import BLOCK, blocks, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from boosters_eval.metrics.rows import Array, Flags, Floats, Rows

EPSILON = 1e-15  # the RFC's clip, in float64 whatever comes in


def check_labels(rows: Rows) -> Array:
    values = rows.single("labels")
    rows.require("labels", lambda v: (v == 0) | (v == 1), "0 or 1")
    return values


def find_positives(rows: Rows) -> Flags:
    return np.asarray(check_labels(rows) == 1)


def check_scores(rows: Rows) -> Array:
    """Predictions of any finite size: for what only compares them."""
    values = rows.single("predictions")
    rows.require("predictions", np.isfinite, "finite")
    return values


def check_probabilities(rows: Rows) -> Array:
    values = rows.single("predictions")
    rows.require("predictions", lambda v: (v >= 0) & (v <= 1), "probabilities from 0 to 1")
    return values


def decide(values: Array, threshold: float) -> Flags:
    """Which scores are predicted positive, compared in float64 even where the input is float32."""
    return np.greater_equal(values, threshold, signature="dd->?")


def confusion(rows: Rows, threshold: float) -> tuple[float, float, float, float]:
    """Weights of true positives, false positives, false negatives, true negatives; exact counts without weights."""
    p, y = rows.single("predictions"), rows.single("labels")
    parts = []
    for block in blocks(rows.n):
        score, label = p[block], y[block]
        truth, decision = label == 1, decide(score, threshold)
        if not (np.isfinite(score).all() and (truth | (label == 0)).all()):  # checked while it is in the cache
            check_scores(rows)
            check_labels(rows)
        parts.append(_cells(truth, decision, None if rows.weights is None else rows.weights[block]))
    tp, fp, fn, tn = (math.fsum(cell) for cell in zip(*parts, strict=True))
    return tp, fp, fn, tn


def _cells(truth: Flags, decision: Flags, weights: Floats | None) -> tuple[float, ...]:
    if weights is not None:
        return tuple(np.bincount(2 * decision + truth, weights, minlength=4)[::-1].tolist())
    both, actual, chosen = (int(np.count_nonzero(each)) for each in (truth & decision, truth, decision))
    return both, chosen - both, actual - both, len(truth) - actual - chosen + both


def logloss(rows: Rows) -> float:
    p, y = check_probabilities(rows), check_labels(rows)

    def term(block: slice) -> Floats:
        q = np.array(p[block], dtype=np.float64)
        np.clip(q, EPSILON, 1.0 - EPSILON, out=q)
        q -= y[block] == 0  # p for class 1, p - 1 for class 0: one logarithm per row
        np.abs(q, out=q)
        np.log(q, out=q)
        return np.negative(q, out=q)

    return rows.mean(term)


def f1(rows: Rows, threshold: float) -> float:
    """Harmonic mean of precision and recall; 0 where nothing is or is called positive."""
    tp, fp, fn, _ = confusion(rows, threshold)
    return 2 * tp / (2 * tp + fp + fn) if tp else 0.0


def matthews(rows: Rows, threshold: float) -> float:
    """Correlation of decisions and labels; 0 where either is constant."""
    tp, fp, fn, tn = confusion(rows, threshold)
    scale = math.sqrt((tp + fp) * (tp + fn)) * math.sqrt((tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / scale if scale else 0.0


def auc_roc(rows: Rows) -> float:
    """The chance that a positive row scores above a negative one, ties counted half."""
    p, y = check_scores(rows), find_positives(rows)
    if y.all() or not y.any():
        rows.warn(f"is undefined where all labels are {int(y[0])}; it is set to 0.5.")
        return 0.5
    if rows.weights is None:
        return _pairs(p, y)
    positive, negative = _by_score(p, y, rows.weights)
    beaten = np.cumsum(negative) - negative / 2
    return float((positive * beaten).sum() / (positive.sum() * negative.sum()))


def _pairs(p: Array, y: Flags) -> float:
    """Counted exactly: each class sorted apart, then one looked up in the other."""
    above, below = np.sort(p[y]), np.sort(p[~y])
    left = np.searchsorted(above, below)
    twice = 2 * (len(above) * len(below) - int(left.sum()))
    tied = above[np.minimum(left, len(above) - 1)] == below
    if tied.any():
        twice -= int((np.searchsorted(above, below[tied], side="right") - left[tied]).sum())
    return twice / (2 * len(above) * len(below))


def _by_score(p: Array, y: Flags, weights: Floats | None) -> tuple[Floats, Floats]:
    """The weight of positive and of negative rows at each distinct score, ascending."""
    order = np.argsort(p)
    ascending = p[order]
    starts: NDArray[np.intp] = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))
    w = np.ones(len(p)) if weights is None else weights[order]
    positive = np.where(y[order], w, 0.0)
    w -= positive
    return np.add.reduceat(positive, starts), np.add.reduceat(w, starts)


def average_precision(rows: Rows) -> float:
    """Precision at each distinct score, weighted by the recall gained there."""
    p, y = check_scores(rows), find_positives(rows)
    if not y.any():
        rows.warn("is undefined without a positive label; it is set to 0.")
        return 0.0
    positive, negative = (each[::-1] for each in _by_score(p, y, rows.weights))
    hits = np.cumsum(positive)
    gained = positive > 0
    precision = hits[gained] / (hits + np.cumsum(negative))[gained]
    return float((positive[gained] * precision).sum() / hits[-1])


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows whose probability lies in [lower, upper); the last bin includes 1."""

    lower: float
    upper: float
    rows: int
    weight: float
    mean_prediction: float | None  # None: the bin is empty
    mean_label: float | None


def brier(rows: Rows) -> float:
    """Squared error of the probability of class 1, or, of several columns, of those of all classes together."""
    if rows.predictions.ndim == 2:
        return _brier_of_classes(rows)
    p, y = check_probabilities(rows), check_labels(rows)

    def term(block: slice) -> Floats:
        d = np.array(p[block], dtype=np.float64)
        d -= y[block] == 1
        return np.multiply(d, d, out=d)

    return rows.mean(term)


def _binned(rows: Rows, n_bins: int) -> Floats:
    """For each bin: rows, weight, weighted predictions, weighted labels."""
    p, y = check_probabilities(rows), check_labels(rows)
    edges = np.arange(1, n_bins) / n_bins
    sums = np.zeros((4, n_bins))
    for block in blocks(rows.n):
        part = p[block].astype(np.float64, copy=False)
        index = np.searchsorted(edges, part, side="right")
        w = np.ones(len(part)) if rows.weights is None else rows.weights[block]
        for into, values in enumerate((None, w, w * part, w * (y[block] == 1))):
            sums[into] += np.bincount(index, values, minlength=n_bins)
    return sums


def ece(rows: Rows, n_bins: int) -> float:
    """Mean gap between the average probability and the share of positives, over bins by weight."""
    _, weight, predicted, observed = _binned(rows, n_bins)
    return float(np.abs(predicted - observed).sum() / weight.sum())


def reliability(predictions: Any, labels: Any, weights: Any = None, *, n_bins: int = 10) -> list[ReliabilityBin]:
    """The bins behind `ece`, for a reliability diagram."""
    metric = get("ece", n_bins=n_bins)
    rows = prepare(metric.spec, predictions, labels, weights, None, None)
    edges = (np.arange(n_bins + 1) / n_bins).tolist()
    return [
        ReliabilityBin(
            edges[index],
            edges[index + 1],
            int(count),
            weight,
            predicted / weight if count else None,
            observed / weight if count else None,
        )
        for index, (count, weight, predicted, observed) in enumerate(_binned(rows, n_bins).T.tolist())
    ]


def _rates(rows: Rows, chosen: Flags, among: Flags | None = None) -> Floats:
    """The share of chosen rows in each group, among those that count; 0 where a group has none."""
    names, codes = rows.encode("sensitive")
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    w = w if among is None else w * among
    every, some = (np.bincount(codes, each, minlength=len(names)) for each in (w, w * chosen))
    empty = every == 0
    if empty.any():
        rows.warn(f"takes a rate of 0 for the group '{names[int(empty.argmax())]}', which has no rows of one class.")
    return np.divide(some, every, out=np.zeros(len(names)), where=~empty)


def _gap(rates: Floats, mode: str) -> float:
    """Largest minus smallest, or smallest over largest; rates that are all 0 are equal."""
    low, high = float(rates.min()), float(rates.max())
    if mode == "difference":
        return high - low
    return low / high if high else 1.0


def demographic_parity(rows: Rows, threshold: float, mode: str) -> float:
    check_labels(rows)  # only checked: parity does not depend on the labels
    return _gap(_rates(rows, decide(check_scores(rows), threshold)), mode)


def equalized_odds(rows: Rows, threshold: float, mode: str) -> float:
    """How far the groups' true and false positive rates are apart: the worse of the two."""
    y, chosen = find_positives(rows), decide(check_scores(rows), threshold)
    gaps = [_gap(_rates(rows, chosen, among), mode) for among in (y, ~y)]
    return max(gaps) if mode == "difference" else min(gaps)


_SUM_TOLERANCE = 1e-3  # half-precision probabilities still add up to 1 within this


def _classes(rows: Rows) -> NDArray[np.intp]:
    labels, shape = rows.single("labels"), rows.predictions.shape
    if len(shape) != 2:
        rows.refuse("predictions", "of one column for each class", f"the shape {shape}")

    def holds(v: Array) -> Flags:
        inside: Flags = (v >= 0) & (v < shape[1])
        return inside if v.dtype.kind in "iub" else inside & (v == np.floor(v))

    rows.require("labels", holds, f"class numbers from 0 to {shape[1] - 1}")
    return labels.astype(np.intp, copy=False)


def _brier_of_classes(rows: Rows) -> float:
    """Brier's own sum over the classes, from 0 to 2; half of it is that of two classes by one column."""
    y, p = _classes(rows), rows.predictions
    check = _check_distributions(rows)

    def term(block: slice) -> Floats:
        check(block)
        d = np.array(p[block], dtype=np.float64)
        d[np.arange(len(d)), y[block]] -= 1.0
        return np.asarray(np.einsum("ij,ij->i", d, d))

    return rows.mean(term)


def mlogloss(rows: Rows) -> float:
    y, p = _classes(rows), rows.predictions
    check = _check_distributions(rows)
    index = np.arange(min(rows.n, BLOCK))

    def term(block: slice) -> Floats:
        part, classes = p[block], y[block]
        check(block)
        q = part[index[: len(classes)], classes].astype(np.float64, copy=False)
        np.clip(q, EPSILON, 1.0 - EPSILON, out=q)
        np.log(q, out=q)
        return np.negative(q, out=q)

    return rows.mean(term)


def _check_distributions(rows: Rows) -> Callable[[slice], None]:
    """What refuses a block with a row that is no distribution over the classes, while it is in the cache."""
    p = rows.predictions
    ones = np.ones(p.shape[1], dtype=np.float32 if p.dtype == np.float32 else np.float64)

    def check(block: slice) -> None:
        part = p[block]
        if not (part.min() >= 0 and np.abs(part @ ones - 1.0).max() <= _SUM_TOLERANCE):  # false for NaN too
            _refuse_distribution(rows)

    return check


def _refuse_distribution(rows: Rows) -> None:
    """Find the first row that is not a distribution over the classes."""
    rows.require("predictions", lambda v: (v >= 0) & (v <= 1 + _SUM_TOLERANCE), "probabilities from 0 to 1")
    for block in blocks(rows.n):
        sums = rows.predictions[block].sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1.0) > _SUM_TOLERANCE
        if off.any():
            at = int(off.argmax())
            row = rows.number(block.start + at)
            rows.refuse("predictions", "probabilities that add up to 1 in each row", f"{sums[at]} in row {row}")


def accuracy(rows: Rows, threshold: float) -> float:
    """Share of correct classes: by the threshold for one column, by the first largest of several."""
    if rows.predictions.ndim == 1:
        tp, fp, fn, tn = confusion(rows, threshold)
        return (tp + tn) / (tp + tn + fp + fn)
    if threshold != 0.5:
        rows.refuse("predictions", "of one column where a 'threshold' is given", f"the shape {rows.predictions.shape}")
    y = _classes(rows)
    rows.require("predictions", np.isfinite, "finite")
    return rows.mean(lambda block: (rows.predictions[block].argmax(axis=1) == y[block]).astype(np.float64))


def top_k_accuracy(rows: Rows, k: int) -> float:
    """Share of rows whose class is among the k largest; among equal ones the first count."""
    y, p = _classes(rows), rows.predictions
    rows.require("predictions", np.isfinite, "finite")
    columns = np.arange(p.shape[1])

    def term(block: slice) -> Floats:
        part, classes = p[block], y[block, None]
        own = np.take_along_axis(part, classes, axis=1)
        ahead = (part > own) | ((part == own) & (columns < classes))
        return np.asarray(np.count_nonzero(ahead, axis=1) < k, dtype=np.float64)

    return rows.mean(term)


def macro_f1(rows: Rows) -> float:
    y, p = _classes(rows), rows.predictions
    rows.require("predictions", np.isfinite, "finite")
    size = p.shape[1]
    hit, actual, chosen = np.zeros((3, size))
    for block in blocks(rows.n):
        d, classes = p[block].argmax(axis=1), y[block]
        w = np.ones(len(d)) if rows.weights is None else rows.weights[block]
        actual += np.bincount(classes, w, minlength=size)
        chosen += np.bincount(d, w, minlength=size)
        hit += np.bincount(classes, w * (d == classes), minlength=size)
    occurs = actual + chosen > 0
    return math.fsum(2 * hit[occurs] / (actual + chosen)[occurs]) / int(np.count_nonzero(occurs))
