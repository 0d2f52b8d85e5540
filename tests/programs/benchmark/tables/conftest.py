"""Fixed results for the tests of tables and reports: nothing here was measured."""

import pytest

import factories
from boosters_eval.engine.facts import RunFacts
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.records import RunMetadata, Unsupported
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.parameters import Mark, TrainingConfig

# Deviations from a library's mean, split by split: shared by all libraries, as splits are.
_SPLIT = (0.011, -0.008, 0.003, -0.012, 0.006)
_OWN = {
    "boosters": (0.0004, -0.0003, 0.0001, 0.0002, -0.0004),
    "xgboost": (-0.0002, 0.0004, -0.0001, 0.0003, -0.0004),
    "lightgbm": (0.0001, 0.0002, -0.0005, 0.0001, 0.0001),
    "catboost": (0.0003, -0.0001, 0.0002, -0.0004, 0.0),
}
_VERSIONS = {"boosters": "0.1.0", "xgboost": "3.4.1", "lightgbm": "4.7.0", "catboost": "1.2.10"}
_TIMES = {"boosters": 0.42, "xgboost": 0.38, "lightgbm": 0.21, "catboost": 0.95}


ENVIRONMENT = {
    "started_at": "2025-12-27T10:30:00+00:00",
    "boosters_eval": "0.1.0",
    "python": "3.12.1",
    "machine": {
        "cpu_model": "Test CPU",
        "cpu_cores": 4,
        "cpu_threads": 8,
        "memory_gb": 15.6,
        "os": "Linux 6.1",
        "digest": "of the file, not read",
    },
}


# What a run records about its source beside that; a results file without it is one of an older version.
SOURCE = {"git_sha": "abc1234" + 33 * "0", "git_branch": "main", "git_dirty": False, "rust": "1.90.0"}


@pytest.fixture(scope="session")
def recorded():
    """The same results, of a run that recorded its source, with some changes."""

    def record(collection, **changes):
        return ResultCollection(
            collection.results,
            collection.errors,
            unsupported=collection.unsupported,
            run_id=collection.run_id,
            suite=collection.suite,
            metadata=collection.metadata.model_copy(
                update={"environment": RunFacts.model_validate({**ENVIRONMENT, **SOURCE, **changes})}
            ),
        )

    return record


def result(config, library, index, metrics, *, task=Task.REGRESSION, primary=None, **changes):
    """One result with everything a report reads."""
    dataset = config.partition("/")[0]
    wobble = 1 + _SPLIT[index] * (1.7 if library == "lightgbm" else 1.0)
    fields = {
        "task": task,
        "metrics": metrics,
        "primary_metric": primary or next(iter(metrics)),
        "train_time_s": _TIMES.get(library, 1.0) * wobble,
        "build_time_s": 0.02,
        "fit_time_s": _TIMES.get(library, 1.0) * wobble - 0.02,
        "predict_time_s": 0.012 * wobble,
        "n_trees_trained": 100,
        "n_leaves_total": 6_400 - 10 * index,
        "native_params": {"learning_rate": 0.1, "depth": 6, "objective": f"{library}:{task.value}"},
        "library_version": _VERSIONS.get(library, "9.9"),
        "n_train": 800,
        "n_valid": 200,
        "split_digest": f"split-{dataset}-{index}",
        "threads_observed": 1,
    }
    return factories.result(config, library, **{"seed": derive_seeds(5)[index], **fields, **changes})


def scores(library, index, **means):
    """Each metric's mean, moved by the split and a little by the library."""
    move = _SPLIT[index] + _OWN.get(library, _OWN["catboost"])[index]
    return {name: mean * (1 + move) for name, mean in means.items()}


@pytest.fixture(scope="session")
def sample():
    """Three tasks, four libraries, a clear winner, a tie, failures, marks, warnings, an unsupported pair."""
    out, errors = [], []
    mark = Mark(parameter="min_samples_leaf", kind="approximated", reason="a minimum to split a node, not of a leaf")
    for index in range(5):
        for library, rmse in (("boosters", 0.4521), ("xgboost", 0.4518), ("lightgbm", 0.4525)):
            metrics = scores(library, index, rmse=rmse, mae=0.3234 * rmse / 0.4521, r2=0.82)
            out.append(result("california/gbdt", library, index, metrics))
        for library, loss in (("boosters", 0.115), ("xgboost", 0.098), ("catboost", 0.131)):
            if library == "catboost" and index >= 3:
                errors.append(
                    factories.error(
                        "breast_cancer/gbdt",
                        library,
                        derive_seeds(5)[index],
                        task=Task.BINARY,
                        error_type="Timeout",
                        error_message="The cell took longer than 60 s.",
                        traceback='Traceback (most recent call last):\n  File "x.py", line 1\nTimeout: <60 s>\n',
                        signal="SIGKILL",
                        stderr_tail="Warning: slow & steady\n",
                    )
                )
                continue
            metrics = scores(library, index, logloss=loss, accuracy=0.97, auc_roc=0.99)
            changes = {"marks": (mark,), "n_leaves_total": 3_200} if library == "catboost" else {}
            if library == "boosters":
                changes = {"warnings": ("2 threads were observed where 1 was asked for",)}
            out.append(result("breast_cancer/gbdt", library, index, metrics, task=Task.BINARY, **changes))
        for library, loss in (("boosters", 0.21), ("lightgbm", 0.21)):
            metrics = scores(library, index, mlogloss=loss, accuracy=0.94)
            changes = (
                {"nondeterministic": "columns are sampled from a shared generator"} if library == "boosters" else {}
            )
            out.append(result("iris/linear_trees", library, index, metrics, task=Task.MULTICLASS, **changes))
    return ResultCollection(
        out,
        errors,
        unsupported=[
            factories.absence(
                Unsupported, "iris/linear_trees", "xgboost", "XGBoost has no linear trees", task=Task.MULTICLASS
            )
        ],
        run_id="0123abcd4567ef89",
        suite="sample",
        metadata=RunMetadata(
            environment=RunFacts.model_validate(ENVIRONMENT),
            n_cells=len(out) + len(errors),
            n_missing=0,
            configs={"california/gbdt": TrainingConfig(max_depth=4, l2=0.5).model_dump(mode="json")},
        ),
    )


