"""The report command, run as a person runs it."""

import json
import re
import webbrowser

import pytest

import factories
from boosters_eval.cli.app import run
from boosters_eval.programs.benchmark.records import RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection


def results(count=3):
    means = {"boosters": 1.0, "xgboost": 1.5}
    return factories.grid(lambda config, library, index: means[library] + index / 100, seeds=count, train_time_s=0.1)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty directory outside any repository, with a results file beside it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    ResultCollection(results(), suite="toy").to_json(tmp_path / "results.json")
    return here


def source(place):
    return str(place.parent / "results.json")


def test_three_files_are_written_to_docs_benchmarks(place, capsys):
    assert run(["report", "--results", source(place), "--type", "comparison"]) == 0
    names = sorted(path.name for path in (place / "docs" / "benchmarks").iterdir())
    assert [name[10:] for name in names] == [
        "-nogit-toy-comparison-report.html",
        "-nogit-toy-comparison-report.json",
        "-nogit-toy-comparison-report.md",
    ]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("Written: ") == 3


def test_format_and_directory_can_be_chosen(place, capsys):
    assert run(["report", "--results", source(place), "-o", "out", "-f", "json", "-q"]) == 0
    (path,) = (place / "out").iterdir()
    assert json.loads(path.read_text())["data"]["report_type"] == "quality"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "start"),
    [
        (["-o", "z.html", "-f", "html"], "<!doctype html>"),
        (["-o", "z.html"], "<!doctype html>"),
        (["-o", "z.JSON"], "{"),
        (["-o", "z.txt"], "# Quality report"),
        (["-o", "z.html", "-f", "markdown"], "# Quality report"),
    ],
)
def test_a_file_is_written_where_one_is_named(place, capsys, options, start):
    assert run(["report", "--results", source(place), *options]) == 0
    (path,) = place.iterdir()
    assert path.name == options[1]
    assert path.read_text().startswith(start)
    assert capsys.readouterr().err == f"Written: {path.name}\n"


def test_a_folder_that_exists_is_one_whatever_its_name(place):
    (place / "z.html").mkdir()
    assert run(["report", "--results", source(place), "-o", "z.html", "-q"]) == 0
    assert len(list((place / "z.html").iterdir())) == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["-o", "z.html", "-f", "md,html"],
            "The '--output' option must be a folder for several formats (md, html). Got 'z.html' instead.",
        ),
        (
            ["-o", "z.csv"],
            "The '--output' option must be a folder, or end in .md, .json, .html or .tex. Got 'z.csv' instead.",
        ),
        (
            ["-o", "t.pdf"],
            "The '--output' option must be a folder, or end in .md, .json, .html or .tex. Got 't.pdf' instead.",
        ),
    ],
)
def test_a_file_for_what_no_single_file_holds_is_refused(place, capsys, options, sentence):
    assert run(["report", "--results", source(place), *options]) == 3
    assert capsys.readouterr().err == f"Error: {sentence}\n"
    assert not list(place.iterdir())


