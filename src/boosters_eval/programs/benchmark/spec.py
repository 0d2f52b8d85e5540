"""What a fit is: a benchmark with everything resolved, and the identity of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.model import Model
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.engine.cell import Spec
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import Protocol
from boosters_eval.programs.benchmark.usermetrics import UserMetric
from boosters_eval.runners.base import FitRequest
from boosters_eval.runners.config import derive_seed
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig

if TYPE_CHECKING:
    from boosters_eval.engine.cell import Cell


class Timing(Model):
    """How a fit is measured."""

    timed: bool = False
    warmup: int = 0
    predict_runs: int = 1
    memory: bool = False
    adaptive: bool = False  # repeated by the protocol adaptive-v1


class FitSpec(Spec):
    """A benchmark with everything resolved that its result depends on, except library and repeat."""

    workload: Literal["fit"] = "fit"
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
    metrics: tuple[str, ...]
    primary_metric: str
    timing: Timing
    user_metrics: tuple[UserMetric, ...] = ()
    protocol: Protocol | None = None  # None: our own way

    @property
    def uses_device(self) -> bool:
        return self.training.device is not Device.CPU

    @property
    def is_paired(self) -> bool:
        return self.timing.timed

    @property
    def preload(self) -> tuple[str, ...]:
        """The files with the user's own metrics."""
        return tuple(metric.model_dump_json() for metric in self.user_metrics)

    def identity(self) -> dict[str, Any]:
        """The identity without the location of a metric's file: only its content matters."""
        content = self.model_dump(mode="json", exclude={"user_metrics"})
        users = sorted((metric.name, metric.higher_is_better, metric.digest) for metric in self.user_metrics)
        return {**content, "user_metrics": users}

    def request(self, seed: int) -> FitRequest:
        encoded = self.protocol is not None and self.protocol.encodes_categories
        return FitRequest(
            task=self.task,
            training=self.training,
            booster_type=self.booster_type,
            profile=self.profile,
            n_classes=self.n_classes,
            quantiles=self.quantiles,
            categorical=() if encoded else self.categorical,
            has_missing=self.has_missing,
            weighted=self.weighted,
            max_categories=0 if encoded else self.max_categories,
            n_threads=self.n_threads,
            seed=seed,
        )


def spec_of(cell: Cell) -> FitSpec:
    if not isinstance(cell.spec, FitSpec):
        raise TypeError(f"{cell} is not a cell of the workload 'fit'.")
    return cell.spec


def model_seed(cell: Cell) -> int:
    """The model's seed, which differs by spec and library but is the same in every process and for every build."""
    return derive_seed(cell.repeat.seed, cell.spec.name, cell.target.library, spec_of(cell).training.seed)


def identity_of(spec: FitSpec) -> dict[str, Any]:
    """The fields that every record of a spec's cells contains."""
    return {
        "config_name": spec.name,
        "task": spec.task,
        "booster_type": spec.booster_type.value,
        "dataset_name": spec.dataset,
        "variant": spec.variant,
        "profile": spec.profile.value,
    }
