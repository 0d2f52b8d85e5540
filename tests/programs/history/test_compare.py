"""One number in two runs: compared by the right test, or not at all."""

from dataclasses import replace

import numpy as np
import pytest

from boosters_eval.core.request import Part
from boosters_eval.programs.history.compare import NOT_COMPARABLE, compare_series
from boosters_eval.stats.rows import RowScores
from boosters_eval.stats.significance import compare_pair, compare_times
from histories import a_series, an_entry, on_other_splits

SCORES = [0.50, 0.52, 0.48, 0.51, 0.49]
WORSE = [0.55, 0.575, 0.528, 0.562, 0.541]


def slower(series, factor):
    return replace(series, observations=tuple(replace(one, value=factor * one.value) for one in series.observations))


def test_shared_splits_are_paired_by_the_corrected_test():
    found = compare_series(a_series(SCORES), a_series(WORSE))
    assert (found.verdict, found.how, found.paired) == ("worse", "on the same 5 splits", True)
    expected = compare_pair(WORSE, SCORES, higher_is_better=False, test_train_ratio=0.25)
    assert (found.p_value, found.interval) == (expected.p_value, expected.interval)
    assert found.difference == pytest.approx(np.mean(WORSE) - np.mean(SCORES))
    assert compare_series(a_series(WORSE), a_series(SCORES)).verdict == "better"


def test_rows_that_both_runs_kept_decide_where_splits_cannot():
    rng = np.random.default_rng(1)
    then = rng.gamma(2.0, size=1000)
    now = then + 0.015 + 0.1 * rng.normal(size=1000)

    def kept(losses):
        def rows_of(series, one):
            rows = np.arange(one.seed, 1000, 5)
            return RowScores(0, one.seed, 5, rows, losses[rows].mean(), losses[rows])

        return rows_of

    sides = [a_series([losses[seed::5].mean() for seed in range(5)], "mae") for losses in (then, now)]
    by_rows = compare_series(*sides, alpha=0.01, rows=(kept(then), kept(now)))
    by_splits = compare_series(*sides, alpha=0.01)
    assert (by_rows.verdict, by_splits.verdict) == ("worse", "inconclusive")
    assert compare_series(*sides, alpha=0.01, rows=(kept(then), lambda *_: None)) == by_splits


def deal(series, deal_seed=0):
    """The series as if its test sets were the parts of one deal."""
    dealt = (replace(one, part=Part(deal_seed, place)) for place, one in enumerate(series.observations))
    return replace(series, observations=tuple(dealt))


def test_balanced_splits_are_never_compared_with_random_ones():
    before, after = deal(a_series(SCORES)), on_other_splits(a_series(WORSE))
    found = compare_series(before, after)
    assert (found.verdict, found.how) == (NOT_COMPARABLE, "one run has balanced splits, the other one random ones")
    assert compare_series(before, deal(after, 7)).how == "on different splits: none is shared"


def test_disjoint_splits_are_not_corrected_as_if_they_overlapped():
    before, after = a_series(SCORES), a_series(WORSE)
    assert compare_series(deal(before), deal(after)).p_value < compare_series(before, after).p_value


def test_relative_changes_are_relative_to_the_error():
    before, after = (a_series(values, "r2", higher_is_better=True) for values in (SCORES, WORSE))
    found = compare_series(before, after)
    assert found.percent == pytest.approx(100 * found.difference / (1 - np.mean(SCORES)))


def test_a_direction_is_that_of_the_metric():
    before, after = (a_series(values, "r2", higher_is_better=True) for values in (SCORES, WORSE))
    assert compare_series(before, after).verdict == "better"


def test_only_the_splits_that_both_runs_have_are_paired():
    found = compare_series(a_series(SCORES), a_series([*WORSE, 9.0, 9.0]))
    assert (found.how, found.verdict) == ("on the same 5 splits", "worse")
    assert found.after == pytest.approx(np.mean(WORSE))
    assert "2 results on other splits left out." in found.note


def test_other_splits_are_compared_by_welchs_test_widened_and_said():
    before = a_series(SCORES)
    for digest, why in (("other", "none is shared"), (None, "they are not recorded")):
        found = compare_series(before, on_other_splits(a_series(WORSE), digest))
        assert (found.how, found.paired) == (f"on different splits: {why}", False)
        plain = compare_pair(WORSE, SCORES, higher_is_better=False, test="welch")
        assert found.interval[0] < plain.interval[0]
        assert found.interval[1] > plain.interval[1]
        assert found.difference == pytest.approx(plain.difference)


