"""The decision: made from cases and rules, written with everything it rests on, and computed again to verify it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.benchmark.fit import identity_of, spec_of
from boosters_eval.benchmark.records import Record
from boosters_eval.benchmark.running import collect
from boosters_eval.core.errors import BoostersEvalError, ConfigError, FileFormatError, RunError
from boosters_eval.core.files import load_json, read_text, write_atomically
from boosters_eval.core.home import home as run_home
from boosters_eval.engine.journal import read
from boosters_eval.engine.runs import find_run
from boosters_eval.gate.cases import cases_of_run, changed_work, read_references, read_scores
from boosters_eval.gate.model import (
    KIND,
    SCHEMA_VERSION,
    BenchRunReport,
    GateDecision,
    GateRules,
    RunSource,
    ScoresSource,
)
from boosters_eval.stats.bootstrap import MIN_CASES, compute_lower_bound_95, mostly_binary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.benchmark.results import ResultCollection
    from boosters_eval.engine.cell import Cell
    from boosters_eval.gate.model import Case


def make_report(
    cases: Iterable[Case],
    *,
    run_id: str,
    library: str | None = None,
    versions: dict[str, str] | None = None,
    notes: Iterable[str] = (),
    n_changed: int = 0,
) -> BenchRunReport:
    """Put the cases in order and bound their mean; the bound is seeded by the run id."""
    ordered = tuple(sorted(cases, key=lambda case: case.case_id))
    scores = [case.score for case in ordered]
    held_out = [case.score for case in ordered if case.class_ == "held_out"]
    mean = math.fsum(scores) / len(scores) if scores else 0.0
    said = list(notes)
    if len(ordered) < MIN_CASES:
        said.append(f"Fewer than {MIN_CASES} cases bound nothing: the bound is 0 (ADR-0002).")
    if mostly_binary(scores):
        said.append("More than 80 % of the scores are 0 or 1, where the bound covers less than it says (ADR-0002).")
    return BenchRunReport(
        run_id=run_id,
        library=library,
        per_case=ordered,
        n_cases=len(ordered),
        n_held_out=len(held_out),
        mean_score=mean,
        stddev=math.sqrt(math.fsum((s - mean) * (s - mean) for s in scores) / (len(scores) - 1))
        if len(scores) > 1
        else None,
        # lower_bound_95 is the only gate signal (ADR-0002); mean and stddev are reported for people.
        lower_bound_95=compute_lower_bound_95(scores, run_id=run_id),
        lower_bound_95_held_out=compute_lower_bound_95(held_out, run_id=run_id) if held_out else None,
        n_changed=n_changed,
        versions=dict(sorted((versions or {}).items())),
        notes=tuple(said),
    )


def decide_run(
    run: str,
    baseline: Path,
    rules: GateRules,
    *,
    library: str = "boosters",
    held_out: Sequence[str] = (),
    home: Path | None = None,
) -> GateDecision:
    """Decide on the latest attempt of a run, by its id, the beginning of it, or `last`."""
    references, digest = read_references(baseline, library)
    folder = find_run(run, home)
    source = RunSource(
        run_id=folder.run_id,
        attempt=folder.attempts()[-1],
        journal_digest="",
        library=library,
        held_out=tuple(sorted(set(held_out))),
        baseline=str(baseline),
        baseline_sha256=digest,
        references=references,
    )
    return _decide_run(source, rules, versions=None, home=home)


def decide_scores(path: Path, rules: GateRules) -> GateDecision:
    """Decide on a file of scores."""
    cases, digest = read_scores(path)
    report = make_report(cases, run_id=_content_id(cases), versions=_tool_versions())
    return _decision(report, rules, ScoresSource(file=str(path), file_sha256=digest))


def write_decision(decision: GateDecision, path: Path) -> None:
    """Write it whole or not at all."""
    write_atomically(path, decision.text())


def default_path(decision: GateDecision, home: Path | None = None) -> Path:
    """Beside the runs, named after what was decided on; a name from outside is reduced to harmless characters."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", decision.report.library or "scores").lstrip(".")
    return run_home(home) / "gate" / f"{decision.report.run_id[:16]}-{name}-{decision.rules.tier}.json"


def is_decision(path: Path) -> bool:
    """Whether a file looks like one, for commands that take several kinds."""
    try:
        raw = json.loads(read_text(path))
    except (ValueError, RecursionError, BoostersEvalError):
        return False
    return isinstance(raw, dict) and raw.get("kind") == KIND


