"""How rows make a metric: its value on one split as the weighted mean of one contribution per row, or per query.

A contribution is the value plus the row's influence on it: the derivative of the value by the row's share of all
weight. For a mean of losses these are the losses themselves, for AUC the components of DeLong, for a ratio of counts
what the delta method gives. Where a class is small, influences are enlarged to show the spread that they have.
The statistics see nothing else of a metric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.metrics.catalog import as_task
from boosters_eval.metrics.classification import decide
from boosters_eval.metrics.metric import get, mean_over_outputs
from boosters_eval.metrics.rows import Rows, as_array, prepare, quantile_columns, score_rows
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from boosters_eval.metrics.metric import Metric
    from boosters_eval.metrics.rows import Flags, Floats


@dataclass(frozen=True)
class Linearization:
    """A metric's value on one split, which is the weighted mean of the contributions."""

    value: float
    contributions: Floats
    weights: Floats | None  # None: all alike
    at: NDArray[np.intp]  # the row of the input that each contribution belongs to; of a query, its first one


def linearize(
    task: Task | str,
    metric: str | Metric,
    y_true: Any,
    y_pred: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    quantiles: Iterable[float] = (),
) -> Linearization | None:
    """What `compute_metrics` gives for one metric, row by row; None where rows do not make it."""
    chosen, columns = get(metric), as_array("y_pred", y_pred)
    if as_task(task) is Task.QUANTILE:
        picked = quantile_columns(columns, tuple(quantiles))(chosen, optional=True)
        if picked is None:
            return None
        chosen, columns = picked
    return linearize_rows(chosen, columns, y_true, sample_weight, groups)


def linearize_rows(
    metric: Metric, predictions: Any, labels: Any, weights: Any = None, groups: Any = None
) -> Linearization | None:
    """The value of one metric as a mean of contributions, one per row or query; None where rows do not make it."""
    if metric.info.by_rows is None:
        return None
    given = prepare(metric.spec, predictions, labels, weights, groups, None)
    rows = _Recorded(**{each.name: getattr(given, each.name) for each in fields(given)}).normalized()
    at = np.arange(rows.n) if rows.numbers is None else rows.numbers
    values = score_rows(metric, rows)
    value = mean_over_outputs(values)
    if metric.info.by_rows == "queries":
        scores, shares, firsts = rows.queries[0]
        return Linearization(value, scores, shares, at[firsts])
    find: Callable[..., Floats | None] = _INFLUENCES.get(metric.name, _of_mean)
    influence = find(rows, values, **dict(metric.params))
    rarity = _find_rarity(rows) if metric.name in _BY_CLASS else 1.0
    if influence is None or rarity is None:
        return None
    return Linearization(value, value + rarity * influence, rows.weights, at)


@dataclass(frozen=True)
class RowErrors:
    """How far each row, or query, is from the best: the metric's error is their weighted mean, or the root of it."""

    errors: Floats
    weights: Floats | None
    at: NDArray[np.intp]  # as in a linearization
    root: bool = False


def find_errors(
    task: Task | str,
    metric: str | Metric,
    y_true: Any,
    y_pred: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    quantiles: Iterable[float] = (),
) -> RowErrors | None:
    """What each row loses by itself, whatever the other rows are; None where rows have no error of their own.

    A linearization says what a row changes in the value of all; of an AUC or F1, that depends on the others.
    """
    chosen = get(metric)
    made = linearize(task, chosen, y_true, y_pred, sample_weight, groups=groups, quantiles=quantiles)
    if made is None:
        return None
    if chosen.info.by_rows in ("mean", "queries"):
        best = chosen.best or 0.0
        errors = best - made.contributions if chosen.higher_is_better else made.contributions - best
        return RowErrors(errors, made.weights, made.at)
    if _INFLUENCES.get(chosen.name) is not _of_root or np.ndim(y_true) > 1:
        return None
    squares = made.value * (
        2.0 * made.contributions - made.value
    )  # a root's contribution is (value + square / value) / 2
    return RowErrors(np.maximum(squares, 0.0), made.weights, made.at, root=True)


@dataclass(frozen=True)
class _Recorded(Rows):
    """Rows that remember what a metric took the mean of."""

    terms: list[Floats] = field(default_factory=list)
    queries: list[tuple[Floats, Floats | None, NDArray[np.intp]]] = field(default_factory=list)

    @property
    def shares(self) -> Floats:
        """Weights whose mean is 1."""
        return np.ones(self.n) if self.weights is None else self.weights * (self.n / self.weights.sum())

    def mean(self, term: Callable[[slice], Floats]) -> float:
        parts: list[Floats] = []

        def kept(block: slice) -> Floats:
            values = np.array(term(block))
            parts.append(values.copy())
            return values

        found = super().mean(kept)
        self.terms.append(np.concatenate(parts))
        return found

    def mean_over_queries(self, scores: Floats, weights: Floats | None, firsts: NDArray[np.intp]) -> float:
        self.queries.append((scores, weights, firsts))
        return super().mean_over_queries(scores, weights, firsts)


def _find_rarity(rows: _Recorded) -> float | None:
    """What makes up for influences that are measured from the mean of a small class, which hides part of their spread.

    As a variance of c numbers is divided by c - 1. Of a single row nothing can be told: None.
    """
    counts = np.unique(rows.labels, return_counts=True)[1]
    if len(counts) == 1:
        return 1.0
    rarest = int(counts.min())
    return math.sqrt(rarest / (rarest - 1)) if rarest > 1 else None


def _relative(rows: _Recorded, term: Floats) -> Floats:
    """How far each term is from their mean, relative to it."""
    mean = float((rows.shares * term).mean())
    return term / mean - 1.0 if mean else np.zeros(rows.n)


