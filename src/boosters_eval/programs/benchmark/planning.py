"""From a request to a plan: data, splits, threads, metrics and libraries are resolved, but nothing runs yet."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, DatasetError, UnsupportedError
from boosters_eval.core.machine import count_cores, list_cpus
from boosters_eval.core.modules import address_of
from boosters_eval.core.request import Part, Repeat
from boosters_eval.core.terms import given
from boosters_eval.datasets import hold_out_rows, materialize, open_stored, split_rows
from boosters_eval.datasets.checks import find_coarse_step, find_unit
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.datasets.splits import count_parts, place_repeats
from boosters_eval.datasets.store import load_audit
from boosters_eval.engine.limits import resolve_threads
from boosters_eval.engine.plan import MAX_CELLS, CellRef, Exclusion, Plan
from boosters_eval.engine.session import is_elsewhere
from boosters_eval.metrics import find, for_task, primary_metric, task_metrics
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.audits import adapt_audits
from boosters_eval.programs.benchmark.margins import Margins
from boosters_eval.programs.benchmark.records import OWN_DEFAULTS
from boosters_eval.programs.benchmark.seeds import Growth, count_seeds, overrule_seeds
from boosters_eval.programs.benchmark.spec import FitSpec, Timing, UserMetric, find_in_file, find_registered, spec_of
from boosters_eval.programs.benchmark.targets import for_targets
from boosters_eval.runners.base import FitRequest, cannot_run
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.installed import runner_for, target_of
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.datasets import Stored
    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.engine.cell import Cell, Target
    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.request import Settings
    from boosters_eval.runners.base import Runner
    from boosters_eval.runners.config import BenchmarkConfig


@dataclass(frozen=True)
class FitInputs:
    """Locates the data of each cell on this machine."""

    stored: Mapping[str, Stored]
    splitters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __call__(self, cell: Cell, scratch: Path) -> dict[str, str]:
        """A data set's own splitter may be a lambda, so it is called here and its rows are passed in a file."""
        spec = spec_of(cell)
        data = self.stored[spec.dataset]
        splitter = self.splitters.get(spec.dataset)
        if splitter is None:
            return {"data": str(data.path)}
        seed, fold = cell.repeat
        file = scratch / f"{list(self.stored).index(spec.dataset)}-{seed}-{fold}.npz"
        if not file.exists():
            table = open_stored(data.path)
            split = split_rows(table, spec.task, spec.split, seed, fold, splitter=splitter)
            np.savez(file, train=split.train, valid=split.valid, digest=np.array(split.digest))
        return {"data": str(data.path), "split": str(file)}


@dataclass(frozen=True)
class PreparedRun:
    """A plan that is ready to run, with notes for the user."""

    plan: Plan
    inputs: FitInputs
    settings: Settings
    benchmarks: Benchmarks
    notes: tuple[str, ...] = ()
    growth: Growth | None = None  # how seeds are added; the plan is for the first look
    audits: Mapping[str, DataAudit] = field(default_factory=dict)  # what was found in each data set


def prepare(
    benchmarks: Benchmarks,
    seeds: int | str | None,
    settings: Settings,
    *,
    max_seeds: int | None = None,
    budget: str | float | None = None,
) -> PreparedRun:
    """Resolve everything that the plan's identity depends on; nothing runs yet.

    With seeds="auto", seeds are added until every pair has a verdict, or `max_seeds` or the budget is used up.
    """
    growth = Growth.of(max_seeds, budget) if seeds == "auto" else None
    by_time = [config.name for config in benchmarks.configs if config.is_by_time]
    if growth is not None and by_time:
        raise ConfigError(
            f"{given('seeds', 'auto')} cannot be used with a split by time ({by_time[0]}): its windows are fixed, and"
            " further seeds only repeat them."
        )
    if growth is not None and any(config.folds for config in benchmarks.configs):
        raise ConfigError(f"Use either {given('seeds', 'auto')} or folds, not both.")
    for library, reason in {item.target: item.reason for item in benchmarks.unavailable}.items():
        warnings.warn(f"{library} is left out: {reason}", BoostersEvalWarning, stacklevel=4)
    count = growth.rule.schedule[0] if growth else count_seeds(seeds, benchmarks.default_seeds)
    prepared = prepare_seeds(overrule_seeds(benchmarks, seeds), count, settings)
    Margins.of(getattr(settings, "margin", ()))  # a metric that nobody knows is refused before anything runs
    if growth is not None:
        check_growth(fit_specs(prepared.plan).values(), dict(prepared.inputs.stored))
    return replace(prepared, growth=growth)


