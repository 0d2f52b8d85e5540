"""Runs and what is written down about them: once, when they run."""

import json
import os
import subprocess

import pytest

from boosters_eval import RunOptions, Settings, UnknownNameError, compare, load_run, prepare_comparison, run_prepared
from boosters_eval.baseline import make_baseline
from boosters_eval.benchmark.tables import build_document
from boosters_eval.engine.pool import _shared_imports
from boosters_eval.engine.runs import find_run, run_folders
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
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}


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


def test_run_with_auto_seeds_keeps_its_level_and_is_never_rewritten(home):
    results = auto()
    folder = find_run(results.run_id)
    before = snapshot(folder)
    assert json.loads((folder.path / "environment.json").read_text())["alpha"] == results.metadata.alpha == 0.05
    loaded = load_run(results.run_id)
    assert loaded.metadata == results.metadata
    assert "looks, each at alpha = 0.05" in loaded.metadata.seeds_rule
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
    assert (plain.metadata.alpha, results.metadata.alpha) == (None, 0.05)
    assert [r.train_time_s for r in results.results] == [r.train_time_s for r in plain.results]
    assert folder.attempts() == [1, 2]
    assert {name: snapshot(folder)[name] for name in before if name != "lock"} == {
        name: before[name] for name in before if name != "lock"
    }


def test_looks_share_their_lanes_and_repeat_no_cell(home):
    results = auto()
    assert len(run_folders()) == 1  # six seeds are one look
    assert len(results.results) == 12


def test_settings_are_the_options_that_an_editor_shows():
    assert RunOptions.__annotations__.keys() == Settings.model_fields.keys()


def test_executor_is_chosen_by_name_and_an_unknown_one_is_one_sentence(home):
    assert compare("iris", "sklearn", seeds=1, training=FEW, executor="local").metadata.facts.executor == "LocalPool"
    with pytest.raises(UnknownNameError, match=r"Unknown executor 'locl'. Did you mean 'local'\?"):
        compare("iris", "sklearn", seeds=1, training=FEW, executor="locl")


def test_only_what_two_lanes_need_is_imported_in_their_ancestor(home):
    prepared = prepare_comparison("iris", ["boosters", "catboost", "sklearn"], seeds=1, training=FEW)
    shared = {lane.target: names for lane, names in _shared_imports({c.lane for c in prepared.plan.cells}).items()}
    assert "pandas" in shared["boosters"]
    assert "scipy.sparse" in shared["catboost"]
    assert "scipy.sparse" not in shared["boosters"]
    assert "sklearn.model_selection" not in shared["sklearn"]
    alone = prepare_comparison("iris", "sklearn", seeds=1, training=FEW)
    assert list(_shared_imports({c.lane for c in alone.plan.cells}).values()) == [[]]
