import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics import MetricWarning, get
from boosters_eval.metrics.classification import reliability

FEW = settings(max_examples=60)
CHANCES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.just(0.3))
WEIGHTS = st.one_of(st.floats(1e-3, 1e3), st.integers(1, 3))


@st.composite
def problems(draw, chances=CHANCES, *, both=False, most=25):
    """Probabilities with many ties, labels (of both classes if wanted), weights or None."""
    n = draw(st.integers(2, most))
    p = np.array(draw(st.lists(chances, min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    if both:
        y[:2] = [0, 1]
    w = draw(st.none() | st.lists(WEIGHTS, min_size=n, max_size=n).map(np.array))
    return p, y, w


def agrees(value, reference, absolute=1e-12):
    assert value == pytest.approx(float(reference), rel=1e-12, abs=absolute)


@FEW
@given(problems(chances=st.floats(1e-12, 1 - 1e-12)))
def test_logloss_is_scikit_learns_away_from_the_clip(problem):
    p, y, w = problem
    agrees(get("logloss").compute(p, y, w), sk.log_loss(y, p, sample_weight=w, labels=[0, 1]))


@FEW
@given(problems())
def test_logloss_is_the_formula_of_the_rfc(problem):
    p, y, w = problem
    c = np.clip(p, 1e-15, 1 - 1e-15)
    terms = -(y * np.log(c) + (1 - y) * np.log(1 - c))
    agrees(get("logloss").compute(p, y, w), np.average(terms, weights=w), absolute=1e-15)


def test_logloss_of_certain_mistakes_is_finite_also_in_float32():
    for dtype in (np.float32, np.float64, np.int64):
        p = np.array([0, 1], dtype=dtype)
        assert get("logloss").compute(p, [1, 0]) == pytest.approx(-math.log(1e-15), rel=1e-4)
        assert get("logloss").compute(p, [0, 1]) == pytest.approx(1e-15, rel=0.2)


def test_logloss_of_one_class_is_fine():
    assert get("logloss").compute([0.5, 0.5], [1, 1]) == pytest.approx(math.log(2))


def matthews_in_fractions(y, d, w):
    """The correlation in exact arithmetic: scikit-learn subtracts nearly equal sums, and can be off by 2e-12."""
    cells = {(a, b): Fraction(0) for a in (0, 1) for b in (0, 1)}
    for truth, decision, weight in zip(y, d, np.ones(len(y)) if w is None else w, strict=True):
        cells[int(truth), int(decision)] += Fraction(float(weight))
    tn, fp, fn, tp = (cells[key] for key in ((0, 0), (0, 1), (1, 0), (1, 1)))
    scale = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    squared = (tp * tn - fp * fn) ** 2 / scale if scale else Fraction(0)
    return math.copysign(math.sqrt(squared), tp * tn - fp * fn)


@FEW
@example((np.array([0.3, 0.0, 0.3]), np.array([0, 1, 0]), np.array([1.3663232192588453, 0.0078125, 214.0])), 0.25)
@given(problems(), st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]))
def test_decisions_are_scored_as_scikit_learn_does(problem, threshold):
    p, y, w = problem
    d = (p >= threshold).astype(int)
    given_ = {"sample_weight": w}
    agrees(get("accuracy", threshold=threshold).compute(p, y, w), sk.accuracy_score(y, d, **given_))
    agrees(get("f1", threshold=threshold).compute(p, y, w), sk.f1_score(y, d, zero_division=0.0, **given_))
    agrees(get("matthews", threshold=threshold).compute(p, y, w), matthews_in_fractions(y, d, w))


def test_the_threshold_itself_is_positive():
    assert get("accuracy").compute([0.5], [1]) == 1.0
    assert get("f1@0.3").compute([0.3, 0.2], [1, 0]) == 1.0


def test_float32_scores_meet_the_threshold_in_float64():
    just_below = np.array([0.7], dtype=np.float32)  # 0.699999988
    assert get("accuracy@0.7").compute(just_below, [0]) == 1.0


def test_decisions_without_any_positive_score_zero():
    assert get("f1").compute([0.1, 0.2], [0, 0]) == 0.0
    assert get("matthews").compute([0.1, 0.2], [0, 1]) == 0.0


def test_a_weighted_degenerate_correlation_is_zero_not_noise():
    w = [0.1, 0.2, 0.3]
    assert get("matthews").compute([0.9, 0.9, 0.9], [0, 1, 1], w) == 0.0
    assert get("matthews").compute([0.1, 0.9, 0.9], [1, 1, 1], w) == 0.0


@FEW
@given(problems(both=True))
def test_auc_is_scikit_learns(problem):
    p, y, w = problem
    agrees(get("auc_roc").compute(p, y, w), sk.roc_auc_score(y, p, sample_weight=w))


@FEW
@given(problems(both=True, chances=st.floats(-1e300, 1e300)))
def test_auc_takes_any_score(problem):
    p, y, w = problem
    with np.errstate(over="ignore"):
        reference = sk.roc_auc_score(y, np.argsort(np.argsort(p)) if len(set(p)) == len(p) else p, sample_weight=w)
    agrees(get("auc_roc").compute(p, y, w), reference)


@FEW
@given(problems(both=True, most=8))
def test_auc_is_the_share_of_pairs_in_order(problem):
    p, y, w = problem
    w = np.ones(len(p)) if w is None else w
    pairs = [(i, j) for i in np.flatnonzero(y) for j in np.flatnonzero(1 - y)]
    won = math.fsum(w[i] * w[j] * ((p[i] > p[j]) + (p[i] == p[j]) / 2) for i, j in pairs)
    agrees(get("auc_roc").compute(p, y, w), won / math.fsum(w[i] * w[j] for i, j in pairs))


@FEW
@given(problems(both=True), st.sampled_from([np.sqrt, lambda p: p / 8 - 3, lambda p: -1 / (p + 1)]))
def test_auc_is_exactly_the_same_after_a_monotone_transform(problem, transform):
    p, y, w = problem
    p = np.round(p, 3)  # so that different scores stay different
    assert get("auc_roc").compute(transform(p), y) == get("auc_roc").compute(p, y)
    agrees(get("auc_roc").compute(transform(p), y, w), get("auc_roc").compute(p, y, w))


def test_auc_does_not_depend_on_the_order_of_tied_rows():
    assert get("auc_roc").compute([0.5] * 6, [0, 0, 0, 1, 1, 1]) == 0.5
    assert get("auc_roc").compute([0.5] * 6, [1, 1, 1, 0, 0, 0]) == 0.5
    assert get("auc_roc").compute([0.5] * 6, [1, 1, 1, 0, 0, 0], [1, 2, 3, 4, 5, 6]) == 0.5


def test_auc_of_signed_zeros_is_a_tie():
    assert get("auc_roc").compute([0.0, -0.0], [0, 1]) == 0.5
    assert get("auc_roc").compute([0.0, -0.0, 1.0], [0, 1, 1], [1, 1, 2]) == pytest.approx(2.5 / 3)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0]])
