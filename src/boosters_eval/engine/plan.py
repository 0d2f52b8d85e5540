"""What will be run: a frozen list of cells whose run_id is a digest of their content."""

from __future__ import annotations

import hashlib
import json
import random
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.benchmark.config import BenchmarkConfig, derive_seeds
from boosters_eval.benchmark.results import Unsupported, cell_key
from boosters_eval.benchmark.usermetrics import UserMetric, from_spec
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.model import Model
from boosters_eval.datasets import materialise
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.engine import threads
from boosters_eval.metrics import for_task, primary_metric
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest
from boosters_eval.runners.installed import LibraryBuild, library_build
from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.datasets import Stored

SCHEMA_VERSION = 1
MAX_CELLS = 10_000_000


class Timing(Model):
    """How a cell is measured."""

    timed: bool = False
    warmup: int = 0
    predict_runs: int = 1
    memory: bool = False


class PlannedConfig(Model):
    """A benchmark with everything resolved that its result depends on, short of library and seed."""

    name: str
    dataset: str
    data_digest: str
    task: Task
    booster_type: BoosterType
    training: TrainingConfig
    profile: Profile
    variant: str | None
    n_classes: int | None
    quantiles: tuple[float, ...]
    categorical: tuple[int, ...]
    has_missing: bool
    weighted: bool
    max_categories: int
    split: SplitSpec
    n_threads: int
    metrics: tuple[str, ...]
    primary_metric: str
    timing: Timing

    def request(self, seed: int) -> FitRequest:
        """What a runner is asked for."""
        return FitRequest(
            task=self.task,
            training=self.training,
            booster_type=self.booster_type,
            profile=self.profile,
            n_classes=self.n_classes,
            quantiles=self.quantiles,
            categorical=self.categorical,
            has_missing=self.has_missing,
            weighted=self.weighted,
            max_categories=self.max_categories,
            n_threads=self.n_threads,
            seed=seed,
        )


class Cell(NamedTuple):
    """One unit of work: a benchmark, a library, a seed, and a fold where there are folds."""

    config: PlannedConfig
    library: str
    seed: int
    fold: int | None = None

    @property
    def key(self) -> str:
        """The cell's name within its plan."""
        return cell_key(self.config.name, self.library, self.seed, self.fold)

    @property
    def model_seed(self) -> int:
        """The seed of the model: apart for every config and library, the same in every process."""
        text = f"{self.seed}|{self.config.training.seed}|{self.config.name}|{self.library}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) & 0x7FFF_FFFF


class CellRef(NamedTuple):
    """A cell as the plan's file holds it: the config by its position."""

    config: int
    library: str
    seed: int
    fold: int | None


