"""Comparisons of simulated learners on the splits that the program itself would make."""

from __future__ import annotations

import numpy as np

from boosters_eval.core.request import Repeat
from boosters_eval.datasets import Table, split_rows
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.metrics.task import Task
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.tables import compare_table
from learners import of_groups


def table_by(split_by):
    return Table(np.zeros((len(split_by), 1)), np.zeros(len(split_by)), split_by=np.asarray(split_by))


def window_edges(rows, windows):
    """Where each window of time begins, and the end of the last one."""
    spec = SplitSpec(kind="time", column="t", folds=windows)
    splits = [split_rows(table_by(np.arange(rows)), Task.REGRESSION, spec, 0, fold) for fold in range(windows)]
    return [*(len(split.train) for split in splits), rows]


def compared(scores, observation, repeats, **options):
    """The comparison of two sides whose scores are given in the order of the repeats."""
    sides = {
        name: {
            repeat: observation(position, value)
            for position, (repeat, value) in enumerate(zip(repeats, row, strict=True))
        }
        for name, row in zip("ab", scores, strict=True)
    }
    return compare_table(sides, metric="rmse", higher_is_better=False, **options).get("a", "b")


def compared_in_time(scores, edges, **options):
    def observation(window, value):
        begin, end = edges[window], edges[window + 1]
        return Observation(float(value), f"window {window}", begin, end - begin, kind="time", resolution=0.0)

    return compared(scores, observation, [Repeat(42, window) for window in range(len(edges) - 1)], **options)


def compared_by_group(rng, sizes, *, seeds, folds=None, draw=of_groups, **options):
    """One comparison on new data, with groups of these sizes."""
    groups = np.arange(len(sizes))
    spec = SplitSpec(kind="group", column="g", folds=folds)
    repeats = [Repeat(seed, fold) for seed in range(seeds) for fold in (range(folds) if folds else [None])]
    offset = int(rng.integers(2**31))
    splits = [split_rows(table_by(groups), Task.REGRESSION, spec, offset + r.seed, r.fold) for r in repeats]
    sides = [np.isin(groups, split.valid) for split in splits]
    scores = draw(rng, sizes, sides)

    def observation(position, value):
        split, valid = splits[position], int(sizes[splits[position].valid].sum())
        return Observation(
            float(value),
            split.digest,
            int(sizes.sum()) - valid,
            valid,
            kind="group",
            resolution=0.0,
            n_train_groups=len(split.train),
            n_valid_groups=len(split.valid),
        )

    return compared(scores, observation, repeats, **options)
