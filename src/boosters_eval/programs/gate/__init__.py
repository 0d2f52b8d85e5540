"""May this version be released? The gate keys on the lower bound of the quality that it retains (ADR-0002)."""

from __future__ import annotations

from boosters_eval.programs.gate.cases import cases_of_run, read_references, read_scores
from boosters_eval.programs.gate.decision import (
    decide_run,
    decide_scores,
    default_path,
    is_decision,
    make_report,
    verified_against,
    verify_decision,
    write_decision,
)
from boosters_eval.programs.gate.model import TIERS, BenchRunReport, Case, Coverage, GateDecision, GateError, GateRules

__all__ = [
    "TIERS",
    "BenchRunReport",
    "Case",
    "Coverage",
    "GateDecision",
    "GateError",
    "GateRules",
    "cases_of_run",
    "decide_run",
    "decide_scores",
    "default_path",
    "is_decision",
    "make_report",
    "read_references",
    "read_scores",
    "verified_against",
    "verify_decision",
    "write_decision",
]
