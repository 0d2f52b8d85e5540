"""The index follows the runs: what is new or has changed is read, what is gone is dropped."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from boosters_eval.core.errors import RunError
from boosters_eval.core.home import home as home_of
from boosters_eval.history import store
from boosters_eval.history.records import COUNTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from boosters_eval.history.measured import IndexGroup, IndexRows
    from boosters_eval.history.model import Origin

IMPORTS = "imports"
_FOLDERS: dict[Origin, str] = {"run": "runs", "import": IMPORTS}
_AT_A_TIME = 200  # runs in one transaction: others wait for less than a second, and memory stays flat
_TRIES = 5
_ONE_JOURNAL = "journal.jsonl"

DAMAGE = (sqlite3.DatabaseError, json.JSONDecodeError, struct.error)  # how it shows while the index is read
Reply = TypeVar("Reply")
Known = dict[object, int]  # numbers of texts and lines
IndexedPlace = tuple["Origin", str]  # what is read as a whole: a run's folder, or an imported file


class Stamp(NamedTuple):
    """By what a change is noticed without reading: times and sizes, of the folder and of its journals."""

    text: str
    journals: str

    @property
    def mtime_ns(self) -> int:
        """The time of the folder or file itself."""
        return int(self.text.partition(" ")[0].partition(";")[0])


@contextlib.contextmanager
def opened(home: Path | None = None, *, look: bool = True) -> Iterator[sqlite3.Connection]:
    """The index, up to date. Where it cannot be used, one in memory takes its place."""
    with contextlib.closing(_current(home_of(home), look=look)) as connection:
        yield connection


def hold(connection: sqlite3.Connection) -> None:
    """Hold on to one state of the index, in which all is judged, until the connection is closed.

    Without that, another program could drop or replace what an answer has found before it is read.
    """
    for _ in range(_TRIES):
        connection.execute("BEGIN")
        if not _is_open(connection):
            return
        connection.execute("COMMIT")
        _judge_open(connection)
    connection.execute("BEGIN")  # others keep adding: what is not judged yet has no verdict


def answered(question: Callable[[sqlite3.Connection], Reply], home: Path | None = None, *, look: bool = True) -> Reply:
    """The answer to a question. If the index turns out to be damaged, it is made anew, and asked again.

    Without `look` it is taken as it is: for a second question of one program, which has just looked for new runs.
    """
    where = home_of(home)
    try:
        with opened(where, look=look) as connection:
            hold(connection)
            return question(connection)
    except DAMAGE as error:
        if isinstance(error, sqlite3.Error) and not store.is_damage(error):  # locked for too long, or a full disk
            with contextlib.closing(_instead(where, error)) as connection:
                hold(connection)
                return question(connection)
        store.discard(where)
    with opened(where) as connection:
        hold(connection)
        return question(connection)


@contextlib.contextmanager
def streaming(home: Path | None = None) -> Iterator[sqlite3.Connection]:
    """The index for an answer that is given in parts, which cannot be asked for again."""
    where = home_of(home)
    try:
        with opened(where) as connection:
            yield connection
    except DAMAGE:
        store.discard(where)
        raise RunError(f"{where / store.FILE} is damaged: it was removed, and is made anew if you ask again.") from None


def _current(home: Path, *, look: bool) -> sqlite3.Connection:
    if not any((home / folder).is_dir() for folder in _FOLDERS.values()):
        return store.in_memory(home, copied=False)
    trouble: sqlite3.Error | OSError | None = None
    for _ in range(2):
        try:
            connection = store.connect(home)
            return _updated(connection, home) if look else connection
        except (sqlite3.Error, OSError) as error:
            trouble = error
            if not store.is_damage(error):
                break
            store.discard(home)
    return _instead(home, trouble)


def _instead(home: Path, trouble: sqlite3.Error | OSError | None) -> sqlite3.Connection:
    """An index in memory, for what is wrong with that on disk."""
    if trouble is not None:
        store.warn(home, trouble)
    try:
        return _updated(store.in_memory(home), home)
    except sqlite3.Error:
        return _updated(store.in_memory(home, copied=False), home)


def _updated(connection: sqlite3.Connection, home: Path) -> sqlite3.Connection:
    try:
        update(connection, home)
    except BaseException:
        connection.close()
        raise
    return connection


def reindex(home: Path | None = None, *, tell: Callable[[int, int], None] = lambda _done, _all: None) -> int:
    """Read everything anew, and return how many runs there are."""
    where = home_of(home)
    if not any((where / folder).is_dir() for folder in _FOLDERS.values()):
        return 0
    try:
        return _read_anew(where, tell)
    except DAMAGE as error:
        if isinstance(error, sqlite3.Error) and not store.is_damage(error):
            raise RunError(f"The index of the history in {where} cannot be written: {error}.") from error
        store.discard(where)
    return _read_anew(where, tell)


def _read_anew(home: Path, tell: Callable[[int, int], None]) -> int:
    with contextlib.closing(store.connect(home)) as connection:
        store.clear(connection)
        update(connection, home, tell=tell)
        return int(connection.execute("SELECT count(*) FROM runs WHERE NOT shadowed").fetchone()[0])


def update(
    connection: sqlite3.Connection,
    home: Path,
    *,
    at_most: int | None = None,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
) -> None:
    """Bring the index up to date; with `at_most`, only with the latest so many that it does not have."""
    same, known = _looked_at(connection, home)
    changed = sorted(_scan(home, known, same), key=lambda found: found[1].mtime_ns)  # the oldest first, as lines grow
    stale = [place for place, _ in changed]
    if known:
        with store.transaction(connection):
            for place in known:
                _drop(connection, place)
    if at_most is not None and len(stale) > at_most:
        stale = stale[-at_most:]
    if stale:
        _read(connection, home, stale, tell)
    if _is_open(connection):
        _judge_open(connection)


def _is_open(connection: sqlite3.Connection) -> bool:
    """Whether something is not judged yet."""
    return connection.execute("SELECT 1 FROM series WHERE before IS NULL LIMIT 1").fetchone() is not None


def _judge_open(connection: sqlite3.Connection) -> None:
    from boosters_eval.history.judging import judge_open  # noqa: PLC0415 (loads pydantic)

    judge_open(connection)


def _looked_at(connection: sqlite3.Connection, home: Path) -> tuple[set[str], dict[IndexedPlace, Stamp]]:
    """The runs that are as they were indexed, and the other places that the index knows.

    Every question asks this of all runs, so it does nothing but look.
    """
    same: set[str] = set()
    others: dict[IndexedPlace, Stamp] = {}
    try:
        root = os.open(home / _FOLDERS["run"], os.O_RDONLY)
    except OSError:
        root = None
    try:
        for origin, name, stamp, journals in connection.execute("SELECT origin, name, stamp, journals FROM places"):
            if root is not None and journals == _ONE_JOURNAL and stamp == _usual_stamp(root, name):
                same.add(name)
            else:
                others[origin, name] = Stamp(stamp, journals)
    finally:
        if root is not None:
            os.close(root)
    return same, others


def _usual_stamp(root: int, name: str) -> str:
    """The stamp of a run with one journal; empty if that is gone, or all of it."""
    try:
        own, journal = os.stat(name, dir_fd=root), os.stat(f"{name}/{_ONE_JOURNAL}", dir_fd=root)
    except OSError:
        return ""
    return f"{own.st_mtime_ns};{journal.st_mtime_ns} {journal.st_size}"


def _scan(home: Path, known: dict[IndexedPlace, Stamp], same: set[str]) -> list[tuple[IndexedPlace, Stamp]]:
    """The places that are new or have changed; those that are found are taken out of `known`."""
    changed: list[tuple[IndexedPlace, Stamp]] = []
    for origin, folder in _FOLDERS.items():
        root = str(home / folder)
        try:
            names = os.listdir(root)  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in names:
            if origin == "run" and name in same:
                continue
            if name[0] == "." or (origin == "import" and not name.endswith(".json")) or not _is_text(name):
                continue
            place = (origin, name)
            before = known.get(place)
            try:
                stamp = _stamp(f"{root}/{name}", before.journals if before else None, origin)
            except OSError:  # it was just removed, or is a link that leads nowhere
                continue
            if known.pop(place, None) != stamp:
                changed.append((place, stamp))
    return changed


def _is_text(name: str) -> bool:
    """Whether a name on disk is one that this program could have written."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def _stamp(path: str, journals: str | None, origin: Origin) -> Stamp:
    own = os.stat(path)  # noqa: PTH116 (a Path costs more than the call)
    if origin == "import":
        return Stamp(f"{own.st_mtime_ns} {own.st_size}", "")
    names = _journals(path) if journals is None else journals
    found = [str(own.st_mtime_ns)]
    for name in names.split():
        try:
            file = os.stat(f"{path}/{name}")  # noqa: PTH116
            found.append(f"{file.st_mtime_ns} {file.st_size}")
        except OSError:
            found.append("-")
    text = ";".join(found)
    return Stamp(text, names)


