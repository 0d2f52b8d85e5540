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
from pydantic import BaseModel, ConfigDict, ValidationError

from boosters_eval.benchmark.results import BenchmarkError, BenchmarkResult, ResultCollection, RunEnvironment
from boosters_eval.core.errors import ConfigError, FileFormatError, RunError, suggest
from boosters_eval.core.files import MAX_RESULTS, read_text, write_atomically
from boosters_eval.core.home import home
from boosters_eval.engine.plan import SCHEMA_VERSION as PLAN_VERSION
from boosters_eval.engine.plan import Plan, PlannedConfig
from boosters_eval.runners.parameters import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.benchmark.results import Outcome

SCHEMA_VERSION = 1
_START = "0" * 32
_FIELDS = set(BenchmarkResult.model_fields)
_LINE = re.compile(
    rb'\{"prev":"([0-9a-f]{32})",(?:"with":"([0-9a-f]{16})",)?"(begin|common|result|error|end)":(.*)\}\n', re.DOTALL
)


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
    common: dict[str, _Common] = field(default_factory=dict, repr=False)


def read(path: Path) -> Reading:
    """Read and check the chain; a cut last line is left out, any other fault is damage."""
    reading = Reading()
    try:
        with path.open("rb") as file, _no_garbage():
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
    return reading


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """What is read here is no garbage, and looking for some among it takes as long as reading."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _take(line: bytes, reading: Reading) -> str | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return "is not a line of a journal"
    previous, common, kind, content = match.groups()
    if previous.decode() != reading.last:
        return "does not follow the line before it"
    try:
        reading.sealed = kind == b"end"
        if kind == b"begin":
            reading.begin = _object(content)
        elif kind == b"end":
            if _object(content) != {"outcomes": len(reading.outcomes)}:
                return "does not count the outcomes before it"
        elif kind == b"common":
            reading.common[_digest(content)[:16]] = _Common.model_validate_json(content)
        else:
            outcome: Outcome = (BenchmarkResult if kind == b"result" else BenchmarkError).model_validate_json(content)
            if common is not None and isinstance(outcome, BenchmarkResult):
                reading.common[common.decode()].give_to(outcome)
            key = outcome.key
            if key in reading.outcomes:
                del reading.outcomes[key]  # so that the last one is the last in order too
            reading.outcomes[key] = outcome
    except (ValidationError, ValueError, RecursionError, KeyError):
        return "has content that cannot be read"
    reading.last = _digest(line)
    return None


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 (told like any other content that cannot be read)
    return found


class _Common(BaseModel):
    """What the results of one config and library have in common: written once, and held once in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    native_params: dict[str, Any] | None = None
    marks: tuple[Mark, ...] = ()
    data_digest: str | None = None
    seeded: tuple[str, ...] = ()  # the native parameters that hold the model's own seed

    @classmethod
    def of(cls, result: BenchmarkResult) -> Self:
        params = result.native_params
        seeded = tuple(name for name, value in (params or {}).items() if value == result.model_seed)
        plain = None if params is None else {**params, **dict.fromkeys(seeded)}
        return cls(native_params=plain, marks=result.marks, data_digest=result.data_digest, seeded=seeded)

    def give_to(self, result: BenchmarkResult) -> None:
        params = self.native_params
        if params is not None and self.seeded:
            params = {**params, **dict.fromkeys(self.seeded, result.model_seed)}
        vars(result).update(native_params=params, marks=self.marks, data_digest=self.data_digest)
        object.__setattr__(result, "__pydantic_fields_set__", _FIELDS)


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
        if isinstance(outcome, BenchmarkError):
            self._write("error", outcome.model_dump_json(exclude_defaults=True))
            return
        common = _Common.of(outcome)
        text = common.model_dump_json()
        name = _digest(text.encode())[:16]
        if name not in self.found.common:
            self._write("common", text)
            self.found.common[name] = common
        alone = outcome.model_dump_json(exclude_defaults=True, exclude={"native_params", "marks", "data_digest"})
        self._write("result", alone, common=name)

    def begin(self, facts: dict[str, Any]) -> None:
        """The first line of an attempt."""
        self._write("begin", json.dumps({"schema_version": SCHEMA_VERSION, **facts}))

    def seal(self, count: int) -> None:
        """The run is complete: without this line the last outcome could be changed unseen."""
        self._write("end", json.dumps({"outcomes": count}))

    def _write(self, kind: str, content: str, *, common: str | None = None) -> None:
        shared = f'"with":"{common}",' if common else ""
        line = f'{{"prev":"{self._last}",{shared}"{kind}":{content}}}\n'.encode()
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
        head = re.match(r'\s*\{\s*"schema_version":\s*(\d+)', text)
        if head is None:
            raise FileFormatError(f"{source} is not a plan.")
        if int(head[1]) > PLAN_VERSION:
            raise FileFormatError(f"{source} has schema version {head[1]}: upgrade this program.")
        try:
            return Plan.model_validate_json(text)
        except ConfigError as error:
            raise FileFormatError(f"{source} is not a plan: {error}") from None

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
    with _no_garbage():
        reading = read(path)
        if reading.damage:
            raise RunError(f"{path} is damaged: {reading.damage}. See 'boosters-eval verify {folder.run_id}'.")
        return collect(folder.plan(), reading.outcomes, metadata=metadata_of(folder, attempt, reading))


def collect(plan: Plan, outcomes: dict[str, Outcome], metadata: dict[str, Any]) -> ResultCollection:
    """Outcomes in the plan's order, whatever the order in which they came."""
    ordered = [outcome for cell in plan.cells if (outcome := outcomes.get(cell.key)) is not None]
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
