"""The file of the index: how it is opened, and what happens if it is damaged, old, locked or not to be written.

It is a cache of what the runs' own files say, so any trouble with it costs only time. A rollback journal is kept, not a
write-ahead log: that needs memory shared between its users, which a network file system does not have.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalWarning
from boosters_eval.core.files import compute_digest
from boosters_eval.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "history.sqlite"
WAIT_S = 10.0  # for another program that writes; each of its transactions takes a fraction of a second
_APPLICATION = 0x62656869  # marks the file as ours
# Raised whenever the rows come to mean something else while the tables stay the same, as with another rule of verdicts.
_REVISION = 2
_CACHE_KB = 16_000  # the usual 2 MB are too few for the ends of all lines
_BESIDE = ("-journal", "-wal", "-shm")
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
  done INTEGER NOT NULL, failed INTEGER NOT NULL, missing INTEGER NOT NULL
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
  marks TEXT NOT NULL, numbers BLOB NOT NULL, failed INTEGER NOT NULL,
  before INTEGER, verdicts TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (line, at, run)
) WITHOUT ROWID;
CREATE INDEX series_run ON series (run);
CREATE INDEX series_open ON series (line, at) WHERE before IS NULL;
CREATE TABLE costs (
  run INTEGER NOT NULL, dataset TEXT NOT NULL, booster TEXT NOT NULL, library TEXT NOT NULL,
  training INTEGER NOT NULL, seconds REAL NOT NULL, n INTEGER NOT NULL
);
CREATE INDEX costs_run ON costs (run);
"""


def version() -> int:
    """What tells an index from that of another program: its tables, their meaning, and the program's own version.

    Lines and verdicts depend on defaults, metrics and rules, so each release reads the runs anew.
    """
    content = f"{_SCHEMA}{_REVISION} {__version__}"
    return int(compute_digest(content, 7), 16)


def connect(home: Path, *, wait_s: float = WAIT_S) -> sqlite3.Connection:
    """The index on disk, made anew if it is not one of this version; sqlite3.Error if it cannot be used."""
    path = home / FILE
    try:
        return _usable(_opened(path, wait_s))
    except _NotOursError as error:
        _put_away(path, foreign=error.foreign)
    except sqlite3.DatabaseError as error:
        if code_of(error) not in _DAMAGED:
            raise
        _put_away(path, foreign=False)
    return _usable(_opened(path, wait_s))


def in_memory(home: Path, *, copied: bool = True) -> sqlite3.Connection:
    """An index for whoever may not write: a copy of what is there, as far as it can be read, or an empty one."""
    path = home / FILE
    if copied and path.is_file():
        memory = sqlite3.connect(":memory:", isolation_level=None)
        with contextlib.suppress(sqlite3.Error, _NotOursError), contextlib.closing(_read_only(path)) as disk:
            _check(disk)
            disk.backup(memory)
            return _usable(memory)
        memory.close()
    return _usable(sqlite3.connect(":memory:", isolation_level=None))


def discard(home: Path) -> None:
    """Remove an index that is damaged, if that is possible."""
    with contextlib.suppress(OSError):
        _put_away(home / FILE, foreign=False)


def is_damage(error: sqlite3.Error | OSError) -> bool:
    """Whether an error says that the file is not what it should be; a table that is missing is one too."""
    found = isinstance(error, sqlite3.DatabaseError) and code_of(error) in (*_DAMAGED, sqlite3.SQLITE_ERROR)
    return found or isinstance(error, DamagedIndexError)


def clear(connection: sqlite3.Connection) -> None:
    """Forget everything, in a moment."""
    tables = ("places", "runs", "parts", "texts", "lines", "series", "costs")
    with transaction(connection):
        for table in tables:
            connection.execute(f"DROP TABLE {table}")
        _create(connection)


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
    if isinstance(error, sqlite3.Error) and code_of(error) in _READ_ONLY and not os.access(home, os.W_OK):
        return
    message = f"{home / FILE} cannot be used ({error}), so the history was read from the runs, which takes longer."
    warnings.warn(message, BoostersEvalWarning, stacklevel=3)


def code_of(error: sqlite3.Error) -> int:
    """The primary code of an error, without its details."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


class DamagedIndexError(sqlite3.DatabaseError):
    """What the index says does not fit together."""


class _NotOursError(Exception):
    """A database, but not an index of this version."""

    def __init__(self, *, foreign: bool) -> None:
        super().__init__("not an index of this version")
        self.foreign = foreign  # another program's: it is kept


def _opened(path: Path, wait_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = {-_CACHE_KB}")
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    try:
        found = sqlite3.connect(uri, uri=True, timeout=1.0, isolation_level=None)
        found.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # a file system that cannot lock
        return sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    return found


def _usable(connection: sqlite3.Connection) -> sqlite3.Connection:
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
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION or found != version():
        raise _NotOursError(foreign=application != _APPLICATION)


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {version()}")


def _put_away(path: Path, *, foreign: bool) -> None:
    """Remove a file that is of no use; what another program keeps under our name is renamed."""
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        if foreign and beside.exists():
            beside.rename(path.with_name(f"{FILE}.other{suffix}"))
        beside.unlink(missing_ok=True)
    if foreign:
        path.rename(path.with_name(f"{FILE}.other"))
    else:
        path.unlink(missing_ok=True)
