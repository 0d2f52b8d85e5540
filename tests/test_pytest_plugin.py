import importlib
import json
import pkgutil
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

import boosters_eval
from boosters_eval.programs.baseline.model import load_baseline, save_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from tiny import shared_pool

pytest_plugins = ["pytester"]
AUTO = ["--boosters-eval-seeds", "auto", "--boosters-eval-statistical"]
ROOT = Path(__file__).parent.parent
SUITE = """
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DATASETS, Task, TrainingConfig

SUITE = BenchmarkSuite(
    name="mine",
    configs=(
        BenchmarkConfig(
            name="iris/gbdt",
            dataset=DATASETS["iris"],
            task=Task.MULTICLASS,
            training=TrainingConfig(n_estimators=5, max_depth=2),
            libraries=("boosters", "catboost"),
        ),
    ),
    default_seeds=2,
)
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A user's project: a test of its own, a suite, and the results of that suite."""
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(pytester.path / "home"))
    pytester.makepyfile(test_own="def test_own():\n    pass\n", my_suite=SUITE)
    return pytester


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """One real run of the suite, recorded."""
    from boosters_eval import run_suite

    folder = tmp_path_factory.mktemp("recorded")
    (folder / "my_suite.py").write_text(SUITE)
    results = run_suite(f"{folder / 'my_suite.py'}:SUITE", home=folder / "home", executor=shared_pool())
    save_baseline(make_baseline(results), folder / "base.json")
    return folder / "base.json"


def plugin():
    """The plugin by its entry point where that is installed, else by its module."""
    from importlib.metadata import entry_points

    declared = any(point.name == "boosters-eval" for point in entry_points(group="pytest11"))
    return "boosters-eval" if declared else "boosters_eval.pytest_plugin"


@pytest.fixture(scope="session")
def imported():
    """The whole package, before a pytest inside this one forgets what it imported itself."""
    for module in pkgutil.walk_packages(boosters_eval.__path__, "boosters_eval."):
        if not module.name.endswith(("__main__", ".lm.models")):  # the latter needs torch
            importlib.import_module(module.name)


@pytest.fixture
def run_pytest_on_a_new_pool(project, imported):
    """The user's pytest, within this process; hypothesis would be imported anew each time."""
    options = ("-p", plugin(), "-p", "no:randomly", "-p", "no:hypothesispytest")
    return lambda *arguments: project.runpytest_inprocess(*options, *arguments)


@pytest.fixture
def run_pytest(run_pytest_on_a_new_pool, kept_pool):
    """The same on the pool that stays for the next test."""
    return run_pytest_on_a_new_pool


@pytest.fixture
def run_pytest_apart(project):
    """The user's pytest in a process of its own."""
    return lambda *arguments: project.runpytest_subprocess("-p", plugin(), "-p", "no:randomly", *arguments)


def test_each_pair_is_an_item_that_is_collected_without_running(project, run_pytest):
    result = run_pytest("--boosters-eval-suite", "my_suite.py:SUITE", "--collect-only", "-q")
    result.stdout.fnmatch_lines(
        ["*boosters-eval mine::iris/gbdt[[]boosters]", "*boosters-eval mine::iris/gbdt[[]catboost]"]
    )
    result.stdout.fnmatch_lines(["3 tests collected*"])
    assert not (project.path / "home" / "runs").exists()


def test_pairs_that_hold_pass_and_the_marker_selects_them(project, run_pytest, recorded):
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-baseline", str(recorded)]
    result = run_pytest(*arguments, "-m", "boosters_eval", "-v", "-rP")
    result.assert_outcomes(passed=2, deselected=1)
    result.stdout.fnmatch_lines(["*iris/gbdt[[]boosters] PASSED*", "*same: Log loss*= baseline*"])


