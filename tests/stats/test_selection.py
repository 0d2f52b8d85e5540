import numpy as np
import pytest
from scipy import stats as scipy_stats

from boosters_eval.benchmark.results import BenchmarkResult, ResultCollection
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.metrics.task import Task

BASE = np.array([0.50, 0.53, 0.47, 0.51, 0.49, 0.52])


def rows(library, config="toy/gbdt", shift=0.0, count=6, *, noise=1e-4, metric="rmse", digest="split"):
    rng = np.random.default_rng(sum(map(ord, library + config)))
    dataset, booster = config.split("/")
    return [
        BenchmarkResult(
            config_name=config,
            dataset_name=dataset,
            booster_type=booster,
            library=library,
            seed=seed,
            task=Task.REGRESSION,
            metrics={metric: BASE[seed] + shift + rng.normal(0, noise)},
            train_time_s=1.0 + shift + rng.uniform(0, 0.01),
            n_train=80,
            n_valid=20,
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
    assert list(made.best("rmse", method="wilcoxon")["best"]) == ["n too small"]


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
    assert list(made.best("rmse", method="welch")["best"]) == ["tie"]
    assert list(collection(rows("a"), rows("b", shift=0.5)).best("rmse", method="welch")["best"]) == ["a"]


def test_the_significance_level_is_used():
    made = collection(rows("a", noise=0.02), rows("b", shift=0.03, noise=0.02))
    strict, lax = (list(made.best("rmse", level)["best"]) for level in (1e-6, 0.3))
    assert (strict, lax) == (["tie"], ["a"])


def test_is_significant_is_welchs_test_across_seeds():
    a, b = rows("a"), rows("b", shift=0.03)
    expected = scipy_stats.ttest_ind(
        [row.metrics["rmse"] for row in a], [row.metrics["rmse"] for row in b], equal_var=False
    ).pvalue
    made = collection(a, b)
    answer = made.is_significant("a", "b", "rmse")
    assert answer == (True, pytest.approx(expected))
    assert isinstance(answer[0], bool)
    assert made.is_significant("a", "b", "rmse", alpha=expected / 2)[0] is False
    assert made.is_significant("a", "b", "rmse", method="corrected")[1] < expected


def test_is_significant_gives_a_true_p_value_even_without_variance_or_seeds():
    made = collection(rows("a"), [row.model_copy(update={"library": "b"}) for row in rows("a")])
    assert made.is_significant("a", "b", "rmse", method="corrected") == (False, 1.0)
    assert collection(rows("a", count=1), rows("b", count=1)).is_significant("a", "b", "rmse") == (False, 1.0)


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