@pytest.fixture(scope="session")
def timed(sample):
    """The same, with times that were taken to be compared."""
    results = [one.model_copy(update={"timing_mode": True}) for one in sample.results]
    return ResultCollection(
        results,
        sample.errors,
        unsupported=sample.unsupported,
        run_id=sample.run_id,
        suite=sample.suite,
        metadata=sample.metadata,
    )


@pytest.fixture(scope="session")
def ablation():
    """Two variants of one library, each a config of its own."""
    out = []
    for index in range(5):
        for variant, rmse in (("depthwise", 0.452), ("leafwise", 0.431)):
            config = f"california/boosters-{variant}"
            metrics = scores("boosters" if variant == "depthwise" else "xgboost", index, rmse=rmse)
            out.append(
                result(
                    config,
                    "boosters",
                    index,
                    metrics,
                    variant=variant,
                    booster_type="gbdt",
                    train_time_s=None,
                )
            )
    return ResultCollection(out, suite="ablation-growth")


@pytest.fixture(scope="session")
def hostile():
    """Names that would be markup somewhere."""
    name = '<script>alert("x")</script>|**b**[red]\x1b[31m'
    out = [
        result(f"{name}/gbdt", library, index, scores(library, index, rmse=1.0), dataset_name=name)
        for index in range(3)
        for library in ("boosters", name)
    ]
    return ResultCollection(out, suite=name)


LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")


@pytest.fixture(scope="session")
def crowd():
    """Collections of `crowded`."""
    return crowded


def crowded(datasets, *, variants=(None,), timed=False, name="data_{:02d}", seeds=5):
    """Five libraries and six metrics on some data sets: ties, a failure, an outlier, variants with long names."""
    out, errors = [], []
    for position in range(datasets):
        for variant in variants:
            config = f"{name.format(position)}/gbdt" + (f"-{variant}" if variant else "")
            for rank, library in enumerate(LIBRARIES):
                for index in range(seeds):
                    seed = derive_seeds(5)[index % 5] + 7919 * (index // 5)
                    if library == "sklearn" and position == 0 and index == seeds - 1:
                        errors.append(factories.error(config, library, seed, variant=variant, task=Task.BINARY))
                        continue
                    shift = 1 + 0.02 * rank * (position % 3) + 0.01 * len(variant or "") / 9
                    means = {
                        "logloss": 0.31,
                        "auc_roc": 0.93,
                        "accuracy": 0.88,
                        "f1": 0.81,
                        "brier": 0.09,
                        "ece": 0.031,
                    }
                    metrics = {
                        k: v * (shift if k in ("logloss", "brier", "ece") else 1 / shift) for k, v in means.items()
                    }
                    metrics = scores(library, index % 5, **metrics)
                    if library in ("catboost", "sklearn") and position % 2:  # exactly equal
                        metrics = scores("catboost", 0, **means)
                    time = (0.02, 0.4, 0.4, 5.0, 61.0)[rank] * (1 + 0.05 * index)
                    changes = {"train_time_s": time, "timing_mode": timed, "seed": seed, "variant": variant}
                    if library == "xgboost":
                        changes["warnings"] = ("2 threads were observed where 1 was asked for",)
                    if position == 0:
                        changes["trivial"] = {"priors": {"logloss": 0.33, "accuracy": 0.5}}
                    changes["split_digest"] = factories.digest(position, seed)
                    found = result(
                        config, library, index % 5, metrics, task=Task.BINARY, booster_type="gbdt", **changes
                    )
                    out.append(found)
    return ResultCollection(
        out,
        errors,
        run_id="0123abcd4567ef89",
        suite="crowd",
        metadata=RunMetadata(environment=RunFacts.model_validate(ENVIRONMENT), n_cells=len(out) + len(errors)),
    )


@pytest.fixture(scope="session")
def many_seeds():
    """20 000 results: forty data sets, four libraries, 125 seeds."""
    out = []
    for position in range(40):
        for library in _OWN:
            shift = 1 + (position * 7 + len(library) * 3) % 11 / 100
            for seed in range(125):
                means = {"rmse": 0.4 * shift * (1 + seed / 1e5), "mae": 0.3 * shift, "r2": 0.8 / shift}
                metrics = scores(library, seed % 5, **means)
                changes = {"seed": 42 + 1337 * seed, "split_digest": f"{position}-{seed}"}
                out.append(result(f"data_{position:02d}/gbdt", library, seed % 5, metrics, **changes))
    return ResultCollection(out, suite="large")
