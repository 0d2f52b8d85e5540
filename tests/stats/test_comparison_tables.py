from dataclasses import replace

import numpy as np
import pytest

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.core.request import Repeat
from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.observations import Side
from boosters_eval.stats.significance import Criteria, compare_pair
from boosters_eval.stats.tables import compare_sides, compare_table


@pytest.fixture
def table(make):
    """Compare sides, given by their name's shift or as observations."""

    def build(*, metric="rmse", **given):
        options = {name: given.pop(name) for name in list(given) if name not in "abc"}
        sides = {
            name: make.named(name, side) if isinstance(side, (int, float)) else side for name, side in given.items()
        }
        return compare_table(sides, metric=metric, **{"higher_is_better": False, **options})

    return build


def values(side):
    return [one.value for one in side.values()]


def test_pairs_meet_on_their_repeat_whatever_the_order(make, table):
    a, b = make.named("a"), make.named("b", 0.05)
    made = table(a=a, b=dict(reversed(b.items())))
    expected = compare_pair(values(a), values(b), higher_is_better=False, test_train_ratio=0.25)
    assert made.get("a", "b") == expected
    assert made.get("b", "a") == expected.flipped()


def test_folds_of_one_seed_are_pairs_of_their_own(make, table):
    def folds(name, shift):
        return {Repeat(1, repeat.seed): one for repeat, one in make.named(name, shift, count=5).items()}

    made = table(a=folds("a", 0.0), b=folds("b", 0.05))
    assert made.get("a", "b").n == 5
    assert made.winner == "a"


def test_the_tests_of_a_table_share_its_level(table):
    made = table(a=0.0, b=0.004, c=0.05)
    pairs = list(made.pairs.values())
    assert len(pairs) == 3
    assert [pair.p_adjusted for pair in pairs] == [min(1.0, 3 * pair.p_value) for pair in pairs]
    alone = table(a=0.0, b=0.004, alpha=0.05 / 3).get("a", "b")
    assert (made.get("a", "b").interval, made.get("a", "b").min_detectable) == (alone.interval, alone.min_detectable)


def test_identical_predictions_are_equivalent_on_however_few_rows(make, table):
    rows = {"n_valid": 30, "resolution": 1 / 30, "predictions_digest": "p"}
    same = make.side([0.9] * 3, **rows)
    pair = table(a=same, b=same).get("a", "b")
    assert (pair.verdict, pair.interval) == ("equivalent", (0.0, 0.0))
    assert pair.note == "Identical predictions in all 3 splits."
    assert table(a=same, b=dict(reversed(same.items())), test="welch").get("a", "b") == replace(pair, test="welch")


@pytest.mark.parametrize("digests", [(None, None), ("p", None), ("p", "q")])
def test_identical_scores_are_not_enough_where_predictions_differ_or_are_not_known(digests, make, table):
    a, b = (make.side([0.9] * 3, n_valid=30, resolution=1 / 30, predictions_digest=digest) for digest in digests)
    assert table(a=a, b=b).get("a", "b").verdict == "inconclusive"
    a, b = (make.side([0.9] * 3, resolution=None, predictions_digest=digest) for digest in digests)
    assert table(a=a, b=b).get("a", "b").verdict == "inconclusive"


def test_one_split_with_other_predictions_is_enough_to_ask_for_a_test(make, table):
    rows = {"n_valid": 30, "resolution": 1 / 30}
    a = make.side([0.9] * 3, predictions_digest="p", **rows)
    b = {**a, Repeat(2): make.observation(2, 0.9, predictions_digest="q", **rows)}
    assert table(a=a, b=b).get("a", "b").verdict == "inconclusive"


def test_the_winner_is_better_than_every_other(table):
    assert table(a=0.0, b=0.05, c=0.05).winner == "a"
    assert table(a=0.0, b=0.0001, c=0.05).winner is None
    assert table(a=0.0, b=0.05, higher_is_better=True).winner == "b"


def test_the_tied_are_those_that_the_leader_does_not_beat(table):
    made = table(a=0.0, b=0.0001, c=0.05)
    assert made.leader == "a"
    assert made.tied == ["a", "b"]


def test_alone_nobody_wins(table):
    made = table(a=0.0)
    assert (made.winner, made.leader, made.tied) == (None, "a", ["a"])


@pytest.mark.parametrize("sides", [{}, {"a": {}}])
def test_without_observations_there_is_nothing_to_compare(sides, table):
    empty = table(**sides)
    assert (empty.winner, empty.leader, empty.tied, dict(empty.pairs)) == (None, None, [], {})


def test_the_leader_is_found_on_the_splits_that_all_have(make, table):
    easy = {repeat: one for repeat, one in make.named("b", 0.01).items() if one.value < 0.51}
    made = table(a=0.0, b=easy)
    assert made.summaries["b"].mean < made.summaries["a"].mean
    assert made.leader == "a"
    assert (made.shared.n, made.shared.total) == (len(easy), 6)


