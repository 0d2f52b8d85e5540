"""A run on disk: the folder of one plan, with a journal and the facts of each attempt."""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout
from pydantic import ValidationError

from boosters_eval.core.errors import (
    BoostersEvalError,
    BoostersEvalWarning,
    ConfigError,
    FileFormatError,
    RunError,
)
from boosters_eval.core.files import (
    MAX_RESULTS,
    check_format,
    compute_digest,
    find_home,
    load_json,
    make_home,
    read_text,
    refuse_wide,
    write_atomically,
)
from boosters_eval.core.terms import given
from boosters_eval.core.text import escape_json
from boosters_eval.engine import summaries
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.journal import Journal, Reading, pause_collection, read_journal
from boosters_eval.engine.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.core.machine import MachineInfo
    from boosters_eval.engine.cell import Outcome


@dataclass(frozen=True)
class Run:
    """One attempt at a plan: the outcomes of its cells, and what was recorded about it."""

    plan: Plan
    outcomes: dict[str, Outcome | Failure]  # by the key of their cell; a cell that did not run has none
    facts: RunFacts
    attempt: int
    begin: dict[str, Any]
    digest: str = ""  # of the journal's last line
    machines: dict[str, MachineInfo] = field(default_factory=dict)  # that its outcomes name, by digest
    folder: RunFolder | None = field(default=None, compare=False)  # where it is stored

    @property
    def kept_in(self) -> tuple[Path, ...]:
        """The folder with the predictions that its outcomes name."""
        return () if self.folder is None else (self.folder.predictions,)

    @property
    def results(self) -> list[Outcome]:
        """The cells that finished, in the plan's order."""
        return [outcome for outcome in self._ordered() if not isinstance(outcome, Failure)]

    @property
    def failures(self) -> list[Failure]:
        """The cells that failed, in the plan's order."""
        return [outcome for outcome in self._ordered() if isinstance(outcome, Failure)]

    @property
    def missing(self) -> int:
        """How many cells of the plan have no outcome."""
        return sum(key not in self.outcomes for key in self.plan.keys)

    def _ordered(self) -> Iterator[Outcome | Failure]:
        for key in self.plan.keys:
            outcome = self.outcomes.get(key)
            if outcome is not None:
                yield outcome


# Its journal is created first, so that the others are never alone unless it was deleted; plan.json is no attempt's own.
_OF_ATTEMPT = re.compile(r"(?:(?:journal|plan|environment)-(?P<number>\d+)|journal|environment)\.jsonl?")


