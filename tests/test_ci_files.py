"""The CI files: they parse, and every command in them is one that the program accepts."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from boosters_eval.baseline import load_baseline

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def steps(workflow):
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


def run_action(tmp_path, **inputs):
    """The action's check step in bash, with a program in place of boosters-eval that writes down its arguments."""
    bash = shutil.which("bash")
    fake = tmp_path / "boosters-eval"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    step = ACTION["runs"]["steps"][-1]
    given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
    env = {name: given[re.fullmatch(r"\$\{\{ inputs\.(.+) \}\}", value)[1]] for name, value in step["env"].items()}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-e", "-c", step["run"]], env={**env, "PATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def accepted(arguments):
    """Whether the parser takes the arguments: everything after it fails at a file that is not there."""
    from boosters_eval.cli.app import run

    return run([*arguments, "--dry-run", "--run", "x", "--results", "y"])


def test_the_two_workflows_of_the_rfc_are_there():
    assert [path.name for path in WORKFLOWS] == ["quality-regression.yml", "quality.yml"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_only_inputs_that_the_action_has(workflow):
    used = [step["with"] for step in steps(workflow) if step.get("uses") == "./"]
    required = {name for name, spec in ACTION["inputs"].items() if spec.get("required")}
    for given in used:
        assert required <= given.keys() <= ACTION["inputs"].keys()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_s_commands_are_accepted_by_the_program(workflow, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    commands = [step["run"] for step in steps(workflow) if "boosters-eval" in step.get("run", "")]
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        assert accepted(words[1:]) == 3
        assert "either --run or --results" in capsys.readouterr().err  # the parser had no complaint


def test_python_3_12_is_what_everything_runs_on():
    versions = [s["with"]["python-version"] for w in WORKFLOWS for s in steps(w) if "setup-python" in s.get("uses", "")]
    assert {*versions, ACTION["inputs"]["python-version"]["default"]} == {"3.12"}


def test_the_action_passes_only_what_was_given(tmp_path):
    assert run_action(tmp_path, baseline="b.json") == [
        *("baseline", "check", "--baseline", "b.json", "--tolerance", "0.02", "--output", "benchmark-results.json")
    ]


def test_every_input_of_the_action_reaches_the_program_as_one_argument(tmp_path, capsys):
    hostile = '$(touch hacked); "x" y'
    words = run_action(
        tmp_path,
        baseline=hostile,
        suite="quick",
        statistical="true",
        junit="j.xml",
        **{"libraries-under-test": "boosters,xgboost"},
    )
    assert words[3] == hostile
    assert not Path("hacked").exists()
    assert {"--statistical", "--suite", "--junit", "--libraries-under-test"} <= set(words)
    words[3] = str(ROOT / "action.yml")
    assert accepted(words) == 3
    assert "is not JSON" in capsys.readouterr().err  # the options were read, the file is no baseline


def test_the_gitlab_job_in_the_documentation_is_valid(capsys):
    text = (ROOT / "docs" / "baselines.md").read_text()
    job = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])["quality"]
    assert job["image"] == "python:3.12"
    words = shlex.split(job["script"][-1])
    junit = words[words.index("--junit") + 1]
    assert job["artifacts"]["reports"]["junit"] == junit
    words[3] = str(ROOT / "action.yml")
    assert accepted(words[1:]) == 3
    assert "is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize(("suite", "seeds"), [("quick", 3), ("full", 5)])
def test_the_committed_baselines_are_those_of_the_suites(suite, seeds):
    from boosters_eval.benchmark.suites import SUITES

    baseline = load_baseline(ROOT / "tests" / "baselines" / f"{suite}.json")
    assert baseline.config.suite == suite
    assert len(baseline.config.seeds) == seeds
    assert {r.config for r in baseline.results} == {config.name for config in SUITES[suite].configs}
    assert set(baseline.libraries) == {library for config in SUITES[suite].configs for library in config.libraries}
