"""Weights, missing values, categories, and rows to stop early on."""

from dataclasses import replace

import numpy as np
import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, TrainData
from boosters_eval.runners.parameters import BoosterType, Profile

LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")


def with_categories(trainer, seed=3):
    """Codes with gaps, the largest seen in training only, one seen in prediction only, some missing."""
    rng = np.random.default_rng(seed)
    codes = rng.choice([1, 2, 4, 7, 9, 11], len(trainer.x))
    x = trainer.x.copy()
    x[:, 5] = codes
    effects = rng.normal(size=12) * 4
    y = trainer.score + effects[codes]
    x[::10, 5] = np.nan
    return x, y


@pytest.mark.parametrize("library", LIBRARIES)
def test_categories_are_learnt_though_their_codes_have_gaps(trainer, library):
    x, y = with_categories(trainer)
    request = trainer.request(n_estimators=40, categorical=(5,), has_missing=True)
    data = TrainData(x=x[:1_500], y=y[:1_500])
    x_test = x[1_500:].copy()
    known = ~np.isnan(x_test[:, 5])
    predictions = trainer.predict(library, request, data, x_test)
    assert np.sqrt(np.mean((predictions - y[1_500:])[known] ** 2)) < 0.35 * y.std()
    x_test[:, 5] = 40  # never seen
    assert np.isfinite(trainer.predict(library, request, data, x_test)).all()


OWN_CATEGORIES = {  # what each library documents as its defaults
    "boosters": {"max_onehot_cats": 4},
    "xgboost": {"max_cat_to_onehot": 4, "max_cat_threshold": 64},
    "lightgbm": {
        "max_cat_to_onehot": 4,
        "max_cat_threshold": 32,
        "cat_l2": 10.0,
        "cat_smooth": 10.0,
        "min_data_per_group": 100,
    },
    "catboost": {"one_hot_max_size": 2},
    "sklearn": {},
}
CATEGORIES = {
    "two": lambda rng, rows: rng.integers(0, 2, rows),
    "few": lambda rng, rows: rng.integers(0, 4, rows),
    "many": lambda rng, rows: rng.integers(0, 40, rows),
    "rare": lambda rng, rows: np.minimum(rng.geometric(0.3, rows), 12) - 1,
    "missing": lambda rng, rows: np.where(rng.random(rows) < 0.3, np.nan, rng.integers(0, 6, rows)),
    "near-unique": lambda rng, rows: rng.permutation(250)[rng.integers(0, 250, rows)],
}


@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_categories_are_treated_as_the_library_would_by_itself(trainer, library, kind):
    runner, rows = RUNNERS[library], 400
    for seed in range(3 if library in ("catboost", "sklearn") else 20):  # these two take their time
        rng = np.random.default_rng(seed)
        x = np.column_stack([CATEGORIES[kind](rng, rows), rng.normal(size=rows)]).astype(np.float32)
        y = x[:, 1] + np.nan_to_num(x[:, 0]) % 3 + rng.normal(size=rows)
        request = trainer.request(
            n_estimators=10, categorical=(0,), has_missing=kind == "missing", max_categories=len(np.unique(x[:, 0]))
        )
        translation = runner.translate(request)
        assert not OWN_CATEGORIES[library].keys() & translation.native.keys()
        assert {mark.parameter: mark.kind for mark in translation.marks}["categorical"] == "own"
        own = replace(translation, native=translation.native | OWN_CATEGORIES[library])
        models = [runner.fit(it, runner.build(it, TrainData(x=x, y=y))) for it in (translation, own)]
        assert np.array_equal(*(runner.predict(translation, model, x) for model in models))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_weight_of_zero_takes_a_row_out(trainer, library):
    request = trainer.request(n_estimators=5, max_depth=3, l2=0.0, weighted=True)
    half = len(trainer.x) // 2
    weights = np.r_[np.ones(half), np.zeros(half)]
    y = np.r_[trainer.score[:half], trainer.score[half:] + 50]
    predictions = trainer.predict(library, request, TrainData(x=trainer.x, y=y, weights=weights))
    assert np.abs(predictions).max() < 20


def test_weights_of_rows_are_refused_in_the_ranking_of_xgboost_and_catboost(trainer):
    request = trainer.request(Task.RANKING, weighted=True)
    for library in ("xgboost", "catboost"):
        assert "queries" in RUNNERS[library].unsupported(request)
    assert RUNNERS["lightgbm"].unsupported(request) is None


FAST = {"learning_rate": 0.6, "max_depth": 3}  # few and small trees until no round helps any more


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("task", [Task.REGRESSION, Task.MULTICLASS])
def test_early_stopping_keeps_the_best_rounds_or_is_marked(trainer, library, task):
    request = trainer.request(task, n_estimators=400, early_stopping_rounds=5, **FAST)
    data = trainer.data(request, slice(600), slice(600, 1_200))
    runner, translation, model = trainer.fit(library, request, data)
    marks = {mark.parameter: mark.kind for mark in translation.marks}
    outputs = 4 if task is Task.MULTICLASS and library != "catboost" else 1
    rounds = runner.inspect(model).n_trees / outputs
    assert rounds < 400
    # All of the rounds of the model are used: a model of exactly so many rounds gives the same predictions.
    plain = trainer.request(task, n_estimators=int(rounds), **FAST)
    same = trainer.predict(library, plain, trainer.data(plain, slice(600)))
    assert np.allclose(runner.predict(translation, model, trainer.x), same, atol=1e-6)
    best = _best_round(trainer, library, task, int(rounds))
    assert (marks["early_stopping_rounds"] == "exact") == (best == rounds)