def test_a_worse_pair_fails_in_one_sentence(project, run_pytest, recorded):
    document = json.loads(recorded.read_text())
    stats = document["results"][0]["metrics"]["mlogloss"]
    stats["per_seed"] = {cell: value / 1.5 for cell, value in stats["per_seed"].items()}
    stats["mean"] /= 1.5
    document["results"].append({**document["results"][1], "config": "gone/gbdt"})
    worse = project.path / "worse.json"
    worse.write_text(json.dumps(document))
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-baseline", str(worse)]
    result = run_pytest(*arguments, "-m", "boosters_eval")
    result.assert_outcomes(passed=1, failed=2, deselected=1)
    result.stdout.re_match_lines(
        [
            r"iris/gbdt boosters: Log loss \S+ > baseline \S+ \(\+50\.0 %, tolerance 2 %\)",
            r"gone/gbdt catboost: skipped, in the baseline, but not in the run",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    lenient = run_pytest(*arguments, "-m", "boosters_eval", "--boosters-eval-tolerance", "0.6", "-k", "iris")
    lenient.assert_outcomes(passed=2, deselected=2)


def test_a_pair_left_out_or_new_is_skipped_with_its_reason(project, run_pytest, recorded):
    baseline = load_baseline(recorded)
    only = project.path / "only.json"
    save_baseline(baseline.model_copy(update={"results": baseline.results[:1]}), only)
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-baseline"]
    result = run_pytest(*arguments, str(only), "-m", "boosters_eval", "-rs")
    result.assert_outcomes(passed=1, skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["*iris/gbdt catboost: new, no baseline*"])
    restricted = run_pytest(
        *arguments, str(recorded), "--boosters-eval-library", "boosters", "-m", "boosters_eval", "-rs"
    )
    restricted.assert_outcomes(passed=1, skipped=1, deselected=1)
    restricted.stdout.fnmatch_lines(["*iris/gbdt catboost: skipped, left out on request*"])


def test_without_a_baseline_a_pair_passes_when_it_runs(project, run_pytest):
    result = run_pytest("--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-seeds", "1")
    result.assert_outcomes(passed=3)


def test_without_a_baseline_a_crash_fails_its_pair(project, run_pytest, faulty):
    suite = SUITE.replace('"boosters", "catboost"', '"faulty", "catboost"').replace("max_depth=2", "max_depth=3")
    project.makepyfile(my_suite=suite)
    result = run_pytest("--boosters-eval-suite", "my_suite.py:SUITE", "-m", "boosters_eval")
    result.assert_outcomes(passed=1, failed=1, deselected=1)


def test_a_pair_with_flaky_cells_fails_unless_they_are_allowed(project, run_pytest_on_a_new_pool, faulty, monkeypatch):
    run_pytest = run_pytest_on_a_new_pool  # whose cells see the variable
    broken = project.path / "broken"
    broken.touch()
    monkeypatch.setenv("FAULTY_BROKEN", str(broken))
    regression = SUITE.replace('DATASETS["iris"]', 'DATASETS["diabetes"]').replace("MULTICLASS", "REGRESSION")
    project.makepyfile(
        my_suite=regression.replace('"boosters", "catboost"', '"faulty",').replace("max_depth=2", "max_depth=13")
    )
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-seeds", "1", "-m", "boosters_eval"]
    run_pytest(*arguments).assert_outcomes(failed=1, deselected=1)
    broken.unlink()
    mended = run_pytest(*arguments)
    mended.assert_outcomes(failed=1, deselected=1)
    mended.stdout.fnmatch_lines(["iris/gbdt faulty: same: *; flaky: cell 42 after 1 failure"])
    run_pytest(*arguments, "--boosters-eval-allow-flaky", "1").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("known", [True, False])
def test_a_crashed_pair_fails_though_it_is_new_or_not_under_test(project, run_pytest, recorded, faulty, known):
    project.makepyfile(my_suite=SUITE.replace('"catboost"', '"faulty"').replace("max_depth=2", "max_depth=3"))
    document = json.loads(recorded.read_text())
    document["results"][1]["library"] = "faulty"
    document["libraries"]["faulty"] = {"version": "another", "digest": ""}
    document["results"] = document["results"][: 2 if known else 1]
    (project.path / "base.json").write_text(json.dumps(document))
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-baseline", "base.json"]
    result = run_pytest(*arguments, "-m", "boosters_eval", "-k", "faulty")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["iris/gbdt faulty: crashed, cell 42: *"])


def test_pairs_of_which_none_counts_fail(project, run_pytest, recorded):
    document = json.loads(recorded.read_text())
    document["results"] = document["results"][1:]
    document["libraries"]["catboost"]["version"] = "0.0.1"
    (project.path / "base.json").write_text(json.dumps(document))
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-baseline", "base.json"]
    result = run_pytest(*arguments, "-m", "boosters_eval")
    result.assert_outcomes(failed=2, deselected=1)
    result.stdout.fnmatch_lines(["*Nothing that counts was compared with base.json*"])


def test_auto_adds_recorded_seeds_until_a_test_decides(project, run_pytest, recorded):
    arguments = ["--boosters-eval-suite", "my_suite.py:SUITE", "--boosters-eval-baseline", str(recorded), *AUTO]
    run_pytest(*arguments, "-m", "boosters_eval").assert_outcomes(passed=2, deselected=1)
    facts = [json.loads(path.read_text()) for path in project.path.glob("home/runs/*/environment.json")]
    assert [fact["seeds_rule"] for fact in facts] == ["seeds were added at one look at alpha = 0.05"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--boosters-eval-suite", "quikc"], "Unknown suite 'quikc'. Did you mean 'quick'?"),
        (
            ["--boosters-eval-baseline", "none.json"],
            "none.json does not exist; record it with 'boosters-eval baseline record none.json'.",
        ),
        (["--boosters-eval-suite", "minimal", "--boosters-eval-tolerance", "2"], "'--boosters-eval-tolerance' option"),
        (["--boosters-eval-suite", "minimal", "-n", "2"], "without pytest-xdist"),
        (
            ["--boosters-eval-suite", "minimal", "--boosters-eval-seeds", "0"],
            "must be a count from 1 to 10000, or auto",
        ),
        (
            ["--boosters-eval-suite", "minimal", *AUTO[:2]],
            "--boosters-eval-seeds auto needs --boosters-eval-statistical:",
        ),
        (["--boosters-eval-suite", "minimal", *AUTO], "--boosters-eval-seeds auto needs --boosters-eval-baseline:"),
        (
            ["--boosters-eval-suite", "minimal", "--boosters-eval-allow-flaky", "-1"],
            "'--boosters-eval-allow-flaky' option",
        ),
    ],
)
def test_a_mistake_is_a_usage_error_in_one_sentence(project, run_pytest, arguments, told):
    result = run_pytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert told in result.stderr.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_the_documented_command_collects_the_pairs_of_its_suite(project, run_pytest):
    (command,) = re.findall(r"^    pytest (.*)$", (ROOT / "docs" / "baselines.md").read_text(), re.MULTILINE)
    shutil.copytree(ROOT / "tests" / "baselines", project.path / "tests" / "baselines")
    result = run_pytest(*shlex.split(command), "--collect-only", "-q")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*california/gbdt[[]boosters[]]", "*breast_cancer/gbdt[[]sklearn[]]"])


