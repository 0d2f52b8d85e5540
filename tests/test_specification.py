"""What RFC-0015 and RFC-0003 write down works as they write it."""

import inspect
import json
import math
import re
import subprocess
import sys
from operator import attrgetter

import numpy as np
import pytest
from pydantic import ValidationError

import boosters_eval
import factories
from boosters_eval import (
    COMPARISON_DEPTHWISE,
    COMPARISON_LEAFWISE,
    DATASETS,
    METRIC_DIRECTION,
    RUNNERS,
    SUITES,
    Baseline,
    BenchmarkConfig,
    BenchmarkError,
    BenchmarkResult,
    BenchmarkSuite,
    BoosterType,
    ConfigError,
    DatasetConfig,
    GrowthStrategy,
    ResultCollection,
    Task,
    TrainingConfig,
    XGBoostRunner,
    compute_metrics,
    create_ablation_suite,
    derive_seed,
    generate_report,
    is_regression,
    load_baseline,
    register_dataset,
    save_baseline,
)
from boosters_eval.metrics import get
from boosters_eval.programs.baseline.snapshot import read_baseline
from boosters_eval.programs.benchmark.spec import model_seed
from boosters_eval.programs.benchmark.tables.document import build_document
from tiny import plan_of, tiny_config

# The classes that RFC-0015 writes down, with the fields that it gives them, in its order.
FIELDS = {
    "TrainingConfig": (
        *("n_estimators", "learning_rate", "max_depth", "n_leaves", "min_samples_leaf", "l1", "l2", "subsample"),
        *("colsample", "n_threads", "seed", "growth_strategy"),
    ),
    "BenchmarkConfig": (
        *("name", "dataset", "task", "booster_type", "training", "libraries", "validation_fraction", "seeds"),
    ),
    "BenchmarkSuite": ("name", "configs", "default_seeds"),
    "DatasetConfig": (
        *("name", "task", "loader", "n_classes", "n_features", "n_samples", "subsample", "description", "source"),
    ),
    "MachineInfo": ("cpu_model", "cpu_cores", "cpu_threads", "memory_gb", "os", "blas_backend", "build_type"),
    "MetricStats": ("mean", "std", "n"),
    "BaselineResult": ("config", "library", "task", "primary_metric", "metrics"),
    "Baseline": ("schema_version", "boosters_version", "recorded_at", "git_sha", "config", "results"),
    "BenchmarkResult": (
        *("config_name", "library", "seed", "task", "booster_type", "dataset_name", "metrics", "train_time_s"),
        *("predict_time_s", "peak_memory_mb", "model_size_mb", "n_trees_trained"),
    ),
    "BenchmarkError": ("config_name", "library", "seed", "error_type", "error_message", "traceback"),
}
# Its functions and methods, with the parameters that it calls them by.
PARAMETERS = {
    "compare": ("datasets", "libraries", "booster", "seeds"),
    "run_suite": ("suite", "seeds"),
    "register_dataset": ("config",),
    "create_ablation_suite": ("name", "dataset", "library", "variants"),
    "compute_metrics": ("task", "y_true", "y_pred", "n_classes"),
    "generate_report": ("results", "report_type", "output_dir"),
    "load_baseline": ("path",),
    "is_regression": ("baseline_mean", "current_mean", "tolerance", "lower_is_better"),
    "derive_seed": ("base_seed", "config_name", "library"),
    "MachineInfo.collect": (),
    "Runner.supports": ("config",),
    "Runner.run": ("config", "x_train", "y_train", "x_valid", "y_valid", "seed"),
    "ResultCollection.to_dataframe": (),
    "ResultCollection.filter": ("library", "dataset", "booster", "task"),
    "ResultCollection.best": ("metric",),
    "ResultCollection.is_significant": ("library_a", "library_b", "metric", "alpha"),
    "ResultCollection.summary": ("group_by",),
    "ResultCollection.to_markdown": ("highlight_best", "require_significance", "alpha"),
    "ResultCollection.to_json": ("path",),
    "ResultCollection.to_csv": ("path",),
    "ResultCollection.save_partial": ("path",),
    "ResultCollection.load_partial": ("path",),
}
# Its suites by name, and its runners with the boosters that it says they have; it plans that of scikit-learn.
SUITES_BY_NAME = {
    "minimal": "MINIMAL_SUITE",
    "quick": "QUICK_SUITE",
    "check": "CHECK_SUITE",
    "full": "FULL_SUITE",
    "comparison-depthwise": "COMPARISON_DEPTHWISE",
    "comparison-leafwise": "COMPARISON_LEAFWISE",
    "ablation-growth": "ABLATION_GROWTH_SUITE",
    "ablation-threading": "ABLATION_THREADING",
    "ablation-device": "ABLATION_DEVICE",
    "gate": "GATE_SUITE",
    "real24": "REAL_SUITE",
    "time6": "TIME_SUITE",
    "group4": "GROUP_SUITE",
    "scale2": "SCALE_SUITE",
    "rank1": "RANK_SUITE",
}
BOOSTERS = {
    "BoostersRunner": {"gbdt", "gblinear", "linear_trees"},
    "XGBoostRunner": {"gbdt", "gblinear"},
    "LightGBMRunner": {"gbdt", "linear_trees"},
    "CatBoostRunner": {"gbdt"},
    "SklearnRunner": {"gbdt"},
}
DIRECTIONS = {
    **dict.fromkeys(("rmse", "mae", "logloss", "mlogloss"), "lower_better"),
    **dict.fromkeys(("train_time_s", "predict_time_s", "peak_memory_mb"), "lower_better"),
    **dict.fromkeys(("r2", "accuracy", "auc_roc"), "higher_better"),
}
BASELINE = """
{
  "schema_version": 1,
  "boosters_version": "0.1.0",
  "recorded_at": "2025-12-27T10:30:00Z",
  "git_sha": "abc123def",
  "config": {"seeds": [42, 1379, 2716, 4053, 5390], "suite": "full"},
  "results": [
    {
      "config": "california/gbdt",
      "library": "boosters",
      "task": "regression",
      "primary_metric": "rmse",
      "metrics": {
        "rmse": {"mean": 0.4521, "std": 0.0102, "n": 5},
        "mae": {"mean": 0.3012, "std": 0.0087, "n": 5}
      }
    }
  ]
}
"""


