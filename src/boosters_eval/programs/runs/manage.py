"""The runs in a home: listed, shown, opened in the browser, verified, sent to trackers, pruned and removed."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import BoostersEvalError, ConfigError, ExitCode
from boosters_eval.core.files import find_home as home_of
from boosters_eval.core.files import load_json, read_text
from boosters_eval.core.findings import Findings, Removable, Removal
from boosters_eval.core.terms import named, tell
from boosters_eval.core.text import clean, count_of, format_size
from boosters_eval.engine import runs
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.plain import describe_cells, describe_kind, format_local_time, list_data_sets
from boosters_eval.engine.predictions import PredictionsRecord, remove_kept
from boosters_eval.engine.runs import find_run, list_folders
from boosters_eval.engine.summaries import is_running, is_sealed, summarize
from boosters_eval.reports.document import Document, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.summaries import RunSummary
    from boosters_eval.programs.runs.request import (
        ChosenRuns,
        ListRunsRequest,
        PruneRunsRequest,
        RemoveRunsRequest,
        ShowRunRequest,
        TrackRequest,
        VerifyRequest,
    )
    from boosters_eval.reports.document import PlainCell
    from boosters_eval.tracking.sender import TrackedContent


def list_runs(request: ListRunsRequest) -> RunListing:
    found = sorted(map(summarize, list_folders(request.home)), key=lambda run: run.written, reverse=True)
    return RunListing(tuple(found[: request.limit]), home_of(request.home), wide=request.wide)


_WITHOUT_CELLS = ("unreadable", "not begun")  # states of runs of which nothing can be checked


def show_run(request: ShowRunRequest) -> RunDetails:
    folder = find_any_run(request.reference, request.home)
    if "/" not in request.reference:  # a name is that of an attempt, but all of the run is meant
        folder = RunFolder(folder.path)
    numbers = folder.attempts()
    summary = summarize(folder)
    if summary.state not in _WITHOUT_CELLS and (damage := runs.find_damage(folder)):
        summary = replace(summary, state="damaged", fault=damage)
    return RunDetails(
        summary,
        tuple(_attempt(folder, number) for number in numbers),
        list_data_sets(folder, folder.attempt or numbers[-1]) if numbers else "",
        _machines(folder),
        folder.run_id if folder.attempt is None else f"{folder.run_id}/{folder.attempt}",
    )


def find_any_run(reference: str, home: Path | None) -> RunFolder:
    """A run of any kind, one without any attempt or with unreadable files too, by its whole id."""
    exact = (folder for folder in list_folders(home) if folder.run_id == reference)
    return next(exact, None) or find_run(reference, home)


@dataclass(frozen=True)
class RunListing(ReportedFindings):
    """Runs, the latest first."""

    plain: ClassVar[bool] = True
    runs: tuple[RunSummary, ...]
    home: Path
    wide: bool = False
    short: bool = False  # as a terminal shows them

    def document(self) -> Document:
        columns: tuple[str, ...] = ("run", "name", "started", "kind", "cells")
        rows: list[tuple[PlainCell, ...]] = [
            (run.run_id, _name(run) or None, _started(run), run.kind or None, describe_cells(run)) for run in self.runs
        ]
        if not self.short:
            columns += ("size", "predictions", "attempts", "command")
            more = [
                (format_size(run.size), format_size(run.predictions), run.attempts, _command(run)) for run in self.runs
            ]
            rows = [(*row, *rest) for row, rest in zip(rows, more, strict=True)]
        return Document("Runs", sections=(Section("runs", "", (PlainTable("Runs", columns, tuple(rows)),)),))

    def to_model(self) -> list[dict[str, Any]]:
        return [_record(run) for run in self.runs]

    def show(self, screen: Screen) -> None:
        if self.runs:
            shown = replace(self, short=screen.is_terminal and not self.wide)
            ReportedFindings.show(shown, screen)
            if shown.short:
                kept = sum(run.predictions for run in self.runs)
                total = format_size(sum(run.size for run in self.runs))
                screen.note(
                    f"{total} in all, of which predictions {format_size(kept)}; {named('wide')} shows each run."
                )
        else:
            screen.note(f"Note: there are no runs in {self.home / 'runs'}.")


@dataclass(frozen=True)
class RunDetails(ReportedFindings):
    """A run, its attempts, and what to do with it."""

    plain: ClassVar[bool] = True
    run: RunSummary
    attempts: tuple[Mapping[str, Any], ...]
    data: str  # its data sets
    machines: str  # of its cells, if they name any
    reference: str  # what commands call it: its id, or that of an attempt

    @property
    def next(self) -> dict[str, str]:
        run = self.run
        words = list(run.facts.command) if run.facts else []
        found = {}
        if words and run.state == "unfinished":
            found["resume"] = shlex.join(["boosters-eval", *words, "--resume"])
        if words and run.state == "finished" and run.failed:
            found["retry"] = shlex.join(["boosters-eval", *words, "--rerun-failed"])
        readable = run.state not in ("unreadable", "damaged")
        if run.kind in ("benchmark", "importances") and readable and run.done + run.failed:
            found["report"] = f"boosters-eval runs open {self.reference}"
        return {**found, "verify": f"boosters-eval verify {self.reference}"}

    def document(self) -> Document:
        run, facts = self.run, self.run.facts
        machine = facts.machine if facts else {}
        commit = "" if facts is None or not facts.git_sha else facts.git_sha + (" (changed)" if facts.git_dirty else "")
        targets = facts.targets if facts else {}
        known = {
            "run": run.run_id,
            "name": _name(run),
            "kind": describe_kind(run.kind, run.title),
            "data": self.data,
            "state": run.state + (f": {run.fault}" if run.fault else ""),
            "started": _started(run),
            "cells": describe_cells(run),
            "targets": ", ".join(f"{name} {build.version}" for name, build in targets.items()),
            "commit": commit,
            "machine": self.machines or ", ".join(str(machine[key]) for key in ("cpu_model", "os") if machine.get(key)),
            "extends": facts.extends if facts else "",
            "folder": f"{run.path} ({format_size(run.size)}, of which predictions {format_size(run.predictions)})",
            "command": _command(run),
        }
        for attempt in self.attempts:
            told = [str(attempt[key]) for key in ("started_at", "name", "state") if attempt[key]]
            known[f"attempt {attempt['attempt']}"] = ", ".join(told)
        table = PlainTable.of_facts("Run", {**known, **self.next})
        return Document(f"Run {run.run_id}", sections=(Section("facts", "", (table,)),))

    def to_model(self) -> dict[str, Any]:
        return {**_record(self.run), "attempts": list(self.attempts), "next": self.next}


def _machines(folder: RunFolder) -> str:
    """The machines of the latest attempt, if its outcomes name any, and how many cells each has run."""
    try:
        found = read_journal(folder.journal_path(folder.attempt or folder.attempts()[-1]))
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
        told.append(f"{name}{node} ({count_of(count, 'cell')})")
    return "; ".join(told)


def _attempt(folder: RunFolder, number: int) -> dict[str, Any]:
    """One line about an attempt; what cannot be read is its state."""
    begun = name = ""
    try:
        facts = folder.facts(number)
        begun, name = facts.started_at, facts.display_name
        open_ = not is_sealed(folder.journal_path(number))
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
        "name": _name(run),
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
        "prediction_bytes": run.predictions,
        "command": list(run.facts.command) if run.facts else [],
        "path": str(run.path),
    }


def _name(run: RunSummary) -> str:
    return run.facts.display_name if run.facts else ""


def _started(run: RunSummary) -> str:
    return format_local_time(run.facts.started_at if run.facts else "", run.written)


def _command(run: RunSummary) -> str:
    words = run.facts.command if run.facts else ()
    return shlex.join(["boosters-eval", *words]) if words else "(Python)" if run.facts else "-"


def choose_runs(request: RemoveRunsRequest) -> Removal:
    """Find the runs that are meant; none is removed yet."""

    def remove(folder: RunFolder) -> None:
        runs.clear_leftovers(request.home)
        runs.remove(folder)

    return _removal("run", _select(request), "size", remove)


def choose_predictions(request: PruneRunsRequest) -> Removal:
    """Find the runs that are meant and have predictions; none are removed yet."""
    chosen = [run for run in _select(request) if run.predictions]
    return _removal("prediction folder", chosen, "predictions", remove_kept)


def _select(request: ChosenRuns) -> list[RunSummary]:
    """The runs that are named, or all that are older, the latest first; one that is being executed must be named."""
    if request.references:
        for one in request.references:
            if "/" in one:
                raise ConfigError(f"Runs are removed with all their attempts: use '{one.partition('/')[0]}'.")
        folders = {folder.run_id: folder for folder in (find_any_run(one, request.home) for one in request.references)}
        chosen = list(map(summarize, folders.values()))
    else:
        limit = time.time() - (request.older_than.total_seconds() if request.older_than is not None else 0)
        every = map(summarize, list_folders(request.home))
        chosen = [run for run in every if run.written < limit and run.state != "running"]
    return sorted(chosen, key=lambda run: run.written, reverse=True)


def _removal(noun: str, chosen: Iterable[RunSummary], size: str, remove: Callable[[RunFolder], object]) -> Removal:
    things = []
    for run in chosen:
        name = _name(run) or run.title or "-"
        line = f"{run.run_id}  {_started(run)}  {name}  {describe_cells(run)}  {format_size(getattr(run, size))}"
        things.append(Removable(run.run_id, line, partial(remove, RunFolder(run.path))))
    return Removal(noun, tuple(things))


@dataclass(frozen=True)
class Verification(Findings):
    """Each file that was verified, with what is wrong with it; '' if nothing is."""

    files: tuple[tuple[str, str], ...]
    good: str  # what is said of a file without a fault

    @property
    def is_good(self) -> bool:
        return not any(fault for _, fault in self.files)

    @property
    def exit_code(self) -> int:
        """A fault is an error."""
        return ExitCode.SUCCESS if self.is_good else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        for name, fault in () if screen.quiet else self.files:
            screen.say(f"{name}: {fault or self.good}")


def verify(request: VerifyRequest) -> Verification:
    if Path(request.reference).is_file():
        return verify_file(request)
    if request.baseline is not None or request.scores is not None:
        raise ConfigError(f"{named('baseline')} and {named('scores')} are only for the file of a gate decision.")
    folder = _find_folder(str(request.reference), request.home)
    record = PredictionsRecord.read(folder)
    gone = 0 if record is None else len(record.removed)
    but = f"; not checked: {count_of(gone, 'array')} of predictions that {'was' if gone == 1 else 'were'} removed"
    return Verification(tuple(_verify_folder(folder)), f"complete and untouched{but if gone else ''}")


def verify_file(request: VerifyRequest) -> Verification:
    """Verify a baseline, with the predictions beside it and the runs that it came from, or a gate decision."""
    from boosters_eval.programs.baseline.audit import audit_baseline  # noqa: PLC0415 (a journal is verified without)

    file = Path(request.reference)
    raw = None
    with contextlib.suppress(BoostersEvalError):  # whatever else it is, it is no baseline
        raw = load_json(read_text(file), str(file))
    if not isinstance(raw, dict) or not {"recorded_at", "results"} <= raw.keys():
        return verify_decision(request)
    audit = audit_baseline(file, request.home)
    when = str(raw["recorded_at"])[:10]
    told = "; ".join(
        (f"as it was recorded, by its own word on {clean(when)}", *(f"not checked: {end}" for end in audit.unchecked))
    )
    return Verification(tuple((str(file), fault) for fault in audit.faults) or ((str(file), ""),), told)


def verify_decision(request: VerifyRequest) -> Verification:
    """Compute a gate decision again, from the journal and the files that it quotes."""
    from boosters_eval.programs.gate import decision  # noqa: PLC0415 (a journal is verified without it)

    file, quoted = Path(request.reference), {"baseline": request.baseline, "scores": request.scores}
    if file.is_file() and not decision.is_decision(file):
        raise ConfigError(f"{file} is not a gate decision.")
    fault = decision.verify_decision(file, home=request.home, **quoted)
    against = decision.describe_verification(file, home=request.home, **quoted)
    return Verification(((str(file), fault),), f"computed again, with the same bytes ({against})")


def verify_files(reference: str, home: Path | None) -> Iterator[tuple[str, str]]:
    """For each file of a run that is checked, its name and what is wrong with it; '' if nothing is."""
    return _verify_folder(_find_folder(reference, home))


def _find_folder(reference: str, home: Path | None) -> RunFolder:
    given = Path(reference)
    # A folder is meant only where it is named as one: a run of that name comes first.
    if given.is_dir() and (len(given.parts) > 1 or given.is_absolute()):
        folder = RunFolder(given.resolve())
        if not folder.attempts():
            raise ConfigError(f"{given} is a folder, but not that of a run.")
        return folder
    return find_run(reference, home)


def _verify_folder(folder: RunFolder) -> Iterator[tuple[str, str]]:
    for name, fault in runs.verify(folder):
        yield f"{folder.run_id}/{name}", fault


class SentRun(Findings):
    """A run that its trackers have; they have told of it."""

    def show(self, screen: Screen) -> None:
        """Nothing more."""


@dataclass(frozen=True)
class UnsentRun(ReportedFindings):
    """All that a tracker would be told of a run."""

    plain: ClassVar[bool] = True
    content: TrackedContent
    files: tuple[str, ...]

    def document(self) -> Document:
        content = self.content
        tables = [PlainTable.of_facts("Run", {"name": content.run.name, **content.run.facts})]
        for one in content.competitors:
            cells, end = content.cells[one.key], content.ends[one.key]
            numbers = dict.fromkeys(name for cell in cells for name in cell.metrics)
            told = {"per cell": ", ".join(numbers), "means": ", ".join(end.means), "cells": str(len(cells))}
            told |= {f"failed, {repeat}": reason for repeat, reason in end.failures.items()}
            tables.append(
                PlainTable.of_facts(one.name, {"competitor": one.name, **one.parameters, **one.facts, **told})
            )
        tables.append(PlainTable.of_facts("Files", {"files": ", ".join(self.files)}))
        return Document("What would be sent", sections=(Section("sent", "", tuple(tables)),))


def track_run(request: TrackRequest) -> Findings:
    """Send an earlier run to trackers, or list what they would get. What they have already is not sent again."""
    if request.dry_run:
        from boosters_eval.tracking.sender import list_content  # noqa: PLC0415 (a list of runs needs none)

        folder = find_run(request.reference, request.home)
        return UnsentRun(*list_content(folder, folder.shown()))
    from boosters_eval.tracking.observer import choose_trackers, send_run  # noqa: PLC0415 (a list of runs needs none)

    trackers = choose_trackers(request.to, "to")
    send_run(request.reference, trackers, request.home, timeout=request.timeout, say=request.say or tell)
    return SentRun()
