import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.optimize import brentq

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import Repeat
from boosters_eval.stats.inference import StudentT, freedom
from boosters_eval.stats.observations import Observation, Side
from boosters_eval.stats.sequential import (
    SearchRule,
    SequentialRule,
    Yardstick,
    detectable_with,
    find_shift,
    place,
    splits_to_decide,
)
from boosters_eval.stats.significance import Comparison, compare_pair

RULE = SequentialRule()


def pair(verdict, n=5, alpha=RULE.level):
    return Comparison(verdict, "corrected", n, alpha, 0.01)


@pytest.mark.parametrize(
    ("maximum", "schedule"),
    [
        (2, (2,)),
        (5, (5,)),
        (6, (6,)),
        (7, (5, 7)),
        (10, (5, 10)),
        (20, (5, 10, 20)),
        (50, (5, 10, 20, 50)),
        (100, (5, 10, 20, 40, 100)),
    ],
)
def test_the_looks_are_fixed_beforehand(maximum, schedule):
    assert SequentialRule(max_seeds=maximum).schedule == schedule


def test_the_levels_of_all_looks_add_up_to_alpha():
    assert RULE.level * len(RULE.schedule) == pytest.approx(0.05)
    assert SequentialRule(max_seeds=5, alpha=0.01).level == 0.01


def test_it_stops_when_every_pair_has_a_verdict():
    decision = RULE.decide(0, [pair("better"), pair("equivalent"), pair("worse")])
    assert (decision.stop, decision.undecided, decision.reason) == (True, 0, "every pair has a verdict")


def test_it_goes_on_while_a_pair_is_inconclusive():
    decision = RULE.decide(1, [pair("better"), pair("inconclusive")])
    assert (decision.stop, decision.undecided) == (False, 1)
    assert decision.reason == "1 of 2 pairs is inconclusive; continuing to 20 seeds"


def test_it_stops_at_the_last_look_and_when_the_budget_is_used():
    assert RULE.decide(3, [pair("inconclusive")]).reason == "no more are allowed"
    late = RULE.decide(0, [pair("inconclusive")], budget_left=False)
    assert (late.stop, late.undecided, late.reason) == (True, 1, "the time budget is used up")


def test_pairs_that_no_seed_can_decide_do_not_hold_it_up():
    decision = RULE.decide(0, [pair("better"), pair("inconclusive", n=0)])
    assert decision.stop
    assert decision.reason == "every pair has a verdict; 1 cannot be compared"


def test_a_look_at_another_level_is_refused():
    with pytest.raises(ConfigError, match=r"alpha=0\.0125"):
        RULE.decide(0, [pair("better", alpha=0.05)])


def test_a_rule_that_could_never_decide_is_refused():
    with pytest.raises(ConfigError, match="'max_seeds' parameter must be at least 2"):
        SequentialRule(max_seeds=1)


def observed(difference, spread, n=5, overlap=0.25, alpha=0.05):
    """A comparison of n splits whose differences have this mean and spread."""
    error = spread * math.sqrt(1 / n + overlap)
    interval = StudentT(difference, error, freedom(n, overlap)).interval(alpha)
    return Comparison("inconclusive", "corrected", n, alpha, 0.01, difference=difference, interval=interval)


@pytest.mark.parametrize(
    ("difference", "overlap", "splits"),
    [
        (1.26, 0.25, 15),  # t(10) = 2.228, and 2.228 * sqrt(1 / 15 + 0.25) = 1.254
        (-1.26, 0.25, 15),
        (1.5, 0.25, 8),
        (1.12, 0.25, 375),
        (1.1, 0.25, None),  # below 2.228 * sqrt(0.25), where the rows that splits share set a limit
        (0.97, 0.01, 7),
    ],
)
def test_the_splits_that_decide_follow_from_the_corrected_test(difference, overlap, splits):
    assert splits_to_decide(observed(difference, 1.0, overlap=overlap), overlap) == splits


