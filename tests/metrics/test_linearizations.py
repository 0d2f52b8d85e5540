"""A linearization is the metric's own value, and its contributions are what a change of weights does to it."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics import METRICS, get, metric_from_callable
from boosters_eval.metrics.linear import linearize, linearize_rows

REGRESSION = ("rmse", "mae", "r2", "mape@1", "rmsle", "pinball@0.3")
BINARY = ("logloss", "accuracy@0.4", "auc_roc", "f1", "average_precision", "matthews", "brier")
MULTICLASS = ("mlogloss", "accuracy", "macro_f1", "top_k_accuracy@2", "multi_brier")
RANKING = ("ndcg@5", "ndcg@3,gain=linear", "map@5", "mrr")
NONE = ("median_ae", "ece", "demographic_parity", "equalized_odds")


def drawn(spec, seed, n, *, outputs=1, ties=False):
    """Predictions, labels, weights and groups that a metric may score."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 3.0, size=n)
    if spec in REGRESSION:
        shape = (n, outputs) if outputs > 1 else n
        labels = rng.gamma(2.0, size=shape)
        return labels + rng.normal(scale=0.3, size=shape).clip(-0.9), labels, weights, None
    if spec in MULTICLASS:
        scores = rng.dirichlet(np.ones(4), size=n)
        return scores, rng.integers(0, 4, size=n), weights, None
    scores = rng.random(n)
    scores = np.round(scores, 1) if ties else scores
    if spec in RANKING:
        return scores, rng.integers(0, 4, size=n), weights, rng.integers(0, max(2, n // 6), size=n)
    return scores, (rng.random(n) < 0.2 + 0.6 * scores).astype(int), weights, None


def enlarged(metric, labels):
    """How much influences are enlarged for the smallest class; None where it has one row."""
    if metric.name not in {"f1", "matthews", "macro_f1", "auc_roc", "average_precision"}:
        return 1.0
    counts = np.unique(labels, return_counts=True)[1]
    if len(counts) == 1:
        return 1.0
    return np.sqrt(counts.min() / (counts.min() - 1)) if counts.min() > 1 else None


def numerical(metric, predictions, labels, weights, groups):
    """Each row's influence: what a little more of its weight changes, per share of all weight."""
    step = 1e-5
    moved = []
    for row in range(len(labels)):
        change = step * np.eye(len(labels))[row] * weights
        pair = [metric.compute(predictions, labels, weights + sign * change, groups=groups) for sign in (1, -1)]
        moved.append((pair[0] - pair[1]) / (2 * step * weights[row]) * weights.sum())
    return np.array(moved)


@pytest.mark.parametrize("spec", REGRESSION + BINARY + MULTICLASS)
@given(seed=st.integers(0, 2**32), n=st.integers(8, 40), ties=st.booleans(), outputs=st.integers(1, 3))
@example(seed=1414, n=8, ties=False, outputs=1)  # a class alone
@settings(max_examples=25, deadline=None)
def test_contributions_are_the_value_plus_the_influence_of_each_row(spec, seed, n, ties, outputs):
    metric = get(spec)
    outputs = 1 if spec.startswith("pinball") else outputs
    predictions, labels, weights, groups = drawn(spec, seed, n, outputs=outputs, ties=ties)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for used in (weights, None):
            found = linearize_rows(metric, predictions, labels, used)
            rarity = enlarged(metric, labels)
            if rarity is None:
                assert found is None
                continue
            assert found.value == metric.compute(predictions, labels, used)
            assert np.average(found.contributions, weights=found.weights) == pytest.approx(found.value, abs=1e-9)
            every = np.ones(n) if used is None else used
            # The step of F1 and its like at no hit at all has no slope.
            if found.value != 0.0 or spec not in ("f1", "matthews"):
                expected = numerical(metric, predictions, labels, every, groups)
                assert found.contributions - found.value == pytest.approx(rarity * expected, rel=1e-4, abs=1e-4)
            assert found.at.tolist() == list(range(n))


@pytest.mark.parametrize("spec", RANKING)
@given(seed=st.integers(0, 2**32), n=st.integers(4, 60), ties=st.booleans())
@settings(max_examples=25, deadline=None)
def test_queries_are_the_rows_of_a_ranking(spec, seed, n, ties):
    metric = get(spec)
    predictions, labels, weights, groups = drawn(spec, seed, n, ties=ties)
    for used in (weights, None):
        found = linearize_rows(metric, predictions, labels, used, groups=groups)
        assert found.value == metric.compute(predictions, labels, used, groups=groups)
        assert np.average(found.contributions, weights=found.weights) == pytest.approx(found.value)
        assert sorted(groups[found.at]) == sorted(set(groups))
        for contribution, query in zip(found.contributions, groups[found.at], strict=True):
            mine = groups == query
            alone = metric.compute(predictions[mine], labels[mine], groups=groups[mine])
            assert contribution == pytest.approx(alone)


@pytest.mark.parametrize("spec", ["rmse", "r2", "auc_roc", "f1", "matthews", "average_precision"])
def test_the_spread_of_contributions_is_that_of_the_jackknife(spec):
    metric = get(spec)
    predictions, labels, _, _ = drawn(spec, 5, 400)
    found = linearize_rows(metric, predictions, labels)
    kept = ~np.eye(400, dtype=bool)
    without = np.array([metric.compute(predictions[rows], labels[rows]) for rows in kept])
    jackknife = np.sqrt(399 / 400 * ((without - without.mean()) ** 2).sum())
    assert found.contributions.std() / 20 == pytest.approx(jackknife, rel=0.03)


@pytest.mark.parametrize("spec", NONE)
def test_some_metrics_are_not_made_of_rows(spec):
    scores, labels, _, _ = drawn("f1", 1, 30)
    assert linearize_rows(get(spec), scores, labels) is None


def test_every_builtin_metric_is_tested_here():
    tested = {get(spec).name for spec in REGRESSION + BINARY + MULTICLASS + RANKING + NONE}
    assert tested | {"crps"} == {info.name for info in METRICS.values() if info.built_in}


def test_rows_of_weight_zero_contribute_nothing():
    predictions, labels, weights, _ = drawn("auc_roc", 3, 30)
    weights[::3] = 0.0
    found = linearize_rows(get("auc_roc"), predictions, labels, weights)
    assert found.at.tolist() == np.flatnonzero(weights).tolist()
    assert np.average(found.contributions, weights=found.weights) == pytest.approx(found.value)


@pytest.mark.parametrize("spec", ["auc_roc", "average_precision", "f1", "matthews"])
def test_a_value_by_convention_is_the_contribution_of_every_row(spec):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = linearize_rows(get(spec), np.linspace(0, 0.4, 5), np.zeros(5))
    assert found.contributions.tolist() == [found.value] * 5


def test_numbers_too_extreme_for_squares_are_left_to_splits():
    assert linearize_rows(get("rmse"), [1e200, 0.0], [0.0, 1e190]) is None


def test_quantiles_are_picked_as_for_scores():
    labels = np.random.default_rng(0).normal(size=50)
    columns = np.stack([labels - 1, labels + 0.3, labels + 1], axis=1)
    levels = (0.1, 0.5, 0.9)
    for spec in ("pinball", "crps", "pinball@0.9", "mae"):
        found = linearize("quantile", spec, labels, columns, quantiles=levels)
        assert found.contributions.mean() == pytest.approx(found.value)
    assert linearize("quantile", "mae", labels, columns[:, ::2], quantiles=levels[::2]) is None


def test_a_users_metric_may_say_how_rows_make_it():
    def row_losses(p, y):
        return np.minimum(abs(p - y), (p - y) ** 2)

    row_losses.by_rows = True
    huber = metric_from_callable(row_losses, name="huber", higher_is_better=False)
    predictions, labels, weights, _ = drawn("rmse", 1, 20)
    found = linearize_rows(huber, predictions, labels, weights)
    assert found.value == huber.compute(predictions, labels, weights)
    losses = row_losses(predictions, labels)
    assert found.contributions == pytest.approx(losses)
    assert found.value == pytest.approx(np.average(losses, weights=weights))
    row_losses.by_rows = False
    with pytest.raises(MetricInputError, match=r"must return a finite number\. Got"):
        metric_from_callable(row_losses, name="huber", higher_is_better=False).compute(predictions, labels)
    row_mean = lambda p, y: float(np.mean(p - y))  # noqa: E731
    row_mean.by_rows = True
    with pytest.raises(MetricInputError, match="a finite number for each row"):
        metric_from_callable(row_mean, name="bias", higher_is_better=False).compute(predictions, labels)
    whole = metric_from_callable(lambda p, y: float(np.mean(p - y)), name="bias", higher_is_better=False)
    assert linearize_rows(whole, predictions, labels) is None


def test_what_a_metric_without_error_is():
    assert [get(spec).best for spec in ("rmse", "logloss", "r2", "auc_roc", "ndcg@10")] == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert get("demographic_parity@0.5,mode=ratio").best == 1.0
    assert metric_from_callable(lambda p, y: 0.0, name="own", higher_is_better=True).best is None


@pytest.mark.parametrize("spec", ["auc_roc", "average_precision", "matthews"])
@pytest.mark.parametrize("positives", [3, 5])
def test_contributions_show_the_spread_that_few_rows_of_a_class_make(spec, positives):
    metric, rng = get(spec), np.random.default_rng(positives)
    labels = (np.arange(60) < positives).astype(int)
    values, variances = [], []
    for _ in range(400):
        scores = 1 / (1 + np.exp(1 - 1.5 * labels - rng.normal(size=60)))
        found = linearize_rows(metric, scores, labels)
        values.append(found.value)
        variances.append(found.contributions.var() / 60)
    assert np.var(values) == pytest.approx(np.mean(variances), rel=0.35)


def test_a_single_row_of_a_class_tells_nothing():
    labels = np.arange(20) == 0
    assert linearize_rows(get("auc_roc"), np.linspace(1, 0, 20), labels) is None
