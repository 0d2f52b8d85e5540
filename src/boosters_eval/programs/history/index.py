"""The index follows the runs: what is new or has changed is read, what is gone is dropped."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, ConfigError, RunError
from boosters_eval.core.files import find_home as home_of
from boosters_eval.core.findings import Findings, Screen
from boosters_eval.core.terms import tell
from boosters_eval.core.text import count_of
from boosters_eval.engine.observer import Observer, RunEnded, RunStarted
from boosters_eval.programs.history import store
from boosters_eval.programs.history.verdicts import judge_latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.history.model import IndexedPlace, Origin
    from boosters_eval.programs.history.request import ReindexRequest
    from boosters_eval.programs.history.store import IndexRows

IMPORTS = "imports"
_FOLDERS: dict[Origin, str] = {"run": "runs", "import": IMPORTS}
_AT_A_TIME = 200  # runs in one transaction: others wait for less than a second, and memory stays flat
_AT_MOST = 50  # runs that the end of a run adds: the others, of a home never indexed, wait until somebody asks
_WAIT_S = 2.0  # that the end of a run waits for another program

# How damage shows while the index is read.
DAMAGE = (sqlite3.DatabaseError, ValueError, TypeError, LookupError, RecursionError, struct.error)
Reply = TypeVar("Reply")


class Stamp(NamedTuple):
    """By what a change is noticed without reading: times and sizes, of the folder and of its journals."""

    text: str
    journals: str


def ask_index(question: Callable[[sqlite3.Connection], Reply], home: Path | None = None, *, look: bool = True) -> Reply:
    """Answer a question. If the index turns out to be damaged, it is rebuilt, and asked again.

    Without `look` it is taken as it is: for a second question of one program, which has just looked for new runs.
    """
    where = home_of(home)
    try:
        return _ask(_open_current(where, look=look), question)
    except BoostersEvalError:
        raise
    except DAMAGE as error:
        if isinstance(error, sqlite3.Error) and not store.is_damage(error):  # locked for too long, or a full disk
            return _ask(_open_instead(where, error), question)
        store.discard(where)
    return _ask(_open_current(where), question)


def _ask(connection: sqlite3.Connection, question: Callable[[sqlite3.Connection], Reply]) -> Reply:
    with contextlib.closing(connection):
        connection.execute("BEGIN")  # one state of the index, whatever other programs do meanwhile
        return question(connection)


@contextlib.contextmanager
def stream_index(home: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Open the index for an answer that is given in parts, which cannot be asked for again."""
    where = home_of(home)
    try:
        with contextlib.closing(_open_current(where)) as connection:
            yield connection
    except BoostersEvalError:
        raise
    except DAMAGE:
        store.discard(where)
        raise RunError(f"{where / store.FILE} is damaged: it was removed, and is made anew if you ask again.") from None


def _open_current(home: Path, *, look: bool = True) -> sqlite3.Connection:
    """Open the index, up to date. Where it cannot be used, one in memory takes its place."""
    if not any((home / folder).is_dir() for folder in _FOLDERS.values()):
        return store.open_in_memory(home, copied=False)
    trouble: sqlite3.Error | OSError | None = None
    for _ in range(2):
        try:
            connection = store.connect(home)
            return _update(connection, home) if look else connection
        except (sqlite3.Error, OSError) as error:
            trouble = error
            if not store.is_damage(error):
                break
            store.discard(home)
    return _open_instead(home, trouble)


def _open_instead(home: Path, trouble: sqlite3.Error | OSError | None) -> sqlite3.Connection:
    if trouble is not None:
        store.warn(home, trouble)
    try:
        return _update(store.open_in_memory(home), home)
    except sqlite3.Error:
        return _update(store.open_in_memory(home, copied=False), home)


def _update(connection: sqlite3.Connection, home: Path) -> sqlite3.Connection:
    try:
        update(connection, home)
    except BaseException:
        connection.close()
        raise
    return connection


