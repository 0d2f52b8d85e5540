"""The trivial rules that any library should beat: scored in each cell on its own split, outside the clock."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.metrics.metric import compute_metrics, find
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

Scores = dict[str, dict[str, float]]  # by rule, then by metric

_DIGITS = 6  # that are stored: a journal may have 100 000 lines, and each has them


def trivial_scores(
    task: Task,
    train: tuple[NDArray[Any], NDArray[Any] | None],
    y_valid: NDArray[Any],
    *,
    n_classes: int | None,
    weights: Any = None,
    groups: Any = None,
    sensitive: Any = None,
    quantiles: tuple[float, ...] = (),
    metrics: Iterable[str] = (),
    targets: Sequence[str] = (),
) -> Scores:
    """The score of each rule of the task. It learns from the training targets and their weights alone.

    A metric that such a prediction cannot have is left out, and so is one that it has perfectly whatever the data:
    a constant is calibrated, and treats all groups alike. Rows that a file has sorted by their relevance have no order
    to be kept: it is the answer, and nobody could beat it.
    """
    found: Scores = {}
    if task is Task.RANKING and groups is not None and _is_sorted(y_valid, np.asarray(groups)):
        return found
    y, counted = train
    counted = None if counted is None or not counted.any() else counted
    about: Any = {"groups": groups, "sensitive": sensitive, "quantiles": quantiles, "metrics": metrics}
    about["targets"] = targets
    for rule, predictions in _predictions(task, y, counted, len(y_valid), n_classes, quantiles, groups).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = compute_metrics(task, y_valid, predictions, n_classes, weights, **about, skip_undefined=True)
        known = {name: find(name) for name in scores}
        telling = [name for name, metric in known.items() if metric is None or not metric.info.constant_is_best]
        kept = {name: float(f"{scores[name]:.{_DIGITS}g}") for name in telling if math.isfinite(scores[name])}
        if kept:
            found[rule] = kept
    return found


def _predictions(
    task: Task,
    y: NDArray[Any],
    weights: NDArray[Any] | None,
    n_valid: int,
    n_classes: int | None,
    quantiles: tuple[float, ...],
    groups: Any,
) -> dict[str, NDArray[Any]]:
    match task:
        case Task.REGRESSION:
            mean = np.average(y, weights=weights, axis=0)
            medians = [_quantiles(column, weights, (0.5,))[0] for column in np.atleast_2d(y.T)]
            median = medians if y.ndim > 1 else medians[0]
            return {rule: np.full((n_valid, *y.shape[1:]), it) for rule, it in (("mean", mean), ("median", median))}
        case Task.QUANTILE:
            return {"quantiles": np.tile(_quantiles(y, weights, quantiles or (0.5,)), (n_valid, 1))}
        case Task.BINARY:
            return {"priors": np.full(n_valid, np.average(y, weights=weights))}
        case Task.MULTICLASS:
            counts = np.bincount(y.astype(np.int64), weights=weights, minlength=n_classes or 0)
            return {"priors": np.tile(counts / counts.sum(), (n_valid, 1))}
        case Task.RANKING:
            return {} if groups is None else {"order": -_places(np.asarray(groups))}


def _quantiles(y: NDArray[Any], weights: NDArray[Any] | None, levels: tuple[float, ...]) -> NDArray[np.float64]:
    """Quantiles of the targets; of weighted ones, the first value that reaches the level's share of all weight."""
    if weights is None:
        return np.asarray(np.quantile(y, levels), dtype=np.float64)
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached, np.asarray(levels) * reached[-1])
    return np.asarray(y[order][np.minimum(at, len(y) - 1)], dtype=np.float64)


def _is_sorted(relevance: NDArray[Any], groups: NDArray[Any]) -> bool:
    """Whether the best rows of every query come first."""
    order = np.argsort(groups, kind="stable")
    same_query = groups[order][1:] == groups[order][:-1]
    return not (same_query & (np.diff(relevance[order]) > 0)).any()


def _places(groups: NDArray[Any]) -> NDArray[np.float64]:
    """The place of each row in its query, in the order of the data."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    places = np.empty(len(groups))
    places[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
    return places
