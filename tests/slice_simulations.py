"""What `where` promises, simulated on real fits: slices that were planted are found, and equal learners have none.

Two learners that see two noisy copies of the features are equal in expectation, and differ in every prediction. A slice
is planted by enlarging the errors of one of them on a tenth of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from boosters_eval.metrics.linear import find_errors
from boosters_eval.stats.slices import Features, PairedErrors, find_slices
from row_worlds import FOLDS, LEARNERS

CATEGORY, GROUPED, GAPS = 8, 9, 6  # columns: eight values at random, four of another column, one in ten missing
SIZE = 0.5  # how much larger the error is on a planted slice
PLANTS = ("a range", "a category", "missing values", "a corner of two columns", "a category and a range")
METRICS = {"regression": "rmse", "binary": "logloss", "multiclass": "mlogloss", "ranking": "ndcg@10"}


@dataclass(frozen=True)
class Scene:
    """Who learns what, from how many rows; a ranking has queries of eight rows, and groups have ten."""

    task: str
    learner: str
    rows: int
    grouped: bool = False

    def __str__(self):
        return f"{self.learner}, {self.task}, {self.rows} rows{' in groups of ten' if self.grouped else ''}"


def draw(scene, repetition):
    """The features of one data set, and the errors of two learners that are equal in expectation."""
    rng = np.random.default_rng([repetition, *str(scene).encode()])
    n = scene.rows
    units = np.arange(n) // 8 if scene.task == "ranking" else np.arange(n) // 10 if scene.grouped else None
    x = rng.normal(size=(n, 8))
    signal = 1.5 * np.sin(1.5 * x[:, 0]) + 0.8 * np.abs(x[:, 1]) + x[:, 2] + 0.7 * x[:, 4] * (x[:, 5] > 0)
    if scene.grouped:
        signal = signal + (x * rng.normal(scale=0.5, size=(units[-1] + 1, 8))[units]).sum(axis=1)
    labels = {
        "regression": lambda: signal + 1.5 * rng.normal(size=n),
        "binary": lambda: (rng.random(n) < 1 / (1 + np.exp(-1.5 * (signal - signal.mean())))).astype(float),
        "multiclass": lambda: np.digitize(signal + rng.logistic(scale=0.7, size=n), (0.0, 1.5)).astype(float),
        "ranking": lambda: np.digitize(signal + 1.5 * rng.normal(size=n), (1.0, 2.0, 3.0)).astype(float),
    }[scene.task]()
    blocks = np.arange(n) if units is None else units
    fold = rng.permutation(np.arange(blocks[-1] + 1) % FOLDS)[blocks]
    found = [_predict(scene, x + 0.3 * rng.normal(size=x.shape), labels, fold, rng) for _ in range(2)]
    metric = METRICS[scene.task]
    queries = units if scene.task == "ranking" else None
    one, two = (find_errors(scene.task, metric, labels, each, groups=queries) for each in found)
    errors = PairedErrors(one.errors, two.errors, units=units if scene.grouped else None, root=one.root)
    return _columns(x, rng, queries), errors


def _predict(scene, x, labels, fold, rng):
    out = np.empty((len(x), 3) if scene.task == "multiclass" else len(x))
    for place in range(FOLDS):
        test, seed = fold == place, int(rng.integers(2**30))
        out[test] = LEARNERS[scene.learner](x[~test], labels[~test], x[test], None, scene.task, seed)
    return out


def _columns(x, rng, queries):
    """The features, with categories and missing values beside them; of queries, the means of theirs."""
    if queries is not None:
        x = np.stack([np.bincount(queries, column) for column in x.T], axis=1) / 8
    x = np.column_stack(
        [x, rng.integers(8, size=len(x)), np.digitize(x[:, 2], np.quantile(x[:, 2], (0.16, 0.5, 0.84)))]
    )
    x[rng.random(len(x)) < 0.1, GAPS] = np.nan
    return Features(x, frozenset({CATEGORY, GROUPED}))


def plant(kind, features, rng):
    """About a tenth of the rows, somewhere."""
    x, columns = features.values, rng.permutation([0, 1, 2, 3, 4, 5, 7])

    def between(column, low, high):
        place = x[:, column].argsort().argsort() / len(x)
        return (place >= low) & (place < high)

    match kind:
        case "a range":
            low = rng.uniform(0, 0.9)
            return between(columns[0], low, low + 0.1)
        case "a category":
            return x[:, CATEGORY] == rng.integers(8)
        case "missing values":
            return np.isnan(x[:, GAPS])
        case "a corner of two columns":
            return between(columns[0], 1 - 0.1**0.5, 1) & between(columns[1], 1 - 0.1**0.5, 1)
        case "a category and a range":
            return (x[:, GROUPED] == rng.integers(1, 3)) & between(7, 0.7, 1)


def enlarge(errors, rows, size=SIZE):
    """The same with errors of the first library that are so much larger on these rows."""
    factor = (1 + size) ** 2 if errors.root else 1 + size
    return replace(errors, a=np.where(rows, factor * errors.a, errors.a))


def swap(errors):
    return replace(errors, a=errors.b, b=errors.a)


def count_told(scene, repetitions):
    """How many comparisons of equal learners, two in each repetition, tell a slice."""
    drawn = (draw(scene, number) for number in repetitions)
    return sum(bool(find_slices(x, each).slices) for x, errors in drawn for each in (errors, swap(errors)))


def count_found(scene, repetitions, kinds=PLANTS):
    """{kind: in how many repetitions a slice is told that has half of its rows in common with the planted one}."""
    hits = dict.fromkeys(kinds, 0)
    for number in repetitions:
        features, errors = draw(scene, number)
        for kind in kinds:
            planted = plant(kind, features, np.random.default_rng([number, *kind.encode()]))
            told = find_slices(features, enlarge(errors, planted)).slices
            masks = [features.select(one.conditions) for one in told]
            hits[kind] += any((rows & planted).sum() >= 0.5 * (rows | planted).sum() for rows in masks)
    return hits
