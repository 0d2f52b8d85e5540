import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.stats.inference import (
    SAME,
    SignedRank,
    StatisticsInputError,
    detectable_errors,
    holm,
    paired,
    signed_rank,
    spread_is_zero,
    welch,
)
from boosters_eval.stats.significance import (
    _read,
    compare_pair,
    compare_times,
)

A = [0.50, 0.52, 0.49, 0.51, 0.50, 0.53, 0.48]
B = [0.60, 0.63, 0.58, 0.61, 0.62, 0.60, 0.59]
NEAR = [0.501, 0.519, 0.491, 0.509, 0.502, 0.529, 0.481]

scores = st.lists(
    st.tuples(st.floats(0.1, 1.0), st.floats(0.1, 1.0)).map(lambda pair: tuple(round(v, 4) for v in pair)),
    min_size=2,
    max_size=12,
)
tests = st.sampled_from(["corrected", "paired", "welch", "wilcoxon"])


def corrected(a, b, **options):
    return compare_pair(a, b, **{"higher_is_better": False, "test_train_ratio": 0.25, **options})


def test_the_corrected_test_adds_the_overlap_of_the_splits_to_the_variance_of_the_mean():
    differences = np.subtract(A, B)
    error = differences.std(ddof=1) * math.sqrt(1 / 7 + 1 / 4)
    expected = 2 * scipy_stats.t.sf(abs(differences.mean()) / error, 6)
    result = corrected(A, B)
    assert result.p_value == pytest.approx(expected, rel=1e-10)
    half = scipy_stats.t.ppf(0.975, 6) * error
    assert result.interval == pytest.approx((differences.mean() - half, differences.mean() + half))
    assert result.prob_better == pytest.approx(1 - expected / 2)
    # More than the plain formula says, which takes the error for known.
    assert result.min_detectable > (scipy_stats.t.ppf(0.975, 6) + scipy_stats.t.ppf(0.8, 6)) * error


@pytest.mark.parametrize("freedom", [1, 4, 29])
def test_the_detectable_difference_averages_the_power_of_the_noncentral_t_over_the_errors(freedom):
    critical = scipy_stats.t.ppf(0.975, freedom)
    errors = detectable_errors(critical, freedom)
    spreads = np.sqrt(scipy_stats.chi2.ppf((np.arange(400) + 0.5) / 400, freedom) / freedom)
    assert scipy_stats.nct.sf(critical, freedom, errors * spreads).mean() == pytest.approx(0.8, abs=0.002)


def test_splits_that_share_rows_have_at_most_ten_degrees_of_freedom():
    rng = np.random.default_rng(2)
    differences = rng.normal(0.5, 1, size=30)
    t = differences.mean() / (differences.std(ddof=1) * math.sqrt(1 / 30 + 1 / 4))
    result = corrected(1 + differences, np.ones(30))
    assert result.p_value == pytest.approx(2 * scipy_stats.t.sf(abs(t), 10), rel=1e-9)
    assert corrected(1 + differences, np.ones(30), test="paired").p_value == pytest.approx(
        scipy_stats.ttest_1samp(differences, 0).pvalue, rel=1e-9
    )


def test_paired_and_welch_agree_with_scipy():
    result = corrected(A, B, test="paired")
    assert result.p_value == pytest.approx(scipy_stats.ttest_rel(A, B).pvalue, rel=1e-9)
    oracle = scipy_stats.ttest_ind(A, B, equal_var=False)
    result = corrected(A, B, test="welch")
    assert result.p_value == pytest.approx(oracle.pvalue, rel=1e-9)
    assert result.interval == pytest.approx(tuple(oracle.confidence_interval()))


@given(st.lists(st.integers(-40, 60).filter(bool), min_size=6, max_size=12, unique_by=abs))
@settings(max_examples=60, deadline=None)
def test_wilcoxon_agrees_with_scipys_exact_distribution(differences):
    values = np.asarray(differences, dtype=float)
    oracle = scipy_stats.wilcoxon(values, method="exact", alternative="greater").pvalue
    assert signed_rank(values).greater(0.0) == pytest.approx(oracle, rel=1e-9)


def test_wilcoxon_with_ties_counts_every_assignment_of_signs():
    values = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0])
    ranks = scipy_stats.rankdata(np.abs(values))
    observed = ranks[values > 0].sum()
    sums = [sum(rank for bit, rank in enumerate(ranks) if signs >> bit & 1) for signs in range(2 ** len(values))]
    assert signed_rank(values).greater(0.0) == pytest.approx(np.mean(np.array(sums) >= observed))


