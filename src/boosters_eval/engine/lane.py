"""A lane: a process that imports everything its cells use, forks one process per cell, and what that one does."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from boosters_eval.core.commands import die_with_parent
from boosters_eval.core.errors import get_reason
from boosters_eval.core.modules import load_address
from boosters_eval.core.request import Part, Repeat
from boosters_eval.core.text import hide_home, make_encodable
from boosters_eval.engine.cell import Cell, Failure, Lane, Target
from boosters_eval.engine.limits import ThreadWatch, limit_memory, pin_to
from boosters_eval.engine.processes import (
    ADOPTION,
    Lines,
    adopt_orphans,
    check_folders,
    kill_group,
    kill_orphans,
    make_command,
    wake_on_exit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.engine.workload import Workload


RESULT, FAILURE = "result", "failure"  # the first word of an answer
_TRACEBACK = 8_000  # characters
_MESSAGE = 2_000


class _Phases:
    """The current phase. Each is reported to the lane, which needs it if this process dies."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self.now = "start"

    def __call__(self, phase: str) -> None:
        self.now = " ".join(make_encodable(phase).split())  # a line break would end the message, and begin another
        _write(self._pipe, f"phase {self.now}\n")


def run_child(
    workload: type[Workload], load: Callable[[], Any], request: dict[str, Any], pipe: int, capture: int
) -> NoReturn:
    """Run the cell and send its outcome. This process always ends here."""
    try:
        _isolate(request["cpus"], capture)
        spec = workload.spec_type.model_validate(request["spec"])
        part = None if request["part"] is None else Part(*request["part"])
        cell = Cell(spec, Target.model_validate(request["target"]), Repeat(*request["repeat"]), part)
        _write(pipe, _answer(workload, load, cell, request, _Phases(pipe)))
        os._exit(0)
    except BaseException:  # noqa: BLE001 (sending the outcome failed too: report on stderr and exit)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _answer(
    workload: type[Workload], load: Callable[[], Any], cell: Cell, request: dict[str, Any], phases: _Phases
) -> str:
    """The outcome or the failure, as a line. A Rust panic is a BaseException, so everything is caught."""
    what = f"{cell.target} could not be imported: "
    try:
        loaded = load()
        what = ""
        if request["memory_limit"] is not None:
            limit_memory(request["memory_limit"])
        outcome = workload.run(cell, loaded, request["inputs"], phases)
        _check(workload, cell, outcome)
        text = outcome.model_dump_json()
        workload.outcome_type.model_validate_json(text)  # a NaN, say, is written as null, which no reader would accept
    except BaseException as error:  # noqa: BLE001 (see above; the process ends right after)
        failure = Failure.of(
            cell,
            phase=phases.now,
            error_type=type(error).__name__,
            error_message=what + get_message(error),
            traceback=hide_home(make_encodable(traceback.format_exc()[-_TRACEBACK:])),
        )
        return f"{FAILURE} {failure.model_dump_json()}\n"
    return f"{RESULT} {text}\n"


def _check(workload: type[Workload], cell: Cell, outcome: Any) -> None:
    wanted = workload.outcome_type
    if not isinstance(outcome, wanted) or outcome.key != cell.key:
        raise TypeError(f"The workload '{workload.name}' must return the {wanted.__name__} of {cell.key}.")


def get_message(error: BaseException) -> str:
    return hide_home(make_encodable(get_reason(error)[:_MESSAGE]))


def _write(pipe: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(pipe, data) :]


def _isolate(cpus: list[int], capture: int) -> None:
    """Give this process its own process group, CPUs and output."""
    with contextlib.suppress(OSError):  # the parent may have done it already
        os.setpgid(0, 0)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    pin_to(cpus)
    adopt_orphans()  # a daemon of this cell must not be taken for one that an ended cell left to the lane
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(capture, 1)
    os.dup2(capture, 2)


TAIL = 4_000  # bytes kept of what a process prints
_MOST_OUTPUT = 16 * 2**20  # bytes on disk of what a cell prints: only the end is of use, and a disk can be full
_POLL = 0.01  # seconds between checks of a child's threads and deadline


