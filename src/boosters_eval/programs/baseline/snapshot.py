"""From the results of a run to what a baseline holds, and the reasons why a run cannot become one."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, RunError
from boosters_eval.core.files import MAX_RESULTS, compute_digest, load_json, read_text
from boosters_eval.core.terms import given, the
from boosters_eval.engine.cell import Build
from boosters_eval.metrics import find, primary_metric
from boosters_eval.programs.baseline.findings import UNNAMED, Status
from boosters_eval.programs.baseline.model import (
    HOME_LIBRARY,
    AbsentResult,
    Baseline,
    BaselineConfig,
    BaselineResult,
    FitFacts,
    MetricStats,
    Source,
    check_recorded,
    digest_mapping,
    load_baseline,
)
from boosters_eval.programs.baseline.sidecar import RunRows, open_sidecar
from boosters_eval.programs.benchmark.tables.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.programs.baseline.sidecar import RowStore
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.runners.result import BenchmarkResult


_RESULTS = ("boosters-eval results", "boosters-eval report")  # kinds of files
_TIMES = ("train_time_s", "predict_time_s")
_DIGEST = 16  # characters kept of a digest


@dataclass(frozen=True)
class FaultyCell:
    config: str
    library: str
    cell: str
    status: Status
    text: str


@dataclass(frozen=True)
class Snapshot:
    """One side of a comparison: a recorded baseline, or a run with all its faults."""

    results: dict[tuple[str, str], BaselineResult]
    libraries: dict[str, Build]
    faulty: tuple[FaultyCell, ...] = ()
    unsupported: tuple[tuple[str, str, str], ...] = ()  # config, library, reason
    unavailable: dict[str, str] = field(default_factory=dict)  # libraries that could not be run, with the reason
    absent: tuple[AbsentResult, ...] = ()  # what a baseline lacks
    machine_digest: str | None = None
    several_machines: bool = False
    not_run: int = 0  # cells of the plan that `faulty` does not name, since no library has an outcome for them
    suite: str | None = None
    alpha: float | None = None  # the level at which a run with --seeds auto must be judged
    store: RowStore | None = None  # where its predictions are; None: nowhere

    @classmethod
    def of_baseline(cls, baseline: Baseline, store: RowStore | None = None) -> Snapshot:
        return cls(
            store=store,
            results={result.key: result for result in baseline.results},
            libraries=baseline.libraries,
            machine_digest=baseline.machine.get("digest"),
            suite=baseline.config.suite,
            absent=baseline.absent,
        )

    @classmethod
    def of_run(cls, run: ResultCollection) -> Snapshot:
        """What came out; cells that crashed, are missing or have a score that is not finite are kept apart."""
        facts = run.metadata.facts
        usable = [result for result in run.results if not _not_finite(result)]
        grouped: dict[tuple[str, str], list[BenchmarkResult]] = {}
        for result in usable:
            grouped.setdefault((result.config_name, result.library), []).append(result)
        faulty = tuple(_faulty_cells(run))
        named = sum(cell.status is Status.SKIPPED for cell in faulty)
        missing = run.metadata.n_missing or 0
        return cls(
            results={key: _summarize(group, run) for key, group in grouped.items()},
            libraries=_libraries(run, facts),
            faulty=faulty,
            not_run=max(missing - named, 0),
            unsupported=tuple((u.config_name, u.library, u.reason) for u in run.unsupported),
            unavailable={item.library: item.reason for item in run.unavailable},
            machine_digest=run.machine_digest,
            several_machines=len(run.cells_by_machine) > 1,
            suite=run.suite,
            alpha=run.metadata.alpha,
            store=None if run.folder is None else RunRows(run.folder.predictions),
        )

    @property
    def has_rows(self) -> bool:
        """Whether anything of what it predicted was kept where it can be read."""
        fits = (fit for result in self.results.values() for fit in result.fits.values())
        return self.store is not None and any(fit.kept is not None for fit in fits)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every (config, library) pair that anything is known about, in the order of first appearance."""
        return list(dict.fromkeys([*self.results, *((f.config, f.library) for f in self.faulty)]))