def exact_tail(values):
    """The chance of a sum of positive ranks as large as this one: all assignments of signs, in whole numbers."""
    ranks = scipy_stats.rankdata(np.abs(values)).astype(int).tolist()
    ways = np.array([1], dtype=object)
    for rank in ranks:
        none = np.zeros(rank, dtype=object)
        ways = np.concatenate([ways, none]) + np.concatenate([none, ways])
    observed = sum(rank for rank, value in zip(ranks, values, strict=True) if value > 0)
    return sum(ways[observed:].tolist()) / 2 ** len(values)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("count", [201, 260])
def test_wilcoxon_of_many_pairs_is_scipys_normal_one_with_its_correction(count, ties):
    values = np.random.default_rng(count).normal(0.15, 1, size=count)
    values = np.where(np.round(values, 1) == 0, 0.1, np.round(values, 1)) if ties else values
    for sample in (values, -values):
        oracle = scipy_stats.wilcoxon(sample, method="asymptotic", correction=True, alternative="greater").pvalue
        assert signed_rank(sample).greater(0.0) == pytest.approx(oracle, rel=1e-9)


@pytest.mark.parametrize(("count", "near"), [(200, 1e-9), (201, 0.01)])
def test_wilcoxon_counts_the_ranks_of_200_pairs_and_is_near_the_count_from_then_on(count, near):
    values = np.random.default_rng(9).normal(0.12, 1, size=count)
    expected = exact_tail(values)
    assert 0.001 < expected < 0.2
    found = signed_rank(values).greater(0.0)
    assert found == pytest.approx(expected, rel=near)
    assert (found == pytest.approx(expected, rel=1e-7)) == (count == 200)


def test_the_wilcoxon_interval_excludes_zero_exactly_when_the_test_rejects():
    rng = np.random.default_rng(3)
    for _ in range(60):
        values = rng.normal(0.7, 1, size=9)
        test = signed_rank(values)
        low, high = test.interval(0.05)
        p_value = 2 * min(test.greater(0.0), test.less(0.0))
        assert (low > 0 or high < 0) == (p_value <= 0.05)


def test_the_wilcoxon_interval_excludes_zero_at_a_p_value_of_exactly_alpha():
    values = np.arange(1.0, 7.0)  # of 64 assignments of signs, none is more extreme: p = 2 / 64
    assert 2 * signed_rank(values).greater(0.0) == 1 / 32
    assert signed_rank(values).interval(1 / 32) == (1.0, 6.0)
    assert signed_rank(-values).interval(1 / 32) == (-6.0, -1.0)
    small = SignedRank(tuple(values / 1024), 1 / 32)  # no resolution unless one is given
    assert small.interval(1 / 32) == (1 / 1024, 6 / 1024)


def test_values_that_differ_by_no_more_than_rounding_have_no_spread():
    assert spread_is_zero(np.array([0.0, SAME]), 1.0)
    assert not spread_is_zero(np.array([0.0, 1.001 * SAME]), 1.0)
    assert spread_is_zero(np.zeros(3), 0.0)


def test_wilcoxon_says_n_too_small_where_it_could_never_reject():
    result = corrected(A[:5], B[:5], test="wilcoxon")
    assert (result.verdict, result.p_value, result.interval) == ("inconclusive", 0.0625, None)
    assert result.min_detectable is None
    assert result.note == "n too small: the smallest p-value of 5 splits is 0.0625."
    assert corrected(A, B, test="wilcoxon").verdict == "better"


def test_wilcoxon_shifts_equal_scores_too_and_counts_the_others():
    few = corrected([1.0] * 7 + [1.1, 1.2, 1.3], [1.0] * 10, test="wilcoxon")
    assert (few.n, few.p_value) == (10, 0.25)
    assert few.note == "n too small: the smallest p-value of 3 differences that are not zero is 0.25."
    low, high = few.interval
    assert low == 0.0 < high
    many = corrected([1.0] * 24 + [1.012] * 6, [1.0] * 30, test="wilcoxon")
    assert many.verdict == "equivalent"
    assert many.interval[0] == 0.0  # the estimate: the median of the pairwise means is 0


