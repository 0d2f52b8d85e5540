"""What RFC-0015 and RFC-0003 write down works as they write it."""

import json

import pytest
from pydantic import ValidationError

import factories
from boosters_eval import (
    BenchmarkConfig,
    BenchmarkError,
    BenchmarkResult,
    BoosterType,
    ResultCollection,
    Task,
    is_regression,
)
from boosters_eval.metrics import get
from boosters_eval.programs.baseline import read_baseline
from boosters_eval.programs.benchmark.tables import build_document, generate_report
from boosters_eval.reports.full_markdown import render_report
from boosters_eval.runners.parameters import TrainingConfig


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
    assert "**Growth strategy**: leafwise" in render_report(build_document(run))
    linear = factories.collection([factories.result("toy/gblinear")])
    factories.remember(linear, configs={"toy/gblinear": leafwise})
    assert "Growth strategy" not in render_report(build_document(linear))


def test_a_quality_report_in_json_serves_as_results_and_as_a_baseline(tmp_path):
    run = factories.collection(factories.grid(lambda *_: 0.5))
    _, path = generate_report(run, "quality", tmp_path)
    assert ResultCollection.load_partial(path).results == run.results
    recorded = read_baseline(path)
    assert [result.key for result in recorded.results] == [("toy/gbdt", "boosters"), ("toy/gbdt", "xgboost")]
    assert recorded.results[0].primary.per_seed == {"42": 0.5, "1379": 0.5, "2716": 0.5}
