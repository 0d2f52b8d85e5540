"""The CI files: they parse, and every command in them is one that the program accepts."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from boosters_eval.programs.baseline.model import load_baseline
from toys import write_runner, write_wheel

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXAMPLE = ROOT / "examples" / "workflows" / "compare-builds.yml"
OURS = ("./", "OWNER/boosters-eval@main")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def jobs(workflow):
    return yaml.safe_load(workflow.read_text())["jobs"]


def steps(workflow):
    """Of all jobs; one that calls another workflow has none."""
    return [step for job in jobs(workflow).values() for step in job.get("steps", ())]


def named(name):
    return ROOT / ".github" / "workflows" / name


ECHO = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


def run_action(tmp_path, *, code=0, program=ECHO, env=None, **inputs):
    """The action's check step in bash, by default with a program for boosters-eval that writes down its arguments."""
    bash = shutil.which("bash")
    fake = tmp_path / "boosters-eval"
    fake.write_text(program)
    fake.chmod(0o755)
    step = ACTION["runs"]["steps"][-1]
    given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
    passed = {name: given[re.fullmatch(r"\$\{\{ inputs\.(.+) \}\}", value)[1]] for name, value in step["env"].items()}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**(env or {}), **passed, "PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.splitlines()


def accepted(arguments):
    """Whether the parser takes the arguments: everything after it fails at a file that is not there."""
    from boosters_eval.cli.app import run

    return run([*arguments, "--dry-run", "--results", "nothing"])


