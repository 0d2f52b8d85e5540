"""The file of the index: how it is opened, what happens if it is damaged, old, locked or read-only, and its tables.

It is a cache of what the runs' own files say, so any trouble with it costs only time. It keeps a rollback journal, not
a write-ahead log: that needs memory shared between its users, which a network file system does not have.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.core import __version__
from boosters_eval.core.errors import BoostersEvalWarning
from boosters_eval.core.files import compute_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from boosters_eval.programs.history.model import IndexedPlace

FILE = "history.sqlite"
_WAIT_S = 10.0  # for another program that writes; each of its transactions takes a fraction of a second
_APPLICATION = 0x62656869  # marks the file as ours
# Raise it when rows mean something else in the same tables, as with another rule of verdicts.
_REVISION = 6
_MOST_BYTES = 2**29  # of the file: 40 000 runs
_MOST_TEXT = 2**26
_CACHE_KB = 16_000  # the usual 2 MB are too few for the ends of all lines
_READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA)

_SCHEMA = """
CREATE TABLE places (
  origin TEXT NOT NULL, name TEXT NOT NULL, stamp TEXT NOT NULL, journals TEXT NOT NULL, PRIMARY KEY (origin, name)
) WITHOUT ROWID;
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, run_id TEXT NOT NULL, attempt INTEGER NOT NULL,
  origin TEXT NOT NULL, place TEXT NOT NULL, started_at TEXT NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
  title TEXT NOT NULL,
  name TEXT NOT NULL, git_sha TEXT NOT NULL, git_branch TEXT NOT NULL, git_dirty INTEGER, machine TEXT NOT NULL,
  machine_label TEXT NOT NULL, state TEXT NOT NULL, fault TEXT NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL,
  missing INTEGER, versions TEXT NOT NULL, extends TEXT NOT NULL,
  shadowed INTEGER NOT NULL DEFAULT 0, superseded INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_place ON runs (origin, place);
