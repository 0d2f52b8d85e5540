"""The history is an observer: every run enters the index of its home when it ends."""

import sqlite3
from contextlib import closing

import pytest

from boosters_eval import OBSERVERS, BoostersEvalWarning, Observer, Observers
from boosters_eval.engine.observer import RunEnded, RunStarted
from boosters_eval.programs.history import index, store
from boosters_eval.programs.history.index import HistoryObserver
from tiny import run_tiny, tiny_config


def indexed(home):
    with closing(sqlite3.connect(home / store.FILE)) as connection:
        return dict(connection.execute("SELECT run_id, state FROM runs").fetchall())


def test_run_is_in_the_index_of_its_own_home(faulty, home, tmp_path):
    results = run_tiny(tiny_config("none"), observer=OBSERVERS["history"](), home=tmp_path / "other")
    assert indexed(tmp_path / "other") == {results.run_id: "finished"}
    assert not home.exists()


def test_interrupted_run_is_in_the_index(faulty, home):
    class Impatient(Observer):
        def outcome(self, event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tiny(tiny_config("none"), seeds=3, observer=Observers(Impatient(), HistoryObserver()))
    assert list(indexed(home).values()) == ["unfinished"]


def test_fault_of_the_index_costs_no_run(faulty, home, monkeypatch):
    monkeypatch.setattr(index, "update", lambda *_, **__: 1 / 0)
    with pytest.warns(BoostersEvalWarning, match="The run is not in the index of the history yet"):
        assert run_tiny(tiny_config("none"), observer=HistoryObserver()).results


def test_run_that_is_not_kept_anywhere_is_not_looked_for(home, tmp_path):
    observer = HistoryObserver()
    observer.begin(RunStarted(plan=None, todo=1, kept=0))
    observer.end(RunEnded(None))
    assert not home.exists()
