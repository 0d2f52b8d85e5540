"""Trackers: they send a run to MLflow, W&B or your own tracker, while it goes on or later."""

from boosters_eval.tracking.tracker import Tracker as Tracker
