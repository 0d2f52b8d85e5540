"""Runs of a history, made up: what the index would give."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from boosters_eval.programs.history.model import MetricSeries, RepeatValue, RunEntry

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def an_entry(index=0, **given):
    when = (START + timedelta(hours=7 * index)).isoformat()
    sha = hashlib.sha256(f"commit {index}".encode()).hexdigest()[:40]
    fields = {
        "key": f"run{index:05}/1",
        "run_id": f"run{index:05}",
        "attempt": 1,
        "origin": "run",
        "source": "",
        "started_at": when,
        "kind": "benchmark",
        "title": "quick",
        "name": "",
        "git_sha": sha,
        "git_branch": "main",
        "git_dirty": False,
        "machine": "m1",
        "machine_label": "AMD EPYC, 8 cores",
        "state": "finished",
        "fault": "",
        "done": 1,
        "failed": 0,
        "missing": 0,
        "reference": f"run{index:05}",
    }
    return RunEntry(**{**fields, **given})


def a_series(values, metric="rmse", entry=None, **given):
    """The values of seeds 0, 1, ... on splits of 80 and 20 rows."""
    observations = tuple(
        RepeatValue(seed, None, value, split_digest=f"split{seed}", n_train=800, n_valid=200)
        for seed, value in enumerate(values)
    )
    fields = {
        "entry": entry or an_entry(),
        "config": "california/gbdt",
        "dataset": "california",
        "target": "boosters",
        "library": "boosters",
        "version": "0.1.0",
        "metric": metric,
        "higher_is_better": False,
        "primary": metric == "rmse",
        "data_digest": "data",
        "settings": "settings",
        "failed": 0,
        "observations": observations,
    }
    return MetricSeries(**{**fields, **given})


def on_other_splits(series, digest="other"):
    """The same values on splits that no other run has; None: not recorded."""
    moved = (replace(one, split_digest=digest and f"{digest}{one.seed}") for one in series.observations)
    return replace(series, observations=tuple(moved))


def a_history(n=40, seed=0, configs=("california/gbdt",), targets=("boosters", "lightgbm"), machine="m1"):
    """Runs in which a change made boosters slower and its scores jump, and a new version of LightGBM came."""
    rng = np.random.default_rng(seed)
    splits = 0.02 * rng.normal(size=5)
    for index in range(n):
        label = "AMD EPYC, 8 cores" if machine == "m1" else "Apple M2, 8 cores"
        entry = an_entry(index, machine=machine, machine_label=label)
        for config in configs:
            for target in targets:
                late = index >= n // 2 and target == "boosters"
                version = {"boosters": "0.1.0", "lightgbm": "4.6.0" if index < n // 3 else "4.7.0"}.get(target, "1.0")
                own = {"entry": entry, "config": config, "dataset": config.split("/")[0], "target": target}
                own |= {"library": target, "version": version}
                yield a_series((0.5 + splits + (0.004 if late else 0.0)).tolist(), "rmse", **own)
                yield a_series((0.35 + splits).tolist(), "mae", **own)
                times = (1.5 if late else 1.0) * np.exp(0.05 * rng.normal(size=5))
                yield a_series(times.tolist(), "train_time_s", **own)
