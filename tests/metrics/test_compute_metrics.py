import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk

from boosters_eval.core.errors import ConfigError, MetricInputError, UnknownNameError
from boosters_eval.metrics import MetricWarning, compute_metrics, get, metric_from_callable
from boosters_eval.metrics.task import Task

RNG = np.random.default_rng(11)
N = 60
Y = np.arange(N) % 2
P = np.clip(0.3 * Y + 0.6 * RNG.random(N), 0.01, 0.99)
W = RNG.random(N) + 0.5


def test_regression_gives_the_keys_and_values_of_the_rfc():
    y, p = RNG.normal(size=N), RNG.normal(size=N)
    got = compute_metrics(Task.REGRESSION, y, p)
    assert list(got) == ["rmse", "mae", "r2"]
    expected = {
        "rmse": np.sqrt(sk.mean_squared_error(y, p)),
        "mae": sk.mean_absolute_error(y, p),
        "r2": sk.r2_score(y, p),
    }
    assert got == pytest.approx(expected, rel=1e-12)
    assert all(type(value) is float for value in got.values())


def test_binary_gives_the_keys_and_values_of_the_rfc():
    expected = {
        "logloss": sk.log_loss(Y, P, sample_weight=W),
        "accuracy": sk.accuracy_score(Y, P >= 0.5, sample_weight=W),
        "auc_roc": sk.roc_auc_score(Y, P, sample_weight=W),
    }
    for p in (P, P[:, None], pd.Series(P)):
        got = compute_metrics("binary", Y, p, 2, W)
        assert list(got) == list(expected)
        assert got == pytest.approx(expected, rel=1e-12)


def test_multiclass_gives_the_keys_and_values_of_the_rfc():
    y, p = np.arange(N) % 3, RNG.dirichlet(np.ones(3), N)
    got = compute_metrics(Task.MULTICLASS, y, p, n_classes=3)
    expected = {
        "mlogloss": sk.log_loss(y, p),
        "accuracy": sk.accuracy_score(y, p.argmax(axis=1)),
        "macro_f1": sk.f1_score(y, p.argmax(axis=1), average="macro"),
    }
    assert list(got) == list(expected)
    assert got == pytest.approx(expected, rel=1e-12)


def test_two_classes_are_enough_for_a_matrix_of_probabilities_and_one_is_not():
    p = np.column_stack([1 - P, P])
    for n_classes in (2, None):
        got = compute_metrics(Task.MULTICLASS, Y, p, n_classes=n_classes)
        assert got["mlogloss"] == pytest.approx(sk.log_loss(Y, P), rel=1e-12)
    with pytest.raises(MetricInputError, match="one column for each of two or more classes"):
        compute_metrics(Task.MULTICLASS, Y, p[:, :1])


def test_ranking_gives_its_metrics():
    grades, groups = RNG.integers(0, 3, N), np.repeat(np.arange(6), 10)
    got = compute_metrics("ranking", grades, P, groups=groups)
    assert list(got) == ["ndcg@10", "map@10", "mrr"]
    assert got["ndcg@10"] == get("ndcg", k=10).compute(P, grades, groups=groups)


