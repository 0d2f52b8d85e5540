"""The worker's side: a zygote that has only imported one library and forks a child for each cell.

It is started with thread limits already in its environment, reads one JSON request a line from stdin, and answers
with one JSON event a line on what was its stdout.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from boosters_eval.core.modules import load_file
from boosters_eval.engine.threads import busy_threads, observed, pin

if TYPE_CHECKING:
    from boosters_eval.runners.base import Runner

# How a worker starts: from the very package, and with the very import path, that its parent has.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path'];"
    "from boosters_eval.engine.worker import main; main()"
)
# Set in every worker: a script that runs a comparison when it is imported would otherwise start it again here.
IN_WORKER = "BOOSTERS_EVAL_IN_WORKER"
_POLL = 0.01  # seconds between looks at a child's threads and deadline
TAIL = 4_000  # characters of a dead child's stderr


@dataclass
class _Child:
    number: int
    pid: int
    pipe: int
    capture: IO[bytes]
    deadline: float | None
    rest: bytes = b""
    phase: str = "start"
    ended: str | None = None  # why we ended it
    busy: Counter[int] = field(default_factory=Counter)
    lines: list[bytes] = field(default_factory=list)


class _Zygote:
    """Forks, watches and reaps; it never computes."""

    def __init__(self, runner: type[Runner] | None, setup: dict[str, Any], answers: IO[bytes]) -> None:
        self._runner = runner
        self._setup = setup
        self._answers = answers
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ, "requests")
        wake_reader, wake_writer = os.pipe()
        os.set_blocking(wake_reader, False)
        os.set_blocking(wake_writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._wake = wake_reader
        self._selector.register(wake_reader, selectors.EVENT_READ, "reap")
        self._rest = b""

    def serve(self) -> None:
        """Until the parent closes our stdin; then every child dies with us."""
        while True:
            for key, _ in self._selector.select(_POLL if self._children else None):
                if key.data == "requests":
                    if not self._read_requests():
                        self._end_all()
                        return
                elif key.data == "reap":
                    os.read(self._wake, 4096)
                else:
                    self._read_child(key.data)
            self._watch()
            self._reap()

    def _tell(self, **event: Any) -> None:
        self._answers.write(json.dumps(event).encode() + b"\n")
        self._answers.flush()

    def _read_requests(self) -> bool:
        data = os.read(0, 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._start(json.loads(line))
        return bool(data)

    def _start(self, request: dict[str, Any]) -> None:
        reader, writer = os.pipe()
        capture = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        if self._runner is None:
            pid = self._spawn(request, writer, capture)
        else:
            pid = _fork(self._runner, request, writer, capture)
        os.close(writer)
        os.set_blocking(reader, False)
        timeout = request["timeout"]
        child = _Child(
            number=request["number"],
            pid=pid,
            pipe=reader,
            capture=capture,
            deadline=None if timeout is None else time.monotonic() + timeout,
        )
        self._children[pid] = child
        self._selector.register(reader, selectors.EVENT_READ, child)

    def _spawn(self, request: dict[str, Any], writer: int, capture: IO[bytes]) -> int:
        """Where a fork is not safe: a fresh interpreter, which imports the library for this cell alone."""
        setup = {**self._setup, "parent": os.getpid(), "request": request, "pipe": writer}
        os.set_inheritable(writer, True)
        output = [(os.POSIX_SPAWN_DUP2, capture.fileno(), number) for number in (1, 2)]
        command = [sys.executable, "-c", START, json.dumps(setup)]
        return os.posix_spawn(sys.executable, command, os.environ, file_actions=output, setpgroup=0)

    def _read_child(self, child: _Child) -> bool:
        """Take what there is; False when there is nothing more for now."""
        try:
            data = os.read(child.pipe, 1 << 20)
        except BlockingIOError:
            return False
        if not data:
            self._forget(child)
            return False
        *lines, child.rest = (child.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"phase "):
                child.phase = line[6:].decode()
                self._tell(number=child.number, phase=child.phase)
            else:
                child.lines.append(line)
        return True

    def _forget(self, child: _Child) -> None:
        if child.pipe in self._selector.get_map():
            self._selector.unregister(child.pipe)

    def _watch(self) -> None:
        for child in self._children.values():
            child.busy[busy_threads(child.pid)] += 1
            if child.deadline is not None and time.monotonic() > child.deadline and child.ended is None:
                child.ended = "timeout"
                os.kill(child.pid, signal.SIGKILL)
                _kill_group(child.pid)

    def _reap(self) -> None:
        for child in list(self._children.values()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._drain(child)
                _kill_group(child.pid)  # whatever it started itself
                del self._children[child.pid]
                self._report(child, os.waitstatus_to_exitcode(status))

    def _drain(self, child: _Child) -> None:
        while self._read_child(child):
            pass
        self._forget(child)
        os.close(child.pipe)

    def _report(self, child: _Child, code: int) -> None:
        child.capture.seek(0, os.SEEK_END)
        child.capture.seek(max(0, child.capture.tell() - TAIL))
        tail = child.capture.read().decode(errors="replace")
        child.capture.close()
        self._tell(
            number=child.number,
            exit=code,
            phase=child.phase,
            outcome=child.lines[-1].decode() if child.lines else None,
            ended=child.ended,
            threads=observed(child.busy),
            stderr=tail,
        )

    def _end_all(self) -> None:
        for child in self._children.values():
            _kill_group(child.pid)


def _fork(runner: type[Runner], request: dict[str, Any], writer: int, capture: IO[bytes]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent(parent)
        _child_main(runner, request, writer, capture.fileno())
    with contextlib.suppress(OSError):  # the child does it too: whoever is first, its group exists before any kill
        os.setpgid(pid, pid)
    return pid


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _child_main(runner: type[Runner], request: dict[str, Any], pipe: int, capture: int) -> None:
    """The cell's own process, from its first breath to its last."""
    from boosters_eval.engine import memory  # noqa: PLC0415 (loaded by the zygote already)
    from boosters_eval.engine.cell import Phases, run_cell  # noqa: PLC0415
    from boosters_eval.engine.plan import Cell, PlannedConfig  # noqa: PLC0415

    try:
        _isolate(request["cpus"], capture)
        if request["memory_limit"] is not None:
            memory.limit(request["memory_limit"])
        phases = Phases(lambda phase: _write(pipe, f"phase {phase}\n".encode()))
        config = PlannedConfig.model_validate(request["config"])
        cell = Cell(config, request["library"], request["seed"], request["fold"])
        outcome = run_cell(cell, runner, request["data"], request["split"], phases)
        _write(pipe, outcome.model_dump_json().encode() + b"\n")
        os._exit(0)
    except BaseException:  # noqa: BLE001 (even the reporting failed: say it on stderr, and end)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _isolate(cpus: list[int], capture: int) -> None:
    """A process group, CPUs and output of its own."""
    with contextlib.suppress(OSError):  # its parent may have been faster
        os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    pin(cpus)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(capture, 1)
    os.dup2(capture, 2)


