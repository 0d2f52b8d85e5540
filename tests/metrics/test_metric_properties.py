"""What a metric says of itself: its label and its range."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.metrics import METRICS, MetricWarning, find, get, label, metric_from_callable
from boosters_eval.metrics.catalog import _BUILTIN
from boosters_eval.metrics.task import Task

NAMES = [info.name for info in _BUILTIN]
ROUNDING = 1e-12  # of sums and quotients of floats


@pytest.mark.parametrize("name", NAMES)
def test_every_built_in_metric_has_a_label_and_a_bound(name):
    metric = get(name)
    assert METRICS[name].label
    assert metric.label == METRICS[name].label
    assert metric.label[0].isupper()
    assert metric.low is not None or metric.high is not None


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("rmse", "RMSE"),
        ("auc", "AUC"),
        ("ndcg@10", "NDCG@10"),
        ("ndcg@10,gain=linear", "NDCG@10,gain=linear"),
        ("ece@10", "ECE"),
        ("home made", "home made"),
        ("rmse@3", "rmse@3"),
        ("train_time_s", "train_time_s"),
    ],
)
def test_a_label_names_the_parameters_and_an_unknown_metric_keeps_its_name(spec, text):
    assert label(spec) == text


def test_of_a_users_metric_the_label_is_its_name_and_the_range_unknown():
    metric = metric_from_callable(lambda p, y: 0.0, name="mine", higher_is_better=True)
    assert (metric.label, metric.low, metric.high) == ("mine", None, None)


def test_what_is_not_known_here_is_not_found():
    assert find("home made") is None
    assert find("rmse@3") is None
    assert find("f1@0.3") == get("f1", threshold=0.3)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(2, 40), scale=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=25, deadline=None)
def test_values_lie_within_the_declared_range(name, seed, rows, scale):
    for spec in {name, *_VARIANTS.get(name, ())}:
        metric = get(spec)
        for task in metric.tasks:
            value = compute(metric, task, np.random.default_rng(seed), rows, scale)
            assert math.isfinite(value)
            assert metric.low is None or value >= metric.low - ROUNDING
            assert metric.high is None or value <= metric.high + ROUNDING


@pytest.mark.parametrize("name", ["r2", "accuracy", "auc_roc", "f1", "average_precision", "matthews"])
def test_a_perfect_prediction_reaches_the_declared_end_of_the_range(name):
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    assert get(name).compute(labels, labels) == get(name).high == 1.0


_VARIANTS = {
    "pinball": ("pinball@0.1", "pinball@0.1,0.9"),
    "crps": ("crps@0.1,0.5,0.9",),
    "ndcg": ("ndcg@3", "ndcg@3,gain=linear"),
    "map": ("map@3", "map@3,divisor=all"),
    "mrr": ("mrr@2",),
    "demographic_parity": ("demographic_parity@mode=ratio",),
    "equalized_odds": ("equalized_odds@mode=ratio",),
    "ece": ("ece@1",),
}


def compute(metric, task, rng, rows, scale):
    options = {}
    if "groups" in metric.info.needs:
        options["groups"] = np.sort(rng.integers(0, 2, rows))
    if "sensitive" in metric.info.needs:
        options["sensitive"] = np.arange(rows) % 2
    weights = rng.uniform(0.1, 3.0, rows) if rng.random() < 0.5 and task is not Task.RANKING else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetricWarning)
        return metric.compute(*predictions_and_labels(metric, task, rng, rows, scale), weights, **options)


def predictions_and_labels(metric, task, rng, rows, scale):
    if task is Task.BINARY:
        return rng.random(rows).round(1), rng.integers(0, 2, rows)
    if task is Task.MULTICLASS:
        return rng.dirichlet(np.ones(3), rows), rng.integers(0, 3, rows)
    if task is Task.RANKING:
        return rng.normal(size=rows).round(1), rng.integers(0, 5, rows)
    labels = scale * rng.uniform(0.1, 1.0, rows)
    levels = dict(metric.params).get("alphas")
    return scale * rng.uniform(0.0, 1.0, (rows, len(levels)) if levels else rows), labels
