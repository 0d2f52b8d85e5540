"""Errors of predicted values and quantiles; with several outputs each has its own value.

No input is checked for NaN beforehand: it would show in the result, and only then is the culprit looked for.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.metrics.rows import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.metrics.rows import Array, Floats, Rows

_TINY = 1e-280  # squares below this have lost digits


def _outputs(rows: Rows) -> Iterator[tuple[Array, Array]]:
    """The columns of predictions and labels, pairwise."""
    p, y = rows.predictions, rows.labels
    if p.shape != y.shape:
        rows.refuse("predictions", f"of the labels' shape {y.shape}", f"the shape {p.shape}")
    if p.ndim == 1:
        return iter([(p, y)])
    return ((p[:, k], y[:, k]) for k in range(p.shape[1]))


def _difference(a: Array, b: Array, block: slice) -> Floats:
    return np.subtract(a[block], b[block], dtype=np.float64)


def _squares(a: Array, b: Array, exponent: int, block: slice) -> Floats:
    d = _difference(a, b, block)
    if exponent:
        np.ldexp(d, -exponent, out=d)
    return np.multiply(d, d, out=d)


def _exponent(a: Array, b: Array) -> int:
    """The power of two that brings the largest difference near 1; 0 if there is none or it is not finite."""
    peak = max(float(np.abs(_difference(a, b, block)).max()) for block in blocks(len(a)))
    return math.frexp(peak)[1] if math.isfinite(peak) else 0


def _root_mean_square(rows: Rows, a: Array, b: Array) -> float:
    """Without overflow or underflow: extreme differences are scaled before they are squared."""
    mean = rows.mean(partial(_squares, a, b, 0))
    if _TINY < mean < math.inf:
        return math.sqrt(mean)
    exponent = _exponent(a, b)
    return math.ldexp(math.sqrt(rows.mean(partial(_squares, a, b, exponent))), exponent)


def rmse(rows: Rows) -> list[float]:
    return [_root_mean_square(rows, p, y) for p, y in _outputs(rows)]


def _absolute(p: Array, y: Array, block: slice) -> Floats:
    return np.abs(_difference(p, y, block))


def mae(rows: Rows) -> list[float]:
    return [rows.mean(partial(_absolute, p, y)) for p, y in _outputs(rows)]


def mape(rows: Rows, epsilon: float | None) -> list[float]:
    """Mean absolute error relative to the label, in percent; `epsilon` is the least denominator."""
    outputs = _outputs(rows)
    if epsilon is None:
        rows.require("labels", lambda v: v != 0, "other than 0 unless 'epsilon' is given")

    def term(p: Array, y: Array, block: slice) -> Floats:
        size = np.abs(y[block], dtype=np.float64)
        if epsilon is not None:
            np.maximum(size, epsilon, out=size)
        return np.divide(_absolute(p, y, block), size, out=size)

    return [100.0 * rows.mean(partial(term, p, y)) for p, y in outputs]


def _r2(rows: Rows, p: Array, y: Array) -> float:
    # A test of the spread's size would not do: the mean of equal labels may differ from them by an ulp.
    if y.min() == y.max():
        exact = all(bool((p[block] == y[block]).all()) for block in blocks(rows.n))
        return 1.0 if exact else (0.0 if np.isfinite(p).all() and np.isfinite(y).all() else math.nan)
    middle = np.array([rows.mean(lambda block: np.array(y[block], dtype=np.float64))])
    center = np.broadcast_to(middle, y.shape)
    residual, spread = (rows.mean(partial(_squares, a, y, 0)) for a in (p, center))
    if not (_TINY < spread < math.inf and residual < math.inf):
        exponent = _exponent(center, y)
        residual, spread = (rows.mean(partial(_squares, a, y, exponent)) for a in (p, center))
    return 1.0 - residual / spread if spread > 0 else math.nan


def r2(rows: Rows) -> list[float]:
    return [_r2(rows, p, y) for p, y in _outputs(rows)]


def rmsle(rows: Rows) -> list[float]:
    outputs = _outputs(rows)
    for argument in ("predictions", "labels"):
        rows.require(argument, lambda v: v > -1, "greater than -1")

    def term(p: Array, y: Array, block: slice) -> Floats:
        d = np.log1p(p[block], dtype=np.float64)
        d -= np.log1p(y[block], dtype=np.float64)
        return np.multiply(d, d, out=d)

    return [math.sqrt(rows.mean(partial(term, p, y))) for p, y in outputs]


def median_ae(rows: Rows) -> list[float]:
    """Median absolute error of each output; with weights the errors at half of the weight, averaged if two are."""
    rows.require_finite()
    return [_median(_absolute(p, y, slice(None)), rows.weights) for p, y in _outputs(rows)]


def _median(values: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(np.median(values, overwrite_input=True))
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    half = reached[-1] / 2
    slack = half * len(values) * np.finfo(np.float64).eps  # how far rounding may have moved the sums
    low, high = np.searchsorted(reached, [half - slack, half + slack])
    return float(values[order[low]] / 2 + values[order[min(high, len(values) - 1)]] / 2)


def pinball(rows: Rows, alphas: tuple[float, ...]) -> list[float]:
    """Quantile loss of each level; one column without a level is the median."""
    p, y = rows.predictions, rows.single("labels")
    columns = [p] if p.ndim == 1 else [p[:, k] for k in range(p.shape[1])]
    levels = alphas or ((0.5,) if len(columns) == 1 else ())
    if len(columns) != len(levels):
        rows.refuse("predictions", f"of one column for each of {len(levels)} 'alphas'", f"the shape {p.shape}")

    def term(column: Array, alpha: float, block: slice) -> Floats:
        d = _difference(y, column, block)
        below = d * (alpha - 1.0)
        d *= alpha
        return np.maximum(d, below, out=d)

    return [rows.mean(partial(term, column, alpha)) for column, alpha in zip(columns, levels, strict=True)]


def crps(rows: Rows, alphas: tuple[float, ...]) -> list[float]:
    """Each level's share of the score: an integral over levels, taken as the mean over those predicted."""
    return [2.0 * value for value in pinball(rows, alphas)]