def test_less_error_is_better_and_more_accuracy_is_better():
    assert corrected(A, B).verdict == "better"
    assert corrected(B, A).verdict == "worse"
    assert corrected(A, B, higher_is_better=True).verdict == "worse"
    assert corrected(A, B, higher_is_better=True).prob_better < 0.01


def test_a_difference_inside_the_region_is_equivalent_and_outside_it_is_not():
    assert corrected(A, NEAR).verdict == "equivalent"
    assert corrected(A, NEAR, rope=0.0001).verdict == "inconclusive"


def test_equivalence_is_the_interval_inside_the_region():
    low, high = corrected(A, NEAR).interval
    scale = (np.mean(A) + np.mean(NEAR)) / 2
    edge = max(-low, high) / scale
    assert corrected(A, NEAR, rope=edge * 1.001).verdict == "equivalent"
    assert corrected(A, NEAR, rope=edge * 0.999).verdict == "inconclusive"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shift", [0.003, -0.003])
def test_the_region_has_two_sides(shift, turned):
    """An interval that leaves the region on one side only is not inside, whichever side that is."""
    sides = (A, np.add(NEAR, shift))
    a, b = reversed(sides) if turned else sides
    low, high = corrected(a, b, rope=1.0).interval
    assert abs(low + high) > 0.005  # one end is much farther from 0
    farther = max(-low, high) / ((np.mean(a) + np.mean(b)) / 2)
    assert corrected(a, b, rope=farther * 1.001).verdict == "equivalent"
    assert corrected(a, b, rope=farther * 0.999).verdict != "equivalent"


@given(low=st.floats(-2, 2), width=st.floats(0, 3), higher=st.booleans())
def test_a_verdict_is_read_off_both_ends_of_the_interval(low, width, higher):
    high = low + width
    if low >= -1 and high <= 1:
        expected = "equivalent"
    elif low > 0:
        expected = "better" if higher else "worse"
    elif high < 0:
        expected = "worse" if higher else "better"
    else:
        expected = "inconclusive"
    assert _read((low, high), 1.0, higher_is_better=higher) == expected


def test_the_edge_of_the_region_belongs_to_it():
    assert _read((-1.0, 1.0), 1.0, higher_is_better=True) == "equivalent"
    assert _read((0.0, 2.0), 1.0, higher_is_better=True) == _read((-2.0, 0.0), 1.0, higher_is_better=True)
    assert _read((0.0, 2.0), 1.0, higher_is_better=True) == "inconclusive"


def test_a_significant_difference_that_nobody_would_notice_is_equivalent_and_says_so():
    result = corrected(np.add(A, 0.001), np.add(A, [0, 0, 1e-6, 0, 0, 0, 0]))
    assert result.verdict == "equivalent"
    assert result.p_value < 0.001
    assert "significant but inside the region" in result.note


def test_identical_scores_are_equivalent_without_a_p_value():
    result = corrected(A, A)
    assert (result.verdict, result.p_value, result.difference) == ("equivalent", None, 0.0)
    assert result.note == "Identical scores in all 7 splits."
    assert (result.interval, result.prob_better) == ((0.0, 0.0), 0.5)


@pytest.mark.parametrize("test", ["corrected", "paired", "welch", "wilcoxon"])
def test_identical_scores_that_count_rows_are_equivalent_only_if_there_are_many_rows(test):
    few = corrected([0.9] * 5, [0.9] * 5, resolution=1 / 30, test=test)
    assert (few.verdict, few.p_value) == ("inconclusive", 1.0)
    assert few.note == "Identical scores in all 5 splits, which does not prove identical models."
    assert few.interval[0] < -1 / 30 < 1 / 30 < few.interval[1]
    assert few.min_detectable > 1 / 30
    assert corrected([0.9] * 5, [0.9] * 5, resolution=1 / 3000, test=test).verdict == "equivalent"


@pytest.mark.parametrize("test", ["corrected", "paired", "welch", "wilcoxon"])
def test_scores_that_differ_by_a_row_are_no_better_known_than_identical_ones(test):
    one_row = [0.9] * 11 + [0.9 + 1 / 60]
    assert corrected(one_row, [0.9] * 12, resolution=1 / 60, test=test).verdict == "inconclusive"


def test_identical_scores_of_unknown_resolution_prove_nothing():
    result = corrected(A, A, resolution=None)
    assert (result.verdict, result.p_value, result.interval, result.could_reject) == ("inconclusive", None, None, True)
    assert result.note.endswith("the resolution of this metric is unknown.")
    assert corrected(A, B, resolution=None) == corrected(A, B)


