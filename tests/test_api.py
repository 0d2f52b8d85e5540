"""A wrong argument in Python gets the usual sentence: what it must be, and what it was. Options are for the shell."""

import inspect
import math

import pytest

import boosters_eval as be
import factories
import tiny
from boosters_eval import ConfigError, RunError, TrainingConfig
from boosters_eval.metrics import get
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import check_request

RUN = factories.collection(factories.grid(lambda *_: 0.5))
AUTO = {"datasets": "iris", "libraries": "sklearn", "seeds": "auto"}
WRONG = {
    "max_seeds": lambda bad: be.prepare_comparison(**AUTO, max_seeds=bad),
    "budget": lambda bad: be.prepare_comparison(**AUTO, budget=bad),
    "datasets": be.prepare_comparison,
    "libraries": lambda bad: be.prepare_suite("quick", 1, bad),
    "booster": lambda bad: be.prepare_comparison("iris", "sklearn", bad),
    "training": lambda bad: be.prepare_comparison("iris", "sklearn", training=bad),
    "variants": lambda bad: be.prepare_comparison("iris", "sklearn", variants=bad),
    "metrics": lambda bad: be.prepare_comparison("iris", "sklearn", metrics=[bad]),
    "suite": be.run_suite,
    "reference": be.load_run,
    "home": lambda bad: be.load_run(home=bad),
    "path": be.load_results,
    "prepared": be.run_prepared,
    "config": be.register_dataset,
    "dataset": lambda bad: be.create_ablation_suite("a", bad, "sklearn", {"b": TrainingConfig()}),
    "name": get,
    "metric": RUN.best,
    "alpha": lambda bad: RUN.best("rmse", [bad]),
    "library_a": lambda bad: RUN.is_significant(bad, "xgboost", "rmse"),
    "library": RUN.filter,
    "group_by": RUN.summary,
    "text": be.ResultCollection.from_json,
    "results": be.ResultCollection,
    "tolerance": lambda bad: be.is_regression(0.5, 0.5, [bad], True),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("bad", [True, object()], ids=["bool", "object"])
def test_an_argument_of_the_wrong_type_is_told_by_its_name(name, bad):
    with pytest.raises(ConfigError, match=rf"^The '{name}' parameter(?: of \w+)? must .*\. Got .* instead\.$"):
        WRONG[name](bad)


def test_verification_tells_it_too():
    with pytest.raises(ConfigError, match="The 'reference' parameter must be a run's id"):
        list(be.verify_run(3))


@pytest.mark.parametrize("most", [1, 10_001, 10**30])
def test_the_most_seeds_are_as_many_as_a_run_can_have(most):
    with pytest.raises(ConfigError, match="'max_seeds' parameter must be a count from 2 to 10000"):
        be.prepare_comparison(**AUTO, max_seeds=most)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"budget": "5m"}, "The 'budget' parameter needs seeds='auto'."),
        ({"resume": True, "rerun_failed": True}, "Use either 'resume' or 'rerun_failed', not both."),
        ({"seeds": 2, "cv": 3}, "Use either 'cv' or 'seeds', not both"),
        ({"seeds": [1]}, "The 'seeds' parameter must be a count from 1 to 10000, or auto. Got [1] instead."),
    ],
)
def test_python_is_told_of_parameters_not_of_options(arguments, told):
    with pytest.raises(ConfigError) as caught:
        be.prepare_comparison("iris", "sklearn", **arguments)
    assert told in str(caught.value)
    assert "--" not in str(caught.value)


def test_a_report_without_formats_names_the_parameter():
    with pytest.raises(ConfigError, match="The 'formats' parameter must name at least one of"):
        check_request("quality", [], "corrected")


def test_a_misspelt_booster_is_not_an_empty_collection():
    with pytest.raises(be.UnknownNameError, match="Unknown booster 'gbtd'"):
        RUN.filter(booster="gbtd")