def prepare_seeds(benchmarks: Benchmarks, seeds: int, settings: Settings) -> PreparedRun:
    timed, adaptive = settings.timing_mode, settings.protocol == "adaptive"
    timing = Timing(
        timed=timed,
        warmup=settings.warmup if settings.warmup is not None else int(timed and not adaptive),
        predict_runs=3 if timed and not adaptive else 1,
        memory=settings.measure_memory,
        adaptive=adaptive,
    )
    every = count_timing_threads()  # refuses a variable that is no count, even where it is not needed
    wish = settings.threads if settings.threads is not None else every if timed else None
    configs = tuple(map(_settle_split, benchmarks.configs))
    settled = replace(benchmarks, configs=configs)
    judged = getattr(settings, "against", None) is not None
    plan, stored, merged = _make_plan(settled, seeds, timing, wish, elsewhere=is_elsewhere(settings), judged=judged)
    asked = [wish] if wish is not None else sorted({config.training.n_threads for config in configs})
    limited = [
        f"{count} threads were requested; each cell gets the {resolve_threads(count)} that this process may use"
        for count in asked
        if resolve_threads(count) < count
    ]
    notes = dict.fromkeys([*benchmarks.notes, *merged, *limited, *_note_idle_parameters(plan)])
    splitters = {c.dataset.name: c.dataset.splitter for c in configs if c.dataset.splitter is not None}
    audits = {c.dataset.name: load_audit(c.dataset, stored[c.dataset.name]).for_folds(_count_tests(c)) for c in configs}
    hinted = [c for c in configs if c.dataset.audit is not None and hasattr(settings, "against")]
    audits = adapt_audits(audits, plan, fit_specs(plan), {c.dataset.name: stored[c.dataset.name] for c in hinted})
    return PreparedRun(plan, FitInputs(stored, splitters), settings, benchmarks, tuple(notes), audits=audits)


def count_timing_threads() -> int:
    """What timing mode uses: BOOSTERS_EVAL_THREADS, or all physical cores."""
    text = os.environ.get("BOOSTERS_EVAL_THREADS")
    if not text:
        return min(count_cores(), len(list_cpus()))
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"The BOOSTERS_EVAL_THREADS variable must be a count of at least 1. Got '{text}' instead.")
    return resolve_threads(int(text))


def _settle_split(config: BenchmarkConfig) -> BenchmarkConfig:
    """The benchmark with its split decided: its own, or that of its data set; by time, in windows."""
    dataset = config.dataset
    by = config.split_by
    if by is None:
        return config if dataset.split_by is None else config.replace(dataset=dataset.replace(split_by=None))
    if dataset.splitter is not None:
        raise ConfigError(
            f"The data set '{dataset.name}' has its own splitter, so it cannot be split by {by.kind} too."
        )
    if by.kind == "time" and "validation_fraction" in config.model_fields_set:
        raise ConfigError(
            f"The 'validation_fraction' parameter of {config.name} must not be set: it is split by time, in windows."
        )
    text = f"{by.kind}:{by.column}"
    if dataset.split_by != text:
        dataset = dataset.replace(split_by=text)
    return config.replace(dataset=dataset, folds=config.n_folds)