@pytest.mark.parametrize("test", ["corrected", "paired", "wilcoxon"])
def test_zero_variance_is_judged_by_the_permutation_test_that_is_left(test):
    few = corrected([0.5] * 5, [0.6] * 5, test=test)
    assert (few.verdict, few.p_value, few.interval) == ("inconclusive", 0.0625, None)
    assert few.note.startswith("Zero variance")
    assert "n too small" in few.note
    enough = corrected([0.5] * 6, [0.6] * 6, test=test)
    assert (enough.verdict, enough.p_value) == ("better", 0.03125)
    assert corrected([0.5] * 6, [0.501] * 6, test=test).verdict == "equivalent"


def test_rounding_is_not_variance():
    a = [0.1 + 0.2, 0.7 + 0.1, 0.3, 0.8]
    b = [0.4, 0.9, 0.1 + 0.2 + 0.1, 0.9]
    assert corrected(a, b).note.startswith("Zero variance")


def test_zero_variance_of_both_samples_leaves_welch_the_two_sample_permutation():
    result = corrected([0.5] * 4, [0.6] * 4, test="welch")
    assert result.p_value == pytest.approx(2 / math.comb(8, 4))
    assert result.verdict == "better"


def test_one_split_is_inconclusive_whatever_it_shows():
    result = corrected([0.5], [0.6])
    assert (result.verdict, result.p_value, result.n) == ("inconclusive", None, 1)
    assert "One split only" in result.note
    assert "identical" in corrected([0.5], [0.5]).note


def test_a_p_value_is_never_zero():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400) * 1e-9
    result = corrected(1 + noise, 2 + noise[::-1], test="paired")
    assert 0 < result.p_value < 1e-300


def test_percent_is_of_b_and_unknown_for_zero():
    result = corrected(A, B)
    assert result.percent == pytest.approx(100 * (np.mean(A) - np.mean(B)) / np.mean(B))
    assert result.percent_interval == pytest.approx([100 * v / np.mean(B) for v in result.interval])
    assert result.min_detectable_percent == pytest.approx(100 * result.min_detectable / np.mean(B))
    zero = corrected([0.5, 0.6, 0.7], [0.0, 0.0, 0.0])
    assert (zero.percent, zero.percent_interval, zero.min_detectable_percent) == (None, None, None)


def test_times_are_compared_by_their_ratio():
    slow, fast = [2.0, 2.3, 2.5, 2.1], [1.0, 1.1, 1.2, 1.1]
    result = compare_times(fast, slow)
    logs = np.log(fast) - np.log(slow)
    assert result.verdict == "better"
    assert result.ratio == pytest.approx(math.exp(logs.mean()))
    assert result.p_value == pytest.approx(scipy_stats.ttest_1samp(logs, 0).pvalue)
    low, high = result.interval
    assert low < result.ratio < high < 1
    assert result.percent == pytest.approx(100 * (result.ratio - 1))
    assert result.percent_interval == pytest.approx((100 * (low - 1), 100 * (high - 1)))
    assert result.min_detectable_percent == pytest.approx(100 * result.min_detectable)
    back = compare_times(slow, fast)
    assert back.verdict == "worse"
    assert back.interval == pytest.approx((1 / high, 1 / low))
    assert result.flipped().percent == pytest.approx(back.percent)
    assert result.flipped().interval == pytest.approx(back.interval)


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.49, "equivalent"), (1.51, "worse"), (0.67, "equivalent"), (0.66, "better")]
)
def test_the_region_of_a_ratio_ends_where_one_side_takes_so_much_more_than_the_other(ratio, verdict):
    """Within 50 % is up to 3 : 2 in either direction, not up to exp(0.5) = 1.65."""
    times = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    noise = 1 + 1e-4 * np.array([1, -1, 0, 1, -1, 0])
    assert compare_times(ratio * times * noise, times, rope=0.5).verdict == verdict


def test_times_without_variance_or_difference_have_their_own_answers():
    assert compare_times([1.0, 1.0], [1.0, 1.0]).interval == (1.0, 1.0)
    assert compare_times([1.0] * 6, [2.0] * 6).verdict == "better"
    assert compare_times([1.0, 2.0, 4.0], [2.0, 4.0, 8.0]).verdict == "inconclusive"
    assert compare_times([1.0], [2.0]).p_value is None