CREATE INDEX runs_at ON runs (at);
CREATE INDEX runs_key ON runs (key);
CREATE INDEX runs_run_id ON runs (run_id);
CREATE INDEX runs_extends ON runs (extends);
CREATE TABLE parts (
  run INTEGER NOT NULL, config TEXT NOT NULL, dataset TEXT NOT NULL, target TEXT NOT NULL, library TEXT NOT NULL,
  done INTEGER NOT NULL, failed INTEGER NOT NULL
);
CREATE INDEX parts_run ON parts (run);
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE lines (
  id INTEGER PRIMARY KEY, machine TEXT NOT NULL, config TEXT NOT NULL, dataset TEXT NOT NULL, target TEXT NOT NULL,
  library TEXT NOT NULL, settings TEXT NOT NULL, measures TEXT NOT NULL,
  UNIQUE (machine, config, dataset, target, library, settings, measures)
);
CREATE TABLE series (
  line INTEGER NOT NULL, at INTEGER NOT NULL, run INTEGER NOT NULL, names INTEGER NOT NULL, repeats INTEGER NOT NULL,
  marks TEXT NOT NULL, numbers BLOB NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (line, at, run)
) WITHOUT ROWID;
CREATE INDEX series_run ON series (run);
CREATE TABLE verdicts (
  line INTEGER NOT NULL, run INTEGER NOT NULL, before INTEGER NOT NULL, verdicts TEXT NOT NULL, PRIMARY KEY (line, run)
) WITHOUT ROWID;
CREATE TABLE costs (
  run INTEGER NOT NULL, dataset TEXT NOT NULL, booster TEXT NOT NULL, library TEXT NOT NULL,
  training INTEGER NOT NULL, seconds REAL NOT NULL, n INTEGER NOT NULL
);
CREATE INDEX costs_run ON costs (run);
"""


def compute_version() -> int:
    """The mark of an index: its tables, their meaning, and the program's own version.

    Lines and verdicts depend on defaults, metrics and rules, so each release reads the runs anew.
    """
    content = f"{_SCHEMA}{_REVISION} {__version__}"
    return int(compute_digest(content, 7), 16)


def connect(home: Path, *, wait_s: float = _WAIT_S) -> sqlite3.Connection:
    """Open the index on disk, rebuilt if it is of another version; sqlite3.Error if it cannot be used."""
    path = home / FILE
    try:
        return _prepare(_open(path, wait_s))
    except _NotOursError as error:
        _put_away(path, foreign=error.foreign)
    except sqlite3.DatabaseError as error:
        if primary_code(error) not in _DAMAGED:
            raise
        _put_away(path, foreign=False)
    return _prepare(_open(path, wait_s))


def open_in_memory(home: Path, *, copied: bool = True) -> sqlite3.Connection:
    """Open an index for whoever may not write: a copy of what can be read, or an empty one."""
    path = home / FILE
    if copied and path.is_file():
        memory = sqlite3.connect(":memory:", isolation_level=None)
        with contextlib.suppress(sqlite3.Error, _NotOursError), contextlib.closing(_open_read_only(path)) as disk:
            _check(disk)
            disk.backup(memory)
            return _prepare(memory)
        memory.close()
    return _prepare(sqlite3.connect(":memory:", isolation_level=None))


def discard(home: Path) -> None:
    """Remove an index that is damaged, if that is possible."""
    with contextlib.suppress(OSError):
        _put_away(home / FILE, foreign=False)


def is_damage(error: sqlite3.Error | OSError) -> bool:
    """Whether an error says that the file is not what it should be, also by a missing table or text that is none.

    Python itself finds the latter, and gives no code.
    """
    codes = (*_DAMAGED, sqlite3.SQLITE_ERROR, *((0,) if isinstance(error, sqlite3.OperationalError) else ()))
    return isinstance(error, sqlite3.DatabaseError) and primary_code(error) in codes


def clear(connection: sqlite3.Connection) -> None:
    """Empty all tables. The numbers of runs go on, so that no verdict on an old one is taken for that of a new one."""
    with transaction(connection):
        for table in ("places", "runs", "parts", "texts", "lines", "series", "verdicts", "costs"):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 (our names)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the lock is taken at once, so that two writers wait for each other instead of failing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def warn(home: Path, error: sqlite3.Error | OSError) -> None:
    """Say why the index is not used, unless that is nothing unusual: a home that may only be read."""
    if isinstance(error, sqlite3.Error) and primary_code(error) in _READ_ONLY and not os.access(home, os.W_OK):
        return
    message = f"{home / FILE} cannot be used ({error}), so the history was read from the runs, which takes longer."
    warnings.warn(message, BoostersEvalWarning, stacklevel=3)


def primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


class _NotOursError(Exception):
    """A database, but not an index of this version; `foreign` is another program's, which is kept."""

    def __init__(self, *, foreign: bool) -> None:
        super().__init__("not an index of this version")
        self.foreign = foreign


