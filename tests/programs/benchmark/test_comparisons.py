import inspect

import numpy as np
import pytest
from scipy import stats as scipy_stats

import factories
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.core.request import Part, Repeat
from boosters_eval.metrics import RESOURCES
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.comparisons import choose_best, compare_rows, observe, value_of
from boosters_eval.programs.benchmark.records import BenchmarkError, RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.runners.result import SplitFacts
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.significance import compare_pair


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
        Repeat(1, 3): Observation(0.51, **facts, resolution=0.0, part=Part(1, 3)),
        Repeat(2): Observation(0.52, resolution=0.0),
    }
    assert not side.repeated


def test_windows_of_time_are_no_parts_of_a_partition():
    window = result(1, fold=3, split=SplitFacts(kind="time", column="date"))
    assert [one.part for one in observe([window, result(2, part=Part(1, 4))], "rmse").values()] == [None, Part(1, 4)]


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


BASE = np.array([0.50, 0.53, 0.47, 0.51, 0.49, 0.52])


def rows(library, config="toy/gbdt", shift=0.0, count=6, *, noise=1e-4, metric="rmse", digest="split"):
    rng = np.random.default_rng(sum(map(ord, library + config)))
    return [
        factories.result(
            config,
            library,
            seed,
            BASE[seed] + shift + rng.normal(0, noise),
            metric=metric,
            train_time_s=1.0 + shift + rng.uniform(0, 0.01),
            split_digest=f"{digest}{seed}",
        )
        for seed in range(count)
    ]


def collection(*groups):
    return ResultCollection([row for group in groups for row in group])


def test_best_names_the_winner_of_each_config():
    made = collection(
        rows("a"),
        rows("b", shift=0.1),
        rows("a", "other/gbdt", shift=0.1),
        rows("b", "other/gbdt"),
    ).best("rmse")
    assert list(made["config"]) == ["toy/gbdt", "other/gbdt"]
    assert list(made["best"]) == ["a", "b"]
    assert list(made["dataset"]) == ["toy", "other"]
    assert list(made["booster"]) == ["gbdt", "gbdt"]
    assert list(made["n"]) == [6, 6]


def test_best_knows_the_direction_of_the_metric():
    made = collection(rows("a", metric="auc"), rows("b", shift=0.1, metric="auc"))
    assert list(made.best("auc")["best"]) == ["b"]
    assert list(made.best("train_time_s")["best"]) == ["a"]


def test_best_marks_a_lead_that_is_not_significant_as_a_tie():
    made = collection(rows("a", noise=0.05), rows("b", noise=0.05), rows("c", shift=2.0)).best("rmse")
    (row,) = made.to_dict("records")
    assert row["best"] == "tie"
    assert {row["leader"], *row["tied"]} == {"a", "b"}


def test_best_calls_equivalent_libraries_a_tie():
    assert list(collection(rows("a"), rows("b")).best("rmse")["best"]) == ["tie"]


def test_best_says_n_too_small_instead_of_tie():
    (row,) = collection(rows("a", count=1), rows("b", shift=0.1, count=1)).best("rmse").to_dict("records")
    assert row["best"] == "n too small"
    assert "One split only" in row["note"]
    made = collection(rows("a", count=5), rows("b", shift=0.1, count=5))
    assert list(made.best("rmse", test="wilcoxon")["best"]) == ["n too small"]


def test_best_says_not_comparable_when_the_splits_differ():
    (row,) = collection(rows("a"), rows("b", shift=0.1, digest="other")).best("rmse").to_dict("records")
    assert row["best"] == "not comparable"
    assert "splits differ" in row["note"]


def test_best_takes_the_only_library_for_what_it_is():
    (row,) = collection(rows("a")).best("rmse").to_dict("records")
    assert (row["best"], row["note"]) == ("a", "The only library.")


def test_best_by_the_rfcs_rule():
    made = collection(rows("a"), rows("b", shift=0.03))
    assert list(made.best("rmse")["best"]) == ["a"]
    assert list(made.best("rmse", test="welch")["best"]) == ["tie"]
    assert list(collection(rows("a"), rows("b", shift=0.5)).best("rmse", test="welch")["best"]) == ["a"]


def test_the_level_is_used_whether_it_is_named_or_not():
    made = collection(rows("a", noise=0.02), rows("b", shift=0.03, noise=0.02))
    strict, lax = (list(made.best("rmse", level)["best"]) for level in (1e-6, 0.3))
    assert (strict, lax) == (["tie"], ["a"])
    assert list(made.best("rmse", alpha=1e-6)["best"]) == strict