@pytest.mark.parametrize(("name", "fields"), FIELDS.items())
def test_a_class_of_the_rfc_has_its_fields(name, fields):
    known = list(getattr(boosters_eval, name).model_fields)
    assert set(fields) <= set(known)
    if name in {"TrainingConfig", "BenchmarkConfig", "DatasetConfig", "MachineInfo"}:  # may be given by position
        assert tuple(known[: len(fields)]) == fields


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_a_function_of_the_rfc_takes_its_parameters_in_its_order(name, parameters):
    taken = inspect.signature(attrgetter(name)(boosters_eval)).parameters.values()
    by_place = [item for item in taken if item.kind is item.POSITIONAL_OR_KEYWORD and item.name != "self"]
    assert tuple(item.name for item in by_place[: len(parameters)]) == parameters
    assert {item.name for item in by_place if item.default is item.empty} <= set(parameters)


@pytest.mark.parametrize(("name", "constant"), SUITES_BY_NAME.items())
def test_a_suite_of_the_rfc_is_the_one_that_run_takes_by_its_name(name, constant):
    suite = getattr(boosters_eval, constant)
    assert isinstance(suite, BenchmarkSuite)
    assert SUITES[name] is suite


def test_all_suites_are_at_the_root():
    assert set(SUITES_BY_NAME) == set(SUITES)


@pytest.mark.parametrize(("name", "boosters"), BOOSTERS.items())
def test_a_runner_of_the_rfc_supports_its_boosters(name, boosters):
    runner = getattr(boosters_eval, name)
    assert RUNNERS[runner.name] is runner
    configs = {booster: factories.config(factories.dataset(), booster_type=booster) for booster in BoosterType}
    assert {booster.value for booster, config in configs.items() if runner.supports(config)} == boosters


def test_a_runner_from_the_root_runs_as_the_rfc_calls_it():
    if XGBoostRunner.missing():
        pytest.skip(XGBoostRunner.missing())
    rng = np.random.default_rng(5)
    x = rng.standard_normal((200, 3)).astype(np.float32)
    rows = (x[:150], x[:150, 0], x[150:], x[150:, 0])
    config = factories.config(factories.dataset())
    first, again = (XGBoostRunner.run(config, *rows, seed=42) for _ in range(2))
    assert isinstance(first, BenchmarkResult)
    assert (first.library, first.seed) == ("xgboost", 42)
    assert first.metrics == again.metrics


