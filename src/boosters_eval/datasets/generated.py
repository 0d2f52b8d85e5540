"""Generated tables, bit for bit the same everywhere, and the random stream that they are made of.

Only the raw stream of PCG64 is promised to stay; what numpy's Generator makes of it is not. So uniforms, noise and
orders are made from raw words by exact operations, and tables from these by additions, products, quotients and
comparisons: no transcendental function, no BLAS.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.datasets.config import Table
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from boosters_eval.datasets.catalog import Problem

    _Column = NDArray[np.float64]

_WORDS_IN_NOISE = 12


class Stream:
    """A stream of random words that depends on nothing but its key."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Raw 64-bit words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Numbers in [0, 1)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def noise(self, count: int) -> NDArray[np.float64]:
        """Nearly normal numbers of variance 1: twelve uniforms, added exactly, without a transcendental function."""
        total = np.zeros(count)
        for _ in range(_WORDS_IN_NOISE):
            total += self.uniform(count)
        return total - _WORDS_IN_NOISE / 2

    def order(self, count: int) -> NDArray[np.int64]:
        """A permutation of 0 .. count-1."""
        return np.argsort(self.words(count), kind="stable").astype(np.int64)


_KEYS = {Task.REGRESSION: 1, Task.BINARY: 2, Task.MULTICLASS: 3, Task.RANKING: 4, Task.QUANTILE: 5}
_GROUP_SIZES = (10, 15, 20, 25, 30)  # rows per query, in turn: 20 on average
_GRADES = (13.0, 17.0, 20.0, 23.0)  # signal and noise above these earn grades 1, 2, 3, 4
_CENTER, _SCALE = 14.5, 1.0  # the median of the signal, and how steeply classes part around it


def generate_task(task: Task, rows: int, columns: int, classes: int) -> Table:
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
        z = (signal - _CENTER) / _SCALE
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
    sizes = np.array(_GROUP_SIZES)
    ends = np.cumsum(np.tile(sizes, rows // sizes.sum() + 1))
    return np.searchsorted(ends, np.arange(rows), side="right").astype(np.int64)


_LEVELS = 8  # of a categorical column
_NOISE = 0.25  # of the signal's spread
_OUTLIERS = 0.02
_MISSING = 0.2
_FACTORS = (1.0, -1000.0, 0.001, -1.0, 1000000.0)  # of scaled columns, in turn


def generate_problem(problem: Problem) -> Table:
    """The table of a problem: the columns that the signal sees, then what makes them hard, then the target."""
    rows, columns = problem.shape
    stream = Stream(11, *problem.key)
    x = [stream.uniform(rows) for _ in range(columns)]
    if problem.difficulty == "rounded":
        x = [np.floor(5 * column) / 5 for column in x]
    codes = _categories(stream, x) if problem.difficulty == "categories" else None
    signal = _SIGNALS[problem.signal](x)
    spread = float(np.sort(signal)[int(0.9 * rows)] - np.sort(signal)[int(0.1 * rows)])
    noise = 1.0 if problem.difficulty == "noisy" else _NOISE
    target = signal + noise * (spread / 2) * stream.noise(rows)
    disguise = _DISGUISES.get(problem.difficulty)
    shown = codes or (disguise(stream, x) if disguise else x)
    names = tuple(f"x{i}" for i in range(columns))
    return Table(
        np.stack(shown, axis=1).astype(np.float32),
        _target(problem, target, spread, stream),
        categorical=problem.categorical,
        feature_names=names,
        category_names={names[i]: [f"level {code}" for code in range(_LEVELS)] for i in problem.categorical} or None,
    )


def _target(problem: Problem, target: _Column, spread: float, stream: Stream) -> _Column:
    rare = problem.difficulty == "rare"
    if problem.task is Task.REGRESSION:
        hit = stream.uniform(len(target)) < _OUTLIERS if rare else np.zeros(len(target), dtype=bool)
        return np.asarray(np.where(hit, target + 5 * spread, target))
    shares = {Task.BINARY: (0.9,) if rare else (0.5,), Task.MULTICLASS: (0.7, 0.92) if rare else (0.35, 0.7)}
    ordered = np.sort(target)
    cuts = [ordered[int(share * len(target))] for share in shares[problem.task]]
    return np.searchsorted(np.array(cuts), target, side="right").astype(np.float64)


def _categories(stream: Stream, x: list[_Column]) -> list[_Column]:
    """Codes for two columns whose order says nothing; the signal sees the effects behind the codes."""
    shown = list(x)
    for position in (0, 1):
        codes = np.floor(_LEVELS * x[position]).astype(np.int64)
        effects = (stream.order(_LEVELS) + 0.5) / _LEVELS
        x[position], shown[position] = effects[codes], codes.astype(np.float64)
    return shown


def _missing(stream: Stream, x: list[_Column]) -> list[_Column]:
    return [np.where(stream.uniform(len(column)) < _MISSING, np.nan, column) for column in x]


def _redundant(stream: Stream, x: list[_Column]) -> list[_Column]:
    """The second half of the columns repeats the first half with a little noise."""
    half = len(x) // 2
    return [*x[:half], *(column + 0.05 * stream.noise(len(column)) for column in x[:half])]


# How columns are shown to a model; the signal has seen them as they are.
_DISGUISES: dict[str, Callable[[Stream, list[_Column]], list[_Column]]] = {
    "missing": _missing,
    "skewed": lambda _, x: [column / (1.002 - column) for column in x],
    "scaled": lambda _, x: [factor * (column - 0.5) for factor, column in zip(cycle(_FACTORS), x, strict=False)],
    "redundant": _redundant,
}


def _steps(x: list[_Column]) -> _Column:
    high, low = np.where(x[0] > 0.3, 2.0, 0.0), np.where(x[1] > 0.6, -1.5, 0.0)
    return high + low + np.where(x[2] > 0.8, 1.0, 0.0) + np.where(x[3] > 0.5, 0.5, 0.0)


def _waves(x: list[_Column]) -> _Column:
    phase = 3 * x[0]
    return np.abs(phase - np.floor(phase) - 0.5) + 0.2 * x[1]


_SIGNALS: dict[str, Callable[[list[_Column]], _Column]] = {
    "lines": lambda x: 3 * x[0] - 2 * x[1] + x[2] + 0.5 * x[3],
    "steps": _steps,
    "products": lambda x: 4 * (x[0] - 0.5) * (x[1] - 0.5) + 3 * x[2] * x[3],
    "parity": lambda x: np.where((x[0] > 0.5) != (x[1] > 0.4), 2.0, 0.0) + 0.3 * x[2],
    "bowl": lambda x: (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.5) * (x[1] - 0.5) + (x[2] - 0.7) * (x[2] - 0.7),
    "ridge": lambda x: -np.abs(x[0] + x[1] + x[2] - 1.5),
    "corner": lambda x: np.where((x[0] > 0.6) & (x[1] > 0.4), 3.0, 0.0) + 0.5 * x[2],
    "maximum": lambda x: np.asarray(np.maximum(np.maximum(x[0], x[1]), 0.8 * x[2])),
    "ratio": lambda x: x[0] / (0.3 + x[1]),
    "waves": _waves,
}
