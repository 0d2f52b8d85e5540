"""What a parameter explains of a score."""

import numpy as np
import pytest

from boosters_eval.stats.trends import explain_ranks


@pytest.mark.parametrize("shape", [lambda x: x, lambda x: -(x**3), lambda x: (x - 0.5) ** 2])
def test_a_trend_is_found_whichever_way_it_goes_and_where_its_best_is_inside(shape):
    x = np.random.default_rng(1).random(20)
    share, p = explain_ranks(x, shape(x))
    assert share > 0.8
    assert p < 1e-6


@pytest.mark.parametrize("count", [10, 20])
def test_chance_is_told_as_often_as_its_level_says(count):
    rng = np.random.default_rng(2)
    told = sum(explain_ranks(rng.random(count), rng.random(count))[1] <= 0.05 for _ in range(1000))
    assert 30 <= told <= 70


def test_what_does_not_vary_explains_nothing():
    assert explain_ranks(np.ones(9), np.arange(9.0)) == (0.0, 1.0)
    assert explain_ranks(np.arange(9.0), np.ones(9)) == (0.0, 1.0)


def test_two_values_are_a_trend_as_well():
    share, p = explain_ranks(np.array([0.0, 1.0] * 10), np.arange(20.0) % 2)
    assert share == pytest.approx(1.0)
    assert p < 1e-6


def test_any_unit_of_either_says_the_same():
    rng = np.random.default_rng(3)
    x, y = rng.random(15), rng.random(15)
    assert explain_ranks(1000 * x, y**3) == pytest.approx(explain_ranks(x, y))