class HistoryObserver(Observer):
    """Indexes the home of a run when it ends, also if it was interrupted.

    That is a convenience: whatever fails here is done at the next question.
    """

    _home: Path | None = None

    @classmethod
    def expected_seconds(cls, plan: Plan, home: Path | None) -> Mapping[str, float]:
        """What cells of this machine took before; empty unless it knows half of the plan's."""
        from boosters_eval.programs.benchmark.suites import costs_by_key, seconds_by_key  # noqa: PLC0415
        from boosters_eval.programs.history.query import read_cell_seconds  # noqa: PLC0415

        try:
            return seconds_by_key(plan.cells, costs_by_key(read_cell_seconds(home)))
        except Exception:  # noqa: BLE001 (an estimate must never harm a run)
            return {}

    def begin(self, event: RunStarted) -> None:
        self._home = None if event.folder is None else event.folder.parent.parent

    def end(self, event: RunEnded) -> None:  # noqa: ARG002 (what it left on disk is read)
        if self._home is not None:
            record_runs(self._home)


def record_runs(home: Path | None = None) -> None:
    """Index what has just been run. It never raises: a run must not fail because of the index."""
    try:
        _record(home)
    except Exception as error:  # noqa: BLE001 (whatever it is, the run itself is done and kept)
        message = f"The run is not in the index of the history yet ({error}); the next 'history' adds it."
        warnings.warn(message, BoostersEvalWarning, stacklevel=2)


def _record(home: Path | None) -> None:
    try:
        where = home_of(home)
    except ConfigError:  # nothing was run there, and whoever tried has been told
        return
    if not (where / "runs").is_dir():
        return
    try:
        with contextlib.closing(store.connect(where, wait_s=_WAIT_S)) as connection:
            update(connection, where, at_most=_AT_MOST)
            judge_latest(connection, where)
    except sqlite3.OperationalError as error:
        if store.primary_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):  # another program does it
            raise


@dataclass(frozen=True)
class Reindexed(Findings):
    """An index that was made anew."""

    runs: int

    def show(self, screen: Screen) -> None:
        screen.note(f"Indexed: {count_of(self.runs, 'run')}.")


def rebuild_index(request: ReindexRequest) -> Reindexed:
    return Reindexed(reindex(request.home))


def reindex(home: Path | None = None) -> int:
    """Read everything anew, and return how many runs there are."""
    where = home_of(home)
    if not any((where / folder).is_dir() for folder in _FOLDERS.values()):
        return 0
    try:
        return _read_anew(where)
    except BoostersEvalError:
        raise
    except DAMAGE as error:
        if isinstance(error, sqlite3.Error) and not store.is_damage(error):
            raise RunError(f"The index of the history in {where} cannot be written: {error}.") from error
        store.discard(where)
    return _read_anew(where)


def _read_anew(home: Path) -> int:
    with contextlib.closing(store.connect(home)) as connection:
        store.clear(connection)
        update(connection, home)
        judge_latest(connection, home)
        return int(connection.execute("SELECT count(*) FROM runs WHERE NOT shadowed").fetchone()[0])


def update(connection: sqlite3.Connection, home: Path, *, at_most: int | None = None) -> None:
    """Bring the index up to date; with `at_most`, only with the latest so many that it does not have."""
    places = connection.execute("SELECT origin, name, stamp, journals FROM places")
    known = {(origin, name): Stamp(*stamp) for origin, name, *stamp in places}
    # The oldest first, as lines grow: a stamp begins with the time of the folder or file.
    changed = sorted(_scan(home, known), key=lambda found: int(found[1].text.partition(" ")[0]))
    stale = [place for place, _ in changed]
    if known:
        with store.transaction(connection):
            for place in known:
                store.drop_place(connection, place)
    if at_most is not None and len(stale) > at_most:
        stale = stale[-at_most:]
    _read(connection, home, stale)


