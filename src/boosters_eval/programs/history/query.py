"""Questions to the history. Each looks for new, changed and removed runs first; what is listed loads no models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.home import home as home_of
from boosters_eval.core.terms import the
from boosters_eval.programs.history.index import IMPORTS, answered, hold, streaming
from boosters_eval.programs.history.model import Change, HistoryFilter
from boosters_eval.programs.history.records import (
    COUNTED,
    JOINED,
    PER_SECOND,
    RUN,
    SERIES,
    SeriesRow,
    data_digest,
    entry_of,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from boosters_eval.programs.history.model import MetricSeries, RunEntry


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


EVERYTHING = HistoryFilter()
_RECENT = 200  # runs from which costs are estimated
_FEW = 500  # runs whose verdicts are completed at once
_MOST = 2**63 - 1  # that a limit of the index can be


def runs(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> list[RunEntry]:
    """The runs, the latest first."""
    found = answered(lambda connection: _found(connection, wanted), home)
    return [_told(entry, home) for _, entry in found]


def find(reference: str, home: Path | None = None, parameter: str = "reference") -> RunEntry:
    """One run by its id, the beginning of its id, its name, or `last`; /ATTEMPT and @MACHINE tell several apart."""
    name, _, machine = askable(reference).partition("@")
    name, _, attempt = name.partition("/")
    if not name or (attempt and not re.fullmatch("[0-9]{1,9}", attempt)):
        raise ConfigError(f"{the(parameter)} must be {_REFERENCE}. Got '{reference}' instead.")
    last = HistoryFilter(machine=machine or None, limit=None if attempt else 1)
    found = answered(
        lambda connection: (
            _found(connection, last)
            if name == "last"
            else _found(connection, EVERYTHING, _NAMED, (len(name), name, name))
        ),
        home,
    )
    chosen = [entry for _, entry in found if entry.machine.startswith(machine)]
    chosen = [entry for entry in chosen if not attempt or entry.attempt == int(attempt)]
    if not chosen:
        query = "SELECT run_id FROM runs UNION SELECT name FROM runs"
        known = answered(lambda connection: [row[0] for row in connection.execute(query)], home, look=False)
        raise ConfigError(f"No run '{reference}' in the history of {home_of(home)}.{suggest(name, known)}")
    exact = [entry for entry in chosen if name in (entry.run_id, entry.name)]
    ids = list(dict.fromkeys(entry.run_id for entry in chosen))
    if len(ids) > 1 and name != "last" and not exact:
        raise ConfigError(f"The run id '{reference}' is ambiguous: {', '.join(ids[:5])}.")
    return _told((exact or chosen)[0], home)


_REFERENCE = "a run id, the beginning of one, a name, or 'last', with /ATTEMPT or @MACHINE where several have it"
_NAMED = "(substr(r.run_id, 1, ?) = ? OR r.name = ?)"


def series(
    wanted: HistoryFilter = EVERYTHING, home: Path | None = None, *, per_line: int | None = None
) -> Iterator[MetricSeries]:
    """What finished runs measured, in the order of time; a run to which a later one added seeds is left out.

    With `per_line`, only the latest so many runs of each line are read; the first of them tells how many were not.
    """
    with streaming(home) as connection:
        found = _found(connection, wanted, COUNTED)
        latest = None if per_line is None else _latest(connection, {number for number, _ in found}, wanted, per_line)
        for number, entry in reversed(found):
            if latest is None or number in latest:
                for one in _measured(connection, _now(connection, number, entry), entry, wanted):
                    if latest is None:
                        yield one[1]
                    elif one[0] in latest[number]:
                        yield replace(one[1], left_out=latest[number][one[0]])


def count_measured(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> int:
    """How many runs `series` is about."""
    measured = f"{COUNTED} AND EXISTS (SELECT 1 FROM series m WHERE m.run = r.id)"  # noqa: S608 (our names)
    return answered(lambda connection: len(_found(connection, wanted, measured)), home, look=False)


def _latest(
    connection: sqlite3.Connection, numbers: set[int], wanted: HistoryFilter, per_line: int
) -> dict[int, dict[int, int]]:
    """The latest rows of each line, as {run: {line: how many earlier rows are left out, told by the first}}.

    A line of the index is cut further where its data or metrics changed, so that no part of it is crowded out.
    """
    condition, values = parts_meant(wanted, "l")
    rows = connection.execute(
        "SELECT s.run, s.line, s.names, p.text FROM series s JOIN lines l ON l.id = s.line"  # noqa: S608 (our names)
        f" JOIN texts p ON p.id = s.repeats WHERE {condition} ORDER BY s.line, s.at DESC",
        values,
    )
    totals: dict[tuple[int, int, str], int] = {}
    firsts: dict[tuple[int, int, str], int] = {}
    found: dict[int, dict[int, int]] = {}
    for run, line, names, repeats in rows:
        if run in numbers:
            part = line, names, data_digest(repeats)
            totals[part] = totals.get(part, 0) + 1
            if totals[part] <= per_line:
                found.setdefault(run, {})[line] = 0
                firsts[part] = run
    for part, run in firsts.items():
        found[run][part[0]] = max(0, totals[part] - per_line)
    return found


def series_of(entry: RunEntry, home: Path | None = None) -> list[MetricSeries]:
    """What one run measured, in the order of its plan."""

    def ask(connection: sqlite3.Connection) -> list[MetricSeries]:
        return [one for _, one in _measured(connection, _number(connection, entry), entry, EVERYTHING)]

    return answered(ask, home)


def failures(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> list[tuple[RunEntry, str, str, int]]:
    """Where every cell failed, so that there is no series: run, benchmark, competitor, cells; in the order of time."""

    def ask(connection: sqlite3.Connection) -> list[tuple[RunEntry, str, str, int]]:
        lost: dict[int, list[tuple[str, str, int]]] = {}
        for number, config, target, failed in _lost(connection, wanted):
            lost.setdefault(number, []).append((config, target, failed))
        found = _found(connection, replace(wanted, metrics=()), COUNTED) if lost else []
        return [(entry, *told) for number, entry in reversed(found) for told in lost.get(number, ())]

    return answered(ask, home)


def failures_of(entry: RunEntry, home: Path | None = None) -> dict[tuple[str, str], int]:
    """The cells of one run by benchmark and competitor, where every one failed."""
    return answered(
        lambda connection: {
            (config, target): failed
            for _, config, target, failed in _lost(connection, EVERYTHING, _number(connection, entry))
        },
        home,
    )


def changes(entry: RunEntry, home: Path | None = None, *, look: bool = True) -> list[Change]:
    """What one run measured against the run before, every metric; without `look`, as far as the index knows by now."""

    def ask(connection: sqlite3.Connection) -> list[Change]:
        if _complete(connection, [_number(connection, entry)], None):
            hold(connection)
        return _changes(connection, _number(connection, entry), entry, EVERYTHING)

    return answered(ask, home, look=look)


def listing(
    wanted: HistoryFilter = EVERYTHING, home: Path | None = None
) -> tuple[list[tuple[RunEntry, list[Change]]], int]:
    """The runs, the latest first, with the changes that are judged, and how many runs there are without the limit.

    Judged are the primary metric and, if they are fair, times of training; if metrics are asked for, those.
    """

    def ask(connection: sqlite3.Connection) -> tuple[list[tuple[RunEntry, list[Change]]], int]:
        found = _found(connection, wanted)
        if wanted.metrics and _complete(connection, [number for number, _ in found[:_FEW]], wanted.metrics):
            hold(connection)
            found = _found(connection, wanted)
        count = len(found) if wanted.limit is None or len(found) < wanted.limit else _count(connection, wanted)
        usual = not wanted.metrics
        return [(entry, _changes(connection, number, entry, wanted, usual=usual)) for number, entry in found], count

    found, count = answered(ask, home)
    return [(_told(entry, home), made) for entry, made in found], count


def _is_listed(name: str, verdict: str, *, primary: bool) -> bool:
    """Whether a listing tells it: the primary metric, and times that were judged."""
    return primary or (name == "train_time_s" and verdict in ("better", "worse", "equivalent"))


def walk(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> Iterator[tuple[RunEntry, list[Change]]]:
    """The runs, the oldest first, with all that they measured, whether it was judged or not."""
    with streaming(home) as connection:
        for number, entry in reversed(_found(connection, wanted)):
            yield _told(entry, home), _changes(connection, _now(connection, number, entry), entry, wanted)


def seconds_by_cell(home: Path | None = None) -> dict[tuple[str, str, str, str], float]:
    """Median seconds per cell on this machine, by data set, booster, library and training (as canonical JSON)."""
    from statistics import median  # noqa: PLC0415 (for this alone)

    from boosters_eval.core.machine import MachineInfo  # noqa: PLC0415 (loads pydantic)

    machine = MachineInfo.collect().digest
    rows = answered(
        lambda connection: connection.execute(
            "SELECT c.dataset, c.booster, c.library, t.text, c.seconds, c.n"
            " FROM costs c JOIN texts t ON t.id = c.training"
            " WHERE c.run IN (SELECT r.id FROM runs r WHERE NOT r.shadowed AND r.kind = 'benchmark' AND r.machine = ?"
            " ORDER BY r.at DESC LIMIT ?)",
            (machine, _RECENT),
        ).fetchall(),
        home,
    )
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for *key, seconds, n in rows:
        dataset, booster, library, training = key
        found.setdefault((dataset, booster, library, training), []).extend([seconds] * n)
    return {key: median(values) for key, values in found.items()}


_NAMES = {
    "suite": "SELECT DISTINCT title FROM runs",
    "dataset": "SELECT DISTINCT dataset FROM parts",
    "library": "SELECT DISTINCT target FROM parts UNION SELECT DISTINCT library FROM parts",
}


def names_known(kind: str, home: Path | None = None, *, look: bool = True) -> list[str]:
    """All names of a kind in the history (suite, dataset, library or metric), to tell what was misspelt."""

    def ask(connection: sqlite3.Connection) -> list[str]:
        if kind in _NAMES:
            return [name for (name,) in connection.execute(_NAMES[kind])]
        texts = connection.execute("SELECT text FROM texts WHERE id IN (SELECT DISTINCT names FROM series)")
        return list(dict.fromkeys(name for (text,) in texts for name, *_ in json.loads(text)))

    return answered(ask, home, look=look)


def _found(
    connection: sqlite3.Connection, wanted: HistoryFilter, more: str = "", values: Sequence[Any] = ()
) -> list[tuple[int, RunEntry]]:
    """The runs that are meant, the latest first, with their numbers."""
    where, given = runs_meant(connection, wanted)
    if more:
        where, given = f"{more} AND {where}", [*values, *given]
    limit = "" if wanted.limit is None else f" LIMIT {min(int(wanted.limit), _MOST)}"
    query = f"SELECT {RUN} FROM runs r WHERE {where} ORDER BY r.at DESC{limit}"  # noqa: S608 (our names)
    return [(row[0], entry_of(row)) for row in connection.execute(query, given)]


def _count(connection: sqlite3.Connection, wanted: HistoryFilter) -> int:
    where, given = runs_meant(connection, wanted)
    return int(connection.execute(f"SELECT count(*) FROM runs r WHERE {where}", given).fetchone()[0])  # noqa: S608


def _rows(connection: sqlite3.Connection, number: int, wanted: HistoryFilter) -> list[SeriesRow]:
    condition, values = parts_meant(wanted, "l")
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.run = ? AND {condition}"  # noqa: S608 (our names)
    return [SeriesRow(*row) for row in connection.execute(query, (number, *values))]


def _parts(connection: sqlite3.Connection, number: int, wanted: HistoryFilter) -> list[tuple[str, str, str, str, int]]:
    condition, values = parts_meant(wanted, "p")
    query = (
        "SELECT p.config, p.dataset, p.target, p.library, p.failed FROM parts p"  # noqa: S608 (our names)
        f" WHERE p.run = ? AND {condition} ORDER BY p.rowid"
    )
    return connection.execute(query, (number, *values)).fetchall()


def _lost(
    connection: sqlite3.Connection, wanted: HistoryFilter, number: int | None = None
) -> list[tuple[int, str, str, int]]:
    """What has no number because its cells failed, in one run or in all."""
    condition, values = parts_meant(wanted, "p")
    query = (
        "SELECT p.run, p.config, p.target, p.failed FROM parts p"  # noqa: S608 (our names)
        f" WHERE p.failed AND NOT p.done AND {condition} AND {'1' if number is None else 'p.run = ?'} ORDER BY p.rowid"
    )
    return connection.execute(query, values if number is None else (*values, number)).fetchall()


def _measured(
    connection: sqlite3.Connection, number: int, entry: RunEntry, wanted: HistoryFilter
) -> Iterator[tuple[int, MetricSeries]]:
    """What a run measured, with the line of each."""
    rows = _rows(connection, number, wanted)
    order = {
        (config, target): place for place, (config, _, target, *_) in enumerate(_parts(connection, number, wanted))
    }
    for row in sorted(rows, key=lambda row: order.get((row.config, row.target), len(order))):
        for name, *_ in row.measures():
            found = row.series(entry, name) if not wanted.metrics or name in wanted.metrics else None
            if found is not None:
                yield row.line, found


def _changes(
    connection: sqlite3.Connection, number: int, entry: RunEntry, wanted: HistoryFilter, *, usual: bool = False
) -> list[Change]:
    """What a run measured against the run before; only what a listing tells if just the `usual` is wanted."""
    rows = _rows(connection, number, wanted)
    made = []
    for config, dataset, target, library, failed in _parts(connection, number, wanted):
        who = {"config": config, "dataset": dataset, "target": target, "library": library}
        known: dict[str, Any] = {**who, "version": entry.versions.get(target, ""), "failed": failed}
        own = [row for row in rows if (row.config, row.target) == (config, target)]
        if not own and failed and not wanted.metrics:  # what has no number at all must not look whole
            nothing: dict[str, Any] = {"metric": "", "primary": True, "mean": float("nan"), "n": 0, "before": ""}
            made.append(Change(**known, **nothing, verdict="failed"))
        for row in own:
            made += _changes_of(connection, row, entry, known, wanted.metrics, usual=usual)
    return made


def _changes_of(
    connection: sqlite3.Connection,
    row: SeriesRow,
    entry: RunEntry,
    known: dict[str, Any],
    metrics: Sequence[str],
    *,
    usual: bool,
) -> Iterator[Change]:
    verdicts = row.judged()
    unjudged = "first" if row.before == 0 and entry.state == "finished" and not entry.superseded else ""
    chosen = [
        (name, bool(primary), verdicts.get(name, unjudged))
        for name, _, primary, _ in row.measures()
        if not metrics or name in metrics
    ]
    if usual:
        chosen = [one for one in chosen if _is_listed(one[0], one[2], primary=one[1])]
    if not chosen:
        return
    means = row.means()
    before, earlier = _earlier(connection, row)
    for name, primary, verdict in chosen:
        if name in means:
            mean, n = means[name]
            last = earlier.get(name, (None, 0))[0]
            yield Change(
                **known,
                metric=name,
                primary=primary,
                mean=mean,
                n=n,
                verdict=verdict,
                before=before,
                before_mean=last,
            )


def _earlier(connection: sqlite3.Connection, row: SeriesRow) -> tuple[str, dict[str, tuple[float, int]]]:
    """The key of the run before, and its means."""
    if not row.before:
        return "", {}
    found = connection.execute(
        f"SELECT r.key, {SERIES} FROM {JOINED} JOIN runs r ON r.id = s.run WHERE s.line = ? AND s.run = ?",  # noqa: S608
        (row.line, row.before),
    ).fetchone()
    return ("", {}) if found is None else (found[0], SeriesRow(*found[1:]).means())


def _complete(connection: sqlite3.Connection, numbers: Sequence[int], metrics: Sequence[str] | None) -> bool:
    """Judge what was not judged when the runs were indexed; True if there was any, and the index is let go of."""
    rows = [row for number in numbers for row in _rows(connection, number, EVERYTHING)]
    wanted = None if metrics is None else set(metrics)
    lacking = [
        row
        for row in rows
        if row.before and {n for n, *_ in row.measures() if wanted is None or n in wanted} - row.judged().keys()
    ]
    if not lacking:
        return False
    from boosters_eval.programs.history.judging import judge_metrics  # noqa: PLC0415 (loads scipy)

    connection.execute("COMMIT")
    judge_metrics(connection, lacking, metrics)
    return True


def _now(connection: sqlite3.Connection, number: int, entry: RunEntry) -> int:
    """The number of a run at this moment: while an answer is given in parts, another program may read a run anew."""
    found = connection.execute("SELECT id FROM runs WHERE key = ? AND NOT shadowed", (entry.key,)).fetchone()
    return number if found is None else int(found[0])


def _number(connection: sqlite3.Connection, entry: RunEntry) -> int:
    found = connection.execute("SELECT id FROM runs WHERE key = ? AND NOT shadowed", (entry.key,)).fetchone()
    if found is None:
        raise ConfigError(f"Run {entry.run_id} is no longer in the history.")
    return int(found[0])


def _told(entry: RunEntry, home: Path | None) -> RunEntry:
    """With the whole path of its files; an unfinished run may be running now."""
    path = home_of(home) / ("runs" if entry.origin == "run" else IMPORTS) / entry.source
    state = entry.state
    if state == "unfinished" and entry.origin == "run":
        from boosters_eval.engine.summaries import is_running  # noqa: PLC0415 (loads pydantic)

        state = "running" if is_running(path) else state
    return replace(entry, source=str(path), state=state)
