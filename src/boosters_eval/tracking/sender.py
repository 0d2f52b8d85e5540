"""The process of a tracker: it reads the run's journal whenever there is news, and sends what is new.

Only the fact that there is news passes through the program that runs the cells, so a tracker that is slow, hangs or
crashes costs that program neither time nor memory. What is sent is what docs/tracking.md lists, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import FileLock

from boosters_eval.core.errors import describe_error
from boosters_eval.core.modules import load_address
from boosters_eval.core.request import Repeat
from boosters_eval.core.temporary import find_temporary, own_folder
from boosters_eval.core.text import hide_home
from boosters_eval.engine.folder import Run, RunFolder
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.runs import Competing, RunKind, read_kind
from boosters_eval.tracking.tracker import (
    CompetitorEnd,
    TrackedCell,
    TrackedCompetitor,
    TrackedEnd,
    TrackedRun,
    Tracker,
    TrackingStatus,
    short_digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.engine.plan import Plan

    RunPlace = tuple[str, int]  # the folder of a run, and the attempt

CONTENT_VERSION = 1  # another one is sent again


@dataclass(frozen=True)
class TrackedContent:
    """All that there is to send of a run so far."""

    run: TrackedRun
    status: TrackingStatus
    competitors: tuple[TrackedCompetitor, ...]
    cells: Mapping[str, tuple[TrackedCell, ...]]  # by competitor
    ends: Mapping[str, CompetitorEnd]  # by competitor; none while the run goes on


def collect_content(run: Run, folder: RunFolder, *, sealed: bool, ended: bool) -> TrackedContent:
    """What there is to send. A run that ended without its seal was interrupted."""
    kind = read_kind(run, folder)
    steps = _steps(run.plan)
    competitors, cells, ends = [], {}, {}
    for found in kind.competing():
        competitor = _competitor(kind, found)
        competitors.append(competitor)
        sent = []
        for result in found.results:
            step, repeat = steps[result.key]
            numbers = {**kind.numbers(result), "failed_before": result.failed_before or None}
            sent.append(TrackedCell(result.key, step, *repeat, _finite(numbers)))
        cells[competitor.key] = tuple(sorted(sent, key=lambda cell: cell.step))
        if ended:
            ends[competitor.key] = _end(kind, found, cells[competitor.key])
    status = _status(run.missing, len(run.failures)) if sealed else TrackingStatus.INTERRUPTED
    started = run.facts.started_at
    tracked = TrackedRun(
        key=identify_run(folder, run.attempt),
        name=run.facts.display_name or f"{run.plan.name} {run.plan.run_id[:8]}",
        started=datetime.fromisoformat(started).timestamp() if started else 0.0,
        facts=_run_facts(run),
        content=f"{CONTENT_VERSION}-{run.plan.run_id}-{run.attempt}-{run.digest}" if sealed and ended else "",
    )
    return TrackedContent(tracked, status if ended else TrackingStatus.RUNNING, tuple(competitors), cells, ends)


def identify_run(folder: RunFolder, attempt: int) -> str:
    """A key that stays the same over the sessions of a run: resumed, with failed cells run again, with seeds added.

    Such attempts keep the time of the first session; looks of seeds="auto" name the run whose seeds they added to.
    A new attempt at the same plan is another run.
    """
    facts, seen = folder.facts(attempt), {folder.run_id}
    while facts.extends and facts.extends not in seen:
        seen.add(facts.extends)
        earlier = RunFolder(folder.path.parent / facts.extends)
        known = [n for n in earlier.attempts() if earlier.facts(n).started_at <= facts.started_at]
        if not known:  # it was removed
            break
        folder, attempt = earlier, known[-1]
        facts = folder.facts(attempt)
    first = attempt
    if facts.resumed:
        first = next(n for n in folder.attempts() if n == attempt or folder.facts(n).started_at == facts.started_at)
    return f"{folder.run_id}-{short_digest([facts.started_at, first, facts.machine.get('digest')])}"


def _status(missing: int, failed: int) -> TrackingStatus:
    if missing:
        return TrackingStatus.INTERRUPTED
    return TrackingStatus.FAILED if failed else TrackingStatus.FINISHED


def _run_facts(run: Run) -> dict[str, str]:
    plan, facts = run.plan, run.facts
    absent = [
        *(("unsupported", item) for item in plan.excluded),
        *(("unavailable", item) for item in facts.unavailable),
    ]
    builds = [item for by_target in plan.builds.values() for item in by_target.items()]
    return _texts(
        {
            "run_id": plan.run_id,
            "attempt": run.attempt,
            "suite": plan.name,
            "name": facts.display_name,
            "started_at": facts.started_at,
            "cells": len(plan.refs),
            **_common_facts(facts),
            **{f"version.{target}": build.version for target, build in builds},
            **{f"machine.{name}": value for name, value in facts.machine.items()},
            **{f"node.{digest}": machine.cpu_model for digest, machine in run.machines.items()},
            "jobs": facts.jobs,
            "executor": facts.executor,
            "command": " ".join(facts.command),
            "seeds_rule": facts.seeds_rule,
            **{f"{kind}.{item.spec} {item.target}": item.reason for kind, item in absent},
        }
    )


def _common_facts(facts: RunFacts) -> dict[str, Any]:
    return {
        "boosters_eval": facts.boosters_eval,
        "python": facts.python,
        "commit": facts.git_sha,
        "branch": facts.git_branch,
        "dirty": facts.git_dirty,
    }


def _competitor(kind: RunKind, cells: Competing) -> TrackedCompetitor:
    run, spec = kind.run, cells.spec
    build = run.plan.builds[spec.workload][cells.target]
    facts = {
        "run_id": run.plan.run_id,
        "library": build.library,  # of a build by another name
        "version": build.version,
        "build": build.digest,
        **kind.facts(cells),
        **_common_facts(run.facts),
    }
    return TrackedCompetitor(spec.name, cells.target, _texts(kind.parameters(cells)), _texts(facts))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: hide_home(value if isinstance(value, str) else json.dumps(value, default=str))
        for name, value in values.items()
        if value is not None and value != ""
    }


def _steps(plan: Plan) -> dict[str, tuple[int, Repeat]]:
    """The step of each cell, by its key: its seed, or its place among the seeds and folds; and its repeat."""
    folds: dict[int, int] = {}
    for ref in plan.refs:
        folds[ref.spec] = max(folds.get(ref.spec, 1), (ref.fold or 0) + 1)
    return {
        key: (ref.seed if ref.fold is None else ref.seed * folds[ref.spec] + ref.fold, Repeat(ref.seed, ref.fold))
        for key, ref in zip(plan.keys, plan.refs, strict=True)
    }


def _finite(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if value is not None and math.isfinite(value)}


def _end(kind: RunKind, found: Competing, cells: tuple[TrackedCell, ...]) -> CompetitorEnd:
    failures = {
        str(Repeat(item.seed, item.fold)): f"{item.error_type}: {item.error_message}".partition("\n")[0]
        for item in found.failures
    }
    names = dict.fromkeys(name for cell in cells for name in cell.metrics)
    means = {name: statistics.fmean(cell.metrics[name] for cell in cells if name in cell.metrics) for name in names}
    means |= _finite(kind.summary(found))
    status = _status(found.planned - len(cells) - len(failures), len(failures))
    return CompetitorEnd(status, len(cells), means, failures)


_LEAST_PAUSE = 1.0  # seconds between two sendings
_SHARE = 4  # how many times as long as the last sending took
_AFTER_FAULT = 10.0
_GRACE = 1.0  # the program, if it is still there, ends this process first


class Sending:
    """What one tracker was told so far. After a fault everything is told again, which changes nothing there."""

    def __init__(self, make: Callable[[str], Tracker], say: Callable[..., None]) -> None:
        self._make, self._say = make, say
        self._tracker: Tracker | None = None
        self._run_id = ""
        self._described: dict[str, TrackedCompetitor] = {}
        self._cells: set[str] = set()
        self._past = 0  # runs that were sent to their end

    def send_all(self, places: Sequence[RunPlace], *, ended: bool) -> None:
        """Bring the tracker up to date with the runs of a session, of which only the last may go on."""
        *earlier, last = places
        for folder, attempt in earlier[self._past :]:
            self.send(RunFolder(Path(folder)), attempt, ended=True, more=True)
            self._tracker = None  # each has a state of its own
            self._past += 1
        self.send(RunFolder(Path(last[0])), last[1], ended=ended)

    def send(self, folder: RunFolder, attempt: int, *, ended: bool, more: bool = False) -> None:
        try:
            self._send(folder, attempt, ended=ended, more=more)
        except BaseException:
            self._tracker = None
            raise

    def _send(self, folder: RunFolder, attempt: int, *, ended: bool, more: bool) -> None:
        sealed = read_journal(folder.journal_path(attempt)).sealed  # before the rest is read, which may be more by then
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has no seal is usual here
            run = folder.load(attempt)
        content = collect_content(run, folder, sealed=sealed, ended=ended)
        if self._tracker is None:
            self._tracker = self._make(content.run.key)
            self._described, self._cells, self._run_id = {}, set(), ""
            if self._tracker.holds(content.run):
                self._say(done=not more, where="nothing was sent: it has all of it already")
                return
        if self._run_id != run.plan.run_id:  # at first, and when seeds were added
            self._say(where=self._tracker.begin(content.run))
            self._run_id = run.plan.run_id
        self._tell(self._tracker, content)
        if ended:
            with _files(run, folder, content) as files:
                written = folder.journal_path(attempt).stat().st_mtime
                self._tracker.end(content.run, TrackedEnd(content.status, written, content.ends, files))
            self._say(done=not more)

    def _tell(self, tracker: Tracker, content: TrackedContent) -> None:
        for competitor in content.competitors:
            if self._described.get(competitor.key) != competitor:
                tracker.describe(competitor)
                self._described[competitor.key] = competitor
            fresh = [cell for cell in content.cells[competitor.key] if cell.key not in self._cells]
            if fresh:
                tracker.log(competitor, fresh)
                self._cells.update(cell.key for cell in fresh)


@contextlib.contextmanager
def _files(run: Run, folder: RunFolder, content: TrackedContent) -> Iterator[Mapping[str, Path]]:
    """The journal of a run that came to its end, and the reports of its kind."""
    if content.status is TrackingStatus.INTERRUPTED:
        yield {}
        return
    texts = read_kind(run, folder).files()
    with tempfile.TemporaryDirectory() as place:
        files = {name: Path(place) / name for name in (*texts, "journal.jsonl")}
        for name, text in texts.items():
            files[name].write_text(hide_home(text), encoding="utf-8")
        files["journal.jsonl"].write_bytes(folder.journal_path(run.attempt).read_bytes())
        yield files


def list_content(folder: RunFolder, attempt: int) -> tuple[TrackedContent, tuple[str, ...]]:
    """What would be sent of a run that has ended: the content, and the names of the files."""
    run = folder.load(attempt)
    content = collect_content(run, folder, sealed=read_journal(folder.journal_path(attempt)).sealed, ended=True)
    with _files(run, folder, content) as files:
        return content, tuple(files)


class News:
    """What the program says on stdin: where its runs are, that there is news, the end. Its death is an end too."""

    def __init__(self, source: BinaryIO, at_end: Callable[[], None] = lambda: None) -> None:
        self._changed, self._at_end = threading.Condition(), at_end
        self._places: dict[int, RunPlace] = {}
        self._fresh = self._ended = False
        threading.Thread(target=self._listen, args=(source,), daemon=True).start()

    def _listen(self, source: BinaryIO) -> None:
        for line in source:
            message = json.loads(line)
            with self._changed:
                self._fresh = True
                self._ended = message.get("ended", False)
                if "folder" in message:
                    self._places[message["run"]] = (message["folder"], message["attempt"])
                self._changed.notify()
        self._at_end()
        with self._changed:
            self._ended = self._fresh = True
            self._changed.notify()

    def wait(self, seconds: float | None = None) -> tuple[list[RunPlace], bool]:
        """Until there is news, at most that long: where the runs are that have begun, and whether the last ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._fresh, seconds)
            self._fresh = False
            return list(self._places.values()), self._ended

    def pause(self, seconds: float) -> None:
        """Unless it ended: then there is no time to lose."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)


def main(setup: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.nice(10)  # cells come first
    os.set_inheritable(setup["replies"], False)
    out = os.fdopen(setup["replies"], "w", encoding="utf-8")

    def say(**reply: Any) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            out.write(json.dumps(reply) + "\n")
            out.flush()

    tracker = load_address(setup["address"])
    states = Path(setup["states"])
    # From the end on there is a limit, whatever it is doing: the program may be gone, and nobody else would end it.
    limit = threading.Timer(setup["wait"] + _GRACE, os._exit, [1])
    limit.daemon = True
    with own_folder(find_temporary()) as place, contextlib.ExitStack() as held:
        os.environ["TMPDIR"] = tempfile.tempdir = str(place)
        sending = Sending(lambda key: tracker(_owned(states / f"{key}.json", held)), say)
        code = attend(sending, News(sys.stdin.buffer, limit.start), say)
    sys.stdout.flush()
    os._exit(code)  # whatever a tracker left running must not keep it


def _owned(state: Path, held: contextlib.ExitStack) -> Path:
    """Wait until no other process sends the same run to the same tracker: each would send what both do not know of."""
    state.parent.mkdir(parents=True, exist_ok=True)
    held.close()  # it is asked for again after each fault
    held.enter_context(FileLock(state.with_suffix(".lock")))
    return state


def attend(sending: Sending, news: News, say: Callable[..., None]) -> int:
    """Send whenever there is news; the exit status tells whether all was sent at the end."""
    again: float | None = None  # seconds until it is tried again without news
    while True:
        places, ended = news.wait(again)
        if places:
            began = time.monotonic()
            good = _try(sending, places, say, ended=ended)
            again = None if good else _AFTER_FAULT
            if ended:
                return 0 if good else 1
            news.pause(max(_LEAST_PAUSE, _SHARE * (time.monotonic() - began)))
        elif ended:
            return 0


def _try(sending: Sending, places: Sequence[RunPlace], say: Callable[..., None], *, ended: bool) -> bool:
    try:
        sending.send_all(places, ended=ended)
    except BaseException as error:  # noqa: BLE001 (a tracker may fail in any way)
        say(trouble=" ".join(describe_error(error).split())[:500])
        return False
    say(well=True)
    return True