def _journals(path: str) -> str:
    """The journals of a folder; most have one."""
    try:
        names = sorted(name for name in os.listdir(path) if name.startswith("journal") and name.endswith(".jsonl"))  # noqa: PTH208
    except OSError:
        return ""
    return " ".join(names)


def _read(
    connection: sqlite3.Connection, home: Path, stale: list[IndexedPlace], tell: Callable[[int, int], None]
) -> None:
    left = iter(stale)
    done = 0
    while batch := list(islice(left, _AT_A_TIME)):
        read = [(place, *_rows(home, place)) for place in batch]
        numbers: Known = {}  # for this transaction only: another program may start anew after it
        with store.transaction(connection):
            for place, stamp, found in read:
                if _has(connection, place, stamp):  # another program was faster
                    continue
                _drop(connection, place)
                if stamp is not None:
                    connection.execute("INSERT INTO places VALUES (?, ?, ?, ?)", (*place, *stamp))
                    for rows in found:
                        _add(connection, place, rows, numbers)
        done += len(batch)
        tell(done, len(stale))


def _has(connection: sqlite3.Connection, place: IndexedPlace, stamp: Stamp | None) -> bool:
    query = "SELECT stamp, journals FROM places WHERE origin = ? AND name = ?"
    return bool(connection.execute(query, place).fetchone() == stamp)


