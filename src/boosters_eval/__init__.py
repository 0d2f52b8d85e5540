"""Fair, reproducible evaluation of gradient-boosting libraries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0.dev0"

if TYPE_CHECKING:
    from boosters_eval.api import (
        bisect,
        compare,
        importances,
        load_importances,
        load_results,
        load_run,
        run_suite,
        track_run,
        verify_run,
    )
    from boosters_eval.cluster.executor import DaskExecutor
    from boosters_eval.core.errors import (
        BoostersEvalError,
        BoostersEvalWarning,
        BuildError,
        ConfigError,
        DataFileError,
        DatasetError,
        ExitCode,
        FileFormatError,
        MetricInputError,
        MissingLibraryError,
        RunError,
        UnknownNameError,
        UnsupportedError,
    )
    from boosters_eval.core.repeat import Repeat
    from boosters_eval.datasets import DATASETS, Table, register_dataset
    from boosters_eval.datasets.config import DatasetConfig, DataSettings
    from boosters_eval.engine.cell import Build, Cell, Lane, Spec
    from boosters_eval.engine.clock import Clock
    from boosters_eval.engine.execute import Mode, execute
    from boosters_eval.engine.executor import EXECUTORS, Executor, Limits, Work
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.observer import (
        OBSERVERS,
        CellEnded,
        Observer,
        Observers,
        PhaseStarted,
        RunEnded,
        RunStarted,
    )
    from boosters_eval.engine.outcome import CellOutcome, Failure, Outcome
    from boosters_eval.engine.plan import Plan
    from boosters_eval.engine.pool import LocalPool
    from boosters_eval.engine.workload import WORKLOADS, Workload
    from boosters_eval.metrics import (
        METRIC_DIRECTION,
        MetricWarning,
        compute_metrics,
        metric_from_callable,
        primary_metric,
        register_metric,
    )
    from boosters_eval.metrics.task import Task
    from boosters_eval.preparing import prepare_builds, prepare_comparison, prepare_importances, prepare_suite
    from boosters_eval.programs.baseline import is_regression
    from boosters_eval.programs.benchmark.config import BenchmarkConfig, BenchmarkSuite
    from boosters_eval.programs.benchmark.measure import InvalidPredictionsError
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.records import BenchmarkError, BenchmarkResult, RunMetadata
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.settings import RunOptions, Settings
    from boosters_eval.programs.benchmark.suites import SUITES, create_ablation_suite, register_suite
    from boosters_eval.programs.bisect.model import Bisection, BisectionStep
    from boosters_eval.programs.gate import GateError
    from boosters_eval.programs.importances.records import Explanation
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.runners import RUNNERS, Runner
    from boosters_eval.runners.conformance import ConformanceError, check_runner
    from boosters_eval.runners.parameters import BoosterType, Device, GrowthStrategy, Profile, TrainingConfig
    from boosters_eval.running import run_importances, run_prepared
    from boosters_eval.stats.bootstrap import BootstrapInputError
    from boosters_eval.stats.inference import StatisticsInputError
    from boosters_eval.tracking.tracker import TRACKERS, Tracker

# Names are resolved on first use, so that `import boosters_eval` and the command line start fast.
_HOME = {
    "api": (
        "bisect",
        "compare",
        "importances",
        "load_importances",
        "load_results",
        "load_run",
        "run_suite",
        "track_run",
        "verify_run",
    ),
    "programs.baseline": ("is_regression",),
    "programs.bisect.model": ("Bisection", "BisectionStep"),
    "programs.benchmark.config": ("BenchmarkConfig", "BenchmarkSuite"),
    "programs.benchmark.measure": ("InvalidPredictionsError",),
    "programs.benchmark.planning": ("PreparedRun",),
    "programs.benchmark.records": ("BenchmarkError", "BenchmarkResult", "RunMetadata"),
    "programs.benchmark.results": ("ResultCollection",),
    "programs.benchmark.settings": ("RunOptions", "Settings"),
    "programs.benchmark.suites": ("SUITES", "create_ablation_suite", "register_suite"),
    "cluster.executor": ("DaskExecutor",),
    "core.errors": (
        "BoostersEvalError",
        "BoostersEvalWarning",
        "BuildError",
        "ConfigError",
        "DataFileError",
        "DatasetError",
        "ExitCode",
        "FileFormatError",
        "MetricInputError",
        "MissingLibraryError",
        "RunError",
        "UnknownNameError",
        "UnsupportedError",
    ),
    "core.repeat": ("Repeat",),
    "datasets": ("DATASETS", "Table", "register_dataset"),
    "datasets.config": ("DataSettings", "DatasetConfig"),
    "engine.cell": ("Build", "Cell", "Lane", "Spec"),
    "engine.clock": ("Clock",),
    "engine.execute": ("Mode", "execute"),
    "engine.executor": ("EXECUTORS", "Executor", "Limits", "Work"),
    "engine.folder": ("Run",),
    "engine.observer": ("OBSERVERS", "CellEnded", "Observer", "Observers", "PhaseStarted", "RunEnded", "RunStarted"),
    "engine.outcome": ("CellOutcome", "Failure", "Outcome"),
    "engine.plan": ("Plan",),
    "engine.pool": ("LocalPool",),
    "engine.workload": ("WORKLOADS", "Workload"),
    "programs.gate": ("GateError",),
    "programs.importances.records": ("Explanation",),
    "programs.importances.results": ("Explanations",),
    "metrics": (
        "METRIC_DIRECTION",
        "MetricWarning",
        "compute_metrics",
        "metric_from_callable",
        "primary_metric",
        "register_metric",
    ),
    "metrics.task": ("Task",),
    "preparing": ("prepare_builds", "prepare_comparison", "prepare_importances", "prepare_suite"),
    "runners": ("RUNNERS", "Runner"),
    "runners.conformance": ("ConformanceError", "check_runner"),
    "runners.parameters": ("BoosterType", "Device", "GrowthStrategy", "Profile", "TrainingConfig"),
    "running": ("run_importances", "run_prepared"),
    "stats.bootstrap": ("BootstrapInputError",),
    "stats.inference": ("StatisticsInputError",),
    "tracking.tracker": ("TRACKERS", "Tracker"),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "DATASETS",
    "EXECUTORS",
    "METRIC_DIRECTION",
    "OBSERVERS",
    "RUNNERS",
    "SUITES",
    "TRACKERS",
    "WORKLOADS",
    "BenchmarkConfig",
    "BenchmarkError",
    "BenchmarkResult",
    "BenchmarkSuite",
    "Bisection",
    "BisectionStep",
    "BoosterType",
    "BoostersEvalError",
    "BoostersEvalWarning",
    "BootstrapInputError",
    "Build",
    "BuildError",
    "Cell",
    "CellEnded",
    "CellOutcome",
    "Clock",
    "ConfigError",
    "ConformanceError",
    "DaskExecutor",
    "DataFileError",
    "DataSettings",
    "DatasetConfig",
    "DatasetError",
    "Device",
    "Executor",
    "ExitCode",
    "Explanation",
    "Explanations",
    "Failure",
    "FileFormatError",
    "GateError",
    "GrowthStrategy",
    "InvalidPredictionsError",
    "Lane",
    "Limits",
    "LocalPool",
    "MetricInputError",
    "MetricWarning",
    "MissingLibraryError",
    "Mode",
    "Observer",
    "Observers",
    "Outcome",
    "PhaseStarted",
    "Plan",
    "PreparedRun",
    "Profile",
    "Repeat",
    "ResultCollection",
    "Run",
    "RunEnded",
    "RunError",
    "RunMetadata",
    "RunOptions",
    "RunStarted",
    "Runner",
    "Settings",
    "Spec",
    "StatisticsInputError",
    "Table",
    "Task",
    "Tracker",
    "TrainingConfig",
    "UnknownNameError",
    "UnsupportedError",
    "Work",
    "Workload",
    "bisect",
    "check_runner",
    "compare",
    "compute_metrics",
    "create_ablation_suite",
    "execute",
    "importances",
    "is_regression",
    "load_importances",
    "load_results",
    "load_run",
    "metric_from_callable",
    "prepare_builds",
    "prepare_comparison",
    "prepare_importances",
    "prepare_suite",
    "primary_metric",
    "register_dataset",
    "register_metric",
    "register_suite",
    "run_importances",
    "run_prepared",
    "run_suite",
    "track_run",
    "verify_run",
]


if not TYPE_CHECKING:  # a type checker must see a misspelt name

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module 'boosters_eval' has no attribute '{name}'")
        return getattr(import_module(f"boosters_eval.{_WHERE[name]}"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