def test_splits_with_more_rows_for_training_are_not_compared():
    """The share of validation rows is a setting, which results files do not hold; the sizes of the splits do."""
    other = on_other_splits(a_series(WORSE), "other")
    smaller = replace(other, observations=tuple(replace(one, n_train=50, n_valid=50) for one in other.observations))
    found = compare_series(a_series(SCORES), smaller)
    assert (found.verdict, found.how) == (NOT_COMPARABLE, "the share of validation rows differs")
    assert compare_series(a_series(SCORES), other).verdict != NOT_COMPARABLE


def test_equal_values_are_equivalent():
    found = compare_series(a_series(SCORES), a_series(SCORES))
    assert (found.verdict, found.difference) == ("identical", 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data_digest": "other"}, "the data differ"),
        ({"settings": "other"}, "the settings differ"),
        ({"higher_is_better": True}, "which direction is better is not known"),
        ({"higher_is_better": None}, "which direction is better is not known"),
    ],
)
def test_what_differs_in_more_than_the_build_is_not_compared(change, reason):
    found = compare_series(a_series(SCORES), a_series(WORSE, **change))
    assert (found.verdict, found.how, found.interval) == (NOT_COMPARABLE, reason, None)


def test_times_are_compared_by_their_ratio_on_one_machine_only():
    times = a_series([1.0, 1.1, 0.9, 1.05, 0.97], "train_time_s")
    later = slower(times, 1.5)
    later = replace(later, observations=(replace(later.observations[0], value=1.49), *later.observations[1:]))
    found = compare_series(times, later)
    expected = compare_times([one.value for one in later.observations], [one.value for one in times.observations])
    assert (found.verdict, found.ratio, found.interval) == ("worse", expected.ratio, expected.interval)
    assert "not interleaved" in found.note
    elsewhere = replace(later, entry=an_entry(1, machine="m2"))
    assert (compare_series(times, elsewhere).verdict, compare_series(times, elsewhere).how) == (
        NOT_COMPARABLE,
        "measured on different machines",
    )
    unfair = replace(later, observations=(replace(later.observations[0], fair=False), *later.observations[1:]))
    assert compare_series(times, unfair).how == "not measured in timing mode on a quiet machine"
    assert (
        compare_series(a_series(SCORES), replace(a_series(WORSE), entry=an_entry(1, machine="m2"))).verdict == "worse"
    )


def test_times_on_other_splits_are_compared_by_their_ratio_too():
    times = a_series([1.0, 1.1, 0.9, 1.05, 0.97], "train_time_s")
    found = compare_series(times, on_other_splits(slower(times, 2.0)))
    assert (found.verdict, found.paired) == ("worse", False)
    assert found.ratio == pytest.approx(2.0)
    assert found.interval[0] < 2 < found.interval[1]


def test_what_failed_since_is_never_passed_over():
    before = a_series(SCORES)
    assert compare_series(before, a_series(SCORES[:4], failed=1)).verdict == "inconclusive"
    assert compare_series(before, a_series(SCORES[:4], failed=1)).note.startswith("1 cell failed, none before.")
    assert compare_series(before, a_series(WORSE[:4], failed=1)).verdict != "better"
    assert compare_series(replace(before, failed=1), a_series(SCORES, failed=1)).verdict == "identical"
    gone = compare_series(before, a_series([], failed=5))
    assert (gone.verdict, gone.how, gone.after) == ("worse", "no number: 5 cells failed", None)
    assert compare_series(a_series([], failed=5), before).verdict == "inconclusive"
    assert compare_series(a_series([], failed=5), a_series([], failed=5)).verdict == "inconclusive"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_never_a_pass(value):
    after = a_series([*SCORES[:4], value])
    assert compare_series(a_series(SCORES), after).verdict == "inconclusive"
    assert compare_series(a_series(SCORES), on_other_splits(after)).verdict == "inconclusive"


def test_one_split_and_dependent_splits_decide_nothing_unpaired():
    one = compare_series(a_series(SCORES), on_other_splits(a_series([0.9])))
    assert (one.verdict, one.note) == ("inconclusive", "One split only.")
    windows = a_series(WORSE)
    windows = replace(windows, observations=tuple(replace(each, split="time") for each in windows.observations))
    assert compare_series(a_series(SCORES), on_other_splits(windows)).verdict == "inconclusive"


def test_equal_learners_on_other_splits_are_told_apart_in_at_most_six_percent():
    """Two learners whose true means are equal: what each makes of the rows is shared by its splits."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        before, after = (0.5 + 0.02 * (0.45 * rng.normal() + 0.89 * rng.normal(size=10)) for _ in range(2))
        pair = compare_series(a_series(before.tolist()), on_other_splits(a_series(after.tolist())))
        wrong += pair.verdict in ("better", "worse")
    assert wrong <= 12
