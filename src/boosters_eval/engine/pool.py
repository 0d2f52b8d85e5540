"""The executor for this machine: lanes forked from common ancestors, and one process per cell."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.core.machine import available_cpus
from boosters_eval.core.modules import address_of
from boosters_eval.engine import threads
from boosters_eval.engine.channel import LaneEvent, Lines, send
from boosters_eval.engine.child import RESULT
from boosters_eval.engine.executor import Executor
from boosters_eval.engine.failures import death, import_failure, within_limits
from boosters_eval.engine.importpath import ImportPath
from boosters_eval.engine.lane import stamp_of, tail_of
from boosters_eval.engine.outcome import Failure, Sighting
from boosters_eval.engine.processes import IN_WORKER, end_name, kill_marked, worker_command
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from boosters_eval.engine.cell import Build, Cell, Lane
    from boosters_eval.engine.executor import Work
    from boosters_eval.engine.outcome import Outcome

START_METHODS = ("fork", "spawn")
_SHORTEST_IMPORT = 60.0  # seconds that an import may always take, however short the timeout of a cell is


def start_method() -> str:
    """Fork where it is safe; BOOSTERS_EVAL_START_METHOD overrides this."""
    method = os.environ.get("BOOSTERS_EVAL_START_METHOD", "fork" if sys.platform.startswith("linux") else "spawn")
    if method not in START_METHODS:
        raise ConfigError(
            f"The BOOSTERS_EVAL_START_METHOD variable must be {' or '.join(START_METHODS)}. Got '{method}' instead."
        )
    return method


class Identity(NamedTuple):
    """What a lane has loaded: a lane of another build, or of another class of the same name, must not be used."""

    build: Build
    address: dict[str, Any]
    workload: dict[str, Any]  # the address of the workload itself
    path: ImportPath


class Origin(NamedTuple):
    """What lanes of one ancestor have in common.

    Libraries read thread limits when they are loaded, and one build of a library must not meet another.
    """

    n_threads: int
    path: ImportPath


@dataclass
class _AncestorProcess:
    """The program's handle on a common ancestor of lanes."""

    origin: Origin
    mark: str  # in the environment of all its descendants
    process: subprocess.Popen[bytes]
    channel: socket.socket
    stderr: IO[bytes]  # its output, reported if it dies
    input: Lines = field(default_factory=Lines)


@dataclass
class _LaneProcess:
    """The program's handle on a lane."""

    lane: Lane
    identity: Identity
    number: int
    ancestor: _AncestorProcess
    channel: socket.socket
    stderr: IO[bytes]
    deadline: float | None = None  # of its import
    began: bool = False  # the lane exists; before that, its ancestor imports what it shares with others
    ready: bool = False
    failed: dict[str, Any] | None = None
    input: Lines = field(default_factory=Lines)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)  # what it has loaded: when changed, how large
    running: dict[int, tuple[Work, int]] = field(default_factory=dict)  # number: (work, slot)

    @property
    def importing(self) -> bool:
        """Whether the lane is still importing, so that it is not known yet if it can run cells."""
        return not self.ready and self.failed is None


