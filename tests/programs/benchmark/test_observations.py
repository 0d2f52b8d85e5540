import pytest

import factories
from boosters_eval.core.repeat import Repeat
from boosters_eval.metrics import RESOURCES
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.observations import compare_rows, observe, value_of
from boosters_eval.programs.benchmark.records import BenchmarkError
from boosters_eval.stats.observations import Observation


def result(seed, metrics=None, **fields):
    scores = metrics or {"rmse": 0.5 + seed / 100}
    unknown = dict.fromkeys(("n_train", "n_valid", "split_digest", "data_digest"))
    return factories.result(library="a", seed=seed, metrics=scores, **{**unknown, **fields})


def test_an_outcome_of_any_kind_knows_its_repeat():
    failed = BenchmarkError(
        config_name="toy/gbdt", library="a", seed=1, fold=2, task=Task.REGRESSION, error_type="E", error_message="m"
    )
    assert (result(7).repeat, failed.repeat) == (Repeat(7), Repeat(1, 2))


def test_a_result_becomes_an_observation_with_all_that_comparing_needs():
    facts = {"split_digest": "s", "n_train": 80, "n_valid": 20, "data_digest": "d", "predictions_digest": "p"}
    side = observe([result(1, fold=3, **facts), result(2)], "rmse")
    assert dict(side) == {
        Repeat(1, 3): Observation(0.51, **facts, resolution=0.0),
        Repeat(2): Observation(0.52, resolution=0.0),
    }
    assert not side.repeated


@pytest.mark.parametrize(
    ("metric", "resolution"),
    [
        ("accuracy", 1 / 20),
        ("accuracy@0.3", 1 / 20),
        ("top_k_accuracy@3", 1 / 20),
        ("logloss", 0.0),
        ("auc_roc", None),
        ("f1", None),
        ("ndcg@10", None),
        ("made up", None),
    ],
)
def test_an_observation_knows_what_its_metric_can_resolve(metric, resolution):
    (one,) = observe([result(1, {metric: 0.5}, n_valid=20)], metric).values()
    assert one.resolution == resolution


def test_without_the_number_of_rows_the_resolution_of_accuracy_is_unknown():
    (one,) = observe([result(1, {"accuracy": 0.5})], "accuracy").values()
    assert one.resolution is None


@pytest.mark.parametrize("name", RESOURCES)
def test_every_measurement_is_a_field_that_can_be_observed(name):
    measured = result(1, **{name: 3.0, "predictions_digest": "p"})  # equal predictions do not take equal time
    assert observe([measured, result(2)], name) == {Repeat(1): Observation(3.0, resolution=0.0)}
    assert value_of(result(2), name) is None


def test_a_result_without_the_metric_is_no_observation():
    assert list(observe([result(1), result(2, {"mae": 1.0})], "rmse")) == [Repeat(1)]


def test_two_results_of_one_repeat_are_noticed_even_if_one_lacks_the_metric():
    assert observe([result(1), result(1)], "rmse").repeated
    assert observe([result(1), result(1, {"mae": 1.0})], "rmse").repeated


def test_measurements_are_compared_by_ratio_and_metrics_are_not():
    rows = {
        name: [result(seed, train_time_s=factor * (1 + seed / 10)) for seed in range(4)]
        for name, factor in (("a", 1.0), ("b", 2.0))
    }
    table = compare_rows(rows, "train_time_s", higher_is_better=False, alpha=0.05)
    assert table.get("b", "a").ratio == pytest.approx(2.0)
    assert compare_rows(rows, "rmse", higher_is_better=False, alpha=0.05).get("a", "b").ratio is None


def test_a_row_without_the_metric_has_no_place_in_the_table():
    rows = {"a": [result(1)], "b": [result(1, {"mae": 1.0})], "c": [result(1)]}
    table = compare_rows(rows, "rmse", higher_is_better=False, alpha=0.05)
    assert list(table.pairs) == [("a", "c")]
