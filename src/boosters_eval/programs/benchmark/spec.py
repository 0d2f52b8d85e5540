"""What a fit is: a benchmark with everything resolved, metrics of the user included, and the identity of its cells."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import compute_digest, read_text, resolved
from boosters_eval.core.model import Model
from boosters_eval.core.modules import address_of, load_address, named_in
from boosters_eval.core.terms import the
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.engine.cell import Spec
from boosters_eval.metrics import METRICS, Metric, find, is_declared, metric_from_callable, register_metric
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import Protocol
from boosters_eval.runners.base import FitRequest
from boosters_eval.runners.config import SeveralTargets, derive_seed
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boosters_eval.engine.cell import Cell


_DIRECTIONS = {"higher": True, "lower": False}


class UserMetric(Model):
    """Where a metric comes from, and a digest of its source, which is part of the plan."""

    name: str
    file: str
    higher_is_better: bool
    digest: str
    module: str | None = None  # imported by its name instead of from the file, where that is possible
    function: str | None = None  # what the module calls it; None: as the metric

    def find(self) -> Callable[..., Any]:
        """The function itself; the file that it is in may register this and that as it runs."""
        if self.module is None and self.function is None:
            function = named_in(Path(self.file), self.name, "function")
        else:
            file = None if self.module else self.file
            function = load_address({"module": self.module, "name": self.function or self.name, "file": file})
        found: Callable[..., Any] = function
        return found

    def load(self) -> None:
        """Register the function under its name, in this process."""
        register_metric(self.name, self.find(), higher_is_better=self.higher_is_better, replace=True)


def find_in_file(spec: str) -> UserMetric | None:
    """The metric named by a spec of the form FILE.py:FUNCTION[:higher|lower]; None for any other spec."""
    file, found, rest = spec.partition(".py:")
    if not found:
        return None
    name, _, direction = rest.partition(":")
    path = resolved(Path(f"{file}.py"))
    source = read_text(path)
    function = named_in(path, name, "function")
    higher = _DIRECTIONS.get(direction) if direction else getattr(function, "higher_is_better", None)
    if not isinstance(higher, bool):
        raise ConfigError(
            f"The metric '{name}' must say which way is better: write '{spec.removesuffix(':' + direction)}:higher' or"
            f" ':lower', or set {name}.higher_is_better in the file."
        )
    digest = compute_digest(source, 16)
    return UserMetric(name=name, file=str(path), higher_is_better=higher, digest=digest)


def find_registered(spec: str) -> UserMetric | None:
    """A metric that was registered in this process; None for one that is built in, or not known at all.

    Workers find its function by module and name. One that has none is refused, before anything runs.
    """
    metric = find(spec)
    if metric is None or isinstance(metric.info.implementation, str):
        return None
    if is_declared(metric):
        raise ConfigError(
            f"The metric '{metric.name}' is only known by its values, from a file: register its function."
        )
    function: Any = metric.info.implementation
    address = _address(metric.name, function)
    file = address["file"] or getattr(sys.modules[function.__module__], "__file__", None)
    source = Path(file).read_bytes() if file else address["module"].encode()  # what is compiled in has no file
    return UserMetric(
        name=metric.name,
        file=str(file or ""),
        higher_is_better=metric.higher_is_better,
        digest=compute_digest(source, 16),
        module=None if address["file"] else address["module"],
        function=None if address["name"] == metric.name else address["name"],
    )


def _address(name: str, function: Any) -> dict[str, Any]:
    who, remedy = f"The metric '{name}' cannot be used in a run", "define it with def at the top of a module"
    if not inspect.isroutine(function) or inspect.ismethod(function):
        got = type(function).__name__
        raise ConfigError(f"{who}: workers find a function by its name, and this is a {got}; {remedy}.")
    if function.__name__ == "<lambda>":
        raise ConfigError(f"{who}: workers find a function by its name, and a lambda has none; {remedy}.")
    routine: Any = function
    address = address_of(routine, "metric")
    found: Any = sys.modules.get(routine.__module__)
    for part in address["name"].split("."):
        found = getattr(found, part, None)
    if found is not function:
        where = f"{address['module']}.{address['name']}"
        raise ConfigError(f"{who}: {where} is not this function (any more): register what it is now.")
    return address


def metric_names(given: Sequence[Any]) -> list[str]:
    """What a caller asks for, by name. A function is registered under its own; it says which way is better itself."""
    return [item if isinstance(item, str) else _registered(item) for item in given]


def _registered(item: Any) -> str:
    metric = item if isinstance(item, Metric) else _from_function(item)
    if metric.info.built_in:
        return metric.spec
    _address(metric.name, metric.info.implementation)
    known = find(metric.name)
    if known is not None and _home(known.info.implementation) != _home(metric.info.implementation):
        raise ConfigError(f"Two different metrics are named '{metric.name}': rename one of the functions.")
    METRICS.register(metric.name, metric.info, replace=True)
    return metric.name


def _from_function(item: Any) -> Metric:
    if not callable(item):
        raise ConfigError(f"{the('metrics')} must be names, functions or Metrics. Got {item!r} instead.")
    name, higher = getattr(item, "__name__", type(item).__name__), getattr(item, "higher_is_better", None)
    _address(name, item)
    if not isinstance(higher, bool):
        raise ConfigError(
            f"The metric '{name}' must say which way is better: set {name}.higher_is_better to True or False, or"
            f" pass metric_from_callable({name}, higher_is_better=...)."
        )
    return metric_from_callable(item, higher_is_better=higher)


def _home(function: Any) -> tuple[str, str] | str:
    """A function may be defined anew, when its module is loaded again, and is still the same metric."""
    return function if isinstance(function, str) else (function.__module__, function.__qualname__)


class Timing(Model):
    """How a fit is measured."""

    timed: bool = False
    warmup: int = 0
    predict_runs: int = 1
    memory: bool = False
    adaptive: bool = False  # repeated by the protocol adaptive-v1


_RARE = ("n_columns", "centered", "targets", "native", "inner")  # what follows from the data, or is hardly ever set


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
    n_rows: int = 0
    n_columns: int = 0
    centered: bool = False  # targets that float32 would blur are learned less their mean, by all libraries alike
    split: SplitSpec
    metrics: tuple[str, ...]
    primary_metric: str
    timing: Timing
    user_metrics: tuple[UserMetric, ...] = ()
    targets: tuple[str, ...] = ()  # the names of several; empty: there is one
    native: dict[str, Any] = Field(default_factory=dict)  # the library's own parameters of a variant, which win
    protocol: Protocol | None = None  # None: our own way
    inner: int = 0  # the training rows are split once more, to choose by: which part of them is scored on; 0: none is

    @property
    def takes_units(self) -> bool:
        """Whether a model is the same in any unit of its target: nothing that is asked for is in that unit."""
        return self.training.l1 == 0 and self.training.min_gain == 0

    @property
    def uses_device(self) -> bool:
        return self.training.device is not Device.CPU

    @property
    def is_paired(self) -> bool:
        return self.timing.timed

    @property
    def work(self) -> float:
        outputs = max(self.n_classes or 1, len(self.quantiles), len(self.targets), 1)
        return float(
            self.n_rows * self.n_columns * self.training.n_estimators * (outputs if self.task is not Task.BINARY else 1)
        )

    @property
    def preload(self) -> tuple[str, ...]:
        """The files with the user's own metrics."""
        return tuple(metric.model_dump_json() for metric in self.user_metrics)

    def identity(self) -> dict[str, Any]:
        """The identity without the location of a metric's file, and without what follows from the data."""
        content = self.model_dump(mode="json", exclude={"user_metrics", *_RARE})
        content |= {"inner": self.inner} if self.inner else {}
        content |= {"native": self.native} if self.native else {}
        content |= {"centered": True} if self.centered else {}
        content |= {"targets": list(self.targets)} if self.targets else {}
        users = sorted((metric.name, metric.higher_is_better, metric.digest) for metric in self.user_metrics)
        return {**content, "user_metrics": users}

    def request(self, seed: int) -> FitRequest:
        encoded = self.protocol is not None and self.protocol.encodes_categories
        several = partial(SeveralTargets, n_targets=len(self.targets))
        make: Callable[..., FitRequest] = several if self.targets else FitRequest
        return make(
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
            n_columns=0 if encoded else self.n_columns,
            n_threads=self.n_threads,
            seed=seed,
            native=self.native,
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