def _open(path: Path, wait_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = {-_CACHE_KB}")
    return connection


def _open_read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    try:
        found = sqlite3.connect(uri, uri=True, timeout=1.0, isolation_level=None)
        found.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # a file system that cannot lock
        return sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    return found


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            with transaction(connection):
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:  # nobody was faster
                    _create(connection)
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Refuse what was not made here, before any of it is asked: views for tables, or pages that lead in a circle."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (pages,), (size,) = (connection.execute(f"PRAGMA page_{word}").fetchone() for word in ("count", "size"))
    ours = application == _APPLICATION
    if not ours or found != compute_version() or pages * size > _MOST_BYTES:
        raise _NotOursError(foreign=not ours)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        _create(fresh)
        whole = _tables(fresh) == _tables(connection)
    if not whole or connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise _NotOursError(foreign=False)


def _tables(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchmany(1000))


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {compute_version()}")


def _put_away(path: Path, *, foreign: bool) -> None:
    """Remove a file that is of no use; what another program keeps under our name is renamed."""
    for suffix in ("-journal", "-wal", "-shm", ""):
        file = path.with_name(path.name + suffix)
        if foreign and file.exists():
            file.rename(path.with_name(f"{FILE}.other{suffix}"))
        file.unlink(missing_ok=True)


class IndexLine(NamedTuple):
    """What the runs of a line have in common, besides the machine."""

    config: str
    dataset: str
    target: str
    library: str
    settings: str
    measures: str  # scores or resources


class IndexGroup(NamedTuple):
    """The scores, or the resources, of one competitor on one benchmark: a matrix of values, metric by repeat."""

    line: IndexLine
    names: str  # JSON: [name, higher is better, primary, digest] of each metric
    repeats: str  # JSON: the data's digest, and [seed, fold, split, n_train, n_valid, kind, groups...] of each repeat
    marks: str  # JSON: the predictions' digest of each repeat, and whether its times are fair
    numbers: bytes
    failed: int  # cells that gave no number


@dataclass
class IndexRows:
    """All that the index holds of one attempt at a run."""

    run: dict[str, Any]
    parts: list[tuple[Any, ...]] = field(default_factory=list)  # the columns of the table of this name, as are costs
    groups: list[IndexGroup] = field(default_factory=list)
    costs: list[tuple[Any, ...]] = field(default_factory=list)


Known = dict[tuple[str, ...], int]  # the numbers of lines and texts that were just entered


def add_run(connection: sqlite3.Connection, place: IndexedPlace, rows: IndexRows, known: Known) -> None:
    """Enter one attempt of a run."""
    run = {**rows.run, "place": place[1]}
    marks = ", ".join(f":{name}" for name in run)
    cursor = connection.execute(f"INSERT INTO runs ({', '.join(run)}) VALUES ({marks})", run)  # noqa: S608 (our names)
    number = cursor.lastrowid

    def text(content: str) -> int:
        return _find_or_add(connection, "texts", {"text": content}, known)

    connection.executemany("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)", ((number, *part) for part in rows.parts))
    for line, names, repeats, *rest in rows.groups:
        line_number = _find_or_add(connection, "lines", {"machine": run["machine"], **line._asdict()}, known)
        connection.execute(
            "INSERT INTO series (line, at, run, names, repeats, marks, numbers, failed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (line_number, run["at"], number, text(names), text(repeats), *rest),
        )
    for *cost, training, seconds, n in rows.costs:
        connection.execute(
            "INSERT INTO costs VALUES (?, ?, ?, ?, ?, ?, ?)", (number, *cost, text(training), seconds, n)
        )
    _refresh(connection, run["key"], run["run_id"], run["extends"])


def _find_or_add(connection: sqlite3.Connection, table: str, row: dict[str, str], known: Known) -> int:
    """The number of a line, or of a text that many runs share, such as the splits of a benchmark."""
    values = tuple(row.values())
    if values not in known:
        marks, where = ", ".join("?" * len(row)), " AND ".join(f"{name} = ?" for name in row)
        connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({marks})", values)  # noqa: S608
        (known[values],) = connection.execute(f"SELECT id FROM {table} WHERE {where}", values).fetchone()  # noqa: S608
    return known[values]


def drop_place(connection: sqlite3.Connection, place: IndexedPlace) -> None:
    """Take out a place, with all of its runs."""
    connection.execute("DELETE FROM places WHERE origin = ? AND name = ?", place)
    gone = connection.execute(
        "SELECT id, key, run_id, extends FROM runs WHERE origin = ? AND place = ?", place
    ).fetchall()
    for number, key, run_id, extends in gone:
        for table in ("parts", "series", "verdicts", "costs"):
            connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608 (our names)
        connection.execute("DELETE FROM runs WHERE id = ?", (number,))
        _refresh(connection, key, run_id, extends)


def keep_verdicts(connection: sqlite3.Connection, found: Iterable[tuple[int, int, int, str]]) -> None:
    """Keep what was judged for the next question: line, run, the run before, and the verdicts against it."""
    with transaction(connection):
        connection.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)", found)


def _refresh(connection: sqlite3.Connection, key: str, run_id: str, extends: str) -> None:
    """Which runs stand for others: of several files with the same run, the fullest; of a run that grew, the last."""
    connection.execute(
        "UPDATE runs SET shadowed = id != (SELECT id FROM runs WHERE key = :key"
        " ORDER BY origin = 'run' DESC, done + failed DESC, place LIMIT 1) WHERE key = :key",
        {"key": key},
    )
    connection.execute(
        "UPDATE runs AS r SET superseded = EXISTS (SELECT 1 FROM runs x WHERE x.extends = r.run_id AND x.at >= r.at"
        "  AND x.machine = r.machine AND x.state = 'finished' AND NOT x.shadowed)"
        " OR EXISTS (SELECT 1 FROM runs x WHERE x.run_id = r.run_id AND x.started_at = r.started_at"
        "  AND x.machine = r.machine AND x.attempt > r.attempt AND x.state = 'finished' AND NOT x.shadowed)"
        " WHERE r.run_id IN (?, ?)",
        (run_id, extends or run_id),
    )
