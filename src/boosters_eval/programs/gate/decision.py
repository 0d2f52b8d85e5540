"""The decision: made from cases and rules, written with everything it rests on, and computed again to verify it."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import BoostersEvalError, ConfigError, FileFormatError
from boosters_eval.core.files import check_format, compute_digest, load_json, read_text, write_atomically
from boosters_eval.core.files import find_home as run_home
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.core.terms import speaking_of
from boosters_eval.core.text import count_of, join_words
from boosters_eval.engine.runs import find_run, load_verified
from boosters_eval.programs.baseline.audit import BaselineAudit, audit_baseline, find_beginning
from boosters_eval.programs.baseline.model import check_recorded
from boosters_eval.programs.benchmark.policy import ReleasePolicy
from boosters_eval.programs.benchmark.runs import BENCHMARK, collect
from boosters_eval.programs.gate.cases import (
    check_directions,
    check_held_out,
    count_flaky,
    describe_changed_work,
    is_results,
    list_planned,
    read_references,
    read_scores,
    score_run,
)
from boosters_eval.programs.gate.model import (
    KIND,
    BenchRunReport,
    Coverage,
    GateDecision,
    GateError,
    GateRules,
    RunSource,
    ScoresSource,
)
from boosters_eval.programs.gate.request import DEFAULT_TIER, threshold_is_required
from boosters_eval.runners.builds.reference import label_of
from boosters_eval.stats.bootstrap import (
    MIN_CASES,
    MOSTLY,
    compute_lower_bound_95,
    intraclass_correlation,
    largest_lump,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.gate.model import Case
    from boosters_eval.programs.gate.request import GateRequest


# The warnings of the bound are in the report's notes; without a handler, logging would print them again.
logging.getLogger("boosters_eval").addHandler(logging.NullHandler())


def decide_and_write(request: GateRequest) -> GateFindings:
    """Decide whether a version may be released, and write the decision: it is meant to be verified."""
    decision = decide(request)
    path = request.output or find_default_path(decision, request.home)
    write_atomically(path, decision.text())
    return GateFindings(decision, path, as_json=request.json)


def decide(request: GateRequest) -> GateDecision:
    policy = ReleasePolicy()
    if request.baseline is not None:
        check_recorded(request.baseline)
    if request.run is not None:
        folder = find_run(request.run, request.home, kind=BENCHMARK)
        policy = _read_terms(folder.plan(folder.attempt or folder.attempts()[-1]))
    tier: Any = request.tier or policy.tier or DEFAULT_TIER
    threshold = policy.threshold if request.threshold is None else request.threshold
    if threshold is None:
        raise threshold_is_required(tier)
    rules = GateRules(
        tier=tier,
        threshold=threshold,
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
    held_out = request.held_out or (() if request.no_held_out else policy.held_out or ())
    return decide_run(request.run, request.baseline, rules, library=library, held_out=held_out, home=request.home)


def _read_terms(plan: Plan) -> ReleasePolicy:
    return ReleasePolicy() if plan.policy is None else ReleasePolicy.model_validate(plan.policy)


def _list_later(plan: Plan, rules: GateRules, held_out: Sequence[str]) -> tuple[str, ...]:
    """The terms that were not stated before the run, or are not what was stated."""
    policy = _read_terms(plan)
    kept = None if policy.held_out is None else tuple(sorted(set(policy.held_out)))
    asked = tuple(held_out) if rules.held_out else ()
    stated = {"tier": policy.tier, "threshold": policy.threshold, "held-out data sets": kept}
    now = {"tier": rules.tier, "threshold": rules.threshold, "held-out data sets": asked}
    return tuple(
        name if known is None else f"{name} (stated: {join_words(known) if isinstance(known, tuple) else known})"
        for name, known in stated.items()
        if known != now[name]
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
            self.decision.show(screen)

    def conclude(self, screen: Screen) -> None:
        if not screen.quiet:
            screen.note(f"Written: {self.path}")


def make_report(
    cases: Iterable[Case],
    *,
    run_id: str,
    library: str | None = None,
    versions: dict[str, str] | None = None,
    notes: Iterable[str] = (),
    n_changed: int = 0,
    n_flaky: int = 0,
    of_itself: bool = False,
) -> BenchRunReport:
    """Average the cases of each unit and bound the mean of the units; the bound is seeded by the run id."""
    ordered = tuple(sorted(cases, key=lambda case: case.case_id))
    by_unit: dict[str, list[float]] = {}
    for case in ordered:
        by_unit.setdefault(case.unit, []).append(case.score)
    held_out = {case.unit for case in ordered if case.class_ == "held_out"}
    per_unit = {unit: fmean(scores) for unit, scores in sorted(by_unit.items())}
    # By value: the bound depends on the order, and a name must not move it.
    scores = sorted(per_unit.values())
    apart = sorted(score for unit, score in per_unit.items() if unit in held_out)
    mean = math.fsum(scores) / len(scores) if scores else 0.0
    report = BenchRunReport(
        run_id=run_id,
        library=library,
        per_case=ordered,
        per_unit=per_unit,
        n_cases=len(ordered),
        n_units=len(per_unit),
        n_held_out=len(held_out),
        intraclass_correlation=intraclass_correlation(list(by_unit.values())),
        mean_score=mean,
        stddev=math.sqrt(math.fsum((s - mean) * (s - mean) for s in scores) / (len(scores) - 1))
        if len(scores) > 1
        else None,
        # The only signal of the gate (docs/adr/0002); mean and stddev are reported for people.
        lower_bound_95=compute_lower_bound_95(scores, run_id=run_id),
        lower_bound_95_held_out=compute_lower_bound_95(apart, run_id=run_id) if apart else None,
        n_changed=n_changed,
        n_flaky=n_flaky,
        of_itself=of_itself,
        versions=dict(sorted((versions or {}).items())),
    )
    return report.replace(notes=(*notes, *_remarks(report)))


def _remarks(report: BenchRunReport) -> list[str]:
    """What a reader of the bound should know about the scores."""
    noun, count = report.unit_noun, report.n_units
    if count < MIN_CASES:
        return [f"{MIN_CASES} {noun}s are the fewest that a bound can be computed from; with {count} it is 0."]
    value, alike = largest_lump(list(report.per_unit.values()))
    if alike <= MOSTLY * count:
        return []
    return [
        f"{alike} of {count} {noun}s score {value:g}: scores that are all alike do not show how bad a rare loss is."
    ]


def decide_run(
    run: str,
    baseline: Path,
    rules: GateRules,
    *,
    library: str = "boosters",
    held_out: Sequence[str] = (),
    home: Path | None = None,
) -> GateDecision:
    """Decide on the latest attempt of a run, by its id, the beginning of it, its name, or `last`."""
    quoted = read_references(baseline, library)
    audit = _vouch(baseline, home)
    folder = find_run(run, home, kind=BENCHMARK)
    source = RunSource(
        run_id=folder.run_id,
        attempt=folder.attempt or folder.attempts()[-1],
        journal_digest="",
        library=quoted.library,
        held_out=tuple(sorted(set(held_out))),
        baseline=str(baseline),
        baseline_sha256=quoted.sha256,
        references=quoted.references,
        baseline_runs=quoted.runs,
        baseline_unchecked=audit.unchecked,
    )
    return _decide_run(source, rules, versions=None, home=home)


def _vouch(file: Path, home: Path | None) -> BaselineAudit:
    """Refuse a baseline that is not what was recorded, and tell what of it could not be checked."""
    if is_results(file):
        return BaselineAudit((), ("it is a results file, which names no sealed run",), ())
    audit = audit_baseline(file, home)
    if audit.faults:
        raise GateError(f"{file} cannot serve as a baseline: {audit.faults[0]}.")
    return audit


def decide_scores(path: Path, rules: GateRules) -> GateDecision:
    cases, digest = read_scores(path)
    return _decide_scores(cases, rules, ScoresSource(file=str(path), file_sha256=digest), versions=_tool_versions())


def find_default_path(decision: GateDecision, home: Path | None = None) -> Path:
    """Beside the runs, named after what was decided on; a name from outside is reduced to harmless characters."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", decision.report.library or "scores").lstrip(".")
    return run_home(home) / "gate" / f"{decision.report.run_id[:16]}-{name}-{decision.rules.tier}.json"


