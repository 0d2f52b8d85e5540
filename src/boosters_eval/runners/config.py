"""What is to be evaluated, as data: one benchmark. Nothing scientific is imported here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import Field

from boosters_eval.core.errors import ConfigError, pick
from boosters_eval.core.model import Model
from boosters_eval.core.request import MAX_SEEDS
from boosters_eval.core.terms import the
from boosters_eval.datasets.config import DatasetConfig, SplitBy, SplitText, parse_split
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import FitRequest
from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig

E = TypeVar("E", bound=Enum)
DEFAULT_SEEDS = 5
DEFAULT_WINDOWS = 5  # of time, each a tenth of the rows: long enough that neighbors are hardly alike


def derive_seeds(count: int) -> tuple[int, ...]:
    """The RFC's seeds, the same everywhere: 42, 1379, 2716, ..."""
    if not 1 <= count <= MAX_SEEDS:
        raise ConfigError(f"{the('seeds')} must be a count from 1 to {MAX_SEEDS}. Got {count} instead.")
    return tuple(42 + 1337 * i for i in range(count))


def derive_seed(base_seed: int, config_name: str, library: str, training_seed: int = TrainingConfig().seed) -> int:
    """The RFC's seed of one model: it differs by benchmark and library, and is the same in every process."""
    text = f"{base_seed}|{training_seed}|{config_name}|{library}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) & 0x7FFF_FFFF


def parse_member(kind: str, value: Any, enum: type[E]) -> E:
    """The member of an enumeration that a user names by its value; `kind` is what a sentence calls it."""
    text, names = str(getattr(value, "value", value)), [str(member.value) for member in enum]
    return enum(pick(kind, text, names))


@dataclass(frozen=True)
class SeveralTargets(FitRequest):
    """A fit with a matrix of targets, of which adapters know nothing."""

    n_targets: int = 2


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
    native: dict[str, Any] = Field(default_factory=dict)  # the library's own parameters, which win
    variant: Annotated[str, MinLen(0)] | None = None  # only with a constraint is half a character refused
    profile: Profile = Profile.PARITY
    metrics: tuple[str, ...] = ()  # in addition to those of the task
    split: SplitText | None = None  # time:COLUMN, group:COLUMN or random; None: as the data set says
    splits: Literal["balanced", "random"] = "balanced"  # disjoint test sets, or each drawn anew

    @property
    def own_seeds(self) -> tuple[int, ...]:
        """The seeds that this benchmark names itself; empty: it runs with the number of its suite."""
        return self.seeds if "seeds" in self.model_fields_set else ()

    @property
    def split_by(self) -> SplitBy | None:
        """The column that rows are split by, if this benchmark or its data set names one."""
        return parse_split(self.split if self.split is not None else self.dataset.split_by)

    @property
    def is_by_time(self) -> bool:
        """Whether its repeats are windows of time, so that seeds only vary the model."""
        return self.split_by is not None and self.split_by.kind == "time"

    @property
    def n_folds(self) -> int | None:
        """The number of folds, or of windows of time; None: one split per seed."""
        return self.folds or (DEFAULT_WINDOWS if self.is_by_time else None)
