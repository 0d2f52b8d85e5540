"""`paper compare`, `paper report` and `paper validate`: files, exit codes and messages."""

import json
from pathlib import Path

import pytest
import yaml

from boosters_eval import WORKLOADS
from boosters_eval.cli.app import run
from boosters_eval.programs.paper.evaluate import Evaluate
from factories import measured, paper_results

SPEC = """\
paper: A Paper
tables:
  - id: Table 4
    results:
      - {model: XGBoost, dataset: Adult, metrics: {accuracy: PRINTED}}
reproduction_targets:
  primary: [{table: Table 4}]
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A specification and results in the current folder; the paper's value and the run can be chosen."""
    monkeypatch.chdir(tmp_path)

    def write(printed="0.874", **changes):
        Path("benchmarks.yaml").write_text(SPEC.replace("PRINTED", printed))
        Path("results.json").write_text(paper_results(measured(**changes)).model_dump_json())

    write()
    return write


def compare(*more):
    return run(["paper", "compare", "--results", "results.json", "--paper", "benchmarks.yaml", *more])


@pytest.mark.parametrize(
    ("printed", "changes", "code", "shown"),
    [
        (
            "0.874",
            {},
            0,
            "✓ Reproduction Successful: 1 of 1 primary value is within tolerance of the paper's (exit code 0).",
        ),
        ("0.800", {}, 1, "▲ Better, outside tolerance"),
        (
            "0.990",
            {},
            1,
            "✗ Not Reproduced: 1 of 1 primary value is outside tolerance, by 10 % or more (exit code 1).",
        ),
        (
            "0.874",
            {"status": "failed", "reason": "It crashed."},
            2,
            "? Incomplete, so nothing is decided: 1 of 1 primary value is missing (exit code 2).",
        ),
        ("0.874", {"planned": 9}, 2, "1 of 1 primary value is missing (exit code 2)"),
    ],
)
def test_the_exit_code_says_whether_every_primary_target_is_within_tolerance(
    files, capsys, printed, changes, code, shown
):
    files(printed, **changes)
    assert compare() == code
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--output", "x.pdf"],
            "The '--output' option must end in .yaml, .json, .md, .txt, .html or .tex unless --format is given.",
        ),
        (["--format", "yam"], "must be yaml, json, markdown, html or latex. Got 'yam' instead. Did you mean 'yaml'?"),
        (
            ["--results", "benchmarks.yaml"],
            "must be what 'paper run' writes, of the kind 'boosters-eval paper results'",
        ),
        (
            ["--paper", "results.json"],
            "results.json, line 1, key 'kind': This is a 'boosters-eval paper results' file, not a specification.",
        ),
        (["--results", "none.json"], "none.json does not exist."),
    ],
)
def test_a_bad_file_or_option_is_one_sentence_and_exit_code_3(files, capsys, arguments, sentence):
    assert compare(*arguments) == 3
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_what_is_missing_is_said_even_if_quiet(files, capsys):
    files(status="failed", reason="It crashed.")
    assert compare("-q") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Error: Table 4, XGBoost, Adult: Accuracy (? Missing): It crashed.\n"


def test_a_comparison_is_written_and_reported_in_every_format(files, capsys):
    assert compare("--output", "comparison.yaml") == 0
    assert yaml.safe_load(Path("comparison.yaml").read_text())["verdict"] == "reproduced"
    for name in ("report.md", "report.html", "report.json"):
        assert run(["paper", "report", "--comparison", "comparison.yaml", "--output", name]) == 0
    assert Path("report.md").read_text().startswith("# Benchmark Validation Report\n")
    assert Path("report.html").read_text().startswith("<!doctype html>")
    assert json.loads(Path("report.json").read_text())["files"] == ["results.json", "comparison.yaml"]
    capsys.readouterr()
    assert run(["paper", "report", "--comparison", "report.json"]) == 0
    assert capsys.readouterr().out == Path("report.md").read_text()


def test_a_report_is_written_whatever_its_verdict(files):
    files("0.990")
    assert compare("--output", "comparison.json", "-q") == 1
    assert run(["paper", "report", "--comparison", "comparison.json", "--output", "report.md"]) == 0
    assert "✗ Not Reproduced" in Path("report.md").read_text()


def test_an_edited_verdict_is_not_reported(files, capsys):
    files("0.990")
    compare("--output", "comparison.yaml", "-q")
    path = Path("comparison.yaml")
    path.write_text(path.read_text().replace("verdict: not reproduced", "verdict: reproduced"))
    assert run(["paper", "report", "--comparison", "comparison.yaml"]) == 3
    assert "comparison.yaml: The 'verdict' does not follow from the targets" in capsys.readouterr().err


@pytest.fixture
def evaluated(files, tmp_path, monkeypatch, kept_pool):
    """Rows that are functions of a module beside the specification."""
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    WORKLOADS.register("evaluate", Evaluate, replace=True)
    Path("mine.py").write_text(
        "def good(seed=0):\n    return {'accuracy': 0.874 + seed % 3 / 10000}\n\n"
        "def bad(seed=0):\n    return {'accuracy': float('nan')}\n"
    )

    def validate(function, *more):
        binding = f"    models: [{{name: XGBoost, run: {{callable: 'mine:{function}'}}}}]\n    results:"
        Path("benchmarks.yaml").write_text(SPEC.replace("PRINTED", "87.4").replace("    results:", binding))
        return run(["paper", "validate", "--spec", "benchmarks.yaml", "--seeds", "3", *more])

    return validate


def test_validate_runs_compares_and_reports(evaluated, capsys):
    assert evaluated("good", "--output", "out") == 0
    written = [
        "benchmark_report.html",
        "benchmark_report.json",
        "benchmark_report.md",
        "comparison.yaml",
        "results.json",
    ]
    assert sorted(path.name for path in Path("out").iterdir()) == written
    assert "✓ Reproduction Successful" in capsys.readouterr().out
    report = Path("out/benchmark_report.md").read_text()
    assert "- out/comparison.yaml\n" in report
    assert run(["paper", "compare", "--results", "out/results.json", "--paper", "benchmarks.yaml", "-q"]) == 0
    assert run(["paper", "report", "--comparison", "out/comparison.yaml", "--output", "again.md"]) == 0
    assert Path("again.md").read_text() == report


def test_a_value_that_is_not_finite_never_passes(evaluated, capsys):
    assert evaluated("bad", "-q") == 2
    assert "must be finite" in capsys.readouterr().err
    assert "**Overall:** ? Incomplete" in Path("results/benchmark_report.md").read_text()


def test_validate_refuses_a_bad_specification_before_it_runs_anything(files, capsys):
    Path("benchmarks.yaml").write_text(SPEC)
    assert run(["paper", "validate", "--spec", "benchmarks.yaml"]) == 3
    assert (
        "benchmarks.yaml, line 5, key 'metrics.accuracy': A metric must have a number as its value."
        in capsys.readouterr().err
    )
    assert not Path("results").exists()


def test_results_go_into_a_folder_and_not_into_a_file(files, capsys):
    assert run(["paper", "validate", "--spec", "benchmarks.yaml", "--output", "report.html"]) == 3
    assert "The '--output' option must be a folder" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_a_specification_without_targets_is_listed_with_what_is_to_be_done(files, capsys):
    files()
    text = Path("benchmarks.yaml").read_text()
    Path("benchmarks.yaml").write_text(text.partition("reproduction_targets")[0])
    assert run(["paper", "list", "benchmarks.yaml"]) == 0
    assert "benchmarks.yaml: A Paper\nIt has no targets yet. Name what to reproduce under" in capsys.readouterr().out
