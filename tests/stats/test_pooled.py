"""One verdict over data sets: honest with few of them, and decided where they agree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.stats.pooled import MIN_EFFECTS, Effect, pool


def effects_of(sizes, errors=None):
    errors = [None] * len(sizes) if errors is None else errors
    return {f"d{number}": Effect(*pair) for number, pair in enumerate(zip(sizes, errors, strict=True))}


def test_fewer_than_six_data_sets_say_nothing_in_general():
    assert pool(effects_of([0.1] * (MIN_EFFECTS - 1)), level=0.05, rope=0.01) is None
    assert pool(effects_of([0.1] * MIN_EFFECTS), level=0.05, rope=0.01) is not None


def test_without_errors_it_is_the_mean_with_students_interval():
    sizes = [-0.05, -0.02, -0.08, -0.01, -0.04, -0.03, -0.06, -0.05]
    found = pool(effects_of(sizes), level=0.05, rope=0.01)
    half = 2.3646242510102993 * np.std(sizes, ddof=1) / math.sqrt(8)
    assert found.mean == pytest.approx(np.mean(sizes))
    assert (found.low, found.high) == pytest.approx((np.mean(sizes) - half, np.mean(sizes) + half))
    assert found.conclude(0.01) == "better"
    assert found.share == pytest.approx(math.expm1(found.mean))


def test_uncertain_data_sets_weigh_less():
    sizes, errors = [0.0] * 6 + [0.5], [0.01] * 6 + [1.0]
    assert pool(effects_of(sizes, errors), level=0.05, rope=0.01).mean < 0.01 < np.mean(sizes)


def test_variance_between_data_sets_is_that_of_moments():
    sizes, errors = [0.1, -0.1, 0.3, -0.3, 0.2, -0.2], [0.05] * 6
    found = pool(effects_of(sizes, errors), level=0.05, rope=0.01)
    assert found.between**2 == pytest.approx(np.var(sizes, ddof=1) - 0.05**2)


def test_shown_to_be_equivalent_needs_an_interval_inside_the_region():
    near = effects_of([0.001, -0.001] * 6, [0.001] * 12)
    assert pool(near, level=0.05, rope=0.01).conclude(0.01) == "equivalent"
    assert pool(near, level=0.05, rope=0.01).conclude(0.0001) == "inconclusive"


def test_a_verdict_that_hangs_on_one_data_set_names_it():
    sizes = [-0.03, -0.04, -0.03, -0.05, -0.04, -0.03, 0.02]
    found = pool(effects_of(sizes, [0.001] * 7), level=0.05, rope=0.01)
    assert found.conclude(0.01) == "better"
    shaken = pool(effects_of([*sizes[:-1], 0.05], [0.001] * 7), level=0.05, rope=0.01)
    assert shaken.conclude(0.01) == "inconclusive"
    assert shaken.hinges == ("d6",)
    assert pool(effects_of([-0.05] * 12, [0.01] * 12), level=0.05, rope=0.01).hinges == ()


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=15), st.floats(0.001, 0.5))
def test_turned_round_it_says_the_opposite(sizes, error):
    ways = [
        pool(effects_of([sign * size for size in sizes], [error] * len(sizes)), level=0.05, rope=0.01)
        for sign in (1, -1)
    ]
    assert ways[0].mean == pytest.approx(-ways[1].mean, abs=1e-12)
    assert ways[0].low == pytest.approx(-ways[1].high, abs=1e-12)
    assert ways[0].low <= ways[0].mean <= ways[0].high


@pytest.mark.parametrize("count", [6, 12, 24])
@pytest.mark.parametrize("between", [0.0, 0.01, 0.05])
def test_equal_libraries_are_told_apart_in_at_most_six_percent(count, between):
    """Effects of data sets around zero; their errors differ by a factor of ten and are estimated themselves."""
    rng = np.random.default_rng([count, round(1000 * between)])
    repetitions, told, missed = 600, 0, 0
    for _ in range(repetitions):
        errors = 0.01 * rng.lognormal(size=count)
        sizes = between * rng.standard_t(5, size=count) + errors * rng.normal(size=count)
        estimated = errors * np.sqrt(rng.chisquare(20, size=count) / 20)
        found = pool(effects_of(sizes, estimated), level=0.05, rope=0.0)
        told += found.conclude(0.0) in ("better", "worse")
        shifted = pool(effects_of(sizes - 0.1, estimated), level=0.05, rope=0.0)
        missed += count == 24 and shifted.conclude(0.0) != "better"
    error = math.sqrt(0.06 * 0.94 / repetitions)
    assert told / repetitions <= 0.06 + 2 * error
    assert missed / repetitions <= 0.02  # a difference of 10 % on average is not missed