def _rows(home: Path, place: IndexedPlace) -> tuple[Stamp | None, list[IndexRows]]:
    """What a place holds, with its stamp, which is taken first: what is written meanwhile is noticed next time."""
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (loads pydantic)
    from boosters_eval.history.content import Content, read_attempt, read_results  # noqa: PLC0415
    from boosters_eval.history.measured import rows_of  # noqa: PLC0415

    origin, name = place
    path = home / _FOLDERS[origin] / name
    stamp: Stamp | None = None
    try:
        stamp = _stamp(str(path), None, origin)
        if origin == "import":
            return stamp, [rows_of(read_results(path), origin, path.stat().st_mtime)]
        folder = RunFolder(path)
        attempts = folder.attempts()
        written = path.stat().st_mtime
        if not attempts:
            return stamp, [rows_of(Content(name, 0, state="not begun"), origin, written)] if path.is_dir() else []
        return stamp, [rows_of(read_attempt(folder, attempt), origin, written) for attempt in attempts]
    except FileNotFoundError:  # it was just removed
        return None, []
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
        return stamp, [rows_of(Content(name, 1, fault=fault), origin, time.time())] if stamp else []


def _add(connection: sqlite3.Connection, place: IndexedPlace, rows: IndexRows, known: Known) -> None:
    run = {**rows.run, "place": place[1]}
    marks = ", ".join(f":{name}" for name in run)
    cursor = connection.execute(f"INSERT INTO runs ({', '.join(run)}) VALUES ({marks})", run)  # noqa: S608 (our names)
    number, at = cursor.lastrowid, run["at"]
    connection.executemany(
        "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ((number, *part) for part in rows.parts)
    )
    connection.executemany(
        "INSERT INTO series (line, at, run, names, repeats, marks, numbers, failed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                _line(connection, run["machine"], group, known),
                at,
                number,
                _text(connection, group.names, known),
                _text(connection, group.repeats, known),
                group.marks,
                group.values,
                group.failed,
            )
            for group in rows.groups
        ],
    )
    connection.executemany(
        "INSERT INTO costs VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (number, dataset, booster, library, _text(connection, training, known), seconds, n)
            for dataset, booster, library, training, seconds, n in rows.costs
        ),
    )
    _refresh(connection, run["key"], run["run_id"], run["extends"])
    if rows.groups:
        _reopen_after(connection, number)


