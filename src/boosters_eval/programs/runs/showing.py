"""The runs in a home: a line for each, or all that is known of one."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.findings import Findings
from boosters_eval.core.home import home as home_of
from boosters_eval.core.text import as_json, counted, sized
from boosters_eval.engine.journal import read
from boosters_eval.engine.runs import all_folders, find_run
from boosters_eval.engine.summaries import is_running, sealed_outcomes, summarize
from boosters_eval.engine.telling import cells_text, data_sets, kind_text, local_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.folder import RunFolder
    from boosters_eval.engine.summaries import RunSummary
    from boosters_eval.programs.runs.request import ListRunsRequest, ShowRunRequest


def list_runs(request: ListRunsRequest) -> RunListing:
    """All runs, the latest first."""
    found = sorted(map(summarize, all_folders(request.home)), key=lambda run: run.written, reverse=True)
    return RunListing(tuple(found[: request.limit]), home_of(request.home), wide=request.wide)


def show_run(request: ShowRunRequest) -> RunDetails:
    """What is known of one run."""
    folder = any_run(request.reference, request.home)
    numbers = folder.attempts()
    return RunDetails(
        summarize(folder),
        tuple(_attempt(folder, number) for number in numbers),
        data_sets(folder, numbers[-1]) if numbers else "",
        _machines(folder),
    )


def any_run(reference: str, home: Path | None) -> RunFolder:
    """A run of any kind, one without any attempt or with unreadable files too, by its whole id."""
    exact = (folder for folder in all_folders(home) if folder.run_id == reference)
    return next(exact, None) or find_run(reference, home)


@dataclass(frozen=True)
class RunListing(Findings):
    """Runs, the latest first."""

    runs: tuple[RunSummary, ...]
    home: Path
    wide: bool = False

    def show(self, screen: Screen) -> None:
        """A row per run; those of a terminal are short."""
        if not self.runs:
            screen.note(f"Note: there are no runs in {self.home / 'runs'}.")
            return
        columns: tuple[str, ...] = ("run", "name", "started", "kind", "cells")
        rows: list[tuple[str, ...]] = [
            (run.run_id, name_of(run) or "-", started(run), run.kind or "-", cells_text(run)) for run in self.runs
        ]
        if self.wide or not screen.is_terminal:
            columns += ("attempts", "size", "command")
            more = [(str(run.attempts), sized(run.size), _command(run)) for run in self.runs]
            rows = [(*row, *rest) for row, rest in zip(rows, more, strict=True)]
        screen.rows(columns, rows)

    def render(self, form: str) -> str:  # noqa: ARG002 (there is one)
        """The runs as plain data."""
        return as_json([_record(run) for run in self.runs])


@dataclass(frozen=True)
class RunDetails(Findings):
    """A run, its attempts, and what to do with it."""

    run: RunSummary
    attempts: tuple[Mapping[str, Any], ...]
    data: str  # its data sets
    machines: str  # of its cells, if they name any

    @property
    def next(self) -> dict[str, str]:
        """The commands that continue, report and verify it."""
        run = self.run
        words = list(run.facts.command) if run.facts else []
        found = {}
        if words and run.state == "unfinished":
            found["resume"] = shlex.join(["boosters-eval", *words, "--resume"])
        if words and run.state == "finished" and run.failed:
            found["retry"] = shlex.join(["boosters-eval", *words, "--rerun-failed"])
        if run.kind in ("benchmark", "importances") and run.state != "unreadable" and run.done + run.failed:
            found["report"] = f"boosters-eval runs open {run.run_id}"
        return {**found, "verify": f"boosters-eval verify {run.run_id}"}

    def show(self, screen: Screen) -> None:
        """A line per fact, attempt and command."""
        run, facts = self.run, self.run.facts
        machine = facts.machine if facts else {}
        commit = "" if facts is None or not facts.git_sha else facts.git_sha + (" (changed)" if facts.git_dirty else "")
        targets = facts.targets if facts else {}
        lines = {
            "run": run.run_id,
            "name": name_of(run),
            "kind": kind_text(run.kind, run.title),
            "data": self.data,
            "state": run.state + (f": {run.fault}" if run.fault else ""),
            "started": started(run),
            "cells": cells_text(run),
            "targets": ", ".join(f"{name} {build.version}" for name, build in targets.items()),
            "commit": commit,
            "machine": self.machines or ", ".join(str(machine[key]) for key in ("cpu_model", "os") if machine.get(key)),
            "extends": facts.extends if facts else "",
            "folder": f"{run.path} ({sized(run.size)})",
            "command": _command(run),
        }
        for label, value in lines.items():
            if value:
                screen.say(f"{label:<10}{value}")
        for attempt in self.attempts:
            told = ", ".join(str(attempt[key]) for key in ("started_at", "name", "state") if attempt[key])
            screen.say(f"{'attempt':<10}{attempt['attempt']}: {told}")
        for label, command in self.next.items():
            screen.say(f"{label:<10}{command}")

    def render(self, form: str) -> str:  # noqa: ARG002 (there is one)
        """The same as plain data."""
        return as_json({**_record(self.run), "attempts": list(self.attempts), "next": self.next})


def _machines(folder: RunFolder) -> str:
    """The machines of the latest attempt, if its outcomes name any, and how many cells each has run."""
    try:
        found = read(folder.journal_path(folder.attempts()[-1]))
    except (BoostersEvalError, OSError, IndexError):  # the state tells of it
        return ""
    cells = Counter(outcome.machine for outcome in found.outcomes.values())
    if not found.machines or cells.keys() <= {None}:
        return ""
    told = []
    for digest, count in cells.items():
        machine = found.machines.get(digest or "")
        name = "where the run began" if machine is None else machine.cpu_model
        node = f", node {machine.node}" if machine is not None and machine.node else ""
        told.append(f"{name}{node} ({counted(count, 'cell')})")
    return "; ".join(told)


def _attempt(folder: RunFolder, number: int) -> dict[str, Any]:
    """One line about an attempt; what cannot be read is its state."""
    begun = name = ""
    try:
        facts = folder.facts(number)
        begun, name = facts.started_at, facts.known_as
        open_ = sealed_outcomes(folder.journal_path(number)) is None
        latest = number == folder.attempts()[-1]
        state = ("running" if latest and is_running(folder.path) else "unfinished") if open_ else "finished"
    except OSError as error:
        state = f"unreadable: {error.strerror}"
    except BoostersEvalError as error:
        state = f"unreadable: {error}"
    return {"attempt": number, "started_at": begun, "name": name, "state": state}


def _record(run: RunSummary) -> dict[str, Any]:
    """A run as plain data, the same in a list and alone."""
    return {
        "run_id": run.run_id,
        "name": name_of(run),
        "kind": run.kind,
        "title": run.title,
        "state": run.state,
        "fault": run.fault,
        "started_at": run.facts.started_at if run.facts else "",
        "written_at": datetime.fromtimestamp(run.written, UTC).isoformat(timespec="seconds"),
        "done": run.done,
        "failed": run.failed,
        "missing": run.missing,
        "attempts": run.attempts,
        "bytes": run.size,
        "command": list(run.facts.command) if run.facts else [],
        "path": str(run.path),
    }


def name_of(run: RunSummary) -> str:
    """The name that it was given."""
    return run.facts.known_as if run.facts else ""


def started(run: RunSummary) -> str:
    """When it started, in local time."""
    return local_time(run.facts.started_at if run.facts else "", run.written)


def _command(run: RunSummary) -> str:
    words = run.facts.command if run.facts else ()
    return shlex.join(["boosters-eval", *words]) if words else "(Python)" if run.facts else "-"
