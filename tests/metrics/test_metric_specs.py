import math
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import ConfigError, MetricInputError, UnknownNameError
from boosters_eval.metrics import (
    METRIC_DIRECTION,
    METRICS,
    PRIMARY,
    SECONDARY,
    Metric,
    compute_metrics,
    direction,
    for_task,
    get,
    higher_is_better,
    metric_from_callable,
    primary_metric,
    register_metric,
    task_metrics,
)
from boosters_eval.metrics.task import Task

FEW = settings(max_examples=60)
BUILTIN = [info.name for info in METRICS.values()]


def params_of(name):
    """Valid values for each parameter of a metric."""
    values = {
        "float": st.floats(1e-9, 1e9),
        "int": st.integers(1, 1000),
        "levels": st.lists(st.floats(0.001, 0.999), min_size=1, max_size=5, unique=True).map(tuple),
    }
    kinds = {p.name: st.sampled_from(p.choices) if p.kind == "choice" else values[p.kind] for p in METRICS[name].params}
    return st.fixed_dictionaries({}, optional=kinds)


@FEW
@given(data=st.data())
def test_a_spec_reads_back_as_the_same_metric(data):
    name = data.draw(st.sampled_from(BUILTIN))
    metric = get(name, **data.draw(params_of(name)))
    assert get(metric.spec) == metric
    assert get(metric.spec).spec == metric.spec
    assert hash(get(metric.spec)) == hash(metric)


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("f1@0.3", "f1@0.3"),
        ("f1@0.5", "f1"),
        ("f1@threshold=0.3", "f1@0.3"),
        ("pinball@0.1,0.5,0.9", "pinball@0.1,0.5,0.9"),
        ("pinball@0.5", "pinball@0.5"),
        ("ndcg@10", "ndcg@10"),
        ("ndcg@10,gain=exp", "ndcg@10"),
        (" ndcg@10, gain=linear ", "ndcg@10,gain=linear"),
        ("ndcg@gain=linear", "ndcg@gain=linear"),
        ("map@divisor=all,k=5", "map@5,divisor=all"),
        ("demographic_parity@mode=ratio", "demographic_parity@mode=ratio"),
        ("accuracy@1", "accuracy@1"),
        ("auc", "auc_roc"),
        ("multi_logloss", "mlogloss"),
        ("multi_accuracy", "accuracy"),
        ("top_k@3", "top_k_accuracy@3"),
    ],
)
def test_specs_and_aliases_have_one_canonical_form(spec, canonical):
    assert get(spec).spec == str(get(spec)) == canonical


def test_parameters_are_compared_by_value():
    assert get("f1", threshold=0.3) == get("f1@0.3") != get("f1@0.4")
    assert get("pinball", alphas=[0.1, 0.9]) == get("pinball@0.1,0.9")
    assert get("pinball", alphas=0.5) == get("pinball@0.5")
    assert get("pinball", alphas=np.array([0.25, 0.75])) == get("pinball@0.25,0.75")
    assert get("ndcg", k=np.int64(10)) == get("ndcg@10") == get("ndcg", k=10.0)
    assert len({get("f1"), get("f1@0.5"), get("f1_score")}) == 1


def test_a_metric_is_frozen_and_survives_pickling():
    metric = get("ndcg@10")
    with pytest.raises(AttributeError):
        metric.params = ()
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert repr(metric) == "get('ndcg@10')"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rmse@3", "'rmse' takes no parameters"),
        ("f1@", "'threshold' parameter of f1 must be a finite number. Got '' instead"),
        ("f1@nan", "must be a finite number. Got nan instead"),
        ("f1@0.3,0.4", "'threshold' parameter of f1 is given twice"),
        ("f1@thresold=0.3", "has no parameter 'thresold'. Did you mean 'threshold'"),
        ("ndcg@0", "'k' parameter of ndcg must be an integer of at least 1. Got 0 instead"),
        ("ndcg@2.5", "Got 2.5 instead"),
        ("ndcg@10,gain=log", "must be one of exp, linear. Got 'log' instead"),
        ("ece@0", "an integer of at least 1 and at most 1000000"),
        ("pinball@0.1,1.0", "between 0 and 1. Got (0.1, 1.0) instead"),
        ("pinball@0.1,0.1", "different numbers"),
        ("mape@0", "greater than 0. Got 0 instead"),
        ("equalized_odds@mode=gap", "one of difference, ratio"),
    ],
)
def test_a_bad_spec_is_refused_in_one_sentence(spec, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        get(spec)


@pytest.mark.parametrize("value", [True, "0.3", None, [0.3], math.inf, 10**400])
def test_a_threshold_must_be_a_number(value):
    with pytest.raises(ConfigError, match="'threshold' parameter of f1 must be a finite number"):
        get("f1", threshold=value)


@pytest.mark.parametrize("value", ["0.5", [0.5, None], object(), [[0.1]], np.array(0.5)])
def test_alphas_must_be_levels(value):
    with pytest.raises(ConfigError, match="'alphas' parameter of pinball"):
        get("pinball", alphas=value)


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(ConfigError, match="given twice"):
        get("f1@0.3", threshold=0.4)
    with pytest.raises(ConfigError, match="already given"):
        get(get("f1"), threshold=0.4)
    with pytest.raises(ConfigError, match="It takes none"):
        get("rmse", k=3)


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"Unknown metric 'rmsee'. Did you mean 'rmse'?"):
        get("rmsee")


