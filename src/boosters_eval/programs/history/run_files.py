"""What the files of a run say, as rows of the index.

The chain of a journal, its seal, its cells and the digests of the files beside it are checked: what fails is told as
unreadable, with the reason, and counts for nothing.
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import MAX_RESULTS, compute_digest, read_text
from boosters_eval.engine.cell import Build, Failure, Outcome, Spec
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.folder import RunFolder, find_journal_fault
from boosters_eval.engine.journal import Reading, read_journal
from boosters_eval.metrics import find
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.records import BenchmarkError, RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.history.rows import PER_SECOND
from boosters_eval.programs.history.store import IndexGroup, IndexLine, IndexRows
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.core.machine import MachineInfo
    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.history.model import Origin

SCORES, MEASURED = "scores", "resources"  # what is measured on the same splits, and what depends on the machine too
_OVERHEAD = 0.05  # seconds per cell in addition to building, training and predicting
_BITS = 63  # of the numbers that the index can hold
_DIGEST = 16  # digits that are enough to tell predictions apart
_FAULTS = (BoostersEvalError, ValueError, LookupError, TypeError, RecursionError)


@dataclass(frozen=True)
class Benchmark:
    """What a spec says, or what a results file knows of it; of other kinds of runs, only the data set."""

    dataset: str
    booster: str = ""
    settings: str = ""  # a digest of what scores depend on besides library, data and splits
    measured: str = ""  # the same for times and memory, which depend on threads and timing mode too
    training: str | None = None  # as canonical JSON; None: nothing can be estimated from it
    primary: str | None = None
    user_metrics: Mapping[str, tuple[bool, str]] = field(default_factory=dict)  # the direction and digest of each


@dataclass
class RunContent:
    """One attempt at a run, or a results file."""

    run_id: str
    attempt: int
    facts: RunFacts = field(default_factory=RunFacts)
    title: str = ""
    kind: str = ""
    state: str = "unreadable"
    fault: str = ""
    missing: int | None = None
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)  # by name
    # Of each benchmark and competitor that was planned, in the plan's order.
    outcomes: dict[tuple[str, str], list[Outcome | Failure | BenchmarkError]] = field(default_factory=dict)
    builds: Mapping[str, Build] = field(default_factory=dict)  # by competitor
    machines: Mapping[str, MachineInfo] = field(default_factory=dict)  # that outcomes name, by digest

    def count(self, *, failed: bool) -> int:
        return sum(_is_failure(one) == failed for found in self.outcomes.values() for one in found)

    @property
    def places(self) -> list[str]:
        """The machines that ran its cells, if any names one: those that name none ran where the run began."""
        named = {one.machine for found in self.outcomes.values() for one in found}
        here = str(self.facts.machine.get("digest") or "")
        return sorted({digest or here for digest in named}) if named - {None} else []


def _is_failure(outcome: Outcome | Failure | BenchmarkError) -> bool:
    return isinstance(outcome, (Failure, BenchmarkError))


def read_attempt(folder: RunFolder, attempt: int) -> RunContent:
    """One attempt of a run's folder; whatever cannot be read is its fault."""
    content = RunContent(folder.run_id, attempt)
    try:
        content.facts = folder.facts(attempt)
        content.kind = content.facts.kind
        plan = folder.plan(attempt)
        content.title = plan.name
        path = folder.journal_path(attempt)
        reading = read_journal(path)
        content.fault = reading.damage or ""
        if reading.begin and not content.fault:
            content.fault = find_journal_fault(reading, set(plan.keys), folder.run_id, finished=reading.sealed)
        if content.fault:
            content.fault = f"{path.name}: {content.fault}"
        elif reading.begin:
            beside = (f"{name}: {fault}" for name, fault in folder.faults_beside(attempt, reading))
            content.fault = next(beside, "")
        if not content.fault:
            _take_outcomes(content, plan, reading)
    except OSError as error:
        content.fault = f"cannot be read: {error.strerror}"
    except _FAULTS as error:
        content.fault = str(error).replace(f"{folder.path}{os.sep}", "").rstrip(".")
    return content


