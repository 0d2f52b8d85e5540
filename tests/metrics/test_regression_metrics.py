import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics import get

FEW = settings(max_examples=60)
SIZES = st.floats(-1e6, 1e6).map(lambda v: round(v, 6))
WEIGHTS = st.one_of(st.floats(1e-3, 1e3), st.integers(1, 3))


@st.composite
def problems(draw, values=SIZES, outputs=1):
    """Predictions, labels, weights or None; small integers make ties, constants make degenerate labels."""
    values = draw(st.sampled_from([values, st.sampled_from([1.0, 2.0, 3.0]), st.just(2.5)]))
    n = draw(st.integers(1, 12))
    p, y = (np.array(draw(st.lists(values, min_size=n * outputs, max_size=n * outputs))) for _ in range(2))
    w = draw(st.none() | st.lists(WEIGHTS, min_size=n, max_size=n).map(np.array))
    return p.reshape(n, outputs).squeeze(), y.reshape(n, outputs).squeeze(), w


def agrees(value, reference, scale=1.0):
    assert value == pytest.approx(float(reference), rel=1e-12, abs=1e-12 * scale)


def at_least_1d(problem):
    p, y, w = problem
    return np.atleast_1d(p), np.atleast_1d(y), w


@FEW
@given(problems().map(at_least_1d))
def test_errors_are_scikit_learns(problem):
    p, y, w = problem
    agrees(get("rmse").compute(p, y, w), sk.root_mean_squared_error(y, p, sample_weight=w))
    agrees(get("mae").compute(p, y, w), sk.mean_absolute_error(y, p, sample_weight=w))
    agrees(get("pinball@0.2").compute(p, y, w), sk.mean_pinball_loss(y, p, sample_weight=w, alpha=0.2))
    agrees(get("median_ae").compute(p, y, None), sk.median_absolute_error(y, p))


@FEW
@given(problems().map(at_least_1d))
def test_the_weighted_median_is_scikit_learns(problem):
    p, y, w = problem
    # Integer weights: its sums are exact, so both see the same ties at half of the weight.
    w = None if w is None else np.ceil(w)
    agrees(get("median_ae").compute(p, y, w), sk.median_absolute_error(y, p, sample_weight=w))


@FEW
@given(problems().map(at_least_1d))
def test_r2_is_scikit_learns_unless_labels_are_constant(problem):
    p, y, w = problem
    value = get("r2").compute(p, y, w)
    if y.min() == y.max():
        assert value == (1.0 if np.array_equal(p, y) else 0.0)
    else:
        reference = sk.r2_score(y, p, sample_weight=w)
        agrees(value, reference, scale=abs(reference) + 1)


@FEW
@given(problems(values=st.floats(0.01, 1e4)).map(at_least_1d))
def test_relative_and_logarithmic_errors_are_scikit_learns(problem):
    p, y, w = problem
    agrees(get("mape").compute(p, y, w), 100 * sk.mean_absolute_percentage_error(y, p, sample_weight=w))
    agrees(get("rmsle").compute(p, y, w), sk.root_mean_squared_log_error(y, p, sample_weight=w))


@FEW
@given(problems(outputs=3))
def test_outputs_are_averaged_and_told_apart_on_request(problem):
    p, y, w = (problem[0].reshape(-1, 3), problem[1].reshape(-1, 3), problem[2])
    for name, reference in (("rmse", sk.root_mean_squared_error), ("mae", sk.mean_absolute_error)):
        raw = reference(y, p, sample_weight=w, multioutput="raw_values")
        for order in "CF":
            columns = np.asarray(p, order=order)
            assert get(name).per_output(columns, y, w) == pytest.approx(raw, rel=1e-12, abs=1e-12)
            agrees(get(name).compute(columns, y, w), np.mean(raw))
    for name in ("r2", "median_ae", "mape@1", "rmsle"):
        if name == "rmsle" and min(p.min(), y.min()) <= -1:
            continue
        each = [get(name).compute(p[:, k], y[:, k], w) for k in range(3)]
        assert get(name).per_output(p, y, w) == each
        agrees(get(name).compute(p, y, w), np.mean(each), scale=np.max(np.abs(each)) + 1)


def test_a_single_output_has_one_value():
    assert get("rmse").per_output([3.0], [1.0]) == [2.0]
    assert get("auc_roc").per_output([0.1, 0.2], [0, 1]) == [1.0]


def test_large_outputs_have_a_mean():
    assert get("mae").compute([[1e308, 1.5e308]], [[0.0, 0.0]]) == 1.25e308


def test_rmse_is_not_pooled_over_outputs():
    p, y = np.array([[1.0, 10.0], [1.0, 10.0]]), np.zeros((2, 2))
    assert get("rmse").compute(p, y) == 5.5


def test_constant_labels_are_recognized_in_spite_of_rounding():
    y = np.full(6, 0.7)  # its mean is another number
    assert get("r2").compute(y, y) == 1.0
    assert get("r2").compute(y + 0.1, y) == 0.0
    assert get("r2").compute(y, y, np.arange(1, 7)) == 1.0
    with pytest.raises(MetricInputError, match="Got nan in row 2"):
        get("r2").compute([0.7, 0.7, math.nan], [0.7, 0.7, 0.7])