def _make_plan(
    benchmarks: Benchmarks, seeds: int, timing: Timing, n_threads: int | None, *, elsewhere: bool, judged: bool
) -> tuple[Plan, dict[str, Stored], list[str]]:
    """Resolve data, threads and libraries. What a library does not support is excluded, with the reason.

    Variants that come out the same, such as four threads and all of four cores, are one row, and noted.

    Where one of them is `judged`, or builds are compared, how a library treats its targets is what is measured.
    """
    configs = benchmarks.configs
    users = _find_user_metrics(configs)
    _check_names(configs)
    for library in dict.fromkeys(library for config in configs for library in config.libraries):
        address_of(benchmarks.runner(library), "runner")  # refuses what no other process could find
    stored = _store(configs)
    specs: list[FitSpec] = []
    refs: list[CellRef] = []
    excluded: list[Exclusion] = []
    merged: list[str] = []
    variants: dict[tuple[str, BoosterType, Profile], list[tuple[int, dict[str, Any]]]] = {}
    for config in configs:
        data = stored[config.dataset.name]
        spec = _make_spec(config, data, timing, n_threads, users)
        of_builds = any(benchmarks.runner(name).installation is not None for name in config.libraries)
        spec = spec.replace(centered=not judged and not of_builds and _needs_centering(spec, data))
        request = spec.request(0)
        reasons = {name: cannot_run(benchmarks.runner(name), request, elsewhere=elsewhere) for name in config.libraries}
        if spec.variant is not None:
            runners = {
                n: for_targets(benchmarks.runner(n), request, len(spec.targets)) for n in reasons if not reasons[n]
            }
            others = variants.setdefault((spec.dataset, spec.booster_type, spec.profile), [])
            found = _translate(runners, request)
            own = {"name": spec.name, "variant": spec.variant, "training": spec.training}
            same = [at for at, theirs in others if theirs == found and specs[at].model_copy(update=own) == spec]
            if found and same:
                first = specs[same[0]]
                merged.append(f"{spec.dataset}: '{first.variant}' and '{spec.variant}' are the same here, and one row")
                specs[same[0]] = first.replace(variant=f"{first.variant} = {spec.variant}")
                continue
            others.append((len(specs), found))
        excluded += [Exclusion(spec=spec.name, target=name, reason=why) for name, why in reasons.items() if why]
        libraries = [name for name, why in reasons.items() if why is None]
        chosen, folds = config.own_seeds or derive_seeds(seeds), range(config.folds) if config.folds else [None]
        parts: list[Part | None] = [None] * len(chosen)
        if spec.split.balanced:
            parts[:] = place_repeats(chosen, config.validation_fraction)
        repeats = [(Repeat(seed, fold), part) for seed, part in zip(chosen, parts, strict=True) for fold in folds]
        if len(refs) + len(libraries) * len(repeats) > MAX_CELLS:
            raise ConfigError(f"The plan has more than {MAX_CELLS} cells. Use fewer seeds, folds or data sets.")
        if libraries:
            _check_splits(spec, data, repeats, config.dataset.audit)
        refs += [CellRef(len(specs), name, *repeat, part) for name in libraries for repeat, part in repeats]
        specs.append(spec)
    targets = [target_of(benchmarks.runner(name)) for name in dict.fromkeys(ref.target for ref in refs)]
    policy = None if benchmarks.policy is None else benchmarks.policy.model_dump(mode="json", exclude_none=True)
    return Plan.of(benchmarks.name, specs, refs, excluded, targets, policy), stored, merged


def _is_balanced(config: BenchmarkConfig) -> bool:
    free = config.folds is None and config.dataset.splitter is None
    return config.splits == "balanced" and free and count_parts(config.validation_fraction) > 1


def _count_tests(config: BenchmarkConfig) -> int | None:
    """How many disjoint test sets the rows are shared out among."""
    return count_parts(config.validation_fraction) if _is_balanced(config) else config.folds


def _find_user_metrics(configs: Sequence[BenchmarkConfig]) -> dict[str, UserMetric]:
    """The metrics defined by the user, in a file or by registering them, by their spec in the config."""
    found: dict[str, UserMetric] = {}
    names: dict[str, UserMetric] = {}
    for text in dict.fromkeys(text for config in configs for text in _further_metrics(config)):
        metric = find_in_file(text)
        if metric is not None:
            metric.load()
        else:
            metric = find_registered(text)
        if metric is None:
            continue
        if names.setdefault(metric.name, metric) != metric:
            raise ConfigError(f"Two different metrics are named '{metric.name}': rename one of the functions.")
        found[text] = metric
    return found


def _further_metrics(config: BenchmarkConfig) -> tuple[str, ...]:
    """What is scored besides the task's own metrics: what the config asks for, and what decides by the data set."""
    primary = config.dataset.primary_metric
    usual = [] if primary is None else [metric.spec for metric in task_metrics(config.task)]
    return config.metrics if primary is None or primary in (*usual, *config.metrics) else (*config.metrics, primary)


