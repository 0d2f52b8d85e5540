"""The rows of the index as they are asked for: runs, what they tried, and what they measured.

Listing reads these alone, so that it needs no scientific package.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.programs.history.model import NOT_COMPARABLE, HistoryFilter, MetricSeries, RepeatValue, RunEntry

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

_ENTRY = [one.name for one in fields(RunEntry)]
_SAME = "(SELECT count(*) FROM runs y WHERE y.run_id = r.run_id AND NOT y.shadowed{}) > 1"
_COLUMNS = {
    "source": "r.place",
    "reference": "r.run_id"
    f" || CASE WHEN r.attempt > 1 OR {_SAME.format('')} THEN '/' || r.attempt ELSE '' END"
    f" || CASE WHEN {_SAME.format(' AND y.attempt = r.attempt')} THEN '@' || substr(r.machine, 1, 6) ELSE '' END",
}
RUN = ", ".join(_COLUMNS.get(name, f"r.{name}") for name in ("id", *_ENTRY))
COUNTED = "r.state = 'finished' AND NOT r.shadowed AND NOT r.superseded"  # what is a point of a line
# The last columns are the run before it in its line (0: there is none, null: it does not count itself), and what was
# kept of an earlier judgment, with the run that it was against.
SERIES = (
    "s.line, s.run, l.config, l.dataset, l.target, l.library, l.settings, n.text,"  # noqa: S608 (our names)
    " p.text, s.marks, s.numbers, s.failed,"
    f" CASE WHEN {COUNTED} THEN"
    " ifnull((SELECT e.run FROM series e CROSS JOIN runs x ON x.id = e.run WHERE e.line = s.line AND e.at < s.at"
    f" AND {COUNTED.replace('r.', 'x.')} ORDER BY e.at DESC LIMIT 1), 0) END, v.before, v.verdicts"
)
JOINED = (
    "series s JOIN runs r ON r.id = s.run JOIN lines l ON l.id = s.line JOIN texts n ON n.id = s.names"
    " JOIN texts p ON p.id = s.repeats LEFT JOIN verdicts v ON v.line = s.line AND v.run = s.run"
)
_MOST = 2**63 - 1  # that a limit of the index can be
PER_SECOND = 1_000_000_000  # steps of the column `at`, which orders runs in time
_CODES = {
    "better": "b",
    "worse": "w",
    "equivalent": "e",
    "identical": "=",
    "inconclusive": "i",
    NOT_COMPARABLE: "n",
    "": "-",
}
_VERDICTS = {code: verdict for verdict, code in _CODES.items()}


class SeriesRow(NamedTuple):
    """The scores or the resources of one competitor on one benchmark in one run."""

    line: int
    run: int
    config: str
    dataset: str
    target: str
    library: str
    settings: str
    names: str
    repeats: str
    marks: str
    numbers: bytes
    failed: int
    before: int | None  # the run before; 0: there is none, None: it does not count itself
    judged_against: int | None  # None: not judged yet
    verdicts: str | None  # as `encode_verdicts` writes them

    def measures(self) -> list[tuple[str, bool | None, bool, str]]:
        """The name, direction, importance and digest of each metric."""
        found: list[tuple[str, bool | None, bool, str]] = load_shared(self.names)
        return found

    def judged(self) -> dict[str, str]:
        """The verdicts that are known already, by metric."""
        kept = (self.verdicts or "") if self.judged_against == self.before else ""
        pairs = zip(self.measures(), kept, strict=False)
        return {name: _VERDICTS[code] for (name, *_), code in pairs if code in _VERDICTS}

    def means(self) -> dict[str, tuple[float, int]]:
        """The mean and the number of values of each metric."""
        found = {}
        for (name, *_), values in zip(self.measures(), self._values(), strict=True):
            there = [value for value in values if not math.isnan(value)]
            if there:
                found[name] = math.fsum(there) / len(there), len(there)
        return found

    def _values(self) -> list[tuple[float, ...]]:
        count = len(self.numbers) // 8
        flat = struct.unpack(f"<{count}d", self.numbers)
        repeats = count // max(1, len(self.measures()))
        return [flat[start : start + repeats] for start in range(0, count, repeats or 1)]

    def series(self, entry: RunEntry, wanted: str) -> MetricSeries | None:
        """One metric with all its repeats, or None if there is no value."""
        from boosters_eval.core.request import Part  # noqa: PLC0415 (keeps listing fast)
        from boosters_eval.metrics.catalog import RESOURCES  # noqa: PLC0415

        names = self.measures()
        index = next((number for number, (name, *_) in enumerate(names) if name == wanted), None)
        if index is None:
            return None
        _, higher, primary, digest = names[index]
        data, repeats = load_shared(self.repeats)
        predictions, fair = json.loads(self.marks)
        if wanted in RESOURCES:
            predictions = [""] * len(repeats)
        if not wanted.endswith("_time_s"):
            fair = [True] * len(repeats)
        values = self._values()[index]
        observations = tuple(
            RepeatValue(
                *(seed, fold, value, split, n_train, n_valid, predicted or None, kind, train, valid),
                part and Part(*part),
                judged,
            )
            for (seed, fold, split, n_train, n_valid, kind, train, valid, part), value, predicted, judged in zip(
                repeats, values, predictions, fair, strict=True
            )
            if value == value  # noqa: PLR0124 (NaN: there is none)
        )
        if not observations:
            return None
        return MetricSeries(
            entry=entry,
            config=self.config,
            dataset=self.dataset,
            target=self.target,
            library=self.library,
            version=entry.versions.get(self.target, ""),
            metric=wanted,
            higher_is_better=higher,
            primary=bool(primary),
            data_digest=data,
            settings=f"{self.settings}{digest}",
            failed=self.failed,
            observations=observations,
        )


def encode_verdicts(measures: Iterable[tuple[str, bool | None, bool, str]], verdicts: Mapping[str, str]) -> str:
    """Verdicts as the index keeps them: a letter per metric, and a dot for what is not judged."""
    return "".join(_CODES[verdicts[name]] if name in verdicts else "." for name, *_ in measures)


@lru_cache(maxsize=4096)
def load_shared(text: str) -> Any:
    """JSON that many runs share, and nobody changes."""
    return json.loads(text)


def read_entry(row: tuple[Any, ...]) -> RunEntry:
    """A run, from the columns of RUN."""
    known = dict(zip(_ENTRY, row[1:], strict=True))
    known["git_dirty"] = None if known["git_dirty"] is None else bool(known["git_dirty"])
    known["versions"] = load_shared(known["versions"])
    return RunEntry(**{**known, "superseded": bool(known["superseded"])})


def choose_runs(connection: sqlite3.Connection, wanted: HistoryFilter) -> tuple[str, list[Any]]:
    """The condition on the table of runs, called `r`, and its values."""
    where, given = ["NOT r.shadowed"], list[Any]()

    def add(condition: str, *parameters: Any) -> None:
        where.append(condition)
        given.extend(parameters)

    if wanted.suite is not None:
        add("r.title = ?", encodable(wanted.suite))
    if wanted.machine is not None:
        machine = encodable(wanted.machine)
        add("(instr(lower(r.machine), lower(?)) = 1 OR instr(lower(r.machine_label), lower(?)))", machine, machine)
    if wanted.since is not None:
        add("r.at >= ?", int(datetime.fromisoformat(wanted.since).timestamp()) * PER_SECOND)
    if wanted.datasets or wanted.libraries:
        condition, parameters = choose_parts(wanted, "p")
        add(f"EXISTS (SELECT 1 FROM parts p WHERE p.run = r.id AND {condition})", *parameters)  # noqa: S608 (our names)
    if wanted.metrics:
        texts = connection.execute("SELECT id, text FROM texts WHERE text LIKE '[[%'")
        named = (str(number) for number, text in texts if {name for name, *_ in json.loads(text)} & {*wanted.metrics})
        condition, parameters = choose_parts(wanted, "l")
        add(
            "EXISTS (SELECT 1 FROM series s JOIN lines l ON l.id = s.line"  # noqa: S608 (our names)
            f" WHERE s.run = r.id AND s.names IN ({', '.join(named)}) AND {condition})",
            *parameters,
        )
    return " AND ".join(where), given


def choose_parts(wanted: HistoryFilter, table: str) -> tuple[str, list[str]]:
    """The condition on data sets and libraries, in a table that has columns for them, and its values."""
    parts, values = ["1"], list[str]()
    if wanted.datasets:
        parts.append(f"{table}.dataset IN ({', '.join('?' * len(wanted.datasets))})")
        values += map(encodable, wanted.datasets)
    if wanted.libraries:
        marks = ", ".join("?" * len(wanted.libraries))
        parts.append(f"({table}.target IN ({marks}) OR {table}.library IN ({marks}))")
        values += 2 * [*map(encodable, wanted.libraries)]
    return " AND ".join(parts), values


def encodable(name: str) -> str:
    """A name as the index can be asked for it: an argument may have bytes that are no text, which no run has."""
    return name.encode(errors="replace").decode()


def select_runs(
    connection: sqlite3.Connection, wanted: HistoryFilter, more: str = "", values: Sequence[Any] = ()
) -> list[tuple[int, RunEntry]]:
    """The runs that are meant, the latest first, with their numbers."""
    where, given = choose_runs(connection, wanted)
    if more:
        where, given = f"{more} AND {where}", [*values, *given]
    limit = "" if wanted.limit is None else f" LIMIT {min(wanted.limit, _MOST)}"
    query = f"SELECT {RUN} FROM runs r WHERE {where} ORDER BY r.at DESC{limit}"  # noqa: S608 (our names)
    return [(row[0], read_entry(row)) for row in connection.execute(query, given)]


def select_rows(connection: sqlite3.Connection, number: int, wanted: HistoryFilter) -> list[SeriesRow]:
    condition, values = choose_parts(wanted, "l")
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.run = ? AND {condition}"  # noqa: S608 (our names)
    return [SeriesRow(*row) for row in connection.execute(query, (number, *values))]


def find_row(connection: sqlite3.Connection, line: int, run: int) -> tuple[RunEntry, SeriesRow] | None:
    """One row, with its run."""
    query = f"SELECT {RUN}, {SERIES} FROM {JOINED} WHERE s.line = ? AND s.run = ?"  # noqa: S608 (our names)
    found = connection.execute(query, (line, run)).fetchone()
    columns = len(_ENTRY) + 1
    return None if found is None else (read_entry(found[:columns]), SeriesRow(*found[columns:]))


def select_parts(
    connection: sqlite3.Connection, wanted: HistoryFilter, where: str, *given: int
) -> list[tuple[int, str, str, str, str, int]]:
    """What runs tried: run, benchmark, data set, competitor, library, failed cells; in the order of their plans."""
    condition, values = choose_parts(wanted, "p")
    query = (
        "SELECT p.run, p.config, p.dataset, p.target, p.library, p.failed FROM parts p"  # noqa: S608 (our names)
        f" WHERE {where} AND {condition} ORDER BY p.rowid"
    )
    return connection.execute(query, (*given, *values)).fetchall()


def find_number(connection: sqlite3.Connection, entry: RunEntry) -> int | None:
    """The number of a run at this moment: while an answer is given in parts, another program may read a run anew."""
    found = connection.execute("SELECT id FROM runs WHERE key = ? AND NOT shadowed", (entry.key,)).fetchone()
    return None if found is None else int(found[0])
