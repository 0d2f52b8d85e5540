"""Trackers as observers of a run: they are told that there is news, and read it from the journal."""

from __future__ import annotations

import math
import os
import time
import warnings
from typing import TYPE_CHECKING, Any, Self

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, MissingLibraryError
from boosters_eval.core.home import home
from boosters_eval.core.modules import address_of
from boosters_eval.engine.observer import Observer
from boosters_eval.tracking.outpost import Outpost
from boosters_eval.tracking.tracker import TRACKERS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from boosters_eval.engine.observer import CellEnded, RunStarted

WAIT_VARIABLE = "BOOSTERS_EVAL_TRACKING_WAIT"
_WAIT = 60.0  # seconds after the last cell
_WAIT_INTERRUPTED = 15.0  # somebody wants to go


def chosen_trackers(given: Any, parameter: str = "track") -> dict[str, type[Tracker]]:
    """The trackers by name, however they were given; one that cannot be used here is refused."""
    several = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    found: dict[str, type[Tracker]] = {}
    for item in several:
        if isinstance(item, type) and issubclass(item, Tracker):
            found[item.__name__] = item
        elif isinstance(item, str):
            found[item] = TRACKERS[item]
        else:
            raise ConfigError(f"The '{parameter}' parameter must be names or Tracker classes. Got {item!r} instead.")
    if not found and parameter == "to":
        raise ConfigError("The 'to' parameter must name a tracker. Got nothing instead.")
    for name, tracker in found.items():
        address_of(tracker, "tracker")  # its process must find it
        if fault := tracker.missing():
            raise MissingLibraryError(f"The tracker '{name}' {fault}")
    return found


def allowed_wait() -> float:
    """For how many seconds a run waits for its trackers at its end."""
    text = os.environ.get(WAIT_VARIABLE) or str(_WAIT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86400:
        raise ConfigError(f"The variable {WAIT_VARIABLE} must be seconds, from 0 to 86400. Got '{text}' instead.")
    return seconds


class TrackingObserver(Observer):
    """Several trackers of one run, with all the looks at it. As a context it waits for them at the end, boundedly.

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
        self._states = home(where) / "tracking"
        self._wait = allowed_wait() if wait is None else wait
        self._outposts: list[Outpost] = []
        self._told: dict[str, str] = {}  # the fault of each tracker that was warned of
        self._place: dict[str, Any] = {}
        self._run_id = ""

    def begin(self, event: RunStarted) -> None:
        """Name the journal to all."""
        if event.folder is None or not self._trackers:
            return
        self._run_id = event.plan.run_id
        self._place = {"folder": str(event.folder.absolute()), "attempt": event.attempt}
        if not any(spec.alone for spec in event.plan.specs):
            self._start()
        for outpost in self._outposts:
            outpost.tell(**self._place)

    def follow(self, folder: Path, run_id: str, attempt: int) -> None:
        """Send a run that was executed before."""
        self._run_id, self._place = run_id, {"folder": str(folder.absolute()), "attempt": attempt}

    def _start(self) -> None:
        if not self._outposts:
            self._outposts = [
                Outpost(name, tracker, states=self._states, wait=self._wait) for name, tracker in self._trackers.items()
            ]

    def outcome(self, event: CellEnded) -> None:  # noqa: ARG002 (the journal has it)
        """Tell all that there is news."""
        for outpost in self._outposts:
            outpost.tell()
            outpost.listen()
            self._warn(outpost)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        wait = self._wait if error[0] is None else min(self._wait, _WAIT_INTERRUPTED)
        try:
            lacking = self.finish(wait)
        except Exception as fault:  # noqa: BLE001 (no process can be started, say: the run has its results all the same)
            lacking = [f"Run {self._run_id} could not be tracked: {fault!r}"]
        for text in lacking:
            warnings.warn(text, BoostersEvalWarning, stacklevel=3)

    def finish(self, wait: float) -> list[str]:
        """Say that nothing more will follow, and wait at most that long; a sentence per tracker that lacks something.

        A further Ctrl-C ends the waiting.
        """
        if not self._place:
            return []
        held = not self._outposts
        self._start()
        for outpost in self._outposts:
            if held:
                outpost.tell(**self._place, ended=True)  # at once, so that it need not be opened if it has all of it
            outpost.hang_up()
        deadline = time.monotonic() + wait
        try:
            for outpost in self._outposts:
                outpost.await_end(deadline)
        finally:
            for outpost in self._outposts:
                outpost.close()
        for outpost in self._outposts:
            if outpost.done:
                self._say(f"{outpost.name}: {outpost.where}")
        return [self._lacking(outpost) for outpost in self._outposts if not outpost.done]

    def _lacking(self, outpost: Outpost) -> str:
        return (
            f"The tracker '{outpost.name}' does not have all of run {self._run_id}: {outpost.trouble.rstrip('.')}. Send"
            f" the rest with 'boosters-eval track {self._run_id} --to {outpost.name}'."
        )

    def _warn(self, outpost: Outpost) -> None:
        if outpost.trouble and not self._told.get(outpost.name):
            text = f"The tracker '{outpost.name}' failed and is tried again: {outpost.trouble}"
            warnings.warn(text, BoostersEvalWarning, stacklevel=3)
            self._told[outpost.name] = outpost.trouble
