"""The machine-readable part of a benchmark report: typed data for everything that is text elsewhere in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.core.text import clean, clean_lines, count_of
from boosters_eval.engine.cell import Build
from boosters_eval.programs.benchmark.comparisons import are_disjoint
from boosters_eval.programs.benchmark.tables.environment import Environment, list_builds, list_versions
from boosters_eval.runners.parameters import Mark, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from boosters_eval.programs.benchmark.records import Absence
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.runners.result import BenchmarkResult


def describe_split(results: Iterable[BenchmarkResult]) -> str:
    """The splits of a benchmark in words: "5 splits", "10 splits: 5 folds x 2", "5 windows of time by date"."""
    found = list(results)
    seeds, folds = len({r.seed for r in found}), len({r.fold for r in found if r.fold is not None})
    split = next((result.split for result in found if result.split is not None), None)
    if split is not None and split.kind == "time":
        windows = f"{count_of(folds, 'window')} of time by {clean(split.column)}"
        return windows if seeds == 1 else f"{windows} x {seeds} model seeds"
    several = f" x {seeds}" if seeds > 1 else ""
    known = {r.split_digest for r in found} - {None}
    text = f"{seeds * folds} splits: {count_of(folds, 'fold')}{several}" if folds else count_of(seeds, "split")
    if known and len(known) < seeds:  # an official split is shared by all seeds
        text = f"{count_of(len(known), 'split')} x {count_of(seeds, 'model seed')}"
    return text if split is None else f"{text}, groups of {clean(split.column)} kept whole"


def spell_split(split: str) -> str:
    """A split that is not random, for people who did not choose it."""
    kind, _, column = split.partition(":")
    if kind == "time":
        return f"by time ({column}): trained on the rows before each window, validated on it"
    return f"by group ({column}): no group is on both sides"


ReportType = Literal["quality", "performance", "comparison"]


class ConfigFacts(Model):
    """One benchmark as it was run."""

    config: str
    dataset: str
    task: str
    booster: str
    profile: str
    variant: str | None
    libraries: tuple[str, ...]
    n_train: int | None
    n_valid: int | None
    threads: int
    canonical: str = ""  # the canonical parameters, as text


class EffectiveParameters(Model):
    """What one library was given, and in which configs."""

    library: str
    version: str | None
    configs: tuple[str, ...]
    native: dict[str, str]
    marks: tuple[Mark, ...]


class FailedCell(Model):
    """A cell that failed, with everything needed to find out why."""

    config: str
    library: str
    variant: str | None
    seed: int
    fold: int | None
    phase: str
    error_type: str
    message: str
    signal: str | None
    traceback: str | None
    stderr_tail: str


class AbsentPair(Model):
    """A config in which a library has no cells, and why."""

    config: str
    library: str
    reason: str


class BenchmarkData(Model):
    """The facts of a benchmark report; only `environment` depends on when the report is made."""

    report_type: ReportType
    environment: Environment
    suite: str | None
    run_id: str | None
    seeds: tuple[int, ...]
    folds: int
    libraries: dict[str, str]
    test: str
    alpha: float
    n_results: int
    n_failed: int
    configs: tuple[ConfigFacts, ...]
    parameters: tuple[EffectiveParameters, ...]
    errors: tuple[FailedCell, ...]
    unsupported: tuple[AbsentPair, ...]
    n_flaky: int = 0  # finished, but only after failing
    unavailable: tuple[AbsentPair, ...] = ()
    splits: tuple[str, ...] = ()  # how rows were split where not at random: time:COLUMN, group:COLUMN
    builds: dict[str, Build] = Field(default_factory=dict)  # by label
    margin: tuple[str, ...] = ("1%",)  # what counts as equivalent, as one asks for it
    growth_strategy: str | None = None  # of the trees; None: there are none, or it was not recorded
    disjoint: bool = False  # whether the test sets of every config are those of deals, and share no row within one


def collect_data(
    results: ResultCollection,
    report_type: ReportType,
    *,
    test: str,
    alpha: float,
    margin: tuple[str, ...],
    now: datetime | None = None,
) -> BenchmarkData:
    ours = results.results
    return BenchmarkData(
        report_type=report_type,
        environment=Environment.collect(results, now=now),
        suite=None if results.suite is None else clean(results.suite),
        run_id=results.run_id,
        seeds=tuple(dict.fromkeys(result.seed for result in ours)),
        folds=len({result.fold for result in ours if result.fold is not None}),
        libraries=dict(sorted((clean(k), clean(v)) for k, v in list_versions(results).items())),
        test=test,
        alpha=alpha,
        margin=margin,
        n_results=len(ours),
        n_failed=len(results.errors),
        configs=_configs(ours, results.metadata.configs),
        parameters=_parameters(ours),
        errors=list_failed(results),
        unsupported=list_absent(results.unsupported),
        n_flaky=len(results.flaky),
        unavailable=list_absent(results.unavailable),
        splits=tuple(dict.fromkeys(clean(f"{r.split.kind}:{r.split.column}") for r in ours if r.split is not None)),
        builds={
            clean(name): Build(**{field: value and clean(value) for field, value in build})
            for name, build in list_builds(results).items()
        },
        growth_strategy=_growth(ours, results.metadata.configs),
        disjoint=bool(ours) and all(map(are_disjoint, _by_config(ours).values())),
    )


def _growth(results: Iterable[BenchmarkResult], training: dict[str, dict[str, Any]]) -> str | None:
    """How the trees grew, as the RFC's template shows it; several ways if the configs differ."""
    found = {
        "each library's own" if result.profile == "defaults" else training[result.config_name]["growth_strategy"]
        for result in results
        if result.booster_type != "gblinear" and result.config_name in training
    }
    return ", ".join(sorted(map(str, found))) or None