@pytest.mark.parametrize("n", [3, 10, 15])
@pytest.mark.parametrize(("difference", "spread"), [(1.2, 1.0), (0.06, 0.05)])
def test_the_splits_that_decide_are_those_from_which_the_test_itself_rejects(n, difference, spread):
    """The test limits its degrees of freedom, and so must the forecast: it once named numbers that decided nothing."""

    def compared(count):
        ranks = np.arange(count) - (count - 1) / 2
        differences = difference + spread * ranks / ranks.std(ddof=1)
        return compare_pair(1 + differences, np.ones(count), higher_is_better=True, test_train_ratio=0.25)

    needed = splits_to_decide(compared(n), 0.25)
    assert [compared(count).p_value <= 0.05 for count in (n, needed - 1, needed)] == [False, False, True]


def test_splits_that_are_added_at_looks_must_pass_the_level_of_a_look():
    found = observed(1.55, 1.0)  # at 1000 splits it would not pass: there are nine looks until then
    needed = splits_to_decide(found, 0.25, lambda count: SequentialRule(max_seeds=count).level)
    assert needed == 11


def test_without_an_interval_nothing_is_known_of_the_splits_that_decide():
    assert splits_to_decide(pair("inconclusive"), 0.25) is None


@pytest.mark.parametrize("n", [3, 5, 20])
def test_as_many_splits_again_show_what_these_show(n):
    differences = np.linspace(-1, 1, n)
    found = compare_pair(1 + differences, np.ones(n), higher_is_better=True, test_train_ratio=0.25)
    same = detectable_with(n, found.min_detectable, n, level=0.05, overlap=0.25)
    assert same == pytest.approx(found.min_detectable)


def test_more_splits_show_less_and_less_more():
    shown = [detectable_with(count, 1.0, 5, level=0.05, overlap=0.25) for count in (5, 10, 20, 100, 1000)]
    assert shown == sorted(shown, reverse=True)
    assert shown[-1] > 0.9 * shown[-2]  # the rows that splits share set a limit
    assert detectable_with(1000, 1.0, 5, level=0.05, overlap=0.0) < 0.1


@pytest.mark.parametrize(("n", "splits"), [(3, 12), (5, 20), (20, 5)])
def test_what_more_splits_show_is_as_uncertain_as_the_few_that_the_spread_is_known_from(n, splits):
    """Power is averaged over what n splits could have said of the spread, however many follow."""

    def errors(count):
        critical = scipy_stats.t.ppf(0.975, count - 1)
        spreads = np.sqrt(scipy_stats.chi2.ppf((np.arange(400) + 0.5) / 400, n - 1) / (n - 1))
        found = brentq(lambda size: scipy_stats.nct.sf(critical, count - 1, size * spreads).mean() - 0.8, 1, 60)
        return found / math.sqrt(count)

    expected = errors(splits) / errors(n)
    assert detectable_with(splits, 1.0, n, level=0.05, overlap=0.0) == pytest.approx(expected, rel=0.004)


SCORES = Yardstick("rmse", higher_is_better=False, as_ratio=False, tolerance=0.01)
TIMES = Yardstick("train_time_s", higher_is_better=False, as_ratio=True, tolerance=0.05)


def side(values, digest=None):
    return Side(
        (
            Repeat(seed),
            Observation(
                float(value), f"s{seed}", 800, 200, predictions_digest=digest and f"{digest}{seed}", resolution=0.0
            ),
        )
        for seed, value in enumerate(values)
    )


def noisy(mean, n=10, spread=0.001, seed=0):
    return side(mean * (1 + spread * np.random.default_rng(seed).standard_normal(n)))


@pytest.mark.parametrize("yardstick", [SCORES, TIMES])
@pytest.mark.parametrize(("after", "outcome"), [(1.2, "changed"), (0.8, "changed"), (1.001, "unchanged")])
def test_a_change_counts_beyond_the_tolerance(yardstick, after, outcome):
    assert find_shift(noisy(1.0), noisy(after, seed=1), yardstick, alpha=0.01).outcome == outcome


