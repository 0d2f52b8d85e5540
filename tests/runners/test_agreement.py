"""One round at learning rate 1 on pre-binned columns: libraries that are told the same must answer the same."""

import itertools

import numpy as np
import pytest

from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, TrainData
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy

NEWTON = ("boosters", "xgboost", "lightgbm", "sklearn")
ROUND = {"n_estimators": 1, "learning_rate": 1.0, "max_depth": 3, "n_leaves": 8}


def agreement(first, second):
    apart = np.abs(np.asarray(first, dtype=np.float64) - second)
    return float(np.mean((apart if apart.ndim == 1 else apart.max(axis=1)) < 1e-3))


def lowest(trainer, libraries, request):
    predictions = {name: trainer.predict(name, request) for name in libraries if RUNNERS[name].missing() is None}
    return {pair: agreement(*(predictions[name] for name in pair)) for pair in itertools.combinations(predictions, 2)}


@pytest.mark.parametrize("growth", GrowthStrategy)
@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("task", [Task.REGRESSION, Task.BINARY, Task.MULTICLASS])
def test_the_four_newton_libraries_give_the_same_predictions(trainer, task, l2, growth):
    found = lowest(trainer, NEWTON, trainer.request(task, l2=l2, growth_strategy=growth, **ROUND))
    assert all(share >= 0.99 for share in found.values()), found


@pytest.mark.parametrize("growth", GrowthStrategy)
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_catboost_gives_the_same_predictions_for_squared_error(trainer, l2, growth):
    found = lowest(trainer, (*NEWTON, "catboost"), trainer.request(l2=l2, growth_strategy=growth, **ROUND))
    assert all(share >= 0.99 for share in found.values()), found


@pytest.mark.parametrize(
    ("library", "task", "parameter", "words"),
    [
        ("catboost", Task.MULTICLASS, "objective", "vector in each leaf"),
        ("catboost", Task.MULTICLASS, "base_score", "equal probabilities"),
        ("catboost", Task.BINARY, "objective", "gradients alone"),
        ("lightgbm", Task.BINARY, "growth_strategy", "not tried again below"),
    ],
)
def test_catboost_scores_by_gradients_and_lightgbm_drops_columns_and_the_table_says_so(
    trainer, library, task, parameter, words
):
    marks = {mark.parameter: mark for mark in RUNNERS[library].translate(trainer.request(task)).marks}
    assert marks[parameter].kind == "approximated"
    assert words in marks[parameter].reason


def test_catboost_multiclass_disagrees_because_of_its_vector_leaves_and_uniform_start(trainer):
    found = lowest(trainer, ("sklearn", "catboost"), trainer.request(Task.MULTICLASS, **ROUND))
    assert all(share < 0.5 for share in found.values()), "the marks of CatBoost's softmax are out of date"


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.BINARY, Task.MULTICLASS])
@pytest.mark.parametrize("change", [{"min_gain": 100.0}, {"min_child_weight": 120.0}, {"l2": 30.0}], ids=str)
def test_penalties_mean_the_same_in_boosters_and_xgboost(trainer, task, change):
    deep = {**ROUND, "l2": 0.0, "max_depth": 6}
    request = trainer.request(task, **{**deep, **change})
    found = lowest(trainer, ("boosters", "xgboost"), request)
    assert all(share >= 0.99 for share in found.values()), found
    plain = trainer.predict("boosters", trainer.request(task, **deep))
    assert agreement(plain, trainer.predict("boosters", request)) < 0.99


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.MULTICLASS])
def test_l1_means_the_same_in_xgboost_and_lightgbm_while_no_column_is_dropped(trainer, task):
    request = trainer.request(task, **{**ROUND, "l2": 0.0, "max_depth": 1, "l1": 20.0})
    found = lowest(trainer, ("xgboost", "lightgbm"), request)
    assert all(share >= 0.99 for share in found.values()), found


@pytest.mark.parametrize("rows", [1, 50])
def test_the_least_number_of_rows_in_a_leaf_is_exact_for_squared_error(trainer, rows):
    request = trainer.request(**{**ROUND, "l2": 0.0, "min_samples_leaf": rows, "max_depth": 6})
    found = lowest(trainer, NEWTON, request)
    assert all(share >= 0.99 for share in found.values()), found
    sizes = np.unique(trainer.predict("lightgbm", request), return_counts=True)[1]
    assert sizes.min() >= rows


