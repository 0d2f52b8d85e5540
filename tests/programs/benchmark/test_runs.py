"""Runs and what is written down about them: once, when they run."""

import json
import os
import subprocess
from importlib import import_module

import pytest

from boosters_eval import (
    RUNNERS,
    ConfigError,
    LocalPool,
    RunError,
    TrainingConfig,
    UnknownNameError,
    compare,
    load_run,
    prepare_comparison,
    run_prepared,
    run_suite,
)
from boosters_eval.engine.execute import Work
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.lanes import find_shared_imports, identify_lanes
from boosters_eval.engine.runs import find_run, list_run_folders
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.tables.document import build_document
from stamping import FAST, SLOW, Stamping
from tiny import FEW, run_tiny, shared_pool, tiny_config


def git(*words):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    options = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=trunk"]
    done = subprocess.run(["git", *options, *words], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init")
    (folder / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    return folder


def snapshot(folder):
    """Every file of a run, with its bytes and when it was written."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir() if path.is_file()}


def test_report_and_baseline_of_an_old_run_show_the_commit_of_the_run(repository, faulty):
    run_tiny(tiny_config("none"))
    sha = git("rev-parse", "--short=7", "HEAD")
    (repository / "file").write_text("two")
    git("commit", "-am", "two")
    old = load_run("last")
    assert (old.metadata.facts.git_sha, old.metadata.facts.git_branch) == (sha, "trunk")
    assert old.metadata.facts.git_dirty is False
    assert any(sha in value for _, value in build_document(old).environment)
    assert make_baseline(old).git_sha == sha
    (repository / "file").write_text("three")
    assert run_tiny(tiny_config("none")).metadata.facts.git_dirty is True


def test_run_outside_a_repository_has_no_commit(tmp_path, monkeypatch, faulty):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    facts = run_tiny(tiny_config("none")).metadata.facts
    assert (facts.git_sha, facts.git_branch, facts.git_dirty) == (None, None, None)


def auto(**settings):
    prepared = prepare_comparison("iris", ["sklearn", "lightgbm"], seeds="auto", max_seeds=6, training=FEW, **settings)
    return run_prepared(prepared, executor=shared_pool())


@pytest.fixture(scope="module")
def auto_run(tmp_path_factory):
    """A run with automatic seeds, and its home."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BOOSTERS_EVAL_HOME", str(home))
        return home, auto()


@pytest.fixture
def auto_results(auto_run, monkeypatch):
    """The results of that run, in its home."""
    home, results = auto_run
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(home))
    return results


def test_run_with_auto_seeds_keeps_its_level_and_is_never_rewritten(auto_results):
    results = auto_results
    folder = find_run(results.run_id)
    before = snapshot(folder)
    assert json.loads((folder.path / "environment.json").read_text())["alpha"] == results.metadata.alpha == 0.05
    loaded = load_run(results.run_id)
    assert loaded.metadata == results.metadata
    assert loaded.audits["iris"].classes == {"0": 50, "1": 50, "2": 50}
    assert loaded.metadata.seeds_rule == "seeds were added at one look at alpha = 0.05"
    build_document(loaded)
    make_baseline(loaded)
    auto(resume=True)
    assert {name: before[name] for name in before if name != "lock"} == {
        name: found for name, found in snapshot(folder).items() if name != "lock"
    }


def test_resumed_with_another_rule_a_run_is_kept_and_its_outcomes_are_taken_over(home):
    plain = compare("iris", ["sklearn", "lightgbm"], seeds=6, training=FEW, executor=shared_pool())
    folder = find_run(plain.run_id)
    before = snapshot(folder)
    results = auto(resume=True)
    assert results.run_id == plain.run_id
    assert results.metadata.facts.started_at == plain.metadata.facts.started_at
    assert [session.alpha for session in results.metadata.facts.resumed] == [0.05]
    assert (plain.metadata.alpha, results.metadata.alpha) == (None, 0.05)
    assert [r.train_time_s for r in results.results] == [r.train_time_s for r in plain.results]
    assert folder.attempts() == [1, 2]
    assert {name: snapshot(folder)[name] for name in before if name != "lock"} == {
        name: before[name] for name in before if name != "lock"
    }


