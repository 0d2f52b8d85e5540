"""The executor for this machine: it gives cells to lanes and collects what becomes of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections import Counter, deque
from itertools import count
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.core.text import hide_home, join_words
from boosters_eval.engine.cell import Failure, ImportFailure, Sighting
from boosters_eval.engine.execute import Executor
from boosters_eval.engine.lane import RESULT
from boosters_eval.engine.lanes import (
    LaneProcess,
    Lanes,
    find_longest_timeout,
    identify_lanes,
    is_readable,
    read_stderr,
    receive_some,
)
from boosters_eval.engine.limits import assign_cpus, looks_out_of_memory
from boosters_eval.engine.processes import LaneEvent, kill_marked, name_end, name_signal
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping

    from boosters_eval.engine.cell import Cell, Lane, Outcome
    from boosters_eval.engine.execute import Limits, Work
    from boosters_eval.engine.lanes import AncestorProcess, Identity


class Feed:
    """Any thread gives work; the pool, which waits for its lanes at the same time, is woken and takes it."""

    def __init__(self) -> None:
        self._given: deque[Work] = deque()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self.ended = False

    def fileno(self) -> int:
        """What becomes readable when there is something to take."""
        return self._reader.fileno()

    def put(self, work: Work) -> None:
        self._given.append(work)
        self._writer.send(b"x")

    def end(self) -> None:
        """Nothing more will come: the pool finishes what it has."""
        self.ended = True
        self._writer.send(b"x")

    def take(self) -> list[Work]:
        self._reader.recv(1 << 16)
        return [self._given.popleft() for _ in range(len(self._given))]

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


def make_import_failure(cell: Cell, failed: dict[str, Any]) -> ImportFailure:
    return ImportFailure.of(
        cell,
        error_type=failed["failed"],
        error_message=f"{cell.target} could not be imported: {failed['message']}",
        traceback=failed.get("traceback"),
    )


FROM_OUTSIDE = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP})  # how no library ends itself
_GUESSES = {"SIGKILL": ": probably the system ran out of memory"}
_MOST_TRIES = 2  # of what something outside has ended


def explain_death(cell: Cell, event: LaneEvent, limits: Limits) -> Failure:
    """The failure of a process that ended without an answer, with the cause as far as the system reports it."""
    code = event.exit or 0
    name = name_signal(-code) if code < 0 else None
    if event.ended == "timeout":
        kind, message = "Timeout", f"not finished after {limits.timeout_s:g} s; the process was killed"
    elif limits.memory_mb is not None and looks_out_of_memory(event.stderr):
        kind, message = "MemoryLimit", _limit_sentence(limits, f"the process ended with {name_end(code)}")
    elif code in FROM_OUTSIDE:
        kind, message = "Killed", f"killed by {name}{_GUESSES.get(name or '', '')}"
    elif name is not None:
        under = f", under a memory limit of {limits.memory_mb:g} MB" if limits.memory_mb is not None else ""
        kind, message = "Crash", f"the process died of {name}{under}"
    else:
        kind, message = "Exit", f"the process ended by itself with exit status {code}"
    return Failure.of(
        cell,
        error_type=kind,
        error_message=message,
        phase=event.phase,
        signal=name,
        stderr_tail=event.stderr,
    )


def name_memory_limit(failure: Failure, limits: Limits) -> Failure:
    """The same failure, named as one of the memory limit where that is its cause."""
    if limits.memory_mb is None or not looks_out_of_memory(
        failure.error_type, failure.error_message, failure.stderr_tail
    ):
        return failure
    sentence = _limit_sentence(limits, failure.error_message)
    return failure.model_copy(update={"error_type": "MemoryLimit", "error_message": sentence})


def _limit_sentence(limits: Limits, detail: str) -> str:
    return f"needed more than the {limits.memory_mb:g} MB that a cell may allocate" + (f" ({detail})" if detail else "")


START_METHODS = ("fork", "spawn")


def choose_start_method() -> str:
    """Fork where it is safe; BOOSTERS_EVAL_START_METHOD overrides this."""
    method = os.environ.get("BOOSTERS_EVAL_START_METHOD", "fork" if sys.platform.startswith("linux") else "spawn")
    if method not in START_METHODS:
        known = join_words(START_METHODS, "or")
        raise ConfigError(f"The BOOSTERS_EVAL_START_METHOD variable must be {known}. Got '{method}' instead.")
    return method


class LocalPool(Executor):
    """Runs cells on this machine, `jobs` at a time. Its lanes are kept for the next run until it is closed.

    One that is `kept` for longer starts its lanes anew if a file that they have loaded changes. Where several pools
    share a machine, each gets CPUs of its own; only a cell that runs alone may use all. Variables of the environment
    that are `unset` are not for cells.
    """

    def __init__(
        self, jobs: int = 1, *, kept: bool = False, cpus: list[int] | None = None, unset: Collection[str] = ()
    ) -> None:
        super().__init__(jobs)
        self._cpus = cpus
        self._method = choose_start_method()
        self._lanes = Lanes(self._method, kept=kept, unset=unset)
        self._numbers = count(1)  # of cells
        self._free = list(range(jobs))
        self._waiting: deque[Work] = deque()  # of the current run
        self._killed: Counter[str | Lane] = Counter()  # how often its cells and lanes were ended from outside
        self._busy = False
        self._closed = False  # during the current run, by whoever does not run it

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "start_method": self._method}

    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        waiting = deque(works)
        yield from self._session(waiting, identify_lanes(waiting), find_longest_timeout(waiting), None, started)

    def serve(
        self,
        feed: Feed,
        wanted: Mapping[Lane, Identity],
        timeout_s: float | None,
        started: Callable[[Cell, str], None],
    ) -> Generator[Outcome | Failure, None, None]:
        """Run what comes through the feed until it ends, in these lanes, with at most that timeout."""
        yield from self._session(deque(), wanted, timeout_s, feed, started)

    def _session(
        self,
        waiting: deque[Work],
        wanted: Mapping[Lane, Identity],
        timeout_s: float | None,
        feed: Feed | None,
        started: Callable[[Cell, str], None],
    ) -> Generator[Outcome | Failure, None, None]:
        if self._busy:
            raise RunError("This pool is running something already: use another pool, or wait.")
        ahead = self._lanes.prepare(wanted, timeout_s)
        if feed is not None:
            self._lanes.listen(feed)
        self._busy = True
        self._waiting = waiting
        self._killed.clear()
        try:
            for outcome in self._run(ahead, feed, started):
                self._refuse_closed()  # what ended just then may have failed for no other reason
                yield outcome
        finally:
            self._busy = False
            if feed is not None:
                self._lanes.ignore(feed)
            if self._lanes.running() or self._closed:  # the iterator was closed, or the run interrupted
                self.close()

    def _run(
        self, ahead: deque[Lane], feed: Feed | None, started: Callable[[Cell, str], None]
    ) -> Iterator[Outcome | Failure]:
        while self._waiting or self._lanes.running() or (feed is not None and not feed.ended):
            self._refuse_closed()
            while ahead and self._in_use() < self.jobs:  # start the lanes that will be needed
                self._lane(ahead.popleft())
            while (ended := self._dispatch(ahead, started)) is not None:
                if not isinstance(ended, bool):
                    yield ended
            if feed is not None or self._in_use():
                yield from self._wait(started)

    def close(self) -> None:
        """Close the channels of all lanes, which stops the lanes and their cells.

        A run that is going on, in another thread say, ends with an error: its processes are killed, which wakes it,
        and it closes the rest itself.
        """
        if self._busy:
            self._closed = True
            self._lanes.kill()
            return
        self._closed = False
        self._lanes.close()
        self._free = list(range(self.jobs))

    def resize(self, jobs: int, cpus: list[int] | None = None) -> None:
        """Run so many cells at a time from the next run on, on these CPUs."""
        if not self._busy:
            self.jobs, self._cpus = jobs, cpus
            self._free = list(range(jobs))

    def abandon(self) -> None:
        """In a fork of the program: leave the workers to it."""
        self._lanes.abandon()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RunError("The pool was closed during the run. Finished cells are kept; resume it to run the others.")

    # Giving cells to lanes

    def _in_use(self) -> int:
        """How many cells run, and lanes import: an import takes the slot of a cell, or it would slow one down."""
        return self._lanes.importing() + self._lanes.running()

    def _lane(self, lane: Lane) -> LaneProcess:
        process = self._lanes.get(lane)
        self._refuse_closed()  # whoever closed the pool just then does not know an ancestor that started meanwhile
        return process

    def _dispatch(self, ahead: deque[Lane], started: Callable[[Cell, str], None]) -> Failure | bool | None:
        """Start the first cell whose lane is ready (True), or wait (None), or return the failure of an import."""
        busy = self._in_use()
        running = [work.cell for process in self._lanes for work, _ in process.running.values()]
        if busy >= self.jobs or any(cell.spec.alone for cell in running):
            return None
        for index, work in enumerate(self._waiting):
            if work.cell.spec.alone and (busy or ahead):
                return None
            if work.cell.lane not in self._lanes and self._in_use() >= self.jobs:
                continue
            process = self._lane(work.cell.lane)
            if process.importing:
                continue
            del self._waiting[index]
            if process.failed is not None:
                return make_import_failure(work.cell, process.failed)
            self._send(process, work)
            started(work.cell, "start")
            return True
        return None

    def _send(self, process: LaneProcess, work: Work) -> None:
        cell = work.cell
        alone = cell.spec.alone
        slots = assign_cpus(1 if alone else self.jobs, cell.spec.n_threads, None if alone else self._cpus)
        number = next(self._numbers)
        request = {
            "number": number,
            "spec": cell.spec.model_dump(mode="json"),
            "target": cell.target.model_dump(mode="json"),
            "repeat": cell.repeat,
            "part": cell.part,
            "inputs": dict(work.inputs),
            "cpus": slots[0 if alone else self._free[0]],
            "timeout": work.limits.timeout_s,
            "memory_limit": work.limits.memory_mb,
        }
        process.running[number] = (work, self._free.pop(0))
        with contextlib.suppress(ConnectionError):  # it died; that is noticed at the next wait
            process.channel.sendall(json.dumps(request).encode() + b"\n")

    # Hearing what becomes of them

    def _wait(self, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        for source in self._lanes.heard():
            if isinstance(source, LaneProcess):
                yield from self._hear_lane(source, started)
            elif isinstance(source, Feed):
                self._waiting.extend(source.take())
            else:
                yield from self._hear_ancestor(source, started)

    def _hear_lane(self, process: LaneProcess, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        data = receive_some(process.channel)
        if data is None:
            return
        if not data:  # it is exiting; its ancestor reports how
            self._lanes.hang_up(process)
            return
        for line in process.input.feed(data):
            try:
                event = LaneEvent.model_validate_json(line)
            except ValueError:  # something else has written to its channel: nothing that it says can be trusted
                yield from self._lane_died(process, "a message that cannot be read", None)
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
                yield from self._cell_ended(process, event.number, event)

    def _cell_ended(self, process: LaneProcess, number: int, event: LaneEvent) -> Iterator[Outcome | Failure]:
        work, slot = process.running.pop(number)
        self._release(slot)
        if event.answer is not None or event.ended or not self._try_again(work, event.exit):
            yield self._told(self._ended(work, event))

    def _hear_ancestor(
        self, ancestor: AncestorProcess, started: Callable[[Cell, str], None]
    ) -> Iterator[Outcome | Failure]:
        data = receive_some(ancestor.channel)
        for line in ancestor.input.feed(data or b""):
            event = json.loads(line)
            process = self._lanes.numbered(event["lane"])
            if process is not None:
                while is_readable(process.channel):  # what it sent before it ended counts
                    yield from self._hear_lane(process, started)
                yield from self._lane_died(process, name_end(event["exit"]), event["exit"])
        if data == b"":
            yield from self._ancestor_died(ancestor)

    def _ancestor_died(self, ancestor: AncestorProcess) -> Iterator[Outcome | Failure]:
        self._lanes.forget(ancestor)
        code = ancestor.process.wait()
        end = name_end(code)
        kill_marked(ancestor.mark)  # programs that its cells had started
        with ancestor.stderr:
            end = f"{end}; {read_stderr(ancestor.stderr)}".rstrip("; ")
        for process in self._lanes.of(ancestor):
            yield from self._lane_died(process, end, code)

    def _lane_died(self, process: LaneProcess, end: str, code: int | None) -> Iterator[Outcome | Failure]:
        """A lane ended unexpectedly: the next cell gets a new lane. What something outside has ended is tried again."""
        tail = read_stderr(process.stderr)
        if process.importing and not self._is_first_kill(process.lane, code):
            message = f"the import ended with {end}"
            process.failed = {"failed": "WorkerDied", "message": message, "traceback": hide_home(tail)}
        for work, slot in process.running.values():
            self._release(slot)
            message = f"the worker ended with {end}"
            failure = Failure.of(work.cell, error_type="WorkerDied", error_message=message, stderr_tail=tail)
            if not self._try_again(work, code):
                yield self._told(failure)
        process.running.clear()
        if process.failed is None:
            self._lanes.remove(process)

    def _is_first_kill(self, what: str | Lane, code: int | None) -> bool:
        """Whether it was ended from outside, and not too often yet."""
        self._killed[what] += code in FROM_OUTSIDE
        return code in FROM_OUTSIDE and self._killed[what] < _MOST_TRIES

    def _try_again(self, work: Work, code: int | None) -> bool:
        again = self._is_first_kill(work.cell.key, code)
        if again:
            self._waiting.appendleft(work)
        return again

    def _told(self, outcome: Outcome | Failure) -> Outcome | Failure:
        """The outcome, with how often its cell was ended from outside."""
        count = self._killed[outcome.key]
        if not count:
            return outcome
        said = {"error_message": f"{outcome.error_message}; it was tried twice"} if isinstance(outcome, Failure) else {}
        return outcome.model_copy(update={"killed_before": count, **said})

    def _release(self, slot: int) -> None:
        self._free.append(slot)
        self._free.sort()

    def _ended(self, work: Work, event: LaneEvent) -> Outcome | Failure:
        cell, limits = work.cell, work.limits
        if event.answer is None:
            return explain_death(cell, event, limits)
        kind, _, text = event.answer.partition(" ")
        try:
            if kind == RESULT:
                outcome = WORKLOADS[cell.spec.workload].outcome_type.model_validate_json(text)
                return outcome.with_sighting(Sighting(event.threads, self._method))
            failure = Failure.model_validate_json(text).model_copy(update={"stderr_tail": event.stderr})
            return name_memory_limit(failure, limits)
        except ValueError:  # pydantic's errors are ValueErrors: something else wrote to the cell's pipe
            message = "the process sent something that is not an outcome"
            return Failure.of(cell, error_type="InvalidAnswer", error_message=message, phase=event.phase)