def test_leaves_are_quantiles_by_either_of_two_definitions_and_marked_so(trainer):
    request = trainer.request(Task.QUANTILE, n_estimators=1, learning_rate=1.0, max_depth=3)
    picks, interpolates = ("boosters", "catboost"), ("lightgbm", "sklearn")
    predictions = {name: trainer.predict(name, request) for name in (*picks, *interpolates, "xgboost")}
    for pair in (picks, interpolates):
        assert agreement(*(predictions[name] for name in pair)) >= 0.99
    assert agreement(predictions["catboost"], predictions["sklearn"]) < 0.5
    assert np.median(np.abs(predictions["catboost"] - predictions["sklearn"])) < 0.02
    marks = {name: _objective(name, request) for name in predictions}
    assert all(mark.kind == "approximated" for mark in marks.values())
    apart = np.abs(predictions["xgboost"] - predictions["sklearn"]).max()
    assert (apart > 0.1) == ("several times as many rounds" in marks["xgboost"].reason)


def _objective(library, request):
    return next(mark for mark in RUNNERS[library].translate(request).marks if mark.parameter == "objective")


def test_lightgbm_disagrees_where_a_column_gains_nothing_at_first_because_it_is_not_tried_again(trainer):
    x = np.stack(np.meshgrid(range(8), range(8), range(8)), axis=-1).reshape(-1, 3).astype(np.float32)
    high = x >= 4
    # Below the split of column 2, column 1 helps only once column 0 is split too.
    y = 40.0 * high[:, 2] + 6.0 * high[:, 0] + 10.0 * (high[:, 0] ^ high[:, 1])
    request = trainer.request(**{**ROUND, "max_depth": 3, "l2": 1.0})
    mark = {mark.parameter: mark for mark in RUNNERS["lightgbm"].translate(request).marks}["growth_strategy"]
    assert mark.kind == "approximated"
    data = TrainData(x=x, y=y)
    errors = {name: np.ptp(y - trainer.predict(name, request, data, x)) for name in ("sklearn", "xgboost", "lightgbm")}
    assert errors["sklearn"] < 2
    assert errors["xgboost"] < 2
    assert errors["lightgbm"] > 8, "the mark of LightGBM's growth is out of date"


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.BINARY])
def test_boosted_linear_models_agree_to_five_digits(trainer, task):
    request = trainer.request(task, booster_type=BoosterType.GBLINEAR, n_estimators=10, l1=0.01, l2=0.1)
    scaled = trainer.x / 64
    data = trainer.data(request)
    data = type(data)(x=scaled, y=data.y)
    first, second = (trainer.predict(name, request, data, scaled) for name in ("boosters", "xgboost"))
    assert np.abs(first - second).max() < 1e-5


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", [Task.REGRESSION, Task.QUANTILE, Task.BINARY])
def test_lightgbm_counts_the_rows_of_a_leaf_only_where_their_hessians_are_one(trainer, task, weighted):
    request = trainer.request(
        task, n_estimators=5, learning_rate=0.3, max_depth=8, l2=0.0, min_samples_leaf=30, weighted=weighted
    )
    _, translation, model = trainer.fit("lightgbm", request)
    leaves = model[0].predict(trainer.x, pred_leaf=True)
    smallest = min(np.unique(tree, return_counts=True)[1].min() for tree in leaves.T)
    mark = {mark.parameter: mark.kind for mark in translation.marks}["min_samples_leaf"]
    assert (smallest >= 30) == (mark == "exact")


def test_weights_below_one_are_held_against_the_fixed_least_hessian_of_scikit_learn(trainer):
    for weighted, kind in ((False, "exact"), (True, "unsupported")):
        marks = RUNNERS["sklearn"].translate(trainer.request(min_child_weight=1.0, weighted=weighted)).marks
        assert {mark.parameter: mark.kind for mark in marks}["min_child_weight"] == kind


def test_linear_quantiles_need_many_rounds_in_boosters_which_is_marked_and_are_refused_in_xgboost(trainer):
    x = np.random.default_rng(0).standard_normal((1_000, 3)).astype(np.float32)
    y = 2 * x.sum(axis=1) + np.random.default_rng(1).standard_normal(1_000)
    below = []
    for rounds in (100, 1_000):
        request = trainer.request(Task.QUANTILE, booster_type=BoosterType.GBLINEAR, n_estimators=rounds, l2=0.0)
        below.append(np.mean(y < trainer.predict("boosters", request, TrainData(x=x, y=y), x)[:, 0]))
    assert below[0] < 0.07, "the mark of boosters' linear quantiles is out of date"
    assert below[1] == pytest.approx(0.1, abs=0.01)
    assert "several times the rounds" in _objective("boosters", request).reason
    assert "learn nothing" in RUNNERS["xgboost"].unsupported(request)
