"""The record of a run: append-only, each line chained to the one before, on disk before the next cell starts."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from boosters_eval._files import MAX_RESULTS, load_json, read_text, write_atomically
from boosters_eval.engine.home import home
from boosters_eval.engine.plan import SCHEMA_VERSION as PLAN_VERSION
from boosters_eval.engine.plan import Plan, PlannedConfig
from boosters_eval.errors import ConfigError, FileFormatError, RunError, suggest
from boosters_eval.results import BenchmarkError, BenchmarkResult, ResultCollection, RunEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.config import Mark
    from boosters_eval.results import Outcome

SCHEMA_VERSION = 1
_START = "0" * 32
_RESULT: TypeAdapter[BenchmarkResult] = TypeAdapter(BenchmarkResult)
_ERROR: TypeAdapter[BenchmarkError] = TypeAdapter(BenchmarkError)
_FIELDS = set(BenchmarkResult.model_fields)
_LINE = re.compile(rb'\{"prev":"([0-9a-f]{32})","(begin|result|error|end)":(.*)\}\n', re.DOTALL)


@dataclass
class Reading:
    """A journal as it was found."""

    begin: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # the last one of each cell
    last: str = _START  # the digest that the next line must carry
    good_bytes: int = 0
    cut: bool = False  # the last line was not finished
    sealed: bool = False  # the last line says that the run was completed, and how many outcomes it has
    damage: str | None = None
    marks: dict[Any, tuple[Mark, ...]] = field(default_factory=dict, repr=False)


def read(path: Path) -> Reading:
    """Read and check the chain; a cut last line is left out, any other fault is damage."""
    reading = Reading()
    collecting = gc.isenabled()
    gc.disable()  # nothing here is garbage, and looking for some takes as long as reading
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    reading.cut = True
                    break
                fault = _take(line, reading)
                if fault:
                    reading.damage = f"line {number} {fault}"
                    break
                reading.good_bytes += len(line)
    except OSError as error:
        raise RunError(f"Cannot read {path}: {error.strerror}.") from None
    finally:
        if collecting:
            gc.enable()
    return reading


def _take(line: bytes, reading: Reading) -> str | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return "is not a line of a journal"
    previous, kind, content = match.groups()
    if previous.decode() != reading.last:
        return "does not follow the line before it"
    try:
        reading.sealed = kind == b"end"
        if kind == b"begin":
            reading.begin = _object(content)
        elif kind == b"end":
            if _object(content) != {"outcomes": len(reading.outcomes)}:
                return "does not count the outcomes before it"
        else:
            adapter: TypeAdapter[Any] = _RESULT if kind == b"result" else _ERROR
            outcome: Outcome = adapter.validate_json(content)
            _slim(outcome, reading)
            reading.outcomes.pop(outcome.key, None)
            reading.outcomes[outcome.key] = outcome
    except (ValidationError, ValueError, RecursionError):
        return "has content that cannot be read"
    reading.last = _digest(line)
    return None


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 (told like any other content that cannot be read)
    return found


def _slim(outcome: Outcome, reading: Reading) -> None:
    """Let outcomes share what is equal in all of them: a hundred thousand must fit into memory."""
    if isinstance(outcome, BenchmarkResult):
        object.__setattr__(outcome, "__pydantic_fields_set__", _FIELDS)
        same = tuple((mark.parameter, mark.kind, mark.reason) for mark in outcome.marks)
        vars(outcome)["marks"] = reading.marks.setdefault(same, outcome.marks)


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:32]


class Journal:
    """One attempt of a run, open for appending; only one process may hold it."""

    def __init__(self, path: Path, file: IO[bytes], lock: FileLock, reading: Reading) -> None:
        self.path = path
        self.found = reading
        self._file = file
        self._lock = lock
        self._last = reading.last

    def append(self, outcome: Outcome) -> None:
        """Write one outcome and wait until it is on disk."""
        kind = "result" if isinstance(outcome, BenchmarkResult) else "error"
        self._write(kind, outcome.model_dump_json(exclude_defaults=True))

    def begin(self, facts: dict[str, Any]) -> None:
        """The first line of an attempt."""
        self._write("begin", json.dumps({"schema_version": SCHEMA_VERSION, **facts}))

    def seal(self, count: int) -> None:
        """The run is complete: without this line the last outcome could be changed unseen."""
        self._write("end", json.dumps({"outcomes": count}))

    def _write(self, kind: str, content: str) -> None:
        line = f'{{"prev":"{self._last}","{kind}":{content}}}\n'.encode()
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunError(
                f"Cannot write {self.path}: {error.strerror}. What is finished is kept; make room and use --resume."
            ) from None
        self._last = _digest(line)

    def close(self) -> None:
        """Let another process go on."""
        with contextlib.suppress(OSError):  # a full disk was told of already
            self._file.close()
        self._lock.release()


class RunFolder:
    """`<home>/runs/<run_id>`: the plan, and one journal and environment an attempt."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, plan: Plan, where: Path | None = None) -> Self:
        """The folder of a plan, made where it does not exist yet."""
        folder = cls(home(where) / "runs" / plan.run_id)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"Cannot make {folder.path}: {error.strerror}; set BOOSTERS_EVAL_HOME.") from None
        if not (folder.path / "plan.json").exists():
            write_atomically(folder.path / "plan.json", plan.model_dump_json(indent=1) + "\n")
        return folder

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.path.name

    def plan(self) -> Plan:
        """The plan that all attempts follow."""
        text = read_text(self.path / "plan.json", limit=MAX_RESULTS)
        source = str(self.path / "plan.json")
        raw = load_json(text, source)
        version = raw.get("schema_version") if isinstance(raw, dict) else None
        if type(version) is not int:
            raise FileFormatError(f"{source} is not a plan.")
        if version > PLAN_VERSION:
            raise FileFormatError(f"{source} has schema version {version}: upgrade this program.")
        return Plan.model_validate_json(text)

    def attempts(self) -> list[int]:
        """The numbers of the attempts that have a journal."""
        names = (re.fullmatch(r"journal(?:-(\d+))?\.jsonl", path.name) for path in self.path.glob("journal*.jsonl"))
        return sorted(int(match.group(1) or 1) for match in names if match)

    def journal_path(self, attempt: int) -> Path:
        """The first attempt has the plain name."""
        return self.path / _numbered("journal", attempt, "jsonl")

    def write_environment(self, attempt: int, facts: RunEnvironment) -> None:
        """Where and with what an attempt was made."""
        text = json.dumps(facts.told(), indent=1) + "\n"
        write_atomically(self.path / _numbered("environment", attempt, "json"), text)

    def environment(self, attempt: int) -> RunEnvironment:
        """What `write_environment` wrote, or nothing."""
        path = self.path / _numbered("environment", attempt, "json")
        if not path.exists():
            return RunEnvironment()
        try:
            return RunEnvironment.model_validate_json(read_text(path))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise FileFormatError(f"{path} cannot be read: {first['msg']}.") from None

    def open(self, *, new: bool) -> tuple[Journal, int]:
        """A new attempt beside earlier ones, or the latest one to go on with. Locked against other processes."""
        lock = FileLock(self.path / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"Run {self.run_id} is being executed by another process; wait for it or stop it.") from None
        try:
            known = self.attempts()
            attempt = (known[-1] if known else 0) + 1 if new or not known else known[-1]
            return _open_journal(self.journal_path(attempt), lock), attempt
        except BaseException:
            lock.release()
            raise