def test_directions_and_kinds_are_those_of_the_rfc():
    assert DIRECTIONS.items() <= METRIC_DIRECTION.items()
    assert {"regression", "binary", "multiclass", "ranking"} <= {task.value for task in Task}
    assert {growth.name: growth.value for growth in GrowthStrategy} == {
        "DEPTHWISE": "depthwise",
        "LEAFWISE": "leafwise",
    }
    for suite, growth in ((COMPARISON_DEPTHWISE, "DEPTHWISE"), (COMPARISON_LEAFWISE, "LEAFWISE")):
        assert {config.training.growth_strategy for config in suite.configs} == {GrowthStrategy[growth]}
    assert compute_metrics(Task.REGRESSION, [1.0, 2.0], [1.0, 4.0]) == {
        "rmse": pytest.approx(math.sqrt(2)),
        "mae": 1.0,
        "r2": pytest.approx(-7.0),
    }


def test_a_data_set_of_ones_own_is_registered_as_in_the_rfc():
    def load_my_dataset():
        return np.zeros((4, 2), dtype=np.float32), np.array([0, 1, 0, 1], dtype=np.float32)

    register_dataset(
        DatasetConfig(
            name="my_dataset",
            task=Task.BINARY,
            loader=load_my_dataset,
            description="Custom binary classification dataset",
        )
    )
    try:
        assert DATASETS["my_dataset"].loader is load_my_dataset
    finally:
        DATASETS.unregister("my_dataset")


def test_a_suite_is_written_as_in_the_rfc():
    suite = BenchmarkSuite(
        name="quick",
        default_seeds=3,
        configs=[
            BenchmarkConfig(
                name="california/gbdt",
                dataset=DATASETS["california"],
                task=Task.REGRESSION,
                booster_type=BoosterType.GBDT,
                training=TrainingConfig(n_estimators=50, max_depth=4),
                libraries=["boosters", "xgboost", "lightgbm"],
            )
        ],
    )
    (of_the_package,) = [config for config in SUITES["quick"].configs if config.name == "california/gbdt"]
    assert suite.configs[0].replace(libraries=of_the_package.libraries) == of_the_package
    threading = create_ablation_suite(
        name="ablation-threading",
        dataset="california",
        library="boosters",
        variants={
            "single": TrainingConfig(n_threads=1),
            "multi-4": TrainingConfig(n_threads=4),
            "multi-auto": TrainingConfig(n_threads=-1),
        },
    )
    assert threading.configs == SUITES["ablation-threading"].configs
    variants = {config.variant: config.training for config in threading.configs}
    assert create_ablation_suite("ablation-threading", "California", "Boosters", variants).configs == threading.configs


def test_a_result_needs_only_what_the_runner_of_the_rfc_gives_it():
    result = BenchmarkResult(
        config_name="toy/gbdt", library="x", seed=1, task=Task.BINARY, metrics={"logloss": 0.5}, train_time_s=1.0
    )
    assert (result.booster_type, result.predict_time_s) == ("gbdt", None)


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_the_baseline_of_the_rfc_is_read_and_saved_by_path_and_by_text(kind, tmp_path):
    path = kind(tmp_path / "v0.1.0.json")
    (tmp_path / "v0.1.0.json").write_text(BASELINE)
    baseline = load_baseline(path)
    assert baseline.results[0].metrics["rmse"].mean == 0.4521
    assert baseline.config.seeds == (42, 1379, 2716, 4053, 5390)
    assert Baseline.model_validate(json.loads(BASELINE)).results == baseline.results
    save_baseline(baseline, path)
    assert load_baseline(path) == baseline


def test_what_is_no_path_or_no_baseline_gets_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match="The 'path' parameter must be a path"):
        load_baseline(5)
    with pytest.raises(
        ConfigError, match=r"x.json does not exist; record it with 'boosters-eval baseline record x.json'"
    ):
        load_baseline("x.json")
    with pytest.raises(ConfigError, match="The 'baseline' parameter must be a Baseline"):
        save_baseline({}, tmp_path / "baseline.json")
    with pytest.raises(ConfigError, match="The 'results' parameter must be a ResultCollection"):
        generate_report([])
    with pytest.raises(ConfigError, match="The 'output_dir' parameter must be a folder"):
        generate_report(factories.collection(), "quality", None)