def list_absent(absences: Iterable[Absence]) -> tuple[AbsentPair, ...]:
    return tuple(
        AbsentPair(config=clean(item.config_name), library=clean(item.library), reason=clean(item.reason))
        for item in absences
    )


def _canonical(training: dict[str, Any], booster: str) -> str:
    """The parameters given to every library: the growth with its own limit, then what differs from the defaults."""
    if not training:
        return ""
    leafwise = training["growth_strategy"] == "leafwise"
    limit = f"{training['n_leaves']} leaves" if leafwise else f"depth {training['max_depth']}"
    trees = "" if booster == "gblinear" else f"{training['growth_strategy']}, {limit}, "
    said = ("growth_strategy", "n_leaves", "max_depth", "n_estimators", "learning_rate", "n_threads", "seed")
    usual = TrainingConfig.usual()
    others = [f"{k}={v}" for k, v in training.items() if k in usual and k not in said and v != usual[k]]
    start = f"{trees}{training['n_estimators']} rounds, learning rate {training['learning_rate']:g}"
    return clean(", ".join([start, *others]))


def _by_config(results: Iterable[BenchmarkResult]) -> dict[str, list[BenchmarkResult]]:
    groups: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        groups.setdefault(result.config_name, []).append(result)
    return groups


def _configs(results: Iterable[BenchmarkResult], training: dict[str, dict[str, Any]]) -> tuple[ConfigFacts, ...]:
    return tuple(
        ConfigFacts(
            config=clean(name),
            dataset=clean(group[0].dataset_name),
            task=group[0].task.value,
            booster=clean(group[0].booster_type),
            profile=group[0].profile,
            variant=None if group[0].variant is None else clean(group[0].variant),
            libraries=tuple(dict.fromkeys(clean(result.library) for result in group)),
            n_train=group[0].n_train,
            n_valid=group[0].n_valid,
            threads=max(result.n_threads for result in group),
            canonical=_canonical(training.get(name, {}), group[0].booster_type),
        )
        for name, group in _by_config(results).items()
    )


def _parameters(results: Iterable[BenchmarkResult]) -> tuple[EffectiveParameters, ...]:
    """Configs that gave a library the same parameters share an entry."""
    cells: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for result in results:
        cells.setdefault((result.library, result.config_name), []).append(result)
    told: dict[str, dict[str, Any]] = {}
    for (library, config), group in cells.items():
        facts = {
            "library": clean(library),
            "version": group[0].library_version,
            "native": _merged([result.native_params or {} for result in group]),
            "marks": list(dict.fromkeys(mark for result in group for mark in result.marks)),
        }
        key = json.dumps(facts, default=repr)
        told.setdefault(key, {**facts, "configs": []})["configs"].append(clean(config))
    return tuple(
        EffectiveParameters(**facts) for facts in sorted(told.values(), key=lambda facts: str(facts["library"]))
    )


def _merged(dicts: list[dict[str, Any]]) -> dict[str, str]:
    """Parameters as text; one that differs between seeds (such as the seed itself) is shown as such."""
    out: dict[str, str] = {}
    for name in sorted({name for given in dicts for name in given}):
        values = {json.dumps(given.get(name), sort_keys=True, default=str) for given in dicts}
        out[clean(name)] = clean(values.pop()) if len(values) == 1 else "varies by seed"
    return out


def list_failed(results: ResultCollection) -> tuple[FailedCell, ...]:
    return tuple(
        FailedCell(
            config=clean(error.config_name),
            library=clean(error.library),
            variant=None if error.variant is None else clean(error.variant),
            seed=error.seed,
            fold=error.fold,
            phase=error.phase,
            error_type=clean(error.error_type),
            message=clean_lines(error.error_message),
            signal=None if error.signal is None else clean(error.signal),
            traceback=None if error.traceback is None else clean_lines(error.traceback),
            stderr_tail=clean_lines(error.stderr_tail),
        )
        for error in results.errors
    )