def test_dry_run_shows_the_report_and_writes_nothing_at_all(place, capsys):
    before = sorted(place.parent.rglob("*"))
    assert run(["report", "--results", source(place), "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("# Quality report: toy suite: boosters and xgboost on toy\n")
    assert "Would write: docs/benchmarks/" in said.err
    assert sorted(place.parent.rglob("*")) == before


def test_dry_run_of_a_suite_shows_what_would_run_and_runs_nothing(place, capsys):
    assert run(["report", "--suite", "minimal", "--library", "sklearn", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert "cells, " in said.out
    assert "Note: the report would be written to docs/benchmarks.\n" in said.err
    assert not list(place.iterdir())
    assert run(["runs", "list"]) == 0
    assert "there are no runs" in capsys.readouterr().err


def test_the_test_can_be_the_rfcs(place):
    assert run(["report", "--results", source(place), "--test", "welch", "-f", "json", "-o", "out"]) == 0
    (path,) = (place / "out").iterdir()
    assert json.loads(path.read_text())["data"]["test"] == "welch"


@pytest.mark.parametrize(("recorded", "used"), [(0.01, 0.01), (None, 0.05)])
def test_the_level_is_that_of_the_run_where_it_has_one(place, recorded, used):
    ResultCollection(results(), metadata=RunMetadata(alpha=recorded)).to_json(place / "own.json")
    assert run(["report", "--results", "own.json", "-f", "json", "-o", "out"]) == 0
    assert json.loads(next((place / "out").iterdir()).read_text())["alpha"] == used


def test_open_shows_the_page(place, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    assert run(["report", "--results", source(place), "--open"]) == 0
    assert opened[0].endswith("-quality-report.html")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "exactly one of --suite, --run and --results"),
        (["--suite", "quick", "--run", "last"], "exactly one of --suite, --run and --results"),
        (["--results", "missing.json"], "missing.json does not exist"),
        (["--suite", "quik"], "Did you mean 'quick'"),
        (["--run", "0000"], "No run '0000'"),
        (
            ["--results", "RESULTS", "--type", "speed"],
            "The '--type' option must be quality, performance or comparison.",
        ),
        (
            ["--results", "RESULTS", "--format", "pdf"],
            "The '--format' option must be md, markdown, json, html, latex or",
        ),
        (["--results", "RESULTS", "--format", ","], "The '--format' option must be md, markdown, json, html, latex or"),
        (["--results", "RESULTS", "--test", "welsh"], "Did you mean 'welch'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_3(place, capsys, arguments, sentence):
    given = [source(place) if word == "RESULTS" else word for word in arguments]
    assert run(["report", *given]) == 3
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"kind": "other"}', "\x00\x01", '{"kind": "boosters-eval results"}']
)
def test_a_file_that_is_no_results_file_is_refused(place, capsys, content):
    (place / "bad.json").write_text(content)
    assert run(["report", "--results", "bad.json"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_results_file_without_outcomes_is_exit_2(place, capsys):
    ResultCollection().to_json(place / "empty.json")
    assert run(["report", "--results", "empty.json"]) == 2
    assert "no cell has an outcome" in capsys.readouterr().err


def test_errors_alone_are_reported_with_exit_2(place):
    ResultCollection(errors=[factories.error(error_type="Crash")]).to_json(place / "errors.json")
    assert run(["report", "--results", "errors.json", "-f", "md", "-o", "out"]) == 2
    assert "Crash" in next((place / "out").iterdir()).read_text()


def test_an_output_that_is_no_directory_is_refused_before_any_work(place, capsys):
    (place / "file").write_text("x")
    assert run(["report", "--suite", "quick", "-o", "file"]) == 3
    assert "Cannot write file/" in capsys.readouterr().err
    assert not (place.parent / "home" / "runs").exists()


def test_a_suite_is_run_and_then_found_again_by_its_run(place, kept_pool, capsys):
    assert run(["report", "--suite", "minimal", "--library", "boosters", "--seeds", "2", "-f", "json", "-o", "a"]) == 0
    assert run(["report", "--run", "last", "-f", "json", "-o", "b"]) == 0
    first, second = (json.loads(next((place / name).iterdir()).read_text()) for name in "ab")
    assert first["data"]["environment"]["machine"]
    for document in (first, second):
        del document["data"]["environment"]["timestamp"]
        document["environment"] = [row for row in document["environment"] if row[0] != "Date"]
    assert first == second
    assert first["data"]["n_results"] > 0


SUITE = ["report", "--suite", "minimal", "--library", "sklearn", "--seeds", "1", "-f", "json"]


def test_a_suite_has_the_options_of_every_run(place, kept_pool, capsys):
    assert run([*SUITE, "--name", "mine", "--observer", "lines", "--verbose", "--memory-limit", "4096"]) == 0
    said = capsys.readouterr()
    assert "sklearn: " in said.err  # its parameters, and each outcome
    assert run(["runs", "show", "mine"]) == 0
    assert re.search(r"^name +mine$", capsys.readouterr().out, re.MULTILINE)
    (path,) = (place / "docs/benchmarks").iterdir()
    first = json.loads(path.read_text())
    assert run([*SUITE, "--resume"]) == 0
    assert json.loads(path.read_text())["data"]["n_results"] == first["data"]["n_results"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--resume", "--rerun-failed"], "Use either --resume or --rerun-failed, not both."),
        (["--verbose", "--quiet"], "Use either --verbose or --quiet, not both."),
        (["--jobs", "0"], "The '--jobs' option must be a count from 1 to 4096. Got '0' instead."),
        (["--workers", "2"], "The '--workers' option needs --executor dask. Got 'local' instead."),
        (["--name", "last"], "The '--name' option must be up to 64 letters"),
    ],
)
def test_its_options_are_refused_in_the_same_sentences(place, capsys, options, sentence):
    assert run([*SUITE, *options]) == 3
    assert capsys.readouterr().err.startswith(f"Error: {sentence}")