def _check_names(configs: Sequence[BenchmarkConfig]) -> None:
    """Refuse duplicate names: a cell is identified by its names alone."""
    names: set[str] = set()
    for config in configs:
        if config.name in names:
            raise ConfigError(f"Config names must be unique. Got '{config.name}' twice.")
        names.add(config.name)
        for kind, every in (("library", config.libraries), ("seed", config.own_seeds)):
            if len(set(every)) < len(every):
                raise ConfigError(f"The config '{config.name}' has a {kind} twice: {', '.join(map(str, every))}.")


def _store(configs: Sequence[BenchmarkConfig]) -> dict[str, Stored]:
    """Put every data set into the cache, by name; one name must stand for one content."""
    stored: dict[str, Stored] = {}
    for config in configs:
        data = materialize(config.dataset)
        if stored.setdefault(data.name, data).digest != data.digest:
            raise ConfigError(f"Two different data sets are named '{data.name}': rename one of them.")
    return stored


def _make_spec(
    config: BenchmarkConfig, data: Stored, timing: Timing, n_threads: int | None, users: Mapping[str, UserMetric]
) -> FitSpec:
    """The spec, with further metrics in canonical form. A metric that does not suit the task is refused here."""
    rows = data.n_groups if config.task is Task.RANKING and data.n_groups else data.n_samples
    if config.folds is not None and config.folds > rows:
        raise ConfigError(f"{config.folds} folds are more than the {rows} rows or queries of {config.dataset.name}.")
    by = config.split_by
    split = SplitSpec(
        validation_fraction=config.validation_fraction,
        folds=config.folds,
        balanced=_is_balanced(config),
    )
    targets = config.dataset.targets if len(config.dataset.targets) > 1 else ()
    wanted = _further_metrics(config)
    if targets and any((metric := find(name)) and metric.name == "pinball" for name in wanted):
        raise ConfigError(
            f"The metric 'pinball' is for one target. Got {len(targets)} in {config.dataset.name} instead."
        )
    own = [users[text] for text in wanted if text in users]
    names = [users[text].name if text in users else text for text in wanted]
    return FitSpec(
        name=config.name,
        n_threads=resolve_threads(n_threads if n_threads is not None else config.training.n_threads),
        alone=timing.timed or config.training.device is not Device.CPU,  # some libraries take all memory of a device
        dataset=config.dataset.name,
        data_digest=data.digest,
        task=config.task,
        booster_type=config.booster_type,
        training=config.training,
        profile=config.profile,
        variant=config.variant,
        native=config.native,
        n_classes=data.n_classes,
        quantiles=config.dataset.quantiles,
        categorical=data.categorical,
        has_missing=data.has_missing,
        weighted=data.weighted,
        max_categories=data.max_categories,
        n_columns=data.n_features,
        n_rows=data.n_samples,
        split=split if by is None else split.replace(kind=by.kind, column=by.column),
        metrics=tuple(for_task(name, config.task).spec for name in names),
        primary_metric=config.dataset.primary_metric or primary_metric(config.task),
        timing=timing,
        user_metrics=tuple(dict.fromkeys(own)),
        targets=targets,
    )


def _needs_centering(spec: FitSpec, data: Stored) -> bool:
    if spec.task not in (Task.REGRESSION, Task.QUANTILE) or spec.profile is not Profile.PARITY:
        return False
    y = open_stored(data.path).y
    return find_coarse_step(y) is not None or (spec.takes_units and bool((find_unit(y) != 1).any()))


