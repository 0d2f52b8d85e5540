"""The program `gate`: from a request to a decision, which is written to a file and told to people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.text import count_of
from boosters_eval.programs.baseline.document import tell_apart
from boosters_eval.programs.gate.decision import decide_run, decide_scores, find_default_path
from boosters_eval.programs.gate.model import GateRules
from boosters_eval.reports.numbers import number
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.gate.model import BenchRunReport, GateDecision
    from boosters_eval.programs.gate.request import GateRequest

_WORST = 10  # cases below the threshold that are listed


def decide_and_write(request: GateRequest) -> GateFindings:
    """Decide whether a version may be released, and write the decision: it is meant to be verified."""
    decision = decide(request)
    path = request.output or find_default_path(decision, request.home)
    write_atomically(path, decision.text())
    return GateFindings(decision, path, as_json=request.json)


def decide(request: GateRequest) -> GateDecision:
    rules = GateRules(
        tier=request.tier,
        threshold=request.threshold,
        min_cases=request.min_cases,
        held_out=not request.no_held_out,
        changed_parameters=request.allow_changed_parameters,
        low_coverage=request.allow_low_coverage,
        flaky=request.allow_flaky,
    )
    if request.run is None or request.baseline is None:
        assert request.scores is not None  # noqa: S101 (for the type checker: the request is checked)
        return decide_scores(request.scores, rules)
    library = label_of(request.library)
    return decide_run(
        request.run, request.baseline, rules, library=library, held_out=request.held_out, home=request.home
    )


@dataclass(frozen=True)
class GateFindings(Findings):
    """A decision, and where it was written."""

    decision: GateDecision
    path: Path
    as_json: bool = False

    @property
    def exit_code(self) -> int:
        return self.decision.exit_code

    def show(self, screen: Screen) -> None:
        if self.as_json:
            screen.json(self.decision.model_dump(mode="json"))
        elif not screen.quiet:
            _show(self.decision, screen)

    def conclude(self, screen: Screen) -> None:
        if not screen.quiet:
            screen.note(f"Written: {self.path}")


def _show(decision: GateDecision, screen: Screen) -> None:
    report, rules = decision.report, decision.rules
    spread = "" if report.stddev is None else f", standard deviation {number(report.stddev)}"
    held_out, level = report.lower_bound_95_held_out, decision.coverage.level
    alike, noun = report.intraclass_correlation, report.unit_noun
    lines = {
        "lower bound (95 %)": f"{tell_apart(report.lower_bound_95, rules.threshold)[0]} on {_counted(report)}",
        "of the held-out": "none"
        if held_out is None
        else f"{tell_apart(held_out, rules.threshold)[0]} ({report.n_held_out} of {report.n_units} {noun}s)",
        "threshold covered": "-" if level is None else f"at {100 * level:.0f} %",
        "intraclass correlation": "-" if alike is None else f"{alike:.2f}",
        "flaky cells": f"{report.n_flaky} ({rules.flaky} allowed)" if report.n_flaky else "none",
        "for people only": f"mean {number(report.mean_score)}{spread}",
    }
    screen.say(f"{'PROMOTED' if decision.promoted else 'HELD'}: tier {rules.tier}, threshold {rules.threshold}")
    for label, value in lines.items():
        screen.say(f"  {label:<24}{value}")
    for sentence in decision.objections:
        screen.say(f"  {sentence}")
    worst = sorted((case for case in report.per_case if case.score < rules.threshold), key=lambda case: case.score)
    for case in worst[:_WORST]:
        screen.say(f"  {case.case_id}: {number(case.score)}{f' ({case.reason})' if case.reason else ''}")
    if len(worst) > _WORST:
        screen.say(f"  and {len(worst) - _WORST} more cases below the threshold")
    for sentence in report.notes:
        screen.note(sentence)


def _counted(report: BenchRunReport) -> str:
    counted = count_of(report.n_units, report.unit_noun)
    return counted if report.n_cases == report.n_units else f"{counted} ({report.n_cases} cases)"
