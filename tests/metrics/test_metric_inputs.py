import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics import METRICS, get
from boosters_eval.metrics.rows import as_array
from boosters_eval.metrics.task import Task

N = 40
RNG = np.random.default_rng(7)
Y = RNG.permutation(np.arange(N) % 2)
P = RNG.random(N)
W = RNG.random(N) + 0.1
CLASSES = RNG.permutation(np.arange(N) % 3)
SHARES = RNG.dirichlet(np.ones(3), N)
GROUPS = np.repeat(np.arange(8), 5)


def arguments(name):
    """Valid predictions, labels and keyword arguments for any metric."""
    keywords = {}
    if name in ("mlogloss", "macro_f1", "top_k_accuracy"):
        return SHARES, CLASSES, keywords
    if "groups" in METRICS[name].needs:
        keywords["groups"] = GROUPS
    if "sensitive" in METRICS[name].needs:
        keywords["sensitive"] = GROUPS % 2
    labels = Y + 1.0 if name in ("rmse", "mae", "r2", "mape", "rmsle", "median_ae", "pinball", "crps") else Y
    return P, labels, keywords


EVERY = pytest.mark.parametrize("name", list(METRICS))


def refusal(name, predictions, labels, weights=None, **keywords):
    with pytest.raises(MetricInputError) as caught:
        get(name).compute(predictions, labels, weights, **keywords)
    return str(caught.value)


@EVERY
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_predictions_that_are_not_finite_are_refused_by_row(name, bad):
    p, y, keywords = arguments(name)
    p = p.copy()
    p[3] = bad
    message = refusal(name, p, y, **keywords)
    assert message.startswith(f"The 'predictions' parameter of {name} must be ")
    assert f"Got {bad} in row 3" in message


@EVERY
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_labels_that_are_not_finite_are_refused_by_row(name, bad):
    p, y, keywords = arguments(name)
    y = y.astype(float)
    y[39] = bad
    message = refusal(name, p, y, **keywords)
    assert message.startswith(f"The 'labels' parameter of {name} must be ")
    assert f"Got {bad} in row 39 instead." in message


@EVERY
@pytest.mark.parametrize("bad", [-0.5, math.nan, math.inf])
def test_weights_that_mean_nothing_are_refused_by_row(name, bad):
    p, y, keywords = arguments(name)
    w = W.copy()
    w[5] = bad
    message = refusal(name, p, y, w, **keywords)
    assert message == (
        f"The 'weights' parameter of {name} must be finite and not negative. Got {bad} in row 5 instead."
    )


@EVERY
def test_weights_that_are_all_zero_are_refused(name):
    p, y, keywords = arguments(name)
    message = refusal(name, p, y, np.zeros(N), **keywords)
    assert message.endswith("greater than 0 in at least one row. Got 0.0 in all 40 rows instead.")


@EVERY
def test_wrong_lengths_are_refused(name):
    p, y, keywords = arguments(name)
    assert "'labels' parameter" in refusal(name, p, y[:-1], **keywords)
    assert "Got 39 rows instead" in refusal(name, p, y[:-1], **keywords)
    message = refusal(name, p, y, W[:-1], **keywords)
    assert "'weights' parameter" in message
    assert "Got the shape (39,) instead" in message


@EVERY
def test_wrong_shapes_are_refused(name):
    p, y, keywords = arguments(name)
    assert "dimensions" in refusal(name, np.zeros((2, 2, 2)), y, **keywords)
    assert "Got 0 dimensions" in refusal(name, 0.5, y, **keywords)
    assert "of at least one row" in refusal(name, [], [], **keywords)
    assert "'weights'" in refusal(name, p, y, np.ones((N, 2)), **keywords)
    assert "Got the shape" in refusal(name, p, np.zeros((N, 2)), **keywords)


@pytest.mark.parametrize("name", [n for n in METRICS if Task.MULTICLASS not in METRICS[n].tasks])
def test_a_matrix_is_refused_where_one_column_is_needed(name):
    _, y, keywords = arguments(name)
    message = refusal(name, np.full((N, 2), 0.5), y, **keywords)
    assert message.startswith(f"The 'predictions' parameter of {name} must be of ")
    assert message.endswith("Got the shape (40, 2) instead.")


@pytest.mark.parametrize("name", ["mlogloss", "macro_f1", "top_k_accuracy"])
def test_one_column_is_refused_where_classes_are_needed(name):
    assert "must be of one column for each class. Got the shape (40,) instead" in refusal(name, P, Y)


@EVERY
def test_weights_that_are_all_equal_change_nothing(name):
    p, y, keywords = arguments(name)
    assert get(name).compute(p, y, np.full(N, 0.3), **keywords) == get(name).compute(p, y, **keywords)


