"""What is sent of a run: everything in docs/tracking.md, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.core.repeat import Repeat
from boosters_eval.engine.cell import cell_key
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.outcome import Failure
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.runners.result import BenchmarkResult
from boosters_eval.tracking.tracker import (
    CompetitorEnd,
    TrackedCell,
    TrackedCompetitor,
    TrackedRun,
    TrackingStatus,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.engine.cell import Spec
    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.outcome import Outcome
    from boosters_eval.engine.plan import Plan

CONTENT_VERSION = 1  # another one is sent again
_COUNTS = ("n_trees_trained", "n_leaves_total")
_IDENTITY = frozenset({"seed", "fold", "failed_before"})  # numbers that are no results


@dataclass(frozen=True)
class TrackedContent:
    """All that there is to send of a run so far."""

    run: TrackedRun
    status: TrackingStatus
    competitors: tuple[TrackedCompetitor, ...]
    cells: Mapping[str, tuple[TrackedCell, ...]]  # by competitor
    ends: Mapping[str, CompetitorEnd]  # by competitor, as if the run ended now


def content_of(run: Run, folder: RunFolder, *, sealed: bool, ended: bool) -> TrackedContent:
    """What there is to send. A run that ended without its seal was interrupted."""
    specs = {spec.name: spec for spec in run.plan.specs}
    planned = Counter((run.plan.specs[ref.spec].name, ref.target) for ref in run.plan.refs)
    competitors, cells, ends = [], {}, {}
    for (name, target), found in _grouped(run).items():
        results = {repeat: item for repeat, item in found.items() if not isinstance(item, Failure)}
        competitor = _competitor(run, specs[name], target, next(iter(results.values()), None))
        competitors.append(competitor)
        steps = (_cell(item, specs[name], target, repeat) for repeat, item in results.items())
        cells[competitor.key] = tuple(sorted(steps, key=lambda cell: cell.step))
        ends[competitor.key] = _end(cells[competitor.key], found.values(), planned[name, target])
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


def _grouped(run: Run) -> dict[tuple[str, str], dict[Repeat, Outcome | Failure]]:
    """The outcomes of each competitor that has any, in the plan's order."""
    names = [spec.name for spec in run.plan.specs]
    found: dict[tuple[str, str], dict[Repeat, Outcome | Failure]] = {}
    for key, ref in zip(run.plan.keys, run.plan.refs, strict=True):
        outcome = run.outcomes.get(key)
        if outcome is not None:
            found.setdefault((names[ref.spec], ref.target), {})[Repeat(ref.seed, ref.fold)] = outcome
    return found


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


def _competitor(run: Run, spec: Spec, target: str, first: Outcome | None) -> TrackedCompetitor:
    build = run.plan.builds[spec.workload][target]
    parameters = _parameters(spec) | (_mapped(first) if isinstance(first, BenchmarkResult) else {})
    parameters.pop("seed", None)  # each cell has its own
    facts = {
        "run_id": run.plan.run_id,
        "library": build.library,  # of a build by another name
        "version": build.version,
        "build": build.digest,
        "data_digest": getattr(spec, "data_digest", None),
        "nondeterministic": first.nondeterministic if isinstance(first, BenchmarkResult) else None,
        **_common_facts(run.facts),
    }
    return TrackedCompetitor(spec.name, target, _texts(parameters), _texts(facts))


def _parameters(spec: Spec) -> dict[str, Any]:
    """What a benchmark was asked to do in the words of its reports, and any other spec in those of its plan."""
    if not isinstance(spec, FitSpec):
        return spec.identity()
    return {
        "dataset": spec.dataset,
        "task": spec.task.value,
        "booster": spec.booster_type.value,
        "variant": spec.variant,
        "profile": spec.profile.value,
        "primary_metric": spec.primary_metric,
        **spec.training.model_dump(mode="json"),
        "n_threads": spec.n_threads,  # resolved: -1 has become a number
        "timing_mode": spec.alone,
        **{f"split.{name}": value for name, value in spec.split.model_dump(mode="json").items()},
    }


def _mapped(result: BenchmarkResult) -> dict[str, Any]:
    """What the library was given, without the cell's own seed, and where that is not what was asked for."""
    native = {name: value for name, value in (result.native_params or {}).items() if value != result.model_seed}
    return {
        **{f"native.{name}": value for name, value in native.items()},
        **{
            f"mark.{mark.parameter}": f"{mark.kind}: {mark.reason}" if mark.reason else mark.kind
            for mark in result.marks
        },
    }


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values that there are, as text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in values.items()
        if value is not None and value != ""
    }


def _cell(result: Outcome, spec: Spec, target: str, repeat: Repeat) -> TrackedCell:
    seed, fold = repeat
    numbers = {**_numbers(result), "failed_before": result.failed_before or None}
    metrics = {name: float(value) for name, value in numbers.items() if value is not None and math.isfinite(value)}
    folds = spec.split.folds if isinstance(spec, FitSpec) else None
    step = seed if fold is None else seed * (folds or 1) + fold
    return TrackedCell(cell_key(spec.name, target, seed, fold), step, seed, fold, metrics)


def _numbers(result: Outcome) -> dict[str, float | None]:
    """The metrics of a cell, and its times and sizes; of any other outcome than a fit's, whatever numbers it has."""
    metrics: dict[str, float | None] = dict(getattr(result, "metrics", {}))
    if isinstance(result, BenchmarkResult):
        return metrics | {name: getattr(result, name) for name in (*RESOURCES, *_COUNTS)}
    fields = type(result).model_fields.keys() - _IDENTITY
    numbers = {name: getattr(result, name) for name in sorted(fields)}
    return metrics | {name: value for name, value in numbers.items() if type(value) in (int, float)}


def _end(cells: tuple[TrackedCell, ...], found: Iterable[Outcome | Failure], planned: int) -> CompetitorEnd:
    failures = {
        str(Repeat(item.seed, item.fold)): f"{item.error_type}: {item.error_message}".partition("\n")[0]
        for item in found
        if isinstance(item, Failure)
    }
    names = dict.fromkeys(name for cell in cells for name in cell.metrics)
    means = {name: statistics.fmean(cell.metrics[name] for cell in cells if name in cell.metrics) for name in names}
    missing = planned - len(cells) - len(failures)
    return CompetitorEnd(_status(missing, len(failures)), len(cells), means, failures)