def test_directions_are_those_of_the_rfc():
    for name in ("rmse", "mae", "logloss", "mlogloss", "train_time_s", "predict_time_s", "peak_memory_mb"):
        assert METRIC_DIRECTION[name] == direction(name) == "lower_better"
        assert not higher_is_better(name)
    for name in ("r2", "accuracy", "auc_roc"):
        assert METRIC_DIRECTION[name] == direction(name) == "higher_better"
        assert higher_is_better(name)


def test_directions_of_specs_aliases_and_resources():
    assert direction("ndcg@10") == METRIC_DIRECTION["ndcg@10"] == "higher_better"
    assert direction("f1@0.3") == "higher_better"
    assert direction("auc") == "higher_better"
    assert direction("pinball@0.1,0.9") == "lower_better"
    assert direction("model_size_mb") == METRIC_DIRECTION["model_size_mb"] == "lower_better"
    with pytest.raises(UnknownNameError):
        METRIC_DIRECTION["nonsense"]


def test_a_ratio_is_better_when_higher_a_difference_when_lower():
    for name in ("demographic_parity", "equalized_odds"):
        assert direction(name) == "lower_better"
        assert direction(f"{name}@mode=ratio") == "higher_better"
        assert get(name, mode="ratio").higher_is_better


@pytest.mark.parametrize("task", list(Task))
def test_every_task_has_a_primary_metric_that_fits(task):
    assert primary_metric(task) == primary_metric(task.value) == PRIMARY[task]
    for metric in task_metrics(task):
        assert task in metric.tasks
    assert [metric.spec for metric in task_metrics(task)] == [PRIMARY[task], *SECONDARY[task]]


def test_a_data_set_may_override_the_primary_metric():
    assert primary_metric(Task.BINARY, "auc") == "auc_roc"
    with pytest.raises(ConfigError, match=r"'rmse' does not fit the task 'binary'. Those that do: logloss"):
        primary_metric(Task.BINARY, "rmse")


def test_an_unknown_task_gets_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"Unknown task 'multiclas'. Did you mean 'multiclass'?"):
        primary_metric("multiclas")


def test_metrics_are_not_listed_twice():
    assert [str(m) for m in task_metrics("binary", ["auc", "f1", "f1@0.5"])] == [
        "logloss",
        "accuracy",
        "auc_roc",
        "f1",
    ]


def test_fairness_is_added_where_there_is_a_sensitive_column():
    names = [m.name for m in task_metrics("binary", sensitive=True)]
    assert names[-2:] == ["demographic_parity", "equalized_odds"]
    assert [m.name for m in task_metrics("regression", sensitive=True)] == ["rmse", "mae", "r2"]


def test_every_declaration_is_complete():
    names = [name for info in METRICS.values() for name in (info.name, *info.aliases)]
    assert len(names) == len(set(names))
    for info in METRICS.values():
        assert info.summary
        assert info.tasks
        assert info.direction == get(info.name).direction


