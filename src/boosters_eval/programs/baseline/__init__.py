"""Baselines: what was good once, recorded in a file, and whether it still is."""

from __future__ import annotations

from boosters_eval.programs.baseline.check import check, is_regression
from boosters_eval.programs.baseline.findings import Check, CheckRules, Finding, Status
from boosters_eval.programs.baseline.model import Baseline, BaselineResult, MetricStats, load_baseline, save_baseline
from boosters_eval.programs.baseline.snapshot import Snapshot, are_same_outcomes, make_baseline
from boosters_eval.programs.baseline.sources import read_baseline

__all__ = [
    "Baseline",
    "BaselineResult",
    "Check",
    "CheckRules",
    "Finding",
    "MetricStats",
    "Snapshot",
    "Status",
    "are_same_outcomes",
    "check",
    "is_regression",
    "load_baseline",
    "make_baseline",
    "read_baseline",
    "save_baseline",
]
