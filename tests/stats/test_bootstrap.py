import logging
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from boosters_eval.core.errors import ConfigError
from boosters_eval.stats.bootstrap import (
    PROMISED,
    BootstrapInputError,
    _acceleration,
    _bca_alpha_lower,
    _bias_correction,
    compute_lower_bound_95,
    covered_level,
    intraclass_correlation,
    largest_lump,
    units_needed,
    vouched_threshold,
)

# The spatial test scores of Efron and Tibshirani (1993), table 14.1 (A), whose variance is their worked example.
SPATIAL = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41]

unit = st.floats(min_value=0.0, max_value=1.0, allow_nan=False, allow_infinity=False)
run_ids = st.integers(0, 2**32 - 1).map(lambda seed: f"{seed:08x}")


def reference(scores, run_id, resamples=1000):
    """The specification in exact arithmetic, with ties counted half."""
    exact = [Fraction(score) for score in scores]
    n = len(exact)
    mean = sum(exact) / n
    indices = np.random.default_rng(int(run_id[:8], 16)).integers(0, n, (resamples, n))
    means = sorted(sum(exact[i] for i in row) / n for row in indices.tolist())
    tie = Fraction(1, 2**40)
    doubled = 2 * sum(m < mean - tie for m in means) + sum(abs(m - mean) <= tie for m in means)
    z0 = scipy_stats.norm.ppf(min(max(doubled, 1), 2 * resamples - 1) / (2 * resamples))
    differences = [(x - mean) / (n - 1) for x in exact]
    a = float(sum(d**3 for d in differences)) / (6 * float(sum(d**2 for d in differences)) ** 1.5)
    z = z0 + scipy_stats.norm.ppf(0.025)
    rank = scipy_stats.norm.cdf(z0 + z / (1 - a * z)) * (resamples - 1)
    low = math.floor(rank)
    high = min(low + 1, resamples - 1)
    value = float(means[low]) + (rank - low) * float(means[high] - means[low])
    deviation = math.sqrt(sum((x - mean) ** 2 for x in exact) / (n - 1))
    return min(max(value, float(mean) - 2 * deviation), float(mean))


def test_bias_correction_on_efrons_worked_example():
    # 558 of 1000 resampled values below the estimate: z0 = 0.146.
    assert _bias_correction([0.5, 0.5], [0.4] * 558 + [0.6] * 442) == pytest.approx(0.146, abs=5e-4)


def test_acceleration_on_efrons_worked_example():
    # The variance is the mean of the squared deviations, so their acceleration is the variance's: 0.061.
    deviations = (np.array(SPATIAL) - np.mean(SPATIAL)) ** 2
    assert np.mean(deviations) == pytest.approx(171.5, abs=0.05)
    assert _acceleration(deviations / deviations.max()) == pytest.approx(0.061, abs=5e-4)


def test_the_adjusted_levels_of_efrons_worked_example():
    assert _bca_alpha_lower(0.146, 0.061, 0.05) == pytest.approx(0.110, abs=5e-4)
    assert _bca_alpha_lower(0.146, 0.061, 0.95) == pytest.approx(0.985, abs=1e-3)


def test_acceleration_by_hand():
    assert _acceleration([0.0, 0.0, 0.0, 0.0, 1.0]) == pytest.approx(math.sqrt(5) / 20, rel=1e-14)
    assert _acceleration([1.0, 1.0, 1.0, 1.0, 0.0]) == pytest.approx(-math.sqrt(5) / 20, rel=1e-14)
    assert _acceleration([0.2, 0.4, 0.6, 0.8]) == pytest.approx(0.0, abs=1e-15)


@given(st.lists(unit, min_size=5, max_size=30))
@settings(max_examples=200, deadline=None)
def test_acceleration_is_the_jackknifes(scores):
    assume(np.ptp(scores) > 1e-3)
    values = np.array(scores)
    jackknife = np.array([np.delete(values, i).mean() for i in range(len(values))])
    d = jackknife.mean() - jackknife
    assert _acceleration(values) == pytest.approx((d**3).sum() / (6 * (d**2).sum() ** 1.5), abs=1e-8)


