"""Units: the correlation within them, and what so few of them can vouch for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.stats.units import (
    PROMISED,
    covered_level,
    intraclass_correlation,
    largest_lump,
    units_needed,
    vouched_threshold,
)


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


def test_perfect_scores_vouch_for_little_while_they_are_few():
    assert [round(vouched_threshold([1.0] * count, 0.9), 3) for count in (10, 30, 100)] == [0.794, 0.926, 0.977]
    assert units_needed([1.0], 0.98, 0.9) == 114
    assert units_needed([0.9], 0.98, 0.9) is None


def test_a_lump_is_the_value_that_most_scores_share_to_three_decimals():
    assert largest_lump([1.0, 0.99999, 1.0, 0.5]) == (1.0, 3)
    assert largest_lump([0.4, 0.4, 0.9]) == (0.4, 2)
    assert largest_lump([0.1234, 0.1231, 0.9]) == (0.123, 2)
    assert largest_lump([0.1, 0.2]) == (0.2, 1)
