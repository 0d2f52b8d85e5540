"""The parent's side: the local pool of workers, one implementation of the executor seam."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Protocol

from boosters_eval.benchmark.results import BenchmarkResult
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import available_cpus
from boosters_eval.core.modules import file_of
from boosters_eval.engine import memory, threads
from boosters_eval.engine.cell import error_outcome
from boosters_eval.engine.worker import START, TAIL
from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from boosters_eval.benchmark.results import Outcome
    from boosters_eval.benchmark.usermetrics import UserMetric
    from boosters_eval.engine.plan import Cell
    from boosters_eval.runners.base import Runner

START_METHODS = ("fork", "spawn")


@dataclass(frozen=True)
class Work:
    """A cell, and where its data lies on this machine."""

    cell: Cell
    data: str
    split: str | None = None


@dataclass(frozen=True)
class Limits:
    """What a cell may use."""

    timeout_s: float | None = None
    memory_mb: float | None = None


class Executor(Protocol):
    """Runs work and yields outcomes as they come; the next cell starts only when the caller asks for more."""

    def run(self, works: Iterable[Work], started: Callable[[Cell, str], None]) -> Iterator[Outcome]:
        """`started` is told each cell and phase as it begins."""
        ...

    def close(self) -> None:
        """End everything that is still running."""
        ...


def start_method() -> str:
    """Fork where it is safe; BOOSTERS_EVAL_START_METHOD overrides."""
    method = os.environ.get("BOOSTERS_EVAL_START_METHOD", "fork" if sys.platform.startswith("linux") else "spawn")
    if method not in START_METHODS:
        raise ConfigError(
            f"The BOOSTERS_EVAL_START_METHOD variable must be {' or '.join(START_METHODS)}. Got '{method}' instead."
        )
    return method


@dataclass
class _Worker:
    """A zygote as its parent sees it."""

    library: str
    n_threads: int
    process: subprocess.Popen[bytes]
    words: IO[bytes]  # its stderr, for when it dies
    ready: bool = False
    failed: dict[str, Any] | None = None
    rest: bytes = b""
    flying: dict[int, tuple[Work, int]] = field(default_factory=dict)  # number: (work, slot)


class LocalPool:
    """Cells on this machine, `jobs` at a time, each in a process of its own."""

    def __init__(self, jobs: int = 1, limits: Limits | None = None, metrics: Iterable[UserMetric] = ()) -> None:
        self.jobs = jobs
        self._metrics = [metric.model_dump() for metric in metrics]
        self._limits = limits or Limits()
        self._method = start_method()
        self._workers: dict[tuple[str, int], _Worker] = {}
        self._selector = selectors.DefaultSelector()
        self._number = 0
        self._free = list(range(jobs))

    def run(self, works: Iterable[Work], started: Callable[[Cell, str], None]) -> Iterator[Outcome]:
        """Outcomes in the order in which they come."""
        waiting = deque(works)
        ahead = deque(dict.fromkeys(_kind(work) for work in waiting))
        timed = any(work.cell.config.timing.timed for work in waiting)
        try:
            while waiting or self._flying():
                self._import_ahead(ahead)
                while waiting and self._importing() + self._flying() < self.jobs and not (timed and ahead):
                    outcome = self._dispatch(waiting, started)
                    if outcome is None:
                        break
                    if not isinstance(outcome, bool):
                        yield outcome
                yield from self._wait(started)
        finally:
            self.close()

    def close(self) -> None:
        """Workers end with their stdin, and their children with them."""
        for worker in self._workers.values():
            _dismiss(worker)
        for worker in self._workers.values():
            _end(worker)
        self._workers.clear()
        self._selector.close()
        self._selector = selectors.DefaultSelector()
        self._free = list(range(self.jobs))

    def _flying(self) -> int:
        return sum(len(worker.flying) for worker in self._workers.values())

    def _importing(self) -> int:
        return sum(not worker.ready and worker.failed is None for worker in self._workers.values())

    def _import_ahead(self, ahead: deque[tuple[str, int]]) -> None:
        """Start the workers that will be needed; an import takes the place of a cell, or it would slow one down."""
        while ahead and self._importing() + self._flying() < self.jobs:
            self._worker(*ahead.popleft())

    def _worker(self, library: str, n_threads: int) -> _Worker:
        known = self._workers.get((library, n_threads))
        if known is None:
            known = self._workers[library, n_threads] = self._start(library, n_threads)
            assert known.process.stdout is not None  # noqa: S101 (it was opened as a pipe)
            self._selector.register(known.process.stdout, selectors.EVENT_READ, known)
        return known

    def _start(self, library: str, n_threads: int) -> _Worker:
        runner = RUNNERS[library]
        setup = {
            "library": library,
            "runner": f"{runner.__module__}:{runner.__qualname__}",
            "file": _script_of(runner),
            "path": sys.path,
            "parent": os.getpid(),
            "cpus": available_cpus(),
            "start_method": self._method,
            "metrics": self._metrics,
        }
        words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        process = subprocess.Popen(  # noqa: S603 (ourselves)
            [sys.executable, "-c", START, json.dumps(setup)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env={**os.environ, **threads.environment(n_threads)},
            start_new_session=True,  # Ctrl-C is for us alone: we end them
        )
        return _Worker(library, n_threads, process, words)

    def _dispatch(self, waiting: deque[Work], started: Callable[[Cell, str], None]) -> Outcome | bool | None:
        """Start the first cell whose worker is ready: True. None: all must wait. Or the error of a dead import."""
        for index, work in enumerate(waiting):
            worker = self._worker(*_kind(work)) if self._known_or_room(work) else None
            if worker is None or not (worker.ready or worker.failed):
                continue
            del waiting[index]
            if worker.failed is not None:
                return _import_error(work.cell, worker.failed)
            self._send(worker, work)
            started(work.cell, "start")
            return True
        return None

    def _known_or_room(self, work: Work) -> bool:
        return _kind(work) in self._workers or self._importing() < self.jobs

    def _send(self, worker: _Worker, work: Work) -> None:
        slot = self._free.pop(0)
        self._number += 1
        cell = work.cell
        request = {
            "number": self._number,
            "config": cell.config.model_dump(mode="json"),
            "library": cell.library,
            "seed": cell.seed,
            "fold": cell.fold,
            "data": work.data,
            "split": work.split,
            "cpus": threads.cpu_slots(self.jobs, cell.config.n_threads)[slot],
            "timeout": self._limits.timeout_s,
            "memory_limit": self._limits.memory_mb,
        }
        worker.flying[self._number] = (work, slot)
        assert worker.process.stdin is not None  # noqa: S101 (it was opened as a pipe)
        try:
            worker.process.stdin.write(json.dumps(request).encode() + b"\n")
            worker.process.stdin.flush()
        except BrokenPipeError:
            return  # it died; its closed stdout tells in the next wait

    def _wait(self, started: Callable[[Cell, str], None]) -> Iterator[Outcome]:
        if not self._selector.get_map():
            return
        for key, _ in self._selector.select():
            worker: _Worker = key.data
            data = os.read(key.fd, 1 << 20)
            if not data:
                yield from self._bury(worker)
                continue
            *lines, worker.rest = (worker.rest + data).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if "ready" in event:
                    worker.ready = True
                elif "failed" in event:
                    worker.failed = event
                elif "exit" not in event:
                    started(worker.flying[event["number"]][0].cell, event["phase"])
                else:
                    work, slot = worker.flying.pop(event["number"])
                    self._free.append(slot)
                    self._free.sort()
                    yield self._outcome(work.cell, event)

    def _bury(self, worker: _Worker) -> Iterator[Outcome]:
        """A worker that died by itself: what it had under way failed, the next cell gets a new one."""
        assert worker.process.stdout is not None  # noqa: S101 (it was opened as a pipe)
        self._selector.unregister(worker.process.stdout)
        code = worker.process.wait()
        last_words = _last_words(worker)
        if worker.failed is None and not worker.ready:
            message = f"the import ended with {_end_name(code)}"
            worker.failed = {"failed": "WorkerDied", "message": message, "traceback": last_words}
        elif worker.failed is None:
            del self._workers[worker.library, worker.n_threads]
            _end(worker)
        for work, slot in worker.flying.values():
            self._free.append(slot)
            message = f"the worker ended with {_end_name(code)}"
            yield error_outcome(
                work.cell, error_type="WorkerDied", error_message=message, phase="start", stderr_tail=last_words
            )
        worker.flying.clear()

    def _outcome(self, cell: Cell, event: dict[str, Any]) -> Outcome:
        if event["outcome"] is None:
            return _death(cell, event, self._limits)
        raw = json.loads(event["outcome"])
        if "metrics" in raw:
            return _finished(BenchmarkResult.model_validate(raw), event["threads"], self._method)
        if self._limits.memory_mb is not None and memory.looks_exhausted(raw["error_type"], raw["error_message"]):
            raw |= {
                "error_type": "MemoryLimit",
                "error_message": _limit_sentence(self._limits, raw["error_message"]),
            }
        return error_outcome(
            cell,
            **{name: raw[name] for name in ("phase", "error_type", "error_message", "traceback")},
            stderr_tail=event["stderr"],
        )


def _script_of(runner: type[Runner]) -> str | None:
    file = file_of(runner.__module__)
    if "<locals>" in runner.__qualname__:
        raise ConfigError(f"The runner '{runner.name}' is defined inside a function: put it at the top of a module.")
    if file == "":
        raise ConfigError(f"The runner '{runner.name}' is defined in a notebook or prompt: put it into a module.")
    return file


def _kind(work: Work) -> tuple[str, int]:
    return work.cell.library, work.cell.config.n_threads


def _finished(result: BenchmarkResult, seen: int | None, method: str) -> BenchmarkResult:
    warnings = result.warnings
    if seen is not None and seen > result.n_threads:
        warnings += (f"{result.library} ran {seen} threads where {result.n_threads} were given",)
    return result.model_copy(update={"threads_observed": seen, "start_method": method, "warnings": warnings})


def _import_error(cell: Cell, failed: dict[str, Any]) -> Outcome:
    return error_outcome(
        cell,
        error_type=failed["failed"],
        error_message=f"{cell.library} could not be imported: {failed['message']}",
        traceback=failed.get("traceback"),
        phase="start",
    )


def _death(cell: Cell, event: dict[str, Any], limits: Limits) -> Outcome:
    """A process that ended without an outcome: why, as far as the system tells."""
    code: int = event["exit"]
    name = _signal_name(-code) if code < 0 else None
    if event["ended"] == "timeout":
        kind, message = "Timeout", f"not finished after {limits.timeout_s:g} s; the process was killed"
    elif limits.memory_mb is not None and memory.looks_exhausted(event["stderr"]):
        kind, message = "MemoryLimit", _limit_sentence(limits, f"the process ended with {_end_name(code)}")
    elif name == "SIGKILL":
        kind, message = "Killed", "killed by SIGKILL: probably the system ran out of memory"
    elif name is not None:
        under = f", under a memory limit of {limits.memory_mb:g} MB" if limits.memory_mb is not None else ""
        kind, message = "Crash", f"the process died of {name}{under}"
    else:
        kind, message = "Exit", f"the process ended by itself with exit status {code}"
    return error_outcome(
        cell,
        error_type=kind,
        error_message=message,
        phase=event["phase"],
        signal=name,
        stderr_tail=event["stderr"],
    )


def _limit_sentence(limits: Limits, detail: str) -> str:
    return f"needed more than the {limits.memory_mb:g} MB that a cell may allocate ({detail})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


def _end_name(code: int) -> str:
    return _signal_name(-code) if code < 0 else f"exit status {code}"


def _last_words(worker: _Worker) -> str:
    worker.words.seek(0)
    return worker.words.read()[-TAIL:].decode(errors="replace")


def _dismiss(worker: _Worker) -> None:
    """Its closed stdin ends a worker that serves; one that still imports would look at it much too late."""
    for stream in (worker.process.stdin, worker.process.stdout, worker.words):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    if not worker.ready:
        worker.process.kill()


def _end(worker: _Worker) -> None:
    _dismiss(worker)
    process = worker.process
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
