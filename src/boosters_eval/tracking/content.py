"""What is sent of a run: everything in docs/tracking.md, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.core.repeat import Repeat
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.kinds import kind_of_run
from boosters_eval.tracking.tracker import (
    CompetitorEnd,
    TrackedCell,
    TrackedCompetitor,
    TrackedRun,
    TrackingStatus,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.kinds import Competing, RunKind
    from boosters_eval.engine.outcome import Outcome
    from boosters_eval.engine.plan import Plan

CONTENT_VERSION = 1  # another one is sent again


@dataclass(frozen=True)
class TrackedContent:
    """All that there is to send of a run so far."""

    run: TrackedRun
    status: TrackingStatus
    competitors: tuple[TrackedCompetitor, ...]
    cells: Mapping[str, tuple[TrackedCell, ...]]  # by competitor
    ends: Mapping[str, CompetitorEnd]  # by competitor; none while the run goes on


def content_of(run: Run, folder: RunFolder, *, sealed: bool, ended: bool) -> TrackedContent:
    """What there is to send. A run that ended without its seal was interrupted."""
    kind = kind_of_run(run, folder)
    steps = _steps(run.plan)
    competitors, cells, ends = [], {}, {}
    for found in kind.competing():
        competitor = _competitor(kind, found)
        competitors.append(competitor)
        sent = (_cell(kind, result, steps[result.key]) for result in found.results)
        cells[competitor.key] = tuple(sorted(sent, key=lambda cell: cell.step))
        if ended:
            ends[competitor.key] = _end(kind, found, cells[competitor.key])
    status = _status(run.missing, len(run.failures)) if sealed else TrackingStatus.INTERRUPTED
    whole = sealed and ended
    tracked = TrackedRun(
        key=key_of(folder, run.attempt),
        name=run.facts.known_as or f"{run.plan.name} {run.plan.run_id[:8]}",
        started=_seconds(run.facts.started_at),
        facts=_run_facts(run),
        content=f"{CONTENT_VERSION}-{run.plan.run_id}-{run.attempt}-{run.digest}" if whole else "",
    )
    return TrackedContent(tracked, status if ended else TrackingStatus.RUNNING, tuple(competitors), cells, ends)


def key_of(folder: RunFolder, attempt: int) -> str:
    """Identifies a run over its sessions: where resumed, with failed cells run again, and with seeds added.

    Such attempts keep the time of the first session; looks of seeds="auto" name the run whose seeds they added to.
    A new attempt at the same plan is another run.
    """
    facts, seen = folder.facts(attempt), {folder.run_id}
    while facts.extends and facts.extends not in seen:
        seen.add(facts.extends)
        earlier = RunFolder(folder.path.parent / facts.extends)
        known = [n for n in earlier.attempts() if earlier.facts(n).started_at <= facts.started_at]
        if not known:  # it was removed
            break
        folder, attempt = earlier, known[-1]
        facts = folder.facts(attempt)
    first = next(n for n in folder.attempts() if n == attempt or (facts.resumed and _same_start(folder, n, facts)))
    return f"{folder.run_id}-{short_digest([facts.started_at, first, facts.machine.get('digest')])}"


def _same_start(folder: RunFolder, attempt: int, facts: RunFacts) -> bool:
    return folder.facts(attempt).started_at == facts.started_at


def competitor_id(run: TrackedRun, key: str) -> str:
    """Identifies a competitor, given by its key, among all that are ever sent: in letters, digits and a dash."""
    return f"{run.key}-{short_digest(key)}"


def short_digest(value: Any) -> str:
    """Twelve digits that differ where the values, as JSON, do."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() if at else 0.0


def _status(missing: int, failed: int) -> TrackingStatus:
    if missing:
        return TrackingStatus.INTERRUPTED
    return TrackingStatus.FAILED if failed else TrackingStatus.FINISHED


def _run_facts(run: Run) -> dict[str, str]:
    plan, facts = run.plan, run.facts
    absent = [
        *(("unsupported", item) for item in plan.excluded),
        *(("unavailable", item) for item in facts.unavailable),
    ]
    return _texts(
        {
            "run_id": plan.run_id,
            "attempt": run.attempt,
            "suite": plan.name,
            "name": facts.known_as,
            "started_at": facts.started_at,
            "cells": len(plan.refs),
            **_common_facts(facts),
            **{f"version.{target}": version for target, version in _versions(plan)},
            **{f"machine.{name}": value for name, value in facts.machine.items()},
            **{f"node.{digest}": machine.cpu_model for digest, machine in run.machines.items()},
            "jobs": facts.jobs,
            "executor": facts.executor,
            "command": " ".join(facts.command),
            "seeds_rule": facts.seeds_rule,
            **{f"{kind}.{item.spec} {item.target}": item.reason for kind, item in absent},
        }
    )


def _common_facts(facts: RunFacts) -> dict[str, Any]:
    return {
        "boosters_eval": facts.boosters_eval,
        "python": facts.python,
        "commit": facts.git_sha,
        "branch": facts.git_branch,
        "dirty": facts.git_dirty,
    }


def _versions(plan: Plan) -> list[tuple[str, str]]:
    return [(target, build.version) for builds in plan.builds.values() for target, build in builds.items()]


def _competitor(kind: RunKind, cells: Competing) -> TrackedCompetitor:
    run, spec = kind.run, cells.spec
    build = run.plan.builds[spec.workload][cells.target]
    facts = {
        "run_id": run.plan.run_id,
        "library": build.library,  # of a build by another name
        "version": build.version,
        "build": build.digest,
        **kind.facts(cells),
        **_common_facts(run.facts),
    }
    return TrackedCompetitor(spec.name, cells.target, _texts(kind.parameters(cells)), _texts(facts))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values that there are, as text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in values.items()
        if value is not None and value != ""
    }


def _steps(plan: Plan) -> dict[str, tuple[int, Repeat]]:
    """The step of each cell, by its key: its seed, or its place among the seeds and folds; and its repeat."""
    folds: dict[int, int] = {}
    for ref in plan.refs:
        folds[ref.spec] = max(folds.get(ref.spec, 1), (ref.fold or 0) + 1)
    return {
        key: (ref.seed if ref.fold is None else ref.seed * folds[ref.spec] + ref.fold, Repeat(ref.seed, ref.fold))
        for key, ref in zip(plan.keys, plan.refs, strict=True)
    }


def _cell(kind: RunKind, result: Outcome, place: tuple[int, Repeat]) -> TrackedCell:
    step, repeat = place
    numbers = {**kind.numbers(result), "failed_before": result.failed_before or None}
    return TrackedCell(result.key, step, *repeat, _finite(numbers))


def _finite(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if value is not None and math.isfinite(value)}


def _end(kind: RunKind, found: Competing, cells: tuple[TrackedCell, ...]) -> CompetitorEnd:
    failures = {
        str(Repeat(item.seed, item.fold)): f"{item.error_type}: {item.error_message}".partition("\n")[0]
        for item in found.failures
    }
    names = dict.fromkeys(name for cell in cells for name in cell.metrics)
    means = {name: statistics.fmean(cell.metrics[name] for cell in cells if name in cell.metrics) for name in names}
    missing = found.planned - len(cells) - len(failures)
    means |= _finite(kind.summary(found))
    return CompetitorEnd(_status(missing, len(failures)), len(cells), means, failures)
