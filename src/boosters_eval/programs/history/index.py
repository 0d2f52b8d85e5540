"""The index follows the runs: what is new or has changed is read and judged, what is gone is dropped.

Verdicts against the run before are decided when a run enters the index, so that a listing only reads them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, ConfigError, RunError
from boosters_eval.core.files import home as home_of
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import tell
from boosters_eval.core.text import count_of
from boosters_eval.engine.observer import Observer
from boosters_eval.programs.history import store
from boosters_eval.programs.history.model import (
    COUNTED,
    JOINED,
    NOT_COMPARABLE,
    RUN,
    SERIES,
    SeriesRow,
    encode_verdicts,
    read_entry,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.observer import RunEnded, RunStarted
    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.history.model import IndexedPlace, MetricSeries, Origin, RunEntry
    from boosters_eval.programs.history.request import ReindexRequest
    from boosters_eval.programs.history.store import IndexRows

    SeriesGetter = Callable[[SeriesRow, str], MetricSeries | None]

IMPORTS = "imports"
_FOLDERS: dict[Origin, str] = {"run": "runs", "import": IMPORTS}
_AT_A_TIME = 200  # runs in one transaction: others wait for less than a second, and memory stays flat
_ROWS_AT_A_TIME = 2000  # series that are judged in one transaction, for the same reason
_TRIES = 5
_AT_MOST = 50  # runs that the end of a run adds: the others, of a home never indexed, wait until somebody asks
_WAIT_S = 2.0  # that the end of a run waits for another program
_ONE_JOURNAL = "journal.jsonl"
_OPEN = (  # what is not judged yet, with the run before it
    f"SELECT {SERIES}, CASE WHEN {COUNTED} THEN"  # noqa: S608 (our names)
    "  (SELECT e.run FROM series e CROSS JOIN runs x ON x.id = e.run WHERE e.line = s.line AND e.at < s.at"
    f"  AND {COUNTED.replace('r.', 'x.')} ORDER BY e.at DESC LIMIT 1) END"
    f" FROM {JOINED} JOIN runs r ON r.id = s.run WHERE s.before IS NULL ORDER BY s.line, s.at LIMIT ?"
)

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


def ask_index(question: Callable[[sqlite3.Connection], Reply], home: Path | None = None, *, look: bool = True) -> Reply:
    """Answer a question. If the index turns out to be damaged, it is rebuilt, and asked again.

    Without `look` it is taken as it is: for a second question of one program, which has just looked for new runs.
    """
    where = home_of(home)
    try:
        return _ask(_open_current(where, look=look), question)
    except DAMAGE as error:
        if isinstance(error, sqlite3.Error) and not store.is_damage(error):  # locked for too long, or a full disk
            return _ask(_open_instead(where, error), question)
        store.discard(where)
    return _ask(_open_current(where), question)


def _ask(connection: sqlite3.Connection, question: Callable[[sqlite3.Connection], Reply]) -> Reply:
    with contextlib.closing(connection):
        hold(connection)
        return question(connection)


@contextlib.contextmanager
def stream_index(home: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Open the index for an answer that is given in parts, which cannot be asked for again."""
    where = home_of(home)
    try:
        with contextlib.closing(_open_current(where)) as connection:
            yield connection
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


def update(connection: sqlite3.Connection, home: Path, *, at_most: int | None = None) -> None:
    """Bring the index up to date; with `at_most`, only with the latest so many that it does not have."""
    same, known = _look(connection, home)
    changed = sorted(_scan(home, known, same), key=lambda found: found[1].mtime_ns)  # the oldest first, as lines grow
    stale = [place for place, _ in changed]
    if known:
        with store.transaction(connection):
            for place in known:
                store.drop_place(connection, place)
    if at_most is not None and len(stale) > at_most:
        stale = stale[-at_most:]
    _read(connection, home, stale)
    if _is_open(connection):
        _judge_open(connection)


