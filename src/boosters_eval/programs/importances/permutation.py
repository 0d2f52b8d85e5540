"""Permutation importance: how much worse a model scores when the values of a column say nothing of their row any more.

One implementation, with one and the same shuffles for every library: they depend on the split alone.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.streams import Stream
from boosters_eval.metrics import MetricWarning, get
from boosters_eval.metrics.evaluate import quantile_columns
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from boosters_eval.programs.importances.records import FeatureUnit

    _Predict = Callable[[NDArray[np.float32]], NDArray[Any]]
    _Score = Callable[[NDArray[Any]], float]

_SHUFFLES, _SAMPLE = 6, 7  # keep these uses of a split apart from each other
_MAX_BYTES = 2**28  # of the shuffled copies that are predicted at once


def score_by(metric: str, task: Task, quantiles: tuple[float, ...], y: Any, **rows: Any) -> _Score:
    """The score of predictions by one metric, with the `weights`, `groups` and `sensitive` of the rows."""
    wanted = get(metric)

    def score(predictions: NDArray[Any]) -> float:
        chosen, columns = wanted, predictions
        if task is Task.QUANTILE:
            found = quantile_columns(predictions, quantiles)(wanted, optional=False)
            chosen, columns = found if found is not None else (wanted, predictions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetricWarning)  # said of the score itself already
            return chosen.compute(columns, y, **rows)

    return score


def permutation_importance(
    predict: _Predict,
    score: _Score,
    x: NDArray[np.float32],
    units: Sequence[FeatureUnit],
    *,
    repeats: int,
    split_digest: str,
    higher_is_better: bool,
    baseline: float,
) -> NDArray[np.float64]:
    """(repeats, units): how much worse the score is than the baseline when the columns of a unit are shuffled together.

    Of a ranking, rows are shuffled across all queries: within a query a column that tells queries apart would be lost.
    """
    found = np.empty((repeats, len(units)))
    count = max(1, min(repeats, _MAX_BYTES // max(1, x.nbytes)))
    copies = np.tile(x, (count, 1))
    for place, unit in enumerate(units):
        columns = list(unit.columns)
        for first in range(0, repeats, count):
            some = range(first, min(first + count, repeats))
            for slot, repeat in enumerate(some):
                order = shuffle(split_digest, columns[0], repeat, len(x))
                copies[slot * len(x) : (slot + 1) * len(x), columns] = x[np.ix_(order, columns)]
            predictions = predict(copies[: len(some) * len(x)])
            for slot, repeat in enumerate(some):
                worse = score(predictions[slot * len(x) : (slot + 1) * len(x)]) - baseline
                found[repeat, place] = -worse if higher_is_better else worse
        copies.reshape(count, *x.shape)[:, :, columns] = x[:, columns]
    return found + 0.0  # no -0.0


def shuffle(split_digest: str, column: int, repeat: int, n_rows: int) -> NDArray[np.int64]:
    """The order in which a column's values are given to the rows."""
    return Stream(_SHUFFLES, _number(split_digest), column, repeat).order(n_rows)


def measured_rows(n_valid: int, most: int, split_digest: str, groups: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """The places of the validation rows that are measured: all, or a sample that depends on the split alone.

    Of a ranking, whole queries are taken, at least one.
    """
    if n_valid <= most:
        return np.arange(n_valid)
    stream = Stream(_SAMPLE, _number(split_digest))
    if groups is None:
        return np.sort(stream.order(n_valid)[:most])
    query = np.cumsum(np.diff(groups, prepend=groups[0]) != 0)
    sizes = np.bincount(query)
    order = stream.order(len(sizes))
    chosen = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))]
    return np.flatnonzero(np.isin(query, chosen))


def _number(split_digest: str) -> int:
    return int.from_bytes(hashlib.sha256(split_digest.encode()).digest()[:8])
