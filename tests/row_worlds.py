"""Worlds in which the true difference of two learners is known, and what they predict there, row by row.

Every side of a world sees its own noisy copy of the features: with the same amount of noise two sides are equal in
expectation, and never in what they predict. Fits are kept in files, so that several metrics, numbers of seeds and
repeated runs of the simulations share them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from boosters_eval.datasets import resolve_dataset

FOLDS, FEATURES = 5, 8
CHUNK = 20  # repetitions per file
CACHE = Path(__file__).parents[1] / ".simulations"


def digest_of(*paths, about=""):
    """Of the code that something was made by, so that what is kept never outlives it."""
    content = b"".join(Path(path).read_bytes() for path in paths)
    return hashlib.sha256(content + about.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class World:
    """How data are drawn, and who learns from them."""

    name: str
    task: str
    learner: str
    rows: int
    repetitions: int = 1000
    noise: tuple[float, ...] = (0.3,) * 4  # of each side's copy of the features
    twist: str = ""  # "groups", "weights", "tails", "rare", "california", "hidden"
    blocks: int = 2  # partitions: five seeds each


@dataclass(frozen=True)
class Drawn:
    """One data set, and what each side predicted for each row in each partition."""

    labels: np.ndarray
    fold: np.ndarray  # of each row, for each partition
    predictions: np.ndarray  # by side, partition and row
    weights: np.ndarray | None
    units: np.ndarray | None  # groups or queries


def draw(world, repetition):
    """One repetition of a world; the same number gives the same data and fits."""
    rng = np.random.default_rng([repetition, *world.name.encode()])
    units = _units(rng, world)
    weights = rng.lognormal(sigma=0.7, size=world.rows) if world.twist == "weights" else None
    if world.twist == "california":
        drawn = _california()[rng.choice(len(_california()), world.rows, replace=False)]
        x, labels = drawn[:, :-1], drawn[:, -1]
    else:
        x = rng.normal(size=(world.rows, FEATURES))
        signal = _hidden_signal(x) if world.twist == "hidden" else _signal(x)
        if world.twist == "groups":
            signal = signal + (x * rng.normal(scale=0.5, size=(units[-1] + 1, FEATURES))[units]).sum(axis=1)
        labels = _labels(rng, world, signal)
    fold = np.stack([_partition(rng, labels, units, world) for _ in range(world.blocks)])
    shape = (world.rows, 3) if world.task == "multiclass" else (world.rows,)
    predictions = np.empty((len(world.noise), world.blocks, *shape), dtype=np.float32)
    fit = LEARNERS[world.learner]
    for side, noise in enumerate(world.noise):
        seen = x + noise * rng.normal(size=x.shape)
        for block in range(world.blocks):
            for place in range(FOLDS):
                test = fold[block] == place
                mine = None if weights is None else weights[~test]
                seed = int(rng.integers(2**30))
                predictions[side, block, test] = fit(seen[~test], labels[~test], seen[test], mine, world.task, seed)
    return Drawn(labels, fold, predictions, weights, units)


def repetitions(world, count, *, cached=True):
    """The first repetitions of a world, from the files or drawn now."""
    folder = CACHE / "fits" / f"{world.name}-{digest_of(__file__, about=repr(replace(world, repetitions=0)))}"
    for start in range(0, count, CHUNK):
        numbers = range(start, min(start + CHUNK, count))
        path = folder / f"{start:05d}-{len(numbers)}.npz"
        if cached and path.exists():
            with np.load(path) as stored:
                kept = {name: stored[name] for name in stored.files}
        else:
            drawn = [draw(world, number) for number in numbers]
            fields = ("labels", "fold", "predictions", "weights", "units")
            arrays = {name: [getattr(one, name) for one in drawn] for name in fields}
            kept = {name: np.stack(each) for name, each in arrays.items() if each[0] is not None}
            if cached:
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_suffix(f".{os.getpid()}.npz")
                np.savez(part, **kept)
                part.replace(path)
        for place in range(len(numbers)):
            yield Drawn(*(kept[name][place] if name in kept else None for name in Drawn.__dataclass_fields__))


def _signal(x):
    bends = 1.5 * np.sin(1.5 * x[:, 0]) + 0.8 * np.abs(x[:, 1]) + 0.7 * (x[:, 3] ** 2 - 1)
    return bends + x[:, 2] + 0.7 * x[:, 4] * (x[:, 5] > 0)


def _hidden_signal(x):
    """Two columns act together only, so that greedy trees come upon it by chance, and all folds alike."""
    steps = 2 * np.sin(np.pi * x[:, 0] * x[:, 1] / 2) + 0.7 * x[:, 4] * (x[:, 5] > 0)
    return steps + x[:, 2] + 0.7 * (x[:, 3] ** 2 - 1)


@cache
def _california():
    """Real rows, standardized; the target is last."""
    loaded = resolve_dataset("california").loader()
    table = np.column_stack([loaded.x, loaded.y])
    return (table - table.mean(axis=0)) / table.std(axis=0)


def _units(rng, world):
    if world.task == "ranking":
        return np.arange(world.rows) // 8
    if world.twist == "groups":
        sizes = np.maximum(2, rng.lognormal(np.log(world.rows / 40), 0.6, size=world.rows))
        return np.searchsorted(np.cumsum(sizes.astype(int)), np.arange(world.rows), side="right")
    return None


def _labels(rng, world, signal):
    n = len(signal)
    match world.task:
        case "regression":
            return signal + 1.5 * (rng.standard_t(3, size=n) if world.twist == "tails" else rng.normal(size=n))
        case "binary":
            shift = -4.0 if world.twist == "rare" else 0.0
            return (rng.random(n) < 1 / (1 + np.exp(-1.5 * signal - shift))).astype(np.float64)
        case "multiclass":
            noisy = signal + rng.logistic(scale=0.7, size=n)
            return np.digitize(noisy, (-0.7, 0.9)).astype(np.float64)
        case "ranking":
            return np.digitize(signal + 1.5 * rng.normal(size=n), (0.5, 1.5, 2.5)).astype(np.float64)


def _partition(rng, labels, units, world):
    """The fold of each row: groups and queries whole, classes spread evenly."""
    names = np.arange(world.rows) if units is None else np.unique(units)
    order = rng.permutation(len(names))
    if world.task in ("binary", "multiclass"):
        order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(names), dtype=np.int8)
    fold[order] = np.arange(len(names)) % FOLDS
    return fold if units is None else fold[np.searchsorted(names, units)]


def _with_one(x):
    return np.column_stack([np.ones(len(x)), x])


def fit_ridge(x, y, test, weights, task, seed):
    """Least squares with a penalty; of classes, logistic regressions of one against the rest."""
    train, held = _with_one(x), _with_one(test)
    if task in ("regression", "ranking"):
        weighted = train if weights is None else train * weights[:, None]
        return held @ np.linalg.solve(weighted.T @ train + np.eye(train.shape[1]), weighted.T @ y)
    if task == "multiclass":
        scores = np.column_stack([_fit_logistic(train, y == each, held) for each in range(3)])
        return scores / scores.sum(axis=1, keepdims=True)
    return _fit_logistic(train, y == 1, held)


def _fit_logistic(x, y, test):
    slopes = np.zeros(x.shape[1])
    for _ in range(8):  # Newton's method
        p = 1 / (1 + np.exp(-x @ slopes))
        curve = (x * (p * (1 - p))[:, None]).T @ x + np.eye(len(slopes))
        slopes = slopes + np.linalg.solve(curve, x.T @ (y - p) - slopes)
    return 1 / (1 + np.exp(-test @ slopes))


def fit_tree(x, y, test, weights, task, seed):
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(min_samples_leaf=10, random_state=seed).fit(x, y, weights).predict(test)


def fit_bagged_trees(x, y, test, weights, task, seed):
    rng = np.random.default_rng(seed)
    drawn = (rng.integers(0, len(x), size=len(x)) for _ in range(10))
    return np.mean([fit_tree(x[rows], y[rows], test, None, task, seed) for rows in drawn], axis=0)


_OBJECTIVES = {"regression": "regression", "binary": "binary", "multiclass": "multiclass", "ranking": "regression"}


def fit_lightgbm(x, y, test, weights, task, seed, **parameters):
    import lightgbm

    classes = {"num_class": 3} if task == "multiclass" else {}
    usual = {"objective": _OBJECTIVES[task], "num_leaves": 15, "verbose": -1, "num_threads": 1, "seed": seed}
    data = lightgbm.Dataset(x, y, weight=weights)
    return lightgbm.train({**usual, **classes, **parameters}, data, 40).predict(test, num_threads=1)


def fit_bagged_lightgbm(*about):
    return fit_lightgbm(*about, bagging_fraction=0.7, bagging_freq=1, feature_fraction=0.7)


def fit_xgboost(x, y, test, weights, task, seed):
    import xgboost

    objective = "binary:logistic" if task == "binary" else "reg:squarederror"
    about = {"objective": objective, "max_depth": 4, "eta": 0.1, "nthread": 1, "seed": seed, "subsample": 0.8}
    return xgboost.train(about, xgboost.DMatrix(x, y, weight=weights), 40).predict(xgboost.DMatrix(test))


LEARNERS = {
    "ridge": fit_ridge,
    "tree": fit_tree,
    "bagged trees": fit_bagged_trees,
    "LightGBM": fit_lightgbm,
    "bagged LightGBM": fit_bagged_lightgbm,
    "XGBoost": fit_xgboost,
}
