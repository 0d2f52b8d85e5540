"""A fit in a paper's way: split sizes, preprocessing, native parameters; and nothing changes without one."""

from dataclasses import replace

import numpy as np
import pytest

from boosters_eval.core.errors import ConfigError, DatasetError
from boosters_eval.core.files import dump_canonical
from boosters_eval.datasets import Table
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import (
    Protocol,
    canonicalize_native,
    override_natives,
    prepare_rows,
    refuse_ignored,
    split_by_protocol,
)
from boosters_eval.programs.benchmark.preprocessing import STEPS, Step, StepRows, load_steps, locate_steps
from boosters_eval.programs.benchmark.spec import FitSpec, Timing
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig


def spec(**changes):
    fields = {
        "name": "toy/gbdt",
        "dataset": "toy",
        "data_digest": "0" * 64,
        "task": Task.REGRESSION,
        "booster_type": BoosterType.GBDT,
        "training": TrainingConfig(),
        "profile": Profile.PARITY,
        "variant": None,
        "n_classes": None,
        "quantiles": (),
        "categorical": (),
        "has_missing": False,
        "weighted": False,
        "max_categories": 0,
        "split": SplitSpec(),
        "metrics": (),
        "primary_metric": "rmse",
        "timing": Timing(),
    }
    return FitSpec(**{**fields, **changes})


def table(rows=40, *, official=None):
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.standard_normal(rows), rng.integers(0, 3, rows)]).astype(np.float32)
    y = (rng.random(rows) < 0.4).astype(np.float64)
    return Table(x=x, y=y, categorical=(1,), feature_names=("a", "b"), split=official)


def test_a_protocol_is_part_of_the_identity_and_survives_a_round_trip():
    known = spec(protocol=Protocol(preprocessing=("one-hot",), train=10, test="official", native={"eta": 0.3}))
    assert dump_canonical(known.identity()) != dump_canonical(spec().identity())
    assert FitSpec.model_validate_json(known.model_dump_json()) == known


def test_rows_are_split_by_count_without_overlap_and_alike_for_a_seed():
    protocol = Protocol(train=20, validation=8, test=10)
    first, again, other = (split_by_protocol(table(), Task.BINARY, protocol, seed, stopping=True) for seed in (1, 1, 2))
    assert [len(rows) for rows in (first.train, first.stop, first.test)] == [20, 8, 10]
    assert len(np.unique(np.concatenate([first.train, first.stop, first.test]))) == 38
    assert first.as_split().digest == again.as_split().digest != other.as_split().digest


def test_official_test_rows_are_those_of_the_data_set():
    official = np.array([1] * 10 + [0] * 30, dtype=np.int8)
    split = split_by_protocol(
        table(official=official), Task.BINARY, Protocol(test="official", validation=5), 1, stopping=True
    )
    assert split.test.tolist() == list(range(10))
    assert (len(split.train), len(split.stop)) == (25, 5)


def test_early_stopping_without_counted_rows_holds_out_a_fifth():
    split = split_by_protocol(table(), Task.BINARY, Protocol(test=0.25), 1, stopping=True)
    assert len(split.stop) == (40 - len(split.test)) // 5


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (Protocol(train=35, test=10), "needs 35 rows besides the 10"),
        (Protocol(test="official"), "no official test rows"),
    ],
)
def test_a_split_that_the_data_cannot_give_is_refused(protocol, sentence):
    with pytest.raises(DatasetError, match=sentence):
        split_by_protocol(table(), Task.BINARY, protocol, 1, stopping=False)


def test_one_hot_has_a_column_per_training_category_and_zeros_for_others():
    step = STEPS["one-hot"]()
    train = step.fit(StepRows(np.array([[5, 0], [6, np.nan], [7, 2]], np.float32), np.zeros(3), (1,), ("n", "c")), 0)
    assert train.names == ("n", "c=-1", "c=0", "c=2")
    assert train.categorical == ()
    assert train.x.tolist() == [[5, 0, 1, 0], [6, 1, 0, 0], [7, 0, 0, 1]]
    other = step.apply(StepRows(np.array([[9, 1]], np.float32), np.zeros(1), (1,), ("n", "c")))
    assert other.x.tolist() == [[9, 0, 0, 0]]


def test_ordered_counters_count_the_rows_before_in_a_random_order_and_all_for_other_rows():
    data = table(200)
    rows = StepRows(data.x, data.y, (1,), ("a", "b"))
    step = STEPS["ordered-counters"]()
    found = step.fit(rows, 42)
    assert not np.array_equal(found.x[:, 1], STEPS["ordered-counters"]().fit(rows, 43).x[:, 1])
    for code in range(3):
        mine = data.x[:, 1] == code
        seen = found.x[mine, 1]
        # The first row of a category is worth 1/2, and b + 2 runs from 2 on: each value is some a + 1 over it.
        assert (seen == np.float32(0.5)).any()
        assert seen.min() > 0
        assert seen.max() < 1
        worth = (data.y[mine].sum() + 1) / (mine.sum() + 2)
        assert step.apply(rows).x[mine, 1] == pytest.approx(worth)
    # By hand, in the order that the step used: its values can be told apart by their denominators.
    small = StepRows(np.zeros((3, 1), np.float32), np.ones(3), (0,))
    assert sorted(STEPS["ordered-counters"]().fit(small, 1).x[:, 0].tolist()) == pytest.approx([1 / 2, 2 / 3, 3 / 4])
    unseen = step.apply(StepRows(np.array([[0, 9]], np.float32), np.zeros(1), (1,)))
    assert unseen.x[0, 1] == 0.5


