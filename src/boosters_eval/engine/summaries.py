"""What can be told of a run at a glance: its journal is counted line by line, but neither parsed nor verified."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import MAX_TEXT, check_regular
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.predictions import measure_kept

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.engine.folder import RunFolder

_HEAD = 4096  # characters of a plan in which its name stands
_TAIL = 256  # bytes that hold the last line of a complete journal
_SEAL = re.compile(rb'\{"prev":"[0-9a-f]{32}","end":\{"outcomes": (\d+)\}\}\n\Z')
_OUTCOME = re.compile(rb'\{"prev":"[0-9a-f]{32}",(?:"of":"[\w.-]+",)?(?:"with":"[0-9a-f]{16}",)?"(result|failure)":')


@dataclass(frozen=True)
class RunSummary:
    """One run of the home; of several attempts, the latest."""

    run_id: str
    path: Path
    state: str  # finished, unfinished, running, not begun, or unreadable
    fault: str = ""  # what is wrong with an unreadable one
    title: str = ""  # the name of its plan: that of a suite, or compare
    facts: RunFacts | None = None  # None: they could not be read
    kind: str = ""
    attempts: int = 0
    done: int = 0
    failed: int = 0
    missing: int | None = None  # None: unknown
    size: int = 0  # bytes on disk
    predictions: int = 0  # bytes of it that are predictions
    written: float = 0.0  # when it was last written to


def summarize(folder: RunFolder) -> RunSummary:
    """The summary of a run. Whatever cannot be read is its fault, never the end of the listing."""
    known: dict[str, Any] = {"run_id": folder.run_id, "path": folder.path}
    try:
        known["predictions"] = measure_kept(folder)
        known["size"] = known["predictions"] + _size(folder.path, but=folder.predictions.name)
        known["written"] = folder.path.lstat().st_mtime
        attempts = folder.attempts()
        known["attempts"] = len(attempts)
        if not attempts:
            return RunSummary(**known, state="not begun")
        known["written"] = folder.time()
        attempt = folder.attempt or attempts[-1]
        known["facts"] = facts = folder.facts(attempt)
        known["title"], known["kind"] = _title(folder.plan_path(attempt)), facts.kind
        found = _Counted.of(folder.journal_path(attempt))
        known["done"], known["failed"] = found.done, found.failed
        if not found.sealed:
            cells = len(folder.plan(attempt).refs) if found.cells is None else found.cells
            known["missing"] = max(0, cells - found.done - found.failed)
            return RunSummary(**known, state="running" if is_running(folder.path) else "unfinished")
        return RunSummary(**known, missing=0, state="finished")
    except (BoostersEvalError, OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return RunSummary(**known, state="unreadable", fault=reason.rstrip("."))


def find_kind(folder: RunFolder, attempt: int) -> str:
    """What an attempt is read as; empty if its files do not tell."""
    try:
        return folder.facts(attempt).kind
    except (BoostersEvalError, OSError):
        return ""


def find_name(folder: RunFolder, attempt: int) -> str:
    """The name that a user gave to an attempt; empty if its files do not tell."""
    try:
        return folder.facts(attempt).display_name
    except (BoostersEvalError, OSError):
        return ""


def is_sealed(journal: Path) -> bool:
    """Whether the last line of a journal says that the run is complete."""
    size = check_regular(journal)
    with journal.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        return _SEAL.search(file.read()) is not None


def is_running(folder: Path) -> bool:
    """Whether a process holds the lock of a run. Nothing is created or waited for."""
    try:
        file = os.open(folder / "lock", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a pipe must not be waited for
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(file)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Counted(NamedTuple):
    """What the lines of a journal tell without being parsed."""

    done: int
    failed: int
    sealed: bool
    cells: int | None  # that were planned; None: it was stopped before it said so

    @classmethod
    def of(cls, journal: Path) -> Self:
        check_regular(journal)
        found = {b"result": 0, b"failure": 0}
        first = line = b""
        with journal.open("rb") as file:
            for line in iter(partial(file.readline, MAX_TEXT), b""):
                first = first or line
                match = _OUTCOME.match(line)
                if match and line.endswith(b"\n"):
                    found[match[1]] += 1
        seal = _SEAL.fullmatch(line)
        done, failed = found[b"result"], found[b"failure"]
        if failed and not (seal and done + failed == int(seal[1])):
            outcomes = read_journal(journal).outcomes  # a cell that failed may have run again: its last outcome counts
            failed = sum(isinstance(outcome, Failure) for outcome in outcomes.values())
            done = len(outcomes) - failed
        begin = json.loads(first)["begin"] if first.endswith(b"\n") else {}
        return cls(done, failed, seal is not None, begin.get("cells"))


def _title(plan: Path) -> str:
    """The name of a plan, without reading all of it."""
    check_regular(plan)
    with plan.open(encoding="utf-8") as file:
        head = file.read(_HEAD)
    name = re.search(r'"name":\s*("(?:[^"\\]|\\.)*")', head)
    if name is None:
        raise ValueError(f"{plan.name} is not a plan")
    title: str = json.loads(name[1])
    return title


def _size(folder: Path, but: str = "") -> int:
    """Bytes of the files in a run's folder, but for one of its folders; links count for themselves."""
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                if entry.name == but and stat.S_ISDIR(found.st_mode):
                    continue
                total += _size(folder / entry.name) if stat.S_ISDIR(found.st_mode) else found.st_size
    return total
