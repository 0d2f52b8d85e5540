"""What version 0.1.0 wrote is read, verified, and either gone on with or refused in a sentence."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from boosters_eval import load_results, load_run
from boosters_eval.cli.app import run as command
from boosters_eval.engine.runs import find_run, run_folders, verify
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.model import load_baseline
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.programs.gate.decision import verify_decision

LEGACY = Path(__file__).parent / "legacy"
RUNS = sorted(path.name for path in (LEGACY / "home" / "runs").iterdir())
RESULTS = sorted(path.name for path in (LEGACY / "results").glob("*.json"))


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The files may be locked and read here, and must stay as they are there."""
    shutil.copytree(LEGACY, tmp_path / "legacy")
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "legacy" / "home"))
    monkeypatch.chdir(tmp_path / "legacy")
    return tmp_path / "legacy"


@pytest.mark.parametrize("run_id", RUNS)
def test_finished_run_is_verified_under_the_id_that_it_had(copy, run_id):
    folder = find_run(run_id)
    assert folder.plan().run_id == run_id
    assert {fault for _, fault in verify(folder)} == {""}


@pytest.mark.parametrize("name", RESULTS)
def test_run_and_results_file_tell_the_same(copy, name):
    results = load_results(copy / "results" / name)
    run = load_run(results.run_id)
    assert run.results == results.results
    assert run.errors == results.errors
    assert run.filter(library="sklearn").unsupported == run.unsupported  # a run knows the data set of a config too
    told = [[(u.config_name, u.library, u.reason) for u in source.unsupported] for source in (run, results)]
    assert told[0] == told[1]
    assert (run.suite, run.metadata.configs) == (results.suite, results.metadata.configs)
    assert (run.metadata.alpha, run.metadata.facts.targets) == (results.metadata.alpha, results.metadata.facts.targets)


def test_crash_keeps_its_signal(copy):
    errors = load_results(copy / "results" / "failed.json").errors
    assert {(error.error_type, error.signal, error.phase) for error in errors} == {("Crash", "SIGSEGV", "fit")}


@pytest.mark.parametrize("place", ["plan", "journal"])
def test_changed_byte_is_still_found(copy, place):
    folder = find_run(RUNS[0])
    path = folder.path / ("plan.json" if place == "plan" else "journal.jsonl")
    text = path.read_text()
    path.write_text(
        text.replace('"n_estimators": 5', '"n_estimators": 6') if place == "plan" else text.replace("0.9", "0.8", 1)
    )
    assert any(fault for _, fault in verify(folder))


@pytest.mark.parametrize("name", ["decision.json", "decision-scores.json"])
def test_decision_is_computed_again_to_the_same_bytes(copy, name):
    assert verify_decision(Path(name)) == ""


def test_baseline_is_still_held_against_the_run_it_was_made_of(copy):
    recorded = Snapshot.of_baseline(load_baseline(Path("baseline.json")))
    run = Snapshot.of_run(load_run(json.loads(Path("decision.json").read_text())["source"]["run_id"]))
    assert {finding.status.value for finding in check(recorded, run).findings} == {"same"}


def test_interrupted_run_is_read_and_said_to_be_incomplete(copy, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(copy / "interrupted"))
    (folder,) = run_folders()
    assert [fault for _, fault in verify(folder)] == ["incomplete: 3 of 18 cells have no outcome"]
    assert load_run("last").metadata.n_missing == 3
    assert command(["report", "--run", "last", "-o", "reports"]) == 2


def test_interrupted_run_is_not_continued_and_the_user_learns_why(copy, monkeypatch, capsys):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(copy / "interrupted"))
    (folder,) = run_folders()
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    words = json.loads((folder.path / "environment.json").read_text())["command"]
    words = [word for word in words if word not in ("-q", "-o", "cv.json")]
    assert command([*words, "--resume"]) == 0
    said = capsys.readouterr().err
    assert "there is no earlier attempt at this plan" in said
    assert f"run {folder.run_id} has the same cells, but it was made by another version" in said
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


def test_newer_file_is_refused_with_the_way_out(copy, capsys):
    path = find_run(RUNS[0]).path / "plan.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 99', 1))
    env = dict(os.environ)
    done = subprocess.run(
        [sys.executable, "-m", "boosters_eval", "verify", RUNS[0]], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "upgrade this program" in done.stderr
    assert "Traceback" not in done.stderr