def test_without_a_common_split_the_leader_is_the_best_mean_and_nobody_wins(make, table):
    first, last = dict([*make.named("a", 0.05).items()][:3]), dict([*make.named("b").items()][3:])
    made = table(a=first, b=last)
    assert (made.leader, made.winner, made.shared.n) == ("b", None, 0)


def test_different_splits_are_refused_without_a_p_value(make, table):
    made = table(a=0.0, b=make.named("b", 0.05, split_digest="other"))
    pair = made.get("a", "b")
    assert (pair.verdict, pair.p_value, pair.n) == ("inconclusive", None, 0)
    assert pair.note == "The splits differ for seed 0: the results cannot be compared."
    assert made.winner is None


def test_a_split_that_differs_is_named_with_its_fold(make, table):
    a, b = ({Repeat(1, 3): make.observation(1, 0.5, split_digest=digest)} for digest in ("x", "y"))
    assert "differ for seed 1, fold 3:" in table(a=a, b=b).get("a", "b").note


def test_different_data_are_refused_even_for_welch(make, table):
    made = table(a=0.0, b=make.named("b", 0.05, data_digest="new"), test="welch")
    assert made.get("a", "b").note == "The results were made on different data."
    assert made.winner is None


def test_repeats_without_any_match_are_refused(make, table):
    moved = {Repeat(repeat.seed + 100): one for repeat, one in make.named("b", 0.05).items()}
    pair = table(a=0.0, b=moved).get("a", "b")
    assert (pair.p_value, pair.note) == (None, "Unmatched seeds: the two sides share no split.")
    assert table(a=0.0, b=moved, test="welch").get("a", "b").p_value is not None


def test_a_failed_repeat_is_left_out_on_both_sides_and_counted(make, table):
    pair = table(a=0.0, b=make.named("b", 0.05, count=5)).get("a", "b")
    assert pair.n == 5
    assert "1 result(s) without a partner" in pair.note


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
def test_a_value_that_is_not_finite_blocks_the_comparison_and_the_win(bad, make, table):
    broken = {**make.named("a"), Repeat(5): make.observation(5, bad)}
    made = table(a=broken, b=0.05, c=0.06)
    pair = made.get("a", "b")
    assert (pair.verdict, pair.p_value) == ("inconclusive", None)
    assert pair.note == "rmse of a is not a finite number for seed 5."
    assert (made.summaries["a"].n, made.summaries["a"].interval, made.winner) == (6, None, None)


def test_a_repeat_that_was_given_twice_is_refused(make, table):
    twice = Side([*make.named("a").items(), *make.named("a").items()])
    made = table(a=twice, b=0.0)
    pair = made.get("a", "b")
    assert (pair.verdict, pair.n, pair.p_value) == ("inconclusive", 0, None)
    assert pair.note == "a has more than one result for the same seed and fold."
    assert made.summaries["a"].interval is None


def test_seeds_on_one_official_split_are_one_observation(make, table):
    fixed = {"split_digest": "official"}
    pair = table(a=make.named("a", **fixed), b=make.named("b", 0.05, **fixed)).get("a", "b")
    assert (pair.n, pair.verdict, pair.p_value) == (1, "inconclusive", None)
    assert "6 seeds share 1 distinct split(s)" in pair.note


