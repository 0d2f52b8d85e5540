"""The page of deviations is made from its data, and every deviation from a specification has a test that shows it."""

import dataclasses
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

import boosters_eval
import factories
from boosters_eval import (
    QUICK_SUITE,
    RUNNERS,
    BenchmarkError,
    MetricStats,
    ResultCollection,
    Task,
    TrainingConfig,
    is_regression,
    load_baseline,
)
from boosters_eval.engine.limits import make_environment
from boosters_eval.programs.gate.request import GateRequest
from boosters_eval.programs.paper.evaluate import Evaluate
from boosters_eval.programs.paper.lm import RetrievalArguments
from boosters_eval.programs.paper.tolerances import GUIDELINES, find_tolerance
from boosters_eval.programs.parity.method import METHODS
from boosters_eval.programs.parity.request import ParityRequest
from boosters_eval.programs.parity.run import SWEEP
from boosters_eval.runners.base import FitRequest, Runner
from boosters_eval.stats import bootstrap
from proofs import PROOF, ROOT, find_unproven

MADE = runpy.run_path(str(ROOT / "scripts" / "make_deviations.py"))
SPECIFICATIONS = ["RFC-0015", "RFC-0003", "S3-05", "Validator", "Methodology"]
LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")


def native(library, task=Task.REGRESSION, **parameters):
    """What a library is passed."""
    return RUNNERS[library].translate(FitRequest(task, TrainingConfig(**parameters))).native


def test_the_page_is_made_from_the_data():
    assert MADE["PAGE"].read_text(encoding="utf-8") == MADE["page"](), "run scripts/make_deviations.py"


def test_every_specification_has_a_section_with_deviations():
    page = MADE["page"]()
    assert [each["specification"] for each in MADE["load"]()] == SPECIFICATIONS
    assert [line.split(":")[0] for line in page.splitlines() if line.startswith("## ")] == [
        f"## {name}" for name in SPECIFICATIONS
    ]
    assert all(each["deviations"] for each in MADE["load"]())


def test_every_deviation_says_all_and_nothing_twice():
    every = [each for specification in MADE["load"]() for each in specification["deviations"]]
    for each in every:
        assert tuple(each) == MADE["COLUMNS"]
        assert all(isinstance(text, str) and text.strip() == text != "" for text in each.values()), each
    assert len({each["says"] for each in every}) == len(every)


def test_every_proof_exists_and_is_a_test_that_runs():
    page = MADE["page"]()
    assert len(PROOF.findall(page)) == sum(len(each["deviations"]) for each in MADE["load"]())
    assert find_unproven(page, deselected=False) == []


# What no other test shows.


def test_a_config_asks_for_no_more_than_all_libraries_can_do():
    training = TrainingConfig()
    assert (training.min_samples_leaf, training.min_child_weight, training.min_gain) == (1, 0.001, 0.0)
    assert training.max_bins == 255


def test_xgboost_counts_rows_only_where_each_has_a_hessian_of_one():
    def mark(task):
        marks = RUNNERS["xgboost"].translate(FitRequest(task, TrainingConfig(min_samples_leaf=20))).marks
        return next(mark.kind for mark in marks if mark.parameter == "min_samples_leaf")

    assert (mark(Task.REGRESSION), mark(Task.BINARY)) == ("exact", "unsupported")
    assert native("xgboost", min_samples_leaf=20)["min_child_weight"] == 20
    assert native("xgboost", Task.BINARY, min_samples_leaf=20)["min_child_weight"] < 1


def test_lightgbm_and_catboost_grow_depth_wise_by_what_they_have():
    passed = native("lightgbm", max_depth=3)
    assert (passed["max_depth"], passed["num_leaves"], passed["boosting"]) == (3, 8, "gbdt")
    assert native("catboost", max_depth=3)["grow_policy"] == "Depthwise"


def test_boosters_is_used_as_it_was_released():
    assert native("boosters")["objective"] == "squared"
    assert not RUNNERS["boosters"].supports(factories.config(factories.dataset(task=Task.RANKING)))


def test_libraries_stop_early_by_their_own_loss():
    for library in LIBRARIES:
        passed = native(library, early_stopping_rounds=3)
        assert not {"metric", "eval_metric", "custom_metric", "feval"} & passed.keys()
        assert passed.get("scoring", "loss") == "loss"


def test_the_quick_suite_has_all_libraries():
    assert {config.libraries for config in QUICK_SUITE.configs} == {LIBRARIES}
    assert [config.name for config in QUICK_SUITE.configs] == ["california/gbdt", "breast_cancer/gbdt"]


