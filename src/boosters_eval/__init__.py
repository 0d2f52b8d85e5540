"""Fair, reproducible evaluation of gradient-boosting libraries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from boosters_eval.api import compare, run_suite
    from boosters_eval.benchmark.config import BenchmarkConfig, BenchmarkSuite
    from boosters_eval.benchmark.results import BenchmarkError, BenchmarkResult, ResultCollection
    from boosters_eval.benchmark.suites import SUITES, create_ablation_suite, register_suite
    from boosters_eval.datasets import DATASETS, Table, register_dataset
    from boosters_eval.datasets.config import DatasetConfig
    from boosters_eval.metrics import METRIC_DIRECTION, compute_metrics, primary_metric, register_metric
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners import RUNNERS, Runner
    from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, Profile, TrainingConfig

# Names are found when they are used, so that `import boosters_eval` and the command line start fast.
_HOME = {
    "api": ("compare", "run_suite"),
    "benchmark.config": ("BenchmarkConfig", "BenchmarkSuite"),
    "benchmark.results": ("BenchmarkError", "BenchmarkResult", "ResultCollection"),
    "benchmark.suites": ("SUITES", "create_ablation_suite", "register_suite"),
    "datasets": ("DATASETS", "Table", "register_dataset"),
    "datasets.config": ("DatasetConfig",),
    "metrics": ("METRIC_DIRECTION", "compute_metrics", "primary_metric", "register_metric"),
    "metrics.task": ("Task",),
    "runners": ("RUNNERS", "Runner"),
    "runners.parameters": ("BoosterType", "GrowthStrategy", "Profile", "TrainingConfig"),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "DATASETS",
    "METRIC_DIRECTION",
    "RUNNERS",
    "SUITES",
    "BenchmarkConfig",
    "BenchmarkError",
    "BenchmarkResult",
    "BenchmarkSuite",
    "BoosterType",
    "DatasetConfig",
    "GrowthStrategy",
    "Profile",
    "ResultCollection",
    "Runner",
    "Table",
    "Task",
    "TrainingConfig",
    "compare",
    "compute_metrics",
    "create_ablation_suite",
    "primary_metric",
    "register_dataset",
    "register_metric",
    "register_suite",
    "run_suite",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'boosters_eval' has no attribute '{name}'")
    return getattr(import_module(f"boosters_eval.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
