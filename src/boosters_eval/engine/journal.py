"""The record of a run: append-only, each line chained to the previous one, on disk before the next cell starts."""

from __future__ import annotations

import contextlib
import gc
import json
import os
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from boosters_eval.core.errors import ConfigError, RunError, UnknownNameError
from boosters_eval.core.files import FORMAT, MAX_TEXT, check_regular, describe_format, refuse_wide
from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.terms import given
from boosters_eval.core.text import escape_json
from boosters_eval.engine.cell import Common, Failure
from boosters_eval.engine.plain import LINE, START, digest_line
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from filelock import FileLock

    from boosters_eval.engine.cell import Outcome

_AHEAD = 2**16  # bytes that are read at a time: a long journal has a line per kilobyte


@dataclass
class Reading:
    """The content of a journal file, and its faults."""

    begin: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, Outcome | Failure] = field(default_factory=dict)  # the latest outcome of each cell
    machines: dict[str, MachineInfo] = field(default_factory=dict)  # those that outcomes may name, by digest
    last: str = START  # the digest that the next line must contain
    good_bytes: int = 0
    cut: bool = False  # the last line is incomplete
    sealed: bool = False  # the last line states that the run is complete, and the number of its outcomes
    damage: str | None = None
    common: dict[str, Common] = field(default_factory=dict, repr=False)
    parsers: dict[bytes | None, Callable[[bytes], Outcome]] = field(default_factory=dict, repr=False)

    def keep(self, outcome: Outcome | Failure) -> None:
        """The last outcome of a cell counts, and is the last in order too."""
        if outcome.machine is not None and outcome.machine not in self.machines:
            raise ConfigError(f"no line before it tells of the machine {outcome.machine}")
        key = outcome.key
        if key in self.outcomes:
            del self.outcomes[key]
        self.outcomes[key] = outcome

    def parse(self, workload: bytes | None, content: bytes) -> Outcome:
        """An outcome of a workload, whose type is looked up once per journal."""
        found = self.parsers.get(workload)
        if found is None:
            found = self.parsers[workload] = find_outcome_type(workload).__pydantic_validator__.validate_json
        return found(content)


def find_outcome_type(workload: bytes | None) -> type[Outcome]:
    if workload is None:
        raise ConfigError("it names no workload")
    return WORKLOADS[workload.decode()].outcome_type


def read_journal(path: Path) -> Reading:
    """Read a journal and check its chain. An incomplete last line is ignored; any other fault is damage."""
    reading = Reading()
    try:
        check_regular(path)
        with path.open("rb", buffering=_AHEAD) as file, pause_collection():
            for number, line in enumerate(iter(partial(file.readline, MAX_TEXT), b""), 1):
                if not line.endswith(b"\n"):
                    reading.cut = len(line) < MAX_TEXT
                    reading.damage = None if reading.cut else f"line {number} is longer than any line of a journal"
                    break
                try:
                    fault = _take(line, reading)
                except UnknownNameError:  # a plug-in that is not installed, unless the name itself was changed
                    if _is_followed(line, file.readline(MAX_TEXT)):
                        raise
                    fault = "is not the one that the next line follows"
                if fault:
                    reading.damage = f"line {number} {fault}"
                    break
                reading.good_bytes += len(line)
    except FileNotFoundError:
        reading.damage = "the file is missing"
    except OSError as error:
        raise RunError(f"Cannot read {path}: {error.strerror}.") from None
    return reading


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Pause the garbage collector: nothing read here is garbage, and collecting would double the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _is_followed(line: bytes, following: bytes) -> bool:
    """Whether the chain holds from a line to the next one, or ends with it."""
    match = LINE.fullmatch(following)
    return not following or (match is not None and match[1].decode() == digest_line(line))


