"""What each row loses by itself: their mean, or its root, is the metric's error."""

import numpy as np
import pytest

from boosters_eval.metrics import compute_metrics, get
from boosters_eval.metrics.linear import find_errors

RNG = np.random.default_rng(0)
N = 240
NUMBERS = (RNG.uniform(1, 3, N), RNG.uniform(1, 3, N))
CLASSES = ((RNG.random(N) < 0.4).astype(float), RNG.uniform(0.05, 0.95, N))
SEVERAL = (RNG.integers(3, size=N).astype(float), RNG.dirichlet((1, 1, 1), N))
GRADES = (RNG.integers(4, size=N).astype(float), RNG.normal(size=N))
CASES = (
    *(("regression", name, NUMBERS) for name in ("rmse", "rmsle", "mae", "mape")),
    *(("binary", name, CLASSES) for name in ("logloss", "brier", "accuracy")),
    *(("multiclass", name, SEVERAL) for name in ("mlogloss", "accuracy", "top_k_accuracy")),
    *(("ranking", name, GRADES) for name in ("ndcg@10", "map@10", "mrr")),
)


@pytest.mark.parametrize(("task", "name", "data"), CASES, ids=lambda each: each if isinstance(each, str) else "")
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_make_the_distance_of_the_metric_from_its_best(task, name, data, weighted):
    groups = np.arange(N) // 8 if task == "ranking" else None
    weights = None
    if weighted:
        weights = np.repeat(RNG.uniform(0.5, 2, N // 8), 8) if task == "ranking" else RNG.uniform(0.5, 2, N)
    found = find_errors(task, name, *data, weights, groups=groups)
    mean = np.average(found.errors, weights=found.weights)
    metric = get(name)
    value = compute_metrics(task, *data, None, weights, groups=groups, metrics=[name])[metric.spec]
    assert (mean**0.5 if found.root else mean) == pytest.approx(abs(metric.best - value))
    assert (found.errors >= 0).all()


def test_squared_errors_are_those_of_the_rows():
    labels, predictions = NUMBERS
    assert find_errors("regression", "rmse", labels, predictions).errors == pytest.approx((labels - predictions) ** 2)


@pytest.mark.parametrize("name", ["auc_roc", "f1", "average_precision", "matthews", "ece"])
def test_what_depends_on_other_rows_is_no_error_of_a_row(name):
    assert find_errors("binary", name, *CLASSES) is None
