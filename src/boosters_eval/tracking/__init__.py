"""Trackers: a run is sent to MLflow, W&B or a tracker of one's own, while it goes on or later."""

from boosters_eval.tracking.earlier import send_run
from boosters_eval.tracking.observer import TrackingObserver, chosen_trackers
from boosters_eval.tracking.tracker import (
    TRACKERS,
    CompetitorEnd,
    TrackedCell,
    TrackedCompetitor,
    TrackedEnd,
    TrackedRun,
    Tracker,
    TrackingStatus,
)

__all__ = [
    "TRACKERS",
    "CompetitorEnd",
    "TrackedCell",
    "TrackedCompetitor",
    "TrackedEnd",
    "TrackedRun",
    "Tracker",
    "TrackingObserver",
    "TrackingStatus",
    "chosen_trackers",
    "send_run",
]