def _take(line: bytes, reading: Reading) -> str | None:
    match = LINE.fullmatch(line)
    if match is None:
        return "is not a line of a journal"
    previous, workload, common, kind, content = match.groups()
    if previous.decode() != reading.last:
        return "does not follow the line before it"
    try:
        refuse_wide(content, "the line")
        reading.sealed = False
        if kind == b"result":
            outcome = reading.parse(workload, content)
            if common is not None:
                reading.common[common.decode()].give_to(outcome)
            reading.keep(outcome)
        else:
            fault = _take_other(kind, workload, content, reading)
            if fault:
                return fault
    except UnknownNameError:  # it may be nobody's fault
        raise
    except ConfigError as error:
        return f"cannot be read: {str(error).rstrip('.')}"
    except (ValidationError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "has content that cannot be read"
    reading.last = digest_line(line)
    return None


def _take_other(kind: bytes, workload: bytes | None, content: bytes, reading: Reading) -> str | None:
    """The lines that are few: what is not a result."""
    if kind == b"begin":
        reading.begin = _object(content)
        version = reading.begin.get("schema_version")
        if version != FORMAT:
            return f"begins a journal {describe_format(version)}"
        told = reading.begin.pop("machines", {}).items()
        reading.machines = {digest: MachineInfo.of_record({**machine, "digest": digest}) for digest, machine in told}
    elif kind == b"end":
        reading.sealed = True
        if _object(content) != {"outcomes": len(reading.outcomes)}:
            return "does not count the outcomes before it"
    elif kind == b"common":
        common_type = find_outcome_type(workload).common_type or Common
        reading.common[digest_line(content)[:16]] = common_type.model_validate_json(content)
    else:
        reading.keep(Failure.model_validate_json(content))
    return None


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 (handled like any other content that cannot be read)
    return found


class Journal:
    """One attempt at a run, open for appending by a single process."""

    def __init__(self, path: Path, file: IO[bytes], lock: FileLock, reading: Reading) -> None:
        self.path = path
        self.found = reading
        self._file = file
        self._lock = lock

    def append(self, outcome: Outcome | Failure, workload: str) -> None:
        """Write the outcome of one cell, and wait until it is on disk."""
        if isinstance(outcome, Failure):
            self._write("failure", outcome.model_dump_json(exclude_defaults=True), workload=workload)
            return
        if outcome.common_type is None:
            self._write("result", outcome.model_dump_json(exclude_defaults=True), workload=workload)
            return
        common = outcome.common_type.of(outcome)
        text = escape_json(common.model_dump_json())
        name = digest_line(text.encode())[:16]
        if name not in self.found.common:
            self._write("common", text, workload=workload)
            self.found.common[name] = common
        alone = outcome.model_dump_json(exclude_defaults=True, exclude=set(common.taken()))
        self._write("result", alone, workload=workload, common=name)

    def begin(self, facts: dict[str, Any]) -> None:
        self.found.begin = {"schema_version": FORMAT, **facts}
        self._write("begin", json.dumps(self.found.begin))

    def introduce(self, machines: Mapping[str, MachineInfo]) -> None:
        """Tell of machines before any outcome names them: the first line once more, with all that are known so far."""
        known = {**self.found.machines, **machines}
        if known == self.found.machines:
            return
        told = {digest: machine.recorded() for digest, machine in known.items()}
        self._write("begin", json.dumps({**self.found.begin, "machines": told}))
        self.found.machines = known

    def seal(self, count: int) -> None:
        """Mark the run as complete. Without this line a change to the last outcome would go unnoticed."""
        self._write("end", json.dumps({"outcomes": count}))

    def _write(self, kind: str, content: str, *, workload: str | None = None, common: str | None = None) -> None:
        of = f'"of":"{workload}",' if workload else ""
        shared = f'"with":"{common}",' if common else ""
        line = f'{{"prev":"{self.found.last}",{of}{shared}"{kind}":{escape_json(content)}}}\n'.encode()
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunError(
                f"Cannot write {self.path}: {error.strerror}. Finished cells are kept; free space and use"
                f" {given('resume')}."
            ) from None
        self._check_there()
        self.found.last = digest_line(line)

    def _check_there(self) -> None:
        """A file that was deleted can be written to as if nothing had happened, and is gone in the end."""
        try:
            there = os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except OSError:
            there = False
        if not there:
            raise RunError(f"{self.path} was deleted or replaced during the run, so its outcomes are lost.")

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a full disk has already been reported
            self._file.close()
        self._lock.release()
