"""What a probe changes: nothing that should matter."""

import numpy as np
import pytest

from boosters_eval.metrics.task import Task
from boosters_eval.programs.determinism.workload import change
from boosters_eval.runners.base import FitRequest, TrainData
from boosters_eval.runners.parameters import TrainingConfig

REQUEST = FitRequest(task=Task.REGRESSION, training=TrainingConfig(), categorical=(1,))
X = np.arange(40, dtype=np.float32).reshape(10, 4)
DATA = TrainData(X, np.arange(10.0), feature_names=("a", "b", "c", "d"))


@pytest.mark.parametrize("probe", ["once", "again", "process", "threads", "threads again", "all threads"])
def test_what_asks_about_the_process_leaves_the_rows_alone(probe):
    assert change(probe, REQUEST, DATA, X) == (REQUEST, DATA, X)


def test_rows_are_reordered_together_and_all_of_them_stay():
    _, train, x = change("rows", REQUEST, DATA, X)
    assert train.y.tolist() != DATA.y.tolist()
    assert sorted(train.y) == sorted(DATA.y)
    assert np.array_equal(train.x[:, 0], 4 * train.y)
    assert x is X


def test_queries_are_reordered_whole():
    groups = np.array([5, 5, 5, 2, 2, 9, 9, 9, 9, 1])
    ranked = TrainData(X, np.arange(10.0), groups=groups)
    _, train, _ = change("rows", REQUEST, ranked, X)
    assert np.count_nonzero(np.diff(train.groups)) == 3
    assert all(np.all(np.diff(train.y[train.groups == group]) == 1) for group in (5, 2, 9))


def test_columns_are_reordered_in_training_and_in_test_rows_with_their_kinds():
    request, train, x = change("columns", REQUEST, DATA, X)
    (place,) = request.categorical
    assert train.feature_names[place] == "b"
    assert np.array_equal(train.x[:, place], X[:, 1])
    assert np.array_equal(train.x, x)
    assert not np.array_equal(train.x, X)


def test_repeated_rows_are_as_many_as_their_weights():
    weighted_request, weighted, _ = change("weights", REQUEST, DATA, X)
    request, repeated, _ = change("repeated", REQUEST, DATA, X)
    assert weighted_request.weighted
    assert not request.weighted
    assert repeated.weights is None
    assert np.bincount(repeated.y.astype(int)).tolist() == weighted.weights.tolist()
    assert set(weighted.weights) <= {1.0, 2.0, 3.0}
