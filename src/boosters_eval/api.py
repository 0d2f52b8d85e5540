"""The programs `compare` and `run_suite`: make a plan, execute it, return a ResultCollection."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Gt, Le

from boosters_eval.benchmark.config import DEFAULT_SEEDS, MAX_SEEDS, BenchmarkConfig, BenchmarkSuite, derive_seeds
from boosters_eval.benchmark.results import RunEnvironment
from boosters_eval.core.errors import ConfigError, MissingLibraryError, UnknownNameError
from boosters_eval.core.model import Model
from boosters_eval.metrics.task import Task
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, Profile, Threads, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boosters_eval.benchmark.results import ResultCollection
    from boosters_eval.datasets import Stored
    from boosters_eval.engine.execute import Observer
    from boosters_eval.engine.plan import Plan, PlannedConfig


class Settings(Model):
    """How a plan is measured and executed; the same for every program that runs cells."""

    timing_mode: bool = False
    warmup: Annotated[int, Ge(0)] | None = None  # None: 1 in timing mode, else 0
    measure_memory: bool = False
    threads: Threads | None = None  # None: what each config says, all cores in timing mode
    jobs: Annotated[int, Ge(1), Le(4096)] | None = None  # None: as many as cores
    timeout: Annotated[float, Gt(0)] | None = None  # seconds a cell
    memory_limit: Annotated[float, Gt(0), Le(2**30)] | None = None  # megabytes a cell
    resume: bool = False
    rerun_failed: bool = False
    home: Path | None = None
    command: tuple[str, ...] = ()  # what was typed, for the report's "how to reproduce"


@dataclass(frozen=True)
class Prepared:
    """A plan that is ready to run, and what a person should know before it does."""

    plan: Plan
    stored: dict[str, Stored]
    splitters: dict[str, Callable[..., Any]]
    notes: tuple[str, ...]


def compare(
    datasets: str | Sequence[str] = ("california",),
    libraries: str | Sequence[str] | None = None,
    booster: str | Sequence[str] = "gbdt",
    seeds: int | str | None = None,
    *,
    training: TrainingConfig | None = None,
    variants: Mapping[str, TrainingConfig] | None = None,
    metrics: Sequence[str] = (),
    cv: str | int | None = None,
    task: Task | str | None = None,
    profile: Profile | str = Profile.PARITY,
    max_seeds: int = 50,
    budget: str | float | None = None,
    verbose: bool = False,
    observer: Observer | None = None,
    **settings: Any,
) -> ResultCollection:
    """Compare libraries on data sets. `settings` are the fields of `Settings`: timing_mode, jobs, timeout, ...

    With seeds="auto", seeds are added until every pair has a verdict, `max_seeds` are used, or the budget is.
    """
    chosen = Settings(**settings)
    configs, notes = comparison_configs(
        datasets,
        libraries,
        booster,
        training=training,
        variants=variants,
        metrics=metrics,
        cv=cv,
        task=task,
        profile=profile,
    )
    watcher = _watcher(observer, verbose=verbose)
    if seeds == "auto":
        return run_auto(configs, chosen, watcher, max_seeds=max_seeds, budget=budget)
    return run_prepared(prepare("compare", configs, seeds, chosen, notes=notes), chosen, watcher)


def run_suite(
    suite: str | BenchmarkSuite,
    seeds: int | None = None,
    libraries: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str] = (),
    profile: Profile | str | None = None,
    verbose: bool = False,
    observer: Observer | None = None,
    **settings: Any,
) -> ResultCollection:
    """Run a suite by name, by `path.py:NAME`, or as an object. `settings` are the fields of `Settings`."""
    chosen = Settings(**settings)
    name, configs, notes, default = suite_configs(suite, libraries, metrics=metrics, profile=profile)
    prepared = prepare(name, configs, seeds, chosen, default_seeds=default, notes=notes)
    return run_prepared(prepared, chosen, _watcher(observer, verbose=verbose))


def comparison_configs(
    datasets: str | Sequence[str],
    libraries: str | Sequence[str] | None = None,
    booster: str | Sequence[str] = "gbdt",
    *,
    training: TrainingConfig | None = None,
    variants: Mapping[str, TrainingConfig] | None = None,
    metrics: Sequence[str] = (),
    cv: str | int | None = None,
    task: Task | str | None = None,
    profile: Profile | str = Profile.PARITY,
) -> tuple[list[BenchmarkConfig], list[str]]:
    """One benchmark for each data set, booster and variant; missing libraries are left out and said."""
    from boosters_eval.datasets import resolve_dataset  # noqa: PLC0415 (keeps start-up fast)

    usable, notes = _usable(_names(libraries) if libraries is not None else None)
    folds, repeats = parse_cv(cv)
    wanted_task = Task(_choice("task", task.value if isinstance(task, Task) else task, Task)) if task else None
    rows: list[tuple[str | None, TrainingConfig]] = [*(variants or {}).items()] or [
        (None, training or TrainingConfig())
    ]
    configs = []
    for text in _names(datasets):
        dataset = resolve_dataset(text, wanted_task)
        if "inferred" in dataset.description:
            notes.append(f"{dataset.name}: {dataset.description}")
        for kind in _names(booster):
            for variant, chosen in rows:
                configs.append(
                    BenchmarkConfig(
                        name=f"{dataset.name}/{kind}" + (f"-{variant}" if variant else ""),
                        dataset=dataset,
                        task=dataset.task,
                        booster_type=BoosterType(_choice("booster", kind, BoosterType)),
                        training=chosen,
                        libraries=tuple(usable),
                        folds=folds,
                        seeds=derive_seeds(repeats) if folds else (),
                        variant=variant,
                        profile=Profile(_choice("profile", profile, Profile)),
                        metrics=tuple(metrics),
                    )
                )
    return configs, notes


def suite_configs(
    suite: str | BenchmarkSuite,
    libraries: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str] = (),
    profile: Profile | str | None = None,
) -> tuple[str, list[BenchmarkConfig], list[str], int]:
    """The suite's name, its benchmarks with the libraries that are here, notes, and its number of seeds."""
    from boosters_eval.benchmark.suites import resolve_suite  # noqa: PLC0415 (keeps start-up fast)

    found = resolve_suite(suite)
    only = _names(libraries) if libraries is not None else None
    every = only or list(dict.fromkeys(name for config in found.configs for name in config.libraries))
    usable, notes = _usable(every, required=only is not None)
    changes: dict[str, Any] = {} if profile is None else {"profile": Profile(_choice("profile", profile, Profile))}
    configs = []
    for config in found.configs:
        mine = tuple(
            name for name in (only or config.libraries) if name in usable and name in (*config.libraries, *(only or ()))
        )
        configs.append(config.replace(libraries=mine, metrics=(*config.metrics, *metrics), **changes))
    return found.name, configs, notes, found.default_seeds


