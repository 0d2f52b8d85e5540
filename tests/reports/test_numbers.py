"""A number is shown to the digits that its uncertainty leaves."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.core.text import group_digits
from boosters_eval.reports.html.svg import fit
from boosters_eval.reports.numbers import as_given, estimate, mean_and_std, number, p_value, percent


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.45213, 0.0123, "0.452 ± 0.012"),
        (0.45213, 0.00999, "0.452 ± 0.010"),
        (4567.8, 123.4, "4570 ± 120"),
        (1234567.0, 8.5, "1234567.0 ± 8.5"),
        (-0.0004, 0.31, "0.00 ± 0.31"),
        (1.2e-7, 3.4e-9, "(1.200 ± 0.034)e-07"),
        (5e-324, 0.0, "(4.94066 ± 0)e-324"),
        (0.5, 0.0, "0.500000 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (0.468499109576572814, 5.6e-17, "0.468499 ± 6e-17"),
        (0.45213, None, "0.4521"),
        (12345.6, None, "12350"),
        (3e-9, None, "3.000e-09"),
        (math.nan, None, "not finite"),
        (None, None, "\u2013"),
    ],
)
def test_the_deviation_decides_the_digits(mean, std, text):
    assert estimate(mean, std) == text


@given(
    st.floats(min_value=-1e6, max_value=1e6).filter(lambda x: abs(x) > 1e-3),
    st.floats(min_value=1e-6, max_value=1e3),
)
def test_the_shown_mean_is_off_by_less_than_the_deviation_would_show(mean, std):
    shown_mean, _, shown_std = estimate(mean, std).partition(" ± ")
    assert abs(float(shown_std) - std) <= 0.051 * std  # two digits
    assert abs(float(shown_mean) - mean) <= 0.051 * std + 1e-9 * abs(mean)
    digits = shown_std.replace(".", "").strip("0")
    assert len(digits) <= 2


@given(st.lists(st.floats(min_value=-1e9, max_value=1e9), min_size=2, max_size=30))
def test_mean_and_deviation_are_those_of_the_standard_library(values):
    mean, std = mean_and_std(values)
    assert mean == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-9)
    assert std == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)


def test_no_value_one_value_and_nan_have_no_deviation():
    assert mean_and_std([]) == (None, None)
    assert mean_and_std([0.25]) == (0.25, None)
    mean, std = mean_and_std([0.1, math.nan])
    assert math.isnan(mean)
    assert std is None


def test_equal_values_have_no_deviation_at_all():
    assert mean_and_std([0.1] * 7) == (0.1, 0.0)


def test_small_numbers():
    assert p_value(0.0004) == "< 0.001"
    assert p_value(0.04321) == "0.043"
    assert percent(0.0662) == "+6.6 %"
    assert percent(-0.00091) == "-0.09 %"
    assert percent(2.5) == "+250 %"
    assert percent(2.5, sign=False) == "250 %"
    assert percent(99.0) == "+9900 %"
    assert percent(499.0) == "x 500"
    assert percent(1.6e298) == "x 1.6e+298"
    assert percent(-1e300) == "x -1.0e+300"
    assert group_digits(12400) == "12,400"
    assert number(0) == "0"


def test_an_axis_has_no_negative_side_that_no_value_has():
    assert fit([0.0, 1.0], 0, 100).low == 0.0
    assert fit([0.01, 1.0], 0, 100).low == 0.0
    assert fit([-0.1, 1.0], 0, 100).low < -0.1
    assert 0 < fit([0.9, 1.0], 0, 100).low < 0.9


def test_the_largest_and_smallest_numbers_have_a_mean_and_a_deviation():
    assert mean_and_std([1e300, 3e300, 2e300]) == pytest.approx((2e300, 1e300))
    assert mean_and_std([1e-300, 3e-300, 2e-300]) == pytest.approx((2e-300, 1e-300))
    assert mean_and_std([-1.7e308, 1.7e308]) == (0.0, None)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(105117.0, "105117"), (20150101.0, "20150101"), (-3.0, "-3"), (0.1, "0.1"), (37.880001, "37.88"), (1e20, "1e+20")],
)
def test_a_value_of_the_data_keeps_the_digits_by_which_it_is_recognized(value, shown):
    assert as_given(value) == shown
