"""Questions to the history. Each looks for new, changed and removed runs first; what is listed loads no models."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, match, suggest
from boosters_eval.core.files import find_home as home_of
from boosters_eval.core.terms import the
from boosters_eval.core.text import join_words
from boosters_eval.engine.plain import list_data_sets
from boosters_eval.programs.history.index import IMPORTS, ask_index, stream_index
from boosters_eval.programs.history.model import EVERYTHING, Change, HistoryFilter, HistoryListing, HistoryRun
from boosters_eval.programs.history.rows import (
    COUNTED,
    choose_runs,
    encodable,
    find_number,
    select_parts,
    select_rows,
    select_runs,
)
from boosters_eval.programs.history.verdicts import RunJudge

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.programs.history.model import MetricSeries, RunEntry
    from boosters_eval.programs.history.request import HistoryFilters, ListHistoryRequest, ShowHistoryRequest

_RECENT = 200  # runs from which costs are estimated
_KEPT_AT_A_TIME = 500  # rows whose verdicts are kept while many are written
_REFERENCE = "a run id, the beginning of one, a name, or 'last', with /ATTEMPT or @MACHINE where several have it"
_LOST = "p.failed AND NOT p.done"  # what has no number because its cells failed
_NAMES = {
    "suite": "SELECT DISTINCT title FROM runs",
    "dataset": "SELECT DISTINCT dataset FROM parts",
    "library": "SELECT DISTINCT target FROM parts UNION SELECT DISTINCT library FROM parts",
}


def list_history(request: ListHistoryRequest) -> HistoryListing:
    return list_changes(make_filter(request), request.home)


def show_history(request: ShowHistoryRequest) -> HistoryRun:
    """One run, with all that it measured, or with its data sets if the history has no numbers of it."""
    entry = find_run(request.reference, request.home)
    changes = tuple(read_changes(entry, request.home, look=False))
    if changes or entry.origin != "run":
        return HistoryRun(entry, changes)
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (loads pydantic)

    return HistoryRun(entry, changes, list_data_sets(RunFolder(Path(entry.source)), entry.attempt))


def make_filter(request: HistoryFilters) -> HistoryFilter:
    """What a request asks for, by the names that the history has."""

    def find(kind: str, name: str) -> str:
        return match(name, _list_names(kind, request.home, look=True)) or name

    given = {one.name: getattr(request, one.name) for one in fields(HistoryFilter)}
    meant = {
        "suite": find("suite", request.suite) if request.suite else request.suite,
        "datasets": tuple(find("dataset", name) for name in request.datasets),
        "libraries": tuple(find("library", name) for name in request.libraries),
        "metrics": resolve_metrics(request.metrics),
    }
    return HistoryFilter(**{**given, **meant})


def resolve_metrics(metrics: Sequence[str]) -> tuple[str, ...]:
    """The names under which results have metrics."""
    if not metrics:
        return ()
    from boosters_eval.metrics.catalog import resolve  # noqa: PLC0415 (keeps a listing fast)

    return tuple(found.name if (found := resolve(name)) else name for name in metrics)


def explain_nothing(wanted: HistoryFilter, home: Path | None = None) -> str:
    """Why nothing is listed: most often a name that no run has."""
    if not _list_names("suite", home):
        return f"there are no runs in {home_of(home)}."
    asked = {
        "suite": ("suite", (wanted.suite,) if wanted.suite else ()),
        "dataset": ("data set", wanted.datasets),
        "library": ("library", wanted.libraries),
        "metric": ("metric", wanted.metrics),
    }
    for kind, (word, names) in asked.items():
        known = _list_names(kind, home) if names else []
        for name in names:
            if name not in known:
                return f"no run in the history has the {word} '{name}'.{suggest(name, known)}"
    return "no run in the history meets all of these."


def _list_names(kind: str, home: Path | None, *, look: bool = False) -> list[str]:
    """All names of a kind in the history."""

    def ask(connection: sqlite3.Connection) -> list[str]:
        if kind in _NAMES:
            return [name for (name,) in connection.execute(_NAMES[kind])]
        texts = connection.execute("SELECT text FROM texts WHERE id IN (SELECT DISTINCT names FROM series)")
        return list(dict.fromkeys(name for (text,) in texts for name, *_ in json.loads(text)))

    return ask_index(ask, home, look=look)


def explain_kinds(entries: Iterable[RunEntry]) -> str:
    """Why runs of other kinds are not compared, and what shows them; empty if all are benchmarks."""
    kinds = sorted({entry.kind for entry in entries} - {"benchmark", ""})
    if not kinds:
        return ""
    shown = "; 'boosters-eval report --run RUN' shows one of importances" if "importances" in kinds else ""
    return f"the history compares scores and times of benchmarks, not runs of {join_words(kinds)}{shown}."


def list_runs(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> list[RunEntry]:
    """The runs, the latest first."""
    return [_complete_entry(entry, home) for _, entry in ask_index(lambda index: select_runs(index, wanted), home)]


def find_run(reference: str, home: Path | None = None, parameter: str = "reference") -> RunEntry:
    """One run by its id, the beginning of its id, its name, or `last`; /ATTEMPT and @MACHINE tell several apart."""
    name, _, machine = encodable(reference).partition("@")
    name, _, attempt = name.partition("/")
    if not name or (attempt and not re.fullmatch("[0-9]{1,9}", attempt)):
        raise ConfigError(f"{the(parameter)} must be {_REFERENCE}. Got '{reference}' instead.")

    def ask(connection: sqlite3.Connection) -> list[tuple[int, RunEntry]]:
        if name == "last":
            return select_runs(connection, HistoryFilter(machine=machine or None, limit=None if attempt else 1))
        named = "(substr(r.run_id, 1, ?) = ? OR r.name = ?)"
        return select_runs(connection, EVERYTHING, named, (len(name), name, name))

    chosen = [entry for _, entry in ask_index(ask, home) if entry.machine.startswith(machine)]
    chosen = [entry for entry in chosen if not attempt or entry.attempt == int(attempt)]
    if not chosen:
        query = "SELECT run_id FROM runs UNION SELECT name FROM runs"
        known = ask_index(lambda connection: [row[0] for row in connection.execute(query)], home, look=False)
        raise ConfigError(f"No run '{reference}' in the history of {home_of(home)}.{suggest(name, known)}")
    exact = [entry for entry in chosen if name in (entry.run_id, entry.name)]
    ids = list(dict.fromkeys(entry.run_id for entry in chosen))
    if len(ids) > 1 and name != "last" and not exact:
        raise ConfigError(f"The run id '{reference}' is ambiguous: {', '.join(ids[:5])}.")
    return _complete_entry((exact or chosen)[0], home)


def read_series(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> Iterator[MetricSeries]:
    """What finished runs measured, in the order of time; a run to which a later one added seeds is left out."""
    with stream_index(home) as connection:
        for number, entry in reversed(select_runs(connection, wanted, COUNTED)):
            yield from _measured(connection, find_number(connection, entry) or number, entry, wanted)


def list_failures(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> list[tuple[RunEntry, str, str, int]]:
    """Where every cell failed, so that there is no series: run, benchmark, competitor, cells; in the order of time."""

    def ask(connection: sqlite3.Connection) -> list[tuple[RunEntry, str, str, int]]:
        lost: dict[int, list[tuple[str, str, int]]] = {}
        for number, config, _, target, _, failed in select_parts(connection, wanted, _LOST):
            lost.setdefault(number, []).append((config, target, failed))
        found = select_runs(connection, replace(wanted, metrics=()), COUNTED) if lost else []
        return [(entry, *told) for number, entry in reversed(found) for told in lost.get(number, ())]

    return ask_index(ask, home)


def read_run(entry: RunEntry, home: Path | None = None) -> tuple[list[MetricSeries], dict[tuple[str, str], int]]:
    """What one run measured, in the order of its plan, and the cells by benchmark and competitor where all failed."""

    def ask(connection: sqlite3.Connection) -> tuple[list[MetricSeries], dict[tuple[str, str], int]]:
        number = _get_number(connection, entry)
        lost = select_parts(connection, EVERYTHING, f"{_LOST} AND p.run = ?", number)
        failed = {(config, target): cells for _, config, _, target, _, cells in lost}
        return list(_measured(connection, number, entry, EVERYTHING)), failed

    return ask_index(ask, home)


def read_changes(entry: RunEntry, home: Path | None = None, *, look: bool = True) -> list[Change]:
    """What one run measured against the run before, every metric; without `look`, as far as the index knows by now."""

    def ask(connection: sqlite3.Connection) -> list[Change]:
        judge = RunJudge(connection, home)
        found = judge.compare(_get_number(connection, entry), entry)
        judge.keep()
        return found

    return ask_index(ask, home, look=look)


def list_changes(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> HistoryListing:
    """The runs, the latest first, with the changes that are judged, and how many runs there are without the limit.

    Judged are the primary metric and, if they are fair, times of training; if metrics are asked for, those.
    """

    def ask(connection: sqlite3.Connection) -> tuple[list[tuple[RunEntry, list[Change]]], int]:
        found = select_runs(connection, wanted)
        count = len(found)
        if wanted.limit is not None and count >= wanted.limit:
            where, given = choose_runs(connection, wanted)
            (count,) = connection.execute(f"SELECT count(*) FROM runs r WHERE {where}", given).fetchone()  # noqa: S608
        judge, usual = RunJudge(connection, home), not wanted.metrics
        changes = [(entry, judge.compare(number, entry, wanted, usual=usual)) for number, entry in found]
        judge.keep()
        return changes, count

    found, count = ask_index(ask, home)
    runs = tuple(HistoryRun(_complete_entry(entry, home), tuple(changes)) for entry, changes in found)
    return HistoryListing(runs, count, "" if runs else explain_nothing(wanted, home))


def walk_runs(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> Iterator[tuple[RunEntry, list[Change]]]:
    """The runs, the oldest first, with all that they measured."""
    with stream_index(home) as connection:
        judge = RunJudge(connection, home)
        for number, entry in reversed(select_runs(connection, wanted)):
            now = find_number(connection, entry) or number
            yield _complete_entry(entry, home), judge.compare(now, entry, wanted)
            if len(judge.fresh) > _KEPT_AT_A_TIME:
                judge.keep()
        judge.keep()


def read_cell_seconds(home: Path | None = None) -> dict[tuple[str, str, str, str], float]:
    """Median seconds per cell on this machine, by data set, booster, library and training (as canonical JSON)."""
    from statistics import median  # noqa: PLC0415 (for this alone)

    from boosters_eval.core.machine import MachineInfo  # noqa: PLC0415 (loads pydantic)

    machine = MachineInfo.collect(load_blas=False).digest
    rows = ask_index(
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


def _measured(
    connection: sqlite3.Connection, number: int, entry: RunEntry, wanted: HistoryFilter
) -> Iterator[MetricSeries]:
    """What a run measured, in the order of its plan."""
    rows = select_rows(connection, number, wanted)
    parts = select_parts(connection, wanted, "p.run = ?", number)
    order = {(config, target): place for place, (_, config, _, target, *_) in enumerate(parts)}
    for row in sorted(rows, key=lambda row: order.get((row.config, row.target), len(order))):
        for name, *_ in row.measures():
            found = row.series(entry, name) if not wanted.metrics or name in wanted.metrics else None
            if found is not None:
                yield found


def _get_number(connection: sqlite3.Connection, entry: RunEntry) -> int:
    found = find_number(connection, entry)
    if found is None:
        raise ConfigError(f"Run {entry.run_id} is no longer in the history.")
    return found


def _complete_entry(entry: RunEntry, home: Path | None) -> RunEntry:
    """With the whole path of its files; an unfinished run may be running now."""
    path = home_of(home) / ("runs" if entry.origin == "run" else IMPORTS) / entry.source
    state = entry.state
    if state == "unfinished" and entry.origin == "run":
        from boosters_eval.engine.summaries import is_running  # noqa: PLC0415 (loads pydantic)

        state = "running" if is_running(path) else state
    return replace(entry, source=str(path), state=state)
