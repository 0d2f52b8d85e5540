"""Checks with the suite `check` on real fits: runs of many partitions, each of which is a check of its own.

A harmless change trains anew. A loss is planted in what was predicted, so large that the metric rises by a share over
all partitions; on one of them it is more or less. Fits are kept below `.simulations`, so that an interrupted
simulation goes on where it was.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import damaged_runners
import row_worlds
from boosters_eval import run_suite
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.evidence import RecordedSide
from boosters_eval.programs.baseline.model import MetricStats
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.programs.benchmark.suites import CHECK_SUITE
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.result import KeptRows

LIBRARIES = ("boosters", "lightgbm", "xgboost")
SEEDS = CHECK_SUITE.default_seeds  # of one partition
HOME = row_worlds.CACHE / "check"
TRAININGS = {"l2 + 5 %": {"l2": 1.05}, "l2 - 5 %": {"l2": 0.95}, "one bin fewer": {"max_bins": 254}}
HARMLESS = (*TRAININGS, "columns in another order")
LOSSES = ("noise", "shrunk")


def train(partitions, change=""):
    """All libraries on so many partitions, as they are or with a harmless change."""
    usual = CHECK_SUITE.configs[0].training
    assert (usual.l2, usual.max_bins) == (1.0, 255)  # what TRAININGS change
    configs = tuple(one.replace(training=usual.replace(**TRAININGS.get(change, {}))) for one in CHECK_SUITE.configs)
    before = {name: RUNNERS[name] for name in LIBRARIES}
    try:
        for name in LIBRARIES if change == HARMLESS[-1] else ():
            RUNNERS.register(name, damaged_runners.REVERSED[name], replace=True)
        suite = CHECK_SUITE.replace(configs=configs)
        found = run_suite(suite, seeds=SEEDS * partitions, libraries=LIBRARIES, home=HOME, jobs=2, resume=True)
    finally:
        for name, runner in before.items():
            RUNNERS.register(name, runner, replace=True)
    assert not found.errors
    return Snapshot.of_run(found)


def take_check(snapshot, partition, library, config=None):
    """What a check of one library on one partition has, of all configs or one."""
    results = {}
    for key, result in snapshot.results.items():
        if key[1] == library and config in (None, key[0]):
            cells = list(result.primary.per_seed.items())[SEEDS * partition : SEEDS * (partition + 1)]
            results[key] = result.model_copy(update={"metrics": {result.primary_metric: MetricStats.of(dict(cells))}})
    return replace(snapshot, results=results, libraries={library: snapshot.libraries[library]})


class _Planted:
    """The predictions of a run, and those that were made worse."""

    def __init__(self, store):
        self.store, self.made = store, {}

    def find(self, digest):
        return self.made[digest] if digest in self.made else self.store.find(digest)


def plant(snapshot, kind, share):
    """The same run, with predictions that raise each primary metric by a share over all partitions."""
    store = _Planted(snapshot.store)
    made = {key: _plant_pair(result, store, kind, share) for key, result in snapshot.results.items()}
    return replace(snapshot, results=made, store=store)


def _plant_pair(result, store, kind, share):
    metric, side = result.primary_metric, RecordedSide(result, store)
    kept = {cell: side.read(cell) for cell in result.primary.per_seed}
    low, high = 0.0, 1.0
    for step in range(20):
        size = (low + high) / 2
        fits = dict(result.fits)
        for number, (cell, found) in enumerate(kept.items()):
            digest = f"{number:08x}{step:024x}{result.config}{result.library}"
            rng = np.random.default_rng([number, *f"{result.config} {result.library}".encode()])
            store.made[digest] = _worsen(found.predictions, result.task, kind, size, rng)
            names = KeptRows.model_construct(predictions=digest, rows=fits[cell].kept.rows)
            fits[cell] = fits[cell].model_copy(update={"predictions": digest, "kept": names})
        now = result.model_copy(update={"fits": fits})
        values = {cell: RecordedSide(now, store).score(cell, metric).value for cell in kept}
        stats = MetricStats.of(values)
        low, high = (size, high) if stats.mean < (1 + share) * result.primary.mean else (low, size)
    return now.model_copy(update={"metrics": {metric: stats}})


def _worsen(said, task, kind, size, rng):
    """Predictions with noise, or closer to what says nothing; of classes on the scale of log odds."""
    scores = said if task is Task.REGRESSION else np.log(np.clip(said, 1e-9, 1 - 1e-9))
    if task is Task.BINARY:
        scores = scores - np.log1p(-np.clip(said, 1e-9, 1 - 1e-9))
    middle = scores.mean() if task is Task.REGRESSION else 0.0
    spread = scores.std()
    if kind == "noise":
        scores = scores + size * spread * rng.standard_normal(scores.shape)
    else:
        scores = middle + (1 - size) * (scores - middle)
    if task is Task.REGRESSION:
        return scores
    if task is Task.BINARY:
        return 1 / (1 + np.exp(-scores))
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
