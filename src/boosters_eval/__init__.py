"""Fair, reproducible evaluation of gradient-boosting libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core import __version__ as __version__

# The public names, one per line, are what a type checker sees. Python finds them by the table in names.py when they are
# used, so that the command line starts fast; scripts/make_names.py makes it from this list.
if TYPE_CHECKING:
    from boosters_eval.api import add_builds as add_builds
    from boosters_eval.api import answer as answer
    from boosters_eval.api import bisect as bisect
    from boosters_eval.api import check_baseline as check_baseline
    from boosters_eval.api import check_export as check_export
    from boosters_eval.api import check_upgrade as check_upgrade
    from boosters_eval.api import compare as compare
    from boosters_eval.api import compare_paper as compare_paper
    from boosters_eval.api import decide_gate as decide_gate
    from boosters_eval.api import decide_parity_gate as decide_parity_gate
    from boosters_eval.api import determinism as determinism
    from boosters_eval.api import diff_baselines as diff_baselines
    from boosters_eval.api import diff_runs as diff_runs
    from boosters_eval.api import draw_figures as draw_figures
    from boosters_eval.api import explain_mapping as explain_mapping
    from boosters_eval.api import export_history as export_history
    from boosters_eval.api import extract_paper as extract_paper
    from boosters_eval.api import fetch_datasets as fetch_datasets
    from boosters_eval.api import find_slices as find_slices
    from boosters_eval.api import import_history as import_history
    from boosters_eval.api import importances as importances
    from boosters_eval.api import init_dataset as init_dataset
    from boosters_eval.api import init_paper_results as init_paper_results
    from boosters_eval.api import init_parity as init_parity
    from boosters_eval.api import list_builds as list_builds
    from boosters_eval.api import list_datasets as list_datasets
    from boosters_eval.api import list_history as list_history
    from boosters_eval.api import list_libraries as list_libraries
    from boosters_eval.api import list_metrics as list_metrics
    from boosters_eval.api import list_oracles as list_oracles
    from boosters_eval.api import list_paper_targets as list_paper_targets
    from boosters_eval.api import list_parity as list_parity
    from boosters_eval.api import list_runs as list_runs
    from boosters_eval.api import list_suites as list_suites
    from boosters_eval.api import load_importances as load_importances
    from boosters_eval.api import load_results as load_results
    from boosters_eval.api import load_run as load_run
    from boosters_eval.api import open_run as open_run
    from boosters_eval.api import prepare_bisection as prepare_bisection
    from boosters_eval.api import prepare_check as prepare_check
    from boosters_eval.api import prepare_comparison as prepare_comparison
    from boosters_eval.api import prepare_importances as prepare_importances
    from boosters_eval.api import prepare_suite as prepare_suite
    from boosters_eval.api import prune_builds as prune_builds
    from boosters_eval.api import prune_runs as prune_runs
    from boosters_eval.api import record_baseline as record_baseline
    from boosters_eval.api import refresh_oracles as refresh_oracles
    from boosters_eval.api import reindex_history as reindex_history
    from boosters_eval.api import remove_builds as remove_builds
    from boosters_eval.api import remove_runs as remove_runs
    from boosters_eval.api import render_parity as render_parity
    from boosters_eval.api import report_history as report_history
    from boosters_eval.api import report_paper as report_paper
    from boosters_eval.api import rescore as rescore
    from boosters_eval.api import run_check as run_check
    from boosters_eval.api import run_importances as run_importances
    from boosters_eval.api import run_paper as run_paper
    from boosters_eval.api import run_parity as run_parity
    from boosters_eval.api import run_prepared as run_prepared
    from boosters_eval.api import run_suite as run_suite
    from boosters_eval.api import show_build as show_build
    from boosters_eval.api import show_dataset as show_dataset
    from boosters_eval.api import show_history as show_history
    from boosters_eval.api import show_run as show_run
    from boosters_eval.api import track_run as track_run
    from boosters_eval.api import tune as tune
    from boosters_eval.api import update_baseline as update_baseline
    from boosters_eval.api import validate_paper as validate_paper
    from boosters_eval.api import verify_decision as verify_decision
    from boosters_eval.api import verify_oracles as verify_oracles
    from boosters_eval.api import verify_run as verify_run
    from boosters_eval.api import write_report as write_report
    from boosters_eval.cluster.executor import DaskExecutor as DaskExecutor
    from boosters_eval.core.errors import BoostersEvalError as BoostersEvalError
    from boosters_eval.core.errors import BoostersEvalWarning as BoostersEvalWarning
    from boosters_eval.core.errors import BuildError as BuildError
    from boosters_eval.core.errors import ConfigError as ConfigError
    from boosters_eval.core.errors import DataFileError as DataFileError
    from boosters_eval.core.errors import DatasetError as DatasetError
    from boosters_eval.core.errors import ExitCode as ExitCode
    from boosters_eval.core.errors import FileFormatError as FileFormatError
    from boosters_eval.core.errors import MetricInputError as MetricInputError
    from boosters_eval.core.errors import MissingLibraryError as MissingLibraryError
    from boosters_eval.core.errors import RunError as RunError
    from boosters_eval.core.errors import UnknownNameError as UnknownNameError
    from boosters_eval.core.errors import UnsupportedError as UnsupportedError
    from boosters_eval.core.machine import MachineInfo as MachineInfo
    from boosters_eval.core.request import Repeat as Repeat
    from boosters_eval.datasets import DATASETS as DATASETS
    from boosters_eval.datasets import Table as Table
    from boosters_eval.datasets import register_dataset as register_dataset
    from boosters_eval.datasets.config import DatasetConfig as DatasetConfig
    from boosters_eval.datasets.config import DataSettings as DataSettings
    from boosters_eval.engine.cell import Build as Build
    from boosters_eval.engine.cell import Cell as Cell
    from boosters_eval.engine.cell import CellOutcome as CellOutcome
    from boosters_eval.engine.cell import Failure as Failure
    from boosters_eval.engine.cell import Lane as Lane
    from boosters_eval.engine.cell import Outcome as Outcome
    from boosters_eval.engine.cell import Spec as Spec
    from boosters_eval.engine.cell import Target as Target
    from boosters_eval.engine.clock import Clock as Clock
    from boosters_eval.engine.execute import EXECUTORS as EXECUTORS
    from boosters_eval.engine.execute import Executor as Executor
    from boosters_eval.engine.execute import Limits as Limits
    from boosters_eval.engine.execute import Mode as Mode
    from boosters_eval.engine.execute import Work as Work
    from boosters_eval.engine.execute import execute as execute
    from boosters_eval.engine.folder import Run as Run
    from boosters_eval.engine.observer import OBSERVERS as OBSERVERS
    from boosters_eval.engine.observer import CellEnded as CellEnded
    from boosters_eval.engine.observer import Observer as Observer
    from boosters_eval.engine.observer import Observers as Observers
    from boosters_eval.engine.observer import PhaseStarted as PhaseStarted
    from boosters_eval.engine.observer import RunEnded as RunEnded
    from boosters_eval.engine.observer import RunStarted as RunStarted
    from boosters_eval.engine.plan import Plan as Plan
    from boosters_eval.engine.pool import LocalPool as LocalPool
    from boosters_eval.engine.settings import RunOptions as RunOptions
    from boosters_eval.engine.settings import RunSettings as RunSettings
    from boosters_eval.engine.workload import WORKLOADS as WORKLOADS
    from boosters_eval.engine.workload import Workload as Workload
    from boosters_eval.metrics import METRIC_DIRECTION as METRIC_DIRECTION
    from boosters_eval.metrics import MetricWarning as MetricWarning
    from boosters_eval.metrics import compute_metrics as compute_metrics
    from boosters_eval.metrics import metric_from_callable as metric_from_callable
    from boosters_eval.metrics import primary_metric as primary_metric
    from boosters_eval.metrics import register_metric as register_metric
    from boosters_eval.metrics.task import Task as Task
    from boosters_eval.programs.baseline.check import is_regression as is_regression
    from boosters_eval.programs.baseline.findings import Check as Check
    from boosters_eval.programs.baseline.model import Baseline as Baseline
    from boosters_eval.programs.baseline.model import BaselineResult as BaselineResult
    from boosters_eval.programs.baseline.model import MetricStats as MetricStats
    from boosters_eval.programs.baseline.model import load_baseline as load_baseline
    from boosters_eval.programs.baseline.model import save_baseline as save_baseline
    from boosters_eval.programs.benchmark.planning import PreparedRun as PreparedRun
    from boosters_eval.programs.benchmark.records import BenchmarkError as BenchmarkError
    from boosters_eval.programs.benchmark.records import RunMetadata as RunMetadata
    from boosters_eval.programs.benchmark.request import Settings as Settings
    from boosters_eval.programs.benchmark.results import ResultCollection as ResultCollection
    from boosters_eval.programs.benchmark.suites import ABLATION_DEVICE as ABLATION_DEVICE
    from boosters_eval.programs.benchmark.suites import ABLATION_GROWTH_SUITE as ABLATION_GROWTH_SUITE
    from boosters_eval.programs.benchmark.suites import ABLATION_THREADING as ABLATION_THREADING
    from boosters_eval.programs.benchmark.suites import CHECK_SUITE as CHECK_SUITE
    from boosters_eval.programs.benchmark.suites import COMPARISON_DEPTHWISE as COMPARISON_DEPTHWISE
    from boosters_eval.programs.benchmark.suites import COMPARISON_LEAFWISE as COMPARISON_LEAFWISE
    from boosters_eval.programs.benchmark.suites import FULL_SUITE as FULL_SUITE
    from boosters_eval.programs.benchmark.suites import GATE_SUITE as GATE_SUITE
    from boosters_eval.programs.benchmark.suites import GROUP_SUITE as GROUP_SUITE
    from boosters_eval.programs.benchmark.suites import MINIMAL_SUITE as MINIMAL_SUITE
    from boosters_eval.programs.benchmark.suites import QUICK_SUITE as QUICK_SUITE
    from boosters_eval.programs.benchmark.suites import RANK_SUITE as RANK_SUITE
    from boosters_eval.programs.benchmark.suites import REAL_SUITE as REAL_SUITE
    from boosters_eval.programs.benchmark.suites import SCALE_SUITE as SCALE_SUITE
    from boosters_eval.programs.benchmark.suites import SUITES as SUITES
    from boosters_eval.programs.benchmark.suites import TIME_SUITE as TIME_SUITE
    from boosters_eval.programs.benchmark.suites import BenchmarkSuite as BenchmarkSuite
    from boosters_eval.programs.benchmark.suites import create_ablation_suite as create_ablation_suite
    from boosters_eval.programs.benchmark.suites import register_suite as register_suite
    from boosters_eval.programs.benchmark.tables.document import generate_report as generate_report
    from boosters_eval.programs.bisect.answer import Bisection as Bisection
    from boosters_eval.programs.bisect.answer import BisectionStep as BisectionStep
    from boosters_eval.programs.determinism.findings import DeterminismFindings as DeterminismFindings
    from boosters_eval.programs.export.findings import CheckedExport as CheckedExport
    from boosters_eval.programs.export.findings import ExportFindings as ExportFindings
    from boosters_eval.programs.gate.model import GateDecision as GateDecision
    from boosters_eval.programs.gate.model import GateError as GateError
    from boosters_eval.programs.importances.records import Explanation as Explanation
    from boosters_eval.programs.importances.results import Explanations as Explanations
    from boosters_eval.programs.tune.findings import TuneFindings as TuneFindings
    from boosters_eval.programs.upgrade.findings import UpgradeFindings as UpgradeFindings
    from boosters_eval.runners import RUNNERS as RUNNERS
    from boosters_eval.runners import Runner as Runner
    from boosters_eval.runners.boosters_runner import BoostersRunner as BoostersRunner
    from boosters_eval.runners.catboost_runner import CatBoostRunner as CatBoostRunner
    from boosters_eval.runners.config import BenchmarkConfig as BenchmarkConfig
    from boosters_eval.runners.config import derive_seed as derive_seed
    from boosters_eval.runners.conformance import ConformanceError as ConformanceError
    from boosters_eval.runners.conformance import check_runner as check_runner
    from boosters_eval.runners.lightgbm_runner import LightGBMRunner as LightGBMRunner
    from boosters_eval.runners.measure import InvalidPredictionsError as InvalidPredictionsError
    from boosters_eval.runners.parameters import BoosterType as BoosterType
    from boosters_eval.runners.parameters import Device as Device
    from boosters_eval.runners.parameters import GrowthStrategy as GrowthStrategy
    from boosters_eval.runners.parameters import Profile as Profile
    from boosters_eval.runners.parameters import TrainingConfig as TrainingConfig
    from boosters_eval.runners.result import BenchmarkResult as BenchmarkResult
    from boosters_eval.runners.sklearn_runner import SklearnRunner as SklearnRunner
    from boosters_eval.runners.xgboost_runner import XGBoostRunner as XGBoostRunner
    from boosters_eval.stats.bootstrap import BootstrapInputError as BootstrapInputError
    from boosters_eval.stats.inference import StatisticsInputError as StatisticsInputError
    from boosters_eval.tracking.tracker import TRACKERS as TRACKERS
    from boosters_eval.tracking.tracker import Tracker as Tracker
else:  # a type checker must see a misspelt name
    from importlib import import_module

    from boosters_eval.names import HOME as _HOME

    __all__ = list(_HOME)

    def __getattr__(name: str) -> object:
        """Import a name when it is used."""
        if name not in _HOME:
            raise AttributeError(f"module 'boosters_eval' has no attribute '{name}'")
        return getattr(import_module(_HOME[name]), name)

    def __dir__() -> list[str]:
        """Every name, imported or not."""
        return sorted({*globals(), *__all__})
