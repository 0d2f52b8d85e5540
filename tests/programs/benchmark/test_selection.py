import inspect

import numpy as np
import pytest
from scipy import stats as scipy_stats

import factories
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.programs.benchmark.records import RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.selection import best_frame, rank_results
from boosters_eval.stats.ranks import rank
from boosters_eval.stats.significance import compare_pair

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
    assert defaults == [None, "corrected"] * 3


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
        best_frame(made.results, "rmsee", higher_is_better=False, alpha=0.05, test="corrected")
    with pytest.raises(UnknownNameError, match="Did you mean 'welch'"):
        made.best("rmse", test="welsh")


rng = np.random.default_rng(4)
SCALE = {f"d{i}": 10.0 ** (i - 5) for i in range(12)}
SCORES = {
    name: {"c": 1.1 * scale, "a": scale * (1 + 0.01 * rng.normal()), "b": scale * (1 + 0.01 * rng.normal())}
    for name, scale in SCALE.items()
}


def result(library, dataset, seed, value, *, metric="rmse", config=None):
    scores = {metric: value, "other": 1.0}
    name = config or f"{dataset}/gbdt"
    return factories.result(name, library, seed, metric=metric, metrics=scores, dataset_name=dataset)


def test_a_ranking_takes_means_over_seeds_of_the_primary_metric():
    rows = [
        result(library, name, seed, value + (seed - 1) * 0.001 * SCALE[name])
        for name, row in SCORES.items()
        for library, value in row.items()
        for seed in range(3)
    ]
    rows += [
        result("a", "binary", 0, 0.9, metric="auc"),
        result("b", "binary", 0, 0.8, metric="auc"),
        result("c", "binary", 0, 0.7, metric="auc"),
    ]
    made = rank_results(rows, direction=lambda metric: metric == "auc")
    expected = rank({**SCORES, "binary": {"a": -0.9, "b": -0.8, "c": -0.7}}, higher_is_better=False)
    assert made.average_ranks == expected.average_ranks
    assert made.n == 13
    assert rank_results(rows, direction=lambda metric: False, metric="rmse").n == 12


def test_a_ranking_takes_only_the_seeds_that_every_library_has():
    rows = [result("a", f"d{i}", seed, 1.0 + 4 * (seed > 1)) for i in range(7) for seed in range(4)]
    rows += [result("b", f"d{i}", seed, 1.2) for i in range(7) for seed in range(2)]
    rows += [result("a", "apart", 0, 1.0), result("b", "apart", 1, 1.0)]
    made = rank_results(rows, direction=lambda metric: False)
    assert made.average_ranks == {"a": 1.0, "b": 2.0}
    assert made.partial == {f"d{i}": "2 of 4" for i in range(7)}
    assert (made.n, made.left_out) == (7, ("apart",))


def test_a_ranking_refuses_two_configs_of_one_data_set():
    rows = [result("a", "d", 0, 1.0), result("a", "d", 0, 1.0, config="d/gblinear")]
    with pytest.raises(ConfigError, match="d/gbdt and d/gblinear for d"):
        rank_results(rows, direction=lambda metric: False)
