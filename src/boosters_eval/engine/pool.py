"""The executor of this machine: lanes forked from common ancestors, and each cell in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count
from typing import IO, TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import available_cpus
from boosters_eval.core.modules import address_of
from boosters_eval.engine import memory, threads
from boosters_eval.engine.channel import Lines, send
from boosters_eval.engine.child import RESULT
from boosters_eval.engine.executor import Executor
from boosters_eval.engine.lane import START, TAIL
from boosters_eval.engine.outcome import Failure, Sighting
from boosters_eval.engine.processes import end_name, signal_name
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from boosters_eval.engine.cell import Cell, Lane
    from boosters_eval.engine.executor import Limits, Work
    from boosters_eval.engine.outcome import Outcome

START_METHODS = ("fork", "spawn")


def start_method() -> str:
    """Fork where it is safe; BOOSTERS_EVAL_START_METHOD overrides."""
    method = os.environ.get("BOOSTERS_EVAL_START_METHOD", "fork" if sys.platform.startswith("linux") else "spawn")
    if method not in START_METHODS:
        raise ConfigError(
            f"The BOOSTERS_EVAL_START_METHOD variable must be {' or '.join(START_METHODS)}. Got '{method}' instead."
        )
    return method


@dataclass
class _Ancestor:
    """The common ancestor of lanes, as the program sees it."""

    n_threads: int
    process: subprocess.Popen[bytes]
    channel: socket.socket
    words: IO[bytes]  # its stderr, for when it dies
    input: Lines = field(default_factory=Lines)


@dataclass
class _LaneProcess:
    """A lane as the program sees it."""

    lane: Lane
    number: int
    ancestor: _Ancestor
    channel: socket.socket
    words: IO[bytes]
    ready: bool = False
    failed: dict[str, Any] | None = None
    input: Lines = field(default_factory=Lines)
    flying: dict[int, tuple[Work, int]] = field(default_factory=dict)  # number: (work, slot)

    @property
    def importing(self) -> bool:
        """Whether it is not known yet if the lane can run cells."""
        return not self.ready and self.failed is None


class LocalPool(Executor):
    """Cells on this machine, `jobs` at a time. Its lanes stay for the next run, until it is closed."""

    def __init__(self, jobs: int = 1) -> None:
        super().__init__(jobs)
        self._method = start_method()
        self._ancestors: dict[int, _Ancestor] = {}  # by number of threads
        self._lanes: dict[Lane, _LaneProcess] = {}
        self._shared: dict[Lane, list[str]] = {}  # the modules that a lane has in common with another
        self._selector = selectors.DefaultSelector()
        self._numbers = count(1)
        self._free = list(range(jobs))

    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        """Outcomes in the order in which they come."""
        waiting = deque(works)
        lanes = dict.fromkeys(work.cell.lane for work in waiting)
        self._shared = _shared_imports(lanes) if self._method == "fork" else {}
        # An ancestor never forgets what it imported: lanes that need less of it come first.
        ahead = deque(sorted(lanes, key=lambda lane: len(self._shared.get(lane, ()))))
        self._forget_failed()
        try:
            while waiting or self._flying():
                self._load_ahead(ahead)
                while (ended := self._dispatch(waiting, ahead, started)) is not None:
                    if not isinstance(ended, bool):
                        yield ended
                yield from self._wait(started)
        finally:
            if self._flying():  # abandoned, or interrupted
                self.close()

    def close(self) -> None:
        """Lanes end with their channel, and their cells with them."""
        for process in self._lanes.values():
            process.channel.close()
            process.words.close()
        for ancestor in self._ancestors.values():
            ancestor.channel.close()
        for ancestor in self._ancestors.values():
            _end(ancestor)
        self._lanes.clear()
        self._ancestors.clear()
        self._selector.close()
        self._selector = selectors.DefaultSelector()
        self._free = list(range(self.jobs))

    # Lanes and their ancestors

    def _forget_failed(self) -> None:
        """What could not be imported may be importable by now."""
        for process in list(self._lanes.values()):
            if process.failed is not None:
                self._remove(process)

    def _ancestor(self, n_threads: int) -> _Ancestor:
        """Thread limits are read when libraries are loaded, so each number of threads has an ancestor of its own."""
        known = self._ancestors.get(n_threads)
        if known is None:
            known = self._ancestors[n_threads] = self._start_ancestor(n_threads)
        return known

    def _start_ancestor(self, n_threads: int) -> _Ancestor:
        ours, theirs = socket.socketpair()
        words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the ancestor)
        setup = {
            "path": sys.path,
            "parent": os.getpid(),
            "cpus": available_cpus(),
            "channel": theirs.fileno(),
        }
        process = subprocess.Popen(  # noqa: S603 (ourselves)
            [sys.executable, "-c", START, json.dumps(setup)],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            env={**os.environ, **threads.environment(n_threads)},
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for us alone: we end them
        )
        theirs.close()
        ancestor = _Ancestor(n_threads, process, ours, words)
        self._selector.register(ours, selectors.EVENT_READ, ancestor)
        return ancestor

    def _load_ahead(self, ahead: deque[Lane]) -> None:
        """Start the lanes that will be needed; an import takes the place of a cell, or it would slow one down."""
        while ahead and self._importing() + self._flying() < self.jobs:
            self._lane(ahead.popleft())

    def _lane(self, lane: Lane) -> _LaneProcess:
        known = self._lanes.get(lane)
        if known is None:
            known = self._lanes[lane] = self._start_lane(lane)
        return known

    def _start_lane(self, lane: Lane) -> _LaneProcess:
        workload = WORKLOADS[lane.workload]
        address = workload.address(lane.target)
        ancestor = self._ancestor(lane.n_threads)
        ours, theirs = socket.socketpair()
        words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the lane)
        process = _LaneProcess(lane, next(self._numbers), ancestor, ours, words)
        setup = {
            "number": process.number,
            "path": sys.path,
            "cpus": available_cpus(),
            "start_method": self._method,
            "imports": self._shared.get(lane, ()),
            "workload": address_of(workload, "workload"),
            "lane": lane,
            "address": address,
        }
        with theirs, contextlib.suppress(BrokenPipeError):  # a dead ancestor is noticed in the next wait
            send(ancestor.channel, setup, [theirs.fileno(), words.fileno()])
        self._selector.register(ours, selectors.EVENT_READ, process)
        return process

    def _flying(self) -> int:
        return sum(len(process.flying) for process in self._lanes.values())

    def _importing(self) -> int:
        return sum(process.importing for process in self._lanes.values())

    # Cells

    def _dispatch(
        self, waiting: deque[Work], ahead: deque[Lane], started: Callable[[Cell, str], None]
    ) -> Failure | bool | None:
        """Start the first cell whose lane is ready: True. None: all must wait. Or the failure of a dead import."""
        busy = self._importing() + self._flying()
        if busy >= self.jobs or self._flying_alone():
            return None
        for index, work in enumerate(waiting):
            if work.cell.spec.alone and (busy or ahead):
                return None
            if work.cell.lane not in self._lanes and self._importing() + self._flying() >= self.jobs:
                continue
            process = self._lane(work.cell.lane)
            if process.importing:
                continue
            del waiting[index]
            if process.failed is not None:
                return _import_failure(work.cell, process.failed)
            self._send(process, work)
            started(work.cell, "start")
            return True
        return None

    def _flying_alone(self) -> bool:
        return any(work.cell.spec.alone for process in self._lanes.values() for work, _ in process.flying.values())

    def _send(self, process: _LaneProcess, work: Work) -> None:
        cell = work.cell
        slot = self._free.pop(0)
        slots = threads.cpu_slots(1 if cell.spec.alone else self.jobs, cell.spec.n_threads)
        number = next(self._numbers)
        request = {
            "number": number,
            "spec": cell.spec.model_dump(mode="json"),
            "target": cell.target,
            "repeat": cell.repeat,
            "inputs": dict(work.inputs),
            "cpus": slots[0 if cell.spec.alone else slot],
            "timeout": work.limits.timeout_s,
            "memory_limit": work.limits.memory_mb,
        }
        process.flying[number] = (work, slot)
        with contextlib.suppress(ConnectionError):  # it died; that is noticed in the next wait
            process.channel.sendall(json.dumps(request).encode() + b"\n")

    def _wait(self, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        if not self._flying() and not self._importing():
            return
        for key, _ in self._selector.select():
            source: _Ancestor | _LaneProcess = key.data
            if isinstance(source, _LaneProcess):
                yield from self._hear_lane(source, started)
            else:
                yield from self._hear_ancestor(source, started)

    def _hear_lane(self, process: _LaneProcess, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        data = _received(process.channel)
        if data is None:
            return
        if not data:  # it is ending; its ancestor tells how
            self._selector.unregister(process.channel)
            process.channel.close()
            return
        for line in process.input.feed(data):
            event = json.loads(line)
            if "ready" in event:
                process.ready = True
            elif "failed" in event:
                process.failed = event
            elif "exit" not in event:
                started(process.flying[event["number"]][0].cell, event["phase"])
            else:
                work, slot = process.flying.pop(event["number"])
                self._release(slot)
                yield self._ended(work, event)

    def _hear_ancestor(self, ancestor: _Ancestor, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        data = _received(ancestor.channel)
        for line in ancestor.input.feed(data or b""):
            event = json.loads(line)
            process = next((p for p in self._lanes.values() if p.number == event["lane"]), None)
            if process is not None:
                while process.channel.fileno() >= 0:  # what it said before it ended counts
                    yield from self._hear_lane(process, started)
                yield from self._lane_died(process, end_name(event["exit"]))
        if data == b"":
            yield from self._ancestor_died(ancestor)

    def _ancestor_died(self, ancestor: _Ancestor) -> Iterator[Failure]:
        self._selector.unregister(ancestor.channel)
        ancestor.channel.close()
        del self._ancestors[ancestor.n_threads]
        end = end_name(ancestor.process.wait())
        for process in [process for process in self._lanes.values() if process.ancestor is ancestor]:
            yield from self._lane_died(process, f"{end}; {_last_words(ancestor.words)}".rstrip("; "))
        ancestor.words.close()

    def _lane_died(self, process: _LaneProcess, end: str) -> Iterator[Failure]:
        """Of a lane that ended by itself, what was under way failed; the next cell gets a new lane."""
        words = _last_words(process.words)
        if process.importing:
            message = f"the import ended with {end}"
            process.failed = {"failed": "WorkerDied", "message": message, "traceback": words}
        for work, slot in process.flying.values():
            self._release(slot)
            message = f"the worker ended with {end}"
            yield Failure.of(work.cell, error_type="WorkerDied", error_message=message, stderr_tail=words)
        process.flying.clear()
        if process.failed is None:
            self._remove(process)

    def _remove(self, process: _LaneProcess) -> None:
        if process.channel.fileno() >= 0:
            self._selector.unregister(process.channel)
            process.channel.close()
        process.words.close()
        del self._lanes[process.lane]

    def _release(self, slot: int) -> None:
        self._free.append(slot)
        self._free.sort()

    def _ended(self, work: Work, event: dict[str, Any]) -> Outcome | Failure:
        cell, limits = work.cell, work.limits
        if event["answer"] is None:
            return _death(cell, event, limits)
        kind, _, text = event["answer"].partition(" ")
        if kind == RESULT:
            outcome = WORKLOADS[cell.spec.workload].outcome_type.model_validate_json(text)
            return outcome.with_sighting(Sighting(event["threads"], self._method))
        failure = Failure.model_validate_json(text).model_copy(update={"stderr_tail": event["stderr"]})
        if limits.memory_mb is None or not memory.looks_exhausted(failure.error_type, failure.error_message):
            return failure
        sentence = _limit_sentence(limits, failure.error_message)
        return failure.model_copy(update={"error_type": "MemoryLimit", "error_message": sentence})


def _shared_imports(lanes: Iterable[Lane]) -> dict[Lane, list[str]]:
    """Of the modules that each lane imports, those that another lane imports too."""
    wanted = {lane: WORKLOADS[lane.workload].imports(lane.target) for lane in lanes}
    counted = Counter((lane.n_threads, name) for lane, names in wanted.items() for name in set(names))
    return {lane: [name for name in names if counted[lane.n_threads, name] > 1] for lane, names in wanted.items()}


def _received(channel: socket.socket) -> bytes | None:
    """What has arrived; empty when the other side is gone, None when nothing is there or we closed it ourselves."""
    if channel.fileno() < 0:
        return None
    try:
        return channel.recv(1 << 20)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _import_failure(cell: Cell, failed: dict[str, Any]) -> Failure:
    return Failure.of(
        cell,
        error_type=failed["failed"],
        error_message=f"{cell.target} could not be imported: {failed['message']}",
        traceback=failed.get("traceback"),
    )


def _death(cell: Cell, event: dict[str, Any], limits: Limits) -> Failure:
    """A process that ended without an answer: why, as far as the system tells."""
    code: int = event["exit"]
    name = signal_name(-code) if code < 0 else None
    if event["ended"] == "timeout":
        kind, message = "Timeout", f"not finished after {limits.timeout_s:g} s; the process was killed"
    elif limits.memory_mb is not None and memory.looks_exhausted(event["stderr"]):
        kind, message = "MemoryLimit", _limit_sentence(limits, f"the process ended with {end_name(code)}")
    elif name == "SIGKILL":
        kind, message = "Killed", "killed by SIGKILL: probably the system ran out of memory"
    elif name is not None:
        under = f", under a memory limit of {limits.memory_mb:g} MB" if limits.memory_mb is not None else ""
        kind, message = "Crash", f"the process died of {name}{under}"
    else:
        kind, message = "Exit", f"the process ended by itself with exit status {code}"
    return Failure.of(
        cell,
        error_type=kind,
        error_message=message,
        phase=event["phase"],
        signal=name,
        stderr_tail=event["stderr"],
    )


def _limit_sentence(limits: Limits, detail: str) -> str:
    return f"needed more than the {limits.memory_mb:g} MB that a cell may allocate ({detail})"


def _last_words(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read()[-TAIL:].decode(errors="replace")


def _end(ancestor: _Ancestor) -> None:
    """It ends its lanes first, then itself."""
    try:
        ancestor.process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        ancestor.process.kill()
        ancestor.process.wait()
    ancestor.words.close()