def _open_journal(path: Path, lock: FileLock) -> Journal:
    """Ready to append: a cut last line is taken away, a damaged journal is left alone."""
    reading = read(path) if path.exists() else Reading()
    if reading.damage:
        raise RunError(f"{path} is damaged: {reading.damage}. It is left as it is; start a new attempt.")
    try:
        file = path.open("ab")
        file.truncate(reading.good_bytes)
    except OSError as error:
        raise RunError(f"Cannot write {path}: {error.strerror}.") from None
    return Journal(path, file, lock, reading)


def _numbered(name: str, attempt: int, suffix: str) -> str:
    return f"{name}.{suffix}" if attempt == 1 else f"{name}-{attempt}.{suffix}"


def has_attempt(plan: Plan, where: Path | None = None) -> bool:
    """Whether this very plan was begun before."""
    return bool(RunFolder(home(where) / "runs" / plan.run_id).attempts())


def run_folders(where: Path | None = None) -> list[RunFolder]:
    """All runs that have a journal, the latest first."""
    root = home(where) / "runs"
    folders = [RunFolder(path) for path in root.iterdir()] if root.is_dir() else []
    with_journal = [folder for folder in folders if folder.attempts()]
    return sorted(with_journal, key=lambda f: f.journal_path(f.attempts()[-1]).stat().st_mtime, reverse=True)


