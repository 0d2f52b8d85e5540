"""Constructed runs: nothing here was measured."""

from types import SimpleNamespace

import pytest

import factories
from boosters_eval.engine.facts import RunFacts
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.records import RunMetadata
from boosters_eval.runners.config import derive_seeds

VERSIONS = {"boosters": "0.1.0", "xgboost": "3.1.2"}
SCORES = {"california/gbdt": ("rmse", 0.4521, Task.REGRESSION), "breast_cancer/gbdt": ("logloss", 0.115, Task.BINARY)}
SPLIT = (0.011, -0.008, -0.003, 0.012, -0.012)


def result(config="california/gbdt", library="boosters", index=0, factor=1.0, **changes):
    metric, mean, task = SCORES[config]
    fields = {
        "task": task,
        "metrics": {metric: mean * (1 + SPLIT[index]) * factor, "accuracy": 0.97},
        "native_params": {"max_depth": 6, "eta": 0.1, "seed": 1000 + index},
        "model_seed": 1000 + index,
        "library_version": VERSIONS.get(library, "1.0"),
        "n_train": 800,
        "n_valid": 200,
        "train_time_s": 0.4 + 0.01 * index,
        "predict_time_s": 0.01,
    }
    return factories.result(config, library, **{"seed": derive_seeds(5)[index], "metric": metric, **fields, **changes})


def error(config="california/gbdt", library="boosters", index=0, **changes):
    fields = {"task": SCORES[config][2], "error_message": "killed by SIGSEGV.\nmore"}
    return factories.error(config, library, derive_seeds(5)[index], **{**fields, **changes})


def run_of(factors=None, *, seeds=3, libraries=("boosters", "xgboost"), configs=tuple(SCORES), versions=None, **more):
    """A run of every config and library; `factors` worsens a (config, library) pair, a library or a config."""
    factors = factors or {}
    versions = {**VERSIONS, **(versions or {})}
    results = []
    for config in configs:
        for library in libraries:
            factor = factors.get((config, library), factors.get(library, factors.get(config, 1.0)))
            results += [
                result(config, library, index, factor, library_version=versions[library]) for index in range(seeds)
            ]
    environment = {
        "machine": {"cpu_model": "A", "cpu_cores": 2, "cpu_threads": 2, "memory_gb": 4.0, "os": "X", "digest": "m1"},
        "targets": {name: {"version": versions[name], "digest": f"build-{versions[name]}"} for name in libraries},
        "boosters_eval": "0.1.0",
        "python": "3.12.0",
    }
    options = {
        "suite": "quick",
        "run_id": "0123456789abcdef",
        "metadata": RunMetadata(environment=RunFacts.model_validate(environment)),
        **more,
    }
    return factories.collection(results, **options)


@pytest.fixture
def make():
    """The builders of this story as one object."""
    return SimpleNamespace(result=result, error=error, run=run_of)
