"""Whatever happens to the index costs time, and nothing else."""

import os
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from boosters_eval.core.errors import BoostersEvalWarning, RunError
from boosters_eval.programs.history import index, query, store
from boosters_eval.programs.history.index import record_runs
from written_runs import written_run

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def indexed(tmp_path):
    """A home with two runs, and its index."""
    written_run(tmp_path, 1, 0.5)
    written_run(tmp_path, 2, 0.6, version="1.1")
    assert told(tmp_path) == EXPECTED
    return tmp_path


EXPECTED = [("2026-01-02", "worse"), ("2026-01-01", "first")]


def told(home):
    found = [(run.entry, run.changes) for run in query.list_changes(home=home).runs]
    return [(entry.started_at[:10], changes[0].verdict) for entry, changes in found]


def _foreign(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("INSERT INTO theirs VALUES (42)")
        other.commit()


def _other_version(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")
        other.execute("DROP TABLE series")


def _without_table(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE texts")


def _no_text(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE runs SET versions = CAST(X'7BA8A87D' AS TEXT)")
        other.commit()


def _endless_view(path):
    """A table that is a view: whoever asks it waits forever."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE parts")
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, '', '', '', '', 1, 0 FROM n"
        )
        other.execute(f"CREATE VIEW parts (run, config, dataset, target, library, done, failed) AS {endless}")


def _circle(path):
    """A page of pages of which each is the first: a few of those have more rows than anybody can count."""
    with closing(sqlite3.connect(path)) as other:
        rows = [(number, "c" * 200, "d", "t", "l", 1, 0) for number in range(3000)]
        other.executemany("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        other.commit()
        (root,) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'parts'").fetchone()
        (size,) = other.execute("PRAGMA page_size").fetchone()
    data, start = bytearray(path.read_bytes()), (root - 1) * size
    assert data[start] == 5, "it leads to other pages"
    cells = [int.from_bytes(data[at : at + 2]) for at in range(start + 12, start + 12 + 2 * data[start + 4], 2)]
    for cell in cells:
        data[start + cell : start + cell + 4] = data[start + cells[0] : start + cells[0] + 4]
    path.write_bytes(data)


def _other_shapes(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE series SET marks = '5'")
        other.execute("DELETE FROM verdicts")
        other.commit()


def _nested(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE texts SET text = ? || id", ("[[" * 50_000,))
        other.execute("DELETE FROM verdicts")
        other.commit()


DAMAGES = [
    _endless_view,
    _circle,
    _other_shapes,
    _nested,
    _no_text,
    lambda path: path.unlink(),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:5000]),
    lambda path: path.write_bytes(path.read_bytes()[:4096] + os.urandom(path.stat().st_size - 4096)),
    lambda path: path.write_bytes(os.urandom(20_000)),
    lambda path: path.write_bytes(b"SQLite format 3\0" + os.urandom(20_000)),
    _foreign,
    _other_version,
    _without_table,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_made_anew(indexed, damage):
    damage(indexed / store.FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoostersEvalWarning)  # one that is noticed late is told, and replaced next time
        assert told(indexed) == EXPECTED
    assert told(indexed) == EXPECTED
    assert index.reindex(indexed) == 2
    assert told(indexed) == EXPECTED


@pytest.mark.parametrize("damage", DAMAGES)
def test_reindexing_replaces_a_damaged_index(indexed, damage):
    damage(indexed / store.FILE)
    assert index.reindex(indexed) == 2
    assert told(indexed) == EXPECTED


def test_reindexing_says_that_the_index_cannot_be_written(indexed):
    (indexed / store.FILE).unlink()
    (indexed / store.FILE).mkdir()
    with pytest.raises(RunError, match=r"The index of the history in .* cannot be written: unable to open"):
        index.reindex(indexed)


def test_another_programs_file_is_kept(indexed):
    _foreign(indexed / store.FILE)
    assert told(indexed) == EXPECTED
    with closing(sqlite3.connect(indexed / f"{store.FILE}.other")) as theirs:
        assert theirs.execute("SELECT x FROM theirs").fetchall() == [(42,)]


def test_a_folder_in_its_place_is_passed_by_with_a_warning(indexed):
    (indexed / store.FILE).unlink()
    (indexed / store.FILE).mkdir()
    with pytest.warns(BoostersEvalWarning, match="cannot be used"):
        assert told(indexed) == EXPECTED


def test_a_home_that_may_only_be_read_is_read(indexed, monkeypatch):
    written_run(indexed, 3, 0.6, version="1.2")
    _refuse_writing(monkeypatch, indexed)
    assert told(indexed) == [("2026-01-03", "identical"), *EXPECTED]
    assert told(indexed) == [("2026-01-03", "identical"), *EXPECTED]


def test_a_home_that_may_only_be_read_and_has_no_index_is_read(indexed, monkeypatch):
    (indexed / store.FILE).unlink()
    _refuse_writing(monkeypatch, indexed)
    assert told(indexed) == EXPECTED
    assert not (indexed / store.FILE).exists()


def _refuse_writing(monkeypatch, home):
    """As a file system that is mounted read-only; permissions do not stop the user of a container."""

    def read_only(path, wait_s):
        del wait_s
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)

    monkeypatch.setattr(store, "_open", read_only)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != home and access(path, mode))


@pytest.mark.skipif(AS_ROOT, reason="nothing is closed to root")
def test_a_home_without_permission_to_write_is_read(indexed):
    written_run(indexed, 3, 0.6, version="1.2")
    indexed.chmod(0o555)
    try:
        assert told(indexed)[0] == ("2026-01-03", "identical")
    finally:
        indexed.chmod(0o755)


def test_a_full_disk_costs_only_the_index(indexed, monkeypatch):
    (indexed / store.FILE).unlink()
    opened = store._open

    def full(path, wait_s):
        connection = opened(path, wait_s)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(store, "_open", full)
    with pytest.warns(BoostersEvalWarning, match="full"):
        assert told(indexed) == EXPECTED
    with pytest.warns(BoostersEvalWarning, match="not in the index of the history yet"):
        record_runs(indexed)


def test_a_locked_index_is_waited_for_and_then_done_without(indexed, monkeypatch):
    written_run(indexed, 3, 0.6, version="1.2")
    opened = store._open
    monkeypatch.setattr(store, "_open", lambda path, _: opened(path, 0.05))
    with closing(sqlite3.connect(indexed / store.FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        record_runs(indexed)  # says nothing: the other program may be doing it
        with pytest.warns(BoostersEvalWarning, match="locked"):
            assert told(indexed)[0] == ("2026-01-03", "identical")
        other.execute("ROLLBACK")
    assert told(indexed)[0] == ("2026-01-03", "identical")


def test_two_programs_may_index_at_once(tmp_path):
    for day in range(1, 13):
        written_run(tmp_path, day, 0.5, version=f"1.{day}")
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(told, [tmp_path] * 4))
    assert {len(answer) for answer in answers} == {12}
    assert told(tmp_path) == [(f"2026-01-{day:02d}", "identical" if day > 1 else "first") for day in range(12, 0, -1)]


def test_an_answer_is_of_one_state_of_the_index(indexed):
    """Another program that drops runs between two reads of one answer once left runs without any number."""

    def ask(connection):
        before = connection.execute("SELECT count(*) FROM series").fetchone()
        with closing(store.connect(indexed, wait_s=0.05)) as other, pytest.raises(sqlite3.Error, match="locked"):
            store.clear(other)
        return before, connection.execute("SELECT count(*) FROM series").fetchone()

    before, after = index.ask_index(ask, indexed)
    assert before == after


def test_what_another_program_has_read_meanwhile_is_not_read_again(tmp_path, monkeypatch):
    written_run(tmp_path, 1)
    rows = index._read_rows

    def slow(home, place):
        monkeypatch.setattr(index, "_read_rows", rows)
        record_runs(home)
        return rows(home, place)

    monkeypatch.setattr(index, "_read_rows", slow)
    numbers = index.ask_index(lambda connection: connection.execute("SELECT id FROM runs").fetchall(), tmp_path)
    assert numbers == [(1,)]


def test_verdicts_that_cannot_be_kept_are_told_all_the_same(indexed, monkeypatch):
    def locked(*_):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(store, "keep_verdicts", locked)
    index.reindex(indexed)
    assert told(indexed) == EXPECTED


def test_a_locked_index_is_not_removed_while_a_question_is_asked(indexed):
    kept = (indexed / store.FILE).stat().st_ino
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY

    def busy(connection):
        if connection.execute("PRAGMA database_list").fetchone()[2]:
            raise error
        return connection.execute("SELECT count(*) FROM runs").fetchone()[0]

    with pytest.warns(BoostersEvalWarning, match="locked"):
        assert index.ask_index(busy, indexed) == 2
    assert (indexed / store.FILE).stat().st_ino == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [("_SCHEMA", store._SCHEMA + "CREATE TABLE more (x);\n"), ("_REVISION", 99), ("__version__", "9.9")],
)
def test_an_index_with_other_tables_rules_or_of_another_release_is_made_anew(indexed, monkeypatch, name, value):
    before = store.compute_version()
    monkeypatch.setattr(store, name, value)
    assert store.compute_version() != before
    assert told(indexed) == EXPECTED
    with closing(sqlite3.connect(indexed / store.FILE)) as made:
        assert made.execute("PRAGMA user_version").fetchone() == (store.compute_version(),)


def test_a_name_on_disk_that_is_no_text_is_passed_by(indexed):
    os.mkdir(os.fsencode(indexed / "runs") + b"/\xff")  # noqa: PTH102 (not a name for a Path)
    (indexed / "runs" / "loop").symlink_to("loop")
    assert told(indexed) == EXPECTED


def test_a_failure_at_the_end_of_a_run_is_a_warning(indexed, monkeypatch):
    monkeypatch.setattr(index, "update", lambda *_, **__: 1 / 0)
    with pytest.warns(BoostersEvalWarning, match="division by zero"):
        record_runs(indexed)
