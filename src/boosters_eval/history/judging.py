"""Verdicts against the run before: decided when a run enters the index, so that a listing only reads them."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.history import store
from boosters_eval.history.compare import NOT_COMPARABLE, against
from boosters_eval.history.records import COUNTED, JOINED, SERIES, SeriesRow, entry_by_id

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from boosters_eval.history.model import MetricSeries, RunEntry

    Entries = Callable[[int], RunEntry]
    SeriesGetter = Callable[[SeriesRow, str], MetricSeries | None]

_AT_A_TIME = 500  # rows in one transaction, for which others wait less than a second


def judge_open(connection: sqlite3.Connection) -> None:
    """Find the run before of everything that is new or follows something new, and judge what a listing shows."""
    import_module("boosters_eval.stats.tables")  # it loads scipy, which must not happen while others wait
    more = True
    while more:
        with store.transaction(connection):  # nobody may drop in between what is compared
            more = _judge_some(connection)


def _judge_some(connection: sqlite3.Connection) -> bool:
    """Judge some of what is open, line by line; False if there is no more."""
    entries: Entries = lru_cache(maxsize=_AT_A_TIME)(partial(entry_by_id, connection))
    measured: SeriesGetter = lru_cache(maxsize=8)(lambda row, metric: row.series(entries(row.run), metric))
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.before IS NULL ORDER BY s.line, s.at LIMIT ?"  # noqa: S608 (our names)
    rows = [SeriesRow(*row) for row in connection.execute(query, (_AT_A_TIME,))]
    last: SeriesRow | None = None  # most often the one that the next row follows
    found = []
    for row in rows:
        before = _before(connection, row, entries(row.run), last)
        verdicts = {} if before is None else _verdicts(row, before, measured, row.usual())
        found.append((0 if before is None else before.run, json.dumps(verdicts), row.line, row.at, row.run))
        last = row
    connection.executemany("UPDATE series SET before = ?, verdicts = ? WHERE line = ? AND at = ? AND run = ?", found)
    return len(rows) == _AT_A_TIME


def judge_metrics(connection: sqlite3.Connection, rows: Iterable[SeriesRow], metrics: Iterable[str] | None) -> None:
    """Judge these metrics, or all, where that has not been done yet."""
    entries: Entries = lru_cache(maxsize=_AT_A_TIME)(partial(entry_by_id, connection))
    measured: SeriesGetter = lru_cache(maxsize=8)(lambda row, metric: row.series(entries(row.run), metric))
    wanted = None if metrics is None else set(metrics)
    with store.transaction(connection):
        for row in rows:
            known = row.judged()
            names = [name for name, *_ in row.measures() if name not in known and (wanted is None or name in wanted)]
            before = row.before and names and _at(connection, row.line, row.before)
            if before:
                verdicts = {**known, **_verdicts(row, before, measured, names)}
                connection.execute(
                    "UPDATE series SET verdicts = ? WHERE line = ? AND at = ? AND run = ?",
                    (json.dumps(verdicts), row.line, row.at, row.run),
                )


def _at(connection: sqlite3.Connection, line: int, run: int) -> SeriesRow:
    query = "SELECT line, at, run FROM series WHERE line = ? AND run = ?"
    return _row(connection, connection.execute(query, (line, run)).fetchone() or (line, 0, run))


def _row(connection: sqlite3.Connection, place: tuple[int, int, int]) -> SeriesRow:
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.line = ? AND s.at = ? AND s.run = ?"  # noqa: S608 (our names)
    found = connection.execute(query, place).fetchone()
    if found is None:
        raise store.DamagedIndexError("a row of the index belongs to nothing")
    return SeriesRow(*found)


def _before(
    connection: sqlite3.Connection, row: SeriesRow, entry: RunEntry, last: SeriesRow | None
) -> SeriesRow | None:
    """The same line in the latest finished run that began earlier; nothing precedes a run that is not finished."""
    if entry.state != "finished" or entry.superseded:
        return None
    place = connection.execute(
        "SELECT s.line, s.at, s.run FROM series s CROSS JOIN runs r ON r.id = s.run"  # noqa: S608 (our names)
        f" WHERE s.line = ? AND s.at < ? AND {COUNTED} ORDER BY s.at DESC LIMIT 1",
        (row.line, row.at),
    ).fetchone()
    if place is None:
        return None
    return last if last is not None and place == (last.line, last.at, last.run) else _row(connection, place)


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
