"""Verdicts on many pairs at once are those of the comparison of one pair, or none."""

import math

import numpy as np
import pytest
from scipy import stats

from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.many import verdicts_of_scores, verdicts_of_times
from boosters_eval.stats.significance import Criteria, compare_pair, compare_times


def _pairs(rng, rows, splits):
    """Scores of all kinds: different, nearly equal, equal, off by a constant, on a grid, tiny, broken."""
    scale = 10.0 ** rng.integers(-3, 4, size=(rows, 1))
    base = scale * (1 + 0.1 * rng.standard_normal((rows, splits)))
    shift = scale * rng.choice([0, 1e-15, 1e-10, 0.001, 0.01, 0.1], size=(rows, 1))
    noise = scale * rng.choice([0, 1e-14, 1e-3, 1e-2], size=(rows, 1)) * rng.standard_normal((rows, splits))
    other = base + shift + noise
    other[::50, 0] = np.nan
    other[7::50] = 0.0
    base[11::50] *= 1e-150
    other[11::50] *= 1e-150
    base[13::50], other[13::50] = np.round(base[13::50], 2), np.round(other[13::50], 2)
    return base, other


def _one(function, *args, **options):
    try:
        return function(*args, **options).verdict
    except StatisticsInputError:
        return None


@pytest.mark.parametrize("splits", [2, 5, 20])
@pytest.mark.parametrize("resolution", [0.0, 0.01, None])
@pytest.mark.parametrize("higher", [True, False])
def test_scores_are_judged_as_one_pair_is(splits, resolution, higher):
    a, b = _pairs(np.random.default_rng(splits), 200, splits)
    found = verdicts_of_scores(
        a,
        b,
        Criteria(higher),
        test_train_ratio=0.25,
        resolution=resolution,
        identical=np.zeros(len(a), dtype=bool),
    )
    options = {"higher_is_better": higher, "test_train_ratio": 0.25, "resolution": resolution}
    expected = [_one(compare_pair, one, other, **options) for one, other in zip(a, b, strict=True)]
    assert [(mine, own) for mine, own in zip(found, expected, strict=True) if mine not in (None, own)] == []
    assert sum(verdict is not None for verdict in found) > len(a) / 3
    assert {"better", "worse", "equivalent", "inconclusive"} >= set(found) - {None}


@pytest.mark.parametrize("splits", [2, 5, 20])
def test_times_are_judged_as_one_pair_is(splits):
    a, b = _pairs(np.random.default_rng(splits), 200, splits)
    found = verdicts_of_times(a, b, Criteria(higher_is_better=False, test="paired"))
    expected = [_one(compare_times, one, other) for one, other in zip(a, b, strict=True)]
    assert [(mine, own) for mine, own in zip(found, expected, strict=True) if mine not in (None, own)] == []
    assert sum(verdict is not None for verdict in found) > len(a) / 3


def test_identical_predictions_are_equivalent_whatever_the_resolution():
    scores = np.full((1, 5), 0.5)
    found = [
        verdicts_of_scores(
            scores,
            scores,
            Criteria(higher_is_better=True),
            test_train_ratio=0.25,
            resolution=resolution,
            identical=np.array([identical]),
        )[0]
        for resolution, identical in ((0.5, True), (None, True), (None, False), (0.0, False), (0.5, False))
    ]
    assert found == ["equivalent", "equivalent", "inconclusive", "equivalent", None]


@pytest.mark.parametrize("sides", [(1e200, 1.0), (1.0, 1e200), (1e200, 1e200)])
def test_scores_too_large_to_be_squared_are_left_to_the_comparison_of_one_pair(sides):
    a, b = (side * np.array([[1.0, 1.1, 0.9, 1.2, 1.0]]) for side in sides)
    options = {"test_train_ratio": 0.25, "resolution": 0.0, "identical": np.zeros(1, dtype=bool)}
    assert verdicts_of_scores(a, b, Criteria(higher_is_better=True), **options) == [None]


def test_one_split_is_left_to_the_comparison_of_one_pair():
    one = np.full((2, 1), 0.5)
    assert verdicts_of_times(one, one, Criteria(higher_is_better=False, test="paired")) == [None, None]


ROPE = 0.02


def _on_an_edge(edge, off):
    """Differences from 1 whose interval ends `off` beside an edge, by the formula of the corrected test."""
    noise = np.array([-2.0, 1.0, 0.0, 3.0, -2.0]) * (2e-3 if edge in {"margin", "-margin"} else 1e-2)
    half = stats.t.ppf(0.975, 4) * math.sqrt(1 / 5 + 0.25) * noise.std(ddof=1)
    mean = {
        "low at 0": half,
        "high at 0": -half,
        "-margin": (half - ROPE) / (1 + ROPE / 2),  # where mean - half = -rope * (1 + mean / 2)
        "margin": (ROPE - half) / (1 - ROPE / 2),
    }[edge]
    return 1 + mean + off + noise


@pytest.mark.parametrize("edge", ["low at 0", "high at 0", "-margin", "margin"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_an_interval_that_ends_on_an_edge_is_left_to_the_comparison_of_one_pair(edge, scale):
    offs = (-1e-6, -1e-10, 0.0, 1e-10, 1e-6)
    a = scale * np.array([_on_an_edge(edge, off) for off in offs])
    b = np.full_like(a, scale)
    found = verdicts_of_scores(
        a,
        b,
        Criteria(higher_is_better=True, rope=ROPE),
        test_train_ratio=0.25,
        resolution=0.0,
        identical=np.zeros(len(a), dtype=bool),
    )
    assert found[1:4] == [None] * 3
    options = {"higher_is_better": True, "test_train_ratio": 0.25, "rope": ROPE}
    beside = [compare_pair(a[row], b[row], **options).verdict for row in (0, -1)]
    assert [found[0], found[-1]] == beside
    assert beside[0] != beside[1]  # it is an edge


@pytest.mark.parametrize(("spread", "answered"), [(0.0, False), (1e-11, False), (1e-6, True)])
def test_differences_that_hardly_vary_are_left_to_the_comparison_of_one_pair(spread, answered):
    a = 1.1 + spread * np.array([[-1.0, 0.0, 1.0, 0.0, 0.0]])
    options = {"test_train_ratio": 0.25, "resolution": 0.0, "identical": np.zeros(1, dtype=bool)}
    found = verdicts_of_scores(a, np.ones((1, 5)), Criteria(higher_is_better=True), **options)
    assert found == (["better"] if answered else [None])


@pytest.mark.parametrize("ratio", [1.49, 1.51, 1.6, 0.67, 0.66, 0.62])
def test_the_region_of_a_ratio_is_that_of_one_pair(ratio):
    times = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    a = ratio * times * (1 + 1e-4 * np.array([1, -1, 0, 1, -1, 0]))
    found = verdicts_of_times(a, times, Criteria(higher_is_better=False, test="paired", rope=0.5))
    assert found == [compare_times(a[0], times[0], rope=0.5).verdict]
