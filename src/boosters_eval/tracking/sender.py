"""The process of a tracker: it reads the run's journal, as often as there is news, and sends what is new.

Nothing passes through the program that runs the cells except that there is news, so that a tracker that is slow, hangs
or crashes costs neither time nor memory there.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import FileLock

from boosters_eval.core.modules import at_address
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.journal import read
from boosters_eval.engine.kinds import kind_of_run
from boosters_eval.tracking.content import content_of
from boosters_eval.tracking.tracker import TrackedEnd, TrackingStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boosters_eval.engine.folder import Run
    from boosters_eval.tracking.content import TrackedContent
    from boosters_eval.tracking.tracker import TrackedCompetitor, Tracker

    RunPlace = tuple[str, int]  # the folder of a run, and the attempt

_LEAST_PAUSE = 1.0  # seconds between two sendings
_SHARE = 4  # how many times as long as the last sending took
_AFTER_FAULT = 10.0
_GRACE = 1.0  # the program, if it is still there, ends this process first


class Sending:
    """What one tracker was told so far. After a fault everything is told again, which changes nothing there."""

    def __init__(self, make: Callable[[str], Tracker], say: Callable[..., None]) -> None:
        self._make, self._say = make, say
        self._tracker: Tracker | None = None
        self._run_id = ""
        self._described: dict[str, TrackedCompetitor] = {}
        self._cells: set[str] = set()
        self._past = 0  # runs that were sent to their end

    def send_all(self, places: Sequence[RunPlace], *, ended: bool) -> None:
        """Bring the tracker up to date with the runs of a session, of which only the last may go on."""
        *earlier, last = places
        for folder, attempt in earlier[self._past :]:
            self.send(RunFolder(Path(folder)), attempt, ended=True, more=True)
            self._tracker = None  # each has a state of its own
            self._past += 1
        self.send(RunFolder(Path(last[0])), last[1], ended=ended)

    def send(self, folder: RunFolder, attempt: int, *, ended: bool, more: bool = False) -> None:
        """Bring the tracker up to date; `ended` says that no more of the run will follow, `more` that another will."""
        try:
            self._send(folder, attempt, ended=ended, more=more)
        except BaseException:
            self._tracker = None
            raise

    def _send(self, folder: RunFolder, attempt: int, *, ended: bool, more: bool) -> None:
        run, sealed = _load(folder, attempt)
        content = content_of(run, folder, sealed=sealed, ended=ended)
        if self._tracker is None:
            self._tracker = self._make(content.run.key)
            self._described, self._cells, self._run_id = {}, set(), ""
            if self._tracker.holds(content.run):
                self._say(done=not more, where="nothing was sent: it has all of it already")
                return
        if self._run_id != run.plan.run_id:  # at first, and when seeds were added
            self._say(where=self._tracker.begin(content.run))
            self._run_id = run.plan.run_id
        self._tell(self._tracker, content)
        if ended:
            with _files(run, folder, content) as files:
                written = folder.journal_path(attempt).stat().st_mtime
                self._tracker.end(content.run, TrackedEnd(content.status, written, content.ends, files))
            self._say(done=not more)

    def _tell(self, tracker: Tracker, content: TrackedContent) -> None:
        for competitor in content.competitors:
            if self._described.get(competitor.key) != competitor:
                tracker.describe(competitor)
                self._described[competitor.key] = competitor
            fresh = [cell for cell in content.cells[competitor.key] if cell.key not in self._cells]
            if fresh:
                tracker.log(competitor, fresh)
                self._cells.update(cell.key for cell in fresh)


def _load(folder: RunFolder, attempt: int) -> tuple[Run, bool]:
    """The run as it is on disk, and whether it was sealed when it was read."""
    sealed = read(folder.journal_path(attempt)).sealed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no seal is usual here
        return folder.load(attempt), sealed


@contextlib.contextmanager
def _files(run: Run, folder: RunFolder, content: TrackedContent) -> Iterator[Mapping[str, Path]]:
    """The journal of a run that came to its end, and the reports of its kind."""
    if content.status is TrackingStatus.INTERRUPTED:
        yield {}
        return
    texts = kind_of_run(run, folder).files()
    with tempfile.TemporaryDirectory(prefix="boosters-eval-") as place:
        files = {name: Path(place) / name for name in (*texts, "journal.jsonl")}
        for name, text in texts.items():
            files[name].write_text(text, encoding="utf-8")
        files["journal.jsonl"].write_bytes(folder.journal_path(run.attempt).read_bytes())
        yield files


class News:
    """What the program says on stdin: where its runs are, that there is news, the end. Its death is an end too."""

    def __init__(self, source: BinaryIO, at_end: Callable[[], None] = lambda: None) -> None:
        self._changed, self._at_end = threading.Condition(), at_end
        self._places: dict[int, RunPlace] = {}
        self._fresh = self._ended = False
        threading.Thread(target=self._listen, args=(source,), daemon=True).start()

    def _listen(self, source: BinaryIO) -> None:
        for line in source:
            message = json.loads(line)
            with self._changed:
                self._fresh = True
                self._ended = message.get("ended", False)
                if "folder" in message:
                    self._places[message["run"]] = (message["folder"], message["attempt"])
                self._changed.notify()
        self._at_end()
        with self._changed:
            self._ended = self._fresh = True
            self._changed.notify()

    def wait(self, seconds: float | None = None) -> tuple[list[RunPlace], bool]:
        """Until there is news, at most that long: where the runs are that have begun, and whether the last ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._fresh, seconds)
            self._fresh = False
            return list(self._places.values()), self._ended

    def pause(self, seconds: float) -> None:
        """Unless it ended: then there is no time to lose."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)


def main(setup: dict[str, Any]) -> None:
    """Send until the run has ended."""
    with contextlib.suppress(OSError):
        os.nice(10)  # cells come first
    os.set_inheritable(setup["replies"], False)
    out = os.fdopen(setup["replies"], "w", encoding="utf-8")

    def say(**reply: Any) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            out.write(json.dumps(reply) + "\n")
            out.flush()

    tracker = at_address(setup["address"])
    states = Path(setup["states"])
    # From the end on there is a limit, whatever it is doing: the program may be gone, and nobody else would end it.
    limit = threading.Timer(setup["wait"] + _GRACE, os._exit, [1])
    limit.daemon = True
    with contextlib.ExitStack() as held:
        sending = Sending(lambda key: tracker(_owned(states / f"{key}.json", held)), say)
        code = attend(sending, News(sys.stdin.buffer, limit.start), say)
    sys.stdout.flush()
    os._exit(code)  # whatever a tracker left running must not keep it


def _owned(state: Path, held: contextlib.ExitStack) -> Path:
    """Wait until no other process sends the same run to the same tracker: each would send what both do not know of."""
    state.parent.mkdir(parents=True, exist_ok=True)
    held.close()  # it is asked for again after each fault
    held.enter_context(FileLock(state.with_suffix(".lock")))
    return state


def attend(sending: Sending, news: News, say: Callable[..., None]) -> int:
    """Send whenever there is news; the exit status tells whether all was sent at the end."""
    again: float | None = None  # seconds until it is tried again without news
    while True:
        places, ended = news.wait(again)
        if places:
            began = time.monotonic()
            good = _try(sending, places, say, ended=ended)
            again = None if good else _AFTER_FAULT
            if ended:
                return 0 if good else 1
            news.pause(max(_LEAST_PAUSE, _SHARE * (time.monotonic() - began)))
        elif ended:
            return 0


def _try(sending: Sending, places: Sequence[RunPlace], say: Callable[..., None], *, ended: bool) -> bool:
    try:
        sending.send_all(places, ended=ended)
    except BaseException as error:  # noqa: BLE001 (a tracker may fail in any way)
        say(trouble=" ".join(f"{type(error).__name__}: {error}".split())[:500])
        return False
    say(well=True)
    return True