def are_same_outcomes(before: Snapshot, after: Snapshot) -> bool:
    """Whether both sides hold the very same outcomes of some pair, so that comparing them would prove nothing.

    Another run of the same plan has the same run id, but other times. Where times are unknown, two sides are never
    the same.
    """
    return any(
        result.outcomes_digest is not None and result.outcomes_digest == after.results[key].outcomes_digest
        for key, result in before.results.items()
        if key in after.results
    )


def make_baseline(
    run: ResultCollection,
    *,
    now: datetime | None = None,
    allow_flaky: int = 0,
    continue_on_error: bool = False,
) -> Baseline:
    """The baseline of a run. An incomplete run is refused: what is missing could never fail later.

    So is a run with more than `allow_flaky` cells that finished only after failing. With `continue_on_error`, pairs
    with a cell that failed are left out, and the baseline says so.
    """
    snapshot = Snapshot.of_run(run)
    left_out = [AbsentResult(config=i.config_name, library=i.library, reason=i.reason) for i in run.unavailable]
    if continue_on_error:
        snapshot, failed = _without_faulty(snapshot)
        left_out += failed
    if snapshot.faulty:
        first = snapshot.faulty[0]
        more = f" ({len(snapshot.faulty)} such cells)" if len(snapshot.faulty) > 1 else ""
        raise RunError(
            f"No baseline was recorded: {first.library} on {first.config}, cell {first.cell}: {first.text}{more}."
        )
    if not snapshot.results or snapshot.not_run:
        raise RunError("No baseline was recorded: the run has no results for some or all of its cells.")
    if len(run.flaky) > allow_flaky:
        flaky = run.flaky[0]
        more = f" ({len(run.flaky)} such cells)" if len(run.flaky) > 1 else ""
        raise RunError(
            f"No baseline was recorded: {flaky.library} on {flaky.config_name}, cell {flaky.repeat.name} finished only"
            f" after failing{more}; find out why, or say {given('allow_flaky', len(run.flaky))}."
        )
    if run.n_left_out:
        warnings.warn(
            f"The baseline has {len(run.results)} of the run's {run.metadata.n_cells} cells: what was left out before"
            " it was recorded cannot fail later.",
            BoostersEvalWarning,
            stacklevel=2,
        )
    facts, recorded_at = Environment.collect(run, now=now), now or datetime.now(UTC).replace(microsecond=0)
    results = tuple(snapshot.results.values())
    build = snapshot.libraries.get(HOME_LIBRARY)
    source = _find_source(run, recorded_at)
    if source is not None:
        results = tuple(result.model_copy(update={"source": source.name}) for result in results)
    return Baseline(
        boosters_version=build.version if build else None,
        boosters_eval_version=facts.boosters_eval_version,
        recorded_at=recorded_at,
        git_sha=facts.git_sha,
        run_id=run.run_id,
        config=BaselineConfig(
            suite=run.suite,
            seeds=tuple(dict.fromkeys(r.seed for r in run.results)),
            splits="balanced" if any(r.part for r in run.results) else "random",
        ),
        libraries=snapshot.libraries,
        mapping_digest=digest_mapping(results),
        machine={} if facts.machine is None else {**facts.machine.model_dump(), "digest": facts.machine_digest},
        absent=tuple(left_out),
        sources={} if source is None else {source.name: source},
        results=results,
    )


def _find_source(run: ResultCollection, at: datetime) -> Source | None:
    """The sealed journal that the results are from; None: they are from a file, which nothing vouches for."""
    if run.folder is None or run.run_id is None:
        return None
    found = run.folder.load(run.metadata.attempt)
    return Source(run_id=run.run_id, attempt=found.attempt, journal=found.digest, recorded_at=at)


