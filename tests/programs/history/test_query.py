"""The history from Python: the same questions as on the command line, in any home."""

import json
from datetime import UTC, datetime

import pytest

from boosters_eval import (
    ConfigError,
    RunError,
    compare,
    diff_runs,
    export_history,
    import_history,
    list_history,
    reindex_history,
    report_history,
    show_history,
)
from boosters_eval.core.terms import listen
from boosters_eval.programs.history import index
from boosters_eval.programs.history.compare import compare_series
from boosters_eval.programs.history.query import find_run, read_run
from written_runs import written_run


@pytest.fixture
def runs(tmp_path):
    """Two nights: the second is worse."""
    return [written_run(tmp_path, 1, 0.5, facts={"name": "first"}), written_run(tmp_path, 2, 0.6, version="1.1")]


def test_runs_are_listed_with_what_changed(tmp_path, runs):
    found = list_history(home=tmp_path)
    assert [run.entry.run_id for run in found.runs] == [folder.run_id for folder in reversed(runs)]
    assert [run.changes[0].verdict for run in found.runs] == ["worse", "first"]
    assert (len(list_history(limit=1, home=tmp_path).runs), list_history(limit=1, home=tmp_path).count) == (1, 2)
    assert list_history(libraries="Boosters", datasets="Diabetes", home=tmp_path).count == 2
    assert list_history(datasets="nope", home=tmp_path).nothing == "no run in the history has the data set 'nope'."
    assert show_history("first", home=tmp_path).entry.name == "first"


LINE = """
import numpy as np
from boosters_eval.runners.base import Runner, Translation


class Line(Runner):
    name, module, distributions, install = "line", "numpy", ("numpy",), "numpy"

    @classmethod
    def unsupported(cls, request):
        return None

    @classmethod
    def translate(cls, request):
        return Translation(request, {})

    @classmethod
    def build(cls, translation, data):
        return data

    @classmethod
    def fit(cls, translation, data):
        center = data.x.mean(axis=0), data.y.mean()
        return *center, np.linalg.lstsq(data.x - center[0], data.y - center[1], rcond=None)[0]

    @classmethod
    def predict(cls, translation, model, x):
        return model[1] + SHRUNK * ((x - model[0]) @ model[2])
"""


def test_a_listing_takes_the_rows_as_a_difference_does(home, tmp_path):
    library, runs = tmp_path / "line.py", []
    for shrunk in ("1.0", "0.7"):
        library.write_text(LINE.replace("SHRUNK", shrunk))
        runs.append(compare("diabetes", f"{library}:Line", seeds=5, jobs=1).run_id)
    (change,) = [change for change in list_history().runs[0].changes if change.metric == "rmse"]
    assert change.verdict == diff_runs(*runs, metrics="rmse").changes[0].verdict == "worse"
    before, after = (next(one for one in read_run(find_run(run))[0] if one.metric == "rmse") for run in runs)
    assert compare_series(before, after).verdict == "inconclusive"  # by splits alone


def test_a_listing_and_a_run_are_documents_too(tmp_path, runs):
    listing, run = list_history(limit=1, home=tmp_path), show_history("last", home=tmp_path)
    assert "| against the run before" in listing.to_markdown()
    assert "These are the latest 1 of 2 runs; 'limit' shows more." in listing.to_markdown()
    assert '<span class="verdict worse">worse</span>' in run.to_html()
    assert f"# Run {runs[1].run_id}\n" in run.to_markdown()
    assert json.loads(listing.to_json())[0]["run_id"] == json.loads(run.to_json())["run_id"] == runs[1].run_id


@pytest.mark.parametrize("since", ["2026-01-02", "2026-01-02T00:00:00+00:00", datetime(2026, 1, 2, tzinfo=UTC)])
def test_a_beginning_can_be_a_date(tmp_path, runs, since):
    assert [run.entry.run_id for run in list_history(since=since, home=tmp_path).runs] == [runs[1].run_id]


def test_a_beginning_can_be_a_span(tmp_path, runs):
    assert len(list_history(since="999999h", home=tmp_path).runs) == 2
    assert list_history(since="1h", home=tmp_path).runs == ()


def test_two_runs_are_compared_and_all_are_reported(tmp_path, runs):
    found = diff_runs("first", "last", metrics="rmse", home=tmp_path)
    assert [change.verdict for change in found.changes] == ["worse"]
    assert found.render("markdown").startswith(f"# {runs[1].run_id}")
    assert report_history(home=tmp_path).render("html").startswith("<!doctype html>")
    with pytest.raises(RunError, match="There is nothing to report: no run in the history has the suite 'x'"):
        report_history("x", home=tmp_path)


def test_what_is_exported_can_be_imported_elsewhere(tmp_path, runs):
    file = tmp_path / "out" / "all.json"
    assert export_history(file, home=tmp_path).count == 2
    (tmp_path / "none.json").write_text("{}")
    found = import_history([file, tmp_path / "none.json"], home=tmp_path / "other")
    assert [(one.added, bool(one.fault)) for one in found.files] == [(2, False), (0, True)]
    assert found.exit_code == 3
    assert reindex_history(home=tmp_path / "other").runs == 2
    parts = []
    export_history(format="csv", home=tmp_path / "other").pour(parts.append)
    assert len("".join(parts).splitlines()) == 3
    assert len(json.loads(file.read_text())["runs"]) == 2


def test_a_long_reading_is_told(tmp_path, runs, monkeypatch):
    monkeypatch.setattr(index, "_AT_A_TIME", 1)
    said = []
    with listen(said.append):
        reindex_history(home=tmp_path)
    assert said == ["Reading runs: 1 of 2..."]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: list_history(since="yesterday"), "The 'since' parameter must be a date such as 2026-01-31, or a time"),
        (lambda: list_history(since=5), "The 'since' parameter must be a date such as 2026-01-31, or a time"),
        (lambda: list_history(limit=0), "The 'limit' parameter must be a count of at least 1. Got 0 instead."),
        (lambda: show_history("last/x"), "The 'reference' parameter must be a run id, the beginning of one, a name"),
        (lambda: diff_runs("last", "@"), "The 'after' parameter must be a run id, the beginning of one, a name"),
        (lambda: export_history("x.md"), "The 'output' parameter must end in .json or .csv unless 'format' is given."),
        (lambda: list_history(machines="x"), "list_history() got an unexpected keyword argument"),
    ],
)
def test_a_mistake_names_the_parameter(call, told, tmp_path, runs, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path))
    with pytest.raises((ConfigError, TypeError)) as caught:
        call()
    assert str(caught.value).startswith(told)


def test_a_difference_of_what_nobody_measured_names_the_parameter(tmp_path, runs):
    with pytest.raises(ConfigError, match=r"^The 'metrics' parameter must name what both runs measured: "):
        diff_runs("first", "last", metrics=["mape"], home=tmp_path)
