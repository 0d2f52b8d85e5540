"""Runs from Python: listed, shown, opened and removed, in any home."""

import webbrowser
from datetime import timedelta

import numpy as np
import pytest

from boosters_eval import ConfigError, list_runs, open_run, prune_runs, remove_runs, show_run
from boosters_eval.engine.artifacts import save_array
from written_runs import SEEDS, written_run


@pytest.fixture
def runs(tmp_path):
    return [
        written_run(tmp_path, 1, facts={"name": "first", "command": ("compare", "-d", "diabetes")}),
        written_run(tmp_path, 2, version="1.1", failed=SEEDS[:1]),
    ]


def test_all_are_listed_and_one_is_shown(tmp_path, runs):
    found = list_runs(home=tmp_path)
    assert {run.run_id for run in found.runs} == {folder.run_id for folder in runs}
    assert len(list_runs(1, home=str(tmp_path)).runs) == 1
    shown = show_run("first", home=tmp_path)
    assert (shown.run.run_id, shown.run.done, shown.data) == (runs[0].run_id, 6, "diabetes")
    assert [attempt["state"] for attempt in shown.attempts] == ["finished"]
    assert shown.next["verify"] == f"boosters-eval verify {runs[0].run_id}"


def test_an_attempt_is_shown_by_its_number_but_not_removed_alone(tmp_path, runs):
    written_run(tmp_path, 3, failed=SEEDS[:2])
    run_id = runs[0].run_id
    assert [show_run(f"{run_id}/{number}", home=tmp_path).run.done for number in (1, 2)] == [6, 4]
    with pytest.raises(ConfigError, match=f"^Runs are removed with all their attempts: use '{run_id}'."):
        remove_runs(f"{run_id}/1", home=tmp_path)


def test_a_page_is_written_into_the_run_and_opened_if_wanted(tmp_path, runs, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    page = open_run("first", browser=False, home=tmp_path)
    assert page.path == runs[0].path / "report.html"
    assert opened == []
    open_run("first", home=tmp_path)
    assert opened == [page.path.as_uri()]


def test_removal_asks_nobody_but_can_be_previewed(tmp_path, runs):
    previewed = remove_runs(older_than=timedelta(0), dry_run=True, home=tmp_path)
    assert (len(previewed.things), previewed.removed) == (2, ())
    assert remove_runs(older_than="1w", home=tmp_path).things == ()
    assert remove_runs("first", home=tmp_path).removed == (runs[0].run_id,)
    assert [folder.name for folder in (tmp_path / "runs").iterdir()] == [runs[1].run_id]


def test_predictions_are_pruned_alone_and_their_size_is_listed(tmp_path, runs):
    for folder in runs:
        save_array(folder.predictions, np.zeros(109))
    assert [run.predictions for run in list_runs(home=tmp_path).runs] == [1000, 1000]
    assert [row["prediction_bytes"] for row in list_runs(home=tmp_path).to_model()] == [1000, 1000]
    before = show_run("first", home=tmp_path).run.size
    assert prune_runs("first", predictions=True, home=tmp_path).removed == (runs[0].run_id,)
    assert before - 1000 < show_run("first", home=tmp_path).run.size < before  # which now records what is gone
    assert prune_runs(predictions=True, older_than="1w", home=tmp_path).things == ()
    assert prune_runs(predictions=True, home=tmp_path).removed == (runs[1].run_id,)
    assert [(run.predictions, run.done + run.failed) for run in list_runs(home=tmp_path).runs] == [(0, 6), (0, 6)]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (prune_runs, "Say what to remove: use 'predictions'."),
        (lambda: prune_runs("last", predictions=True, older_than="1w"), "Use either 'references' or 'older_than', not"),
        (remove_runs, "Use either 'references' or 'older_than' to choose what to remove."),
        (lambda: remove_runs(older_than="3y"), "The 'older_than' parameter must be a time such as 12h, 30d or 8w."),
        (lambda: list_runs(0), "The 'limit' parameter must be a count of at least 1. Got 0 instead."),
        (lambda: show_run(3), "The 'reference' parameter must be a run's id, the beginning of one, its name, or"),
        (lambda: open_run(home=3), "The 'home' parameter must be a path. Got 3 instead."),
    ],
)
def test_a_mistake_names_the_parameter(call, told):
    with pytest.raises(ConfigError) as caught:
        call()
    assert str(caught.value).startswith(told)