def verify_decision(
    path: Path, *, home: Path | None = None, baseline: Path | None = None, scores: Path | None = None
) -> str:
    """Compute a decision again from the journal, or from its scores: empty when the bytes are the same.

    The versions are taken as recorded: they say what decided then, not what verifies now. What the decision quotes
    of the baseline, or of the scores, is compared with the file that is given, or else with the one it names.
    """
    text = read_text(path)
    decision = _load(path, text)
    versions = decision.report.versions
    file = _quoted_file(decision, baseline, scores)
    if file and not _quotes(decision, file):
        return f"what it quotes is not what {file} holds"
    if isinstance(decision.source, RunSource):
        again = _decide_run(decision.source, decision.rules, versions=versions, home=home)
    else:
        cases = decision.report.per_case
        report = make_report(cases, run_id=_content_id(cases), versions=versions)
        again = _decision(report, decision.rules, decision.source)
    if again.text() == text:
        return ""
    return _difference(decision, again)


def verified_against(path: Path, *, baseline: Path | None = None, scores: Path | None = None) -> str:
    """What `verify_decision` could check the decision against, in words; nothing outside it vouches for its rules."""
    decision = _load(path, read_text(path))
    rules = decision.rules
    said = f"tier {rules.tier} and threshold {rules.threshold} as quoted"
    file = _quoted_file(decision, baseline, scores)
    if file:
        return f"{said}; compared with {file}"
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
        return read_references(file, source.library) == (source.references, source.baseline_sha256)
    cases, digest = read_scores(file)
    return (tuple(sorted(cases, key=lambda case: case.case_id)), digest) == (
        decision.report.per_case,
        source.file_sha256,
    )


def _decide_run(
    source: RunSource, rules: GateRules, *, versions: dict[str, str] | None, home: Path | None
) -> GateDecision:
    folder = find_run(source.run_id, home)
    path = folder.journal_path(source.attempt)
    reading = read(path)
    if reading.damage:
        raise RunError(f"{path} is damaged: {reading.damage}. Nothing is decided from it.")
    plan = folder.plan()
    run = collect(folder.run(plan, source.attempt, reading))
    cases, notes = cases_of_run(
        run, source.library, source.references, held_out=source.held_out, planned=map(_record, plan.cells)
    )
    changed = changed_work(run, source.library, source.references)
    report = make_report(
        cases,
        run_id=source.run_id,
        library=source.library,
        versions=_run_versions(run, source.library) if versions is None else versions,
        notes=[*notes, *changed],
        n_changed=len(changed),
    )
    return _decision(report, rules, source.replace(journal_digest=reading.last))


def _record(cell: Cell) -> Record:
    seed, fold = cell.repeat
    return Record(**identity_of(spec_of(cell)), library=cell.target, seed=seed, fold=fold)


def _decision(report: BenchRunReport, rules: GateRules, source: RunSource | ScoresSource) -> GateDecision:
    objections = rules.objections(
        lower_bound_95=report.lower_bound_95,
        n_cases=report.n_cases,
        n_held_out=report.n_held_out,
        n_changed=report.n_changed,
    )
    return GateDecision(
        promoted=not objections,
        objections=objections,
        rules=rules,
        min_cases=rules.needed,
        report=report,
        source=source,
    )


def _load(path: Path, text: str) -> GateDecision:
    raw = load_json(text, str(path))
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise FileFormatError(f"{path} is not a gate decision.")
    schema = raw.get("schema_version")
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        raise FileFormatError(f"{path} has schema version {schema}, this program reads up to {SCHEMA_VERSION}.")
    try:
        return GateDecision.model_validate(raw)
    except ConfigError as error:
        raise FileFormatError(f"{path} is not a valid gate decision: {error}") from None


def _difference(recorded: GateDecision, again: GateDecision) -> str:
    """The first thing that is not as it was."""
    for part in ("source", "rules", "report", "objections", "promoted", "min_cases"):
        before, now = getattr(recorded, part), getattr(again, part)
        if before == now:
            continue
        for name in type(before).model_fields if hasattr(type(before), "model_fields") else ():
            if getattr(before, name) != getattr(now, name):
                return f"{part}.{name} is not what the recorded inputs give"
        return f"{part} is not what the recorded inputs give"
    return "the file was edited: its content is the same, its bytes are not"


def _content_id(cases: Iterable[Case]) -> str:
    """A run id for scores that come from elsewhere: a digest, so that nobody can choose a lucky seed."""
    content = sorted([case.case_id, case.score.hex(), case.class_ or ""] for case in cases)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _tool_versions() -> dict[str, str]:
    import numpy as np  # noqa: PLC0415 (its version is part of the record)

    return {
        "boosters_eval": version("boosters-eval"),
        "numpy": np.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def _run_versions(run: ResultCollection, library: str) -> dict[str, str]:
    found = {r.library_version for r in run.results if r.library == library and r.library_version}
    return {**_tool_versions(), library: ", ".join(sorted(found)) or "unknown"}