def test_a_difference_that_is_sure_but_not_surely_beyond_the_tolerance_is_undecided():
    found = find_shift(noisy(1.0), noisy(1.0102, seed=1), SCORES, alpha=0.01)
    assert found.bounds[0] > 0
    assert found.outcome == "undecided"


@pytest.mark.parametrize("after", [0.9935, 1.0065])
def test_an_interval_that_leaves_the_tolerance_on_either_side_is_undecided(after):
    found = find_shift(noisy(1.0, spread=0.004), noisy(after, spread=0.004, seed=1), SCORES, alpha=0.01)
    low, high = found.bounds
    assert (low < -0.01 < high < 0.01) if after < 1 else (-0.01 < low < 0.01 < high)
    assert found.outcome == "undecided"


def test_that_nothing_changed_may_be_claimed_at_a_level_of_its_own():
    """The wide interval of a strict search leaves the tolerance, that of the claim does not."""
    earlier, later = noisy(1.0, spread=0.004), noisy(1.002, spread=0.004, seed=1)
    assert find_shift(earlier, later, SCORES, alpha=0.001).outcome == "undecided"
    claimed = find_shift(earlier, later, SCORES, alpha=0.001, equal_alpha=0.1)
    assert (claimed.outcome, claimed.comparison.alpha) == ("unchanged", 0.1)
    kept = find_shift(earlier, later, SCORES, alpha=0.001, equal_alpha=0.002)
    assert (kept.outcome, kept.comparison.alpha) == ("undecided", 0.001)


def test_a_change_of_exactly_the_tolerance_is_not_beyond_it():
    earlier, later = (side([value + index for index in range(9)]) for value in (1.0, 1.5))
    assert find_shift(earlier, later, SCORES, alpha=0.05, margin=0.5).outcome == "unchanged"
    assert find_shift(earlier, later, SCORES, alpha=0.05, margin=0.4999).outcome == "changed"


def test_sides_without_a_common_split_are_undecided():
    other = Side([(Repeat(99), Observation(2.0, "x", 800, 200, resolution=0.0))])
    assert find_shift(noisy(1.0), other, SCORES, alpha=0.01).outcome == "undecided"


@pytest.mark.parametrize("yardstick", [SCORES, TIMES])
@pytest.mark.parametrize(("rising", "last"), [(True, 1.2), (False, 0.8)])
@pytest.mark.parametrize("likeness", ["earlier", "later"])
def test_a_candidate_is_told_to_belong_to_one_side(yardstick, rising, last, likeness):
    mean = 1.0 if likeness == "earlier" else last
    found = place(
        noisy(1.0), noisy(mean, seed=1), noisy(last, seed=2), yardstick, rising=rising, level=0.001,
        margin=yardstick.margin(1.0),
    )  # fmt: skip
    assert found.likeness == likeness
    assert found.settled


def test_of_two_changes_the_larger_one_in_the_direction_of_the_whole_is_followed():
    margin = SCORES.margin(1.0)
    small_first = place(
        noisy(1.0), noisy(1.1, seed=1), noisy(1.5, seed=2), SCORES, rising=True, level=1e-3, margin=margin
    )
    assert small_first.likeness == "earlier"
    # Far above both: it rose before the candidate, and fell back after it.
    beyond = place(noisy(1.0), noisy(3.0, seed=1), noisy(1.1, seed=2), SCORES, rising=True, level=1e-3, margin=margin)
    assert beyond.likeness == "later"


def test_a_change_against_the_direction_of_the_whole_places_nothing():
    """What is sure is a fall before the candidate; where the rise is that was looked for is not known."""
    found = place(
        noisy(1.0), noisy(0.9, seed=1), noisy(1.1, spread=0.9, seed=2), SCORES, rising=True, level=0.01, margin=0.01
    )
    assert (found.before.outcome, found.after.outcome, found.likeness) == ("changed", "undecided", "undecided")


