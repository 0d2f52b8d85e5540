"""Verdicts against the run before: decided when a run enters the index, so that a listing only reads them."""

from __future__ import annotations

import json
from functools import lru_cache, partial
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
    Measured = Callable[[SeriesRow, str], MetricSeries | None]

_AT_A_TIME = 2_000  # rows in one transaction


def judge_open(connection: sqlite3.Connection) -> None:
    """Find the run before of everything that is new or follows something new, and judge what a listing shows."""
    entries: Entries = lru_cache(maxsize=2_000)(partial(entry_by_id, connection))
    measured: Measured = lru_cache(maxsize=8)(lambda row, metric: row.series(entries(row.run), metric))
    last: SeriesRow | None = None  # most often the one that the next row follows
    while True:
        numbers = connection.execute(
            "SELECT line, at, run FROM series WHERE before IS NULL ORDER BY line, at LIMIT ?", (_AT_A_TIME,)
        ).fetchall()
        if not numbers:
            return
        found = []
        for place in numbers:
            row, entry = _row(connection, place), entries(place[2])
            before = _before(connection, row, entry, last)
            verdicts = {} if before is None else _verdicts(row, before, measured, row.usual())
            found.append((0 if before is None else before.run, json.dumps(verdicts), *place))
            last = row
        with store.transaction(connection):
            connection.executemany(
                "UPDATE series SET before = ?, verdicts = ? WHERE line = ? AND at = ? AND run = ?", found
            )


def judge_metrics(connection: sqlite3.Connection, rows: Iterable[SeriesRow], metrics: Iterable[str] | None) -> None:
    """Judge these metrics, or all, where that has not been done yet."""
    entries: Entries = lru_cache(maxsize=100)(partial(entry_by_id, connection))
    measured: Measured = lambda row, metric: row.series(entries(row.run), metric)  # noqa: E731
    wanted = None if metrics is None else set(metrics)
    found = []
    for row in rows:
        known = row.judged()
        names = [name for name, *_ in row.measures() if name not in known and (wanted is None or name in wanted)]
        if not row.before or not names:
            continue
        place = connection.execute(
            "SELECT line, at, run FROM series WHERE line = ? AND run = ?", (row.line, row.before)
        ).fetchone()
        if place is not None:
            verdicts = {**known, **_verdicts(row, _row(connection, place), measured, names)}
            found.append((json.dumps(verdicts), row.line, row.at, row.run))
    if found:
        with store.transaction(connection):
            connection.executemany("UPDATE series SET verdicts = ? WHERE line = ? AND at = ? AND run = ?", found)


def _row(connection: sqlite3.Connection, place: tuple[int, int, int]) -> SeriesRow:
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.line = ? AND s.at = ? AND s.run = ?"  # noqa: S608 (our names)
    return SeriesRow(*connection.execute(query, place).fetchone())


def _before(
    connection: sqlite3.Connection, row: SeriesRow, entry: RunEntry, last: SeriesRow | None
) -> SeriesRow | None:
    """The same line in the latest finished run that began earlier; nothing precedes a run that is not finished."""
    if entry.state != "finished" or entry.superseded:
        return None
    place = connection.execute(
        "SELECT s.line, s.at, s.run FROM series s CROSS JOIN runs r ON r.id = s.run"
        f" WHERE s.line = ? AND s.at < ? AND {COUNTED} ORDER BY s.at DESC LIMIT 1",  # noqa: S608 (our names)
        (row.line, row.at),
    ).fetchone()
    if place is None:
        return None
    return last if last is not None and place == (last.line, last.at, last.run) else _row(connection, place)


def _verdicts(row: SeriesRow, before: SeriesRow, measured: Measured, metrics: Iterable[str]) -> dict[str, str]:
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
