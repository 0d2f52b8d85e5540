"""Bins of predictions: what was found in them, and intervals that hold for rows, repeated rows and groups."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from boosters_eval.metrics import get
from boosters_eval.stats.calibration import (
    PredictedRows,
    bin_probabilities,
    bin_residuals,
    bound_mean,
    bound_share,
    cover_quantiles,
)

SEEDS = st.integers(0, 2**32)
FEW = settings(max_examples=60, deadline=None)


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p).astype(float), PredictedRows(np.arange(n), weights=rng.uniform(0.2, 3.0, n))


@FEW
@given(st.integers(0, 40), st.integers(1, 40))
def test_a_share_of_single_rows_has_the_interval_of_wilson(hits, others):
    n = hits + others
    found = bound_share(np.r_[np.ones(hits), np.zeros(others)], PredictedRows(np.arange(n)))
    reference = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert found == pytest.approx((hits / n, reference.low, reference.high), abs=1e-9)


@FEW
@given(SEEDS, st.integers(2, 30), st.integers(2, 4))
def test_rows_that_were_tested_again_tell_nothing_new(seed, n, times):
    rng = np.random.default_rng(seed)
    hits, values = (rng.random(n) < 0.4).astype(float), rng.normal(size=n)
    once, again = PredictedRows(np.arange(n)), PredictedRows(np.tile(np.arange(n), times))
    assert bound_share(np.tile(hits, times), again) == pytest.approx(bound_share(hits, once))
    assert bound_mean(np.tile(values, times), again) == pytest.approx(bound_mean(values, once))


@FEW
@given(SEEDS, st.integers(2, 30))
def test_a_mean_of_single_rows_has_the_interval_of_student(seed, n):
    values = np.random.default_rng(seed).normal(size=n)
    low, high = stats.t.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / math.sqrt(n))
    assert bound_mean(values, PredictedRows(np.arange(n))) == pytest.approx((values.mean(), low, high))


def test_one_row_or_group_has_a_mean_without_an_interval():
    assert bound_mean(np.array([3.0]), PredictedRows(np.arange(1))) == (3.0, None, None)
    assert bound_mean(np.array([1.0, 3.0]), PredictedRows(np.arange(2), np.zeros(2, int))) == (2.0, None, None)


@FEW
@given(SEEDS, st.integers(1, 200))
def test_bins_of_probabilities_hold_every_row_and_add_up_to_the_ece(seed, n):
    p, y, tested = drawn(seed, n)
    bins = bin_probabilities(p, y, tested)
    assert sum(one.rows for one in bins) == n
    assert math.fsum(one.share for one in bins) == pytest.approx(1.0)
    gap = math.fsum(one.share * abs(one.at - one.found) for one in bins)
    assert gap == pytest.approx(get("ece").compute(p, y, tested.weights), abs=1e-9)
    assert all(0.0 <= one.low <= one.found <= one.high <= 1.0 for one in bins)


@FEW
@given(SEEDS, st.integers(1, 300))
def test_bins_of_residuals_add_up_to_the_bias(seed, n):
    rng = np.random.default_rng(seed)
    predicted, actual = np.round(rng.normal(size=n), 1), rng.normal(size=n)
    tested = PredictedRows(np.arange(n), weights=rng.uniform(0.2, 3.0, n))
    bins = bin_residuals(predicted, actual, tested)
    assert sum(one.rows for one in bins) == n
    assert len(bins) <= max(1, min(10, n // 20))
    bias = np.average(actual - predicted, weights=tested.weights)
    assert math.fsum(one.share * one.found for one in bins) == pytest.approx(bias, abs=1e-9)
    assert [one.at for one in bins] == sorted(one.at for one in bins)
    assert all(one.spread[0] <= one.spread[1] for one in bins)


@FEW
@given(SEEDS, st.integers(2, 60))
def test_coverage_is_the_share_of_rows_that_are_not_above(seed, n):
    rng = np.random.default_rng(seed)
    predicted, actual = np.sort(rng.normal(size=(n, 3)), axis=1), rng.normal(size=n)
    found = cover_quantiles((0.1, 0.5, 0.9), predicted, actual, PredictedRows(np.arange(n)))
    assert [one.at for one in found] == [0.1, 0.5, 0.9]
    assert [one.found for one in found] == [
        pytest.approx(sum(a <= q for a, q in zip(actual, predicted[:, k], strict=True)) / n) for k in range(3)
    ]


def test_rows_without_weight_are_in_no_bin():
    p, y = np.array([0.05, 0.55, 0.55]), np.array([1.0, 1.0, 0.0])
    tested = PredictedRows(np.arange(3), weights=np.array([0.0, 1.0, 0.0]))
    (one,) = bin_probabilities(p, y, tested)
    assert (one.at, one.found, one.rows) == (0.55, 1.0, 1)


def covered(make, expected, repetitions=600):
    rng = np.random.default_rng(3)
    return np.mean([low <= expected <= high for _, low, high in (make(rng) for _ in range(repetitions))])


def test_intervals_of_independent_rows_hold_19_times_of_20():
    """Exactly, not simulated: whatever the share, as far as whole numbers of hits allow it, and on average."""
    bounds = [bound_share((np.arange(60) < hits).astype(float), PredictedRows(np.arange(60))) for hits in range(61)]
    shares = np.linspace(0.02, 0.98, 49)
    held = [stats.binom.pmf(range(61), 60, p) @ [low <= p <= high for _, low, high in bounds] for p in shares]
    assert min(held) > 0.91
    assert np.mean(held) == pytest.approx(0.95, abs=0.01)


def grouped(rng, share):
    """15 groups of 8 rows, of which each has a share of its own around this one."""
    own = rng.beta(2 * share, 2 * (1 - share), size=15)
    units = np.repeat(np.arange(15), 8)
    return (rng.random(120) < own[units]).astype(float), units


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_intervals_of_groups_hold_where_those_of_rows_do_not(share):
    def by_group(rng):
        hits, units = grouped(rng, share)
        return bound_share(hits, PredictedRows(np.arange(120), units))

    def by_row(rng):
        return bound_share(grouped(rng, share)[0], PredictedRows(np.arange(120)))

    assert covered(by_row, share) < 0.85
    assert covered(by_group, share) > 0.92


def test_means_of_groups_hold_where_those_of_rows_do_not():
    units = np.repeat(np.arange(12), 6)

    def draw(rng):
        return rng.normal(size=12)[units] + rng.normal(size=72)

    assert covered(lambda rng: bound_mean(draw(rng), PredictedRows(np.arange(72))), 0.0) < 0.85
    assert covered(lambda rng: bound_mean(draw(rng), PredictedRows(np.arange(72), units)), 0.0) > 0.93


def test_groups_that_are_all_alike_are_worth_as_many_rows_as_there_are_groups():
    found = bound_share(np.ones(40), PredictedRows(np.arange(40), np.repeat(np.arange(5), 8)))
    assert found == pytest.approx(bound_share(np.ones(5), PredictedRows(np.arange(5))))