def run_auto(
    configs: Sequence[BenchmarkConfig],
    settings: Settings,
    observer: Observer | None = None,
    *,
    max_seeds: int = 50,
    budget: str | float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ResultCollection:
    """Run with as many seeds as the verdicts need; each look is a complete run of its own."""
    from boosters_eval.benchmark.looks import grow, parse_budget  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.stats.sequential import SequentialRule  # noqa: PLC0415

    def look(seeds: int, known: ResultCollection | None) -> ResultCollection:
        return run_prepared(prepare("compare", configs, seeds, settings), settings, observer, known=known)

    if any(config.folds for config in configs):
        raise ConfigError("Use either --cv or --seeds auto, not both: folds have a fixed number.")
    found = grow(look, SequentialRule(max_seeds=max_seeds), budget_s=parse_budget(budget), say=say)
    _remember_level(found, settings)
    return found


def _remember_level(results: ResultCollection, settings: Settings) -> None:
    """Later reports of this run must use the level of its looks too."""
    from boosters_eval.engine.journal import find_run  # noqa: PLC0415 (keeps start-up fast)

    folder = find_run(str(results.run_id), settings.home)
    attempt = folder.attempts()[-1]
    told = {name: results.metadata[name] for name in ("alpha", "seeds_rule")}
    folder.write_environment(attempt, RunEnvironment(**{**folder.environment(attempt).told(), **told}))


def prepare(
    name: str,
    configs: Sequence[BenchmarkConfig],
    seeds: int | str | None,
    settings: Settings,
    *,
    default_seeds: int = DEFAULT_SEEDS,
    notes: Iterable[str] = (),
) -> Prepared:
    """Resolve everything that the plan's identity depends on; nothing runs yet."""
    from boosters_eval.engine import threads  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.engine.plan import Timing, make_plan  # noqa: PLC0415

    if settings.resume and settings.rerun_failed:
        raise ConfigError("Use either --resume or --rerun-failed, not both.")
    timed = settings.timing_mode
    warmup = settings.warmup if settings.warmup is not None else int(timed)
    timing = Timing(timed=timed, warmup=warmup, predict_runs=3 if timed else 1, memory=settings.measure_memory)
    wish = settings.threads if settings.threads is not None else (threads.timing_threads() if timed else None)
    plan, stored = make_plan(name, configs, seeds=_seeds(seeds, default_seeds), timing=timing, n_threads=wish)
    said = [*notes, *_thread_notes(configs, wish), *_idle_parameters(plan)]
    splitters = {c.dataset.name: c.dataset.splitter for c in configs if c.dataset.splitter is not None}
    return Prepared(plan, stored, splitters, tuple(dict.fromkeys(said)))


def run_prepared(
    prepared: Prepared,
    settings: Settings,
    observer: Observer | None = None,
    *,
    known: ResultCollection | None = None,
) -> ResultCollection:
    """Execute a prepared plan; cells of `known` results are taken over."""
    from boosters_eval.engine.execute import Mode, execute  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.engine.pool import Limits  # noqa: PLC0415

    mode = Mode.RERUN_FAILED if settings.rerun_failed else Mode.RESUME if settings.resume else Mode.NEW
    return execute(
        prepared.plan,
        prepared.stored,
        mode=mode,
        jobs=settings.jobs,
        limits=Limits(timeout_s=settings.timeout, memory_mb=settings.memory_limit),
        home=settings.home,
        observer=observer,
        splitters=prepared.splitters,
        known=known,
        command=settings.command,
    )


def parse_cv(text: str | int | None) -> tuple[int | None, int]:
    """`5` is five folds once, `5x10` five folds repeated ten times."""
    if text is None:
        return None, 1
    match = re.fullmatch(r"(\d{1,4})(?:x(\d{1,4}))?", str(text))
    folds, repeats = (int(match[1]), int(match[2] or 1)) if match else (0, 0)
    if folds < 2 or repeats < 1:
        raise ConfigError(
            f"The 'cv' parameter must be folds or folds x repeats, such as 5 or 5x10. Got {text!r} instead."
        )
    return folds, repeats


def _names(value: str | Sequence[str]) -> list[str]:
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"A name, or a list of names, is needed. Got {value!r} instead.")
    return list(dict.fromkeys(names))