def is_decision(path: Path) -> bool:
    """Whether a file looks like one, for commands that take several kinds."""
    try:
        raw = load_json(read_text(path), str(path))
    except BoostersEvalError:
        return False
    return isinstance(raw, dict) and raw.get("kind") == KIND


def verify_decision(
    path: Path, *, home: Path | None = None, baseline: Path | None = None, scores: Path | None = None
) -> str:
    """Compute a decision again from the journal, or from its scores: empty when the bytes are the same.

    The tools' versions are taken as recorded: they say what decided then, not what verifies now. What the decision
    quotes of the baseline, or of the scores, is compared with the file that is given, or else with the one it names.
    """
    text = read_text(path)
    decision = _load(path, text)
    file = _quoted_file(decision, baseline, scores)
    if file and not _quotes(decision, file):
        return f"what it quotes is not what {file} holds"
    if file and isinstance(decision.source, RunSource):
        unproven = _vouch(file, home).unproven
        if decision.source.baseline_unchecked[: len(unproven)] != unproven:
            return f"source.baseline_unchecked does not say what nothing vouches for in {file}"
    source, versions = decision.source, decision.report.versions
    if isinstance(source, RunSource):
        again = _decide_run(source, decision.rules, versions=versions, home=home)
    else:
        again = _decide_scores(decision.report.per_case, decision.rules, source, versions=versions)
    return "" if again.text() == text else _difference(decision, again)