def test_a_standardized_target_is_restored_to_its_own_units():
    step = STEPS["standardized-target"]()
    y = np.array([10.0, 20.0, 60.0])
    train = step.fit(StepRows(np.zeros((3, 1), np.float32), y), 0)
    assert train.y.mean() == pytest.approx(0)
    assert train.y.std() == pytest.approx(1)
    assert step.restore(train.y.astype(np.float32)) == pytest.approx(y)


@pytest.mark.parametrize("name", ["standardize", "quantile-transform"])
def test_numeric_columns_are_scaled_by_the_training_rows_only(name):
    data = table(100)
    protocol = Protocol(preprocessing=(name,), test=20)
    split = split_by_protocol(data, Task.BINARY, protocol, 1, stopping=False)
    prepared = prepare_rows(data, split, protocol, 1)
    assert prepared.train.x[:, 0].mean() == pytest.approx(0, abs=0.2)
    assert np.array_equal(prepared.test.x[:, 1], data.x[split.test, 1])  # categories stay as they are
    shifted = Table(x=data.x.copy(), y=data.y, categorical=(1,), feature_names=("a", "b"))
    shifted.x[split.test, 0] += 1000
    assert np.array_equal(prepare_rows(shifted, split, protocol, 1).train.x, prepared.train.x)


class Doubled(Step):
    """A step as a user writes one."""

    def fit(self, rows, seed):
        return self.apply(rows)

    def apply(self, rows):
        return replace(rows, x=rows.x * 2)


def test_a_step_of_a_user_reaches_the_process_of_a_cell():
    STEPS.register("doubled", Doubled)
    try:
        told = locate_steps(("doubled", "one-hot"))
        STEPS.unregister("doubled")
        load_steps(told)
        protocol = Protocol(preprocessing=("doubled",), test=10)
        split = split_by_protocol(table(), Task.BINARY, protocol, 1, stopping=False)
        assert np.array_equal(prepare_rows(table(), split, protocol, 1).test.x, table().x[split.test] * 2)
    finally:
        STEPS.unregister("doubled")


def test_native_parameters_win_are_marked_and_can_be_taken_away():
    translation = RUNNERS["xgboost"].translate(spec().request(1))
    native = canonicalize_native("xgboost", {"learning_rate": 0.3, "lambda": None, "colsample_bylevel": 0.5})
    found = override_natives(translation, Protocol(native=native))
    assert found.native["eta"] == 0.3
    assert "learning_rate" not in found.native  # under the library's other name it would be passed twice
    assert "lambda" not in found.native
    reasons = {mark.parameter: mark.reason for mark in found.marks if mark.kind != "exact"}
    assert reasons["eta"] == "the protocol sets 0.3 instead of 0.1"
    assert reasons["lambda"] == "the protocol leaves it to the library instead of 1.0"
    assert override_natives(translation, None) is translation


@pytest.mark.parametrize(
    ("native", "sentence"),
    [
        ({"eta": 0.1, "learning_rate": 0.2}, "The native parameter 'eta' of xgboost is given twice"),
        ({"n_jobs": 4}, "must be given as the canonical 'n_threads'"),
        ({"tree_method": "gpu_hist"}, "'tree_method' must be given as the canonical 'device'"),
        ({"gpu_id": 0}, "'gpu_id' must be given as the canonical 'device'"),
    ],
)
def test_native_parameters_that_contradict_are_refused(native, sentence):
    with pytest.raises(ConfigError, match=sentence):
        canonicalize_native("xgboost", native)


@pytest.mark.parametrize(
    ("library", "native"), [("xgboost", {"min_child_wieght": 5}), ("lightgbm", {"min_data_in_laef": 5})]
)
def test_a_native_parameter_that_the_library_would_ignore_is_refused(library, native):
    translation = RUNNERS[library].translate(spec().request(1))
    right = Protocol(native={"max_depth": 3})
    refuse_ignored(library, right.native, override_natives(translation, right))
    with pytest.raises(ConfigError, match=f"The native parameter '{next(iter(native))}' has no effect in {library}"):
        refuse_ignored(library, native, override_natives(translation, Protocol(native=native)))


def test_a_step_says_for_which_task_it_makes_no_sense():
    counters = Protocol(preprocessing=("ordered-counters",))
    assert counters.unsupported(Task.REGRESSION) == "the step 'ordered-counters' needs a binary target"
    assert counters.unsupported(Task.BINARY) is None
    assert Protocol(train=5).unsupported(Task.RANKING) == "sizes in rows would cut the queries of a ranking data set"
    assert spec(task=Task.BINARY, categorical=(1,), protocol=counters).request(1).categorical == ()
