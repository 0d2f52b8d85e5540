"""Records for tests, whole and plausible: a test names only the fields that its story is about."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from statistics import fmean, stdev

from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.model import Baseline, BaselineResult, MetricStats
from boosters_eval.programs.benchmark.records import BenchmarkError, RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.suites import BenchmarkSuite
from boosters_eval.programs.gate.model import Case
from boosters_eval.programs.paper.comparison import Measured, PaperResults
from boosters_eval.programs.paper.specification import PaperSpecification
from boosters_eval.runners.config import BenchmarkConfig, derive_seeds
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import BenchmarkResult

CONFIG = "toy/gbdt"
RECORDED_AT = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


def digest(*content):
    """A digest as the program makes them: 64 digits that differ with the content."""
    return hashlib.sha256(repr(content).encode()).hexdigest()


def result(config=CONFIG, library="boosters", seed=42, value=0.5, *, metric="rmse", **changes):
    """A cell that finished; its data set and booster are those of the config's name."""
    dataset, _, booster = config.partition("/")
    fields = {
        "config_name": config,
        "library": library,
        "seed": seed,
        "task": Task.REGRESSION,
        "booster_type": booster or "gbdt",
        "dataset_name": dataset,
        "metrics": {metric: value},
        "primary_metric": metric,
        "library_version": "1.0",
        "n_train": 80,
        "n_valid": 20,
        "split_digest": digest(dataset, seed, changes.get("fold")),
        "data_digest": digest(dataset),
    }
    return BenchmarkResult(**{**fields, **changes})


def error(config=CONFIG, library="boosters", seed=42, **changes):
    """A cell that died while it was trained."""
    dataset, _, booster = config.partition("/")
    fields = {
        "config_name": config,
        "library": library,
        "seed": seed,
        "task": Task.REGRESSION,
        "booster_type": booster or "gbdt",
        "dataset_name": dataset,
        "error_type": "WorkerDied",
        "error_message": "killed by SIGSEGV.",
        "phase": "fit",
        "signal": "SIGSEGV",
    }
    return BenchmarkError(**{**fields, **changes})


def absence(kind, config=CONFIG, library="boosters", reason="it cannot", **changes):
    """A library without cells in a config, Unsupported or Unavailable; the rest is that of the config's name."""
    dataset, _, booster = config.partition("/")
    known = {"config_name": config, "library": library, "reason": reason, "dataset_name": dataset}
    return kind(**{**known, "task": Task.REGRESSION, "booster_type": booster or "gbdt", **changes})


def grid(value, *, configs=(CONFIG,), libraries=("boosters", "xgboost"), seeds=3, **changes):
    """A result for every config, library and seed, whose score is `value(config, library, index of the seed)`."""
    return [
        result(config, library, seed, value(config, library, index), **changes)
        for config in configs
        for library in libraries
        for index, seed in enumerate(derive_seeds(seeds))
    ]


def collection(results=None, errors=(), **options):
    """A run of one cell, unless its outcomes are given."""
    return ResultCollection([result()] if results is None else results, errors, **options)


def remember(run, environment=None, **changes):
    """Change what a collection knows of its run; `environment` names only what differs."""
    known = run.metadata.model_dump(mode="json", exclude_unset=True)
    if environment:
        known["environment"] = {**known.get("environment", {}), **environment}
    run.metadata = RunMetadata.model_validate({**known, **changes})
    return run


def stats(values):
    """A metric over its cells: {"42": 0.5, "1379": 0.6}."""
    given = list(values.values())
    spread = stdev(given) if len(given) > 1 else None
    return MetricStats(mean=fmean(given), std=spread, n=len(given), per_seed=values)


def baseline_result(config=CONFIG, library="boosters", *, values=None, metric="rmse", **changes):
    """What a baseline holds of one pair."""
    fields = {
        "config": config,
        "library": library,
        "task": Task.REGRESSION,
        "primary_metric": metric,
        "metrics": {metric: stats(values or {"42": 0.5, "1379": 0.6})},
        "dataset": config.partition("/")[0],
    }
    return BaselineResult(**{**fields, **changes})


def baseline(*results, **changes):
    """A recorded run of the given pairs, or of one."""
    return Baseline(**{"recorded_at": RECORDED_AT, "results": results or (baseline_result(),), **changes})


def cases(*scores, **changes):
    """Cases of the gate with these scores, named c00, c01, ..."""
    return [Case(case_id=f"c{index:02}", score=score, **changes) for index, score in enumerate(scores)]


def dataset(name="toy", task=Task.REGRESSION, data=None, **changes):
    """A data set whose loader gives `data`."""
    return DatasetConfig(**{"name": name, "task": task, "loader": lambda: data, **changes})


def config(data=None, **changes):
    """A benchmark of a data set with small trees."""
    data = data or dataset()
    fields = {
        "name": f"{data.name}/gbdt",
        "dataset": data,
        "task": data.task,
        "training": TrainingConfig(n_estimators=5, max_depth=3),
    }
    return BenchmarkConfig(**{**fields, **changes})


def suite(*configs, **changes):
    """A suite of the given configs, or of one."""
    return BenchmarkSuite(**{"name": "toy", "configs": configs or (config(),), **changes})


def paper(tables=None, primary=None, **changes):
    """A paper with one table of one row on one data set, as its specification file says it."""
    tables = tables or [paper_table()]
    targets = primary or [{"table": table["id"]} for table in tables]
    fields = {"paper": "A Paper", "tables": tables, "reproduction_targets": {"primary": targets}}
    return PaperSpecification.model_validate({**fields, **changes})


def paper_table(metrics=None, *, row="XGBoost", dataset="Adult", **changes):
    """A table whose only result is the given one; a value that is text keeps its digits."""
    shared = {name: changes.pop(name) for name in ("units", "conditions") if name in changes}
    result = {"model": row, "dataset": dataset, "metrics": metrics or {"accuracy": "0.874"}, **shared}
    return {"id": "Table 4", "results": [result], **changes}


def measured(values=None, *, table="Table 4", row="XGBoost", dataset="Adult", **changes):
    """A target that ran: every repeat gave a value."""
    values = {"accuracy": (0.8733, 0.8738, 0.8743)} if values is None else values
    repeats = max((len(found) for found in values.values()), default=0)
    fields = {
        "table": table,
        "row": row,
        "dataset": dataset,
        "primary": True,
        "status": "ok",
        "values": values,
        "std_over": "splits",
        "seeds": tuple(range(repeats)),
        "planned": repeats,
    }
    return Measured(**{**fields, **changes})


def paper_results(*targets, **changes):
    """What running a paper's targets wrote."""
    fields = {
        "paper": "A Paper",
        "specification_digest": digest("paper"),
        "run_id": "0123456789ab",
        "environment": {"started_at": "2025-01-02T03:04:05+00:00", "cpu_model": "Some CPU", "cpu_cores": "4"},
        "targets": targets or (measured(),),
    }
    return PaperResults(**{**fields, **changes})
