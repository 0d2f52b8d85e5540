"""Reports from Python."""

import json
from typing import get_args

import pytest

import factories
from boosters_eval import ConfigError, RunError, write_report
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.data import ReportType
from boosters_eval.programs.report.request import TYPES


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = factories.grid(lambda config, library, index: 1.0 + index / 100, seeds=3)
    path = tmp_path / "results.json"
    ResultCollection(rows, suite="toy").to_json(path)
    return path


def test_a_report_is_written_in_all_formats_or_in_one_file(tmp_path, results):
    made = write_report(results=results, output="out")
    assert sorted(path.suffix for path in made.paths) == [".html", ".json", ".md"]
    assert all(path.is_file() for path in made.paths)
    (path,) = write_report(results=results, output=tmp_path / "one.tex").paths
    assert "\\begin{tabular}" in path.read_text()
    (path,) = write_report(results=str(results), output=tmp_path / "one.json", report_type="comparison").paths
    assert json.loads(path.read_text())["data"]["report_type"] == "comparison"


def test_a_suite_is_run_with_the_settings_of_any_run(home, tmp_path, kept_pool):
    made = write_report("minimal", libraries="sklearn", seeds=1, name="reported", jobs=1, output=tmp_path / "s.md")
    assert made.results.metadata.facts.name == "reported"
    again = write_report(run="reported", output=tmp_path / "r.md")
    assert again.results.run_id == made.results.run_id


def test_a_suite_in_which_everything_failed_is_an_error(home, tmp_path, kept_pool):
    with pytest.raises(RunError, match=r"^Each of the \d+ cells of run \w+ failed"):
        write_report("minimal", libraries="sklearn", seeds=1, timeout=1e-4, output=tmp_path / "s.md")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "Use exactly one of 'suite', 'run' and 'results' to choose what to report on."),
        ({"run": "last", "track": "mlflow"}, "Use either 'track' or an earlier run, not both: track_run() sends that."),
        ({"suite": "quick", "resume": True, "rerun_failed": True}, "Use either 'resume' or 'rerun_failed', not both."),
        (
            {"run": "last", "report_type": "x"},
            "The 'report_type' parameter must be quality, performance or comparison.",
        ),
        ({"run": "last", "output": "x.csv"}, "The 'output' parameter must be a folder, or end in .md, .json, .html or"),
        ({"run": "last", "speed": 1}, "write_report() has no parameter 'speed'."),
    ],
)
def test_a_mistake_names_the_parameter(given, told, home):
    with pytest.raises(ConfigError) as caught:
        write_report(**given)
    assert str(caught.value).startswith(told)


def test_the_request_knows_the_types_of_reports():
    assert get_args(ReportType) == TYPES