def test_ties_count_half_and_infinity_is_out_of_reach():
    assert _bias_correction([0.5], [0.5] * 10) == 0.0
    assert _bias_correction([0.1, 0.2, 0.3], [0.2, math.nextafter(0.2, 1), math.nextafter(0.2, 0)]) == 0.0
    for edge in (0.5 - 2.0**-40, 0.5 + 2.0**-40):  # this far apart, and no farther, is a tie
        assert _bias_correction([0.5], [edge] * 10) == 0.0
        assert _bias_correction([0.5], [edge + math.copysign(2.0**-45, edge - 0.5)] * 10) != 0.0
    assert _bias_correction([0.5], [0.4] * 1000) == pytest.approx(scipy_stats.norm.ppf(1 - 1 / 2000))
    assert _bias_correction([0.5], [0.6] * 1000) == pytest.approx(scipy_stats.norm.ppf(1 / 2000))


def test_without_corrections_the_level_stays():
    assert _bca_alpha_lower(0.0, 0.0, 0.025) == pytest.approx(0.025, rel=1e-12)


def test_beyond_the_pole_the_level_is_the_limit():
    assert _bca_alpha_lower(-5.0, -0.2, 0.025) == 0.0
    assert _bca_alpha_lower(8.0, 0.2, 0.025) == 1.0


@given(st.lists(unit, min_size=5, max_size=12), run_ids)
@settings(max_examples=60, deadline=None)
def test_the_bound_is_the_specifications_in_exact_arithmetic(scores, run_id):
    assume(np.ptp(scores) > 1e-6)
    bound = compute_lower_bound_95(scores, run_id=run_id, n_resamples=200)
    assert bound == pytest.approx(reference(scores, run_id, 200), abs=1e-9)


def test_the_bound_is_scipys_when_both_see_the_same_resamples():
    scores = np.random.default_rng(5).integers(0, 10**6, 41)
    oracle = scipy_stats.bootstrap(
        (scores,),
        np.mean,
        method="BCa",
        n_resamples=1000,
        rng=np.random.default_rng(0x600DF00D),
        confidence_level=0.95,
    )
    bound = compute_lower_bound_95(scores / 10**6, run_id="600df00d")
    assert bound == pytest.approx(oracle.confidence_interval.low / 10**6, abs=1e-4)


@given(st.lists(unit, min_size=5, max_size=50), run_ids)
def assert_within_the_window(scores, run_id):
    values = np.array(scores)
    assume(values.std(ddof=1) > 0)
    bound = compute_lower_bound_95(scores, run_id=run_id)
    assert values.mean() - 2 * values.std(ddof=1) <= bound <= values.mean() + 1e-9


@given(
    st.lists(st.one_of(st.floats(0.0, 0.9), st.sampled_from([0.0, 0.1, 0.3, 0.7, 0.9])), min_size=5, max_size=20),
    st.floats(0.0, 1.0),
    run_ids,
)
def assert_not_lower_for_higher_scores(scores, share, run_id):
    delta = share * (1 - max(scores))
    shifted = [min(score + delta, 1.0) for score in scores]
    before = compute_lower_bound_95(scores, run_id=run_id)
    assert compute_lower_bound_95(shifted, run_id=run_id) >= before - 1e-9