def _best_round(trainer, library, task, rounds):
    """The first round, up to two later than asked for, with the least loss on the rows that were held out."""
    y = trainer.labels[task][600:1_200]
    losses = []
    for count in range(max(1, rounds - 6), rounds + 3):
        request = trainer.request(task, n_estimators=count, **FAST)
        predictions = trainer.predict(library, request, trainer.data(request, slice(600)), trainer.x[600:1_200])
        if task is Task.MULTICLASS:
            losses.append((-np.log(predictions[np.arange(600), y.astype(int)]).mean(), count))
        else:
            losses.append((np.mean((predictions - y) ** 2), count))
    return min(losses)[1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_early_stopping_without_rows_to_stop_on_is_one_sentence(trainer, library):
    with pytest.raises(ConfigError, match="'early_stopping_rounds' parameter needs validation rows"):
        trainer.fit(library, trainer.request(early_stopping_rounds=5))


def test_a_linear_model_of_xgboost_that_stops_early_is_marked_for_keeping_its_rounds(trainer):
    request = trainer.request(booster_type=BoosterType.GBLINEAR, early_stopping_rounds=3, n_estimators=50)
    marks = {mark.parameter: mark for mark in RUNNERS["xgboost"].translate(request).marks}
    assert "keeps the rounds" in marks["early_stopping_rounds"].reason
    data = trainer.data(request, slice(600), slice(600, 900))
    assert np.isfinite(trainer.predict("xgboost", request, data)).all()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_queries_need_not_have_the_same_size(trainer, library):
    request = trainer.request(Task.RANKING, n_estimators=5)
    sizes = np.tile([1, 7, 12], 150)
    groups = np.repeat(np.arange(450), sizes)
    data = replace(trainer.data(request), groups=groups)
    scores = trainer.predict(library, request, data)
    assert np.corrcoef(scores, trainer.score)[0, 1] > 0.5


@pytest.mark.parametrize(
    ("library", "rounds"),
    [("boosters", 100), ("xgboost", 100), ("lightgbm", 100), ("catboost", 1_000), ("sklearn", 100)],
)
def test_as_it_comes_a_library_has_its_own_number_of_rounds(trainer, library, rounds):
    request = trainer.request(n_estimators=3, max_depth=1, profile=Profile.DEFAULTS)
    translation = RUNNERS[library].translate(request)
    assert translation.marks == ()
    assert trainer.facts(library, request, trainer.data(request, slice(300))).n_trees == rounds


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_that_is_mostly_zero_is_learnt_like_any_other(trainer, library):
    x = trainer.x.copy()
    x[:, 5] = np.arange(len(x)) % 20 == 0
    y = trainer.score + 10 * x[:, 5]
    predictions = trainer.predict(library, trainer.request(n_estimators=60), TrainData(x=x, y=y), x)
    assert np.sqrt(np.mean((predictions - y) ** 2)) < 0.6


@pytest.mark.parametrize(
    ("library", "bins", "most", "missing", "refused"),
    [
        ("boosters", 256, 256, False, False),
        ("boosters", 256, 256, True, True),
        ("boosters", 256, 257, False, True),
        ("boosters", 1_000, 300, True, False),
        ("sklearn", 64, 64, False, False),
        ("sklearn", 64, 65, False, True),
        ("sklearn", 1_000, 256, False, True),
    ],
)
def test_more_categories_than_a_library_can_hold_are_refused(trainer, library, bins, most, missing, refused):
    request = trainer.request(
        categorical=(5,), max_categories=most, has_missing=missing, max_bins=bins, n_estimators=50
    )
    assert (RUNNERS[library].unsupported(request) is not None) == refused
    if refused:
        return
    rng = np.random.default_rng(0)
    x = trainer.x.copy()
    x[:, 5] = np.arange(len(x)) % most
    y = 5 * rng.standard_normal(most)[x[:, 5].astype(int)]
    predictions = trainer.predict(library, request, TrainData(x=x, y=y), x)
    assert np.mean((predictions - y) ** 2) < 0.05 * y.var()


def test_as_it_comes_scikit_learn_holds_255_categories(trainer):
    for most, refused in ((255, False), (256, True)):
        request = trainer.request(categorical=(5,), max_categories=most, max_bins=2, profile=Profile.DEFAULTS)
        assert (RUNNERS["sklearn"].unsupported(request) is not None) == refused


@pytest.mark.parametrize("library", LIBRARIES)
def test_catboost_sends_missing_values_with_the_smallest_the_others_where_they_belong(trainer, library):
    request = trainer.request(n_estimators=1, learning_rate=1.0, max_depth=1, l2=0.0, has_missing=True)
    x = trainer.x.copy()
    y = (x[:, 0] > 31).astype(np.float64)
    x[::5, 0] = np.nan
    y[::5] = 1
    predictions = trainer.predict(library, request, TrainData(x=x, y=y), x)
    marks = {mark.parameter: mark.reason for mark in RUNNERS[library].translate(request).marks}
    assert (np.abs(predictions - y).max() < 1e-5) == ("smallest" not in marks["missing"]) == (library != "catboost")


@pytest.mark.parametrize("absent", [0, 2, 3])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_class_that_no_training_row_has_keeps_its_column(trainer, library, absent, capfd):
    request = trainer.request(Task.MULTICLASS, n_estimators=3)
    y = trainer.labels[Task.MULTICLASS]
    predictions = trainer.predict(library, request, TrainData(x=trainer.x[y != absent], y=y[y != absent]))
    assert predictions.shape == (len(trainer.x), 4)
    assert predictions[:, absent].max() < 0.01
    assert np.mean(predictions.argmax(axis=1) == y) > 0.4
    assert capfd.readouterr() == ("", "")