@pytest.mark.parametrize("lower_is_better", [True, False])
@pytest.mark.parametrize("values", [(math.nan, 0.5, 0.02), (0.5, math.nan, 0.02), (0.5, 0.5, math.nan)], ids=str)
def test_what_is_not_a_number_is_a_regression(values, lower_is_better):
    assert be.is_regression(*values, lower_is_better)
    assert not be.is_regression(0.5, 0.5, 0.0, lower_is_better)


@pytest.mark.parametrize("name", [3, ["sklearn"], None], ids=str)
def test_what_is_no_name_is_unknown_to_a_registry(name):
    with pytest.raises(be.UnknownNameError, match="Unknown library"):
        be.RUNNERS[name]
    with pytest.raises(ConfigError, match="'name' parameter must be the name of the library"):
        be.RUNNERS.register(name, be.RUNNERS["sklearn"])


def failing(faulty, **variants):
    chosen = {name: TrainingConfig(max_depth=faulty.BY_NAME[fault]) for name, fault in variants.items()}
    return be.compare("diabetes", "faulty", seeds=1, variants=chosen, executor=tiny.shared_pool())


def test_a_comparison_in_which_every_cell_failed_raises_with_the_first_failure_and_the_run(faulty):
    with pytest.raises(
        RunError, match=r"^The only cell of run (\w+) failed; load_run\('\1'\) has them\. faulty on diab"
    ):
        failing(faulty, bad="nan")


def test_a_comparison_in_which_some_failed_warns_with_their_number(faulty):
    with pytest.warns(be.BoostersEvalWarning, match=r"^1 of 2 cells failed, .* The first: faulty on diabetes/gbdt-bad"):
        done = failing(faulty, good="none", bad="nan")
    assert (len(done.results), len(done.errors)) == (1, 1)


def test_aliases_of_metrics_resolve():
    run = factories.collection(factories.grid(lambda *_: 0.5, metric="logloss"))
    assert run.best("log_loss")["metric"].item() == "logloss"
    assert run.is_significant("boosters", "xgboost", "binary_logloss") == run.is_significant(
        "boosters", "xgboost", "logloss"
    )
    (table,) = build_tables(run, metrics=["log_loss"], times=False).tables
    assert [column.name for column in table.columns] == ["logloss"]


def test_a_plan_is_carried_out_as_what_it_is(home):
    fits = be.prepare_comparison("iris", "sklearn", seeds=1, home=home)
    with pytest.raises(ConfigError, match=r"The 'prepared' parameter must be what prepare_importances\(\) gives"):
        be.run_importances(fits)
    explained = be.prepare_importances("iris", "sklearn", seeds=1, home=home)
    with pytest.raises(ConfigError, match=r"must be what prepare_comparison\(\) or prepare_suite\(\) gives"):
        be.run_prepared(explained)
    assert not (home / "runs").exists()


@pytest.mark.parametrize("name", ["dry_run", "seeds", "metrics", "quiet", "jobbs"])
def test_what_was_planned_cannot_be_changed_by_running_it(home, name):
    prepared = be.prepare_comparison("iris", "sklearn", seeds=1, home=home)
    with pytest.raises(ConfigError, match=rf"^run_prepared\(\) has no parameter '{name}'\."):
        be.run_prepared(prepared, **{name: True})


def test_functions_that_prepare_have_names_and_signatures_of_their_own(home):
    assert be.prepare_comparison.__name__ == "prepare_comparison"
    assert inspect.signature(be.prepare_suite).return_annotation == "PreparedRun"
    assert list(inspect.signature(be.prepare_suite).parameters) == list(inspect.signature(be.run_suite).parameters)
    with pytest.raises(ConfigError, match=r"^prepare_comparison\(\) has no parameter 'sedes'\. Did you mean 'seeds'"):
        be.prepare_comparison("iris", sedes=3)


def test_a_folder_that_is_gone_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ConfigError, match="The current folder does not exist any more: change to another one"):
        be.compare("iris", "sklearn")
