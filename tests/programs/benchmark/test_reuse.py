"""Finished cells of earlier runs are taken over by content, and only where nothing could differ."""

import shutil

import pytest

import damaged_runners
from boosters_eval import compare
from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.engine.artifacts import locate_array
from boosters_eval.programs.benchmark import reuse
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.parameters import TrainingConfig

TRAINING = TrainingConfig(n_estimators=5, max_depth=3)


@pytest.fixture
def run(tmp_path):
    """Two libraries on one small data set, in a home of its own."""

    def compared(**options):
        given = {"reuse": True, "seeds": 2, "training": TRAINING, "home": tmp_path / "home", **options}
        return compare(["diabetes"], ["lightgbm", "sklearn"], **given)

    return compared


@pytest.fixture
def with_library(monkeypatch):
    def changed(change):
        before = RUNNERS["lightgbm"]
        RUNNERS.register("lightgbm", change, replace=True)
        return before

    yield changed
    RUNNERS.register("lightgbm", damaged_runners.LightGBMRunner, replace=True)


def taken(results):
    return sorted(result.library for result in results.results if result.taken_from)


def test_the_same_cells_are_taken_over_without_times_and_say_from_where(run):
    first = run()
    assert taken(first) == []
    second = run()
    assert taken(second) == ["lightgbm", "lightgbm", "sklearn", "sklearn"]
    for one, other in zip(first.results, second.results, strict=True):
        assert other.taken_from == f"{first.run_id}/1"
        assert other.train_time_s is other.predict_time_s is other.cpu_time_s is None
        assert (one.metrics, one.predictions_digest, one.kept) == (other.metrics, other.predictions_digest, other.kept)
        assert second.evidence.score(other, "rmse") is not None  # its predictions came along
    assert "4 cells were taken over from earlier runs" in second.to_markdown()
    assert taken(run()) == taken(second)


def test_nothing_is_taken_over_unless_it_is_asked_for(run):
    run()
    assert taken(run(reuse=False)) == []


def test_only_the_library_that_changed_is_trained(run, with_library):
    run()
    with_library(damaged_runners.FewerTrees)
    results = run()
    assert taken(results) == ["sklearn", "sklearn"]


@pytest.mark.parametrize(
    "change",
    [
        {"training": TRAINING.replace(n_estimators=6)},
        {"splits": "random"},
        {"predictions": False, "threads": 2},
        {"metrics": ["mape"]},
    ],
)
def test_another_spec_is_another_cell(run, change):
    run()
    assert taken(run(**change)) == []


def test_times_and_memory_are_always_measured(run):
    run()
    for option in ("timing_mode", "measure_memory"):
        with pytest.raises(ConfigError, match="what is measured must run"):
            run(**{option: True})
        assert taken(run(**{option: True, "reuse": False, "seeds": 1})) == []


def test_another_program_or_machine_computes_anew(run, monkeypatch):
    run()
    monkeypatch.setattr(reuse, "digest_program", lambda: "another")
    assert taken(run()) == []
    monkeypatch.undo()
    monkeypatch.setattr(reuse, "_here", lambda: "another")
    assert taken(run()) == []


def test_predictions_that_were_changed_or_are_gone_are_made_anew(run):
    first = run()
    mine, *_, other = first.results
    locate_array(first.folder.predictions, mine.kept.predictions).write_bytes(b"changed")
    locate_array(first.folder.predictions, other.kept.predictions).unlink()
    results = run()
    assert [result.key for result in results.results if not result.taken_from] == [mine.key, other.key]


class Whimsical(damaged_runners.LightGBMRunner):
    """A library that predicts something else each time."""

    @classmethod
    def predict(cls, translation, model, x):
        import time

        return super().predict(translation, model, x) + time.time() % 1


def test_a_library_that_once_predicted_something_else_is_never_taken_over(run, with_library):
    with_library(Whimsical)
    run(reuse=False)
    run(reuse=False, seeds=1)  # the first seed again, with other predictions
    assert taken(run()) == ["sklearn", "sklearn"]


def test_what_was_once_seen_to_differ_is_remembered_after_its_runs_are_gone(run, with_library, tmp_path):
    with_library(Whimsical)
    run(reuse=False)
    run(reuse=False, seeds=1)
    assert taken(run()) == ["sklearn", "sklearn"]
    shutil.rmtree(tmp_path / "home" / "runs")
    run(reuse=False)
    assert taken(run()) == ["sklearn", "sklearn"]


def test_failures_are_never_taken_over(run):
    with pytest.raises(RunError, match="Each of the 4 cells"):
        run(timeout=0.001)
    again = run()
    assert (len(again.results), taken(again)) == (4, [])
