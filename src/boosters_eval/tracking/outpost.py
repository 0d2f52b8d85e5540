"""The program's end of a tracker's process: it never waits for it, except at the end, and then only so long."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from typing import IO, TYPE_CHECKING, Any

from boosters_eval.core.modules import address_of
from boosters_eval.engine.importpath import program_path
from boosters_eval.engine.processes import IN_WORKER, end_name, kill_group

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.tracking.tracker import Tracker

_START = (
    "import json, sys; setup = json.loads(sys.stdin.buffer.readline()); sys.path[:] = setup['path'];"
    "from boosters_eval.tracking.sender import main; main(setup)"
)
_LAST = 4096  # bytes of what it printed, of which the last line is told


class Outpost:
    """The process of one tracker."""

    def __init__(self, name: str, tracker: type[Tracker], *, states: Path, wait: float) -> None:
        self.name = name
        self.where = ""  # where the run can be seen
        self.trouble = ""  # the last fault, if nothing went well since
        self.done = False  # everything was sent
        self._rest = b""
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        reader, writer = os.pipe()
        setup = {
            "path": program_path(),
            "address": address_of(tracker, "tracker"),
            "replies": writer,
            "states": str((states / name).absolute()),
            "wait": wait,
        }
        self._process = subprocess.Popen(  # noqa: S603 (ourselves)
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            pass_fds=(writer,),
            env={**os.environ, IN_WORKER: "tracker"},
            start_new_session=True,  # Ctrl-C is for the program, which tells
        )
        os.close(writer)
        self._replies = reader
        os.set_blocking(reader, False)
        self._send(setup)
        os.set_blocking(self._stdin.fileno(), False)

    @property
    def _stdin(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise AssertionError("it was started with a pipe")
        return self._process.stdin

    def tell(self, **message: Any) -> None:
        """Say where the run is, or without anything, that there is news. A full pipe holds enough of that."""
        self._send(message)

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, which `listen` finds out
            os.write(self._stdin.fileno(), json.dumps(message).encode() + b"\n")

    def listen(self) -> bool:
        """Take what it said since the last time; whether it may still say something."""
        with contextlib.suppress(BlockingIOError):
            while text := os.read(self._replies, 65536):
                *lines, self._rest = (self._rest + text).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
            if not self.done and not self.trouble:
                self.trouble = self._death()
            return False
        return True

    def _take(self, reply: dict[str, Any]) -> None:
        self.where = reply.get("where") or self.where
        self.done = self.done or bool(reply.get("done"))
        self.trouble = "" if reply.get("well") else reply.get("trouble") or self.trouble

    def _death(self) -> str:
        """How it ended, with the last line that it printed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _LAST))
        last = self._output.read().decode(errors="replace").strip().splitlines()[-1:]
        code = self._process.returncode
        how = "its process ended" if code is None else f"its process ended with {end_name(code)}"
        return ": ".join([how, *last])

    def hang_up(self) -> None:
        """Tell it that nothing more will follow."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def await_end(self, deadline: float) -> bool:
        """Until it has sent everything or given up, at most until then; whether it has."""
        while self.listen() and not self.done:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            select.select([self._replies], [], [], left)
        return True

    def close(self) -> None:
        """End it, with all that it started."""
        if self._output.closed:
            return
        if self.done:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)  # it is just ending
        kill_group(self._process.pid)
        self._process.wait()
        self.hang_up()
        os.close(self._replies)
        self._output.close()