def _without_faulty(snapshot: Snapshot) -> tuple[Snapshot, list[AbsentResult]]:
    """Only the pairs all of whose cells are usable, and the others with what happened to the first of their cells."""
    faults = {(cell.config, cell.library): cell for cell in reversed(snapshot.faulty)}
    whole = {key: result for key, result in snapshot.results.items() if key not in faults}
    failed = [
        AbsentResult(config=config, library=library, reason=f"cell {cell.cell}: {cell.text}")
        for (config, library), cell in faults.items()
    ]
    return replace(snapshot, results=whole, faulty=()), failed


def _not_finite(result: BenchmarkResult) -> str | None:
    return next((name for name, value in result.metrics.items() if not math.isfinite(value)), None)


def _faulty_cells(run: ResultCollection) -> Iterable[FaultyCell]:
    for error in run.errors:
        text = f"{error.error_type} in {error.phase}" + (f", {error.signal}" if error.signal else "")
        first_line = error.error_message.strip().partition("\n")[0].rstrip(".")
        text += f": {first_line}" if first_line else ""
        yield FaultyCell(error.config_name, error.library, error.repeat.name, Status.CRASHED, text)
    for result in run.results:
        name = _not_finite(result)
        if name:
            text = f"{name} is {result.metrics[name]}"
            yield FaultyCell(result.config_name, result.library, result.repeat.name, Status.NOT_FINITE, text)
    yield from _other_data(run)
    yield from _not_once(run)


def _other_data(run: ResultCollection) -> Iterable[FaultyCell]:
    """Cells that were not run on the data of their config's first cell, which is all that a baseline records."""
    first: dict[str, str | None] = {}
    for result in run.results:
        digest = result.data_digest
        expected = first.setdefault(result.config_name, digest)
        if digest != expected:
            known = digest is not None and expected is not None
            text = f"it was run on {'other' if known else 'perhaps other'} data than the first cell of its config"
            yield FaultyCell(result.config_name, result.library, result.repeat.name, Status.UNLIKE, text)


def _not_once(run: ResultCollection) -> Iterable[FaultyCell]:
    """Cells that have an outcome for other libraries of the config but not for this one, or that have two."""
    have: dict[tuple[str, str], Counter[str]] = {}
    wanted: dict[str, dict[str, None]] = {}
    for outcome in [*run.results, *run.errors]:
        have.setdefault((outcome.config_name, outcome.library), Counter())[outcome.repeat.name] += 1
        wanted.setdefault(outcome.config_name, {})[outcome.repeat.name] = None
    for (config, library), cells in have.items():
        for cell in wanted[config]:
            if cells[cell] == 0:
                yield FaultyCell(config, library, cell, Status.SKIPPED, "it was not run")
            elif cells[cell] > 1:
                yield FaultyCell(config, library, cell, Status.UNLIKE, f"the run has {cells[cell]} outcomes for it")


def _libraries(run: ResultCollection, facts: RunFacts) -> dict[str, Build]:
    builds = dict(facts.targets)
    for result in run.results:
        builds.setdefault(result.library, Build(version=result.library_version or "unknown", digest=""))
    used = {outcome.library for outcome in [*run.results, *run.errors]}
    return {name: builds[name] for name in sorted(builds) if name in used}