def _scan(home: Path, known: dict[IndexedPlace, Stamp]) -> list[tuple[IndexedPlace, Stamp]]:
    """The places that are new or have changed; those that are found are taken out of `known`.

    Every question asks this of all runs, so it does nothing but look: two calls of the system per run.
    """
    changed: list[tuple[IndexedPlace, Stamp]] = []
    for origin, folder in _FOLDERS.items():
        try:
            root = os.open(home / folder, os.O_RDONLY | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            for name in os.listdir(root):  # noqa: PTH208 (so is a Path)
                foreign = name[0] == "." or (origin == "import" and not name.endswith(".json"))
                if foreign or not (name.isascii() or name.encode(errors="ignore").decode() == name):
                    continue
                before = known.get((origin, name))
                journals = before.journals if before else _list_journals(home / folder / name)
                with contextlib.suppress(OSError):  # it was just removed, or is a link that leads nowhere
                    stamp = _read_stamp(name, journals, root)
                    if known.pop((origin, name), None) != stamp:
                        changed.append(((origin, name), stamp))
        finally:
            os.close(root)
    return changed


def _list_journals(path: Path) -> str:
    """The journals of a run's folder; most have one, and an imported file has none."""
    try:
        return " ".join(sorted(file.name for file in path.glob("journal*.jsonl")))
    except OSError:
        return ""


def _read_stamp(name: str, journals: str, root: int | None = None) -> Stamp:
    """The stamp of a folder or file, whose name may begin at an open folder."""
    own = os.stat(name, dir_fd=root)  # a Path costs more than the call
    text = f"{own.st_mtime_ns} {own.st_size}"
    for journal in journals.split():
        try:
            file = os.stat(f"{name}/{journal}", dir_fd=root)
            text += f";{file.st_mtime_ns} {file.st_size}"
        except OSError:
            text += ";-"
    return Stamp(text, journals)


def _read(connection: sqlite3.Connection, home: Path, stale: list[IndexedPlace]) -> None:
    for start in range(0, len(stale), _AT_A_TIME):
        batch = stale[start : start + _AT_A_TIME]
        read = [(place, *_read_rows(home, place)) for place in batch]
        numbers: store.Known = {}  # for this transaction only: another program may start anew after it
        with store.transaction(connection):
            for place, stamp, found in read:
                query = "SELECT stamp, journals FROM places WHERE origin = ? AND name = ?"
                if connection.execute(query, place).fetchone() == stamp:  # another program was faster
                    continue
                store.drop_place(connection, place)
                if stamp is not None:
                    connection.execute("INSERT INTO places VALUES (?, ?, ?, ?)", (*place, *stamp))
                    for rows in found:
                        store.add_run(connection, place, rows, numbers)
        if start + len(batch) < len(stale):
            tell(f"Reading runs: {start + len(batch)} of {len(stale)}...")


def _read_rows(home: Path, place: IndexedPlace) -> tuple[Stamp | None, list[IndexRows]]:
    """What a place holds, with its stamp, which is taken first: what is written meanwhile is noticed next time."""
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (loads pydantic)
    from boosters_eval.programs.history.run_files import (  # noqa: PLC0415 (loads pydantic)
        RunContent,
        make_rows,
        read_attempt,
        read_results,
    )

    origin, name = place
    path = home / _FOLDERS[origin] / name
    stamp: Stamp | None = None
    try:
        stamp = _read_stamp(str(path), _list_journals(path))
        if origin == "import":
            return stamp, [make_rows(read_results(path), origin, path.stat().st_mtime)]
        folder = RunFolder(path)
        attempts = folder.attempts()
        written = path.stat().st_mtime
        if not attempts:
            return stamp, [make_rows(RunContent(name, 0, state="not begun"), origin, written)] if path.is_dir() else []
        return stamp, [make_rows(read_attempt(folder, attempt), origin, written) for attempt in attempts]
    except FileNotFoundError:  # it was just removed
        return None, []
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
        return stamp, [make_rows(RunContent(name, 1, fault=fault), origin, time.time())] if stamp else []
