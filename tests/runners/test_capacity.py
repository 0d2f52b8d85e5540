"""What was really built: leaves are counted in the trained models, and every parameter has an effect or a mark."""

import json

import numpy as np
import pytest

from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.parameters import GrowthStrategy

LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
TASKS = {Task.REGRESSION: 1, Task.BINARY: 1, Task.MULTICLASS: 4, Task.QUANTILE: 3}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_depthwise_trees_have_at_most_two_to_the_depth_leaves(trainer, library, task):
    request = trainer.request(task, n_estimators=3, max_depth=3, n_leaves=2)
    facts = trainer.facts(library, request)
    outputs = 1 if (library, task) == ("catboost", Task.MULTICLASS) else TASKS[task]
    assert facts.n_trees == 3 * outputs
    assert 6 * outputs < facts.n_leaves <= 3 * outputs * 2**3  # and n_leaves=2 does not bind


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_leafwise_trees_have_at_most_n_leaves_whatever_their_depth(trainer, library, task):
    request = trainer.request(task, n_estimators=3, n_leaves=9, max_depth=1, growth_strategy=GrowthStrategy.LEAFWISE)
    facts = trainer.facts(library, request)
    outputs = 1 if (library, task) == ("catboost", Task.MULTICLASS) else TASKS[task]
    assert 6 * outputs < facts.n_leaves <= 3 * outputs * 9  # and max_depth=1 does not bind


@pytest.mark.parametrize("growth", GrowthStrategy)
def test_all_libraries_have_the_same_budget_of_leaves(trainer, growth):
    request = trainer.request(n_estimators=3, max_depth=4, n_leaves=13, growth_strategy=growth)
    here = [name for name in LIBRARIES if RUNNERS[name].missing() is None]
    budget = 3 * (16 if growth is GrowthStrategy.DEPTHWISE else 13)
    assert {name: trainer.facts(name, request).n_leaves for name in here} == dict.fromkeys(here, budget)


def test_leaves_of_one_row_count_too(trainer):
    request = trainer.request(n_estimators=1, max_depth=16, min_child_weight=0.0, l2=0.0)
    data = trainer.data(request, slice(300))
    exact = len(np.unique(trainer.x[:300], axis=0))
    counts = {name: trainer.facts(name, request, data).n_leaves for name in ("boosters", "xgboost", "sklearn")}
    assert counts == dict.fromkeys(counts, exact)


CHANGES = {
    "n_estimators": 7,
    "learning_rate": 0.2,
    "max_depth": 2,
    "n_leaves": 5,
    "growth_strategy": GrowthStrategy.LEAFWISE,
    "min_samples_leaf": 150,
    "min_child_weight": 150.0,
    "l1": 30.0,
    "l2": 50.0,
    "min_gain": 100.0,
    "max_bins": 8,
    "subsample": 0.5,
    "colsample": 0.4,
}


@pytest.mark.parametrize("parameter", CHANGES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_parameter_changes_the_model_or_is_marked(trainer, library, parameter):
    leafwise = parameter == "n_leaves"
    base = {"n_estimators": 5, "max_depth": 5, "n_leaves": 20}
    base |= {"growth_strategy": GrowthStrategy.LEAFWISE} if leafwise else {}
    plain, changed = trainer.request(**base), trainer.request(**{**base, parameter: CHANGES[parameter]})
    marks = {mark.parameter: mark.kind for mark in RUNNERS[library].translate(changed).marks}
    differs = not np.array_equal(trainer.predict(library, plain), trainer.predict(library, changed))
    assert differs == (marks[parameter] != "unsupported")


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_seed_changes_the_model_when_rows_are_sampled(trainer, library):
    requests = [trainer.request(n_estimators=5, subsample=0.5, seed=seed) for seed in (1, 2)]
    marks = {mark.parameter: mark.kind for mark in RUNNERS[library].translate(requests[0]).marks}
    first, second = (trainer.predict(library, request) for request in requests)
    assert np.array_equal(first, second) == (marks["subsample"] == "unsupported")


def test_column_sampling_in_boosters_is_called_nondeterministic(trainer):
    runner = RUNNERS["boosters"]
    assert "ignores the seed" in runner.translate(trainer.request(colsample=0.5)).nondeterministic
    assert runner.translate(trainer.request(subsample=0.5)).nondeterministic is None


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_model_has_a_size(trainer, library):
    runner, _, small = trainer.fit(library, trainer.request(n_estimators=2))
    _, _, large = trainer.fit(library, trainer.request(n_estimators=20))
    assert 0 < runner.inspect(small).n_bytes < runner.inspect(large).n_bytes


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.MULTICLASS])
def test_the_leaves_of_xgboost_are_those_of_its_text(trainer, task):
    runner, _, model = trainer.fit("xgboost", trainer.request(task=task, min_gain=0.5, n_estimators=20))
    trees = model.get_dump()
    facts = runner.inspect(model)
    assert (facts.n_trees, facts.n_leaves) == (len(trees), sum(tree.count("leaf=") for tree in trees))


def test_pruned_nodes_of_xgboost_are_no_leaves():
    xgboost = pytest.importorskip("xgboost")
    x = np.random.default_rng(1).normal(size=(500, 4))
    data = xgboost.DMatrix(x, label=x[:, 0] * x[:, 1])
    model = xgboost.train({"tree_method": "exact", "gamma": 20, "max_depth": 8}, data, 5)
    facts = RUNNERS["xgboost"].inspect(model)
    assert b"num_deletedSL" in model.save_raw("ubj")
    assert facts.n_leaves == sum(tree.count("leaf=") for tree in model.get_dump())


def test_the_leaves_of_boosters_are_those_of_its_json(trainer):
    runner, _, model = trainer.fit("boosters", trainer.request(n_estimators=20))
    trees = json.loads(model[0].to_json_bytes())["model"]["forest"]["trees"]
    facts = runner.inspect(model)
    assert (facts.n_trees, facts.n_leaves) == (len(trees), sum((tree["num_nodes"] + 1) // 2 for tree in trees))
