"""A home keeps the predictions of its latest runs, up to a size, and what had to go is known to be gone."""

import os
import shutil

import numpy as np
import pytest

from boosters_eval import BoostersEvalWarning, ConfigError, RunError
from boosters_eval.engine import predictions
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.predictions import (
    LIMIT,
    PredictionsRecord,
    make_room,
    measure_kept,
    read_limit,
    record_kept,
    remove_kept,
)
from boosters_eval.engine.runs import find_run, list_folders, verify
from tiny import run_tiny, tiny_config


def stored(home, number, arrays=2):
    """A run of some age with predictions of about a kilobyte each."""
    folder = RunFolder(home / "runs" / f"{number:016x}")
    folder.path.mkdir(parents=True)
    folder.journal_path(1).touch()
    digests = [save_array(folder.predictions, np.full(109, 10.0 * number + i)) for i in range(arrays)]
    record_kept(folder)
    return folder, digests


@pytest.mark.parametrize(
    ("text", "size"), [("", 2 * 10**9), ("0", 0), ("500MB", 5 * 10**8), ("1.5 GB", 15 * 10**8), ("7kb", 7000)]
)
def test_limit_is_a_size(monkeypatch, text, size):
    monkeypatch.setenv(LIMIT, text)
    assert read_limit() == size


def test_limit_that_is_no_size_is_refused_before_anything_runs(faulty, home, monkeypatch):
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(ConfigError, match=r"must be a size such as 500MB or 2GB\. Got 'much' instead"):
        run_tiny(tiny_config("none"))
    assert not (home / "runs").exists()


def test_oldest_go_first_and_the_latest_run_stays_whatever_its_size(tmp_path, monkeypatch):
    folders = [stored(tmp_path, number)[0] for number in range(4)]
    for age, folder in enumerate(reversed(folders)):
        os.utime(folder.journal_path(1), (10**9 - age, 10**9 - age))
    assert measure_kept(folders[0]) == 2000
    monkeypatch.setenv(LIMIT, "5kB")
    room = make_room(folders[3], list_folders(tmp_path))
    assert (room.runs, room.bytes) == (2, 4000)
    assert str(room).startswith("The predictions of 2 older runs were removed (4 kB): this home keeps 5 kB of them")
    assert [measure_kept(folder) for folder in folders] == [0, 0, 2000, 2000]
    assert make_room(folders[3], list_folders(tmp_path)) is None
    monkeypatch.setenv(LIMIT, "0")
    make_room(folders[3], list_folders(tmp_path))
    assert [measure_kept(folder) for folder in folders] == [0, 0, 0, 2000]


def test_run_says_what_made_room_for_it(faulty, home, monkeypatch):
    first = run_tiny(tiny_config("none"))
    monkeypatch.setenv(LIMIT, "1kB")
    with pytest.warns(BoostersEvalWarning, match=r"^The predictions of 1 older run were removed"):
        second = run_tiny(tiny_config("none"), seeds=2)
    assert measure_kept(find_run(first.run_id)) == 0
    assert measure_kept(find_run(second.run_id)) > 0
    assert [fault for run in (first, second) for _, fault in verify(find_run(run.run_id))] == ["", ""]


def test_a_run_that_is_executed_keeps_its_predictions(tmp_path, monkeypatch):
    running, latest = stored(tmp_path, 1)[0], stored(tmp_path, 2)[0]
    monkeypatch.setenv(LIMIT, "0")
    journal, _ = running.open(new=False)
    try:
        assert make_room(latest, list_folders(tmp_path)) is None
    finally:
        journal.close()
    assert measure_kept(running) == 2000


def test_killed_removal_leaves_nothing_that_looks_lost(tmp_path, monkeypatch):
    folder, digests = stored(tmp_path, 1)

    def half(path, **_):
        next(path.rglob("*.npy")).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(predictions.shutil, "rmtree", half)
        with pytest.raises(KeyboardInterrupt):
            remove_kept(folder)
    assert set(PredictionsRecord.read(folder).removed) == set(digests)
    assert remove_kept(folder) == 1000
    assert PredictionsRecord.read(folder) == PredictionsRecord(bytes=0, removed=tuple(sorted(digests)))
    shutil.rmtree(folder.predictions, ignore_errors=True)


def test_unfinished_and_damaged_records_are_counted_anew(tmp_path):
    folder, _ = stored(tmp_path, 1)
    file = folder.path / "predictions.json"
    for damage in (lambda: file.write_text("{"), file.unlink):
        damage()
        assert measure_kept(folder) == 2000
    record_kept(folder)
    assert PredictionsRecord.read(folder).bytes == 2000


def test_an_array_that_could_not_be_read_back_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr("boosters_eval.engine.artifacts.MAX_BYTES", 500)
    with pytest.raises(RunError, match="An array of 1000 bytes is larger than any that this program stores"):
        save_array(tmp_path, np.zeros(109))
    assert list(tmp_path.iterdir()) == []