@given(scores, tests)
@settings(max_examples=200, deadline=None)
def test_swapping_the_sides_flips_the_comparison(pairs, test):
    a, b = zip(*pairs, strict=True)
    forward, backward = corrected(a, b, test=test), corrected(b, a, test=test)
    flipped = forward.flipped()
    assert flipped.verdict == backward.verdict
    assert flipped.note == backward.note
    for name in ("p_value", "difference", "percent", "prob_better", "interval", "min_detectable"):
        left, right = getattr(flipped, name), getattr(backward, name)
        assert (left is None and right is None) or left == pytest.approx(right, rel=1e-6, abs=1e-9), name


@given(scores, tests, st.sampled_from([2.0**-20, 2.0**10]))
@settings(max_examples=100, deadline=None)
def test_the_unit_of_the_metric_does_not_matter(pairs, test, factor):
    a, b = np.array(pairs).T
    one, other = corrected(a, b, test=test), corrected(a * factor, b * factor, test=test)
    assert one.verdict == other.verdict
    assert (one.p_value is None and other.p_value is None) or one.p_value == pytest.approx(other.p_value)


@given(scores, tests)
@settings(max_examples=200, deadline=None)
def test_a_p_value_is_none_or_in_the_unit_interval(pairs, test):
    a, b = zip(*pairs, strict=True)
    result = corrected(a, b, test=test)
    assert result.p_value is None or 0 < result.p_value <= 1
    assert result.verdict in {"better", "worse", "equivalent", "inconclusive"}
    if result.verdict in {"better", "worse"}:
        assert result.p_adjusted <= 0.05


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers_a_p_value(p_values):
    adjusted = holm(p_values)
    assert all(new >= old for new, old in zip(adjusted, p_values, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert list(np.array(adjusted)[order]) == sorted(adjusted)
    assert min(adjusted) == min(1.0, len(p_values) * min(p_values))


def test_holm_on_a_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.0}, "'alpha' parameter must be between 0 and 1. Got 1.0"),
        ({"alpha": 0.0}, "'alpha' parameter must be between 0 and 1. Got 0.0"),
        ({"alpha": float("nan")}, "'alpha' parameter"),
        ({"rope": -0.1}, "'rope' parameter must be 0 or more. Got -0.1"),
        ({"test_train_ratio": None}, "'test_train_ratio' parameter"),
        ({"test_train_ratio": 0.0}, "'test_train_ratio' parameter"),
        ({"resolution": -1.0}, "'resolution' parameter must be 0 or more. Got -1.0"),
        ({"a": [0.1, float("nan"), 0.3]}, "'a' parameter of a comparison must hold finite numbers"),
        ({"b": []}, "'b' parameter of a comparison must hold finite numbers"),
        ({"b": [0.1, 0.2]}, "same length. Got 3 and 2 values"),
    ],
)
def test_bad_input_is_told_in_one_sentence(change, message):
    arguments = {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.5], **change}
    with pytest.raises(StatisticsInputError, match=message):
        corrected(arguments.pop("a"), arguments.pop("b"), **arguments)


def test_an_unknown_test_gets_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'wilcoxon'"):
        corrected(A, B, test="wilcoxson")


def test_times_must_be_positive_and_paired():
    with pytest.raises(ConfigError, match="must be positive"):
        compare_times([0.0, 1.0], [1.0, 1.0])
    with pytest.raises(ConfigError, match="same length"):
        compare_times([1.0], [1.0, 1.0])


@pytest.mark.parametrize("test", ["corrected", "paired", "welch", "wilcoxon"])
def test_differences_too_small_to_be_squared_are_no_differences(test):
    a, b = np.random.default_rng(1).normal(size=(2, 5)) * 1e-170
    assert corrected(a, b, test=test).verdict == "equivalent"


def test_scores_too_large_to_be_squared_are_refused():
    with pytest.raises(StatisticsInputError, match="finite"):
        corrected([1e200, 1.0], [1.0, 2.0])


def test_small_variances_keep_their_degrees_of_freedom():
    a, b = np.random.default_rng(1).normal(size=(2, 5))
    large, small = welch(a, b), welch(a * 2.0**-400, b * 2.0**-400)
    assert small.less(0.0) == large.less(0.0)
    assert paired((a - b) * 2.0**-400).less(0.0) == pytest.approx(paired(a - b).less(0.0))