class TestQuantiles:
    Y = RNG.normal(size=N)
    Q = np.sort(RNG.normal(size=(N, 3)), axis=1)

    def test_the_levels_of_the_data_set_are_scored_and_the_median_as_a_point(self):
        got = compute_metrics("quantile", self.Y, self.Q, quantiles=[0.1, 0.5, 0.9])
        assert got == {
            "pinball": get("pinball@0.1,0.5,0.9").compute(self.Q, self.Y),
            "mae": get("mae").compute(self.Q[:, 1], self.Y),
        }

    def test_named_levels_are_picked_and_point_metrics_score_the_median(self):
        got = compute_metrics(
            "quantile", self.Y, self.Q, quantiles=(0.1, 0.5, 0.9), metrics=["pinball@0.9,0.1", "crps", "rmse"]
        )
        assert got["pinball@0.9,0.1"] == get("pinball@0.9,0.1").compute(self.Q[:, [2, 0]], self.Y)
        assert got["crps"] == pytest.approx(2 * got["pinball"])
        assert got["rmse"] == get("rmse").compute(self.Q[:, 1], self.Y)

    def test_without_the_median_point_metrics_are_left_out_unless_asked_for(self):
        got = compute_metrics("quantile", self.Y, self.Q[:, [0, 2]], quantiles=(0.1, 0.9))
        assert list(got) == ["pinball"]
        with pytest.raises(MetricInputError, match=r"'mae' scores the quantile 0.5, which is not among .*: 0.1, 0.9"):
            compute_metrics("quantile", self.Y, self.Q[:, [0, 2]], quantiles=(0.1, 0.9), metrics=["mae"])

    def test_one_column_is_the_median_if_nothing_is_said(self):
        assert list(compute_metrics("quantile", self.Y, self.Q[:, 1])) == ["pinball", "mae"]

    @pytest.mark.parametrize("quantiles", [(), (0.5,), (0.1, 0.9)])
    def test_columns_and_levels_must_match(self, quantiles):
        with pytest.raises(MetricInputError, match=r"one column for each of \d quantiles. Got the shape \(60, 3\)"):
            compute_metrics("quantile", self.Y, self.Q, quantiles=quantiles)


def test_extra_metrics_are_keyed_by_their_canonical_spec():
    mine = metric_from_callable(lambda p, y: 1.5, higher_is_better=True, name="mine")
    got = compute_metrics("binary", Y, P, metrics=iter(["f1@0.30", "auc", mine]))
    assert list(got) == ["logloss", "accuracy", "auc_roc", "f1@0.3", "mine"]
    assert got["mine"] == 1.5


def test_fairness_is_scored_only_with_a_sensitive_column():
    sensitive = np.where(np.arange(N) < N // 2, "x", "y")
    got = compute_metrics("binary", Y, P, sensitive=sensitive)
    assert list(got)[3:] == ["demographic_parity", "equalized_odds"]
    assert "demographic_parity" not in compute_metrics("binary", Y, P)
    assert list(compute_metrics("regression", Y, P, sensitive=sensitive)) == ["rmse", "mae", "r2"]


def test_classes_may_be_absent():
    with pytest.warns(MetricWarning):
        assert compute_metrics("binary", np.zeros(3), [0.1, 0.2, 0.3])["auc_roc"] == 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = compute_metrics("multiclass", [0, 0], np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1]]), n_classes=3)
    assert got["accuracy"] == got["macro_f1"] == 1.0


@pytest.mark.parametrize(
    ("predictions", "n_classes", "classes"),
    [(np.full((N, 3), 1 / 3), 4, "4"), (P, 3, "3"), (P, None, "two or more"), (P[:, None], None, "two or more")],
)
def test_multiclass_predictions_need_a_column_for_each_class(predictions, n_classes, classes):
    with pytest.raises(MetricInputError, match=f"one column for each of {classes} classes"):
        compute_metrics("multiclass", Y, predictions, n_classes)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="'rmse' does not fit the task 'binary'"):
        compute_metrics("binary", Y, P, metrics=["rmse"])
    with pytest.raises(UnknownNameError):
        compute_metrics("binary", Y, P, metrics=["rocaux"])
    with pytest.raises(MetricInputError, match=r"'predictions' .* one column. Got the shape \(60, 2\)"):
        compute_metrics("binary", Y, np.column_stack([1 - P, P]))
    with pytest.raises(MetricInputError, match="'groups' parameter of ndcg@10 is required"):
        compute_metrics("ranking", Y, P)
    with pytest.raises(MetricInputError, match="'weights' parameter of rmse"):
        compute_metrics("regression", Y, P, sample_weight=-W)
