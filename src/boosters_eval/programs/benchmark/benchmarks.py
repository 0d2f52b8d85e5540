"""What a user asks for, as benchmarks: a comparison, or a suite, with the libraries that are installed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, MissingLibraryError, require
from boosters_eval.core.terms import the
from boosters_eval.core.text import join_words
from boosters_eval.datasets import resolve_dataset
from boosters_eval.datasets.config import DataSettings, parse_split
from boosters_eval.datasets.resolve import GivenFrame, check_applicable, collect_datasets
from boosters_eval.engine.plan import Exclusion
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import canonicalize_native
from boosters_eval.programs.benchmark.records import OWN_DEFAULTS
from boosters_eval.programs.benchmark.suites import fetch_suite, resolve_suite, take_subset
from boosters_eval.runners import RUNNERS, FitRequest
from boosters_eval.runners.builds.install import resolve_competitors
from boosters_eval.runners.config import DEFAULT_SEEDS, BenchmarkConfig, derive_seeds, parse_member
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boosters_eval.programs.benchmark.policy import ReleasePolicy
    from boosters_eval.programs.benchmark.suites import BenchmarkSuite
    from boosters_eval.runners.base import Runner

    Libraries = str | type[Runner] | Sequence[str | type[Runner]] | None  # None: all that there are


@dataclass(frozen=True)
class Benchmarks:
    """The requested benchmarks with the libraries that are installed, and notes for the user."""

    name: str
    configs: tuple[BenchmarkConfig, ...]
    notes: tuple[str, ...] = ()
    default_seeds: int = DEFAULT_SEEDS
    unavailable: tuple[Exclusion, ...] = ()  # libraries of a benchmark that cannot be used here
    folded: bool = False  # by --cv, which decides on the seeds too
    runners: Mapping[str, type[Runner]] = field(default_factory=dict)  # of competitors that are builds, by label
    policy: ReleasePolicy | None = None  # what a release is decided by

    def runner(self, name: str) -> type[Runner]:
        return self.runners[name] if name in self.runners else RUNNERS[name]


def make_comparison(
    datasets: Any,
    libraries: Libraries = None,
    booster: BoosterType | str | Sequence[BoosterType | str] = "gbdt",
    *,
    training: TrainingConfig | None = None,
    variants: Mapping[str, TrainingConfig] | None = None,
    metrics: Sequence[str] = (),
    cv: str | int | None = None,
    task: Task | str | None = None,
    data: DataSettings | None = None,
    target: str | Sequence[str] | None = None,
    split: str | None = None,
    splits: str = "balanced",
    profile: Profile | str = Profile.PARITY,
    home: Path | None = None,
) -> Benchmarks:
    """One benchmark per data set, booster and variant, with the libraries that are available."""
    runners = find_competitors(libraries, home)
    usable, reasons = _find_usable(dict(RUNNERS.items()) if runners is None else runners, required=False)
    folds, repeats = parse_cv(cv)
    wanted_task = None if task is None else parse_member("task", task, Task)
    require("variants", variants, (Mapping, type(None)), "a dict of names and TrainingConfigs")
    require("training", training, (TrainingConfig, Mapping, type(None)), "a TrainingConfig")
    rows: list[tuple[str | None, TrainingConfig]] = [*(variants or {}).items()]
    rows = rows or [(None, training or TrainingConfig())]
    items = collect_datasets(datasets, target)
    if data is not None and not any(isinstance(item, GivenFrame) for item in items):
        check_applicable(data, items)
    require("split", split, (str, type(None)), "random, time, time:COLUMN or group:COLUMN")
    parse_split(split)
    in_all: dict[str, Any] = {
        "libraries": tuple(usable),
        "seeds": derive_seeds(repeats) if folds else (),
        "folds": folds,
        "profile": parse_member("profile", profile, Profile),
        "metrics": tuple(metrics),
        "split": split,
        "splits": splits,
    }
    notes: list[str] = []
    configs: list[BenchmarkConfig] = []
    for item in items:
        own = isinstance(item, GivenFrame)
        dataset = item.config(wanted_task, data, split) if own else resolve_dataset(item, wanted_task, data, split)
        notes += [f"{dataset.name}: {sentence}" for sentence in dataset.notes]
        for kind in parse_boosters(booster):
            for variant, chosen in rows:
                name = f"{dataset.name}/{kind.value}" + (f"-{variant}" if variant else "")
                about = {"name": name, "dataset": dataset, "task": dataset.task, "booster_type": kind}
                configs.append(BenchmarkConfig(**about, training=chosen, variant=variant, **in_all))
    absent = [(config.name, list(reasons)) for config in configs]
    return Benchmarks(
        "compare",
        tuple(configs),
        tuple(notes),
        unavailable=_list_absent(absent, reasons),
        folded=folds is not None,
        runners=runners or {},
    )


def add_defaults(benchmarks: Benchmarks) -> Benchmarks:
    """Each benchmark by meaning, and once more with each library's own defaults."""
    varied = next((config.name for config in benchmarks.configs if config.variant is not None), None)
    if varied is not None:
        raise ConfigError(
            f"{the('profile')} cannot be both where variants are compared ({varied}): a library's own defaults have no"
            " variants."
        )
    configs, absent = [], []
    for config in benchmarks.configs:
        own = config.replace(name=f"{config.name}{OWN_DEFAULTS}", profile=Profile.DEFAULTS)
        configs += [config, own]
        lacking = [item for item in benchmarks.unavailable if item.spec == config.name]
        absent += [*lacking, *(item.replace(spec=own.name) for item in lacking)]
    return replace(benchmarks, configs=tuple(configs), unavailable=tuple(absent))