class Plan(Model):
    """The cells of one run, and the builds of the libraries that they run on."""

    schema_version: int = SCHEMA_VERSION
    suite: str
    configs: tuple[PlannedConfig, ...]
    refs: tuple[CellRef, ...]
    libraries: dict[str, LibraryBuild]
    unsupported: tuple[Unsupported, ...] = ()
    user_metrics: tuple[UserMetric, ...] = ()

    @cached_property
    def run_id(self) -> str:
        """A digest of what the results depend on; neither names of suites nor the order of anything is part of it."""
        content = {
            "schema_version": self.schema_version,
            "configs": sorted(_canonical(c.model_dump(mode="json")) for c in self.configs),
            "cells": sorted(cell.key for cell in self.cells),
            "libraries": {name: build.model_dump() for name, build in self.libraries.items()},
            "user_metrics": sorted((m.name, m.higher_is_better, m.digest) for m in self.user_metrics),
        }
        return hashlib.sha256(_canonical(content).encode()).hexdigest()[:16]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order in which they are reported."""
        return tuple(Cell(self.configs[ref.config], ref.library, ref.seed, ref.fold) for ref in self.refs)

    def libraries_of(self, config: PlannedConfig) -> list[str]:
        """The libraries that run a benchmark, in the order of their first cell."""
        here = self.configs.index(config)
        return list(dict.fromkeys(ref.library for ref in self.refs if ref.config == here))

    def in_running_order(self, cells: Iterable[Cell]) -> list[Cell]:
        """Interleaved: seed by seed, and the libraries shuffled anew in each, so that drift hits all alike."""
        blocks: dict[tuple[int, int], dict[str, list[Cell]]] = {}
        for cell in cells:
            blocks.setdefault((cell.seed, cell.fold or 0), {}).setdefault(cell.config.name, []).append(cell)
        ordered: list[Cell] = []
        for (seed, fold), configs in blocks.items():
            for name, group in configs.items():
                random.Random(f"{self.run_id}|{seed}|{fold}|{name}").shuffle(group)  # noqa: S311 (an order, no secret)
                ordered += group
        return ordered


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def make_plan(
    suite: str,
    configs: Sequence[BenchmarkConfig],
    *,
    seeds: int,
    timing: Timing | None = None,
    n_threads: int | None = None,
) -> tuple[Plan, dict[str, Stored]]:
    """Resolve data, threads and libraries; what a library cannot do is set apart with its reason."""
    timing = timing or Timing()
    user_metrics: dict[str, UserMetric] = {}
    for metric in (found for config in configs for found in map(from_spec, config.metrics) if found):
        if user_metrics.setdefault(metric.name, metric) != metric:
            raise ConfigError(f"Two different metrics are named '{metric.name}': rename one of the functions.")
    _check_names(configs)
    for metric in user_metrics.values():
        metric.load()
    stored = _store(configs)
    planned: list[PlannedConfig] = []
    refs: list[CellRef] = []
    unsupported: list[Unsupported] = []
    for config in configs:
        resolved = _resolve(config, stored[config.dataset.name], timing, n_threads)
        _check_folds(config, stored[config.dataset.name])
        able = []
        for library in config.libraries:
            reason = RUNNERS[library].unsupported(resolved.request(0))
            if reason is None:
                able.append(library)
            else:
                unsupported.append(Unsupported(config_name=config.name, library=library, reason=reason))
        folds = [None] if config.folds is None else range(config.folds)
        here = len(planned)
        planned.append(resolved)
        refs += [
            CellRef(here, library, seed, fold)
            for library in able
            for seed in config.seeds or derive_seeds(seeds)
            for fold in folds
        ]
        if len(refs) > MAX_CELLS:
            raise ConfigError(f"The plan has more than {MAX_CELLS} cells. Use fewer seeds, folds or data sets.")
    used = sorted({ref.library for ref in refs})
    plan = Plan(
        suite=suite,
        configs=tuple(planned),
        refs=tuple(refs),
        libraries={name: library_build(RUNNERS[name]) for name in used},
        unsupported=tuple(unsupported),
        user_metrics=tuple(user_metrics.values()),
    )
    return plan, stored


def _check_names(configs: Sequence[BenchmarkConfig]) -> None:
    """A cell is known by its names, so two things of one name would be taken for one."""
    names: set[str] = set()
    for config in configs:
        if config.name in names:
            raise ConfigError(f"The config name '{config.name}' is there twice.")
        names.add(config.name)
        for kind, given in (("library", config.libraries), ("seed", config.seeds)):
            if len(set(given)) < len(given):
                raise ConfigError(f"The config '{config.name}' has a {kind} twice: {', '.join(map(str, given))}.")


def _store(configs: Sequence[BenchmarkConfig]) -> dict[str, Stored]:
    """Every data set in the cache, by its name; one name must mean one content."""
    stored: dict[str, Stored] = {}
    for config in configs:
        data = materialise(config.dataset)
        if stored.setdefault(data.name, data).digest != data.digest:
            raise ConfigError(f"Two different data sets are named '{data.name}': give one another name.")
    return stored


def _check_folds(config: BenchmarkConfig, data: Stored) -> None:
    rows = data.n_groups if config.task is Task.RANKING and data.n_groups else data.n_samples
    if config.folds is not None and config.folds > rows:
        raise ConfigError(f"{config.folds} folds are more than the {rows} rows or queries of {config.dataset.name}.")


def _metric_names(config: BenchmarkConfig) -> tuple[str, ...]:
    """The further metrics in canonical form; one that does not fit the task is refused before anything runs."""
    users = [from_spec(spec) for spec in config.metrics]
    names = [user.name if user else spec for user, spec in zip(users, config.metrics, strict=True)]
    return tuple(for_task(name, config.task).spec for name in names)


def _resolve(config: BenchmarkConfig, data: Stored, timing: Timing, n_threads: int | None) -> PlannedConfig:
    return PlannedConfig(
        name=config.name,
        dataset=config.dataset.name,
        data_digest=data.digest,
        task=config.task,
        booster_type=config.booster_type,
        training=config.training,
        profile=config.profile,
        variant=config.variant,
        n_classes=data.n_classes,
        quantiles=config.dataset.quantiles,
        categorical=data.categorical,
        has_missing=data.has_missing,
        weighted=data.weighted,
        max_categories=data.max_categories,
        split=SplitSpec(validation_fraction=config.validation_fraction, folds=config.folds),
        n_threads=threads.resolve(n_threads if n_threads is not None else config.training.n_threads),
        metrics=_metric_names(config),
        primary_metric=config.dataset.primary_metric or primary_metric(config.task),
        timing=timing,
    )
