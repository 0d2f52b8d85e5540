"""Simulated configurations for the check: small models that are fitted on real splits, then made worse or left alone.

The scores of a configuration vary as those of a benchmark do: its splits share rows, some data sets are small, and a
change helps on some splits and hurts on others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import factories
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.runners.config import derive_seeds

SEEDS = 60  # twice as many as any check uses: whether it is worse is not decided by the seeds of the check
TOLERANCE = 0.02
FEATURES = 6
CELLS = [str(seed) for seed in derive_seeds(SEEDS)]
DEGRADATIONS = ("a feature is lost", "shrunk", "fewer rows", "overfitted", "overconfident")


@dataclass(frozen=True)
class Simulated:
    """One pair of config and library: its scores per seed, then and now."""

    metric: str
    then: np.ndarray
    now: np.ndarray
    n_train: int
    n_valid: int

    @property
    def change(self):
        """Relative, over all seeds: what an endless check would find."""
        return self.now.mean() / self.then.mean() - 1


def degraded(count, seed):
    """Configurations that are worse by more than the tolerance over all seeds."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        one = _simulate(rng, DEGRADATIONS[rng.integers(len(DEGRADATIONS))])
        if one.change > TOLERANCE:
            found.append(one)
    return found


def unchanged(count, seed):
    """Configurations whose training is random: the same code scores a little differently, for better or worse."""
    rng = np.random.default_rng(seed)
    return [_simulate(rng, "unchanged") for _ in range(count)]


def snapshots(configs, cells):
    """What the baseline and the run hold of these cells."""
    return [Snapshot.of_baseline(factories.baseline(*_records(configs, side, cells))) for side in ("then", "now")]


def _records(configs, side, cells):
    chosen = [CELLS.index(cell) for cell in cells]
    for index, one in enumerate(configs):
        values = dict(zip(cells, getattr(one, side)[chosen].tolist(), strict=True))
        task = Task.REGRESSION if one.metric == "rmse" else Task.BINARY
        yield factories.baseline_result(
            f"c{index}/gbdt", values=values, metric=one.metric, task=task, n_train=one.n_train, n_valid=one.n_valid
        )


def _simulate(rng, kind):
    rows = int(rng.integers(100, 600))
    binary = kind == "overconfident" or (kind == "unchanged" and rng.random() < 0.5)
    x = rng.normal(size=(rows, FEATURES))
    signal = x @ rng.normal(size=FEATURES) * rng.uniform(0.5, 2)
    y = np.where(rng.random(rows) < _sigmoid(signal), 1.0, -1.0) if binary else signal + 2 * rng.normal(size=rows)
    n_valid = rows // 5
    order = rng.permuted(np.tile(np.arange(rows), (SEEDS, 1)), axis=1)
    train, valid = order[:, n_valid:], order[:, :n_valid]
    strength = rng.uniform(0.02, 1)
    bag = int((1 - 0.4 * strength) * train.shape[1]) if kind == "unchanged" else train.shape[1]
    scores = []
    for change in (None, kind):
        mine = rng.permuted(train, axis=1)[:, :bag]  # a random bag where training is random, otherwise all rows
        weights = _fit(x, y, mine, strength, change)
        shown = _without_a_feature(x, strength) if change == "a feature is lost" else x
        predicted = (shown[valid] @ weights)[..., 0]
        if binary:
            sharpness = 1 + 3 * strength if change == "overconfident" else 1.0
            losses = np.logaddexp(0, -2.5 * sharpness * predicted * y[valid])
            scores.append(losses.mean(axis=1))
        else:
            scores.append(np.sqrt(((y[valid] - predicted) ** 2).mean(axis=1)))
    return Simulated("logloss" if binary else "rmse", *scores, rows - n_valid, n_valid)


def _fit(x, y, train, strength, change):
    """Least squares on each split, spoilt as asked."""
    if change == "fewer rows":
        train = train[:, : max(3 * FEATURES, int((1 - 0.9 * strength) * train.shape[1]))]
    inputs, targets = x[train], y[train][..., None]
    if change == "a feature is lost":
        inputs = _without_a_feature(x, strength)[train]
    if change == "overfitted":  # to targets with noise of their own
        targets = targets + 4 * strength * np.abs(targets) * np.sin(1e3 * targets)
    gram = inputs.transpose(0, 2, 1) @ inputs
    ridge = train.shape[1] * (strength if change == "shrunk" else 0.0) + 1e-6
    return np.linalg.solve(gram + ridge * np.eye(FEATURES), inputs.transpose(0, 2, 1) @ targets)


def _without_a_feature(x, strength):
    """One column fades: the weaker the degradation, the more of it is left."""
    faded = x.copy()
    faded[:, 0] = (1 - strength) * x[:, 0] + strength * np.roll(x[:, 0], 1)
    return faded


def _sigmoid(values):
    return 1 / (1 + np.exp(-values))
