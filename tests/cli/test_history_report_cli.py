"""The commands `history diff` and `history report`."""

import json

import pytest

from boosters_eval.cli.app import run
from boosters_eval.programs.history import query
from boosters_eval.programs.history.report import HistoryReport
from histories import a_history, a_series, an_entry
from written_runs import SEEDS, written_run


@pytest.fixture
def known(monkeypatch, tmp_path):
    """A history of runs that were never carried out."""
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    series = [*a_history(24, targets=("boosters",))]
    entries = {one.entry.run_id: one.entry for one in series}
    monkeypatch.setattr(query, "read_series", lambda wanted, home=None, per_line=None: iter(series))
    monkeypatch.setattr(query, "find_run", lambda reference, home=None, parameter="": entries[reference])
    measured = lambda entry: [one for one in series if one.entry.run_id == entry.run_id]  # noqa: E731
    monkeypatch.setattr(query, "read_run", lambda entry, home=None: (measured(entry), {}))


def test_a_difference_names_both_runs_and_how_they_were_compared(known, capsys):
    assert run(["history", "diff", "run00000", "run00023"]) == 0
    said = capsys.readouterr().out
    assert "Before: run run00000 of 2026-01-05 09:00" in said
    assert "After: run run00023" in said
    assert "on the same 5 splits" in said
    assert "worse" in said


@pytest.mark.parametrize(
    ("kind", "start"),
    [("md", "# run00023 against run00000"), ("html", "<!doctype html>"), ("csv", "table,"), ("json", "{")],
)
def test_a_difference_is_written_in_each_format(known, kind, start, tmp_path, capsys):
    file = tmp_path / f"out.{kind}"
    assert run(["history", "diff", "run00000", "run00023", "-o", str(file)]) == 0
    assert file.read_text().startswith(start)
    assert run(["history", "diff", "run00000", "run00023", "--format", kind]) == 0
    assert capsys.readouterr().out == file.read_text()


def test_a_report_is_written_in_each_format(known, tmp_path, capsys):
    file = tmp_path / "out.html"
    assert run(["history", "report", "-o", str(file)]) == 0
    assert "<h1>History</h1>" in file.read_text()
    assert capsys.readouterr().err == f"Written: {file}\n"
    assert run(["history", "report"]) == 0
    assert capsys.readouterr().out.startswith("# History\n\n## Answer\n\n2 changes in 2 of 3 series, ")
    assert run(["history", "report", "--format", "csv"]) == 0
    assert "california/gbdt,boosters,RMSE," in capsys.readouterr().out
    assert run(["history", "report", "--format", "latex"]) == 0
    assert "\\begin{" in capsys.readouterr().out
    assert run(["history", "report", "--format", "json"]) == 0
    found = HistoryReport.model_validate(json.loads(capsys.readouterr().out))
    assert sum(len(line.steps) for line in found.lines) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--format", "xml"], "The '--format' option must be markdown, json, csv, html or latex. Got 'xml' instead."),
        (
            ["-o", "x.pdf"],
            "The '--output' option must end in .md, .txt, .json, .csv, .html or .tex unless --format is given.",
        ),
    ],
)
def test_another_format_is_refused(options, sentence, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path))
    assert run(["history", "report", *options]) == 3
    assert sentence in capsys.readouterr().err


def test_an_empty_history_is_a_sentence_and_no_success(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    assert run(["history", "report", "-o", str(tmp_path / "page.html")]) == 2
    assert "There is nothing to report: there are no runs in" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_runs_without_a_common_benchmark_are_refused(known, monkeypatch, capsys):
    other = [a_series([0.5], entry=an_entry(1), config="other")]
    found = query.read_run
    monkeypatch.setattr(
        query, "read_run", lambda entry, home=None: (other, {}) if entry.run_id == "run00001" else found(entry)
    )
    assert run(["history", "diff", "run00000", "run00001"]) == 3
    assert "share no benchmark" in capsys.readouterr().err


def test_runs_in_which_everything_failed_are_told_as_such(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path))
    for day in (1, 2):
        written_run(tmp_path, day, version=f"1.{day}", failed=SEEDS, facts={"name": f"run-{day}"})
    assert run(["history", "report"]) == 2
    assert "There is nothing to report: all cells failed in every run that is meant." in capsys.readouterr().err
    assert run(["history", "diff", "run-1", "run-2"]) == 3
    assert "has a number: all cells failed." in capsys.readouterr().err