def _check_splits(
    spec: FitSpec, data: Stored, repeats: Iterable[tuple[Repeat, Part | None]], audit: DataAudit | None
) -> None:
    """Refuse a plan, once, whose splits cannot be made or leave a class without a row to learn from."""
    if spec.split.kind == "random":
        return
    table = open_stored(data.path)
    by_time = spec.split.kind == "time"
    for repeat, part in dict.fromkeys((Repeat(0, r.fold), None) if by_time else (r, part) for r, part in repeats):
        try:
            rows = split_rows(table, spec.task, spec.split, repeat.seed, repeat.fold, part=part).train
            if spec.training.early_stopping_rounds is not None and spec.profile is Profile.PARITY:
                split_by, groups = (
                    None if column is None else np.asarray(column[rows]) for column in (table.split_by, table.groups)
                )
                few = replace(table, x=table.x[:0], y=np.asarray(table.y[rows]), groups=groups, split_by=split_by)
                rows = rows[hold_out_rows(few, spec.task, spec.split.kind, repeat.seed).train]
        except DatasetError as error:
            raise ConfigError(f"{spec.name}: {error}") from None
        missing = np.setdiff1d(table.y, np.asarray(table.y)[rows])
        if spec.task.is_classification and len(missing):
            where = f"window {(repeat.fold or 0) + 1}" if by_time else str(repeat)
            labels = list(audit.classes) if audit is not None and len(audit.classes) == data.n_classes else []
            label = f"'{labels[int(missing[0])]}'" if labels else f"{missing[0]:g}"
            raise ConfigError(
                f"{spec.name}: class {label} of {spec.dataset} has no training row in {where} of the split by"
                f" {spec.split.kind} '{spec.split.column}': leave the class out, or split in another way."
            )


def check_growth(specs: Iterable[FitSpec], stored: dict[str, Stored]) -> None:
    from boosters_eval.stats.observations import LEAST_GROUPS  # noqa: PLC0415 (loads scipy)

    for spec in specs:
        if spec.split.kind == "group":
            count = len(np.unique(np.asarray(open_stored(stored[spec.dataset].path).split_by)))
            if count < LEAST_GROUPS:
                raise ConfigError(
                    f"{given('seeds', 'auto')} needs at least {LEAST_GROUPS} groups to decide anything."
                    f" Got {count} in '{spec.split.column}' of {spec.dataset} instead."
                )


def _note_idle_parameters(plan: Plan) -> list[str]:
    """Notes on settings without effect."""

    def native(spec: FitSpec, training: TrainingConfig) -> dict[str, Any]:
        runners = {target.name: _runner_of(target, spec) for target in plan.targets_of(spec)}
        return _translate(runners, replace(spec.request(0), training=training))

    usual = TrainingConfig()
    out: list[str] = []
    for spec in fit_specs(plan).values():
        training, given = spec.training, native(spec, spec.training)
        if not given or spec.name.endswith(OWN_DEFAULTS):  # it does not run, or is asked for without any
            continue
        changed = [name for name in TrainingConfig.model_fields if getattr(training, name) != getattr(usual, name)]
        out += [
            f"{name}={getattr(training, name)} has no effect in {spec.name}"
            for name in changed
            if name not in ("seed", "n_threads")
            and given == native(spec, training.replace(**{name: getattr(usual, name)}))
        ]
    return out


def _translate(runners: Mapping[str, type[Runner]], request: FitRequest) -> dict[str, Any]:
    """What each library is given, with what is not exact about it."""
    found = {name: runner.translate(request) for name, runner in runners.items()}
    return {name: (it.native, [mark for mark in it.marks if mark.kind != "exact"]) for name, it in found.items()}


def native_parameters(plan: Plan) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """For each spec and library: what the library will be given; of the seed, that each cell has its own."""
    for name, spec in fit_specs(plan).items():
        for target in plan.targets_of(spec):
            runner = _runner_of(target, spec)
            native, other = (runner.translate(spec.request(seed)).native for seed in (1, 2))
            yield name, target.name, {key: value if other[key] == value else "own" for key, value in native.items()}


def _runner_of(target: Target, spec: FitSpec) -> type[Runner]:
    return for_targets(runner_for(target), spec.request(0), len(spec.targets))


def check_devices(plan: Plan) -> None:
    """Refuse a plan with a benchmark on a device that no library can use here: half a comparison answers nothing."""
    for name, spec in fit_specs(plan).items():
        if not spec.uses_device or plan.targets_of(spec):
            continue
        by_reason: dict[str, list[str]] = {}
        for item in plan.excluded:
            if item.spec == name:
                by_reason.setdefault(item.reason, []).append(item.target)
        why = "; ".join(f"{reason} ({', '.join(targets)})" for reason, targets in by_reason.items())
        raise UnsupportedError(
            f"Nothing runs, because no library can train {name} on the device '{spec.training.device.value}':"
            f" {why or 'none is left'}."
        )


def fit_specs(plan: Plan) -> dict[str, FitSpec]:
    return {spec.name: spec for spec in plan.specs if isinstance(spec, FitSpec)}