def test_later_look_keeps_the_commit_of_a_first_look_that_was_taken_from_an_earlier_run(home, monkeypatch):
    collected = RunFacts.collect.__func__
    at = {"git_sha": "abcdef1", "started_at": "2020-01-01T00:00:00+00:00"}

    def earlier(cls, plan, **known):
        return collected(cls, plan, **known).model_copy(update=at)

    options = {
        "training": FEW,
        "executor": shared_pool(),
        "splits": "random",
        "predictions": False,
    }  # undecided at first
    with monkeypatch.context() as patched:
        patched.setattr(RunFacts, "collect", classmethod(earlier))
        compare("iris", ["sklearn", "lightgbm"], seeds=5, **options)
    results = compare("iris", ["sklearn", "lightgbm"], seeds="auto", max_seeds=7, resume=True, **options)
    assert len(results.results) == 14  # the second look
    facts = results.metadata.facts
    assert (facts.git_sha, facts.alpha) == ("abcdef1", 0.025)
    assert all(session.git_sha != "abcdef1" for session in facts.resumed)
    assert len(facts.resumed) == 2  # a look each


def test_later_look_keeps_the_machines_of_an_earlier_run_whose_outcomes_it_takes_over(home):
    with Stamping() as nodes:
        compare(
            "iris", ["sklearn", "lightgbm"], seeds=5, training=FEW, executor=nodes, splits="random", predictions=False
        )
    options = {
        "training": FEW,
        "executor": shared_pool(),
        "splits": "random",
        "predictions": False,
    }  # undecided at first
    results = compare("iris", ["sklearn", "lightgbm"], seeds="auto", max_seeds=7, resume=True, **options)
    here = results.metadata.facts.machine["digest"]
    seeds = list(dict.fromkeys(result.seed for result in results.results))
    expected = {seed: by_seed(seed) if index < 5 else here for index, seed in enumerate(seeds)}
    assert len(seeds) == 7
    assert {(result.seed, result.machine) for result in results.results} == set(expected.items())
    assert set(results.metadata.machines) == {SLOW.digest, FAST.digest, here}
    assert load_run(results.run_id, verified=True).metadata == results.metadata


def by_seed(seed):
    return (SLOW if seed % 2 else FAST).digest


def test_looks_share_their_lanes_and_repeat_no_cell(auto_results):
    assert len(list_run_folders()) == 1  # six seeds are one look
    assert len(auto_results.results) == 12


def test_misspelt_parameter_is_named_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"compare\(\) has no parameter 'sedes'. Did you mean 'seeds'\?"):
        compare("iris", sedes=3)
    with pytest.raises(ConfigError, match=r"run_suite\(\) has no parameter 'time_out'. Did you mean 'timeout'\?"):
        run_suite("quick", time_out=3)


def test_executor_is_chosen_by_name_and_an_unknown_one_is_one_sentence(faulty):
    facts = compare(
        "diabetes", "faulty", seeds=1, training=TrainingConfig(max_depth=1), executor="local"
    ).metadata.facts
    assert facts.executor == "LocalPool"
    with pytest.raises(UnknownNameError, match=r"Unknown executor 'locl'. Did you mean 'local'\?"):
        compare("iris", "sklearn", seeds=1, training=FEW, executor="locl")


def shared_by_lane(plan):
    return find_shared_imports(identify_lanes([Work(cell) for cell in plan.cells]))