def serve(setup: dict[str, Any], channel: int, stderr: int) -> None:
    """Load what the cells need, report that the lane is ready, and fork on request until the channel closes."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (1, 2):
        os.dup2(stderr, number)  # what a library prints on import must not mix with the answers
    sys.path[:] = setup["path"]  # the program's own may have grown since the ancestor started
    answers = socket.socket(fileno=channel)
    answers.sendall(b'{"importing": true}\n')
    adopt_orphans()
    start = time.perf_counter()
    loaded = None
    try:
        workload: type[Workload] = load_address(setup["workload"])
        if setup["start_method"] == "fork":
            loaded = _load(workload, setup)
    except BaseException as error:  # noqa: BLE001 (an import may fail in any way; each of its cells reports why)
        event: dict[str, Any] = {
            "failed": type(error).__name__,
            "message": get_message(error),
            "traceback": hide_home(make_encodable(traceback.format_exc()[-TAIL:])),
        }
    else:
        event = {"ready": time.perf_counter() - start, **({"files": _loaded_files()} if setup["tell_files"] else {})}
    answers.sendall(json.dumps(event).encode() + b"\n")
    if "ready" in event:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # from now on, only the closed channel stops it
        _Server(workload, loaded, setup, answers).serve()


def _load(workload: type[Workload], setup: dict[str, Any]) -> Any:
    check_folders(setup["first"])
    name, target, n_threads, preload = setup["lane"]
    lane = Lane(name, Target.model_validate(target), n_threads, tuple(preload))
    loaded = workload.load(lane, setup["address"])
    gc.collect()
    gc.freeze()  # imported objects are never garbage, so children need not scan them
    gc.enable()  # a cell makes garbage as any program does
    return loaded


def _loaded_files() -> dict[str, tuple[int, int]]:
    """The files of all modules here, and the shared objects that they have opened, each as it is now."""
    paths = {
        path for module in list(sys.modules.values()) if isinstance(path := getattr(module, "__file__", None), str)
    }
    return {path: stamp for path in paths | find_mapped_code() if (stamp := stamp_file(path)) is not None}


def find_mapped_code() -> set[str]:
    """The files whose machine code is in this process; none where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    fields = [line.split(maxsplit=5) for line in lines]  # the last is the path, which may contain spaces
    return {field[5] for field in fields if len(field) > 5 and "x" in field[1] and field[5].startswith("/")}


def stamp_file(path: str) -> tuple[int, int] | None:
    """What changes with a file's content: when it was written, and its size; None if it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 (thousands of files, and a Path costs more than the call)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def run_spawned(setup: dict[str, Any]) -> NoReturn:
    """Where forking is not safe: run one cell in a process of its own, which loads everything itself."""
    workload: type[Workload] = load_address(setup["workload"])
    os.set_inheritable(setup["pipe"], False)  # not for programs that the cell starts
    run_child(workload, lambda: _load(workload, setup), setup["request"], setup["pipe"], os.dup(2))


class _Capture:
    """The file that a cell prints to, which keeps the end of what was printed."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
        fcntl.fcntl(self._file, fcntl.F_SETFL, flags | os.O_APPEND)  # whoever writes, writes to the new end
        self._before = b""  # the end of what was thrown away

    def fileno(self) -> int:
        return self._file.fileno()

    def shorten(self) -> None:
        """Throw away all but the end of what has become too much."""
        if os.fstat(self.fileno()).st_size > _MOST_OUTPUT:
            self._before = self.tail()
            os.ftruncate(self.fileno(), 0)

    def tail(self) -> bytes:
        return (self._before + read_tail(self._file))[-TAIL:]

    def close(self) -> None:
        self._file.close()


