"""The runs of the history, and one of them with every number. Nothing scientific is imported here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import named
from boosters_eval.core.text import dump_json
from boosters_eval.engine.plain import describe_cells, describe_kind, format_local_time, list_data_sets
from boosters_eval.programs.history import query

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.history.model import Change, RunEntry
    from boosters_eval.programs.history.request import ListHistoryRequest, ShowHistoryRequest

_ORDER = ("worse", "failed", "better", "equivalent", "inconclusive", "not comparable", "first")


def list_runs(request: ListHistoryRequest) -> HistoryListing:
    """The runs, the latest first."""
    wanted = query.make_filter(request)
    found, count = query.list_changes(wanted, request.home)
    why = "" if found else query.explain_nothing(wanted, request.home)
    return HistoryListing(tuple(HistoryRun(entry, tuple(changes)) for entry, changes in found), count, why)


def show_run(request: ShowHistoryRequest) -> HistoryRun:
    """One run, with all that it measured."""
    entry = query.find_run(request.reference, request.home)
    changes = tuple(query.read_changes(entry, request.home, look=False))
    return HistoryRun(entry, changes, "" if changes else _data(entry))


def _data(entry: RunEntry) -> str:
    """The data sets of a run of which the history has no numbers."""
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (loads pydantic)

    return list_data_sets(RunFolder(Path(entry.source)), entry.attempt) if entry.origin == "run" else ""


@dataclass(frozen=True)
class HistoryRun(Findings):
    """A run, and what it measured against the run before on the same machine."""

    entry: RunEntry
    changes: tuple[Change, ...]
    data: str = ""  # its data sets, if no change names them

    def show(self, screen: Screen) -> None:
        """The facts, then the numbers."""
        entry, commit = self.entry, _commit(self.entry)
        lines = {
            "run": f"{entry.run_id}, attempt {entry.attempt}",
            "name": entry.name,
            "kind": describe_kind(entry.kind, entry.title),
            "data": self.data,
            "state": entry.state + (f": {entry.fault}" if entry.fault else ""),
            "started": format_local_time(entry.started_at),
            "cells": describe_cells(entry),
            "versions": _versions(entry),
            "commit": f"{commit} on {entry.git_branch}" if commit and entry.git_branch else commit,
            "machine": " ".join(filter(None, [entry.machine_label, f"({entry.machine})" if entry.machine else ""])),
            "grown": "a later run added seeds to it" if entry.superseded else "",
            "extends": entry.extends,
            "imported" if entry.origin == "import" else "folder": entry.source,
        }
        for label, value in lines.items():
            if value:
                screen.say(f"{label:<10}{value}")
        if self.changes:
            self._show_numbers(screen)

    def _show_numbers(self, screen: Screen) -> None:
        screen.say("")
        columns = ("benchmark", "competitor", "metric", "mean", "n", "before", "verdict")
        screen.rows(columns, [_numbers(change) for change in self.changes], keys=2)
        before = next((change.before for change in self.changes if change.before), "")
        if before:
            run_id, attempt, started, _ = before.rsplit("/", 3)
            screen.note(f"Note: the run before is {run_id}/{attempt}, of {started}.")

    def render(self, form: str) -> str:  # noqa: ARG002 (there is one)
        """The run as plain data."""
        return dump_json(self.record)

    @property
    def record(self) -> dict[str, Any]:
        """The run as plain data; a mean that is not there is null."""
        changes = [{**asdict(change), "mean": change.mean if change.n else None} for change in self.changes]
        return {**asdict(self.entry), "versions": dict(self.entry.versions), "changes": changes}


@dataclass(frozen=True)
class HistoryListing(Findings):
    """Runs, the latest first."""

    runs: tuple[HistoryRun, ...]
    count: int  # without the limit
    nothing: str = ""  # why there is none

    def show(self, screen: Screen) -> None:
        """A row per run."""
        columns = ("run", "started", "suite", "commit", "versions", "machine", "cells", "against the run before")
        if self.runs:
            screen.rows(columns, [_row(run) for run in self.runs])

    def render(self, form: str) -> str:  # noqa: ARG002 (there is one)
        """The runs as plain data."""
        return dump_json([run.record for run in self.runs])

    def conclude(self, screen: Screen) -> None:
        """What is not listed."""
        if self.nothing:
            screen.note(f"Note: {self.nothing}")
        elif self.count > len(self.runs):
            more = f"{named('limit')} shows more"
            screen.note(f"Note: these are the latest {len(self.runs)} of {self.count} runs; {more}.")


def _row(run: HistoryRun) -> tuple[str, ...]:
    entry = run.entry
    name = entry.run_id if entry.attempt <= 1 else f"{entry.run_id}/{entry.attempt}"
    return (
        name + (f" ({entry.name})" if entry.name else ""),
        format_local_time(entry.started_at),
        entry.title if entry.kind in ("benchmark", "", entry.title) else f"{entry.kind}: {entry.title}",
        _commit(entry) or "-",
        _versions(entry) or "-",
        " ".join(filter(None, [entry.machine_label, entry.machine[:6]])) or "-",
        describe_cells(entry),
        _verdict(run),
    )


def _verdict(run: HistoryRun) -> str:
    """What changed, in a few words, the worst first; what is worse is named."""
    if run.entry.superseded:
        return "continued by a later run"
    counts: dict[str, list[Change]] = {}
    for change in run.changes:
        if change.verdict:
            counts.setdefault(change.verdict, []).append(change)
    if not counts:
        return "-"
    if set(counts) == {"first"}:
        return "first"
    parts = []
    for verdict in sorted(counts, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER)):
        group = counts[verdict]
        where = f" ({_where(group[0])})" if verdict in ("worse", "failed", "better") and len(group) == 1 else ""
        parts.append(f"{len(group)} {verdict}{where}")
    return ", ".join(parts)


def _where(change: Change) -> str:
    return " ".join(filter(None, [change.target, change.metric, "on", change.config]))


def _numbers(change: Change) -> tuple[str, ...]:
    mean = "-" if not change.n else f"{change.mean:.6g}"
    failed = f" ({change.failed} failed)" if change.failed else ""
    before = "-" if change.before_mean is None else f"{change.before_mean:.6g}"
    target = " ".join(filter(None, [change.target, change.version]))
    return change.config, target, change.metric or "-", mean, f"{change.n}{failed}", before, change.verdict or "-"


def _commit(entry: RunEntry) -> str:
    return entry.git_sha + ("*" if entry.git_dirty else "") if entry.git_sha else ""


def _versions(entry: RunEntry) -> str:
    return ", ".join(f"{name} {version}".rstrip() for name, version in entry.versions.items())
