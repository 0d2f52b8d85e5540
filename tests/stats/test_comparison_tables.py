import numpy as np
import pytest

from boosters_eval.benchmark.results import BenchmarkResult
from boosters_eval.core.errors import UnknownNameError
from boosters_eval.metrics.task import Task
from boosters_eval.stats.inference import StatisticsInputError, holm
from boosters_eval.stats.significance import compare_pair
from boosters_eval.stats.tables import compare_table, winner

BASE = np.array([0.50, 0.53, 0.47, 0.51, 0.49, 0.52])
NOISE = {
    "a": np.array([1, -2, 0, 3, -1, 2]) * 1e-4,
    "b": np.array([0, 1, -3, 1, 2, -2]) * 1e-4,
    "c": np.array([2, 0, 1, -1, 0, -3]) * 1e-4,
}


def result(library, seed, value, **fields):
    metrics = {} if value is None else {"rmse": value}
    defaults = {"n_train": 800, "n_valid": 200, "split_digest": f"split{seed}", "data_digest": "data"}
    return BenchmarkResult(
        config_name="toy/gbdt",
        library=library,
        seed=seed,
        task=Task.REGRESSION,
        metrics=metrics,
        **{**defaults, **fields},
    )


def library(name, shift=0.0, count=6, **fields):
    return [result(name, seed, BASE[seed] + NOISE[name][seed] + shift, **fields) for seed in range(count)]


def table(*groups, metric="rmse", **options):
    rows = [row for group in groups for row in group]
    return compare_table(rows, metric, **{"higher_is_better": False, **options})


def test_pairs_meet_on_their_seed_whatever_the_order():
    made = table(library("a"), library("b", 0.05)[::-1])
    a = [row.metrics["rmse"] for row in library("a")]
    b = [row.metrics["rmse"] for row in library("b", 0.05)]
    expected = compare_pair(a, b, higher_is_better=False, test_train_ratio=0.25)
    assert made.get("a", "b") == expected
    assert made.get("b", "a") == expected.flipped()


def test_folds_of_one_seed_are_pairs_of_their_own():
    rows = [
        result(name, 1, BASE[fold] + NOISE[name][fold] + shift, fold=fold, split_digest=f"f{fold}")
        for name, shift in (("a", 0.0), ("b", 0.05))
        for fold in range(5)
    ]
    assert table(rows).get("a", "b").n == 5
    assert table(rows).winner == "a"


def test_holm_is_over_the_comparisons_of_the_table():
    made = table(library("a"), library("b", 0.004), library("c", 0.05))
    pairs = list(made.pairs.values())
    assert len(pairs) == 3
    assert [pair.p_adjusted for pair in pairs] == holm([pair.p_value for pair in pairs])
    assert any(pair.p_adjusted > pair.p_value for pair in pairs)


def test_the_winner_is_better_than_every_other():
    assert table(library("a"), library("b", 0.05), library("c", 0.05)).winner == "a"
    assert table(library("a"), library("b", 0.0001), library("c", 0.05)).winner is None
    assert table(library("a"), library("b", 0.05), higher_is_better=True).winner == "b"
    assert winner([*library("a"), *library("b", 0.05)], "rmse", higher_is_better=False) == "a"


def test_the_tied_are_those_that_the_leader_does_not_beat():
    made = table(library("a"), library("b", 0.0001), library("c", 0.05))
    assert made.leader == "a"
    assert made.tied == ["a", "b"]


def test_alone_nobody_wins():
    made = table(library("a"))
    assert (made.winner, made.leader, made.tied) == (None, "a", ["a"])
    empty = table([])
    assert (empty.winner, empty.leader, empty.tied, dict(empty.pairs)) == (None, None, [], {})


def test_the_leader_is_found_on_the_splits_that_all_have():
    easy = [row for row in library("b", 0.01) if row.metrics["rmse"] < 0.51]
    made = table(library("a"), easy)
    assert made.summaries["b"].mean < made.summaries["a"].mean
    assert made.leader == "a"
    assert (made.shared.n, made.shared.total) == (len(easy), 6)


def test_without_a_common_split_the_leader_is_the_best_mean_and_nobody_wins():
    made = table(library("a", 0.05)[:3], library("b")[3:])
    assert (made.leader, made.winner, made.shared.n) == ("b", None, 0)


def test_different_splits_are_refused_without_a_p_value():
    made = table(library("a"), library("b", 0.05, split_digest="other"))
    pair = made.get("a", "b")
    assert (pair.verdict, pair.p_value, pair.n) == ("inconclusive", None, 0)
    assert pair.note == "The splits differ for seed 0: the results cannot be compared."
    assert made.winner is None


def test_different_data_are_refused_even_for_welch():
    made = table(library("a"), library("b", 0.05, data_digest="new"), method="welch")
    assert made.get("a", "b").note == "The results were made on different data."
    assert made.winner is None


