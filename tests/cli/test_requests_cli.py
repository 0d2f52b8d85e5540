"""What is asked for is what runs: seeds, folds, libraries and previews, and the help for those who ask for nothing."""

import csv
import io
import json
from pathlib import Path

import pytest

import factories
from boosters_eval import BenchmarkSuite, prepare_suite
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.baseline.model import load_baseline

REPOSITORY = Path(__file__).parents[2]
# Both depths stand for no failure, and differ: what is trained alike is one row.
SUITE = """
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DATASETS, Task, TrainingConfig

def config(name, depth, **changes):
    return BenchmarkConfig(
        name=name, dataset=DATASETS["diabetes"], task=Task.REGRESSION, libraries=["faulty"],
        training=TrainingConfig(max_depth=depth), **changes,
    )

SUITE = BenchmarkSuite(name="mine", configs=[config("own", 1, seeds=[7, 8]), config("usual", 7)], default_seeds=3)
"""


@pytest.fixture
def mine(place):
    (place / "mine.py").write_text(SUITE)
    return ["--suite", "mine.py:SUITE"]


def planned(text):
    """The number of cells of each config in a dry run."""
    return {line.split()[0]: int(line.split()[-1]) for line in text.splitlines() if line.startswith("  ")}


@pytest.mark.parametrize("words", [[], ["list"], ["baseline"], ["datasets"]], ids=str)
def test_a_command_without_arguments_prints_its_help(boosters_eval, words):
    done = boosters_eval(*words, check=2)
    assert done.stdout.startswith(f"Usage: {' '.join(['boosters-eval', *words])} [OPTIONS] COMMAND")
    assert done.stderr == ""


def test_the_number_of_seeds_comes_from_the_option_then_the_environment_then_the_suite(
    boosters_eval, mine, monkeypatch
):
    usual = boosters_eval("run", *mine, "--dry-run", check=0)
    assert planned(usual.stdout) == {"own": 2, "usual": 3}
    assert "names its own seeds" not in usual.stderr
    monkeypatch.setenv("BOOSTERS_EVAL_SEEDS", "5")
    done = boosters_eval("run", *mine, "--dry-run", check=0)
    assert planned(done.stdout) == {"own": 5, "usual": 5}
    assert "Note: own names its own seeds (7, 8); BOOSTERS_EVAL_SEEDS 5 replaces them" in done.stderr
    done = boosters_eval("run", *mine, "--seeds", "4", "--dry-run", check=0)
    assert planned(done.stdout) == {"own": 4, "usual": 4}
    assert "Note: own names its own seeds (7, 8); --seeds 4 replaces them" in done.stderr


def test_python_overrules_the_seeds_of_a_config_too(faulty, home):
    config = factories.config(
        factories.dataset(data=([[0.0], [1.0], [2.0]] * 20, [0.0, 1.0, 2.0] * 20)), seeds=(7, 8), libraries=["faulty"]
    )
    suite = BenchmarkSuite("toy", (config,))
    assert {cell.repeat.seed for cell in prepare_suite(suite).plan.cells} == {7, 8}
    assert {cell.repeat.seed for cell in prepare_suite(suite, seeds=1).plan.cells} == {42}


def test_a_baseline_is_checked_with_the_seeds_that_its_configs_name(boosters_eval, mine):
    boosters_eval("baseline", "record", *mine, "own.json", "-q", check=0)
    assert "own.json" in boosters_eval("baseline", "check", "own.json", *mine, "-q", check=0).stdout


