"""The tables of the index: how a run enters them and leaves them, and what must then be judged again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.programs.history.records import COUNTED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boosters_eval.programs.history.measured import IndexGroup, IndexRows
    from boosters_eval.programs.history.model import IndexedPlace

Known = dict[object, int]  # numbers of texts and lines


def add(connection: sqlite3.Connection, place: IndexedPlace, rows: IndexRows, known: Known) -> None:
    """Enter one attempt of a run; what follows it in its lines is open again."""
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


def drop(connection: sqlite3.Connection, place: IndexedPlace) -> None:
    """Take out a place, with all of its runs."""
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
