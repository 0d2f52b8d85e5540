"""What our settings cost a library: training time with them, against its own defaults for all that is not capacity.

Capacity (rounds, depth, leaves, bins, penalties) is the same on both sides; what the mapping pins besides, such as a
layout or a score function, is left to the library on one of them. Tables are narrow, wide, sparse and long. CPU times
of one thread, measured in turn; the least of each side counts, and a ratio above the limit is measured longer before
it is believed. Exits with 1 if a library is slower by our doing.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest, TrainData
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.rules import CANONICAL

if TYPE_CHECKING:
    from boosters_eval.runners.base import Runner, Translation

LIMIT = 1.05
REPEATS, MOST_REPEATS = 4, 40
LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
CAPACITY = ("early_stopping", "categorical_features", "update_strategy")  # pins that decide how much is learned
CORRECT = ("sparsity_threshold",)  # without it boosters 0.1 trains sparse columns wrongly: fast is no merit there
OWN_TOO = ("tree_method",)  # XGBoost's is the same, and its estimators then train from the same matrix as we do


def _tables() -> dict[str, TrainData]:
    rng = np.random.default_rng(0)
    shapes = {"narrow": (20_000, 10), "wide": (600, 1_500), "sparse": (10_000, 400), "long": (300_000, 6)}
    found = {}
    for name, (rows, columns) in shapes.items():
        if name == "sparse":  # ten columns of 40 levels, one-hot
            x = np.zeros((rows, columns), dtype=np.float32)
            for first in range(0, columns, 40):
                x[np.arange(rows), first + rng.integers(0, 40, rows)] = 1
        else:
            x = rng.standard_normal((rows, columns), dtype=np.float32)
        y = x[:, :5].sum(axis=1) + rng.standard_normal(rows)
        found[name] = TrainData(x=x, y=y.astype(np.float64))
    return found


def _own(translation: Translation) -> Translation:
    """The library's own defaults but for capacity: without what the mapping pins."""
    needed = CAPACITY + CORRECT + OWN_TOO
    kept = {n: v for n, v in translation.native.items() if translation.origins[n] in CANONICAL or n in needed}
    silent = {n: translation.native[n] for n in ("verbosity", "logging_level") if n in translation.native}
    files = {n: translation.native[n] for n in ("allow_writing_files",) if n in translation.native}
    return replace(translation, native=kept | silent | files)


def _seconds(runner: type[Runner], translation: Translation, data: TrainData) -> float:
    start = time.process_time()
    runner.fit(translation, runner.build(translation, data))
    return time.process_time() - start


def _compare(runner: type[Runner], ours: Translation, own: Translation, data: TrainData) -> float:
    least = [math.inf, math.inf]
    for repeat in range(MOST_REPEATS):
        least = [min(least[0], _seconds(runner, ours, data)), min(least[1], _seconds(runner, own, data))]
        if repeat + 1 >= REPEATS and least[0] <= LIMIT * least[1]:
            break
    return least[0] / least[1]


def main() -> int:
    """Print a ratio for each library and table."""
    missed = 0
    for name, data in _tables().items():
        request = FitRequest(
            Task.REGRESSION, TrainingConfig(n_estimators=10), n_columns=data.x.shape[1], n_threads=1, seed=1
        )
        for library in LIBRARIES:
            runner = RUNNERS[library]
            if runner.missing():
                continue
            runner.load()
            ours = runner.translate(request)
            own = _own(ours)
            ratio = _compare(runner, ours, own, data)
            missed += ratio > LIMIT
            print(f"{name:8} {library:10} {ratio:5.2f} {'missed' if ratio > LIMIT else ''}".rstrip(), flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