@EVERY
def test_every_container_and_order_gives_the_same_value(name):
    p, y, keywords = arguments(name)
    expected = get(name).compute(p, y, W, **keywords)
    matrix = p if p.ndim == 2 else p[:, None]
    for form in (
        matrix,
        np.asfortranarray(matrix),
        np.repeat(matrix, 2, axis=0)[::2],
        matrix.tolist(),
        pd.DataFrame(matrix),
        pl.DataFrame(matrix),
        matrix.astype(object),
        matrix.astype(np.longdouble),
    ):
        assert get(name).compute(form, y, W, **keywords) == pytest.approx(expected, rel=1e-14)
    for column in (list, tuple, pd.Series, pl.Series, lambda v: np.asarray(v)[:, None], pd.array):
        given = {key: column(value) for key, value in keywords.items()}
        assert get(name).compute(p, column(y), column(W), **given) == pytest.approx(expected, rel=1e-14)


@EVERY
def test_float32_is_computed_in_float64(name):
    p, y, keywords = arguments(name)
    p = p.astype(np.float32)
    wide = p.astype(np.float64)
    w = W.astype(np.float32)
    expected = get(name).compute(wide, y, w.astype(np.float64), **keywords)
    assert get(name).compute(p, y.astype(np.float32), w, **keywords) == expected


@EVERY
def test_input_is_never_changed(name):
    p, y, keywords = arguments(name)
    p, y, w = p.copy(), y.copy(), W.copy()
    w[::7] = 0
    for array in (p, y, w):
        array.flags.writeable = False
    get(name).compute(p, y, w, **keywords)
    get(name).compute(p, y, **keywords)


def test_a_numeric_array_is_not_copied():
    for array in (np.arange(3.0), np.arange(3, dtype=np.float32), np.arange(6.0).reshape(3, 2, order="F")):
        assert np.shares_memory(as_array("predictions", array), array)
        assert as_array("predictions", array).dtype == array.dtype
    series = pd.Series(np.arange(3.0))
    assert np.shares_memory(as_array("predictions", series), series.to_numpy())
    column = pl.Series(np.arange(3.0))
    assert np.shares_memory(as_array("predictions", column), column.to_numpy())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (["a", "b"], "must be numeric. Got data of type"),
        (np.array(["1", 2], dtype=object), "must be numeric. Got '1' in row 0 instead"),
        (np.array([[1, 2], [3, "x"]], dtype=object), "Got 'x' in row 1 instead"),
        (np.array([object(), 1], dtype=object), "objects that are not numbers"),
        (pd.Series([object(), 1]), "objects that are not numbers"),
        ([1j, 2], "data of type complex128"),
        (np.array(["2020", "2021"], dtype="M8[Y]"), "must be numeric"),
        ([[1, 2], [3]], "a rectangular array. Got list"),
        ({"a": 1}, "Got 0 dimensions"),
        (None, "Got 0 dimensions"),
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), "a masked value in row 1"),
        (pd.Series([1, None], dtype="Int64"), "must be finite. Got nan in row 1"),
        (pl.Series([1, None]), "must be finite. Got nan in row 1"),
        ([1.0, None], "must be finite. Got nan in row 1"),
    ],
)
def test_what_is_no_number_is_refused(bad, message):
    text = refusal("rmse", bad, [1.0, 2.0])
    assert "'predictions' parameter of rmse" in text
    assert message in text


def test_an_unmasked_masked_array_and_nullable_columns_are_numbers():
    expected = math.sqrt(2.5)
    assert get("rmse").compute(np.ma.masked_array([2.0, 4.0]), [1.0, 2.0]) == expected
    assert get("rmse").compute(pd.Series([2, 4], dtype="Int64"), [1.0, 2.0]) == expected
    assert get("rmse").compute(pd.DataFrame({"a": pd.array([2, 4], dtype="Float32")}), [1.0, 2.0]) == expected


@pytest.mark.parametrize(
    "name", ["logloss", "accuracy", "auc_roc", "f1", "average_precision", "matthews", "brier", "ece"]
)
@pytest.mark.parametrize("bad", [2, -1, 0.5])
def test_labels_other_than_0_and_1_are_refused(name, bad):
    y = Y.astype(float)
    y[11] = bad
    assert refusal(name, P, y).endswith(
        f"'labels' parameter of {name} must be 0 or 1. Got {float(bad)} in row 11 instead."
    )