def test_the_tolerance_of_a_negative_number_is_a_share_of_its_size():
    assert SCORES.margin(-2.0) == pytest.approx(0.02)
    assert find_shift(noisy(-1.0), noisy(-1.001, seed=1), SCORES, alpha=0.05).outcome == "unchanged"


@pytest.mark.parametrize(
    ("after", "outcome"), [(1.45, "unchanged"), (1.55, "changed"), (0.7, "unchanged"), (0.64, "changed")]
)
def test_the_tolerance_of_a_ratio_ends_where_one_takes_so_much_more_than_the_other(after, outcome):
    """A tolerance of 50 % is up to 3 : 2 in either direction, not up to exp(0.5) = 1.65."""
    tolerant = Yardstick("train_time_s", higher_is_better=False, as_ratio=True, tolerance=0.5)
    assert tolerant.margin(7.0) == pytest.approx(np.log(1.5))
    assert find_shift(noisy(1.0), noisy(after, seed=1), tolerant, alpha=0.01).outcome == outcome


def test_identical_predictions_on_a_single_split_decide_nothing():
    assert not place(side([1], "a"), side([1], "a"), side([2]), SCORES, rising=True, level=0.01, margin=0.01).settled


def test_identical_predictions_decide_without_a_test():
    earlier, later = side([1, 2, 1.5], "a"), side([1.2, 2.1, 1.9], "b")
    for digest, likeness in (("a", "earlier"), ("b", "later")):
        same = earlier if digest == "a" else later
        candidate = side([one.value for one in same.values()], digest)
        found = place(earlier, candidate, later, SCORES, rising=True, level=1e-6, margin=0.01)
        assert (found.likeness, found.identical, found.settled) == (likeness, True, True)


def test_a_candidate_within_the_tolerance_of_both_sides_is_settled_as_undecided():
    tolerant = Yardstick("rmse", higher_is_better=False, as_ratio=False, tolerance=0.5)
    found = place(noisy(1.0), noisy(1.1, seed=1), noisy(1.2, seed=2), tolerant, rising=True, level=1e-3, margin=0.5)
    assert (found.likeness, found.settled) == ("undecided", True)


def test_the_two_tests_of_a_candidate_share_its_level():
    """It may be within the tolerance of both sides, so both of them could be wrong."""
    found = place(noisy(1.0), noisy(1.1, seed=1), noisy(1.2, seed=2), SCORES, rising=True, level=0.02, margin=0.01)
    one_sided = [part.comparison.alpha / 2 for part in (found.before, found.after)]
    assert sum(one_sided) == pytest.approx(0.02)


def test_the_error_rate_is_shared_by_all_tests_and_looks():
    rule = SearchRule(versions=33, alpha=0.05, max_seeds=50)
    assert rule.tries == 5 + 2
    assert rule.seeds.level == pytest.approx(0.05 / 8 / len(rule.seeds.schedule))
    assert rule.equal_alpha / 2 * len(rule.seeds.schedule) == pytest.approx(0.05)  # an interval has two ends
    assert SearchRule(versions=2).tries == 0
    assert SearchRule(versions=3).tries == 1


def test_times_that_were_all_measured_on_two_machines_show_no_change():
    def on(machine, factor):
        return Side(
            (Repeat(seed), Observation(factor * (1 + seed / 1000), f"s{seed}", machine=machine)) for seed in range(10)
        )

    assert find_shift(on("a", 1.0), on("a", 2.0), TIMES, alpha=0.05).outcome == "changed"
    found = find_shift(on("a", 1.0), on("b", 2.0), TIMES, alpha=0.05)
    assert (found.outcome, found.comparison.mean_b) == ("undecided", None)
    assert found.comparison.note == "All pairs were measured on two machines, so none is compared."