def test_auc_of_one_class_is_a_half_with_a_warning(label, weights):
    with pytest.warns(MetricWarning, match=f"all labels are {label}; it is set to 0.5"):
        assert get("auc_roc").compute([0.1, 0.2], [label, label], weights) == 0.5


def test_auc_of_a_class_without_weight_is_a_half_with_a_warning():
    with pytest.warns(MetricWarning, match="all labels are 0"):
        assert get("auc_roc").compute([0.1, 0.2, 0.3], [0, 1, 0], [1.0, 0.0, 2.0]) == 0.5


@FEW
@given(problems(both=True))
def test_average_precision_is_scikit_learns(problem):
    p, y, w = problem
    agrees(get("average_precision").compute(p, y, w), sk.average_precision_score(y, p, sample_weight=w))


def test_average_precision_without_positives_is_zero_with_a_warning():
    with pytest.warns(MetricWarning, match="undefined without a positive label"):
        assert get("average_precision").compute([0.1, 0.2], [0, 0]) == 0.0


@FEW
@given(problems())
def test_brier_is_scikit_learns(problem):
    p, y, w = problem
    agrees(get("brier").compute(p, y, w), sk.brier_score_loss(y, p, sample_weight=w, pos_label=1, labels=[0, 1]))


@FEW
@given(problems(), st.integers(1, 12))
def test_ece_is_its_definition(problem, n_bins):
    p, y, w = problem
    w = np.ones(len(p)) if w is None else w
    gap = 0.0
    for k in range(n_bins):
        inside = (p >= k / n_bins) & ((p < (k + 1) / n_bins) | (k == n_bins - 1))
        gap += abs(math.fsum(w[inside] * (p[inside] - y[inside])))
    agrees(get("ece", n_bins=n_bins).compute(p, y, w), gap / w.sum())


@FEW
@given(problems(), st.integers(1, 8))
def test_reliability_bins_hold_every_row_and_add_up_to_the_ece(problem, n_bins):
    p, y, w = problem
    bins = reliability(p, y, w, n_bins=n_bins)
    weight = sum(b.weight for b in bins)
    assert len(bins) == n_bins
    assert (bins[0].lower, bins[-1].upper) == (0.0, 1.0)
    assert sum(b.rows for b in bins) == len(p)
    agrees(weight, len(p) if w is None else w.sum())
    filled = [b for b in bins if b.rows]
    assert all(b.mean_label is None and b.mean_prediction is None for b in bins if not b.rows)
    assert all(b.lower - 1e-12 <= b.mean_prediction <= b.upper + 1e-12 for b in filled)
    gap = sum(b.weight * abs(b.mean_prediction - b.mean_label) for b in filled) / weight
    agrees(get("ece", n_bins=n_bins).compute(p, y, w), gap)


def test_a_probability_of_one_is_in_the_last_bin_and_edges_open_a_bin():
    bins = reliability([0.0, 0.29, 0.3, 0.6, 0.7, 1.0], [0] * 6)
    assert [b.rows for b in bins] == [1, 0, 1, 1, 0, 0, 1, 1, 0, 1]
    with pytest.raises(ConfigError, match="'n_bins' parameter of ece"):
        reliability([0.5], [1], n_bins=0)


def test_large_inputs_agree_across_blocks():
    rng = np.random.default_rng(3)
    n = 100_003
    y = rng.integers(0, 2, n)
    p = np.round(0.4 * y + 0.6 * rng.random(n), 3).clip(0.001, 0.999)
    w = rng.random(n)
    d = p >= 0.5
    for weights in (None, w):
        pairs = {
            "logloss": sk.log_loss(y, p, sample_weight=weights),
            "auc_roc": sk.roc_auc_score(y, p, sample_weight=weights),
            "f1": sk.f1_score(y, d, sample_weight=weights),
            "accuracy": sk.accuracy_score(y, d, sample_weight=weights),
            "matthews": sk.matthews_corrcoef(y, d, sample_weight=weights),
            "average_precision": sk.average_precision_score(y, p, sample_weight=weights),
            "brier": sk.brier_score_loss(y, p, sample_weight=weights),
        }
        for name, reference in pairs.items():
            assert get(name).compute(p, y, weights) == pytest.approx(reference, rel=1e-12)
