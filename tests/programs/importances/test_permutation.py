"""Permutation importance: the same shuffles for everybody, in the metric of the task, with weights and queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.metrics.task import Task
from boosters_eval.programs.importances import workload as permutation
from boosters_eval.programs.importances.records import FeatureUnit
from boosters_eval.programs.importances.workload import (
    choose_rows,
    list_units,
    make_score,
    permutation_importance,
    shuffle,
)

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(200, 4)).astype(np.float32)
Y = 3.0 * X[:, 0] + X[:, 1].astype(np.float64)
UNITS = list_units(("a", "b", "c", "d"), ())


def model(x):
    return 3.0 * x[:, 0] + x[:, 1].astype(np.float64)


def measured(predict=model, units=UNITS, *, repeats=4, metric="rmse", **rows):
    score = make_score(metric, Task.REGRESSION, (), Y, **rows)
    return permutation_importance(
        predict,
        score,
        X,
        units,
        repeats=repeats,
        split_digest="split",
        higher_is_better=metric == "r2",
        baseline=score(predict(X)),
    )


def test_it_is_what_a_plain_loop_over_repeats_and_columns_gives():
    score = make_score("rmse", Task.REGRESSION, (), Y)
    expected = np.empty((4, 4))
    for repeat in range(4):
        for column in range(4):
            x = X.copy()
            x[:, column] = X[shuffle("split", column, repeat, 200), column]
            expected[repeat, column] = score(model(x)) - score(model(X))
    assert np.array_equal(measured(), expected)


@pytest.mark.parametrize("most", [1, 2 * X.nbytes, 3 * X.nbytes])
def test_how_many_copies_are_predicted_at_once_changes_nothing(monkeypatch, most):
    whole = measured()
    monkeypatch.setattr(permutation, "_MAX_BYTES", most)
    sizes = []

    def counted(x):
        sizes.append(len(x))
        return model(x)

    assert np.array_equal(measured(counted), whole)
    assert max(sizes) == 200 * max(1, most // X.nbytes)


def test_larger_is_more_important_whichever_way_the_metric_is_better():
    for metric in ("rmse", "r2", "mae"):
        mean = measured(metric=metric).mean(axis=0)
        assert mean[0] > mean[1] > 0
        assert mean[2:].tolist() == [0.0, 0.0]
        assert not np.signbit(mean).any()


def test_columns_of_a_group_are_shuffled_together():
    pair = (FeatureUnit(name="pair", columns=(0, 1)),)
    units = list_units(("a", "b", "c", "d"), pair)
    assert [unit.name for unit in units] == ["c", "d", "pair"]
    seen = []

    def watch(x):
        seen.append(x.copy())
        return model(x)

    measured(watch, units, repeats=1)
    rows = {tuple(row) for row in X[:, :2].tolist()}
    assert all(tuple(row) in rows for row in seen[-1][:, :2].tolist())
    assert not np.array_equal(seen[-1][:, :2], X[:, :2])
    assert np.array_equal(seen[-1][:, 2:], X[:, 2:])


def test_rows_without_weight_do_not_count():
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)

    def wrong_where_it_does_not_count(x):
        return np.where(np.arange(len(x)) % 200 < 100, model(x), x[:, 2])

    heavy, plain = (measured(wrong_where_it_does_not_count, **given) for given in ({"weights": weights}, {}))
    assert heavy[:, 2].tolist() == [0.0] * 4
    assert plain[:, 2].all()


def test_a_ranking_is_scored_within_queries():
    groups = np.repeat(np.arange(20), 10)
    labels = np.digitize(X[:, 0], [-0.5, 0.5]).astype(np.float64)
    score = make_score("ndcg@5", Task.RANKING, (), labels, groups=groups)

    def importance(predict):
        options = {"repeats": 3, "split_digest": "s", "higher_is_better": True, "baseline": score(predict(X))}
        return permutation_importance(predict, score, X, UNITS, **options).mean(axis=0)

    assert importance(lambda x: x[:, 0])[0] > 0.1
    offset = np.repeat(np.arange(20) * 100.0, 10)  # what is the same in all rows of a query ranks nothing
    assert importance(lambda x: x[:, 0] + np.tile(offset, len(x) // 200))[0] == pytest.approx(
        importance(lambda x: x[:, 0])[0]
    )


def test_quantiles_are_scored_by_the_columns_that_the_metric_wants():
    score = make_score("pinball", Task.QUANTILE, (0.1, 0.9), Y)
    predictions = np.column_stack([Y - 1, Y + 1])
    assert score(predictions) == pytest.approx(0.1)


@given(n=st.integers(2, 300), column=st.integers(0, 50), repeat=st.integers(0, 20), digest=st.text(max_size=8))
@settings(max_examples=50, deadline=None)
def test_a_shuffle_is_an_order_that_depends_on_nothing_else(n, column, repeat, digest):
    found = shuffle(digest, column, repeat, n)
    assert sorted(found) == list(range(n))
    assert np.array_equal(found, shuffle(digest, column, repeat, n))


def test_shuffles_differ_by_split_column_and_repeat():
    found = [shuffle(*key, 100) for key in (("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("a", 0, 1))]
    assert len({tuple(order) for order in found}) == 4


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=40), most=st.integers(1, 100))
@settings(max_examples=60, deadline=None)
def test_a_sample_of_a_ranking_has_whole_queries_and_is_not_larger_than_it_may_be(sizes, most):
    groups = np.repeat(np.arange(len(sizes)) * 7, sizes)
    places = choose_rows(len(groups), most, "split", groups)
    assert np.array_equal(places, np.sort(places))
    taken = np.unique(groups[places])
    assert np.array_equal(places, np.flatnonzero(np.isin(groups, taken)))
    assert len(places) <= most or len(taken) == 1
    if len(groups) <= most:
        assert len(places) == len(groups)


def test_a_sample_of_rows_depends_on_the_split_alone():
    first, second, other = (choose_rows(1_000, 100, split) for split in ("a", "a", "b"))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert len(np.unique(first)) == 100
    assert np.array_equal(choose_rows(100, 100, "a"), np.arange(100))
