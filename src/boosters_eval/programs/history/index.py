"""The index follows the runs: what is new or has changed is read, what is gone is dropped."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from boosters_eval.core.errors import RunError
from boosters_eval.core.findings import Findings
from boosters_eval.core.home import home as home_of
from boosters_eval.core.saying import tell
from boosters_eval.core.text import count_of
from boosters_eval.programs.history import entries, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.history.measured import IndexRows
    from boosters_eval.programs.history.model import IndexedPlace, Origin
    from boosters_eval.programs.history.request import ReindexRequest

IMPORTS = "imports"
_FOLDERS: dict[Origin, str] = {"run": "runs", "import": IMPORTS}
_AT_A_TIME = 200  # runs in one transaction: others wait for less than a second, and memory stays flat
_TRIES = 5
_ONE_JOURNAL = "journal.jsonl"

DAMAGE = (sqlite3.DatabaseError, json.JSONDecodeError, struct.error)  # how it shows while the index is read
Reply = TypeVar("Reply")


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


@dataclass(frozen=True)
class Reindexed(Findings):
    """An index that was made anew."""

    runs: int

    def show(self, screen: Screen) -> None:
        """How many runs it has."""
        screen.note(f"Indexed: {count_of(self.runs, 'run')}.")


def read_all(request: ReindexRequest) -> Reindexed:
    """Make the index anew."""
    return Reindexed(reindex(request.home))


def reindex(home: Path | None = None) -> int:
    """Read everything anew, and return how many runs there are."""
    where = home_of(home)
    if not any((where / folder).is_dir() for folder in _FOLDERS.values()):
        return 0
    try:
        return _read_anew(where)
    except DAMAGE as error:
        if isinstance(error, sqlite3.Error) and not store.is_damage(error):
            raise RunError(f"The index of the history in {where} cannot be written: {error}.") from error
        store.discard(where)
    return _read_anew(where)


def _read_anew(home: Path) -> int:
    with contextlib.closing(store.connect(home)) as connection:
        store.clear(connection)
        update(connection, home)
        return int(connection.execute("SELECT count(*) FROM runs WHERE NOT shadowed").fetchone()[0])


def update(
    connection: sqlite3.Connection,
    home: Path,
    *,
    at_most: int | None = None,
) -> None:
    """Bring the index up to date; with `at_most`, only with the latest so many that it does not have."""
    same, known = _looked_at(connection, home)
    changed = sorted(_scan(home, known, same), key=lambda found: found[1].mtime_ns)  # the oldest first, as lines grow
    stale = [place for place, _ in changed]
    if known:
        with store.transaction(connection):
            for place in known:
                entries.drop(connection, place)
    if at_most is not None and len(stale) > at_most:
        stale = stale[-at_most:]
    if stale:
        _read(connection, home, stale)
    if _is_open(connection):
        _judge_open(connection)


def _is_open(connection: sqlite3.Connection) -> bool:
    """Whether something is not judged yet."""
    return connection.execute("SELECT 1 FROM series WHERE before IS NULL LIMIT 1").fetchone() is not None


def _judge_open(connection: sqlite3.Connection) -> None:
    from boosters_eval.programs.history.judging import judge_open  # noqa: PLC0415 (loads pydantic)

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


def _read(connection: sqlite3.Connection, home: Path, stale: list[IndexedPlace]) -> None:
    left = iter(stale)
    done = 0
    while batch := list(islice(left, _AT_A_TIME)):
        read = [(place, *_rows(home, place)) for place in batch]
        numbers: entries.Known = {}  # for this transaction only: another program may start anew after it
        with store.transaction(connection):
            for place, stamp, found in read:
                if _has(connection, place, stamp):  # another program was faster
                    continue
                entries.drop(connection, place)
                if stamp is not None:
                    connection.execute("INSERT INTO places VALUES (?, ?, ?, ?)", (*place, *stamp))
                    for rows in found:
                        entries.add(connection, place, rows, numbers)
        done += len(batch)
        if done < len(stale):
            tell(f"Reading runs: {done} of {len(stale)}...")


def _has(connection: sqlite3.Connection, place: IndexedPlace, stamp: Stamp | None) -> bool:
    query = "SELECT stamp, journals FROM places WHERE origin = ? AND name = ?"
    return bool(connection.execute(query, place).fetchone() == stamp)


def _rows(home: Path, place: IndexedPlace) -> tuple[Stamp | None, list[IndexRows]]:
    """What a place holds, with its stamp, which is taken first: what is written meanwhile is noticed next time."""
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (loads pydantic)
    from boosters_eval.programs.history.content import Content, read_attempt, read_results  # noqa: PLC0415
    from boosters_eval.programs.history.measured import rows_of  # noqa: PLC0415

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