def test_the_two_workflows_of_the_rfc_are_there_and_those_of_the_project():
    assert [path.name for path in WORKFLOWS] == ["quality-regression.yml", "quality.yml", "release.yml", "tests.yml"]


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_actionlint_has_no_complaint():
    files = map(str, (*WORKFLOWS, EXAMPLE))
    done = subprocess.run(["actionlint", "-no-color", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("workflow", [*WORKFLOWS, EXAMPLE], ids=lambda path: path.name)
def test_a_workflow_may_read_the_code_and_nothing_else(workflow):
    """No secret is used, no job runs for hours, and only the one that publishes may ask for an identity."""
    content = yaml.safe_load(workflow.read_text())
    assert content["permissions"] == {"contents": "read"}
    assert "secrets." not in workflow.read_text()
    more = {name: job["permissions"] for name, job in content["jobs"].items() if "permissions" in job}
    assert more == ({"publish": {"id-token": "write"}} if workflow.name == "release.yml" else {})
    assert all(job["timeout-minutes"] <= 60 for job in content["jobs"].values() if "steps" in job)
    assert all(
        re.search(r"@(v\d+|release/v\d+|main)$", step["uses"])
        for step in steps(workflow)
        if "@" in step.get("uses", "")
    )


@pytest.mark.parametrize("workflow", [*WORKFLOWS, EXAMPLE], ids=lambda path: path.name)
def test_a_workflow_uses_only_inputs_that_the_action_has(workflow, tmp_path):
    used = [step["with"] for step in steps(workflow) if step.get("uses") in OURS]
    for given in used:
        assert given.keys() <= ACTION["inputs"].keys()
        run_action(tmp_path, **given)  # exits 3 if what it needs is not given
    assert bool(used) == (workflow.name in {"quality-regression.yml", EXAMPLE.name})


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_s_commands_are_accepted_by_the_program(workflow, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    commands = [step["run"] for step in steps(workflow) if "boosters-eval" in step.get("run", "")]
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        assert accepted(words[1:]) == 3
        assert "nothing does not exist" in capsys.readouterr().err  # the parser had no complaint


def test_python_3_12_is_what_everything_but_the_tests_runs_on():
    found = [step for path in (*WORKFLOWS, EXAMPLE) for step in steps(path)]
    versions = [s["with"]["python-version"] for s in found if "setup-python" in s.get("uses", "")]
    assert {*versions, ACTION["inputs"]["python-version"]["default"]} == {"3.12", "${{ matrix.python-version }}"}


def test_the_tests_run_on_every_python_that_is_promised_and_on_macos():
    matrix = jobs(named("tests.yml"))["tests"]["strategy"]["matrix"]
    promised = [name.rsplit(" ", 1)[1] for name in PROJECT["classifiers"] if ":: Python :: 3." in name]
    assert matrix["os"] == ["ubuntu-latest"]
    assert matrix["python-version"] == promised
    assert [place["os"] for place in matrix["include"]] == ["macos-latest"]


def test_the_workflow_of_the_tests_checks_what_make_test_checks_and_the_deaths_that_take_too_long_there():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    used = {step["run"].split()[1] for step in steps(named("tests.yml")) if step.get("run", "").startswith("make ")}
    rule = re.search(r"^test: (.*?)  ##.*\n.* -j2 (.*?)  #", makefile, re.MULTILINE)
    assert used == {*rule[1].split(), *rule[2].split(), "test-deaths"} <= set(targets)


@pytest.mark.parametrize(("tag", "code"), [(f"v{PROJECT['version']}", 0), ("v0.0.1", 1), ("v$(touch hacked)", 1)])
def test_only_the_version_itself_is_released(tag, code, tmp_path):
    (step,) = [step for step in steps(named("release.yml")) if step.get("name", "").startswith("Compare the tag")]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "python").symlink_to(sys.executable)
    done = subprocess.run(
        [shutil.which("bash"), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={"TAG": tag, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.startswith("::error title=Release::the tag is ") == bool(code)
    assert not (tmp_path / "hacked").exists()


def test_a_release_is_published_after_the_tests_and_without_a_password():
    release = jobs(named("release.yml"))
    assert release["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert release["publish"]["needs"] == ["tests", "build"]
    assert release["publish"]["environment"] == "pypi"
    assert "with" not in release["publish"]["steps"][-1]


def test_pre_commit_formats_with_the_version_that_the_tests_check_with():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    (ruff,) = [repo for repo in hooks if repo["repo"].endswith("/ruff-pre-commit")]
    assert f"ruff=={ruff['rev'].removeprefix('v')}\n" in (ROOT / "constraints.txt").read_text()
    assert [hook["id"] for hook in ruff["hooks"]] == ["ruff-check", "ruff-format"]


def test_the_action_passes_only_what_was_given(tmp_path):
    assert run_action(tmp_path, baseline="b.json") == [
        *("baseline", "check", "--baseline", "b.json", "--output", "benchmark-results.json")
    ]


def test_every_input_of_the_action_reaches_the_program_as_one_argument(tmp_path, capsys):
    hostile = '$(touch hacked); "x" y'
    words = run_action(
        tmp_path,
        baseline=hostile,
        suite="quick",
        tolerance="0.05",
        statistical="true",
        junit="j.xml",
        **{"libraries-under-test": "boosters,xgboost"},
    )
    assert words[3] == hostile
    assert not (tmp_path / "hacked").exists()
    assert {"--tolerance", "--statistical", "--suite", "--junit", "--libraries-under-test"} <= set(words)
    words[3] = str(ROOT / "action.yml")
    assert accepted(words) == 3
    assert "is not JSON" in capsys.readouterr().err  # the options were read, the file is no baseline


FOR_BASELINES = "tolerance, statistical, libraries-under-test and junit"
BUILDS = {"library": "boosters", "base": "base.whl", "head": "==0.2.0"}


def test_the_action_compares_two_builds_in_one_run(tmp_path):
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "boosters-0.2.0-py3-none-any.whl").touch()
    words = run_action(
        tmp_path,
        library="boosters",
        base="dist/*.whl",
        head="../head folder",
        datasets="california,breast_cancer",
        seeds="10",
        timing="true",
        verdict="v.json",
        output="c.html",
    )
    assert words == [
        *("compare", "--dataset", "california,breast_cancer"),
        *(
            "--library",
            "base=boosters@dist/boosters-0.2.0-py3-none-any.whl",
            "--library",
            "head=boosters@../head folder",
        ),
        *("--against", "base", "--seeds", "10", "--timing-mode", "--verdict", "v.json", "--output", "c.html"),
    ]


def test_the_action_compares_two_builds_on_a_suite(tmp_path):
    assert run_action(tmp_path, suite="quick", **BUILDS) == [
        *("run", "--suite", "quick", "--library", "base=boosters@base.whl", "--library", "head=boosters==0.2.0"),
        *("--against", "base", "--output", "benchmark-results.json"),
    ]


def test_the_action_checks_an_upgrade(tmp_path):
    (tmp_path / "base.whl").touch()
    given = {"upgrade-check": "true", "datasets": "a.csv:y", "seeds": "4", "tolerance": "0.001", "output": "u.md"}
    assert run_action(tmp_path, **BUILDS, **given) == [
        *("upgrade-check", "boosters", "base.whl", "0.2.0", "--dataset", "a.csv:y", "--seeds", "4"),
        *("--tolerance", "0.001", "--output", "u.md"),
    ]


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"upgrade-check": "true"}, "upgrade-check needs library, base and head"),
        (
            {"upgrade-check": "true", **BUILDS, "timing": "true"},
            "baseline, libraries-under-test, junit, verdict, statistical and timing are not for upgrade-check",
        ),
        ({}, "give either baseline, or library, base and head"),
        ({"library": "boosters", "base": "x.whl"}, "give either baseline, or library, base and head"),
        ({"baseline": "b.json", **BUILDS}, "give either baseline, or library, base and head"),
        ({"suite": "quick", "datasets": "california", **BUILDS}, "give either suite or datasets"),
        ({**BUILDS, "base": "*.whl"}, "base has more than one file"),
        ({**BUILDS, "timing": "True"}, "timing must be true or false"),
        ({"baseline": "b.json", "statistical": "yes"}, "statistical must be true or false"),
        ({**BUILDS, "junit": "j.xml"}, f"{FOR_BASELINES} are for a baseline, not for two builds"),
        ({**BUILDS, "tolerance": "0.1"}, f"{FOR_BASELINES} are for a baseline, not for two builds"),
        ({"baseline": "b.json", "seeds": "9"}, "datasets, seeds and timing are for two builds, not for a baseline"),
    ],
)
def test_the_action_refuses_what_is_not_one_check(tmp_path, inputs, told):
    for name in ("a.whl", "b.whl"):
        (tmp_path / name).touch()
    (line,) = run_action(tmp_path, code=3, **inputs)
    assert line == f"::error title=boosters-eval::{told}"


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "code"), [(0.5, 1), (0.0001, 0)])
def test_the_action_s_step_fails_by_the_verdict_on_two_real_builds(tmp_path, shift, code):
    """The step as GitHub runs it, with this program: two wheels of a library, of which the head's may be worse."""
    for name, version, moved in (("base", "1.0", 0.0), ("head", "1.1", shift)):
        write_wheel(tmp_path / f"dist-{name}", version, moved)
    first, *rest = run_action(
        tmp_path,
        code=code,
        program=f'#!/bin/sh\nexec {sys.executable} -m boosters_eval "$@"\n',
        env={
            **os.environ,
            "BOOSTERS_EVAL_HOME": str(tmp_path / "home"),
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        },
        library=write_runner(tmp_path),
        base="dist-base/*.whl",
        head="dist-head/*.whl",
        datasets="california",
        seeds="3",
        verdict="v.json",
        output="c.html",
    )
    answer = "❌ head is worse than base in 1 of 1" if code else "✅ Nothing is worse than base"
    assert first.startswith(answer)
    assert any(line.startswith("::error title=boosters-eval Worse::") for line in rest) == bool(code)
    assert answer in (tmp_path / "summary.md").read_text()
    assert json.loads((tmp_path / "v.json").read_text())["exit_code"] == code
    assert "head (toy 1.1)" in (tmp_path / "c.html").read_text()