def vary_natives(benchmarks: Benchmarks, variants: Mapping[str, Mapping[str, Any]]) -> Benchmarks:
    """Each benchmark once per variant, in which the library has these of its own parameters."""
    libraries = {benchmarks.runner(name).library() for config in benchmarks.configs for name in config.libraries}
    if len(libraries) > 1:
        raise ConfigError(
            f"{the('variants')} must be for one library where they name its own parameters."
            f" Got {join_words(sorted(libraries))} instead."
        )
    found = {name: canonicalize_native(next(iter(libraries)), dict(native)) for name, native in variants.items()}
    configs = tuple(
        config.replace(name=f"{config.name}-{name}", variant=name, native=native)
        for config in benchmarks.configs
        for name, native in found.items()
    )
    absent = tuple(item.replace(spec=f"{item.spec}-{name}") for item in benchmarks.unavailable for name in found)
    return replace(benchmarks, configs=configs, unavailable=absent)


def name_variants(benchmarks: Benchmarks) -> Benchmarks:
    """Where a single library meets itself on a data set, what differs between its configs names the rows."""
    groups: dict[Any, list[BenchmarkConfig]] = {}
    for config in benchmarks.configs:
        alike = config.model_dump(include=_SHARED, mode="json")
        groups.setdefault((config.dataset.name, json.dumps(alike, sort_keys=True)), []).append(config)
    named: dict[str, BenchmarkConfig] = {}
    for group in groups.values():
        if len(group) == 1 or len(group[0].libraries) != 1:
            continue
        labels = [config.variant or label for config, label in zip(group, _label_differences(group), strict=True)]
        for config, label in zip(group, labels, strict=True):
            alone = label if labels.count(label) == 1 else ", ".join(filter(None, (label, config.name)))
            named[config.name] = config.replace(variant=alone)
    return replace(benchmarks, configs=tuple(named.get(config.name, config) for config in benchmarks.configs))


# What configs must have in common for their scores to be comparable, besides the data set.
_SHARED = {"task", "libraries", "validation_fraction", "seeds", "folds", "profile", "split", "splits"}


def _label_differences(configs: Sequence[BenchmarkConfig]) -> list[str]:
    """The settings of each config that not all of them share; those that are names go without the parameter's."""
    settings = [{"booster": config.booster_type, **dict(config.training)} for config in configs]
    differing = [name for name in settings[0] if len({each[name] for each in settings}) > 1]
    return [
        ", ".join(
            str(each[name].value) if isinstance(each[name], Enum) else f"{name}={each[name]}" for name in differing
        )
        for each in settings
    ]


def select_benchmarks(
    suite: str | BenchmarkSuite,
    libraries: Libraries = None,
    *,
    metrics: Sequence[str] = (),
    cv: str | int | None = None,
    splits: str | None = None,
    profile: Profile | str | None = None,
    home: Path | None = None,
    subset: int | None = None,
    skip_missing: bool = False,
) -> Benchmarks:
    """The benchmarks of a suite, with the libraries that are available, or only those named, and its data fetched."""
    found, runners = resolve_suite(suite, builds=libraries is None, home=home)
    only = find_competitors(libraries, home)
    found, notes = fetch_suite(take_subset(found, subset), skip_missing=skip_missing)
    benchmarks = make_benchmarks(found, only, runners, metrics=metrics, cv=cv, splits=splits, profile=profile)
    return replace(benchmarks, notes=(*benchmarks.notes, *notes))