def test_results_are_explored_as_in_the_rfc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worse = {"boosters": 0.0, "xgboost": 0.1}
    results = factories.collection(
        factories.grid(lambda _, library, i: 0.5 + worse[library] * (1 + i / 100), libraries=worse, seeds=5)
    )
    assert set(results.filter(library="boosters").to_dataframe()["library"]) == {"boosters"}
    assert len(results.filter(task=Task.REGRESSION)) == 10
    assert results.best(metric="rmse")["best"].tolist() == ["boosters"]
    assert results.is_significant("boosters", "xgboost", "rmse", alpha=0.05)[0]
    assert len(results.summary(group_by=["dataset", "booster", "library"])) == 2
    assert "**" in results.to_markdown(highlight_best=True, require_significance=True, alpha=0.05)
    results.to_csv("results.csv")
    results.to_json("results.json")
    results.save_partial(tmp_path / "partial.json")
    assert ResultCollection.load_partial(tmp_path / "partial.json").results == results.results
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "results.json", "partial.json"}


def test_best_takes_the_level_by_the_name_of_the_rfc():
    noisy = [0.50, 0.52, 0.49, 0.53, 0.51]
    results = factories.collection(
        factories.grid(lambda _, library, i: noisy[i] + 0.02 * (library == "xgboost") * i, seeds=5)
    )
    _, p_value = results.is_significant("boosters", "xgboost", "rmse")
    for level, best in ((p_value / 2, "tie"), ((1 + p_value) / 2, "boosters")):
        assert results.best("rmse", significance_level=level)["best"].tolist() == [best]
        assert results.best("rmse", alpha=level).equals(results.best("rmse", significance_level=level))
    with pytest.raises(ConfigError, match=r"The 'significance_level' parameter must be between 0 and 1\. Got 5"):
        results.best("rmse", significance_level=5)
    with pytest.raises(ConfigError, match="'significance_level' is another name of the 'alpha' parameter"):
        results.best("rmse", 0.05, significance_level=0.05)
    with pytest.raises(ConfigError, match="The 'significance_level' parameter must be a number between 0 and 1"):
        results.best("rmse", significance_level="0.05")


def test_the_seed_of_a_model_is_the_same_in_every_process(faulty):
    (cell,) = plan_of(tiny_config(), seeds=1).cells
    assert derive_seed(42, "tiny/none", "faulty") == model_seed(cell)
    assert len({derive_seed(42, config, library) for config in "ab" for library in "xy"}) == 4
    code = "from boosters_eval import derive_seed; print(derive_seed(42, 'tiny/none', 'faulty'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == model_seed(cell)