def test_no_input_of_a_comparison_is_run_as_a_command(tmp_path):
    hostile = '$(touch hacked); "x" y `touch hacked`'
    words = run_action(tmp_path, library=hostile, base=hostile, head=hostile, datasets=hostile, seeds=hostile)
    assert f"base={hostile}@{hostile}" in words
    assert not (tmp_path / "hacked").exists()


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


@pytest.mark.parametrize(("suite", "seeds"), [("quick", 3), ("check", 5), ("full", 5)])
def test_the_committed_baselines_are_those_of_the_suites(suite, seeds):
    from boosters_eval.programs.benchmark.suites import SUITES

    baseline = load_baseline(ROOT / "tests" / "baselines" / f"{suite}.json")
    assert baseline.config.suite == suite
    assert len(baseline.config.seeds) == seeds
    assert {r.config for r in baseline.results} == {config.name for config in SUITES[suite].configs}
    assert set(baseline.libraries) == {library for config in SUITES[suite].configs for library in config.libraries}


def test_the_wheel_carries_the_baselines():
    """Where `quick` looks for them outside a checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"tests/baselines": "boosters_eval/baselines"}
    source = (ROOT / "src" / "boosters_eval" / "programs" / "baseline" / "commands.py").read_text()
    assert 'Path(__file__).parents[2] / "baselines" / f"{suite}.json"' in source