@pytest.mark.parametrize("name", ["logloss", "brier", "ece"])
@pytest.mark.parametrize("bad", [-1e-9, 1.0000001])
def test_what_is_no_probability_is_refused(name, bad):
    p = P.copy()
    p[2] = bad
    assert f"must be probabilities from 0 to 1. Got {bad} in row 2" in refusal(name, p, Y)


@pytest.mark.parametrize("name", ["mlogloss", "accuracy", "macro_f1", "top_k_accuracy"])
@pytest.mark.parametrize("bad", [3, -1, 0.5])
def test_labels_that_are_no_class_numbers_are_refused(name, bad):
    y = CLASSES.astype(float)
    y[4] = bad
    assert f"must be class numbers from 0 to 2. Got {float(bad)} in row 4" in refusal(name, SHARES, y)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.7, -0.2], "probabilities from 0 to 1. Got -0.2 in row 6, column 2"),
        ([1.0, 1.0, 1.0], "add up to 1 in each row. Got 3.0 in row 6"),
        ([0.2, 0.2, 0.2], "add up to 1 in each row. Got 0.6"),
        ([math.nan, 0.5, 0.5], "Got nan in row 6, column 0"),
    ],
)
def test_rows_that_are_no_distribution_are_refused(row, message):
    p = SHARES.copy()
    p[6] = row
    assert message in refusal("mlogloss", p, CLASSES)


def test_rows_are_numbered_as_the_caller_sees_them():
    p, w = P.copy(), W.copy()
    w[:5] = 0
    y = Y.astype(float)
    y[10] = 7
    assert "Got 7.0 in row 10 instead" in refusal("logloss", p, y, w)
    shares = SHARES.copy()
    shares[12] = 1
    assert "Got 3.0 in row 12" in refusal("mlogloss", shares, CLASSES, w)


def test_rows_beyond_the_first_block_are_found():
    p = np.zeros(100_000)
    p[70_001] = math.nan
    assert "Got nan in row 70001" in refusal("rmse", p, np.zeros(100_000))
    assert "Got nan in row 70001" in refusal("auc_roc", p, np.arange(100_000) % 2)


def test_a_broken_prediction_is_not_hidden_by_a_weight_of_zero():
    assert "Got nan in row 0" in refusal("mae", [math.nan, 1.0], [1.0, 1.0], [0, 1])


def test_what_a_row_of_weight_zero_says_is_not_judged():
    assert get("mape").compute([1.0, 2.0], [0.0, 1.0], [0, 1]) == 100.0
    assert get("logloss").compute([0.5, 0.5], [9, 1], [0, 1]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("name", ["ndcg", "map", "mrr"])
def test_ranking_needs_groups(name):
    assert refusal(name, P, Y) == f"The 'groups' parameter of {name} is required."
    assert "one label for each of 40 rows. Got the shape (39,)" in refusal(name, P, Y, groups=GROUPS[1:])
    ids = GROUPS.astype(float)
    ids[9] = math.nan
    assert "a label in every row. Got nan in row 9" in refusal(name, P, Y, groups=ids)
    assert "Got -1 in row 1" in refusal(name, P[:2], [0, -1], groups=[0, 0])


@pytest.mark.parametrize("name", ["demographic_parity", "equalized_odds"])
def test_fairness_needs_a_sensitive_column(name):
    assert refusal(name, P, Y) == f"The 'sensitive' parameter of {name} is required."
    assert "Got None in row 1" in refusal(name, [0.1, 0.2], [0, 1], sensitive=["a", None])
    assert "Got <NA> in row 0" in refusal(name, [0.1, 0.2], [0, 1], sensitive=pd.Series([pd.NA, 3], dtype=object))
    assert "Got NaT in row 0" in refusal(name, [0.1, 0.2], [0, 1], sensitive=np.array(["NaT", "2020"], dtype="M8[D]"))
    assert "labels that cannot be compared" in refusal(
        name, [0.1, 0.2], [0, 1], sensitive=np.array(["a", 3], dtype=object)
    )


def test_numbers_too_large_for_a_score_are_said_to_be():
    message = refusal("mae", [1.7e308, 0.0], [-1.7e308, 0.0])
    assert message == "The metric 'mae' has no finite value here: the numbers are too large."


def test_a_sum_too_large_for_a_score_is_refused():
    far = np.full(2**16, 5e303)
    message = refusal("mae", far, np.zeros(2**16))
    assert message == "The metric 'mae' has no finite value here: the numbers are too large."


@pytest.mark.parametrize("name", ["rmse", "r2", "auc_roc", "f1", "matthews"])
def test_no_numeric_warning_escapes(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = get(name).compute(
            np.where(P > 0.5, 1e300, -1e300), np.where(Y, 1e300, 0) if name in ("rmse", "r2") else Y
        )
    assert math.isfinite(value)