def describe_verification(
    path: Path, *, home: Path | None = None, baseline: Path | None = None, scores: Path | None = None
) -> str:
    """What `verify_decision` could check the decision against, in words; nothing outside it vouches for its rules."""
    decision = _load(path, read_text(path))
    rules = decision.rules
    said = f"rules (tier {rules.tier}, threshold {rules.threshold}{rules.allowed}) and versions of tools as quoted"
    file = _quoted_file(decision, baseline, scores)
    if file:
        open_ends = _vouch(file, home).unchecked if isinstance(decision.source, RunSource) else ()
        return "; ".join((said, f"compared with {file}", *(f"not checked: {end}" for end in open_ends)))
    what = "baseline" if isinstance(decision.source, RunSource) else "scores"
    return f"{said}; {what} as quoted, not compared with the file"


def _quoted_file(decision: GateDecision, baseline: Path | None, scores: Path | None) -> Path | None:
    """The file that was given, or the one that the decision names where it is still there."""
    source = decision.source
    given, other = (baseline, scores) if isinstance(source, RunSource) else (scores, baseline)
    if other:
        raise ConfigError(f"The decision was made on a {source.kind}: {other} has nothing to do with it.")
    named = Path(source.baseline if isinstance(source, RunSource) else source.file)
    return given or (named if named.is_file() else None)


def _quotes(decision: GateDecision, file: Path) -> bool:
    source = decision.source
    if isinstance(source, RunSource):
        quoted = read_references(file, source.library)
        return quoted == (source.references, source.baseline_sha256, source.baseline_runs, source.library)
    cases, digest = read_scores(file)
    return (tuple(sorted(cases, key=lambda case: case.case_id)), digest) == (
        decision.report.per_case,
        source.file_sha256,
    )


