"""The process from which all lanes of one thread count are forked. It imports what they share and computes nothing.

It starts with the thread limits already in its environment, because libraries read them when they are loaded. What it
imports, it imports for all lanes; one that has a build of its own of any of it starts in a new interpreter instead.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from boosters_eval.core.commands import die_with_parent
from boosters_eval.engine import lane
from boosters_eval.engine.limits import pin_to
from boosters_eval.engine.processes import (
    ADOPTION,
    adopt_orphans,
    has_loaded,
    kill_orphans,
    make_command,
    prefer,
    receive,
    wake_on_exit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMPORTING = 0.5  # seconds between looks, while it imports, at whether the program lives
_GRACE = 1.0  # seconds that lanes get to exit on their own
_LOOK = 0.05  # seconds between looks for what a killed lane left behind


def main(setup: dict[str, Any]) -> None:
    """Run the ancestor, or a lane that shares nothing, or a single cell's process where forking is not safe."""
    pin_to(setup["cpus"])
    if "request" in setup:
        die_with_parent(setup["parent"])
        prefer(setup["first"])
        lane.run_spawned(setup)
    if "files" in setup:
        for file in setup["files"]:
            os.set_inheritable(file, False)
        _serve(setup, setup["files"])
    # No signal at the parent's death here: it would follow the thread that started us, which may end before the
    # program does. The closed channel tells us.
    adopt_orphans()
    _Ancestor(socket.socket(fileno=setup["channel"]), setup["program"]).serve()


def _import(modules: list[str]) -> None:
    """Import what a lane shares with others. Errors are ignored: the lane imports it again and reports them."""
    for name in modules:
        if name not in sys.modules:
            with contextlib.suppress(BaseException):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # imported objects are never garbage, so children need not scan them


def _serve(setup: dict[str, Any], files: list[int]) -> NoReturn:
    try:
        prefer(setup["first"])
        lane.serve(setup, *files)
    except BaseException:  # noqa: BLE001 (no code of the ancestor may run in this process)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)
    os._exit(0)


def _start_afresh(setup: dict[str, Any], files: list[int]) -> NoReturn:
    """In the fork: be a lane in an interpreter that has loaded nothing yet."""
    command, file = make_command({**setup, "files": files})
    for number in (*files, file.fileno()):
        os.set_inheritable(number, True)
    os.dup2(files[1], 2)  # where the lane's errors go
    os.execv(command[0], command)  # noqa: S606 (ourselves)


class _Ancestor:
    """Forks lanes and reports how each of them exited."""

    def __init__(self, channel: socket.socket, program: int) -> None:
        self._channel, self._program = channel, program
        self._lanes: dict[int, int] = {}  # number by process id
        self._looking_until = 0.0  # what a killed process has started is adopted only when its own parents have ended
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ, "requests")
        self._wake = wake_on_exit()
        self._selector.register(self._wake, selectors.EVENT_READ, "reap")

    def serve(self) -> None:
        """Serve until the program closes the channel or exits."""
        while True:
            looking = time.monotonic() < self._looking_until
            for key, _ in self._selector.select(_LOOK if looking else None):
                if key.data == "reap":
                    os.read(self._wake, 4096)
                elif not self._accept():
                    self._end()
                    return
            self._reap()
            if looking:
                kill_orphans(self._lanes)

    def _accept(self) -> bool:
        received = receive(self._channel)
        if received is None:
            return False
        setup, files = received
        if "stop" in setup:
            self._stop(setup["stop"])
            return True
        with self._watching():
            _import(setup["imports"])
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent(parent)
            self._become_lane(setup, files)
        for file in files:
            os.close(file)
        self._lanes[pid] = setup["number"]
        return True

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """End with the program also during imports, which may take long and let nothing read the channel."""

        def look(*_: object) -> None:
            if os.getppid() != self._program:
                self._end()

        before = signal.signal(signal.SIGALRM, look)
        signal.siginterrupt(signal.SIGALRM, False)  # no call of a library may fail of it
        signal.setitimer(signal.ITIMER_REAL, _IMPORTING, _IMPORTING)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _stop(self, number: int) -> None:
        for pid in [pid for pid, lane_number in self._lanes.items() if lane_number == number]:
            os.kill(pid, signal.SIGKILL)

    def _become_lane(self, setup: dict[str, Any], files: list[int]) -> NoReturn:
        """In the fork: drop everything that belongs to the ancestor."""
        signal.set_wakeup_fd(-1)
        self._selector.close()
        self._channel.close()
        os.close(self._wake)
        os.environ.update(setup["environment"])
        if setup["isolated"] or has_loaded(setup["first"]):
            _start_afresh(setup, files)
        _serve(setup, files)

    def _reap(self) -> None:
        for pid in list(self._lanes):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                event = {"lane": self._lanes.pop(pid), "exit": os.waitstatus_to_exitcode(status)}
                kill_orphans(self._lanes)  # the processes of its cells, which could not be killed by it
                self._looking_until = time.monotonic() + ADOPTION
                with contextlib.suppress(OSError):  # the program may have exited
                    self._channel.sendall(json.dumps(event).encode() + b"\n")

    def _end(self) -> None:
        """Stop all lanes. One that serves exits when its channel closes; one that still imports is stopped here."""
        for pid in self._lanes:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while self._lanes and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.002)
        for pid in self._lanes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        kill_orphans(())
        os._exit(0)