def die_with_parent(parent: int) -> None:
    """On Linux the kernel ends us when our parent is gone, however it went; it may be gone already."""
    if sys.platform.startswith("linux"):
        import ctypes  # noqa: PLC0415 (needed once, here)

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _find_runner(library: str, where: str, file: str | None) -> type[Runner]:
    """The adapter by name, or, when a script registered it, from that script's own file."""
    from boosters_eval.runners import RUNNERS  # noqa: PLC0415 (after the CPUs are set)

    module_name, _, qualified = where.partition(":")
    module = importlib.import_module(module_name) if file is None else load_file(Path(file))
    found: Any = module
    for part in qualified.split("."):
        found = getattr(found, part)
    RUNNERS.register(library, found, replace=True)
    runner: type[Runner] = found
    return runner


def _serve(setup: dict[str, Any]) -> None:
    """Import the library, say that we are ready, and fork on request."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints while it is imported is not an answer
    start = time.perf_counter()
    runner = None
    try:
        if setup["start_method"] == "fork":
            runner = _load(setup)
    except BaseException as error:  # noqa: BLE001 (an import may fail in any way; all its cells must learn why)
        event: dict[str, Any] = {
            "failed": type(error).__name__,
            "message": str(error)[:2_000],
            "traceback": traceback.format_exc()[-TAIL:],
        }
    else:
        event = {"ready": time.perf_counter() - start}
    answers.write(json.dumps(event).encode() + b"\n")
    answers.flush()
    if "ready" in event:
        _Zygote(runner, setup, answers).serve()


def _load(setup: dict[str, Any]) -> type[Runner]:
    """Everything that a cell needs, imported; and nothing done that would start a thread."""
    from boosters_eval.benchmark.usermetrics import UserMetric  # noqa: PLC0415 (after the CPUs are set)

    runner = _find_runner(setup["library"], setup["runner"], setup["file"])
    runner.load()
    importlib.import_module("boosters_eval.engine.cell")
    importlib.import_module("boosters_eval.engine.plan")
    for metric in setup["metrics"]:
        UserMetric(**metric).load()
    gc.collect()
    gc.freeze()  # what was imported is no garbage: no child need look through it again
    return runner


def main() -> None:
    """A zygote, or in its place the process of one cell."""
    setup = json.loads(sys.argv[1])
    die_with_parent(setup["parent"])
    os.environ[IN_WORKER] = "1"
    pin(setup["cpus"])
    if "request" in setup:
        _child_main(_load(setup), setup["request"], setup["pipe"], os.dup(2))
    else:
        _serve(setup)