def _decide_run(
    source: RunSource, rules: GateRules, *, versions: dict[str, str] | None, home: Path | None
) -> GateDecision:
    check_directions(source.references)
    found = load_verified(find_run(source.run_id, home), source.attempt)  # deciding begins with verifying
    run = collect(found)
    taken = sum(result.taken_from is not None for result in run.results if result.library == source.library)
    if taken:
        raise GateError(f"{count_of(taken, 'cell')} of the run were taken over from earlier runs: train them anew.")
    cases, notes = score_run(
        run, source.library, source.references, held_out=source.held_out, planned=list_planned(found.plan)
    )
    check_held_out(cases)
    changed = describe_changed_work(run, source.library, source.references)
    n_flaky, flaky = count_flaky(run, source.library, source.references)
    used = {r.library_version for r in run.results if r.library == source.library and r.library_version}
    mine = {source.library: ", ".join(sorted(used)) or "unknown"}
    versions = {**(_tool_versions() if versions is None else versions), **mine}
    report = make_report(
        cases,
        run_id=source.run_id,
        library=source.library,
        versions=versions,
        notes=[
            *notes,
            *changed,
            *flaky,
            *(f"Not checked of the baseline: {end}." for end in source.baseline_unchecked),
        ],
        n_changed=len(changed),
        n_flaky=n_flaky,
        of_itself=_of_itself(source, found),
    )
    later = _list_later(found.plan, rules, source.held_out)
    return _decision(report, rules, source.replace(journal_digest=found.digest, chosen_later=later))


def _of_itself(source: RunSource, found: Run) -> bool:
    """Whether any of the baseline was recorded from this attempt: only one that began later can be another one."""
    if source.run_id not in source.baseline_runs:
        return False
    began = find_beginning(found)
    try:
        return began is None or began <= datetime.fromisoformat(str(source.baseline_runs[source.run_id]))
    except (TypeError, ValueError):  # a time is missing, or has no zone
        return True


def _decide_scores(
    cases: Sequence[Case], rules: GateRules, source: ScoresSource, *, versions: dict[str, str]
) -> GateDecision:
    check_held_out(cases)
    return _decision(make_report(cases, run_id=_content_id(cases), versions=versions), rules, source)


def _decision(report: BenchRunReport, rules: GateRules, source: RunSource | ScoresSource) -> GateDecision:
    coverage = Coverage.of(report, rules.threshold)
    with speaking_of({}):  # the file has the same bytes, whoever asks
        objections = rules.objections(report, coverage)
    return GateDecision(
        promoted=not objections,
        objections=objections,
        rules=rules,
        min_cases=rules.needed,
        coverage=coverage,
        report=report,
        source=source,
    )


def _load(path: Path, text: str) -> GateDecision:
    raw = load_json(text, str(path))
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise FileFormatError(f"{path} is not a gate decision.")
    check_format(raw.get("schema_version"), str(path), "a gate decision")
    try:
        return GateDecision.model_validate(raw)
    except ConfigError as error:
        raise FileFormatError(f"{path} is not a valid gate decision: {error}") from None


def _difference(recorded: GateDecision, again: GateDecision) -> str:
    """The first thing that is not as it was."""
    for part in ("source", "rules", "report", "objections", "promoted", "min_cases", "coverage"):
        before, now = getattr(recorded, part), getattr(again, part)
        if before == now:
            continue
        for name in type(before).model_fields if isinstance(before, Model) else ():
            if getattr(before, name) != getattr(now, name):
                return f"{part}.{name} is not what the recorded inputs give"
        return f"{part} is not what the recorded inputs give"
    return "the file was edited: its content is the same, its bytes are not"


def _content_id(cases: Iterable[Case]) -> str:
    """A run id for scores that come from elsewhere: a digest of the scores of each unit, and of nothing else.

    Nobody can choose a lucky seed, and what cases are called or how they are ordered moves nothing.
    """
    by_unit: dict[str, list[str]] = {}
    for case in cases:
        by_unit.setdefault(case.unit, []).append(case.score.hex())
    content = sorted(sorted(scores) for scores in by_unit.values())
    return compute_digest(json.dumps(content), 32)


def _tool_versions() -> dict[str, str]:
    return {
        "boosters_eval": version("boosters-eval"),
        "numpy": np.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }
