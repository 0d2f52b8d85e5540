"""Data that a Python user has in hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import tiny
from boosters_eval import DATASETS, ConfigError, TrainingConfig, compare, prepare_comparison
from boosters_eval.datasets.resolve import collect_datasets

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["a", "b"])
FRAME["kind"] = np.where(FRAME.a > 0, "high", "low")
FRAME["price"] = FRAME.a + FRAME.b
FRAME.index = FRAME.index[::-1]  # rows are matched by position
X, KIND = FRAME[["a", "b"]].to_numpy(), FRAME["kind"].to_numpy()


def planned(datasets, **options):
    plan = prepare_comparison(datasets, "sklearn", seeds=1, **options).plan
    return {spec.dataset: spec for spec in plan.specs}


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_a_data_frame_and_its_target_are_a_data_set(frame, home):
    before = FRAME.copy()
    (spec,) = planned(frame, target="price").values()
    assert (spec.dataset, spec.task.value, spec.categorical) == ("data.price", "regression", (2,))
    pd.testing.assert_frame_equal(before, FRAME)


def test_both_kinds_of_frames_are_the_same_data(home):
    (ours,) = planned(FRAME, target="kind").values()
    (theirs,) = planned(pl.from_pandas(FRAME), target="kind").values()
    assert ours.data_digest == theirs.data_digest


@pytest.mark.parametrize(
    ("x", "y"), [(X, KIND), (X, list(KIND)), (X.tolist(), KIND[:, None]), (FRAME[["a", "b"]], FRAME["kind"])]
)
def test_arrays_may_have_a_target_of_text(x, y, home):
    (spec,) = planned((x, y)).values()
    assert (spec.dataset, spec.task.value, spec.n_classes) == ("data.target", "binary", 2)


def test_names_frames_arrays_and_configs_may_be_mixed(home):
    found = planned(["iris", FRAME, (X, KIND), DATASETS["wine"], "iris"], target="price")
    assert list(found) == ["iris", "data.price", "data2.price", "wine"]


def test_a_dict_names_them(home):
    assert list(planned({"sales": FRAME, "kinds": (X, KIND)}, target="price")) == ["sales.price", "kinds.price"]


def test_settings_apply_to_a_frame(home):
    (spec,) = planned(FRAME, target="price", data={"drop": ["kind"]}).values()
    assert spec.categorical == ()


def test_a_file_may_take_its_target_from_the_parameter():
    assert collect_datasets(["sales.csv", "sales.csv:price", "iris"], "price") == ["sales.csv:price", "iris"]


@pytest.mark.parametrize(
    ("datasets", "target", "told"),
    [
        (FRAME, None, "A data frame needs the 'target' parameter: the name of the column to predict."),
        ("iris", "price", "The 'target' parameter is for data frames and files. Got 'price' without either."),
        (FRAME, 3, "The 'target' parameter must be the name of a column, or of several. Got 3 instead."),
        (X, None, "Got an object of type ndarray instead."),
        (FRAME["a"], None, "Got an object of type Series instead."),
        ([], None, "Got [] instead."),
        ({"a": "iris"}, None, "Got 'a': 'iris' instead."),
        ({1: FRAME}, "price", "Got 1: an object of type DataFrame instead."),
        ((X, KIND[:3]), None, "The target y must be one value per row of X, 60. Got (3,) instead."),
        ((X[:, 0], KIND), None, "The features X must have two dimensions. Got 1 instead."),
        ((sparse.csr_matrix(X), KIND), None, "pass X.toarray(). Got a sparse one instead."),
        ((FRAME, KIND), "kind", "The target y cannot be called 'kind', as a column of X is: set 'target'."),
    ],
)
def test_what_is_no_data_gets_one_sentence(datasets, target, told):
    with pytest.raises(ConfigError) as caught:
        collect_datasets(datasets, target)
    assert str(caught.value).endswith(told)
    assert "\n" not in str(caught.value)


def test_a_comparison_of_a_frame_runs(faulty):
    works = TrainingConfig(max_depth=faulty.BY_NAME["none"])
    done = compare(FRAME, "faulty", seeds=1, target="price", training=works, executor=tiny.shared_pool())
    (result,) = done.results
    assert result.dataset_name == "data.price"
    assert result.trivial["mean"]["rmse"] > 0