def test_without_a_level_the_one_of_the_run_is_used():
    made = collection(rows("a"), rows("b", shift=0.03))
    _, p_value = made.is_significant("a", "b", "rmse")
    assert made.is_significant("a", "b", "rmse")[0] is True
    made.metadata = RunMetadata(alpha=p_value / 2)
    assert made.is_significant("a", "b", "rmse") == (False, p_value)
    assert list(made.best("rmse")["best"]) == ["tie"]
    assert made.is_significant("a", "b", "rmse", 0.05) == (True, p_value)


def test_best_and_significance_share_their_default_test_with_the_tables():
    defaults = [
        inspect.signature(method).parameters[name].default
        for method in (ResultCollection.best, ResultCollection.is_significant, ResultCollection.to_markdown)
        for name in ("alpha", "test")
    ]
    assert defaults == [None, "rows"] * 3


def test_best_counts_a_metric_that_a_result_lacks_as_absent():
    a = rows("a")
    a[5] = a[5].model_copy(update={"metrics": {"mae": 1.0}})
    (row,) = collection(a, rows("b", shift=0.1)).best("rmse").to_dict("records")
    assert (row["best"], row["n"]) == ("a", 5)
    assert "The mean is over the 5 of 6 splits that all libraries have" in row["note"]


def test_best_says_when_no_split_is_shared():
    (row,) = collection(rows("a")[:3], rows("b")[3:]).best("rmse").to_dict("records")
    assert row["best"] == "not comparable"
    assert "no split that all libraries have" in row["note"]


def test_is_significant_offers_welchs_test_across_seeds():
    a, b = rows("a"), rows("b", shift=0.03)
    expected = scipy_stats.ttest_ind(
        [row.metrics["rmse"] for row in a], [row.metrics["rmse"] for row in b], equal_var=False
    ).pvalue
    made = collection(a, b)
    answer = made.is_significant("a", "b", "rmse", test="welch")
    assert answer == (True, pytest.approx(expected))
    assert isinstance(answer[0], bool)
    assert made.is_significant("a", "b", "rmse", alpha=expected / 2, test="welch")[0] is False
    assert made.is_significant("a", "b", "rmse")[1] < expected


def test_is_significant_is_the_corrected_test_unless_told():
    a, b = rows("a"), rows("b", shift=0.03)
    scores = ([row.metrics["rmse"] for row in side] for side in (a, b))
    expected = compare_pair(*scores, higher_is_better=False, test_train_ratio=0.25)
    assert collection(a, b).is_significant("a", "b", "rmse") == (True, expected.p_value)


def test_is_significant_gives_a_true_p_value_even_without_variance_or_seeds():
    made = collection(rows("a"), [row.model_copy(update={"library": "b"}) for row in rows("a")])
    assert made.is_significant("a", "b", "rmse") == (False, 1.0)
    one = collection(rows("a", count=1), rows("b", count=1))
    assert one.is_significant("a", "b", "rmse") == one.is_significant("a", "b", "rmse", test="welch") == (False, 1.0)


def test_is_significant_never_pools_configs():
    made = collection(rows("a"), rows("b"), rows("a", "other/gbdt"), rows("b", "other/gbdt"))
    with pytest.raises(ConfigError, match="2 configs"):
        made.is_significant("a", "b", "rmse")
    assert made.is_significant("a", "b", "rmse", config="toy/gbdt")[0] is False
    assert made.is_significant("a", "b", "rmse", dataset="other")[0] is False


def test_is_significant_refuses_what_cannot_be_compared():
    made = collection(rows("a"), rows("b", digest="other"))
    with pytest.raises(ConfigError, match="splits differ"):
        made.is_significant("a", "b", "rmse")
    with pytest.raises(ConfigError, match="Got none"):
        made.is_significant("a", "a", "rmse")


def test_unknown_names_are_told():
    made = collection(rows("alpha"), rows("beta"))
    with pytest.raises(UnknownNameError, match="Did you mean 'alpha'"):
        made.is_significant("alhpa", "beta", "rmse")
    with pytest.raises(UnknownNameError, match="Unknown metric 'mae'"):
        made.best("mae")
    with pytest.raises(UnknownNameError):
        made.best("no such metric")
    with pytest.raises(UnknownNameError, match="Did you mean 'rmse'"):
        choose_best(made.results, "rmsee", higher_is_better=False, alpha=0.05, test="corrected")
    with pytest.raises(UnknownNameError, match="Did you mean 'welch'"):
        made.best("rmse", test="welsh")