class LocalPool(Executor):
    """Runs cells on this machine, `jobs` at a time. Its lanes are kept for the next run until it is closed.

    One that is `kept` for longer starts its lanes anew if a file that they have loaded changes.
    """

    def __init__(self, jobs: int = 1, *, kept: bool = False) -> None:
        super().__init__(jobs)
        self._kept = kept
        self._method = start_method()
        self._ancestors: dict[Origin, _AncestorProcess] = {}
        self._lanes: dict[Lane, _LaneProcess] = {}
        self._identities: dict[Lane, Identity] = {}
        self._shared: dict[Lane, list[str]] = {}  # the modules that a lane shares with another
        self._selector = selectors.DefaultSelector()
        self._numbers = count(1)
        self._free = list(range(jobs))
        self._busy = False
        self._closed = False  # during the current run, by whoever does not run it
        self._timeout: float | None = None  # of the current run's cells

    def facts(self) -> dict[str, Any]:
        """Which executor this is, and how it starts processes."""
        return {**super().facts(), "start_method": self._method}

    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        """Yield outcomes in the order in which they arrive."""
        if self._busy:
            raise RunError("This pool is running something already: use another pool, or wait.")
        waiting = deque(works)
        lanes = _identities(waiting)
        self._forget_outdated(lanes)
        self._busy = True
        try:
            for outcome in self._run(waiting, lanes, started):
                self._refuse_closed()  # what ended just then may have failed for no other reason
                yield outcome
        finally:
            self._busy = False
            if self._running() or self._closed:  # the iterator was closed, or the run interrupted
                self.close()

    def _run(
        self, waiting: deque[Work], lanes: dict[Lane, Identity], started: Callable[[Cell, str], None]
    ) -> Iterator[Outcome | Failure]:
        self._timeout = max((work.limits.timeout_s for work in waiting if work.limits.timeout_s), default=None)
        self._shared = _shared_imports(lanes) if self._method == "fork" else {}
        # An ancestor cannot unload a module, so lanes that share fewer modules are forked first.
        ahead = deque(sorted(lanes, key=lambda lane: len(self._shared.get(lane, ()))))
        while waiting or self._running():
            self._refuse_closed()
            self._load_ahead(ahead)
            while (ended := self._dispatch(waiting, ahead, started)) is not None:
                if not isinstance(ended, bool):
                    yield ended
            yield from self._wait(started)

    def close(self) -> None:
        """Close the channels of all lanes, which stops the lanes and their cells.

        A run that is going on, in another thread say, ends with an error: its processes are killed, which wakes it,
        and it closes the rest itself.
        """
        if self._busy:
            self._closed = True
            for ancestor in list(self._ancestors.values()):
                ancestor.process.kill()
                kill_marked(ancestor.mark)
            return
        self._closed = False
        for process in self._lanes.values():
            process.channel.close()
            process.stderr.close()
        for ancestor in self._ancestors.values():
            ancestor.channel.close()
        for ancestor in self._ancestors.values():
            _end(ancestor)
        self._lanes.clear()
        self._ancestors.clear()
        self._selector.close()
        self._selector = selectors.DefaultSelector()
        self._free = list(range(self.jobs))

    def resize(self, jobs: int) -> None:
        """Run so many cells at a time from the next run on."""
        if not self._busy:
            self.jobs = jobs
            self._free = list(range(jobs))

    def abandon(self) -> None:
        """In a fork of the program: close the copies of its channels, so that the workers still notice its end."""
        for process in self._lanes.values():
            process.channel.close()
            process.stderr.close()
        for ancestor in self._ancestors.values():
            ancestor.channel.close()
            ancestor.stderr.close()
            ancestor.process.returncode = 0  # it is no child of this process
        self._selector.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RunError("The pool was closed during the run. Finished cells are kept; resume it to run the others.")

    # Lanes and their ancestors

    def _forget_outdated(self, lanes: dict[Lane, Identity]) -> None:
        """Start afresh if an ancestor died or a target changed since; retry what could not be imported.

        A file that any lane has loaded counts: the ancestor of the next one may have loaded it for both. A lane with
        other metrics than are wanted now gives its place, or each edit of a metric would leave one behind.
        """
        known = self._lanes
        changed = any(process.identity != lanes[lane] for lane, process in known.items() if lane in lanes)
        changed = changed or _any_changed(known.values())
        if changed or any(ancestor.process.poll() is not None for ancestor in self._ancestors.values()):
            self.close()
        wanted = {lane._replace(preload=()) for lane in lanes}
        for lane, process in list(known.items()):
            if process.failed is not None or (lane not in lanes and lane._replace(preload=()) in wanted):
                self._remove(process)
        self._identities = lanes

    def _ancestor(self, origin: Origin) -> _AncestorProcess:
        known = self._ancestors.get(origin)
        if known is None:
            known = self._ancestors[origin] = self._start_ancestor(origin)
            self._refuse_closed()  # whoever closed the pool just then does not know this one
        return known

    def _start_ancestor(self, origin: Origin) -> _AncestorProcess:
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the ancestor)
        setup = {**origin.path.setup(), "cpus": available_cpus(), "channel": theirs.fileno()}
        command, file = worker_command(setup)
        mark = secrets.token_hex(8)
        with theirs, file:
            process = subprocess.Popen(  # noqa: S603 (ourselves)
                command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env={
                    **os.environ,
                    **origin.path.environment(),
                    **threads.environment(origin.n_threads),
                    IN_WORKER: mark,
                },
                pass_fds=[theirs.fileno(), file.fileno()],
                start_new_session=True,  # Ctrl-C reaches only the program, which stops them
            )
        ancestor = _AncestorProcess(origin, mark, process, ours, stderr)
        self._selector.register(ours, selectors.EVENT_READ, ancestor)
        return ancestor

    def _load_ahead(self, ahead: deque[Lane]) -> None:
        """Start the lanes that will be needed. An import takes the slot of a cell, or it would slow one down."""
        while ahead and self._importing() + self._running() < self.jobs:
            self._lane(ahead.popleft())

    def _lane(self, lane: Lane) -> _LaneProcess:
        known = self._lanes.get(lane)
        if known is None:
            known = self._lanes[lane] = self._start_lane(lane)
        return known

    def _start_lane(self, lane: Lane) -> _LaneProcess:
        identity = self._identities[lane]
        ancestor = self._ancestor(Origin(lane.n_threads, identity.path))
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the lane)
        process = _LaneProcess(lane, identity, next(self._numbers), ancestor, ours, stderr)
        if self._timeout is not None:
            process.deadline = time.monotonic() + max(self._timeout, _SHORTEST_IMPORT)
        setup = {
            **identity.path.setup(),
            "number": process.number,
            "cpus": available_cpus(),
            "start_method": self._method,
            "tell_files": self._kept,
            "imports": self._shared.get(lane, ()),
            "workload": identity.workload,
            "lane": lane,
            "address": {**identity.address, "build": identity.build.model_dump(mode="json")},
        }
        with theirs, contextlib.suppress(BrokenPipeError):  # a dead ancestor is noticed at the next wait
            send(ancestor.channel, setup, [theirs.fileno(), stderr.fileno()])
        self._selector.register(ours, selectors.EVENT_READ, process)
        return process

    def _running(self) -> int:
        return sum(len(process.running) for process in self._lanes.values())

    def _importing(self) -> int:
        return sum(process.importing for process in self._lanes.values())

    # Cells

    def _dispatch(
        self, waiting: deque[Work], ahead: deque[Lane], started: Callable[[Cell, str], None]
    ) -> Failure | bool | None:
        """Start the first cell whose lane is ready (True), or wait (None), or return the failure of an import."""
        busy = self._importing() + self._running()
        if busy >= self.jobs or self._running_alone():
            return None
        for index, work in enumerate(waiting):
            if work.cell.spec.alone and (busy or ahead):
                return None
            if work.cell.lane not in self._lanes and self._importing() + self._running() >= self.jobs:
                continue
            process = self._lane(work.cell.lane)
            if process.importing:
                continue
            del waiting[index]
            if process.failed is not None:
                return import_failure(work.cell, process.failed)
            self._send(process, work)
            started(work.cell, "start")
            return True
        return None

    def _running_alone(self) -> bool:
        return any(work.cell.spec.alone for process in self._lanes.values() for work, _ in process.running.values())

    def _send(self, process: _LaneProcess, work: Work) -> None:
        cell = work.cell
        slots = threads.cpu_slots(1 if cell.spec.alone else self.jobs, cell.spec.n_threads)
        number = next(self._numbers)
        request = {
            "number": number,
            "spec": cell.spec.model_dump(mode="json"),
            "target": cell.target,
            "repeat": cell.repeat,
            "inputs": dict(work.inputs),
            "cpus": slots[0 if cell.spec.alone else self._free[0]],
            "timeout": work.limits.timeout_s,
            "memory_limit": work.limits.memory_mb,
        }
        process.running[number] = (work, self._free.pop(0))
        with contextlib.suppress(ConnectionError):  # it died; that is noticed at the next wait
            process.channel.sendall(json.dumps(request).encode() + b"\n")

    def _wait(self, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        if not self._running() and not self._importing():
            return
        self._stop_late_imports()
        for key, _ in self._selector.select(self._patience()):
            source: _AncestorProcess | _LaneProcess = key.data
            if isinstance(source, _LaneProcess):
                yield from self._hear_lane(source, started)
            else:
                yield from self._hear_ancestor(source, started)

    def _patience(self) -> float | None:
        """Seconds until the next import is late."""
        deadlines = [p.deadline for p in self._lanes.values() if p.importing and p.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _stop_late_imports(self) -> None:
        """An import that hangs fails the cells of its lane."""
        now = time.monotonic()
        for process in self._lanes.values():
            if process.importing and process.deadline is not None and now >= process.deadline:
                limit = max(self._timeout or 0.0, _SHORTEST_IMPORT)
                process.failed = {"failed": "Timeout", "message": f"not finished after {limit:g} s"}
                if process.began:
                    with contextlib.suppress(OSError):  # it has just died
                        send(process.ancestor.channel, {"stop": process.number})
                else:  # the ancestor itself hangs
                    kill_marked(process.ancestor.mark)

    def _hear_lane(self, process: _LaneProcess, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        data = _received(process.channel)
        if data is None:
            return
        if not data:  # it is exiting; its ancestor reports how
            self._selector.unregister(process.channel)
            process.channel.close()
            return
        for line in process.input.feed(data):
            try:
                event = LaneEvent.model_validate_json(line)
            except ValueError:  # something else has written to its channel: nothing that it says can be trusted
                yield from self._lane_died(process, "a message that cannot be read")
                return
            if event.importing:
                process.began = True
            elif event.ready is not None:
                process.ready = True
                process.files = event.files
            elif event.failed is not None:
                process.failed = event.model_dump()
            elif event.number not in process.running:
                continue
            elif event.exit is None:
                started(process.running[event.number][0].cell, event.phase)
            else:
                work, slot = process.running.pop(event.number)
                self._release(slot)
                yield self._ended(work, event)

    def _hear_ancestor(
        self, ancestor: _AncestorProcess, started: Callable[[Cell, str], None]
    ) -> Iterator[Outcome | Failure]:
        data = _received(ancestor.channel)
        for line in ancestor.input.feed(data or b""):
            event = json.loads(line)
            process = next((p for p in self._lanes.values() if p.number == event["lane"]), None)
            if process is not None:
                while _readable(process.channel):  # what it sent before it ended counts
                    yield from self._hear_lane(process, started)
                yield from self._lane_died(process, end_name(event["exit"]))
        if data == b"":
            yield from self._ancestor_died(ancestor)

    def _ancestor_died(self, ancestor: _AncestorProcess) -> Iterator[Failure]:
        self._selector.unregister(ancestor.channel)
        ancestor.channel.close()
        del self._ancestors[ancestor.origin]
        end = end_name(ancestor.process.wait())
        kill_marked(ancestor.mark)  # programs that its cells had started
        with ancestor.stderr:
            end = f"{end}; {_stderr_tail(ancestor.stderr)}".rstrip("; ")
        for process in [process for process in self._lanes.values() if process.ancestor is ancestor]:
            yield from self._lane_died(process, end)

    def _lane_died(self, process: _LaneProcess, end: str) -> Iterator[Failure]:
        """A lane ended unexpectedly: its running cells have failed, and the next cell gets a new lane."""
        tail = _stderr_tail(process.stderr)
        if process.importing:
            message = f"the import ended with {end}"
            process.failed = {"failed": "WorkerDied", "message": message, "traceback": tail}
        for work, slot in process.running.values():
            self._release(slot)
            message = f"the worker ended with {end}"
            yield Failure.of(work.cell, error_type="WorkerDied", error_message=message, stderr_tail=tail)
        process.running.clear()
        if process.failed is None:
            self._remove(process)

    def _remove(self, process: _LaneProcess) -> None:
        if process.channel.fileno() >= 0:
            self._selector.unregister(process.channel)
            process.channel.close()
        process.stderr.close()
        del self._lanes[process.lane]

    def _release(self, slot: int) -> None:
        self._free.append(slot)
        self._free.sort()

    def _ended(self, work: Work, event: LaneEvent) -> Outcome | Failure:
        cell, limits = work.cell, work.limits
        if event.answer is None:
            return death(cell, event, limits)
        kind, _, text = event.answer.partition(" ")
        try:
            if kind == RESULT:
                outcome = WORKLOADS[cell.spec.workload].outcome_type.model_validate_json(text)
                return outcome.with_sighting(Sighting(event.threads, self._method))
            failure = Failure.model_validate_json(text).model_copy(update={"stderr_tail": event.stderr})
            return within_limits(failure, limits)
        except ValueError:  # pydantic's errors are ValueErrors: something else wrote to the cell's pipe
            message = "the process sent something that is not an outcome"
            return Failure.of(cell, error_type="InvalidAnswer", error_message=message, phase=event.phase)


def _identities(works: Iterable[Work]) -> dict[Lane, Identity]:
    """What the lane of each work must have loaded."""
    found: dict[Lane, Identity] = {}
    for work in works:
        lane = work.cell.lane
        if lane not in found:
            workload = WORKLOADS[lane.workload]
            path = ImportPath(tuple(workload.path(lane.target)), workload.isolated(lane.target))
            found[lane] = Identity(work.build, workload.address(lane.target), address_of(workload, "workload"), path)
    return found


def _any_changed(processes: Iterable[_LaneProcess]) -> bool:
    """Whether a file that a lane has loaded is not what it was: a library was installed, or a user's file edited."""
    loaded: dict[str, tuple[int, int]] = {}
    for process in processes:
        loaded |= process.files
    return any(stamp_of(path) != stamp for path, stamp in loaded.items())


def _shared_imports(lanes: Mapping[Lane, Identity]) -> dict[Lane, list[str]]:
    """For each lane, the modules that another lane of its ancestor imports as well."""
    wanted = {lane: WORKLOADS[lane.workload].imports(lane.target) for lane in lanes}
    origin = {lane: Origin(lane.n_threads, identity.path) for lane, identity in lanes.items()}
    counted = Counter((origin[lane], name) for lane, names in wanted.items() for name in set(names))
    return {lane: [name for name in names if counted[origin[lane], name] > 1] for lane, names in wanted.items()}


def _received(channel: socket.socket) -> bytes | None:
    """What has arrived: empty when the other side has closed, None when there is nothing or the channel is closed."""
    if channel.fileno() < 0:
        return None
    try:
        return channel.recv(1 << 20)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _readable(channel: socket.socket) -> bool:
    """Whether something has arrived; a process that the lane started may keep the other end open."""
    return channel.fileno() >= 0 and bool(select.select([channel], [], [], 0)[0])


def _stderr_tail(file: IO[bytes]) -> str:
    return tail_of(file).decode(errors="replace")


def _end(ancestor: _AncestorProcess) -> None:
    """Stop an ancestor, which stops its lanes first."""
    try:
        ancestor.process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        ancestor.process.kill()
        ancestor.process.wait()
        kill_marked(ancestor.mark)
    ancestor.stderr.close()