def find_run(reference: str, where: Path | None = None) -> RunFolder:
    """A run by its id, the beginning of its id, or `last`."""
    folders = run_folders(where)
    if reference == "last" and folders:
        return folders[0]
    found = [folder for folder in folders if folder.run_id.startswith(reference)] if reference else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"The run id '{reference}' is ambiguous: {', '.join(f.run_id for f in found)}.")
    ids = [folder.run_id for folder in folders]
    raise ConfigError(f"No run '{reference}' in {home(where) / 'runs'}.{suggest(reference, ids)}")


def load_run(reference: str, where: Path | None = None) -> ResultCollection:
    """The latest attempt of a run; a damaged journal is refused."""
    folder = find_run(reference, where)
    attempt = folder.attempts()[-1]
    path = folder.journal_path(attempt)
    reading = read(path)
    if reading.damage:
        raise RunError(f"{path} is damaged: {reading.damage}. See 'boosters-eval verify {folder.run_id}'.")
    return collect(folder.plan(), reading.outcomes, metadata=metadata_of(folder, attempt, reading))


def collect(plan: Plan, outcomes: dict[str, Outcome], metadata: dict[str, Any]) -> ResultCollection:
    """Outcomes in the plan's order, whatever the order in which they came."""
    ordered = [outcomes[cell.key] for cell in plan.cells if cell.key in outcomes]
    missing = len(plan.cells) - len(ordered)
    return ResultCollection(
        (o for o in ordered if isinstance(o, BenchmarkResult)),
        (o for o in ordered if isinstance(o, BenchmarkError)),
        unsupported=plan.unsupported,
        run_id=plan.run_id,
        suite=plan.suite,
        metadata={
            **metadata,
            "n_cells": len(plan.cells),
            "n_missing": missing,
            "configs": {config.name: _parameters(config) for config in plan.configs},
            "user_metrics": {metric.name: metric.higher_is_better for metric in plan.user_metrics},
        },
    )


def _parameters(config: PlannedConfig) -> dict[str, Any]:
    """What reports say of a benchmark beside its results."""
    return {**config.training.model_dump(mode="json"), "n_threads": config.n_threads, "folds": config.split.folds}


def metadata_of(folder: RunFolder, attempt: int, reading: Reading) -> dict[str, Any]:
    """What is known of an attempt beside its outcomes."""
    environment = folder.environment(attempt)
    level = {} if environment.alpha is None else {"alpha": environment.alpha, "seeds_rule": environment.seeds_rule}
    return {"attempt": attempt, "begin": reading.begin, "environment": environment.told(), **level}


def verify(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """For each attempt (its journal's name, what is wrong or ''): complete, untouched, and of this plan."""
    plan = folder.plan()
    if plan.run_id != folder.run_id:
        yield "plan.json", f"has the digest {plan.run_id}, so it is not the plan of run {folder.run_id}"
    keys = {cell.key for cell in plan.cells}
    for attempt in folder.attempts():
        path = folder.journal_path(attempt)
        reading = read(path)
        missing = len(keys - reading.outcomes.keys())
        foreign = reading.outcomes.keys() - keys
        if reading.damage:
            yield path.name, f"damaged: {reading.damage}"
        elif reading.begin.get("run_id") != folder.run_id:
            yield path.name, "does not begin with this run's id"
        elif foreign:
            yield path.name, f"has a cell that is not in the plan: {min(foreign)}"
        elif missing:
            yield path.name, f"incomplete: {missing} of {len(keys)} cells have no outcome"
        elif reading.cut or not reading.sealed:
            yield path.name, "not sealed: the run was not ended, or the end of the file was changed"
        else:
            yield path.name, ""
