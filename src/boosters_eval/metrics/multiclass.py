"""Several classes: one column of probabilities for each, labels 0, 1, ..."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.metrics.binary import EPSILON, accuracy_at
from boosters_eval.metrics.rows import BLOCK, blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.metrics.rows import Array, Flags, Floats, Rows

_SUM_TOLERANCE = 1e-3  # half-precision probabilities still add up to 1 within this


def _classes(rows: Rows) -> NDArray[np.intp]:
    """The labels as column numbers."""
    labels, shape = rows.single("labels"), rows.predictions.shape
    if len(shape) != 2:
        rows.refuse("predictions", "of one column for each class", f"the shape {shape}")

    def holds(v: Array) -> Flags:
        inside: Flags = (v >= 0) & (v < shape[1])
        return inside if v.dtype.kind in "iub" else inside & (v == np.floor(v))

    rows.require("labels", holds, f"class numbers from 0 to {shape[1] - 1}")
    return labels.astype(np.intp, copy=False)


def mlogloss(rows: Rows) -> float:
    """Mean of -log of the probability given to the class."""
    y, p = _classes(rows), rows.predictions
    ones = np.ones(p.shape[1], dtype=np.float32 if p.dtype == np.float32 else np.float64)
    index = np.arange(min(rows.n, BLOCK))

    def term(block: slice) -> Floats:
        part, classes = p[block], y[block]
        if not (part.min() >= 0 and np.abs(part @ ones - 1.0).max() <= _SUM_TOLERANCE):  # false for NaN too
            _refuse_distribution(rows)
        q = part[index[: len(classes)], classes].astype(np.float64, copy=False)
        np.clip(q, EPSILON, 1.0 - EPSILON, out=q)
        np.log(q, out=q)
        return np.negative(q, out=q)

    return rows.mean(term)


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
        return accuracy_at(rows, threshold)
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
        found: Floats = np.less(np.count_nonzero(ahead, axis=1), k).astype(np.float64)
        return found

    return rows.mean(term)


def macro_f1(rows: Rows) -> float:
    """F1 of each class, averaged over those that are a label or a prediction."""
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