def test_values_on_the_same_split_are_averaged_before_the_corrected_test(make, table):
    def shared(name, shift):
        halves = {repeat: repeat.seed // 2 for repeat in make.named(name)}
        return {
            repeat: make.observation(half, make.named(name, shift)[repeat].value) for repeat, half in halves.items()
        }

    a, b = shared("a", 0.0), shared("b", 0.05)
    left, right = (np.asarray(values(side)).reshape(3, 2).mean(axis=1) for side in (a, b))
    expected = compare_pair(left, right, higher_is_better=False, test_train_ratio=0.25)
    pair = table(a=a, b=b).get("a", "b")
    assert (pair.n, pair.p_value, pair.interval) == (3, expected.p_value, expected.interval)
    assert table(a=a, b=b, test="paired").get("a", "b").n == 6


def test_the_real_sizes_of_the_splits_enter_the_test(make, table):
    wide = table(a=make.named("a", n_valid=800), b=make.named("b", 0.05, n_valid=800)).get("a", "b")
    narrow = table(a=make.named("a", n_valid=80), b=make.named("b", 0.05, n_valid=80)).get("a", "b")
    assert np.ptp(wide.interval) > 1.5 * np.ptp(narrow.interval)


@pytest.mark.parametrize("unknown", [{"n_train": None, "n_valid": None}, {"n_valid": 0}, {"n_train": -5}])
def test_unknown_sizes_are_assumed_and_said(unknown, make, table):
    pair = table(a=make.named("a", **unknown), b=make.named("b", 0.05, **unknown)).get("a", "b")
    assert pair.p_value == table(a=0.0, b=0.05).get("a", "b").p_value
    assert "80 % training" in pair.note


def test_times_are_compared_by_ratio_and_paired_by_repeat(make, table):
    times = {"a": make.side(1.0 + 0.1 * np.arange(6)), "b": make.side(2.05 + 0.2 * np.arange(6))}
    made = table(**times, metric="train_time_s", as_ratio=True)
    pair = made.get("a", "b")
    assert (made.winner, pair.test, pair.verdict) == ("a", "paired", "better")
    assert pair.ratio == pytest.approx(0.5, abs=0.02)
    assert table(**times, metric="train_time_s", as_ratio=True, test="welch").get("a", "b").ratio is None
    assert table(**times, metric="train_time_s").get("a", "b").ratio is None


def test_a_time_of_zero_is_refused(make, table):
    times = {"a": make.side(np.arange(6)), "b": make.side(np.ones(6))}
    pair = table(**times, metric="train_time_s", as_ratio=True).get("a", "b")
    assert pair.note == "train_time_s of a is not positive for seed 0."


def test_the_rfc_rule_wants_intervals_apart_and_welch_below_alpha(table):
    apart = table(a=0.0, b=0.2, test="welch")
    assert apart.winner == "a"
    assert apart.summaries["a"].interval[1] < apart.summaries["b"].interval[0]
    # Welch alone rejects here, but the intervals overlap.
    close = table(a=0.0, b=0.03, test="welch")
    assert close.get("a", "b").p_value < 0.05
    assert close.winner is None
    assert close.tied == ["a", "b"]


def test_the_rfc_rule_has_no_winner_from_one_seed(make, table):
    assert table(a=make.named("a", count=1), b=make.named("b", 0.2, count=1), test="welch").winner is None


def test_summaries_show_mean_deviation_and_n(make, table):
    made = table(a=0.0, b=make.named("b", count=1))
    numbers = np.asarray(values(make.named("a")))
    assert made.summaries["a"].mean == pytest.approx(numbers.mean())
    assert made.summaries["a"].std == pytest.approx(numbers.std(ddof=1))
    assert (made.summaries["b"].std, made.summaries["b"].n, made.summaries["b"].interval) == (None, 1, None)


def test_criteria_that_mean_nothing_are_refused(table):
    with pytest.raises(UnknownNameError, match="Did you mean 'welch'"):
        table(a=0.0, b=0.05, test="welsh")
    with pytest.raises(StatisticsInputError, match="alpha"):
        table(a=0.0, b=0.05, alpha=5)
    with pytest.raises(StatisticsInputError, match="rope"):
        table(a=0.0, b=0.05, rope=-1)


def test_two_values_have_a_deviation(make, table):
    found = table(a=make.side([1.0, 3.0]), b=make.side([2.0, 2.5])).summaries["a"]
    assert (found.mean, found.n) == (2.0, 2)
    assert found.std == pytest.approx(np.sqrt(2))
    assert found.interval is not None


def test_sides_are_compared_by_their_difference_unless_a_ratio_is_asked_for(make, table):
    a, b = make.named("a"), make.named("b", 0.05)
    criteria = Criteria(higher_is_better=False)
    assert compare_sides(a, b, metric="rmse", criteria=criteria) == table(a=a, b=b).get("a", "b")
    by_ratio = compare_sides(a, b, metric="train_time_s", criteria=replace(criteria, test="paired"), as_ratio=True)
    assert by_ratio.ratio is not None
    twice = Side([*b.items(), *b.items()])
    told = compare_sides(a, twice, metric="rmse", criteria=criteria).note
    assert told == "b has more than one result for the same seed and fold."


def test_the_rule_of_a_table_decides_what_welchs_test_says(table):
    """Intervals that overlap decide nothing, whatever the p-value; where they do not, the better mean does."""
    apart = table(a=0.0, b=0.2, test="welch")
    assert (apart.ruled("a", "b").verdict, apart.ruled("b", "a").verdict) == ("better", "worse")
    overlapping = table(a=0.0, b=0.037, test="welch")
    assert overlapping.get("a", "b").verdict == "better"
    for pair in (overlapping.ruled("a", "b"), overlapping.ruled("b", "a")):
        assert (pair.verdict, pair.p_value) == ("inconclusive", overlapping.get("a", "b").p_value)
        assert pair.note == "By the RFC's rule nothing is decided: the intervals of the two means overlap."
    unclear = table(a=0.0, b=0.001, test="welch")
    assert unclear.ruled("a", "b") == unclear.get("a", "b")
    assert unclear.get("a", "b").verdict == "inconclusive"
    plain = table(a=0.0, b=0.2)
    assert plain.ruled("b", "a") == plain.get("b", "a")
