"""Trackers as observers of a run: they are told that there is news, and read it from the journal."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, MissingLibraryError, RunError, describe_error
from boosters_eval.core.files import find_home
from boosters_eval.core.modules import address_of
from boosters_eval.core.terms import named
from boosters_eval.core.text import join_words
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.observer import CellEnded, Observer, ObserverSettings, RunStarted
from boosters_eval.engine.processes import IN_WORKER, find_program_path, kill_group, name_end
from boosters_eval.engine.runs import find_run, read_kind
from boosters_eval.engine.summaries import is_running
from boosters_eval.tracking.tracker import TRACKERS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
            "path": find_program_path(),
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
        self._stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # a pipe
        self.tell(**setup)
        os.set_blocking(self._stdin.fileno(), False)

    def tell(self, **message: Any) -> None:
        """Say where the run is, or without anything, that there is news. A full pipe holds enough of that."""
        with contextlib.suppress(OSError, ValueError):  # it has ended, which `listen` notices
            os.write(self._stdin.fileno(), json.dumps(message).encode() + b"\n")

    def listen(self) -> bool:
        """Take what it said since the last time; whether it may still say something."""
        with contextlib.suppress(BlockingIOError):
            while text := os.read(self._replies, 65536):
                *lines, self._rest = (self._rest + text).split(b"\n")
                for reply in map(json.loads, lines):
                    self.where = reply.get("where") or self.where
                    self.done = self.done or bool(reply.get("done"))
                    self.trouble = "" if reply.get("well") else reply.get("trouble") or self.trouble
            if not self.done and not self.trouble:
                self.trouble = self._describe_death()
            return False
        return True

    def _describe_death(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _LAST))
        last = self._output.read().decode(errors="replace").strip().splitlines()[-1:]
        code = self._process.returncode
        how = "its process ended" if code is None else f"its process ended with {name_end(code)}"
        return ": ".join([how, *last])

    def hang_up(self) -> None:
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


WAIT_VARIABLE = "BOOSTERS_EVAL_TRACKING_WAIT"
_WAIT = 60.0  # seconds after the last cell
_WAIT_INTERRUPTED = 15.0  # somebody wants to go
_SOON = 3.0  # after that, it is said that something is waited for


def choose_trackers(given: Any, parameter: str = "track") -> dict[str, type[Tracker]]:
    """The trackers by name, however they were given; one that cannot be used here is refused."""
    several = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    found: dict[str, type[Tracker]] = {}
    for item in several:
        if isinstance(item, type) and issubclass(item, Tracker):
            name, tracker = item.__name__, item
        elif isinstance(item, str):
            name, tracker = item, TRACKERS[item]
        else:
            raise ConfigError(f"The '{parameter}' parameter must be names or Tracker classes. Got {item!r} instead.")
        if found.setdefault(name, tracker) is not tracker:  # one of them would be left out
            raise ConfigError(
                f"The '{parameter}' parameter must give each tracker a name of its own. Got two '{name}'."
            )
    if not found and parameter == "to":
        raise ConfigError("The 'to' parameter must name a tracker. Got nothing instead.")
    for name, tracker in found.items():
        address_of(tracker, "tracker")  # its process must find it
        try:
            fault = tracker.missing()
        except Exception as error:  # noqa: BLE001 (it is somebody's own code)
            fault = f"cannot tell whether it can be used here: {describe_error(error)}."
        if fault:
            raise MissingLibraryError(f"The tracker '{name}' {fault}")
    return found


def read_wait() -> float:
    text = os.environ.get(WAIT_VARIABLE) or str(_WAIT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86400:
        raise ConfigError(f"The variable {WAIT_VARIABLE} must be seconds, from 0 to 86400. Got '{text}' instead.")
    return seconds


class TrackingObserver(Observer):
    """Several trackers of one run, with all the looks at it, or of several runs. Closing it waits for them, boundedly.

    Where times are measured, nothing runs beside the cells: everything is sent after the last of them.
    """

    def __init__(
        self,
        trackers: Mapping[str, type[Tracker]],
        where: Path | None = None,
        *,
        say: Callable[[str], None] = lambda _: None,
        wait: float | None = None,
    ) -> None:
        self._trackers, self._say = dict(trackers), say
        self._states = find_home(where) / "tracking"
        self._wait = read_wait() if wait is None else wait
        self._outposts: list[Outpost] = []
        self._warned: set[str] = set()  # the trackers
        self._runs: list[dict[str, Any]] = []  # where they are; a look at more seeds replaces the one before

    @classmethod
    def for_run(cls, settings: ObserverSettings) -> Self:
        found = choose_trackers(settings.track)
        if not found:
            raise ConfigError(
                f"The observer 'tracking' must have trackers: use {named('track')} instead, which names them."
            )
        return cls(found, settings.home, say=settings.say)

    def begin(self, event: RunStarted) -> None:
        if event.folder is None or not self._trackers:
            return
        self.follow(event.folder, event.attempt)
        for outpost in self._outposts:
            outpost.tell(**self._runs[-1])
        if not self._outposts and not any(spec.alone for spec in event.plan.specs):
            self._start()

    def follow(self, folder: Path, attempt: int) -> None:
        """Take a run for one to be sent, as the last so far."""
        extended = RunFolder(folder).facts(attempt).extends
        if self._runs and extended == Path(self._runs[-1]["folder"]).name:
            self._runs.pop()
        self._runs.append({"folder": str(folder.absolute()), "attempt": attempt, "run": len(self._runs)})

    def _start(self, **last: Any) -> None:
        for name, tracker in self._trackers.items():
            self._outposts.append(Outpost(name, tracker, states=self._states, wait=self._wait))
            for place in self._runs[:-1]:
                self._outposts[-1].tell(**place)
            self._outposts[-1].tell(**self._runs[-1], **last)

    def outcome(self, event: CellEnded) -> None:  # noqa: ARG002 (the journal has it)
        for outpost in self._outposts:
            outpost.tell()
            outpost.listen()
            self._warn(outpost)

    def close(self, *, interrupted: bool = False) -> None:
        wait = min(self._wait, _WAIT_INTERRUPTED) if interrupted else self._wait
        try:
            lacking = self.finish(wait)
        except KeyboardInterrupt:  # ends only the waiting: the run has its results
            lacking = [self._lacking(outpost, "it was not waited for") for outpost in self._outposts]
        except Exception as fault:  # noqa: BLE001 (no process can be started, say: the run has its results all the same)
            lacking = [f"{self._told.capitalize()} could not be tracked: {fault!r}"]
        for text in filter(None, lacking):
            warnings.warn(text, BoostersEvalWarning, stacklevel=3)

    def finish(self, wait: float) -> list[str]:
        """Say that nothing more will follow, and wait at most so long; a sentence per tracker that lacks something."""
        if not self._runs:
            return []
        try:
            if not self._outposts:
                self._start(ended=True)  # said at once: it is not opened if it has all of it
            for outpost in self._outposts:
                outpost.hang_up()
            self._await_all(time.monotonic() + wait, wait)
        finally:
            for outpost in self._outposts:
                outpost.close()
        for outpost in self._outposts:
            if outpost.done:
                self._say(f"{outpost.name}: {outpost.where}")
        return [text for outpost in self._outposts if (text := self._lacking(outpost, "it did not answer in time"))]

    def _await_all(self, deadline: float, wait: float) -> None:
        soon = time.monotonic() + _SOON
        slow = [outpost for outpost in self._outposts if not outpost.await_end(min(soon, deadline))]
        if slow and deadline > soon:
            names = join_words(outpost.name for outpost in slow)
            self._say(f"Waiting for {names}, at most {wait:g} s; Ctrl-C ends the waiting.")
            for outpost in slow:
                outpost.await_end(deadline)

    def _lacking(self, outpost: Outpost, reason: str) -> str:
        """What to tell of a tracker that does not have everything, for this reason unless it told one; else ''."""
        if outpost.done:
            return ""
        why = (outpost.trouble or reason).rstrip(".")
        run = Path(self._runs[0]["folder"]).name if len(self._runs) == 1 else "RUN"
        way = f"boosters-eval track {run} --to {outpost.name}"
        if outpost.name not in TRACKERS:  # the command line does not know a class by its name
            way = f'track_run("{run}", {outpost.name})'
        return f"The tracker '{outpost.name}' does not have all of {self._told}: {why}. Send the rest with '{way}'."

    @property
    def _told(self) -> str:
        ids = [Path(place["folder"]).name for place in self._runs]
        return f"run {ids[0]}" if len(ids) == 1 else f"runs {', '.join(ids)}"

    def _warn(self, outpost: Outpost) -> None:
        """Once: a server that is gone is to be known before the run has ended."""
        if outpost.trouble and outpost.name not in self._warned:
            self._warned.add(outpost.name)
            text = f"The tracker '{outpost.name}' failed: {outpost.trouble}"
            warnings.warn(text, BoostersEvalWarning, stacklevel=3)


def send_run(
    reference: str,
    trackers: Mapping[str, type[Tracker]],
    where: Path | None = None,
    *,
    timeout: float,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Send a run of any kind, the latest finished attempt of several; sending it again changes nothing."""
    folder = find_run(reference, where)
    if is_running(folder.path):
        raise RunError(f"Run {folder.run_id} is being executed by another process; wait for it or stop it.")
    attempt = folder.shown()
    read_kind(folder.load(attempt), folder).findings  # noqa: B018 (refuses what cannot be read, or was changed)
    observer = TrackingObserver(trackers, where, say=say, wait=timeout)
    observer.follow(folder.path, attempt)
    lacking = observer.finish(timeout)
    if lacking:
        raise RunError(" ".join(lacking))
