"""Decisions of schema version 1, computed again by the rules of their time. Nothing new is decided by them.

They took every cell for a case of its own, seeded the bound of a scores file by the names of its cases too, and knew
neither coverage nor flaky cells. Their sentences are part of the bytes that `verify` compares.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen
from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.programs.baseline.render import apart
from boosters_eval.programs.benchmark.running import collect
from boosters_eval.programs.gate.cases import cases_of_run, changed_work, planned_records
from boosters_eval.programs.gate.model import MIN_HELD_OUT, TIERS, Case, RunSource, ScoresSource, there_are
from boosters_eval.stats.bootstrap import MIN_CASES, compute_lower_bound_95, mostly_binary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.engine.folder import Run
    from boosters_eval.programs.gate.cases import Quotation

_LATER: dict[str, Any] = {  # the fields that version 1 did not have
    "report": {"per_case": {"__all__": {"dataset"}}},
    "source": {"references": {"__all__": {"dataset"}}, "baseline_run_id": True, "baseline_at": True},
}


class RulesOfVersion1(Model):
    """What a promotion needed."""

    tier: Literal["bronze", "silver", "gold"] = "bronze"
    threshold: Annotated[float, Ge(0), Le(1)]
    min_cases: Annotated[int, Ge(TIERS["bronze"])] | None = None
    held_out: bool = True
    changed_parameters: bool = False

    @property
    def needed(self) -> int:
        """The fewest cases."""
        return TIERS[self.tier] if self.min_cases is None else self.min_cases

    def objections(self, report: ReportOfVersion1) -> tuple[str, ...]:
        """Why there was no promotion."""
        found = []
        if not report.lower_bound_95 >= self.threshold:
            bound, _ = apart(report.lower_bound_95, self.threshold)
            found.append(f"The lower bound {bound} is below the threshold {self.threshold}.")
        if report.n_cases < self.needed:
            found.append(f"{there_are(report.n_cases, 'case')}; tier {self.tier} needs {self.needed}.")
        if self.held_out and report.n_held_out < MIN_HELD_OUT:
            have = there_are(report.n_held_out, "held-out case")
            found.append(f"{have}; {MIN_HELD_OUT} are needed (or say --no-held-out).")
        if report.n_changed and not self.changed_parameters:
            have = there_are(report.n_changed, "config")
            found.append(f"{have} with other parameters than the baseline's (or say --allow-changed-parameters).")
        return tuple(found)


class ReportOfVersion1(Model):
    """The bound of the cases, each for itself."""

    schema_version: Literal[1] = 1
    run_id: str
    library: str | None = None
    per_case: Annotated[tuple[Case, ...], MinLen(1)]
    n_cases: int
    n_held_out: int
    mean_score: float
    stddev: float | None
    lower_bound_95: float
    lower_bound_95_held_out: float | None
    n_changed: int = 0
    versions: dict[str, str]
    notes: tuple[str, ...] = ()


class DecisionOfVersion1(Model):
    """A decision as it was written."""

    schema_version: Literal[1] = 1
    kind: Literal["boosters-eval gate decision"] = "boosters-eval gate decision"
    promoted: bool
    objections: tuple[str, ...]
    rules: RulesOfVersion1
    min_cases: int
    report: ReportOfVersion1
    source: Annotated[RunSource | ScoresSource, Field(discriminator="kind")]

    def text(self) -> str:
        """The file's content."""
        return self.model_dump_json(indent=1, exclude=_LATER) + "\n"


def quoted(now: Quotation) -> Quotation:
    """What version 1 would have quoted of the same file."""
    references = tuple(reference.replace(dataset="") for reference in now.references)
    return now._replace(references=references, run_id=None, at=None)


def decide_run(source: RunSource, rules: RulesOfVersion1, found: Run, versions: dict[str, str]) -> DecisionOfVersion1:
    """The decision on a run, again."""
    run = collect(found)
    cases, notes = cases_of_run(
        run, source.library, source.references, held_out=source.held_out, planned=planned_records(found.plan)
    )
    changed = changed_work(run, source.library, source.references)
    report = _report(
        [case.replace(dataset="") for case in cases],
        run_id=source.run_id,
        library=source.library,
        versions=versions,
        notes=[*notes, *changed],
        n_changed=len(changed),
    )
    return _decision(report, rules, source.replace(journal_digest=found.digest))


def decide_scores(
    cases: Iterable[Case], rules: RulesOfVersion1, source: ScoresSource, versions: dict[str, str]
) -> DecisionOfVersion1:
    """The decision on a file of scores, again."""
    cases = tuple(cases)
    content = sorted([case.case_id, case.score.hex(), case.class_ or ""] for case in cases)
    run_id = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]
    return _decision(_report(cases, run_id=run_id, library=None, versions=versions), rules, source)


def _report(
    cases: Iterable[Case],
    *,
    run_id: str,
    library: str | None,
    versions: dict[str, str],
    notes: Iterable[str] = (),
    n_changed: int = 0,
) -> ReportOfVersion1:
    ordered = tuple(sorted(cases, key=lambda case: case.case_id))
    scores = [case.score for case in ordered]
    held_out = [case.score for case in ordered if case.class_ == "held_out"]
    mean = math.fsum(scores) / len(scores)
    said = list(notes)
    if len(ordered) < MIN_CASES:
        said.append(f"Fewer than {MIN_CASES} cases bound nothing: the bound is 0 (ADR-0002).")
    if mostly_binary(scores):
        said.append("More than 80 % of the scores are 0 or 1, where the bound covers less than it says (ADR-0002).")
    square = math.fsum((score - mean) * (score - mean) for score in scores)
    return ReportOfVersion1(
        run_id=run_id,
        library=library,
        per_case=ordered,
        n_cases=len(ordered),
        n_held_out=len(held_out),
        mean_score=mean,
        stddev=math.sqrt(square / (len(scores) - 1)) if len(scores) > 1 else None,
        lower_bound_95=compute_lower_bound_95(scores, run_id=run_id),
        lower_bound_95_held_out=compute_lower_bound_95(held_out, run_id=run_id) if held_out else None,
        n_changed=n_changed,
        versions=dict(sorted(versions.items())),
        notes=tuple(said),
    )


def _decision(report: ReportOfVersion1, rules: RulesOfVersion1, source: RunSource | ScoresSource) -> DecisionOfVersion1:
    objections = rules.objections(report)
    return DecisionOfVersion1(
        promoted=not objections,
        objections=objections,
        rules=rules,
        min_cases=rules.needed,
        report=report,
        source=source,
    )