def read_tail(file: IO[bytes]) -> bytes:
    """The end of a file, without reading the rest."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), TAIL, max(0, size - TAIL))


@dataclass
class _Child:
    number: int
    pid: int
    pipe: int
    capture: _Capture
    deadline: float | None
    threads: ThreadWatch
    alone: bool  # nothing may run at the same time, not even the exit of another process
    input: Lines = field(default_factory=Lines)
    phase: str = "start"
    ended: str | None = None  # why the lane killed it
    next_look: float = 0.0
    answer: bytes | None = None
    reported: bool = False


class _Server:
    """Forks, watches and reaps children; it never computes."""

    def __init__(self, workload: type[Workload], loaded: Any, setup: dict[str, Any], channel: socket.socket) -> None:
        self._workload = workload
        self._loaded = loaded
        self._setup = setup
        self._channel = channel
        channel.setblocking(False)
        self._requests = Lines()
        self._unsent = bytearray()
        self._children: dict[int, _Child] = {}
        self._looking_until = 0.0  # as the ancestor does
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ, "requests")
        self._wake = wake_on_exit()
        self._selector.register(self._wake, selectors.EVENT_READ, "reap")

    def serve(self) -> None:
        """Serve until the program closes the channel, then kill all children."""
        while True:
            looking = time.monotonic() < self._looking_until
            for key, _ in self._selector.select(_POLL if self._children or looking else None):
                if key.data == "requests":
                    self._flush()
                    if not self._read_requests():
                        self._end_all()
                        return
                elif key.data == "reap":
                    os.read(self._wake, 4096)
                else:
                    self._read_child(key.data)
            self._watch()
            self._reap()
            if looking:
                kill_orphans(self._children)

    def _tell(self, **event: Any) -> None:
        """Never wait for the program to read: it may be waiting for this lane to read."""
        self._unsent += json.dumps(event).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):  # a closed channel is noticed on reading
            while self._unsent:
                del self._unsent[: self._channel.send(self._unsent)]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        self._selector.modify(self._channel, wanted, "requests")

    def _read_requests(self) -> bool:
        try:
            data = self._channel.recv(1 << 20)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        for line in self._requests.feed(data):
            self._start(json.loads(line))
        return bool(data)

    def _start(self, request: dict[str, Any]) -> None:
        reader, writer = os.pipe()
        capture = _Capture()
        start = self._fork if self._setup["start_method"] == "fork" else self._spawn
        pid = start(request, writer, capture)
        os.close(writer)
        os.set_blocking(reader, False)
        timeout = request["timeout"]
        child = _Child(
            number=request["number"],
            pid=pid,
            pipe=reader,
            capture=capture,
            deadline=None if timeout is None else time.monotonic() + timeout,
            alone=request["spec"]["alone"],
            threads=ThreadWatch(Path("/proc", str(pid), "task")),
        )
        self._children[pid] = child
        self._selector.register(reader, selectors.EVENT_READ, child)

    def _fork(self, request: dict[str, Any], writer: int, capture: _Capture) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            self._close_inherited()
            run_child(self._workload, lambda: self._loaded, request, writer, capture.fileno())
        with contextlib.suppress(OSError):  # the child does it as well, so that the group exists before any kill
            os.setpgid(pid, pid)
        return pid

    def _close_inherited(self) -> None:
        """In the fork: close all descriptors of the lane, so that the cell has only its own."""
        self._selector.close()
        self._channel.close()
        os.close(self._wake)
        for child in self._children.values():
            os.close(child.pipe)
            child.capture.close()

    def _spawn(self, request: dict[str, Any], writer: int, capture: _Capture) -> int:
        command, file = make_command({**self._setup, "parent": os.getpid(), "request": request, "pipe": writer})
        output = [(os.POSIX_SPAWN_DUP2, capture.fileno(), number) for number in (1, 2)]
        with file:
            for number in (writer, file.fileno()):
                os.set_inheritable(number, True)
            return os.posix_spawn(sys.executable, command, os.environ, file_actions=output, setpgroup=0)

    def _read_child(self, child: _Child) -> bool:
        """Read what is available; False when there is nothing more for now."""
        try:
            data = os.read(child.pipe, 1 << 20)
        except BlockingIOError:
            return False
        if not data:
            self._forget(child)
            return False
        for line in child.input.feed(data):
            if child.reported:  # whatever comes after the answer is not the cell's
                continue
            if line.startswith(b"phase "):
                child.phase = line[6:].decode(errors="replace")
                self._tell(number=child.number, phase=child.phase)
            elif child.answer is None:  # the first answer counts, and a cell has only one
                child.answer = line
        if child.answer is not None and not child.alone and not child.reported:
            self._report(child, 0)  # only its exit remains, and the next cell need not wait for that
        return True

    def _forget(self, child: _Child) -> None:
        if child.pipe in self._selector.get_map():
            self._selector.unregister(child.pipe)

    def _watch(self) -> None:
        now = time.monotonic()
        for child in self._children.values():
            if now >= child.next_look:  # at even intervals: a message that woke the lane tells nothing about threads
                child.next_look = now + _POLL
                child.threads.look()
                child.capture.shorten()
            if child.deadline is not None and now > child.deadline and child.ended is None:
                child.ended = "timeout"
                os.kill(child.pid, signal.SIGKILL)
                kill_group(child.pid)

    def _reap(self) -> None:
        for child in list(self._children.values()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                kill_group(child.pid)  # including anything that it started, which might write on and on
                del self._children[child.pid]
                kill_orphans(self._children)  # and what has left the group
                if os.WIFSIGNALED(status):
                    self._looking_until = time.monotonic() + ADOPTION
                while self._read_child(child):  # what it said before it ended counts
                    pass
                self._forget(child)
                os.close(child.pipe)
                if not child.reported:
                    self._report(child, os.waitstatus_to_exitcode(status))
                child.capture.close()

    def _report(self, child: _Child, code: int) -> None:
        child.reported = True
        self._tell(
            number=child.number,
            exit=code,
            phase=child.phase,
            answer=None if child.answer is None else child.answer.decode(errors="replace"),
            ended=child.ended,
            threads=child.threads.observed(),
            stderr=hide_home(child.capture.tail().decode(errors="replace")),
        )

    def _end_all(self) -> None:
        for child in self._children.values():
            kill_group(child.pid)
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
        kill_orphans(())
