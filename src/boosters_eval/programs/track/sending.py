"""The program `track`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.findings import Findings
from boosters_eval.core.saying import tell
from boosters_eval.tracking import choose_trackers, send_run

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.track.request import TrackRequest


class SentRun(Findings):
    """A run that its trackers have; they have told of it."""

    def show(self, screen: Screen) -> None:
        """Nothing more."""


def send(request: TrackRequest) -> SentRun:
    """Send an earlier run to trackers. What they have already is not sent again."""
    trackers = choose_trackers(request.to, "to")
    send_run(request.reference, trackers, request.home, timeout=request.timeout, say=request.say or tell)
    return SentRun()
