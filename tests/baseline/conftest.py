"""Constructed runs: nothing here was measured."""

import pytest

from boosters_eval.benchmark.config import derive_seeds
from boosters_eval.benchmark.results import BenchmarkError, BenchmarkResult, ResultCollection
from boosters_eval.metrics.task import Task

VERSIONS = {"boosters": "0.1.0", "xgboost": "3.1.2"}
SCORES = {"california/gbdt": ("rmse", 0.4521, Task.REGRESSION), "breast_cancer/gbdt": ("logloss", 0.115, Task.BINARY)}
SPLIT = (0.011, -0.008, -0.003, 0.012, -0.012)


def result(config="california/gbdt", library="boosters", index=0, factor=1.0, **changes):
    metric, mean, task = SCORES[config]
    dataset, _, booster = config.partition("/")
    seed = derive_seeds(5)[index]
    fields = {
        "config_name": config,
        "library": library,
        "seed": seed,
        "task": task,
        "booster_type": booster,
        "dataset_name": dataset,
        "metrics": {metric: mean * (1 + SPLIT[index]) * factor, "accuracy": 0.97},
        "primary_metric": metric,
        "native_params": {"max_depth": 6, "eta": 0.1, "seed": 1000 + index},
        "model_seed": 1000 + index,
        "library_version": VERSIONS.get(library, "1.0"),
        "n_train": 800,
        "n_valid": 200,
        "split_digest": f"{dataset}-{index}".ljust(64, "0"),
        "data_digest": dataset.ljust(64, "0"),
        "train_time_s": 0.4 + 0.01 * index,
        "predict_time_s": 0.01,
    }
    return BenchmarkResult(**{**fields, **changes})


def error(config="california/gbdt", library="boosters", index=0, **changes):
    fields = {
        "config_name": config,
        "library": library,
        "seed": derive_seeds(5)[index],
        "task": SCORES[config][2],
        "error_type": "WorkerDied",
        "error_message": "killed by SIGSEGV.\nmore",
        "phase": "fit",
        "signal": "SIGSEGV",
    }
    return BenchmarkError(**{**fields, **changes})


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
        "libraries": {name: {"version": versions[name], "digest": f"build-{versions[name]}"} for name in libraries},
        "boosters_eval": "0.1.0",
        "python": "3.12.0",
    }
    options = {"suite": "quick", "run_id": "0123456789abcdef", "metadata": {"environment": environment}, **more}
    return ResultCollection(results, **options)


@pytest.fixture
def make():
    """The builders as one object, since test modules cannot import this file."""

    class Make:
        pass

    Make.result, Make.error, Make.run = staticmethod(result), staticmethod(error), staticmethod(run_of)
    return Make
