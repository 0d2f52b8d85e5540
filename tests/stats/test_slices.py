"""Slices: what conditions select, what is found, and what never is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.stats.slices import _FINE, Condition, Features, PairedErrors, _Cut, _Sums, find_slices


def make_errors(n=2000, seed=0, **more):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n)
    a, b = ((noise + 0.3 * rng.normal(size=n)) ** 2 for _ in range(2))
    return PairedErrors(a, b, root=True, **more)


def make_features(n=2000, seed=1):
    return Features(np.random.default_rng(seed).normal(size=(n, 4)))


def enlarge(errors, rows, factor=4.0):
    return PairedErrors(
        np.where(rows, factor * errors.a, errors.a), errors.b, errors.weights, errors.units, root=errors.root
    )


def test_a_condition_is_a_value_inclusive_bounds_or_missing():
    values = np.array([1.0, 2.0, 3.0, np.nan])
    assert Condition(0, low=2.0).holds(values).tolist() == [False, True, True, False]
    assert Condition(0, high=2.0).holds(values).tolist() == [True, True, False, False]
    assert Condition(0, low=2.0, high=2.0).holds(values).tolist() == [False, True, False, False]
    assert Condition(0, value=3.0).holds(values).tolist() == [False, False, True, False]
    assert Condition(0).holds(values).tolist() == [False, False, False, True]


VALUES = st.sampled_from([0.0, 1.0, 2.5, 7.0, float("nan")]) | st.floats(-5, 5)


@given(st.lists(VALUES, min_size=1, max_size=60), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_bins_of_a_condition_hold_the_rows_that_it_selects(values, categorical):
    features = Features(np.array([values]).T, frozenset({0} if categorical else ()))
    cut = _Cut.of(features, 0, _FINE)
    for condition, start, end in zip(cut.conditions, cut.starts, cut.ends, strict=True):
        inside = (cut.codes >= start) & (cut.codes < end)
        assert np.array_equal(inside, condition.holds(features.values[:, 0]))
        assert inside.any()


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_a_score_is_the_smaller_distance_of_a_part_from_nothing_and_from_the_rest(seed):
    rng = np.random.default_rng(seed)
    features, d, shares = Features(rng.normal(size=(200, 2))), rng.normal(size=200), rng.uniform(0.5, 2, size=200)
    cuts = [_Cut.of(features, column, 3) for column in (0, 1)]
    scores = _Sums(d, shares, 10.0).score(np.ones(200, dtype=bool), *cuts)
    for place in np.argwhere(np.isfinite(scores))[:5]:
        inside = features.select([cut.conditions[i] for cut, i in zip(cuts, place, strict=True)])

        def look_at(rows):
            w = shares[rows]
            return w @ d[rows] / w.sum(), w.sum() ** 2 / (w**2).sum()

        (mean, n), (other, m) = look_at(inside), look_at(~inside)
        expected = min(mean / (d.std() / n**0.5), (mean - other) / (d.std() * (1 / n + 1 / m) ** 0.5))
        assert scores[tuple(place)] == pytest.approx(expected)


def test_a_slice_of_each_kind_is_found_with_its_bounds():
    features, errors = make_features(), make_errors()
    values = features.values.copy()
    values[:, 2] = np.digitize(values[:, 2], (-1, 0, 1))
    values[np.random.default_rng(5).random(2000) < 0.1, 3] = np.nan
    features = Features(values, frozenset({2}))
    for conditions in (
        [Condition(0, low=1.2)],
        [Condition(0, low=-0.5, high=0.2)],
        [Condition(2, value=3.0)],
        [Condition(3)],
        [Condition(0, low=0.5), Condition(1, high=-0.3)],
    ):
        rows = features.select(conditions)
        (first, *_) = find_slices(features, enlarge(errors, rows)).slices
        assert {one.column for one in first.conditions} == {one.column for one in conditions}
        found = features.select(first.conditions)
        assert (found & rows).sum() >= 0.6 * (found | rows).sum()
        assert first.a / first.b == pytest.approx(2.0, rel=0.3)


def test_a_slice_on_which_the_first_is_always_wrong_is_found_although_nothing_varies():
    features = Features(np.digitize(make_features().values, (-1, 0, 1)).astype(float), frozenset(range(4)))
    rows = features.values[:, 1] == 3
    found = find_slices(features, PairedErrors(rows.astype(float), np.zeros(2000)))
    assert found.slices[0].a == 1.0
    assert found.slices[0].difference.error > 0


def test_roots_are_compared_by_their_difference_where_few_rows_make_the_error_of_the_second():
    rng = np.random.default_rng(0)
    features = Features(rng.integers(6, size=(2000, 2)).astype(float), frozenset({0, 1}))
    a, b = rng.normal(size=(2, 2000)) ** 2
    exact = np.where(rng.random(2000) < 0.015, 1.0, 1e-4 * b)
    found = find_slices(features, PairedErrors(a, np.where(features.values[:, 1] == 3, exact, b), root=True))
    low, high = found.interval(found.slices[0])
    assert not found.slices[0].relative
    assert 0.6 < low < high < 1.2


def test_roots_are_compared_by_their_ratio_and_the_interval_is_that_of_the_difference():
    features = make_features()
    found = find_slices(features, enlarge(make_errors(), features.values[:, 0] > 1.2))
    first = found.slices[0]
    low, high = first.difference.interval(2 * found.level)
    assert first.relative
    assert first.difference.estimate == pytest.approx(np.log(first.a / first.b))
    assert found.interval(first) == pytest.approx((first.b * (np.exp(low) - 1), first.b * (np.exp(high) - 1)))


def test_equal_errors_have_no_slice_and_nothing_to_detect():
    errors = make_errors()
    found = find_slices(make_features(), PairedErrors(errors.a, errors.a, root=True))
    assert (found.slices, found.tested, found.detectable) == ((), 0, None)


def test_a_library_that_is_worse_everywhere_alike_has_no_slice_of_its_own():
    rng = np.random.default_rng(3)
    b = rng.uniform(size=2000)
    found = find_slices(make_features(), PairedErrors(b + 1 + 0.1 * rng.normal(size=2000), b))
    assert found.slices == ()
    assert found.overall.interval(0.05)[0] > 0.9


def test_who_wins_on_a_slice_does_not_lose_there():
    features, errors = make_features(), make_errors()
    worse = enlarge(errors, features.values[:, 0] > 1)
    assert find_slices(features, worse).slices
    for one in find_slices(features, PairedErrors(worse.b, worse.a, root=True)).slices:
        assert not (features.select(one.conditions) & (features.values[:, 0] > 1)).any()


def test_the_interval_of_a_slice_excludes_zero_and_the_answer_is_the_same_each_time():
    features = make_features()
    errors = enlarge(make_errors(), features.values[:, 0] > 1)
    one, two = (find_slices(features, errors) for _ in range(2))
    assert one == two
    assert all(one.interval(found)[0] > 0 for found in one.slices)


def test_rows_of_a_group_count_as_one_unit():
    features, n = make_features(), 2000
    unit = np.arange(n) // 100  # twenty groups: a slice that one group makes is no evidence
    lost = np.zeros(n)
    lost[unit == 3] = 5.0
    values = features.values.copy()
    values[:, 0] += 4 * (unit == 3)
    rng = np.random.default_rng(2)
    a, b = 1 + lost + 0.1 * rng.normal(size=n), 1 + 0.1 * rng.normal(size=n)
    assert find_slices(Features(values), PairedErrors(a, b)).slices
    assert not find_slices(Features(values), PairedErrors(a, b, units=unit)).slices


def test_weights_say_how_much_a_row_counts():
    features, errors = make_features(), make_errors()
    rows = features.values[:, 0] > 1
    weights = np.where(rows, 1e-6, 1.0)
    worse = enlarge(errors, rows)
    overall = find_slices(features, PairedErrors(worse.a, worse.b, weights, root=True)).overall
    assert overall.estimate == pytest.approx(
        np.sqrt(errors.a[~rows].mean()) - np.sqrt(errors.b[~rows].mean()), abs=1e-4
    )


def test_columns_without_values_or_with_one_are_no_slices():
    n = 500
    values = np.column_stack([np.full(n, np.nan), np.ones(n)])
    assert find_slices(Features(values), make_errors(n)).tested == 0