def test_a_report_is_named_by_date_commit_and_type(tmp_path):
    paths = generate_report(factories.collection(), report_type="comparison", output_dir=tmp_path / "docs")
    assert [path.suffix for path in paths] == [".md", ".json"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d-\w+-comparison-report", path.stem) for path in paths)
    assert {path.parent for path in paths} == {tmp_path / "docs"}
    spelled = generate_report(factories.collection(), "Comparison", tmp_path / "others", ["MD", "JSON"])
    assert [path.name for path in spelled] == [path.name for path in paths]


def test_an_error_needs_only_the_six_fields_of_the_rfc():
    error = BenchmarkError(
        config_name="toy/gbdt", library="boosters", seed=42, error_type="Crash", error_message="x", traceback=None
    )
    run = ResultCollection([], [error])
    assert "boosters" in run.to_markdown()
    assert ResultCollection.from_json(run.to_json()).errors == [error]


def test_model_params_are_the_native_parameters():
    fields = factories.result().model_dump(exclude={"native_params"})
    result = BenchmarkResult(**fields, model_params={"eta": 0.1})
    assert result.native_params == result.model_params == {"eta": 0.1}
    with pytest.raises(ValidationError):
        BenchmarkResult(**fields, model_params={}, native_params={})


def test_json_with_and_without_metadata_can_be_read():
    run = factories.remember(factories.collection(), n_cells=1)
    assert json.loads(run.to_json(include_metadata=True))["metadata"]["n_cells"] == 1
    bare = run.to_json(include_metadata=False)
    assert "metadata" not in json.loads(bare)
    assert ResultCollection.from_json(bare).results == run.results


def test_is_regression_takes_its_arguments_by_position():
    assert is_regression(0.5, 0.6, 0.02, True)
    assert not is_regression(0.5, 0.6, 0.02, False)


def test_a_config_has_the_seeds_of_the_rfc_by_default():
    data = factories.dataset()
    config = BenchmarkConfig("toy/gbdt", data, Task.REGRESSION, BoosterType.GBDT, TrainingConfig(), ["boosters"])
    assert config.seeds == (42, 1379, 2716, 4053, 5390)


def test_the_metric_is_rmse_by_default():
    assert get().name == "rmse"
    assert get().compute([1.0, 2.0], [1.0, 4.0]) == pytest.approx(2**0.5)


def test_the_report_states_the_growth_strategy():
    leafwise = TrainingConfig(growth_strategy="leafwise").model_dump(mode="json")
    run = factories.remember(factories.collection(), configs={factories.CONFIG: leafwise})
    assert "**Growth strategy**: leafwise" in build_document(run).to_markdown()
    linear = factories.collection([factories.result("toy/gblinear")])
    factories.remember(linear, configs={"toy/gblinear": leafwise})
    assert "Growth strategy" not in build_document(linear).to_markdown()


def test_a_quality_report_in_json_serves_as_results_and_as_a_baseline(tmp_path):
    run = factories.collection(factories.grid(lambda *_: 0.5))
    _, path = generate_report(run, "quality", tmp_path)
    assert ResultCollection.load_partial(path).results == run.results
    recorded = read_baseline(path)
    assert [result.key for result in recorded.results] == [("toy/gbdt", "boosters"), ("toy/gbdt", "xgboost")]
    assert recorded.results[0].primary.per_seed == {"42": 0.5, "1379": 0.5, "2716": 0.5}


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        *(("Rmse", "rmse"), ("Mae", "mae"), ("Mape", "mape"), ("RSquared", "r2"), ("PinballLoss", "pinball")),
        *(("LogLoss", "logloss"), ("Accuracy", "accuracy"), ("Auc", "auc_roc"), ("F1", "f1"), ("F1@0.3", "f1@0.3")),
        *(("MultiLogLoss", "mlogloss"), ("MultiAccuracy", "accuracy"), ("RMSE", "rmse"), ("AUC", "auc_roc")),
        *(("R²", "r2"), ("AUC-ROC", "auc_roc"), ("Log Loss", "logloss"), ("Multi-LogLoss", "mlogloss")),
        *(("Macro-F1", "macro_f1"), ("NDCG@10", "ndcg@10"), ("MAP", "map"), ("PinballLoss@0.1,0.9", "pinball@0.1,0.9")),
    ],
)
def test_metrics_are_known_by_the_spelling_of_the_rfc(written, spec):
    assert get(written).spec == spec


# The algorithms of RFC-0003 as it writes them: matrices are lists of columns.


def rmse_of_the_rfc(predictions, labels, weights):
    total_rmse = 0.0
    for pred_col, label_col in zip(predictions, labels, strict=True):
        sum_sq_error = sum_weights = 0.0
        for i in range(len(pred_col)):
            error = pred_col[i] - label_col[i]
            w = weights[i] if weights is not None else 1.0
            sum_sq_error += w * error * error
            sum_weights += w
        total_rmse += math.sqrt(sum_sq_error / sum_weights)
    return total_rmse / len(predictions)


def logloss_of_the_rfc(predictions, labels, weights):
    sum_loss = sum_weights = 0.0
    for i in range(len(predictions[0])):
        p = min(max(predictions[0][i], 1e-15), 1.0 - 1e-15)
        y = labels[0][i]
        w = weights[i] if weights is not None else 1.0
        sum_loss += w * -(y * math.log(p) + (1.0 - y) * math.log(1.0 - p))
        sum_weights += w
    return sum_loss / sum_weights