def make_benchmarks(
    found: BenchmarkSuite,
    only: Mapping[str, type[Runner]] | None,
    runners: Mapping[str, type[Runner]],
    *,
    metrics: Sequence[str] = (),
    cv: str | int | None = None,
    splits: str | None = None,
    profile: Profile | str | None = None,
) -> Benchmarks:
    """The benchmarks of a suite whose libraries, and those named instead of them, are competitors' names."""
    names = dict.fromkeys(name for config in found.configs for name in config.libraries)
    every = only or {name: runners[name] if name in runners else RUNNERS[name] for name in names}
    usable, reasons = _find_usable(every, required=only is not None)
    folds, repeats = parse_cv(cv)
    changes: dict[str, Any] = {} if profile is None else {"profile": parse_member("profile", profile, Profile)}
    changes |= {"folds": folds, "seeds": derive_seeds(repeats)} if folds else {}
    changes |= {} if splits is None else {"splits": splits}
    configs = [
        config.replace(
            libraries=tuple(name for name in names if name in usable), metrics=(*config.metrics, *metrics), **changes
        )
        for config, names in _pair_libraries(found.configs, only)
    ]
    absent = _list_absent([(config.name, config.libraries) for config in found.configs], reasons)
    return Benchmarks(
        found.name,
        tuple(configs),
        (),
        found.default_seeds,
        absent,
        folded=folds is not None,
        runners=every,
        policy=found.policy,
    )


def _pair_libraries(
    configs: Sequence[BenchmarkConfig], only: Mapping[str, type[Runner]] | None
) -> list[tuple[BenchmarkConfig, Sequence[str]]]:
    """The libraries of each benchmark of a suite.

    If some are named, they replace the suite's own, except where a benchmark was not made for them; a benchmark that
    is left without any does not run.
    """
    if only is None:
        return [(config, config.libraries) for config in configs]
    named = [(config, [name for name, each in only.items() if _is_made_for(config, each)]) for config in configs]
    return [pair for pair in named if pair[1]] or [(config, list(only)) for config in configs]


def _is_made_for(config: BenchmarkConfig, runner: type[Runner]) -> bool:
    if runner.name in config.libraries or runner.library() in config.libraries:
        return True
    if config.training.device is not Device.CPU:  # one that it cannot use is said, not left out
        return True
    data = config.dataset
    request = FitRequest(
        task=config.task,
        training=config.training,
        booster_type=config.booster_type,
        profile=config.profile,
        n_classes=data.n_classes,
        quantiles=data.quantiles,
    )
    return runner.unsupported(request) is None


def _find_usable(runners: Mapping[str, type[Runner]], *, required: bool) -> tuple[list[str], dict[str, str]]:
    found = {name: runner.missing() for name, runner in runners.items()}
    reasons = {name: reason for name, reason in found.items() if reason}
    usable = [name for name in found if name not in reasons]
    if reasons and (required or not usable):
        name, reason = next(iter(reasons.items()))
        raise MissingLibraryError(f"{name}: {reason}.")
    return usable, reasons


def _list_absent(libraries: Iterable[tuple[str, Sequence[str]]], reasons: Mapping[str, str]) -> tuple[Exclusion, ...]:
    return tuple(
        Exclusion(spec=config, target=name, reason=reasons[name])
        for config, names in libraries
        for name in names
        if name in reasons
    )


def parse_cv(text: str | int | None) -> tuple[int | None, int]:
    """`5` is five folds once, `5x10` five folds repeated ten times."""
    if text is None:
        return None, 1
    match = re.fullmatch(r"(\d{1,4})(?:x(\d{1,4}))?", str(text))
    folds, repeats = (int(match[1]), int(match[2] or 1)) if match else (0, 0)
    if folds < 2 or repeats < 1:
        raise ConfigError(f"{the('cv')} must be folds or folds x repeats, such as 5 or 5x10. Got {text!r} instead.")
    return folds, repeats


def find_competitors(value: Any, home: Path | None) -> dict[str, type[Runner]] | None:
    """The adapters of libraries by name; one may be given by its file or its class. None: all that there are."""
    if value is None:
        return None
    given = [value] if isinstance(value, (str, type)) or not isinstance(value, Iterable) else list(value)
    if not given:
        raise ConfigError(f"{the('libraries')} must be a name or a list of names. Got [] instead.")
    return {runner.name: runner for runner in resolve_competitors(given, home).values()}


def parse_boosters(value: BoosterType | str | Sequence[BoosterType | str]) -> list[BoosterType]:
    given = [value] if isinstance(value, (str, BoosterType)) or not isinstance(value, Iterable) else list(value)
    names = [item.value if isinstance(item, BoosterType) else item for item in given]
    if not names or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{the('booster')} must be a name or a list of names. Got {names!r} instead.")
    return [parse_member("booster", name, BoosterType) for name in dict.fromkeys(names)]
