"""Where each public name is, for Python to import it when it is used; made by scripts/make_names.py."""

_NAMES = {
    "boosters_eval.api": (
        "add_builds answer bisect check_baseline check_export check_upgrade compare compare_paper decide_gate"
        " decide_parity_gate determinism diff_baselines diff_runs draw_figures explain_mapping export_history"
        " extract_paper fetch_datasets find_slices import_history importances init_dataset init_paper_results"
        " init_parity list_builds list_datasets list_history list_libraries list_metrics list_oracles"
        " list_paper_targets list_parity list_runs list_suites load_importances load_results load_run open_run"
        " prepare_bisection prepare_check prepare_comparison prepare_importances prepare_suite prune_builds prune_runs"
        " record_baseline refresh_oracles reindex_history remove_builds remove_runs render_parity report_history"
        " report_paper rescore run_check run_importances run_paper run_parity run_prepared run_suite show_build"
        " show_dataset show_history show_run track_run tune update_baseline validate_paper verify_decision"
        " verify_oracles verify_run write_report"
    ),
    "boosters_eval.cluster.executor": "DaskExecutor",
    "boosters_eval.core.errors": (
        "BoostersEvalError BoostersEvalWarning BuildError ConfigError DataFileError DatasetError ExitCode"
        " FileFormatError MetricInputError MissingLibraryError RunError UnknownNameError UnsupportedError"
    ),
    "boosters_eval.core.machine": "MachineInfo",
    "boosters_eval.core.request": "Repeat",
    "boosters_eval.datasets": "DATASETS Table register_dataset",
    "boosters_eval.datasets.config": "DataSettings DatasetConfig",
    "boosters_eval.engine.cell": "Build Cell CellOutcome Failure Lane Outcome Spec Target",
    "boosters_eval.engine.clock": "Clock",
    "boosters_eval.engine.execute": "EXECUTORS Executor Limits Mode Work execute",
    "boosters_eval.engine.folder": "Run",
    "boosters_eval.engine.observer": "CellEnded OBSERVERS Observer Observers PhaseStarted RunEnded RunStarted",
    "boosters_eval.engine.plan": "Plan",
    "boosters_eval.engine.pool": "LocalPool",
    "boosters_eval.engine.settings": "RunOptions RunSettings",
    "boosters_eval.engine.workload": "WORKLOADS Workload",
    "boosters_eval.metrics": (
        "METRIC_DIRECTION MetricWarning compute_metrics metric_from_callable primary_metric register_metric"
    ),
    "boosters_eval.metrics.task": "Task",
    "boosters_eval.programs.baseline.check": "is_regression",
    "boosters_eval.programs.baseline.findings": "Check",
    "boosters_eval.programs.baseline.model": "Baseline BaselineResult MetricStats load_baseline save_baseline",
    "boosters_eval.programs.benchmark.planning": "PreparedRun",
    "boosters_eval.programs.benchmark.records": "BenchmarkError RunMetadata",
    "boosters_eval.programs.benchmark.request": "Settings",
    "boosters_eval.programs.benchmark.results": "ResultCollection",
    "boosters_eval.programs.benchmark.suites": (
        "ABLATION_DEVICE ABLATION_GROWTH_SUITE ABLATION_THREADING BenchmarkSuite CHECK_SUITE COMPARISON_DEPTHWISE"
        " COMPARISON_LEAFWISE FULL_SUITE GATE_SUITE GROUP_SUITE MINIMAL_SUITE QUICK_SUITE RANK_SUITE REAL_SUITE"
        " SCALE_SUITE SUITES TIME_SUITE create_ablation_suite register_suite"
    ),
    "boosters_eval.programs.benchmark.tables.document": "generate_report",
    "boosters_eval.programs.bisect.answer": "Bisection BisectionStep",
    "boosters_eval.programs.determinism.findings": "DeterminismFindings",
    "boosters_eval.programs.export.findings": "CheckedExport ExportFindings",
    "boosters_eval.programs.gate.model": "GateDecision GateError",
    "boosters_eval.programs.importances.records": "Explanation",
    "boosters_eval.programs.importances.results": "Explanations",
    "boosters_eval.programs.tune.findings": "TuneFindings",
    "boosters_eval.programs.upgrade.findings": "UpgradeFindings",
    "boosters_eval.runners": "RUNNERS Runner",
    "boosters_eval.runners.boosters_runner": "BoostersRunner",
    "boosters_eval.runners.catboost_runner": "CatBoostRunner",
    "boosters_eval.runners.config": "BenchmarkConfig derive_seed",
    "boosters_eval.runners.conformance": "ConformanceError check_runner",
    "boosters_eval.runners.lightgbm_runner": "LightGBMRunner",
    "boosters_eval.runners.measure": "InvalidPredictionsError",
    "boosters_eval.runners.parameters": "BoosterType Device GrowthStrategy Profile TrainingConfig",
    "boosters_eval.runners.result": "BenchmarkResult",
    "boosters_eval.runners.sklearn_runner": "SklearnRunner",
    "boosters_eval.runners.xgboost_runner": "XGBoostRunner",
    "boosters_eval.stats.bootstrap": "BootstrapInputError",
    "boosters_eval.stats.inference": "StatisticsInputError",
    "boosters_eval.tracking.tracker": "TRACKERS Tracker",
}
HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