def auc_of_the_rfc(predictions, labels, weights):
    indices = sorted(range(len(predictions[0])), key=lambda i: -predictions[0][i])
    weights = [1.0] * len(indices) if weights is None else weights
    total_pos = sum(weights[i] for i in indices if labels[0][i] == 1.0)
    total_neg = sum(weights[i] for i in indices if labels[0][i] != 1.0)
    if total_pos == 0 or total_neg == 0:
        return 0.5
    auc = cum_pos = 0.0
    for idx in indices:
        if labels[0][idx] == 1.0:
            cum_pos += weights[idx]
        else:
            auc += weights[idx] * cum_pos
    return auc / (total_pos * total_neg)


def accuracy_of_the_rfc(predictions, labels, weights):
    correct = total = 0.0
    for i in range(len(labels[0])):
        pred_class, max_prob = 0, predictions[0][i]
        for k in range(1, len(predictions)):
            if predictions[k][i] > max_prob:
                max_prob, pred_class = predictions[k][i], k
        w = weights[i] if weights is not None else 1.0
        correct += w * (pred_class == int(labels[0][i]))
        total += w
    return correct / total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "algorithm", "columns"),
    [
        *(("Rmse", rmse_of_the_rfc, 1), ("Rmse", rmse_of_the_rfc, 3), ("LogLoss", logloss_of_the_rfc, 1)),
        *(("Auc", auc_of_the_rfc, 1), ("MultiAccuracy", accuracy_of_the_rfc, 4)),
    ],
)
def test_an_algorithm_of_the_rfc_gives_the_same_value(name, algorithm, columns, weighted):
    rng = np.random.default_rng(3)
    scores = rng.random((200, columns)).astype(np.float32)
    if name == "MultiAccuracy":
        scores /= scores.sum(axis=1, keepdims=True)
        labels = rng.integers(0, columns, (200, 1))
    else:
        labels = rng.random((200, columns)) if name == "Rmse" else rng.integers(0, 2, (200, 1))
    weights = rng.random(200) if weighted else None
    of_the_rfc = algorithm(scores.T.astype(float).tolist(), labels.T.tolist(), weights)
    predictions, truth = (
        matrix[:, 0] if matrix.shape[1] == 1 else np.asfortranarray(matrix) for matrix in (scores, labels)
    )
    value = get(name).compute(predictions, truth, weights)
    assert isinstance(value, float)  # its DD-1
    assert value == pytest.approx(of_the_rfc, rel=1e-12)


# The variants of its enum with what they hold, and the column "Higher is Better" of its table.
VARIANTS = {
    **dict.fromkeys(("Rmse", "Mae", "Mape", "LogLoss", "MultiLogLoss"), ({}, False)),
    **dict.fromkeys(("RSquared", "Auc", "MultiAccuracy"), ({}, True)),
    "PinballLoss": ({"alphas": [0.1, 0.9]}, False),
    "Accuracy": ({"threshold": 0.7}, True),
    "F1": ({"threshold": 0.3}, True),
}


@pytest.mark.parametrize(("name", "held"), VARIANTS.items())
def test_a_variant_of_the_rfc_holds_its_parameters_and_knows_what_is_better(name, held):
    parameters, higher_is_better = held
    metric = get(name, **parameters)
    assert metric.higher_is_better is higher_is_better
    assert get(metric.spec) == metric == get(metric)
    assert isinstance(metric.name, str)


def test_names_of_the_rfc_are_known_whatever_their_case():
    assert RUNNERS["XGBoost"] is XGBoostRunner
    assert DATASETS["cover_type"].name == "covertype"
    assert SUITES["Quick"].name == SUITES["QUICK_SUITE"].name == "quick"
    assert SUITES["ABLATION_GROWTH_SUITE"] is SUITES["ablation-growth"]
    assert DATASETS["Breast Cancer"].name == "breast_cancer"
    assert TrainingConfig(growth_strategy="LEAFWISE", device="CPU") == TrainingConfig(growth_strategy="leafwise")
    assert (Task("Binary"), BoosterType("GBLinear")) == (Task.BINARY, BoosterType.GBLINEAR)
    assert compute_metrics("Binary", [0, 1], [0.2, 0.7]).keys() == {"logloss", "accuracy", "auc_roc"}
    with pytest.raises(ValueError, match="'up' is not a valid GrowthStrategy"):
        GrowthStrategy("up")
    collection = factories.collection(suite="compare")
    library = collection.results[0].library
    assert len(collection.filter(library=library.upper())) == len(collection.filter(library=library)) > 0
