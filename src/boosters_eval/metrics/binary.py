"""Two classes: scores of one column, labels 0 and 1."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.metrics.catalog import MetricWarning
from boosters_eval.metrics.rows import blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.metrics.rows import Array, Flags, Floats, Rows

EPSILON = 1e-15  # the RFC's clip, in float64 whatever comes in


def targets(rows: Rows) -> Array:
    """Labels that are all 0 or 1."""
    values = rows.single("labels")
    rows.require("labels", lambda v: (v == 0) | (v == 1), "0 or 1")
    return values


def positives(rows: Rows) -> Flags:
    """Which labels are 1."""
    flags: Flags = targets(rows) == 1
    return flags


def scores(rows: Rows) -> Array:
    """Predictions of any finite size: for what only compares them."""
    values = rows.single("predictions")
    rows.require("predictions", np.isfinite, "finite")
    return values


def probabilities(rows: Rows) -> Array:
    """Predictions from 0 to 1."""
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
            scores(rows)
            targets(rows)
        parts.append(_cells(truth, decision, None if rows.weights is None else rows.weights[block]))
    tp, fp, fn, tn = (math.fsum(cell) for cell in zip(*parts, strict=True))
    return tp, fp, fn, tn


def _cells(truth: Flags, decision: Flags, weights: Floats | None) -> tuple[float, ...]:
    if weights is not None:
        return tuple(np.bincount(2 * decision + truth, weights, minlength=4)[::-1].tolist())
    both, actual, chosen = (int(np.count_nonzero(each)) for each in (truth & decision, truth, decision))
    return both, chosen - both, actual - both, len(truth) - actual - chosen + both


def logloss(rows: Rows) -> float:
    """Mean of -log of the probability given to the class."""
    p, y = probabilities(rows), targets(rows)

    def term(block: slice) -> Floats:
        q = np.array(p[block], dtype=np.float64)
        np.clip(q, EPSILON, 1.0 - EPSILON, out=q)
        q -= y[block] == 0  # p for class 1, p - 1 for class 0: one logarithm per row
        np.abs(q, out=q)
        np.log(q, out=q)
        return np.negative(q, out=q)

    return rows.mean(term)


def accuracy_at(rows: Rows, threshold: float) -> float:
    """Share of rows on the right side of the threshold."""
    tp, fp, fn, tn = confusion(rows, threshold)
    return (tp + tn) / (tp + tn + fp + fn)


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
    p, y = scores(rows), positives(rows)
    if y.all() or not y.any():
        warnings.warn(
            f"The metric '{rows.metric}' is undefined where all labels are {int(y[0])}; it is set to 0.5.",
            MetricWarning,
            stacklevel=2,
        )
        return 0.5
    return _pairs(p, y) if rows.weights is None else _weighted_pairs(p, y, rows.weights)


def _pairs(p: Array, y: Flags) -> float:
    """Counted exactly: each class sorted apart, then one looked up in the other."""
    above, below = np.sort(p[y]), np.sort(p[~y])
    left = np.searchsorted(above, below)
    twice = 2 * (len(above) * len(below) - int(left.sum()))
    tied = above[np.minimum(left, len(above) - 1)] == below
    if tied.any():
        twice -= int((np.searchsorted(above, below[tied], side="right") - left[tied]).sum())
    return twice / (2 * len(above) * len(below))


def _weighted_pairs(p: Array, y: Flags, weights: Floats) -> float:
    positive, negative = _by_score(p, y, weights)
    beaten = np.cumsum(negative) - negative / 2
    return float((positive * beaten).sum() / (positive.sum() * negative.sum()))


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
    p, y = scores(rows), positives(rows)
    if not y.any():
        warnings.warn(
            f"The metric '{rows.metric}' is undefined without a positive label; it is set to 0.",
            MetricWarning,
            stacklevel=2,
        )
        return 0.0
    positive, negative = (each[::-1] for each in _by_score(p, y, rows.weights))
    hits = np.cumsum(positive)
    gained = positive > 0
    precision = hits[gained] / (hits + np.cumsum(negative))[gained]
    return float((positive[gained] * precision).sum() / hits[-1])