def test_listing_metrics_imports_nothing_scientific():
    code = (
        "import sys; from boosters_eval.metrics import METRICS, direction, get, primary_metric;"
        "[(i.name, i.summary, i.direction, i.aliases) for i in METRICS.values()];"
        "direction('ndcg@10'), primary_metric('ranking'), get('pinball@0.1,0.9').spec;"
        "heavy = {'numpy', 'pandas', 'scipy', 'sklearn'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class TestUserMetrics:
    @pytest.fixture
    def registered(self):
        names = []

        def register(name, fn, **options):
            metric = register_metric(name, fn, **options)
            names.append(name)
            return metric

        yield register
        for name in names:
            METRICS.unregister(name)

    def test_a_registered_callable_is_a_metric_like_any_other(self, registered):
        def bias(predictions, labels, weights):
            """Mean error.

            More words.
            """
            return np.average(predictions - labels, weights=weights)

        metric = registered("bias", bias, higher_is_better=False, tasks=["regression"])
        assert metric == get("bias") == for_task("bias", Task.REGRESSION)
        assert (metric.name, metric.direction, metric.info.summary) == ("bias", "lower_better", "Mean error.")
        assert direction("bias") == METRIC_DIRECTION["bias"] == "lower_better"
        assert metric.compute([1.0, 2.0], [0.0, 0.0], [3, 1]) == 1.25
        with pytest.raises(ConfigError, match="does not fit the task 'binary'"):
            for_task("bias", Task.BINARY)

    def test_function_that_changes_its_arguments_changes_no_other_metric(self, registered):
        def careless(predictions, labels, weights):
            for array in (predictions, labels, weights):
                array[:] = np.sort(array)[::-1] * 9
            return 1.0

        registered("careless", careless, higher_is_better=False)
        rng = np.random.default_rng(0)
        labels, predictions, weights = rng.normal(size=(3, 50))
        weights = np.abs(weights)
        plain = compute_metrics(Task.REGRESSION, labels, predictions, None, weights, metrics=["median_ae"])
        both = compute_metrics(Task.REGRESSION, labels, predictions, None, weights, metrics=["careless", "median_ae"])
        assert both == {**plain, "careless": 1.0}

    def test_names_are_taken_once(self, registered):
        registered("mine", max, higher_is_better=True)
        with pytest.raises(ConfigError, match="already registered"):
            register_metric("mine", max, higher_is_better=True)
        assert register_metric("mine", min, higher_is_better=True, replace=True) == get("mine")
        for taken in ("rmse", "auc", "train_time_s"):
            with pytest.raises(ConfigError, match="already means something else"):
                register_metric(taken, max, higher_is_better=True, replace=True)

    @pytest.mark.parametrize(
        ("fn", "expected"),
        [
            (lambda p: p.sum(), 6.0),
            (lambda p, y: (p - y).sum(), 3.0),
            (lambda p, y, w: (w * (p - y)).sum(), 5.0),
            (lambda p, y, w=None: 0.0 if w is None else 1.0, 0.0),
            (lambda p, y, weights=None: weights.sum(), 4.0),
            (lambda p, y, *, sample_weight: sample_weight.sum(), 4.0),
            (lambda p, y, *, groups, sensitive: groups[0] + sensitive[0], 9.0),
            (lambda *arrays: len(arrays), 3.0),
            (lambda p, y, **_: len(p), 3.0),
            (lambda p, y: np.array([2.5], dtype=np.float32), 2.5),
        ],
    )
    def test_a_callable_gets_what_its_signature_asks_for(self, fn, expected):
        metric = metric_from_callable(fn, higher_is_better=True, name="mine")
        got = metric.compute([1, 2, 3], [1, 1, 1], [1, 1, 2], groups=[4, 4, 4], sensitive=[5, 5, 5])
        assert got == expected

    def test_a_callable_without_a_readable_signature_gets_all_three(self):
        class Opaque:
            __signature__ = "none"

            def __call__(self, *arrays):
                return len(arrays)

        assert metric_from_callable(Opaque(), higher_is_better=True).compute([1], [1]) == 3

    @pytest.mark.parametrize("value", [math.nan, math.inf, "0.5", None, [1, 2], True, 1j])
    def test_a_value_that_is_no_finite_number_is_refused(self, value):
        metric = metric_from_callable(lambda p, y: value, higher_is_better=True, name="mine")
        with pytest.raises(MetricInputError, match=r"'mine' must return a finite number. Got .* instead"):
            metric.compute([1.0], [1.0])

    def test_a_failing_callable_is_named(self):
        metric = metric_from_callable(lambda p, y: 1 // 0, higher_is_better=True, name="mine")
        with pytest.raises(MetricInputError, match="'mine' failed with ZeroDivisionError"):
            metric.compute([1.0], [1.0])

    @pytest.mark.parametrize("fn", [lambda: 1.0, lambda a, b, c, d: 1.0])
    def test_a_signature_that_cannot_be_served_is_refused(self, fn):
        metric = metric_from_callable(fn, higher_is_better=True, name="mine")
        with pytest.raises(MetricInputError, match="'mine' must take predictions, labels"):
            metric.compute([1.0], [1.0])

    def test_broken_predictions_never_reach_a_callable(self):
        metric = metric_from_callable(lambda p, y: 1.0, higher_is_better=True, name="mine")
        with pytest.raises(MetricInputError, match=r"'predictions' parameter of mine must be finite. Got nan in row 0"):
            metric.compute([math.nan], [1.0])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"fn": 3}, "must be callable. Got 3 instead"),
            ({"fn": max, "name": "a@b"}, "'name' parameter"),
            ({"fn": max, "name": ""}, "'name' parameter"),
            ({"fn": max, "higher_is_better": "yes"}, "'higher_is_better' parameter of max must be True or False"),
        ],
    )
    def test_a_bad_declaration_is_refused(self, arguments, message):
        with pytest.raises(ConfigError, match=message):
            metric_from_callable(**{"higher_is_better": True, **arguments})

    def test_equal_callables_make_equal_metrics(self):
        def fn(p, y):
            return 1.0

        make = [metric_from_callable(fn, higher_is_better=True) for _ in range(2)]
        assert make[0] == make[1]
        assert isinstance(make[0], Metric)
        assert make[0].name == "fn"
        assert get(make[0]) is make[0]


@pytest.mark.parametrize("name", ["top_k_accuracy", "ndcg", "map", "mrr", "ece"])
def test_a_count_begins_at_one(name):
    assert get(f"{name}@1").spec == f"{name}@1"
    with pytest.raises(ConfigError, match=r"must be an integer of at least 1.*Got 0 instead"):
        get(f"{name}@0")
