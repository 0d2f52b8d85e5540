"""What is to be evaluated, as data: benchmarks and suites. Nothing scientific is imported here."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.model import Model
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task
from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig

MAX_SEEDS = 10_000
DEFAULT_SEEDS = 5


def derive_seeds(count: int) -> tuple[int, ...]:
    """The RFC's seeds, the same everywhere: 42, 1379, 2716, ..."""
    if not 1 <= count <= MAX_SEEDS:
        raise ConfigError(f"The 'seeds' parameter must be a count from 1 to {MAX_SEEDS}. Got {count} instead.")
    return tuple(42 + 1337 * i for i in range(count))


class BenchmarkConfig(Model):
    """One benchmark: a data set, an algorithm with its parameters, and the libraries that compete."""

    name: Annotated[str, MinLen(1)]
    dataset: DatasetConfig
    task: Task
    booster_type: BoosterType = BoosterType.GBDT
    training: TrainingConfig = TrainingConfig()
    libraries: tuple[str, ...] = ()
    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.2
    seeds: tuple[int, ...] = derive_seeds(DEFAULT_SEEDS)  # those of the suite apply unless they are named here
    folds: Annotated[int, Ge(2)] | None = None
    variant: Annotated[str, MinLen(0)] | None = None  # only with a constraint is half a character refused
    profile: Profile = Profile.PARITY
    metrics: tuple[str, ...] = ()  # in addition to those of the task

    @property
    def own_seeds(self) -> tuple[int, ...]:
        """The seeds that this benchmark names itself; empty: it runs with the number of its suite."""
        return self.seeds if "seeds" in self.model_fields_set else ()


def _unique_names(configs: tuple[BenchmarkConfig, ...]) -> tuple[BenchmarkConfig, ...]:
    names = [config.name for config in configs]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigError(f"Config names must be unique in a suite. Got {', '.join(doubled)} more than once.")
    return configs


class BenchmarkSuite(Model):
    """Benchmarks that run together."""

    name: Annotated[str, MinLen(1)]
    configs: Annotated[tuple[BenchmarkConfig, ...], AfterValidator(_unique_names)]
    default_seeds: Annotated[int, Ge(1), Le(MAX_SEEDS)] = DEFAULT_SEEDS
    description: str = ""
