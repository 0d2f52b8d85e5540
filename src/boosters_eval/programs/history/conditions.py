"""What a filter of the history means to its index: conditions of SQL, and the values that they are given."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.programs.history.records import PER_SECOND

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from boosters_eval.programs.history.model import HistoryFilter


def runs_meant(connection: sqlite3.Connection, wanted: HistoryFilter) -> tuple[str, list[Any]]:
    """The condition on the table of runs, called `r`, and its values."""
    where, given = ["NOT r.shadowed"], list[Any]()

    def add(condition: str, *parameters: Any) -> None:
        where.append(condition)
        given.extend(parameters)

    if wanted.suite is not None:
        add("r.title = ?", askable(wanted.suite))
    if wanted.machine is not None:
        machine = askable(wanted.machine)
        add("(instr(lower(r.machine), lower(?)) = 1 OR instr(lower(r.machine_label), lower(?)))", machine, machine)
    if wanted.since is not None:
        add("r.at >= ?", int(datetime.fromisoformat(wanted.since).timestamp()) * PER_SECOND)
    if wanted.datasets or wanted.libraries:
        condition, parameters = parts_meant(wanted, "p")
        add(f"EXISTS (SELECT 1 FROM parts p WHERE p.run = r.id AND {condition})", *parameters)  # noqa: S608 (our names)
    if wanted.metrics:
        condition, parameters = parts_meant(wanted, "l")
        add(
            "EXISTS (SELECT 1 FROM series s JOIN lines l ON l.id = s.line"  # noqa: S608 (our names)
            " WHERE s.run = r.id AND s.names IN"
            f" ({_names(connection, wanted.metrics)}) AND {condition})",
            *parameters,
        )
    return " AND ".join(where), given


def parts_meant(wanted: HistoryFilter, table: str) -> tuple[str, list[str]]:
    """The condition on data sets and libraries, in a table that has columns for them, and its values."""
    parts, values = ["1"], list[str]()
    if wanted.datasets:
        parts.append(f"{table}.dataset IN ({_marks(wanted.datasets)})")
        values += map(askable, wanted.datasets)
    if wanted.libraries:
        marks = _marks(wanted.libraries)
        parts.append(f"({table}.target IN ({marks}) OR {table}.library IN ({marks}))")
        values += 2 * [*map(askable, wanted.libraries)]
    return " AND ".join(parts), values


def askable(name: str) -> str:
    """A name as the index can be asked for it: an argument may have bytes that are no text, which no run has."""
    return name.encode(errors="replace").decode()


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _names(connection: sqlite3.Connection, metrics: Sequence[str]) -> str:
    """The numbers of the few texts that name one of these metrics."""
    texts = connection.execute("SELECT id, text FROM texts WHERE text LIKE '[[%'")
    return ", ".join(str(number) for number, text in texts if {name for name, *_ in json.loads(text)} & set(metrics))