def test_only_what_two_lanes_need_is_imported_in_their_ancestor(home):
    prepared = prepare_comparison("iris", ["boosters", "catboost", "sklearn"], seeds=1, training=FEW)
    shared = {lane.target.name: names for lane, names in shared_by_lane(prepared.plan).items()}
    assert "pandas" in shared["boosters"]
    assert "scipy.sparse" in shared["catboost"]
    assert "scipy.sparse" not in shared["boosters"]
    assert "sklearn.model_selection" not in shared["sklearn"]
    alone = prepare_comparison("iris", "sklearn", seeds=1, training=FEW)
    assert list(shared_by_lane(alone.plan).values()) == [[]]


def test_rerun_of_a_sealed_run_is_a_new_attempt_that_takes_over_what_finished(faulty):
    first = run_tiny(tiny_config("none"), tiny_config("segfault"), seeds=2)
    folder = find_run(first.run_id)
    before = snapshot(folder)
    again = run_tiny(tiny_config("none"), tiny_config("segfault"), seeds=2, rerun_failed=True)
    assert folder.attempts() == [1, 2]
    assert [r.train_time_s for r in again.results] == [r.train_time_s for r in first.results]
    after = snapshot(folder)
    assert {name: after[name] for name in before if name != "lock"} == {
        name: before[name] for name in before if name != "lock"
    }


def test_pool_never_uses_a_lane_of_another_class_of_the_same_name(home, tmp_path, monkeypatch):
    source = """
import numpy as np
from boosters_eval.runners import RUNNERS, Runner, Translation
class Constant(Runner):
    name, module, distributions, install = "constant", "numpy", ("numpy",), "numpy"
    @classmethod
    def unsupported(cls, request): return None
    @classmethod
    def translate(cls, request): return Translation(request, native={})
    @classmethod
    def build(cls, translation, data): return data
    @classmethod
    def fit(cls, translation, dataset): return VALUE
    @classmethod
    def predict(cls, translation, model, x): return np.full(len(x), model)
"""
    monkeypatch.syspath_prepend(str(tmp_path))
    scores = []
    with LocalPool(1) as pool:
        for index, value in enumerate((0.0, 150.0)):
            (tmp_path / f"constant{index}.py").write_text(source.replace("VALUE", str(value)))
            RUNNERS.register("constant", import_module(f"constant{index}").Constant, replace=True)
            results = compare("diabetes", "constant", seeds=1, training=FEW, executor=pool)
            scores.append(results.results[0].metrics["rmse"])
    RUNNERS.unregister("constant")
    assert scores[0] > 1.5 * scores[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"executor": LocalPool}, "'executor' parameter must be a name or an Executor"),
        ({"observer": 3}, "'observer' parameter must be names or Observers"),
        ({"observer": [None]}, "'observer' parameter must be names or Observers"),
        ({"max_seeds": 9}, "'max_seeds' parameter needs seeds='auto'"),
        ({"cv": 3}, "Use either 'cv' or 'seeds'"),
    ],
)
def test_mistake_of_a_caller_is_one_sentence(home, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare("iris", "sklearn", seeds=1, training=FEW, **options)


def test_jobs_are_the_executors(home):
    with pytest.raises(ConfigError, match="pass either it or an executor"):
        compare("iris", "sklearn", seeds=1, training=FEW, jobs=2, executor=shared_pool(1))


def test_run_with_a_foreign_plan_is_refused_by_every_reader(faulty):
    run_tiny(tiny_config("none"), seeds=2)
    path = find_run("last").path / "plan.json"
    plan = json.loads(path.read_text())
    plan["refs"].pop()
    path.write_text(json.dumps(plan))
    with pytest.raises(RunError, match="See 'boosters-eval verify'"):
        load_run("last", home=str(path.parents[2]))


def test_one_metric_need_not_be_a_list():
    plans = [
        prepare_comparison("iris", "sklearn", seeds=1, training=FEW, metrics=given).plan
        for given in ("top_k_accuracy@2", ["top_k_accuracy@2"])
    ]
    assert plans[0].run_id == plans[1].run_id
    assert plans[0].specs[0].metrics == ("top_k_accuracy",)  # 2 is its default