def test_seeds_without_any_match_are_refused():
    moved = [row.model_copy(update={"seed": row.seed + 100}) for row in library("b", 0.05)]
    pair = table(library("a"), moved).get("a", "b")
    assert (pair.p_value, pair.note) == (None, "Unmatched seeds: the two libraries share no split.")


def test_a_failed_seed_is_left_out_on_both_sides_and_counted():
    pair = table(library("a"), library("b", 0.05, count=5)).get("a", "b")
    assert pair.n == 5
    assert "1 result(s) without a partner" in pair.note


def test_a_result_without_the_metric_counts_as_absent():
    pair = table([*library("a", count=5), result("a", 5, None)], library("b", 0.05)).get("a", "b")
    assert pair.n == 5


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
def test_a_score_that_is_no_number_blocks_the_comparison_and_the_win(bad):
    made = table([*library("a", count=5), result("a", 5, bad)], library("b", 0.05), library("c", 0.06))
    pair = made.get("a", "b")
    assert (pair.verdict, pair.p_value) == ("inconclusive", None)
    assert pair.note == "rmse of a is not a finite number for seed 5."
    assert made.winner is None


def test_two_results_for_one_seed_are_refused():
    pair = table([*library("a"), *library("a")], library("b")).get("a", "b")
    assert pair.note == "a has more than one result for the same seed and fold."


def test_seeds_on_one_official_split_are_one_observation():
    fixed = {"split_digest": "official"}
    pair = table(library("a", **fixed), library("b", 0.05, **fixed)).get("a", "b")
    assert (pair.n, pair.verdict, pair.p_value) == (1, "inconclusive", None)
    assert "6 seeds share 1 distinct split(s)" in pair.note


def test_the_real_sizes_of_the_splits_enter_the_test():
    wide = table(library("a", n_valid=800), library("b", 0.05, n_valid=800)).get("a", "b")
    narrow = table(library("a", n_valid=80), library("b", 0.05, n_valid=80)).get("a", "b")
    assert np.ptp(wide.interval) > 1.5 * np.ptp(narrow.interval)


def test_unknown_sizes_are_assumed_and_told():
    unknown = {"n_train": None, "n_valid": None}
    pair = table(library("a", **unknown), library("b", 0.05, **unknown)).get("a", "b")
    told = table(library("a"), library("b", 0.05)).get("a", "b")
    assert pair.p_value == told.p_value
    assert "80 % training" in pair.note


def test_times_are_compared_by_ratio_and_paired_by_seed():
    a = [row.model_copy(update={"train_time_s": 1.0 + 0.1 * row.seed}) for row in library("a")]
    b = [row.model_copy(update={"train_time_s": 2.05 + 0.2 * row.seed}) for row in library("b")]
    made = table(a, b, metric="train_time_s")
    pair = made.get("a", "b")
    assert (made.winner, pair.method, pair.verdict) == ("a", "paired", "better")
    assert pair.ratio == pytest.approx(0.5, abs=0.02)
    assert table(a, b, metric="train_time_s", method="welch").get("a", "b").ratio is None


def test_a_time_of_zero_is_refused():
    a = [row.model_copy(update={"train_time_s": float(row.seed)}) for row in library("a")]
    b = [row.model_copy(update={"train_time_s": 1.0}) for row in library("b")]
    assert table(a, b, metric="train_time_s").get("a", "b").note == "train_time_s of a is not positive for seed 0."


def test_the_rfc_rule_wants_intervals_apart_and_welch_below_alpha():
    apart = table(library("a"), library("b", 0.2), method="welch")
    assert apart.winner == "a"
    assert apart.summaries["a"].interval[1] < apart.summaries["b"].interval[0]
    # Welch alone rejects here, but the intervals overlap.
    close = table(library("a"), library("b", 0.03), method="welch")
    assert close.get("a", "b").p_value < 0.05
    assert close.winner is None
    assert close.tied == ["a", "b"]


def test_the_rfc_rule_has_no_winner_from_one_seed():
    assert table(library("a", count=1), library("b", 0.2, count=1), method="welch").winner is None


def test_summaries_show_mean_deviation_and_n():
    made = table(library("a"), library("b", count=1))
    values = BASE + NOISE["a"]
    assert made.summaries["a"].mean == pytest.approx(values.mean())
    assert made.summaries["a"].std == pytest.approx(values.std(ddof=1))
    assert (made.summaries["b"].std, made.summaries["b"].n, made.summaries["b"].interval) == (None, 1, None)


def test_one_table_is_one_config():
    other = [row.model_copy(update={"config_name": "other"}) for row in library("b")]
    with pytest.raises(StatisticsInputError, match="must be of one config"):
        table(library("a"), other)


def test_an_unknown_metric_gets_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'rmse'"):
        table(library("a"), metric="rmsee")