def _of_mean(rows: _Recorded, values: list[float], **_: Any) -> Floats | None:
    """One mean per output, which the value is a multiple of."""
    return _of_outputs(rows, values, power=1.0)


def _of_root(rows: _Recorded, values: list[float], **_: Any) -> Floats | None:
    return _of_outputs(rows, values, power=0.5)


def _of_outputs(rows: _Recorded, values: list[float], *, power: float) -> Floats | None:
    if len(rows.terms) != len(values):  # numbers so extreme that they had to be scaled
        return None
    total = np.zeros(rows.n)
    for value, term in zip(values, rows.terms, strict=True):
        mean = float((rows.shares * term).mean())
        total += (term - mean) * (power * value / mean if mean else power)
    return total / len(values)


def _of_r2(rows: _Recorded, values: list[float]) -> Floats | None:
    """Of 1 - residual / spread; the labels' own mean minimizes the spread, so its luck has no influence."""
    if len(rows.terms) != 3 * len(values):
        return None
    parts = (
        (value - 1.0) * (_relative(rows, residual) - _relative(rows, spread))
        for value, residual, spread in zip(values, rows.terms[1::3], rows.terms[2::3], strict=True)
    )
    return np.asarray(sum(parts) / len(values))


def _cells(rows: _Recorded, threshold: float) -> tuple[Floats, NDArray[np.intp]]:
    """The shares of true negatives, false negatives, false positives and true positives, and each row's place."""
    place = 2 * decide(rows.predictions, threshold) + (rows.labels == 1)
    return np.bincount(place, rows.shares, minlength=4) / rows.n, place


def _of_accuracy(rows: _Recorded, values: list[float], threshold: float) -> Floats | None:
    if rows.terms:  # several classes
        return _of_mean(rows, values)
    place = _cells(rows, threshold)[1]
    return np.asarray(((place == 0) | (place == 3)) - values[0])


def _of_f1(rows: _Recorded, _: list[float], threshold: float) -> Floats:
    shares, place = _cells(rows, threshold)
    return _of_ratio(place == 3, place % 3 != 0, shares[3], shares[1] + shares[2])


def _of_ratio(hit: Flags, missed: Flags, hits: float, misses: float) -> Floats:
    """Of 2 hits / (2 hits + misses), given which rows are one or the other."""
    every = 2.0 * hits + misses
    if not every:
        return np.zeros(len(hit))
    value = 2.0 * hits / every
    return np.asarray((2.0 * hit - value * (2.0 * hit + missed)) / every)


def _of_macro_f1(rows: _Recorded, _: list[float]) -> Floats:
    actual, chosen = rows.labels.astype(np.intp), rows.predictions.argmax(axis=1)
    occurring = np.union1d(actual, chosen)
    total = np.zeros(rows.n)
    for each in occurring:
        hit, missed = (actual == each) & (chosen == each), (actual == each) != (chosen == each)
        total += _of_ratio(hit, missed, float((rows.shares * hit).mean()), float((rows.shares * missed).mean()))
    return total / len(occurring)


def _of_matthews(rows: _Recorded, values: list[float], threshold: float) -> Floats:
    (tn, fn, fp, tp), place = _cells(rows, threshold)
    margins = np.array([tp + fp, tp + fn, tn + fp, tn + fn])
    scale = math.sqrt(float(margins.prod()))
    if not scale:
        return np.zeros(rows.n)
    within = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]])  # which margins a cell is part of
    slope = np.array([tp, -fp, -fn, tn]) / scale - values[0] / 2.0 * (1.0 / margins) @ within
    return np.asarray((slope - slope @ np.array([tn, fn, fp, tp]))[place])


def _of_auc(rows: _Recorded, values: list[float]) -> Floats:
    """DeLong: the share of the other class that a row is on the right side of, ties counted half."""
    positive = rows.labels == 1
    found = np.zeros(rows.n)
    if positive.all() or not positive.any():
        return found
    levels, place = np.unique(rows.predictions, return_inverse=True)
    for mine in (positive, ~positive):
        others = np.bincount(place, rows.shares * ~mine, minlength=len(levels))
        below = (np.cumsum(others) - others / 2.0)[place] / others.sum()
        right = below if mine is positive else 1.0 - below
        found[mine] = (right - values[0])[mine] / (rows.shares * mine).mean()
    return found


def _of_precision(rows: _Recorded, values: list[float]) -> Floats:
    """Of average precision: a row counts at its own score, and in the precision at every lower one."""
    positive = rows.labels == 1
    if not positive.any():
        return np.zeros(rows.n)
    levels, place = np.unique(-rows.predictions.astype(np.float64), return_inverse=True)
    hit = np.bincount(place, rows.shares * positive, minlength=len(levels))
    called = np.cumsum(np.bincount(place, rows.shares, minlength=len(levels)))
    precision = np.cumsum(hit) / called
    onward = [np.cumsum((hit * part / called)[::-1])[::-1] for part in (1.0 - precision, precision)]
    slope = np.where(positive, (precision + onward[0])[place] - values[0], -onward[1][place])
    return np.asarray(slope * (rows.n / hit.sum()))


_BY_CLASS = ("f1", "matthews", "macro_f1", "auc_roc", "average_precision")  # each class has a share in the value
_INFLUENCES: dict[str, Callable[..., Floats | None]] = {
    "rmse": _of_root,
    "rmsle": _of_root,
    "r2": _of_r2,
    "accuracy": _of_accuracy,
    "f1": _of_f1,
    "matthews": _of_matthews,
    "macro_f1": _of_macro_f1,
    "auc_roc": _of_auc,
    "average_precision": _of_precision,
}
