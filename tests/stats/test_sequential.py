import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.optimize import brentq

from boosters_eval.core.errors import ConfigError
from boosters_eval.stats.inference import StudentT, freedom
from boosters_eval.stats.sequential import SequentialRule, detectable_with, splits_to_decide
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
