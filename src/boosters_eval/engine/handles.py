"""The program's handles on its workers: how an ancestor and a lane are started, heard and ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from boosters_eval.core.machine import available_cpus
from boosters_eval.engine import threads
from boosters_eval.engine.channel import Lines, send
from boosters_eval.engine.importpath import ImportPath
from boosters_eval.engine.lane import tail_of
from boosters_eval.engine.processes import IN_WORKER, kill_marked, worker_command

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from boosters_eval.engine.cell import Build, Lane
    from boosters_eval.engine.executor import Work

_GRACE = 3.0  # seconds that an ancestor gets to stop its lanes and exit


class Identity(NamedTuple):
    """What a lane has loaded: a lane of another build, or of another class of the same name, must not be used."""

    build: Build
    address: dict[str, Any]
    workload: dict[str, Any]  # the address of the workload itself
    path: ImportPath
    imports: tuple[str, ...] = ()


@dataclass
class AncestorProcess:
    """The program's handle on a common ancestor of lanes."""

    n_threads: int
    mark: str  # in the environment of all its descendants
    process: subprocess.Popen[bytes]
    channel: socket.socket
    stderr: IO[bytes]  # its output, reported if it dies
    input: Lines = field(default_factory=Lines)

    @classmethod
    def start(cls, n_threads: int, unset: Collection[str] = ()) -> Self:
        """A new ancestor, which inherits the thread limits: libraries read them when they are loaded.

        Of this process's environment it does not inherit what is `unset`.
        """
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the ancestor)
        setup = {**ImportPath().setup(), "cpus": available_cpus(), "channel": theirs.fileno()}
        command, file = worker_command(setup)
        mark = secrets.token_hex(8)
        with theirs, file:
            process = subprocess.Popen(  # noqa: S603 (ourselves)
                command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env={**inherited, **threads.environment(n_threads), IN_WORKER: mark},
                pass_fds=[theirs.fileno(), file.fileno()],
                start_new_session=True,  # Ctrl-C reaches only the program, which stops them
            )
        return cls(n_threads, mark, process, ours, stderr)

    def kill(self) -> None:
        """End it and all its descendants at once."""
        self.process.kill()
        kill_marked(self.mark)

    def end(self) -> None:
        """Wait for its end: it stops its lanes and exits once its channel is closed."""
        try:
            self.process.wait(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            kill_marked(self.mark)
        self.stderr.close()

    def abandon(self) -> None:
        """In a fork of the program: close the copies of its files. It is no child of this process."""
        self.channel.close()
        self.stderr.close()
        self.process.returncode = 0


@dataclass
class LaneProcess:
    """The program's handle on a lane."""

    lane: Lane
    identity: Identity
    number: int
    ancestor: AncestorProcess
    channel: socket.socket
    stderr: IO[bytes]
    deadline: float | None = None  # of its import
    began: bool = False  # the lane exists; before that, its ancestor imports what it shares with others
    ready: bool = False
    failed: dict[str, Any] | None = None
    input: Lines = field(default_factory=Lines)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)  # what it has loaded: when changed, how large
    running: dict[int, tuple[Work, int]] = field(default_factory=dict)  # number: (work, slot)

    @classmethod
    def start(
        cls, lane: Lane, identity: Identity, number: int, ancestor: AncestorProcess, how: Mapping[str, Any]
    ) -> Self:
        """A new lane, forked from the ancestor; `how` adds to what it is told."""
        ours, theirs = socket.socketpair()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the lane)
        setup = {
            **identity.path.setup(),  # the program's own may have grown since the ancestor started
            **how,
            "number": number,
            "cpus": available_cpus(),
            "workload": identity.workload,
            "lane": (lane.workload, lane.target.model_dump(mode="json"), lane.n_threads, lane.preload),
            "address": {**identity.address, "build": identity.build.model_dump(mode="json")},
        }
        with theirs, contextlib.suppress(BrokenPipeError):  # a dead ancestor is noticed at the next wait
            send(ancestor.channel, setup, [theirs.fileno(), stderr.fileno()])
        return cls(lane, identity, number, ancestor, ours, stderr)

    @property
    def importing(self) -> bool:
        """Whether the lane is still importing, so that it is not known yet if it can run cells."""
        return not self.ready and self.failed is None

    def close(self) -> None:
        """Close its channel, which stops the lane and its cells."""
        self.channel.close()
        self.stderr.close()


def received(channel: socket.socket) -> bytes | None:
    """What has arrived: empty when the other side has closed, None when there is nothing or the channel is closed."""
    if channel.fileno() < 0:
        return None
    try:
        return channel.recv(1 << 20)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def readable(channel: socket.socket) -> bool:
    """Whether something has arrived; a process that the lane started may keep the other end open."""
    return channel.fileno() >= 0 and bool(select.select([channel], [], [], 0)[0])


def stderr_tail(file: IO[bytes]) -> str:
    """The end of what a process has printed."""
    return tail_of(file).decode(errors="replace")