def _take_outcomes(content: RunContent, plan: Plan, reading: Reading) -> None:
    content.benchmarks = {spec.name: _describe_spec(spec) for spec in plan.specs}
    for ref, key in zip(plan.refs, plan.keys, strict=True):
        found = content.outcomes.setdefault((plan.specs[ref.spec].name, ref.target), [])
        if key in reading.outcomes:
            found.append(reading.outcomes[key])
    content.builds = {target: build for known in plan.builds.values() for target, build in known.items()}
    content.machines = reading.machines
    content.missing = len(plan.keys) - len(reading.outcomes)
    content.state = "finished" if reading.sealed else "unfinished"


def read_results(path: Path) -> RunContent:
    """An imported results file, which bears the digest of its content as its name."""
    name = path.name.partition(".")[0]
    content = RunContent(name[:16], 1, kind="benchmark")
    try:
        text = read_text(path, limit=MAX_RESULTS)
        if compute_digest(text, 32) == name:
            _take_results(content, ResultCollection.from_json(text, source=path.name))
        else:
            content.fault = "is not what was imported"
    except _FAULTS as error:
        content.fault = str(error).replace(f"{path.parent}{os.sep}", "").rstrip(".")
    return content


def _take_results(content: RunContent, results: ResultCollection) -> None:
    metadata = results.metadata
    content.run_id, content.attempt = results.run_id or content.run_id, metadata.attempt or 1
    content.title, content.facts = results.suite or "", metadata.facts
    content.builds, content.machines = content.facts.targets, metadata.machines
    outcomes: list[BenchmarkResult | BenchmarkError] = [*results.results, *results.errors]
    for outcome in outcomes:
        content.benchmarks.setdefault(outcome.config_name, _restore_spec(outcome, metadata))
        content.outcomes.setdefault((outcome.config_name, outcome.library), []).append(outcome)
    content.missing = None if metadata.n_cells is None else max(0, metadata.n_cells - len(outcomes))
    content.state = "unfinished" if content.missing else "finished"


def _describe_spec(spec: Spec) -> Benchmark:
    if not isinstance(spec, FitSpec):
        return Benchmark(str(getattr(spec, "dataset", None) or ""))
    split, protocol = spec.split, spec.protocol and spec.protocol.model_dump(mode="json")
    names = [spec.profile.value, spec.booster_type.value, spec.task.value, spec.variant, protocol]
    by_column = ["random", ""] if split.kind == "random" else [split.kind, split.column]
    training = spec.training.model_dump(mode="json")
    settings = _digest([_drop_defaults(training), *names, split.folds, *by_column])
    return Benchmark(
        spec.dataset,
        spec.booster_type.value,
        settings,
        _digest([settings, spec.n_threads, spec.timing.timed]),
        None if protocol else json.dumps(training, sort_keys=True),  # a paper's way costs what no suite would
        spec.primary_metric,
        {metric.name: (metric.higher_is_better, metric.digest) for metric in spec.user_metrics},
    )


def _restore_spec(outcome: BenchmarkResult | BenchmarkError, metadata: RunMetadata) -> Benchmark:
    """What a plan would say of the benchmark, as far as a results file knows it."""
    training = dict(metadata.configs.get(outcome.config_name) or {})
    kind, _, column = (training.pop("split", None) or "random:").partition(":")
    folds = training.pop("folds", None)
    names = [outcome.profile, outcome.booster_type, outcome.task and outcome.task.value, outcome.variant, None]
    settings = _digest([_drop_defaults(training) if training else None, *names, folds, kind, column])
    threads = training.get("n_threads", getattr(outcome, "n_threads", 1))
    return Benchmark(
        outcome.dataset_name,
        outcome.booster_type,
        settings,
        _digest([settings, threads, getattr(outcome, "timing_mode", False)]),
        json.dumps(training, sort_keys=True) if training else None,
        getattr(outcome, "primary_metric", None),
        {name: (higher, "") for name, higher in metadata.user_metrics.items()},
    )


