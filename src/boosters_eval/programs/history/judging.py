"""Verdicts against the run before: decided when a run enters the index, so that a listing only reads them."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.programs.history import store
from boosters_eval.programs.history.compare import NOT_COMPARABLE, against
from boosters_eval.programs.history.records import COUNTED, JOINED, SERIES, SeriesRow, coded, entry_by_id

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from boosters_eval.programs.history.model import MetricSeries, RunEntry

    Entries = Callable[[int], RunEntry]
    SeriesGetter = Callable[[SeriesRow, str], MetricSeries | None]

_AT_A_TIME = 2000  # rows in one transaction, for which others wait less than a second

_OPEN = (
    f"SELECT {SERIES}, CASE WHEN {COUNTED} THEN"  # noqa: S608 (our names)
    "  (SELECT e.run FROM series e CROSS JOIN runs x ON x.id = e.run WHERE e.line = s.line AND e.at < s.at"
    f"  AND {COUNTED.replace('r.', 'x.')} ORDER BY e.at DESC LIMIT 1) END"
    f" FROM {JOINED} JOIN runs r ON r.id = s.run WHERE s.before IS NULL ORDER BY s.line, s.at LIMIT ?"
)


def judge_open(connection: sqlite3.Connection) -> None:
    """Find the run before of everything that is new or follows something new, and judge it.

    What thousands of rows have in common is judged at once. Of the others, only what a listing shows is judged now.
    """
    if _is_first_of_all(connection):
        return
    # They load scipy, which must not happen while others wait.
    import_module("boosters_eval.programs.history.bulk")
    import_module("boosters_eval.stats.tables")
    more = True
    while more:
        with store.transaction(connection):  # nobody may drop in between what is compared
            more = _judge_some(connection)


def _is_first_of_all(connection: sqlite3.Connection) -> bool:
    """Mark what follows nothing, if that is all: it needs no test, and thus no scipy."""
    with store.transaction(connection):
        rows = connection.execute(_OPEN, (_AT_A_TIME,)).fetchall()
        if len(rows) == _AT_A_TIME or any(row[-1] for row in rows):
            return False
        _write(connection, ((SeriesRow(*row[:-1]), 0, "") for row in rows))
        return True


def _judge_some(connection: sqlite3.Connection) -> bool:
    """Judge some of what is open, line by line; False if there is no more."""
    from boosters_eval.programs.history.bulk import judge_alike  # noqa: PLC0415 (loads scipy)

    found = connection.execute(_OPEN, (_AT_A_TIME,)).fetchall()
    rows = [SeriesRow(*row[:-1]) for row in found]
    here = {(row.line, row.run): row for row in rows}
    pairs: list[tuple[SeriesRow, SeriesRow | None]] = []
    for row, (*_, before) in zip(rows, found, strict=True):
        earlier = (here.get((row.line, before)) or _at(connection, row.line, before)) if before else None
        if before and earlier is None:
            raise store.DamagedIndexError("a row of the index belongs to nothing")
        pairs.append((row, earlier))
    known = judge_alike([(row, before) for row, before in pairs if before is not None])
    measured = _getter(connection)
    made = []
    for row, before in pairs:
        if before is None:
            made.append((row, 0, ""))
            continue
        verdicts = known.get((row.line, row.run), {})
        verdicts |= _verdicts(row, before, measured, [name for name in row.usual() if name not in verdicts])
        made.append((row, before.run, coded(row.measures(), verdicts)))
    _write(connection, made)
    return len(rows) == _AT_A_TIME


def _write(connection: sqlite3.Connection, found: Iterable[tuple[SeriesRow, int, str]]) -> None:
    connection.executemany(
        "UPDATE series SET before = ?, verdicts = ? WHERE line = ? AND at = ? AND run = ?",
        [(before, verdicts, row.line, row.at, row.run) for row, before, verdicts in found],
    )


def judge_metrics(connection: sqlite3.Connection, rows: Iterable[SeriesRow], metrics: Iterable[str] | None) -> None:
    """Judge these metrics, or all, where that has not been done yet."""
    import_module("boosters_eval.stats.tables")  # it loads scipy, which must not happen while others wait
    measured = _getter(connection)
    wanted = None if metrics is None else set(metrics)
    with store.transaction(connection):
        for stale in rows:
            row = _at(connection, stale.line, stale.run)
            if row is None:  # another program dropped it
                continue
            known = row.judged()
            names = [name for name, *_ in row.measures() if name not in known and (wanted is None or name in wanted)]
            before = _at(connection, row.line, row.before) if row.before and names else None
            if before is not None:
                verdicts = known | _verdicts(row, before, measured, names)
                _write(connection, [(row, before.run, coded(row.measures(), verdicts))])


def _getter(connection: sqlite3.Connection) -> SeriesGetter:
    entries: Entries = lru_cache(maxsize=_AT_A_TIME)(partial(entry_by_id, connection))
    return lru_cache(maxsize=8)(lambda row, metric: row.series(entries(row.run), metric))


def _at(connection: sqlite3.Connection, line: int, run: int) -> SeriesRow | None:
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.line = ? AND s.run = ?"  # noqa: S608 (our names)
    found: Sequence[Any] | None = connection.execute(query, (line, run)).fetchone()
    return None if found is None else SeriesRow(*found)


def _verdicts(row: SeriesRow, before: SeriesRow, measured: SeriesGetter, metrics: Iterable[str]) -> dict[str, str]:
    found = {}
    for metric in metrics:
        new, old = measured(row, metric), measured(before, metric)
        if new is None or old is None:
            continue
        try:
            found[metric] = NOT_COMPARABLE if new.settings != old.settings else against(old, new).verdict
        except BoostersEvalError:  # values that no test is made for
            found[metric] = NOT_COMPARABLE
    return found