def _summarize(group: Sequence[BenchmarkResult], run: ResultCollection) -> BaselineResult:
    first, metadata = group[0], run.metadata
    primary = first.primary_metric or primary_metric(first.task)
    names = [name for name in first.metrics if all(name in result.metrics for result in group)]
    fair = not metadata.unfair_times and all(result.fairly_timed for result in group)
    fair = fair and len(run.cells_by_machine) <= 1  # a baseline tells of one machine
    timed = [name for name in _TIMES if fair and all(getattr(result, name) is not None for result in group)]
    return BaselineResult(
        config=first.config_name,
        library=first.library,
        task=first.task,
        primary_metric=primary,
        metrics={name: MetricStats.of({r.repeat.name: r.metrics[name] for r in group}) for name in names},
        higher_is_better=_direction(primary, metadata.user_metrics),
        dataset=first.dataset_name,
        profile=first.profile,
        n_train=first.n_train,
        n_valid=first.n_valid,
        data_digest=first.data_digest[:_DIGEST] if first.data_digest else None,
        split_digests={r.repeat.name: r.split_digest[:_DIGEST] for r in group if r.split_digest},
        split=first.split,
        parameters=collect_parameters(first),
        times={name: MetricStats.of({r.repeat.name: getattr(r, name) for r in group}) for name in timed},
        failed_before={r.repeat.name: r.failed_before for r in group if r.failed_before},
        outcomes_digest=_outcomes_digest(group),
        fits={r.repeat.name: _describe_fit(r) for r in group},
        quantiles=spec.quantiles if (spec := run.evidence.specs.get(first.config_name)) else (),
        targets=spec.targets if spec else (),
        build=_libraries(run, metadata.facts).get(first.library),
    )


def _describe_fit(result: BenchmarkResult) -> FitFacts:
    return FitFacts(
        trees=result.n_trees_trained,
        rounds=result.n_rounds_trained,
        leaves=result.n_leaves_total,
        training=result.training_score,
        predictions=result.predictions_digest,
        kept=result.kept,
        part=result.part,
    )


def _outcomes_digest(group: Sequence[BenchmarkResult]) -> str | None:
    took = [(r.repeat.name, r.train_time_s, r.predict_time_s, r.cpu_time_s) for r in group]
    if any(result.train_time_s is None for result in group):
        return None
    return compute_digest(json.dumps(sorted(took)), _DIGEST)


def _direction(metric: str, user_metrics: Mapping[str, bool]) -> bool | None:
    """The direction of a built-in metric is known everywhere, that of a user's is what the run said."""
    known = find(metric)
    if known and known.info.built_in:
        return known.higher_is_better
    return user_metrics.get(metric, known.higher_is_better if known else None)


def collect_parameters(result: BenchmarkResult) -> dict[str, Any]:
    """The effective native parameters; the seed is the cell's, not the mapping's."""
    native = result.native_params or {}
    return {name: value for name, value in native.items() if value != result.model_seed or value is None}


def describe_changed_parameters(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Which effective parameters are not what they were: the usual cause of a regression."""
    if not then or not now:
        return ""
    absent = object()
    changed = [
        f"{name} {then.get(name, 'unset')} → {now.get(name, 'unset')}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name, absent) != now.get(name, absent)
    ]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"parameters changed: {', '.join(changed[:3])}{more}" if changed else ""


def read_baseline(path: Path) -> Baseline:
    """A baseline file, or the baseline of a results file or JSON report, which must be complete for it."""
    text = read_text(check_recorded(path), limit=MAX_RESULTS)
    raw = load_json(text, str(path)) if any(f'"{kind}"' in text for kind in _RESULTS) else None
    if not isinstance(raw, dict) or raw.get("kind") not in _RESULTS:
        return load_baseline(path)
    from boosters_eval.programs.benchmark.results import ResultCollection  # noqa: PLC0415 (loads scipy)

    return make_baseline(ResultCollection.from_json(text, source=str(path)))


class TakenBaseline(NamedTuple):
    """A baseline, what it is called, and where its predictions are."""

    baseline: Baseline
    name: str
    store: RowStore | None = None

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot.of_baseline(self.baseline, self.store)


def take_baseline(value: Any, parameter: str) -> TakenBaseline:
    """The baseline that a user passes as this parameter."""
    if isinstance(value, Baseline):
        return TakenBaseline(value, UNNAMED)
    if isinstance(value, Path):
        return TakenBaseline(read_baseline(value), str(value), open_sidecar(value))
    raise ConfigError(f"{the(parameter)} must be a file or a Baseline. Got {value!r} instead.")