def _choice(kind: str, value: Any, enum: type[BoosterType | Profile | Task | GrowthStrategy]) -> str:
    text = str(getattr(value, "value", value))
    valid = [str(member.value) for member in enum]
    if text not in valid:
        raise UnknownNameError(kind, text, valid)
    return text


def _usable(names: list[str] | None, *, required: bool = False) -> tuple[list[str], list[str]]:
    """The libraries that are installed; of the others, why not."""
    from boosters_eval.runners import RUNNERS  # noqa: PLC0415 (keeps start-up fast)

    reasons = {name: RUNNERS[name].missing() for name in (names if names is not None else RUNNERS)}
    notes = [f"{name} is left out: {reason}" for name, reason in reasons.items() if reason]
    usable = [name for name, reason in reasons.items() if reason is None]
    if notes and (required or not usable):
        raise MissingLibraryError(f"{notes[0].replace(' is left out:', ':')}.")
    return usable, notes


def _seeds(given: int | str | None, default: int) -> int:
    """The RFC's precedence: the argument, BOOSTERS_EVAL_SEEDS, the suite's default."""
    text = str(given if given is not None else os.environ.get("BOOSTERS_EVAL_SEEDS") or default)
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_SEEDS:
        what = "'seeds' parameter" if given is not None else "BOOSTERS_EVAL_SEEDS variable"
        raise ConfigError(f"The {what} must be a count from 1 to {MAX_SEEDS}. Got '{text}' instead.")
    return int(text)


def _idle_parameters(plan: Plan) -> list[str]:
    """Settings that change nothing are said, and variants that are one and the same are refused."""
    from boosters_eval.runners import RUNNERS  # noqa: PLC0415 (keeps start-up fast)

    def native(config: PlannedConfig, training: TrainingConfig) -> dict[str, Any]:
        """What each library would be given, and what it says of it."""
        request = replace(config.request(0), training=training)
        found = {name: RUNNERS[name].translate(request) for name in plan.libraries_of(config)}
        return {name: (it.native, [mark for mark in it.marks if mark.kind != "exact"]) for name, it in found.items()}

    usual = TrainingConfig()
    out: list[str] = []
    seen: dict[tuple[str, BoosterType], list[tuple[PlannedConfig, dict[str, Any]]]] = {}
    for config in plan.configs:
        training, given = config.training, native(config, config.training)
        changed = [name for name in TrainingConfig.model_fields if getattr(training, name) != getattr(usual, name)]
        out += [
            f"{name}={getattr(training, name)} has no effect in {config.name}"
            for name in changed
            if name not in ("seed", "n_threads")
            and given == native(config, training.replace(**{name: getattr(usual, name)}))
        ]
        others = seen.setdefault((config.dataset, config.booster_type), [])
        for other, theirs in others if config.variant else ():
            if theirs == given and other.n_threads == config.n_threads and given:
                names = f"'{other.variant}' and '{config.variant}'"
                raise ConfigError(f"The variants {names} are the same for every library in {config.dataset}.")
        others.append((config, given))
    return out


def _thread_notes(configs: Sequence[BenchmarkConfig], wish: int | None) -> list[str]:
    from boosters_eval.engine import threads  # noqa: PLC0415 (keeps start-up fast)

    asked = [wish] if wish is not None else sorted({config.training.n_threads for config in configs})
    return [
        f"{count} threads were asked for, a cell gets the {threads.resolve(count)} that this process may use"
        for count in asked
        if threads.resolve(count) < count
    ]


def _watcher(observer: Observer | None, *, verbose: bool) -> Observer | None:
    if observer is None and verbose:
        from boosters_eval.engine.progress import ProgressBar  # noqa: PLC0415 (rich is only needed here)

        return ProgressBar()
    return observer