def test_metrics_need_no_scikit_learn():
    code = (
        "import sys; from boosters_eval.metrics import compute_metrics;"
        "compute_metrics('binary', [0, 1, 1], [0.2, 0.7, 0.6]); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_markdown_has_no_list_of_run_times():
    assert "Runtime Statistics" not in factories.collection().to_markdown()


def test_json_has_its_metadata_unless_asked_otherwise():
    assert inspect.signature(ResultCollection.to_json).parameters["include_metadata"].default is True


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_an_unchanged_negative_score_is_no_regression(lower_is_better):
    assert not is_regression(-1.0, -1.0, 0.02, lower_is_better)
    assert is_regression(-1.0, -0.9 if lower_is_better else -1.1, 0.02, lower_is_better)


def test_no_library_under_test_is_a_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not any(each.startswith(("boosters", "xgboost", "lightgbm", "catboost")) for each in project["dependencies"])
    assert {"boosters", "xgboost", "lightgbm", "catboost", "all"} <= project["optional-dependencies"].keys()


def test_configs_and_results_are_frozen_models():
    for one in (TrainingConfig(), factories.config(), factories.result(), factories.error()):
        assert not dataclasses.is_dataclass(one)
        with pytest.raises(ValidationError, match="frozen"):
            one.library = "other"
    with pytest.raises(ValidationError, match="colour"):
        BenchmarkError(**factories.error().model_dump(), colour="blue")


def test_a_runner_inherits_what_the_rfc_lets_it_write():
    assert {"unsupported", "translate", "build", "fit", "predict"} <= Runner.__abstractmethods__
    for library in LIBRARIES:
        assert RUNNERS[library].run.__func__ is Runner.run.__func__
        assert RUNNERS[library].supports.__func__ is Runner.supports.__func__


def test_what_measures_and_renders_is_not_public():
    for name in ("measure_timing", "measure_memory", "run_benchmark", "render_report_template", "ReportMetadata"):
        assert not hasattr(boosters_eval, name)


def test_the_modules_of_the_rfc_are_packages():
    for name in ("config", "suite", "results", "baseline", "datasets.synthetic", "tests"):
        assert find_spec(f"boosters_eval.{name}") is None


def test_the_command_line_is_made_from_the_declarations_of_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {re.match(r"\w+", each)[0] for each in project["dependencies"]} & {"click", "typer"} == {"click"}
    of_python = inspect.signature(boosters_eval.decide_gate).parameters
    assert {"run", "baseline", "threshold"} <= of_python.keys() & GateRequest.parameters.keys()


def test_baselines_are_where_the_shortcuts_look():
    assert {path.stem for path in (ROOT / "tests" / "baselines").glob("*.json")} == {"check", "full", "quick"}
    assert not (ROOT / "baselines").exists()


def test_a_baseline_knows_its_config_and_no_spread_of_one_value():
    config = load_baseline(ROOT / "tests" / "baselines" / "quick.json").config
    assert (config.suite, len(config.seeds)) == ("quick", 3)
    assert not isinstance(config, dict)
    assert MetricStats.of({"42": 0.5}).std is None


def test_the_bound_needs_no_scipy():
    assert isinstance(bootstrap._NORMAL, NormalDist)
    assert "scipy" not in inspect.getsource(bootstrap)


def test_the_methods_are_those_that_can_be_installed():
    assert {name.partition("-")[0] for name in METHODS} == {"pls", "pls2", "gbdt"}
    assert len(METHODS) == 13
    assert {len(method.sizes) for method in METHODS.values()} == {2, 3}
    names = {backend for method in METHODS.values() for backend in method.backends}
    assert "octave.plsregress" in names
    assert not any("matlab" in name.lower() for name in names)


def test_an_absolute_tolerance_that_nobody_states_excuses_nothing():
    table: Any = SimpleNamespace(tolerance={})
    stated = find_tolerance(table, "loss", "other", None)
    assert (stated.absolute, stated.relative) == (None, GUIDELINES["other"].relative)


def test_a_pass_key_is_hidden_in_as_many_tokens_as_most_models_take():
    assert RetrievalArguments().lengths == (4096,)


def test_the_main_binding_is_the_released_one():
    assert {METHODS[name].canonical for name in ("pls", "pls2")} == {"pls4all"}
    assert not any("omp" in backend for method in METHODS.values() for backend in method.backends)


def test_a_parity_run_asks_for_one_thread_unless_told():
    assert ParityRequest().threads == ()
    assert SWEEP == (1, 3, 10)


def test_cells_have_the_thread_variables_of_the_methodology_and_of_rayon():
    assert {"OMP_NUM_THREADS", "BLIS_NUM_THREADS", "BENCH_THREADS", "RAYON_NUM_THREADS"} <= set(make_environment(3))


def test_a_specification_runs_no_programs_on_a_cluster():
    assert Evaluate.bound_here(None, {"root": "papers"}) == "it runs in the folder papers of this machine"
    assert Evaluate.bound_here(None, {"data": "table"}) is None
