"""The parameters of a project: passed as they are spelt, on the tasks that they are for."""

import pytest

from boosters_eval import check_upgrade
from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.programs.upgrade.project import find_tasks, read_project
from boosters_eval.programs.upgrade.request import UpgradeRequest


def read(library, **params):
    return read_project(UpgradeRequest(library=library, old="1", new="2", params=params), library)


def test_parameters_are_passed_as_they_are_spelt_so_that_a_rename_shows():
    project = read("xgboost", reg_lambda=2.0, learning_rate=0.1, n_estimators=7)
    assert project.native == {"reg_lambda": 2.0, "learning_rate": 0.1, "num_boost_round": 7}


def test_what_is_each_cells_own_is_left_out_with_a_note():
    project = read("catboost", verbose=False, thread_count=4, random_state=1, classes_count=7, depth=3)
    assert project.native == {"depth": 3}
    (note,) = project.notes
    assert all(f"'{name}'" in note for name in ("verbose", "thread_count", "random_state", "classes_count"))


def test_early_stopping_gets_rows_to_watch_but_where_a_library_holds_out_its_own():
    project = read("lightgbm", early_stopping_round=5, max_depth=3)
    assert (project.native, project.stopping) == ({"max_depth": 3}, 5)
    assert read("sklearn", early_stopping=True).native == {"early_stopping": True}
    with pytest.raises(ConfigError, match="must stop early after a count of rounds"):
        read("xgboost", early_stopping_rounds="soon")


def test_labels_are_asked_for_as_probabilities():
    assert read("xgboost", objective="multi:softmax").native == {"objective": "multi:softprob"}


def test_values_that_no_file_can_have_are_refused():
    with pytest.raises(ConfigError, match="must have values that JSON has"):
        read("xgboost", objective=print)


@pytest.mark.parametrize(
    ("objective", "tasks"),
    [
        ("", set(Task)),
        ("a function of its own", set(Task)),
        ("reg:squarederror", {Task.REGRESSION}),
        ("count:poisson", {Task.REGRESSION}),
        ("quantile", {Task.REGRESSION}),
        ("Quantile:alpha=0.9", {Task.REGRESSION}),
        ("binary:logistic", {Task.BINARY}),
        ("Logloss", {Task.BINARY}),
        ("log_loss", {Task.BINARY, Task.MULTICLASS}),
        ("reg:logistic", {Task.BINARY, Task.REGRESSION}),
        ("multi:softprob", {Task.MULTICLASS}),
        ("MultiClassOneVsAll", {Task.MULTICLASS}),
        ("lambdarank", {Task.RANKING}),
        ("QueryRMSE", {Task.RANKING}),
        ("YetiRank", {Task.RANKING}),
    ],
)
def test_an_objective_tells_its_tasks(objective, tasks):
    assert find_tasks(objective) == tasks


def test_an_objective_that_the_data_are_not_for_is_refused():
    with pytest.raises(ConfigError, match="'binary' is for binary, and iris is taken for multiclass"):
        check_upgrade("lightgbm", "installed", "installed", params={"objective": "binary"}, datasets="iris")


@pytest.mark.parametrize(
    ("library", "data", "params"),
    [
        ("xgboost", "diabetes", {"tree_method": "exact", "max_depth": 3}),
        ("xgboost", "diabetes", {"booster": "gblinear"}),
        ("xgboost", "diabetes", {"booster": "dart", "rate_drop": 0.2}),
        ("xgboost", "breast_cancer", {"objective": "binary:logistic", "early_stopping_rounds": 3}),
        ("lightgbm", "diabetes", {"objective": "quantile", "alpha": 0.9}),
        ("lightgbm", "diabetes", {"objective": "huber", "alpha": 0.8, "early_stopping_round": 3}),
        ("catboost", "diabetes", {"objective": "Quantile:alpha=0.9", "verbose": False, "early_stopping_rounds": 3}),
        ("sklearn", "diabetes", {"loss": "quantile", "quantile": 0.9}),
    ],
)
def test_what_projects_pass_can_be_checked(home, kept_pool, library, data, params):
    few = {name: 5 for name in ("n_estimators",) if library != "sklearn"}
    found = check_upgrade(
        library, "installed", "installed", params={**params, **few}, datasets=data, seeds=2, home=home
    )
    assert [(cell.state, cell.reason) for cell in found.cells] == [("identical", "")]
    assert {model.state for model in found.models} <= {"identical"}