def test_folds_replace_the_random_splits_of_a_suite(boosters_eval, mine, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_SEEDS", "9")  # the option comes first
    done = boosters_eval("run", *mine, "--cv", "3x2", "--dry-run", check=0)
    assert planned(done.stdout) == {"own": 6, "usual": 6}
    both = boosters_eval("run", *mine, "--cv", "3", "--seeds", "2", "--dry-run", check=3)
    assert "either --cv or --seeds" in both.stderr
    with pytest.raises(ConfigError, match="either 'cv' or 'seeds'"):
        prepare_suite("quick", 2, cv=3)


def test_a_library_runs_where_a_benchmark_of_the_suite_was_made_for_it(boosters_eval):
    done = boosters_eval("run", "--suite", "full", "-l", "sklearn", "--dry-run", check=0)
    assert done.stderr == ""
    assert "unsupported" not in done.stdout
    assert {name.partition("/")[2] for name in planned(done.stdout)} == {"gbdt"}


def test_a_preview_of_auto_shows_the_seeds_that_it_begins_with(boosters_eval):
    auto = ["compare", "-d", "iris", "-l", "faulty", "--seeds", "auto", "--dry-run"]
    done = boosters_eval(*auto, "--max-seeds", "12", check=0)
    assert planned(done.stdout) == {"iris/gbdt": 5}
    assert "begins with the 5 seeds shown here, and adds more, up to 12, as needed" in done.stderr
    assert "'--budget' option must be a time such as" in boosters_eval(*auto, "--budget", "10x", check=3).stderr
    suite = boosters_eval("run", "-l", "sklearn", "--seeds", "auto", "--dry-run", check=0)
    assert set(planned(suite.stdout).values()) == {5}
    assert "begins with the 5 seeds shown here, and adds more, up to 50, as needed" in suite.stderr


def test_a_quiet_run_without_results_says_why(boosters_eval):
    failing = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "2", "-p", "max_depth=3", "-f", "csv", "-q"]
    done = boosters_eval(*failing, check=2)
    assert done.stderr.startswith("Error: 2 of 2 cells failed; the first, diabetes/gbdt faulty, seed 42: ")
    assert [line["status"] for line in csv.DictReader(io.StringIO(done.stdout))] == ["error", "error"]


def test_the_shortcuts_take_libraries(boosters_eval, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_BASELINE_DIR", str(REPOSITORY / "tests" / "baselines"))
    for suite in ("quick", "full"):
        done = boosters_eval(suite, "--library", "sklearn", "--dry-run", check=0)
        assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  ")} == {"sklearn"}


def test_record_goes_on_without_the_pairs_that_failed(boosters_eval, place, mine):
    """The healthy config is recorded, and the file says what it lacks."""
    (place / "mine.py").write_text(
        SUITE.replace('config("usual", 7)', 'config("usual", 7).replace(training={"max_depth": 3})')
    )
    refused = boosters_eval("baseline", "record", *mine, "partial.json", check=2)
    assert "No baseline was recorded: faulty on usual" in refused.stderr
    assert not (place / "partial.json").exists()
    done = boosters_eval("baseline", "record", *mine, "partial.json", "--continue-on-error", "-q", check=0)
    assert "the baseline lacks faulty on usual" in done.stderr
    recorded = load_baseline(place / "partial.json")
    assert [result.config for result in recorded.results] == ["own"]
    assert [(item.config, item.library) for item in recorded.absent] == [("usual", "faulty")]


def test_a_dry_run_of_a_report_on_a_suite_runs_nothing(boosters_eval, place, mine):
    done = boosters_eval("report", *mine, "--seeds", "1", "--dry-run", check=0)
    assert "2 cells" in done.stdout
    assert "the report would be written to docs/benchmarks." in done.stderr
    assert not (place / "docs").exists()
    assert not list((place / "home").glob("runs/*/journal.jsonl"))


def test_a_report_on_a_suite_says_more_on_request(boosters_eval, mine):
    """More is: the native parameters, and for each cell its outcome and its phases."""
    done = boosters_eval("report", *mine, "--seeds", "1", "--verbose", "-o", "out.md", check=0)
    lines = done.stderr.splitlines()
    assert any(line.startswith("own faulty: ") for line in lines)  # native parameters
    (outcome,) = [line for line in lines if line.startswith("own faulty seed 42: ")]
    assert "trained in" in outcome
    assert all(f"{phase} " in outcome for phase in ("load", "build", "fit", "predict", "score"))
    assert "either --verbose or --quiet" in boosters_eval("report", *mine, "-v", "-q", check=3).stderr


def test_a_json_report_can_be_checked_against(boosters_eval, mine):
    boosters_eval("report", *mine, "--seeds", "1", "--format", "json", "-o", "out", "-q", check=0)
    (path,) = Path("out").glob("*.json")
    boosters_eval("run", *mine, "--seeds", "1", "-o", "now.json", "-q", check=0)
    done = boosters_eval("baseline", "check", str(path), "--results", "now.json", "-q", check=0)
    assert "No regression" in done.stdout
    worse = json.loads(Path("now.json").read_text())
    for result in worse["results"]:
        result["metrics"]["rmse"] *= 2
    Path("worse.json").write_text(json.dumps(worse))
    boosters_eval("baseline", "check", str(path), "--results", "worse.json", "-q", check=1)
    same = boosters_eval("baseline", "check", "now.json", "--results", str(path), "-q", check=0)
    assert "No regression" in same.stdout