def _line(connection: sqlite3.Connection, machine: str, group: IndexGroup, known: Known) -> int:
    values = (machine, group.config, group.dataset, group.target, group.library, group.settings, group.group)
    number = known.get(values)
    if number is None:
        columns = ("machine", "config", "dataset", "target", "library", "settings", "measures")
        marks, where = ", ".join("?" * len(columns)), " AND ".join(f"{name} = ?" for name in columns)
        connection.execute(f"INSERT OR IGNORE INTO lines ({', '.join(columns)}) VALUES ({marks})", values)  # noqa: S608
        number = int(connection.execute(f"SELECT id FROM lines WHERE {where}", values).fetchone()[0])  # noqa: S608
        known[values] = number
    return number


def _text(connection: sqlite3.Connection, text: str, known: Known) -> int:
    """The number of a text that many runs share, such as the splits of a benchmark."""
    number = known.get(text)
    if number is None:
        connection.execute("INSERT OR IGNORE INTO texts (text) VALUES (?)", (text,))
        number = int(connection.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()[0])
        known[text] = number
    return number


def _drop(connection: sqlite3.Connection, place: IndexedPlace) -> None:
    connection.execute("DELETE FROM places WHERE origin = ? AND name = ?", place)
    gone = connection.execute(
        "SELECT id, key, run_id, extends FROM runs WHERE origin = ? AND place = ?", place
    ).fetchall()
    for number, key, run_id, extends in gone:
        _reopen_after(connection, number)
        for table in ("parts", "series", "costs"):
            connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608 (our names)
        connection.execute("DELETE FROM runs WHERE id = ?", (number,))
        _refresh(connection, key, run_id, extends)


def _reopen_after(connection: sqlite3.Connection, run: int | None) -> None:
    """What follows a run in a line must be judged again, as must the run itself."""
    connection.execute("UPDATE series SET before = NULL, verdicts = '' WHERE run = ? AND before NOT NULL", (run,))
    rows = connection.execute("SELECT line, at FROM series WHERE run = ?", (run,)).fetchall()
    connection.executemany(
        "UPDATE series SET before = NULL, verdicts = '' WHERE line = :line AND at = ("  # noqa: S608 (our names)
        " SELECT s.at FROM series s CROSS JOIN runs r ON r.id = s.run WHERE s.line = :line AND s.at > :at"
        f" AND {COUNTED} ORDER BY s.at LIMIT 1) AND before NOT NULL",
        [{"line": line, "at": at} for line, at in rows],
    )


def _refresh(connection: sqlite3.Connection, key: str, run_id: str, extends: str) -> None:
    """Which runs stand for others: of several files with the same run, the fullest; of a run that grew, the last."""
    same = connection.execute(
        "SELECT id, shadowed FROM runs WHERE key = ? ORDER BY origin = 'run' DESC, done + failed DESC, place", (key,)
    ).fetchall()
    _flag(connection, "shadowed", ((number, was, position > 0) for position, (number, was) in enumerate(same)))
    grown = connection.execute(
        "SELECT r.id, r.superseded, EXISTS (SELECT 1 FROM runs x WHERE x.extends = r.run_id AND x.at >= r.at"
        "  AND x.machine = r.machine AND x.state = 'finished' AND NOT x.shadowed)"
        " OR EXISTS (SELECT 1 FROM runs x WHERE x.run_id = r.run_id AND x.started_at = r.started_at"
        "  AND x.machine = r.machine AND x.attempt > r.attempt AND x.state = 'finished' AND NOT x.shadowed)"
        " FROM runs r WHERE r.run_id IN (?, ?)",
        (run_id, extends or run_id),
    ).fetchall()
    _flag(connection, "superseded", grown)


def _flag(connection: sqlite3.Connection, column: str, wanted: Iterable[tuple[int, int, int]]) -> None:
    for number, was, now in wanted:
        if bool(was) != bool(now):
            connection.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (bool(now), number))  # noqa: S608
            _reopen_after(connection, number)