def _is_open(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM series WHERE before IS NULL LIMIT 1").fetchone() is not None


def _look(connection: sqlite3.Connection, home: Path) -> tuple[set[str], dict[IndexedPlace, Stamp]]:
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
            if root is not None and journals == _ONE_JOURNAL and stamp == _read_usual_stamp(root, name):
                same.add(name)
            else:
                others[origin, name] = Stamp(stamp, journals)
    finally:
        if root is not None:
            os.close(root)
    return same, others


def _read_usual_stamp(root: int, name: str) -> str:
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
            foreign = name[0] == "." or (origin == "import" and not name.endswith(".json"))
            if foreign or any("\ud800" <= letter <= "\udfff" for letter in name):  # not a name that we write
                continue
            place = (origin, name)
            before = known.get(place)
            try:
                stamp = _read_stamp(f"{root}/{name}", before.journals if before else None, origin)
            except OSError:  # it was just removed, or is a link that leads nowhere
                continue
            if known.pop(place, None) != stamp:
                changed.append((place, stamp))
    return changed


def _read_stamp(path: str, journals: str | None, origin: Origin) -> Stamp:
    own = os.stat(path)  # noqa: PTH116 (a Path costs more than the call)
    if origin == "import":
        return Stamp(f"{own.st_mtime_ns} {own.st_size}", "")
    if journals is None:
        with contextlib.suppress(OSError):
            names = os.listdir(path)  # noqa: PTH208
            journals = " ".join(sorted(one for one in names if one.startswith("journal") and one.endswith(".jsonl")))
    found = [str(own.st_mtime_ns)]
    for name in (journals or "").split():
        try:
            file = os.stat(f"{path}/{name}")  # noqa: PTH116
            found.append(f"{file.st_mtime_ns} {file.st_size}")
        except OSError:
            found.append("-")
    return Stamp(";".join(found), journals or "")


def _read(connection: sqlite3.Connection, home: Path, stale: list[IndexedPlace]) -> None:
    for start in range(0, len(stale), _AT_A_TIME):
        batch = stale[start : start + _AT_A_TIME]
        read = [(place, *_read_rows(home, place)) for place in batch]
        numbers: store.Known = {}  # for this transaction only: another program may start anew after it
        with store.transaction(connection):
            for place, stamp, found in read:
                if _has(connection, place, stamp):  # another program was faster
                    continue
                store.drop_place(connection, place)
                if stamp is not None:
                    connection.execute("INSERT INTO places VALUES (?, ?, ?, ?)", (*place, *stamp))
                    for rows in found:
                        store.add_run(connection, place, rows, numbers)
        if start + len(batch) < len(stale):
            tell(f"Reading runs: {start + len(batch)} of {len(stale)}...")


def _has(connection: sqlite3.Connection, place: IndexedPlace, stamp: Stamp | None) -> bool:
    query = "SELECT stamp, journals FROM places WHERE origin = ? AND name = ?"
    return bool(connection.execute(query, place).fetchone() == stamp)


def _read_rows(home: Path, place: IndexedPlace) -> tuple[Stamp | None, list[IndexRows]]:
    """What a place holds, with its stamp, which is taken first: what is written meanwhile is noticed next time."""
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (loads pydantic)
    from boosters_eval.programs.history.run_files import (  # noqa: PLC0415 (loads pydantic)
        Content,
        make_rows,
        read_attempt,
        read_results,
    )

    origin, name = place
    path = home / _FOLDERS[origin] / name
    stamp: Stamp | None = None
    try:
        stamp = _read_stamp(str(path), None, origin)
        if origin == "import":
            return stamp, [make_rows(read_results(path), origin, path.stat().st_mtime)]
        folder = RunFolder(path)
        attempts = folder.attempts()
        written = path.stat().st_mtime
        if not attempts:
            return stamp, [make_rows(Content(name, 0, state="not begun"), origin, written)] if path.is_dir() else []
        return stamp, [make_rows(read_attempt(folder, attempt), origin, written) for attempt in attempts]
    except FileNotFoundError:  # it was just removed
        return None, []
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
        return stamp, [make_rows(Content(name, 1, fault=fault), origin, time.time())] if stamp else []


def _judge_open(connection: sqlite3.Connection) -> None:
    """Find the run before of everything that is new or follows something new, and judge it.

    What thousands of rows have in common is judged at once. Of the others, only what a listing shows is judged now.
    """
    with store.transaction(connection):
        rows = connection.execute(_OPEN, (_ROWS_AT_A_TIME,)).fetchall()
        if len(rows) < _ROWS_AT_A_TIME and not any(row[-1] for row in rows):  # all are first: no test, and no scipy
            _write_verdicts(connection, ((SeriesRow(*row[:-1]), 0, "") for row in rows))
            return
    import_module("boosters_eval.programs.history.compare")  # it loads scipy, which others must not wait for
    more = True
    while more:
        with store.transaction(connection):  # nobody may drop in between what is compared
            more = _judge_some(connection)


def _judge_some(connection: sqlite3.Connection) -> bool:
    """Judge some of what is open, line by line; False if there is no more."""
    from boosters_eval.programs.history.compare import judge_alike  # noqa: PLC0415 (loads scipy)

    found = connection.execute(_OPEN, (_ROWS_AT_A_TIME,)).fetchall()
    rows = [SeriesRow(*row[:-1]) for row in found]
    here = {(row.line, row.run): row for row in rows}
    pairs: list[tuple[SeriesRow, SeriesRow | None]] = []
    for row, (*_, before) in zip(rows, found, strict=True):
        earlier = (here.get((row.line, before)) or _get_row(connection, row.line, before)) if before else None
        if before and earlier is None:
            raise store.DamagedIndexError("a row of the index belongs to nothing")
        pairs.append((row, earlier))
    known = judge_alike([(row, before) for row, before in pairs if before is not None])
    get_series = _make_getter(connection)
    made = []
    for row, before in pairs:
        if before is None:
            made.append((row, 0, ""))
            continue
        verdicts = known.get((row.line, row.run), {})
        verdicts |= _judge(row, before, get_series, [name for name in row.usual() if name not in verdicts])
        made.append((row, before.run, encode_verdicts(row.measures(), verdicts)))
    _write_verdicts(connection, made)
    return len(rows) == _ROWS_AT_A_TIME


def _write_verdicts(connection: sqlite3.Connection, found: Iterable[tuple[SeriesRow, int, str]]) -> None:
    connection.executemany(
        "UPDATE series SET before = ?, verdicts = ? WHERE line = ? AND at = ? AND run = ?",
        [(before, verdicts, row.line, row.at, row.run) for row, before, verdicts in found],
    )


def judge_metrics(connection: sqlite3.Connection, rows: Iterable[SeriesRow], metrics: Iterable[str] | None) -> None:
    """Judge these metrics, or all, where that has not been done yet."""
    import_module("boosters_eval.programs.history.compare")  # it loads scipy, which others must not wait for
    get_series = _make_getter(connection)
    wanted = None if metrics is None else set(metrics)
    with store.transaction(connection):
        for stale in rows:
            row = _get_row(connection, stale.line, stale.run)
            if row is None:  # another program dropped it
                continue
            known = row.judged()
            names = [name for name, *_ in row.measures() if name not in known and (wanted is None or name in wanted)]
            before = _get_row(connection, row.line, row.before) if row.before and names else None
            if before is not None:
                verdicts = known | _judge(row, before, get_series, names)
                _write_verdicts(connection, [(row, before.run, encode_verdicts(row.measures(), verdicts))])


def _make_getter(connection: sqlite3.Connection) -> SeriesGetter:
    """Look up series with a small cache: a row is judged once itself, and once as the run before."""

    @lru_cache(maxsize=_ROWS_AT_A_TIME)
    def entry(number: int) -> RunEntry:
        found = connection.execute(f"SELECT {RUN} FROM runs r WHERE r.id = ?", (number,)).fetchone()  # noqa: S608 (our names)
        if found is None:
            raise store.DamagedIndexError(f"there is no run {number}")
        return read_entry(found)

    return lru_cache(maxsize=8)(lambda row, metric: row.series(entry(row.run), metric))


def _get_row(connection: sqlite3.Connection, line: int, run: int) -> SeriesRow | None:
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.line = ? AND s.run = ?"  # noqa: S608 (our names)
    found: Sequence[Any] | None = connection.execute(query, (line, run)).fetchone()
    return None if found is None else SeriesRow(*found)


def _judge(row: SeriesRow, before: SeriesRow, get_series: SeriesGetter, metrics: Iterable[str]) -> dict[str, str]:
    from boosters_eval.programs.history.compare import compare_series  # noqa: PLC0415 (loads scipy)

    found = {}
    for metric in metrics:
        new, old = get_series(row, metric), get_series(before, metric)
        if new is None or old is None:
            continue
        try:
            found[metric] = NOT_COMPARABLE if new.settings != old.settings else compare_series(old, new).verdict
        except BoostersEvalError:  # values that no test is made for
            found[metric] = NOT_COMPARABLE
    return found
