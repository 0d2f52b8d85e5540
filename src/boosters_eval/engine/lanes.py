"""The program's side of ancestors and lanes: which are wanted, when they start, what outdates them, how they end."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import selectors
import socket
import subprocess
import tempfile
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from boosters_eval.core.machine import list_cpus
from boosters_eval.core.modules import address_of
from boosters_eval.core.temporary import temporary_environment
from boosters_eval.engine.cell import Build  # noqa: TC001 (read when nodes of a cluster are told of lanes)
from boosters_eval.engine.lane import read_tail, stamp_file
from boosters_eval.engine.limits import make_environment
from boosters_eval.engine.processes import IN_WORKER, ImportPath, Lines, kill_marked, list_provided, make_command, send
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from boosters_eval.engine.cell import Lane
    from boosters_eval.engine.execute import Work
    from boosters_eval.engine.pool import Feed


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
        setup = {**ImportPath().setup(), "cpus": list_cpus(), "channel": theirs.fileno(), "program": os.getpid()}
        command, file = make_command(setup)
        mark = secrets.token_hex(8)
        with theirs, file:
            process = subprocess.Popen(  # noqa: S603 (ourselves)
                command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env={**inherited, **make_environment(n_threads), **temporary_environment(), IN_WORKER: mark},
                pass_fds=[theirs.fileno(), file.fileno()],
                start_new_session=True,  # Ctrl-C reaches only the program, which stops them
            )
        return cls(n_threads, mark, process, ours, stderr)

    def kill(self) -> None:
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
            "cpus": list_cpus(),
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
        self.channel.close()
        self.stderr.close()


def receive_some(channel: socket.socket) -> bytes | None:
    """What has arrived: empty when the other side has closed, None when there is nothing or the channel is closed."""
    if channel.fileno() < 0:
        return None
    try:
        return channel.recv(1 << 20)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def is_readable(channel: socket.socket) -> bool:
    """Whether something has arrived; a process that the lane started may keep the other end open."""
    return channel.fileno() >= 0 and bool(select.select([channel], [], [], 0)[0])


def read_stderr(file: IO[bytes]) -> str:
    return read_tail(file).decode(errors="replace")


_SHORTEST_IMPORT = 60.0  # seconds that an import may always take, however short the timeout of a cell is


class Lanes:
    """The lanes of a pool and their ancestors."""

    def __init__(self, method: str, *, kept: bool, unset: Collection[str] = ()) -> None:
        self._method = method
        self._unset = unset
        self._kept = kept
        self._ancestors: dict[int, AncestorProcess] = {}  # by number of threads
        self._known: dict[Lane, LaneProcess] = {}
        self._identities: dict[Lane, Identity] = {}  # of the current run
        self._shared: dict[Lane, list[str]] = {}  # the modules that a lane shares with another
        self._timeout: float | None = None  # of the current run's cells
        self._numbers = count(1)
        self._selector = selectors.DefaultSelector()

    def __iter__(self) -> Iterator[LaneProcess]:
        return iter(list(self._known.values()))

    def __contains__(self, lane: Lane) -> bool:
        return lane in self._known

    # What is wanted

    def prepare(self, wanted: Mapping[Lane, Identity], timeout_s: float | None) -> deque[Lane]:
        """Get ready for cells with this timeout: their lanes, in the order in which they had better start."""
        self._identities = dict(wanted)
        self._forget_outdated()
        self._timeout = timeout_s
        self._shared = find_shared_imports(self._identities) if self._method == "fork" else {}
        # An ancestor cannot unload a module, so lanes that share fewer modules are forked first.
        return deque(sorted(self._identities, key=lambda lane: len(self._shared.get(lane, ()))))

    def _forget_outdated(self) -> None:
        """Start afresh if an ancestor died or a target changed since; retry what could not be imported.

        A changed file that any lane has loaded counts: a library was installed, or a user's file edited, and the
        ancestor of the next lane may have loaded it for both. A lane with
        other metrics than are wanted now gives its place, or each edit of a metric would leave one behind; so does
        one of a build, of which there can be many.
        """
        wanted = self._identities
        loaded = {path: stamp for process in self for path, stamp in process.files.items()}
        changed = any(process.identity != wanted[process.lane] for process in self if process.lane in wanted)
        changed = changed or any(stamp_file(path) != stamp for path, stamp in loaded.items())
        if changed or any(ancestor.process.poll() is not None for ancestor in self._ancestors.values()):
            self.close()
        targets = {lane._replace(preload=()) for lane in wanted}
        for process in self:
            lane = process.lane
            replaced = lane._replace(preload=()) in targets or bool(process.identity.path.first)
            if process.failed is not None or (lane not in wanted and replaced):
                self.remove(process)

    # Their start

    def get(self, lane: Lane) -> LaneProcess:
        known = self._known.get(lane)
        if known is None:
            known = self._known[lane] = self._start(lane)
        return known

    def _start(self, lane: Lane) -> LaneProcess:
        identity = self._identities[lane]
        how = {"start_method": self._method, "tell_files": self._kept, "imports": self._shared.get(lane, ())}
        process = LaneProcess.start(lane, identity, next(self._numbers), self._ancestor(lane.n_threads), how)
        if self._timeout is not None:
            process.deadline = time.monotonic() + max(self._timeout, _SHORTEST_IMPORT)
        self._selector.register(process.channel, selectors.EVENT_READ, process)
        return process

    def _ancestor(self, n_threads: int) -> AncestorProcess:
        known = self._ancestors.get(n_threads)
        if known is None:
            known = self._ancestors[n_threads] = AncestorProcess.start(n_threads, self._unset)
            self._selector.register(known.channel, selectors.EVENT_READ, known)
        return known

    # Their state

    def running(self) -> int:
        return sum(len(process.running) for process in self)

    def importing(self) -> int:
        return sum(process.importing for process in self)

    def numbered(self, number: int) -> LaneProcess | None:
        """The lane of that number, unless it was removed."""
        return next((process for process in self if process.number == number), None)

    def of(self, ancestor: AncestorProcess) -> list[LaneProcess]:
        return [process for process in self if process.ancestor is ancestor]

    def listen(self, feed: Feed) -> None:
        self._selector.register(feed, selectors.EVENT_READ, feed)

    def ignore(self, feed: Feed) -> None:
        with contextlib.suppress(KeyError, ValueError):  # all was closed meanwhile
            self._selector.unregister(feed)

    def heard(self) -> Iterator[AncestorProcess | LaneProcess | Feed]:
        """Who has sent something: processes, and the feed. This waits for one, until the next import is late."""
        self._stop_late_imports()
        deadlines = [process.deadline for process in self if process.importing and process.deadline is not None]
        patience = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        for key, _ in self._selector.select(patience):
            yield key.data

    # Their end

    def _stop_late_imports(self) -> None:
        """An import that hangs fails the cells of its lane."""
        now = time.monotonic()
        for process in self:
            if process.importing and process.deadline is not None and now >= process.deadline:
                limit = max(self._timeout or 0.0, _SHORTEST_IMPORT)
                process.failed = {"failed": "Timeout", "message": f"not finished after {limit:g} s"}
                if process.began:
                    with contextlib.suppress(OSError):  # it has just died
                        send(process.ancestor.channel, {"stop": process.number})
                else:  # the ancestor itself hangs
                    kill_marked(process.ancestor.mark)

    def hang_up(self, process: LaneProcess) -> None:
        if process.channel.fileno() >= 0:
            self._selector.unregister(process.channel)
            process.channel.close()

    def remove(self, process: LaneProcess) -> None:
        self.hang_up(process)
        process.close()
        del self._known[process.lane]

    def forget(self, ancestor: AncestorProcess) -> None:
        """Stop listening to an ancestor, which ends it if it is alive."""
        self._selector.unregister(ancestor.channel)
        ancestor.channel.close()
        del self._ancestors[ancestor.n_threads]

    def close(self) -> None:
        """Stop all lanes and their ancestors, and wait for their end."""
        for process in self:
            process.close()
        for ancestor in self._ancestors.values():
            ancestor.channel.close()
        for ancestor in self._ancestors.values():
            ancestor.end()
        self._known.clear()
        self._ancestors.clear()
        self._selector.close()
        self._selector = selectors.DefaultSelector()

    def kill(self) -> None:
        """From another thread than the one that runs something: end all processes, which wakes that one."""
        for ancestor in list(self._ancestors.values()):
            ancestor.kill()

    def abandon(self) -> None:
        """In a fork of the program: close the copies of its channels, so that the workers still notice its end."""
        for process in self:
            process.close()
        for ancestor in self._ancestors.values():
            ancestor.abandon()
        self._selector.close()


def identify_lanes(works: Iterable[Work]) -> dict[Lane, Identity]:
    found: dict[Lane, Identity] = {}
    for work in works:
        lane = work.cell.lane
        if lane not in found:
            workload = WORKLOADS[lane.workload]
            path = ImportPath(tuple(workload.path(lane.target)), workload.isolated(lane.target))
            found[lane] = Identity(
                lane.target.build,
                workload.address(lane.target),
                address_of(workload, "workload"),
                path,
                tuple(workload.imports(lane.target)),
            )
    return found


def find_longest_timeout(works: Iterable[Work]) -> float | None:
    return max((work.limits.timeout_s for work in works if work.limits.timeout_s), default=None)


def find_shared_imports(lanes: Mapping[Lane, Identity]) -> dict[Lane, list[str]]:
    """For each lane, the modules that another lane imports as well, from the same place."""
    together = {lane: identity for lane, identity in lanes.items() if not identity.path.isolated}
    own = {name for identity in together.values() for name in list_provided(identity.path.first)}
    wanted = {
        lane: [name for name in identity.imports if name.partition(".")[0] not in own]
        for lane, identity in together.items()
    }
    counted = Counter((lane.n_threads, name) for lane, names in wanted.items() for name in set(names))
    return {lane: [name for name in names if counted[lane.n_threads, name] > 1] for lane, names in wanted.items()}