EXAMPLES = [250, pytest.param(2000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_bound_lies_between_mean_minus_two_deviations_and_the_mean(examples):
    settings(max_examples=examples, deadline=None)(assert_within_the_window)()


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_bound_does_not_fall_when_every_score_rises(examples):
    settings(max_examples=examples, deadline=None)(assert_not_lower_for_higher_scores)()


def test_the_window_holds_where_a_resample_of_one_index_would_leave_it():
    scores = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    for seed in range(300):
        bound = compute_lower_bound_95(scores, run_id=f"{seed:08x}")
        assert np.mean(scores) - 2 * np.std(scores, ddof=1) <= bound <= np.mean(scores)


def test_a_resample_below_the_window_gives_its_lower_edge():
    """This seed draws the worst score six times; the window ends two deviations (ddof 1) below the mean."""
    scores = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    assert set(np.random.default_rng(0xC6AB).integers(0, 6, (1, 6)).ravel()) == {5}
    edge = np.mean(scores) - 2 * np.std(scores, ddof=1)
    assert compute_lower_bound_95(scores, run_id="0000c6ab", n_resamples=1) == pytest.approx(edge, abs=1e-12)


@given(unit, st.integers(5, 60), run_ids)
@settings(max_examples=300, deadline=None)
def test_identical_scores_give_exactly_that_score(score, count, run_id):
    assert compute_lower_bound_95([score] * count, run_id=run_id) == score


def test_scores_that_differ_by_less_than_arithmetic_can_tell_give_their_mean():
    assert compute_lower_bound_95([1e-300, 0.0, 0.0, 2e-300, 0.0], run_id="00000000") == 3e-300 / 5


def test_minus_zero_comes_back_as_zero():
    bound = compute_lower_bound_95([-0.0] * 6, run_id="00000000")
    assert math.copysign(1.0, bound) == 1.0


@pytest.mark.parametrize("count", [0, 1, 4])
def test_fewer_than_five_cases_bound_nothing_and_warn(count, caplog):
    with caplog.at_level(logging.WARNING):
        assert compute_lower_bound_95([0.9] * count, run_id="0123abcd99") == 0.0
    (record,) = caplog.records
    message = record.getMessage()
    assert record.levelno == logging.WARNING
    for part in ("bootstrap_n_too_small", f"n_cases={count}", "run_id=0123abcd99", "ADR-0002"):
        assert part in message


def test_five_cases_are_enough_and_do_not_warn(caplog):
    assert 0.5 < compute_lower_bound_95([0.7, 0.8, 0.75, 0.9, 0.85], run_id="0123abcd") < 0.8
    assert not caplog.records


def test_scores_that_are_mostly_zero_or_one_warn(caplog):
    compute_lower_bound_95([1.0] * 9 + [0.0], run_id="0123abcd")
    assert "bootstrap_scores_mostly_binary: n_cases=10 run_id=0123abcd" in caplog.text
    caplog.clear()
    compute_lower_bound_95([1.0] * 8 + [0.5] * 2, run_id="0123abcd")
    assert not caplog.text


def test_the_order_of_the_scores_is_part_of_the_input():
    scores = [0.31, 0.95, 0.62, 0.77, 0.44, 0.83, 0.58]
    bounds = {compute_lower_bound_95(np.roll(scores, shift), run_id="0123abcd") for shift in range(7)}
    assert len(bounds) > 1


def test_only_the_first_eight_digits_seed_and_case_does_not_matter():
    scores = [0.31, 0.95, 0.62, 0.77, 0.44, 0.83, 0.58]
    bound = compute_lower_bound_95(scores, run_id="deadbeef")
    assert compute_lower_bound_95(scores, run_id="DEADBEEFzz") == bound
    assert compute_lower_bound_95(scores, run_id="deadbeee") != bound


@pytest.mark.parametrize(
    "run_id",
    ["", "abc", "0x123456", "+1234567", " 1234567", "1234_567", "\uff11" * 8, "1234567g", 12345678, None],
)
@pytest.mark.parametrize("scores", [[0.5] * 3, [0.5, 0.6, 0.7, 0.8, 0.9]])
def test_a_run_id_without_eight_hex_digits_is_refused(run_id, scores):
    with pytest.raises(BootstrapInputError, match="eight hexadecimal digits"):
        compute_lower_bound_95(scores, run_id=run_id)


@pytest.mark.parametrize(
    "scores",
    [
        [0.5, float("nan"), 0.5, 0.5, 0.5],
        [0.5, float("inf"), 0.5, 0.5, 0.5],
        [0.5, 1.0000001, 0.5, 0.5, 0.5],
        [-1e-9, 0.5],
        [[0.5, 0.5]],
        ["a", "b"],
        [None] * 5,
        0.5,
        list(range(100)),
    ],
)
def test_scores_outside_the_unit_interval_are_refused(scores):
    with pytest.raises(ConfigError, match="numbers from 0 to 1"):
        compute_lower_bound_95(scores, run_id="deadbeef")


@pytest.mark.parametrize("n_resamples", [0, -1, 1.5, True, "1000"])
def test_the_number_of_resamples_is_checked(n_resamples):
    with pytest.raises(BootstrapInputError, match="'n_resamples' parameter"):
        compute_lower_bound_95([0.5] * 5, run_id="deadbeef", n_resamples=n_resamples)


def test_one_resample_still_gives_a_bound_in_the_window():
    scores = [0.5, 0.6, 0.7, 0.8, 0.9]
    assert 0.3 < compute_lower_bound_95(scores, run_id="deadbeef", n_resamples=1) <= 0.7


def test_drawing_in_chunks_does_not_change_the_bound(monkeypatch):
    scores = np.random.default_rng(2).random(50).tolist()
    whole = compute_lower_bound_95(scores, run_id="deadbeef")
    monkeypatch.setattr("boosters_eval.stats.bootstrap._CHUNK", 333)
    assert compute_lower_bound_95(scores, run_id="deadbeef") == whole


def test_memory_is_that_of_the_scores_not_of_the_resamples():
    count = 40_000
    scores = np.random.default_rng(2).random(count)
    tracemalloc.start()
    compute_lower_bound_95(scores, run_id="deadbeef", n_resamples=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6 + 150 * count  # all resamples at once would take 32 MB for the indices alone


def test_the_correlation_is_that_of_the_analysis_of_variance():
    units = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    assert intraclass_correlation(units) == pytest.approx(0.1657, abs=5e-5)  # Shrout and Fleiss (1979), ICC(1,1)


def test_the_correlation_is_found_again_from_units_of_any_size():
    rng = np.random.default_rng(3)
    units = [
        (0.8 * rng.standard_normal() + 0.6 * rng.standard_normal(size)).tolist() for size in rng.integers(1, 9, 4000)
    ]
    assert intraclass_correlation(units) == pytest.approx(0.64, abs=0.03)


def test_the_correlation_of_unequal_units_counts_their_mean_size_less_its_spread():
    """By hand: the means are 2, 5 and 7, that of all six is 5; sizes of 2, 1 and 3 count as (6 - 14 / 6) / 2."""
    between, within = (2 * 9 + 0 + 3 * 4) / 2, (2 + 0 + 2) / 3
    expected = (between - within) / (between + ((6 - 14 / 6) / 2 - 1) * within)
    assert intraclass_correlation([[1, 3], [5], [6, 7, 8]]) == pytest.approx(expected, rel=1e-12)


def test_two_scores_of_one_unit_are_enough_for_a_correlation():
    """By hand: the mean of all three is 3, those of the units are 2 and 5; both sizes together count as 3 - 5 / 3."""
    between, within = 2 * 1 + 1 * 4, 2
    expected = (between - within) / (between + (3 - 5 / 3 - 1) * within)
    assert intraclass_correlation([[1, 3], [5]]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("units", [[], [[0.5, 0.6]], [[0.5], [0.6]], [[0.5, 0.5], [0.5, 0.5]]])
def test_where_nothing_varies_or_repeats_there_is_no_correlation(units):
    assert intraclass_correlation(units) is None


@given(st.lists(st.floats(0.05, 1), min_size=5, max_size=60), st.floats(0.01, 1))
def test_the_covered_level_falls_as_the_threshold_rises_and_never_says_more_than_the_bound(scores, threshold):
    level = covered_level(scores, threshold)
    if level is None:
        assert np.mean(scores) < threshold
        return
    assert -1e-12 <= level <= PROMISED
    assert covered_level(scores, threshold / 2) >= level
    assert covered_level(scores * 2, threshold) >= level - 1e-12


@given(st.lists(st.floats(0.05, 1), min_size=5, max_size=60))
def test_what_is_vouched_for_is_covered_at_that_level(scores):
    threshold = vouched_threshold(scores, 0.9)
    assert covered_level(scores, threshold) == pytest.approx(0.9)
    assert units_needed(scores, threshold * (1 - 1e-9), 0.9) == len(scores)


def test_nothing_is_covered_at_more_than_the_95_percent_that_the_bound_promises():
    assert covered_level([1.0] * 1000, 0.5) == 0.95


def test_perfect_scores_vouch_for_little_while_they_are_few():
    assert [round(vouched_threshold([1.0] * count, 0.9), 3) for count in (10, 30, 100)] == [0.794, 0.926, 0.977]
    assert units_needed([1.0], 0.98, 0.9) == 114
    assert units_needed([0.9], 0.98, 0.9) is None


def test_a_lump_is_the_value_that_most_scores_share_to_three_decimals():
    assert largest_lump([1.0, 0.99999, 1.0, 0.5]) == (1.0, 3)
    assert largest_lump([0.4, 0.4, 0.9]) == (0.4, 2)
    assert largest_lump([0.1234, 0.1231, 0.9]) == (0.123, 2)
    assert largest_lump([0.1, 0.2]) == (0.2, 1)
