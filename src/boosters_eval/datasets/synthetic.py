"""Generated data, bit for bit the same everywhere: only additions, products, quotients and comparisons.

The signal is smooth, has interactions and a jump, and leaves some columns without any influence, so that
trees have something to find and something to ignore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.datasets.streams import Stream
from boosters_eval.datasets.table import Table
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Column = NDArray[np.float64]

_KEYS = {Task.REGRESSION: 1, Task.BINARY: 2, Task.MULTICLASS: 3, Task.RANKING: 4, Task.QUANTILE: 5}
_GROUP_SIZES = (10, 15, 20, 25, 30)  # rows per query, in turn: 20 on average
_GRADES = (13.0, 17.0, 20.0, 23.0)  # signal and noise above these earn grades 1, 2, 3, 4
_CENTRE, _SCALE = 14.5, 1.0  # the median of the signal, and how steeply classes part around it


def generate(task: Task, rows: int, columns: int, classes: int) -> Table:
    """A table of the task; the same arguments give the same bits."""
    stream = Stream(15, _KEYS[task], rows, columns)
    x = [stream.uniform(rows) for _ in range(columns)]
    groups = _groups(rows) if task is Task.RANKING else None
    if groups is not None:
        per_query = stream.uniform(int(groups[-1]) + 1)
        x[0] = per_query[groups]  # a column that only tells queries apart
    y = _synthetic_target(task, x, stream, classes)
    names = tuple(f"x{i}" for i in range(columns))
    return Table(np.stack(x, axis=1).astype(np.float32), y, groups=groups, feature_names=names)


def _synthetic_target(task: Task, x: list[_Column], stream: Stream, classes: int) -> _Column:
    rows = len(x[0])
    if task is Task.MULTICLASS:
        scores = [_class_score(x, label) + 0.6 * stream.noise(rows) for label in range(classes)]
        return np.argmax(np.stack(scores), axis=0).astype(np.float64)
    signal = _signal(x)
    if task is Task.BINARY:
        z = (signal - _CENTRE) / _SCALE
        share = 0.5 + 0.5 * z / (1 + np.abs(z))
        return np.asarray(stream.uniform(rows) < share, dtype=np.float64)
    if task is Task.RANKING:
        rated = signal + 2 * stream.noise(rows)
        return np.asarray(np.searchsorted(_GRADES, rated), dtype=np.float64)
    spread = 0.5 + 2 * x[3] if task is Task.QUANTILE else 1.0
    return signal + spread * stream.noise(rows)


def _signal(x: list[_Column]) -> _Column:
    product = x[0] * x[1]
    jump = np.where(x[5] > 0.6, 8.0, -2.0)
    return 40 * product * (1 - product) + 20 * (x[2] - 0.5) * (x[2] - 0.5) + 10 * x[3] + 5 * x[4] + jump * (x[6] - 0.5)


def _class_score(x: list[_Column], label: int) -> _Column:
    first, second, third = (x[(label + step) % len(x)] for step in (0, 1, 2))
    product = first * second
    return 16 * product * (1 - product) + 12 * (third - 0.5) * (third - 0.5)


def _groups(rows: int) -> NDArray[np.int64]:
    cycle = np.array(_GROUP_SIZES)
    ends = np.cumsum(np.tile(cycle, rows // cycle.sum() + 1))
    return np.searchsorted(ends, np.arange(rows), side="right").astype(np.int64)
