"""Trackers: they send a run to MLflow, W&B or your own tracker, while it goes on or later."""

from boosters_eval.tracking.observer import TrackingObserver, choose_trackers, send_run
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
    "choose_trackers",
    "send_run",
]