def _drop_defaults(training: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter with its default counts as not given: a new one must not make earlier runs differ."""
    defaults = _training_defaults()
    return {
        name: value
        for name, value in training.items()
        if name != "n_threads" and (name not in defaults or value != defaults[name])
    }


@cache
def _training_defaults() -> dict[str, Any]:
    return TrainingConfig().model_dump(mode="json")


def _digest(content: Any) -> str:
    return compute_digest(json.dumps(content, sort_keys=True), _DIGEST)


def make_rows(content: RunContent, origin: Origin, written: float) -> IndexRows:
    """The rows of one attempt or results file; `written` stands in for a start that was not recorded."""
    try:
        rows = IndexRows(_describe_run(content, origin, written))
        _refuse_wide_numbers(rows.run.values())
        for (config, target), outcomes in content.outcomes.items():
            _add_part(rows, content, config, target, outcomes)
    except ArithmeticError:
        damaged = RunContent(content.run_id, 1, fault="has a number that is too large")
        return IndexRows(_describe_run(damaged, origin, written))
    return rows


def _refuse_wide_numbers(values: Iterable[Any]) -> None:
    if any(isinstance(value, int) and value.bit_length() > _BITS for value in values):
        raise OverflowError


def _describe_run(content: RunContent, origin: Origin, written: float) -> dict[str, Any]:
    """The columns of the table of runs."""
    facts = content.facts
    sessions = [facts, *facts.resumed]
    began = sorted({str(session.machine.get("digest") or "") for session in sessions})
    machine = "+".join(content.places or began)
    key = f"{content.run_id}/{content.attempt}/{facts.started_at}/{machine}"
    dirty = [session.git_dirty for session in sessions if session.git_dirty is not None]
    return {
        "key": key,
        "run_id": content.run_id,
        "attempt": content.attempt,
        "origin": origin,
        "started_at": facts.started_at or datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds"),
        "at": _order_in_time(facts.started_at, written, content.attempt, key),
        "kind": content.kind,
        "title": content.title,
        "name": facts.display_name,
        "git_sha": "+".join(dict.fromkeys(session.git_sha for session in sessions if session.git_sha)),
        "git_branch": facts.git_branch or "",
        "git_dirty": any(dirty) if dirty else None,
        "machine": machine,
        "machine_label": _label_machines(content),
        "state": content.state,
        "fault": content.fault,
        "done": content.count(failed=False),
        "failed": content.count(failed=True),
        "missing": content.missing,
        "versions": json.dumps({name: build.version for name, build in content.builds.items()}),
        "extends": facts.extends,
    }


def _label_machines(content: RunContent) -> str:
    here = content.facts.machine
    known = {digest: machine.recorded() for digest, machine in content.machines.items()}
    known[str(here.get("digest") or "")] = here
    return " + ".join(_label(known.get(digest) or {}) for digest in content.places) or _label(here)


def _label(machine: Mapping[str, Any]) -> str:
    """A machine as a person tells it from others."""
    cpus = machine.get("cpus_available") or machine.get("cpu_threads")
    parts = [str(machine.get("cpu_model") or ""), f"{cpus} CPUs" if cpus else "", str(machine.get("gpu") or "")]
    return ", ".join(filter(None, parts))


def _order_in_time(started: str, written: float, attempt: int, key: str) -> int:
    """The place in time. Within a millisecond: by attempt, then in an order that is the same each time."""
    try:
        seconds = datetime.fromisoformat(started).timestamp()
    except (ValueError, OverflowError):
        seconds = written
    tie = int(compute_digest(key, 8), 16) % 1000
    return int(1000 * seconds) * (PER_SECOND // 1000) + min(attempt, 999) * 1_000 + tie


def _add_part(
    rows: IndexRows,
    content: RunContent,
    config: str,
    target: str,
    outcomes: Sequence[Outcome | Failure | BenchmarkError],
) -> None:
    """What one competitor did on one benchmark; only benchmarks have numbers that the history compares."""
    benchmark, build = content.benchmarks[config], content.builds.get(target)
    library = (build and build.library) or target
    failed = sum(map(_is_failure, outcomes))
    rows.parts.append((config, benchmark.dataset, target, library, len(outcomes) - failed, failed))
    results = [one for one in outcomes if isinstance(one, BenchmarkResult)]
    if content.kind != "benchmark" or not results:
        return
    several = len(content.places) > 1  # what was measured on several machines belongs to no line of any
    disturbed = any(not item.judged for item in content.facts.disturbed)
    for settings, measures, made in _make_groups(benchmark, results, disturbed=disturbed):
        if measures == SCORES or not several:
            line = IndexLine(config, benchmark.dataset, target, library, settings, measures)
            rows.groups.append(IndexGroup(line, *made, failed))
    times = [one.train_time_s + (one.predict_time_s or 0.0) for one in results if one.train_time_s is not None]
    if times and benchmark.training and not several:
        seconds = median(times) + _OVERHEAD
        rows.costs.append((benchmark.dataset, benchmark.booster, library, benchmark.training, seconds, len(times)))


def _make_groups(
    benchmark: Benchmark, results: Sequence[BenchmarkResult], *, disturbed: bool
) -> Iterator[tuple[str, str, tuple[str, str, str, bytes]]]:
    """The settings, the kind, and the columns of the scores and of the resources."""
    shared = _dump_repeats(results), _dump_marks(results, disturbed=disturbed)
    known = []
    scores = list(dict.fromkeys(name for result in results for name in result.metrics))
    for name in scores:
        direction, digest = benchmark.user_metrics.get(name) or (_find_direction(name), "")
        known.append((name, direction, name == benchmark.primary, digest))
    values = _pack([[result.metrics.get(name) for result in results] for name in scores])
    yield benchmark.settings, SCORES, (_dump_names(tuple(known)), *shared, values)
    columns = {name: [getattr(result, name) for result in results] for name in RESOURCES}
    resources = {name: column for name, column in columns.items() if column.count(None) < len(column)}
    if resources:
        names = _dump_names(tuple((name, False, False, "") for name in resources))
        yield benchmark.measured, MEASURED, (names, *shared, _pack(list(resources.values())))


@cache
def _find_direction(name: str) -> bool | None:
    metric = find(name)
    return None if metric is None else metric.higher_is_better


_dump_names = lru_cache(maxsize=256)(json.dumps)


def _dump_repeats(results: Sequence[BenchmarkResult]) -> str:
    found = []
    for result in results:
        split = result.split
        by = ["random", None, None] if split is None else [split.kind, split.n_train_groups, split.n_valid_groups]
        repeat = [result.seed, result.fold, result.split_digest, result.n_train, result.n_valid, *by]
        part = result.dealt
        _refuse_wide_numbers([*repeat, *(part or ())])
        found.append([*repeat, part])
    data = next((result.data_digest for result in results if result.data_digest), "")
    return json.dumps([data, found])


def _dump_marks(results: Sequence[BenchmarkResult], *, disturbed: bool) -> str:
    predictions = [(result.predictions_digest or "")[:_DIGEST] for result in results]
    return json.dumps([predictions, [not disturbed and result.fairly_timed for result in results]])


def _pack(values: list[list[float | None]]) -> bytes:
    """Row by row; what is not there is NaN, which no value is."""
    flat = [math.nan if value is None else float(value) for row in values for value in row]
    return struct.pack(f"<{len(flat)}d", *flat)