def test_escapes_in_names_do_not_reach_the_terminal(project, run_pytest):
    evil = "a\x1b[31m\u202eb"
    project.makepyfile(evil=SUITE.replace("mine", evil).replace("iris/gbdt", evil))
    done = run_pytest("--boosters-eval-suite", "evil.py:SUITE", "--collect-only", "-q")
    done.stdout.fnmatch_lines(["*a\ufffd[[]31m\ufffdb*"])
    raw = {"schema_version": 10, "recorded_at": "2025-01-01T00:00:00Z", "config": {"suite": evil}}
    stats = {"rmse": {"mean": 1.0, "std": None, "n": 1}}
    one = {"config": "c", "library": "boosters", "task": "regression", "primary_metric": "rmse", "metrics": stats}
    (project.path / "evil.json").write_text(json.dumps({**raw, "results": [one]}))
    wrong = run_pytest("--boosters-eval-baseline", "evil.json")
    wrong.stderr.fnmatch_lines(["*The suite 'a\ufffd[[]31m\ufffdb' of the baseline is not known here*"])
    for text in (done.stdout.str(), wrong.stdout.str(), wrong.stderr.str()):
        assert "\u202e" not in text
        assert "\x1b[31m" not in text


def test_a_project_that_does_not_ask_for_it_pays_nothing(project, run_pytest_apart):
    project.makepyfile(
        test_own="""
        import sys

        def test_nothing_is_loaded():
            assert "boosters_eval.pytest_plugin" in sys.modules
            heavy = {"numpy", "pydantic", "boosters_eval.api", "boosters_eval.programs.baseline"}
            assert not heavy & set(sys.modules)
        """
    )
    run_pytest_apart("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_the_entry_point_is_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"boosters-eval": "boosters_eval.pytest_plugin"}