class RunFolder:
    """`<home>/runs/<run_id>`: the plan, and one journal and environment per attempt.

    A run id does not depend on a plan's name, order and exclusions: an attempt at another such plan keeps its own.
    """

    def __init__(self, path: Path, attempt: int | None = None) -> None:
        self.path = path
        self.attempt = attempt  # the one that was asked for by its name

    @classmethod
    def of(cls, plan: Plan, where: Path | None = None) -> Self:
        home = find_home(where)
        folder = cls(home / "runs" / plan.run_id)
        try:
            make_home(home)
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"Cannot create {folder.path}: {error.strerror}; set BOOSTERS_EVAL_HOME.") from None
        found = folder._readable_plan(1)
        if found is None or found.run_id != plan.run_id:  # a damaged one is written anew
            folder._write_plan("plan.json", plan)
        return folder

    def _readable_plan(self, attempt: int) -> Plan | None:
        try:
            return self.plan(attempt)
        except BoostersEvalError:
            return None

    def holds(self, plan: Plan, attempt: int) -> bool:
        """Whether the attempt follows exactly this plan, with its name, order and exclusions."""
        found = self._readable_plan(attempt)
        return found is not None and found.model_dump_json() == plan.model_dump_json()

    def keep_plan(self, plan: Plan, attempt: int) -> None:
        """Store the plan of an attempt that is about to begin, unless plan.json is the same."""
        name = _numbered("plan", attempt, "json")
        if attempt > 1:
            (self.path / name).unlink(missing_ok=True)  # of an attempt that was killed before it began
        if not self.holds(plan, attempt):
            self._write_plan(name, plan)

    def _write_plan(self, name: str, plan: Plan) -> None:
        write_atomically(self.path / name, escape_json(plan.model_dump_json(indent=1)) + "\n", own=True)

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def arrays(self) -> Path:
        """Where cells put what is too big for the journal; removed with the run."""
        return self.path / "arrays"

    @property
    def predictions(self) -> Path:
        """Where fits keep what they predicted; unlike arrays, it may be removed to make room."""
        return self.path / "predictions"

    def plan(self, attempt: int = 1) -> Plan:
        path = self.plan_path(attempt)
        return Plan.parse(read_text(path, limit=MAX_RESULTS), str(path))

    def plan_path(self, attempt: int) -> Path:
        """The plan's file of an attempt: its own, or the one that it shares."""
        own = self.path / _numbered("plan", attempt, "json")
        return own if own.exists() else self.path / "plan.json"

    def attempts(self) -> list[int]:
        """The numbers of the attempts that began; one whose journal was deleted leaves its other files."""
        try:
            names = os.listdir(self.path)  # noqa: PTH208 (thousands of runs are listed, and paths are slow)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = map(_OF_ATTEMPT.fullmatch, names)
        return sorted({int(match["number"] or 1) for match in found if match})

    def journal_path(self, attempt: int) -> Path:
        """The journal of an attempt; the first one has no number."""
        return self.path / _numbered("journal", attempt, "jsonl")

    def time(self) -> float:
        """When the attempt that was asked for, or else the latest, was last written to."""
        number = self.attempt or self.attempts()[-1]
        files = (self.journal_path(number), self.facts_path(number), self.path)  # a lost one is not passed over
        # Of a link itself: where it leads is for whoever reads it to refuse.
        return next(path.lstat().st_mtime for path in files if os.path.lexists(path))

    def write_facts(self, attempt: int, facts: RunFacts) -> None:
        """Record the machine and versions of an attempt when it begins, and of each session that continues it."""
        text = json.dumps(facts.recorded(), indent=1) + "\n"
        write_atomically(self.facts_path(attempt), text, own=True)

    def facts_path(self, attempt: int) -> Path:
        return self.path / _numbered("environment", attempt, "json")

    def _read_facts(self, attempt: int) -> str:
        text = read_text(self.facts_path(attempt))
        refuse_wide(text, str(self.facts_path(attempt)))
        return text

    def facts(self, attempt: int) -> RunFacts:
        """What `write_facts` recorded, or empty facts."""
        path = self.facts_path(attempt)
        if not path.exists():
            return RunFacts()
        try:
            return RunFacts.model_validate_json(self._read_facts(attempt))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["loc"] == ("schema_version",):
                check_format(first["input"], str(path), "a record of a run")
            raise FileFormatError(f"{path} cannot be read: {first['msg']}.") from None

    def shown(self) -> int:
        """The attempt that is shown: the latest, unless it is unfinished and an earlier one is finished, which is said.

        An attempt that is damaged, or has lost its journal, is not passed over: that is no interruption.
        """
        known = self.attempts()
        if not known:
            raise RunError(f"Run {self.run_id} has no journal.")
        if self.attempt is not None:
            return self.attempt
        ended = (n for n in reversed(known) if not (path := self.journal_path(n)).exists() or summaries.is_sealed(path))
        try:
            number = next(ended, known[-1])
        except OSError as error:
            raise RunError(f"Cannot read {error.filename}: {error.strerror}.") from None
        for later in known[known.index(number) + 1 :]:
            self._refuse_damage(self.journal_path(later), read_journal(self.journal_path(later)))
        if number != known[-1]:
            message = (
                f"Attempt {known[-1]} of run {self.run_id} is unfinished, so attempt {number}, the latest finished one,"
                f" is shown; {given('resume')} continues the other."
            )
            warnings.warn(message, BoostersEvalWarning, stacklevel=3)
        return number

    def _refuse_damage(self, path: Path, reading: Reading) -> None:
        if reading.damage:
            raise RunError(f"{path} is damaged: {reading.damage}. See 'boosters-eval verify {self.run_id}'.")

    def load(self, attempt: int | None = None) -> Run:
        """One attempt, by default the latest, for whoever shows it: an unfinished one too, but never a changed one.

        Whoever decides on it uses `load_verified`.
        """
        known = self.attempts()
        if not known:
            raise RunError(f"Run {self.run_id} has no journal.")
        number = known[-1] if attempt is None else attempt
        path = self.journal_path(number)
        with pause_collection():
            plan, beside = self.plan(number), self.plan_path(number).name
            reading = read_journal(path)
            self._refuse_damage(path, reading)
            if not reading.begin:
                raise RunError(f"Attempt {number} of run {self.run_id} has not begun: run it again.")
            if plan.run_id != self.run_id or reading.begin.get("run_id") != self.run_id:
                raise RunError(f"{path} and {beside} are not of run {self.run_id}. See 'boosters-eval verify'.")
            fault = find_journal_fault(reading, set(plan.keys), self.run_id, finished=reading.sealed)
            if fault:
                raise RunError(f"{path} and {beside} do not belong together: {fault}.")
            run = self.run(plan, number, reading)
        if not reading.sealed and not run.missing:
            warnings.warn(
                f"{path} has all outcomes but no seal: the run was stopped just then, or the end of the file was"
                f" changed; {given('resume')} seals it.",
                BoostersEvalWarning,
                stacklevel=2,
            )
        return run

    def outcomes_before(self, attempt: int) -> list[dict[str, Outcome | Failure]]:
        """What each earlier attempt ended with, as far as it can be read; `verify` tells of one that cannot.

        All of them, because one that was interrupted says nothing of the cells that it did not reach.
        """
        return [read_journal(self.journal_path(number)).outcomes for number in self.attempts() if number < attempt]

    def run(self, plan: Plan, attempt: int, reading: Reading) -> Run:
        for name, fault in self.faults_beside(attempt, reading):
            raise RunError(f"{self.path / name}: {fault}. See 'boosters-eval verify {self.run_id}'.")
        facts = self.facts(attempt)
        return Run(plan, reading.outcomes, facts, attempt, reading.begin, reading.last, reading.machines, self)

    def digests(self, attempt: int) -> dict[str, str]:
        """Of the files beside the journal: its first line holds them, so that none can be changed unnoticed."""
        facts = load_json(self._read_facts(attempt), str(self.facts_path(attempt)))
        if isinstance(facts, dict):
            facts.pop("resumed", None)  # what later sessions add
        plan = read_text(self.plan_path(attempt), limit=MAX_RESULTS)
        return {"plan": compute_digest(plan, 32), "facts": compute_digest(json.dumps(facts, sort_keys=True), 32)}

    def faults_beside(self, attempt: int, reading: Reading) -> Iterator[tuple[str, str]]:
        """The files beside the journal that are not what they were when the attempt began.

        A plan that was damaged and written anew is the same, unless another version of the program wrote it.
        """
        found = self.digests(attempt)
        for what, path in (("plan", self.plan_path(attempt)), ("facts", self.facts_path(attempt))):
            if found[what] != reading.begin.get(what):
                yield path.name, "is not what it was when the attempt began"

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep others from executing the run; a lock that is a link would be created where it leads."""
        file = self.path / "lock"
        if not self.path.is_dir() or file.is_symlink():
            yield
            return
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"Run {self.run_id} is being executed, so nothing of it was removed.") from None
        except OSError:
            if not os.access(self.path, os.W_OK):
                raise
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                lock.release()

    def open(self, *, new: bool) -> tuple[Journal, int]:
        """Open a new attempt, or the latest one to continue it. Other processes are locked out."""
        lock = FileLock(self.path / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"Run {self.run_id} is being executed by another process; wait for it or stop it.") from None
        try:
            known = self.attempts()
            new = new or not known
            attempt = (known[-1] if known else 0) + new
            return _open_journal(self.journal_path(attempt), lock, new=new), attempt
        except BaseException:
            lock.release()
            raise


def read_to_continue(path: Path) -> Reading:
    """The journal of an attempt that is to be continued, which a damaged one cannot be."""
    reading = read_journal(path)
    if reading.damage:
        raise RunError(f"{path} is damaged: {reading.damage}. It was not changed; start a new attempt.")
    return reading


def _open_journal(path: Path, lock: FileLock, *, new: bool) -> Journal:
    """Open a journal for appending. An incomplete last line is removed; a damaged journal is left untouched."""
    reading = Reading() if new else read_to_continue(path)
    try:
        file = path.open("ab")
        if reading.cut:
            file.truncate(reading.good_bytes)
    except OSError as error:
        raise RunError(f"Cannot write {path}: {error.strerror}.") from None
    return Journal(path, file, lock, reading)


def _numbered(name: str, attempt: int, suffix: str) -> str:
    return f"{name}.{suffix}" if attempt == 1 else f"{name}-{attempt}.{suffix}"


def find_journal_fault(reading: Reading, keys: set[str], run_id: str, *, finished: bool = True) -> str:
    """What is wrong with a journal; that cells are missing is wrong only where it should be finished."""
    missing = len(keys - reading.outcomes.keys())
    foreign = reading.outcomes.keys() - keys
    if reading.damage:
        return f"damaged: {reading.damage}"
    if reading.begin.get("run_id") != run_id:
        return "does not begin with this run's id"
    if foreign:
        return f"has a cell that is not in the plan: {min(foreign)}"
    if missing and finished:
        return f"incomplete: {missing} of {len(keys)} cells have no outcome"
    if finished and (reading.cut or not reading.sealed):
        return "not sealed: the run did not finish, or the end of the file was changed"
    return ""
