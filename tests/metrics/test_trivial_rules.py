"""The trivial rules learn from the training targets alone, and are scored as a library is."""

import numpy as np
import pytest

from boosters_eval.metrics import compute_metrics
from boosters_eval.metrics.task import Task
from boosters_eval.metrics.trivial import trivial_scores

RNG = np.random.default_rng(3)
POSITIVE = RNG.random(200) < 0.1


def scores(task, train, valid, **more):
    return trivial_scores(task, (np.asarray(train), more.pop("weights_train", None)), np.asarray(valid), **more)


def test_regression_predicts_the_mean_and_the_median_of_the_training_rows():
    found = scores(Task.REGRESSION, [0.0, 1.0, 5.0], [1.0, 3.0], n_classes=None)
    assert found["mean"] == {"rmse": 1.0, "mae": 1.0, "r2": 0.0}
    assert found["median"]["mae"] == 1.0
    assert found["median"]["rmse"] == pytest.approx(np.sqrt(2), rel=1e-5)


def test_training_weights_count():
    found = scores(Task.REGRESSION, [0.0, 1.0, 5.0], [5.0], n_classes=None, weights_train=np.array([0.0, 0.0, 2.0]))
    assert found["mean"]["rmse"] == found["median"]["rmse"] == 0.0
    nothing = scores(Task.REGRESSION, [0.0, 2.0], [1.0], n_classes=None, weights_train=np.zeros(2))
    assert nothing["mean"]["rmse"] == 0.0  # without any weight, the rows count alike


def test_classes_are_predicted_by_their_priors():
    binary = scores(Task.BINARY, POSITIVE.astype(float), POSITIVE.astype(float), n_classes=2)
    share = POSITIVE.mean()
    assert binary["priors"]["accuracy"] == pytest.approx(1 - share)
    assert binary["priors"]["auc_roc"] == 0.5
    many = scores(Task.MULTICLASS, [0.0, 0.0, 2.0, 1.0], [0.0, 1.0], n_classes=3)
    assert many["priors"]["mlogloss"] == pytest.approx(-(np.log(0.5) + np.log(0.25)) / 2, rel=1e-5)


def test_quantiles_of_the_training_rows_are_predicted():
    found = scores(Task.QUANTILE, np.arange(101.0), [10.0, 90.0], n_classes=None, quantiles=(0.1, 0.5, 0.9))
    levels = np.tile([10.0, 50.0, 90.0], (2, 1))
    expected = compute_metrics(Task.QUANTILE, np.array([10.0, 90.0]), levels, quantiles=(0.1, 0.5, 0.9))
    assert found == {"quantiles": {name: pytest.approx(value, rel=1e-5) for name, value in expected.items()}}


def test_ranking_keeps_the_order_of_each_query():
    groups = np.array([0, 0, 0, 1, 1, 1])
    good = scores(Task.RANKING, [0.0], [2.0, 0.0, 1.0, 2.0, 1.0, 0.0], n_classes=None, groups=groups)
    assert 0.9 < good["order"]["ndcg@10"] < 1.0
    worst_first = scores(Task.RANKING, [0.0], [0.0, 1.0, 2.0, 0.0, 1.0, 2.0], n_classes=None, groups=groups)
    assert worst_first["order"]["mrr"] == 0.5


def test_rows_that_are_sorted_by_relevance_have_no_order_to_be_kept():
    """It is the answer, which nobody can beat: no library would ever be called best on such a file."""
    groups = np.array([0, 1, 0, 1, 0, 1])
    assert not scores(Task.RANKING, [0.0], [2.0, 1.0, 1.0, 1.0, 0.0, 0.0], n_classes=None, groups=groups)


def test_a_metric_that_a_constant_cannot_have_or_cannot_lose_is_left_out():
    found = scores(Task.BINARY, [0.0, 1.0], [0.0, 1.0], sensitive=np.array([0, 1]), n_classes=2, metrics=("ece",))
    assert set(found["priors"]) == {"logloss", "accuracy", "auc_roc"}
    with_zero = scores(Task.REGRESSION, [0.0, 1.0], [0.0, 1.0], n_classes=None, metrics=("mape",))
    assert "mape" not in with_zero["mean"]
    assert "rmse" in with_zero["mean"]
