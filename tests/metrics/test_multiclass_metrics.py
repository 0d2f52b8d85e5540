import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics import get

FEW = settings(max_examples=60)
WEIGHTS = st.one_of(st.floats(1e-3, 1e3), st.integers(1, 3))


@st.composite
def problems(draw):
    """Shares of few sizes, so that classes tie; some classes may be absent."""
    n, k = draw(st.integers(1, 20)), draw(st.integers(2, 5))
    raw = st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.0]) | st.floats(0.01, 10)
    p = np.array(draw(st.lists(raw, min_size=n * k, max_size=n * k))).reshape(n, k) + 1e-3
    p /= p.sum(axis=1, keepdims=True)
    y = np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    w = draw(st.none() | st.lists(WEIGHTS, min_size=n, max_size=n).map(np.array))
    return p, y, w


def agrees(value, reference):
    assert value == pytest.approx(float(reference), rel=1e-12, abs=1e-12)


@FEW
@given(problems())
def test_metrics_of_classes_are_scikit_learns(problem):
    p, y, w = problem
    d = p.argmax(axis=1)
    labels = np.arange(p.shape[1])
    agrees(get("mlogloss").compute(p, y, w), sk.log_loss(y, p, labels=labels, sample_weight=w))
    agrees(get("accuracy").compute(p, y, w), sk.accuracy_score(y, d, sample_weight=w))
    agrees(get("macro_f1").compute(p, y, w), sk.f1_score(y, d, average="macro", sample_weight=w, zero_division=0.0))


@FEW
@given(problems())
def test_brier_of_classes_is_the_squared_distance_to_the_class_that_it_is(problem):
    p, y, w = problem
    every = np.ones(len(y)) if w is None else w
    lost = [math.fsum((p[i, k] - (y[i] == k)) ** 2 for k in range(p.shape[1])) for i in range(len(y))]
    found = get("brier").compute(p, y, w)
    agrees(found, math.fsum(every * lost) / math.fsum(every))
    agrees(found, sk.brier_score_loss(y, p, labels=np.arange(p.shape[1]), sample_weight=w, scale_by_half=False))
    assert 0.0 <= found <= get("brier").high


@FEW
@given(problems())
def test_brier_of_two_classes_is_twice_that_of_one_column(problem):
    p, y, w = problem
    one = p[:, 0]
    two = np.stack([1 - one, one], axis=1)
    agrees(get("brier").compute(two, y == 0, w), 2 * get("brier").compute(one, y == 0, w))


def test_brier_of_classes_refuses_what_is_no_distribution():
    with pytest.raises(MetricInputError, match="'predictions' parameter of brier must be probabilities that add up"):
        get("brier").compute([[0.5, 0.1, 0.1]], [0])


@FEW
@given(st.integers(1, 12), st.integers(3, 6), st.integers(1, 7), st.integers(0, 2**32), st.booleans())
def test_top_k_is_scikit_learns_where_nothing_ties(n, classes, k, seed, weighted):
    rng = np.random.default_rng(seed)
    p = rng.permuted(np.tile(np.arange(classes) / 16, (n, 1)), axis=1)
    y = rng.integers(0, classes, n)
    w = rng.random(n) + 0.1 if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of k that takes all classes
        reference = sk.top_k_accuracy_score(y, p, k=k, labels=np.arange(classes), sample_weight=w)
    agrees(get("top_k_accuracy", k=k).compute(p, y, w), reference)


@FEW
@given(problems())
def test_top_1_is_accuracy_and_top_all_is_1(problem):
    p, y, w = problem
    agrees(get("top_k@1").compute(p, y, w), get("accuracy").compute(p, y, w))
    assert get("top_k", k=p.shape[1]).compute(p, y, w) == 1.0


def test_of_tied_classes_the_first_is_chosen():
    p = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
    assert get("accuracy").compute(p, [0, 1]) == 1.0
    assert get("accuracy").compute(p, [1, 2]) == 0.0
    assert get("top_k@2").compute(p, [1, 2]) == 1.0


def test_absent_classes_do_not_count():
    p = np.eye(4)[[0, 1, 1]]
    assert get("macro_f1").compute(p, [0, 1, 1]) == 1.0
    assert get("macro_f1").compute(p, [0, 1, 3]) == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert get("mlogloss").compute(p, [0, 1, 1]) == pytest.approx(1e-15, rel=0.2)


def test_a_class_of_weight_zero_is_absent():
    p = np.eye(3)[[0, 1, 2]]
    assert get("macro_f1").compute(p, [0, 1, 0], [1, 1, 0]) == 1.0


def test_impossible_classes_cost_the_clip():
    p = np.array([[1.0, 0.0], [0.0, 1.0]])
    for dtype in (np.float16, np.float32, np.float64, np.int64, bool):
        assert get("mlogloss").compute(p.astype(dtype), [1, 0]) == pytest.approx(-math.log(1e-15), rel=1e-12)


def test_single_precision_shares_are_accepted():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(200), 50).astype(np.float32)
    y = rng.integers(0, 200, 50)
    exact = -np.log(np.clip(p[np.arange(50), y].astype(float), 1e-15, None)).mean()
    assert get("mlogloss").compute(p, y) == pytest.approx(exact, rel=1e-12)
    assert get("mlogloss").compute(p.astype(np.float16), y) == pytest.approx(exact, rel=1e-2)


def test_a_threshold_is_for_one_column():
    with pytest.raises(MetricInputError, match=r"one column where a 'threshold' is given. Got the shape \(2, 2\)"):
        get("accuracy@0.3").compute(np.full((2, 2), 0.5), [0, 1])


def test_large_inputs_agree_across_blocks_and_orders():
    rng = np.random.default_rng(1)
    n = 70_001
    p, y, w = rng.dirichlet(np.ones(4), n), rng.integers(0, 4, n), rng.random(n)
    for order in "CF":
        q = np.asarray(p, order=order)
        assert get("mlogloss").compute(q, y, w) == pytest.approx(sk.log_loss(y, p, sample_weight=w), rel=1e-12)
        f1 = sk.f1_score(y, p.argmax(axis=1), average="macro", sample_weight=w)
        assert get("macro_f1").compute(q, y, w) == pytest.approx(f1, rel=1e-12)