def test_a_far_away_mean_costs_no_digits():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=1000)
    y, p = np.round(noise * 1024) / 1024, np.round(rng.normal(size=1000) * 1024) / 1024
    shifted = get("r2").compute(p + 2.0**30, y + 2.0**30)
    assert shifted == pytest.approx(get("r2").compute(p, y), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-250, 1e-160, 1e160, 1e250])
def test_extreme_sizes_neither_overflow_nor_vanish(scale):
    p, y = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.0, 3.0])
    assert get("rmse").compute(p * scale, y * scale) == pytest.approx(get("rmse").compute(p, y) * scale, rel=1e-14)
    assert get("r2").compute(p * scale, y * scale) == pytest.approx(get("r2").compute(p, y), rel=1e-14)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300, 2.0**1022])
@pytest.mark.parametrize("name", ["rmse", "mae", "r2", "median_ae", "pinball"])
def test_extreme_weights_are_only_relative(name, scale):
    p, y, w = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 3.0]), np.array([1.0, 2.0, 1.0])
    assert get(name).compute(p, y, w * scale) == pytest.approx(get(name).compute(p, y, w), rel=1e-14)


def test_float32_sums_keep_their_digits():
    p = np.full(2_000_003, 0.1, dtype=np.float32)
    assert get("mae").compute(p, np.zeros_like(p)) == pytest.approx(float(np.float32(0.1)), rel=1e-15)


class TestMape:
    def test_is_in_percent(self):
        assert get("mape").compute([1.1, 1.8], [1.0, 2.0]) == pytest.approx(10.0)

    def test_a_zero_label_is_refused_by_row(self):
        with pytest.raises(MetricInputError, match=r"'labels' .* unless 'epsilon' is given. Got 0.0 in row 1"):
            get("mape").compute([1.0, 1.0], [1.0, 0.0])

    @FEW
    @given(problems().map(at_least_1d))
    def test_the_epsilon_form_is_scikit_learns(self, problem):
        p, y, w = problem
        value = get("mape", epsilon=np.finfo(float).eps).compute(p, y, w)
        agrees(value, 100 * sk.mean_absolute_percentage_error(y, p, sample_weight=w))


class TestQuantiles:
    P = np.array([[0.0, 1.0, 3.0], [1.0, 1.0, 2.0], [0.5, 2.0, 2.5]])
    Y = np.array([1.5, 0.5, 2.0])

    def test_levels_are_averaged_and_told_apart_on_request(self):
        each = [sk.mean_pinball_loss(self.Y, self.P[:, k], alpha=a) for k, a in enumerate((0.1, 0.5, 0.9))]
        metric = get("pinball@0.1,0.5,0.9")
        assert metric.per_output(self.P, self.Y) == pytest.approx(each, rel=1e-14)
        assert metric.compute(self.P, self.Y) == pytest.approx(np.mean(each), rel=1e-14)

    def test_levels_belong_to_columns_by_position(self):
        turned = get("pinball@0.9,0.5,0.1").compute(self.P[:, ::-1], self.Y)
        assert turned == pytest.approx(get("pinball@0.1,0.5,0.9").compute(self.P, self.Y), rel=1e-14)

    def test_one_column_without_a_level_is_the_median(self):
        assert get("pinball").compute(self.P[:, 1], self.Y) == get("mae").compute(self.P[:, 1], self.Y) / 2

    @pytest.mark.parametrize("spec", ["pinball", "pinball@0.5", "pinball@0.1,0.9", "crps"])
    def test_columns_without_a_level_are_refused(self, spec):
        with pytest.raises(MetricInputError, match=r"one column for each of \d 'alphas'. Got the shape \(3, 3\)"):
            get(spec).compute(self.P, self.Y)

    def test_crps_of_a_point_forecast_is_its_absolute_error(self):
        levels = tuple((np.arange(100) + 0.5) / 100)
        same = np.tile(np.array([1.0, 5.0])[:, None], (1, 100))
        assert get("crps", alphas=levels).compute(same, [2.0, 2.0]) == pytest.approx(2.0)

    def test_crps_of_many_quantiles_is_that_of_the_distribution(self):
        from scipy.stats import norm

        levels = (np.arange(2000) + 0.5) / 2000
        y = np.array([-1.0, 0.3, 2.0])
        exact = y * (2 * norm.cdf(y) - 1) + 2 * norm.pdf(y) - 1 / math.sqrt(math.pi)
        got = get("crps", alphas=levels).compute(np.tile(norm.ppf(levels), (3, 1)), y)
        assert got == pytest.approx(exact.mean(), rel=1e-3)


def test_values_of_minus_one_or_less_have_no_logarithmic_error():
    with pytest.raises(
        MetricInputError, match=r"'labels' parameter of rmsle must be greater than -1. Got -1.0 in row 1"
    ):
        get("rmsle").compute([1.0, 1.0], [1.0, -1.0])
    with pytest.raises(MetricInputError, match="'predictions' parameter of rmsle"):
        get("rmsle").compute([-3, 1], [1, 1])
