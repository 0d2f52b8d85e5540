"""What is to be evaluated, as data: tasks, boosters, canonical parameters, benchmarks, suites.

Nothing scientific is imported here, so that the command line starts fast.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, BaseModel, ConfigDict

from boosters_eval._model import Model
from boosters_eval.errors import ConfigError

MAX_SEEDS = 10_000
DEFAULT_SEEDS = 5


class Task(Enum):
    """What is predicted."""

    REGRESSION = "regression"
    BINARY = "binary"
    MULTICLASS = "multiclass"
    QUANTILE = "quantile"
    RANKING = "ranking"

    @property
    def is_classification(self) -> bool:
        """Whether labels are classes (so that splits are stratified)."""
        return self in (Task.BINARY, Task.MULTICLASS)


class BoosterType(Enum):
    """Which algorithm learns."""

    GBDT = "gbdt"
    GBLINEAR = "gblinear"
    LINEAR_TREES = "linear_trees"


class GrowthStrategy(Enum):
    """How a tree grows: level by level, or the best leaf first."""

    DEPTHWISE = "depthwise"
    LEAFWISE = "leafwise"


class Profile(Enum):
    """How canonical parameters become native ones."""

    PARITY = "parity"  # mapped by meaning
    DEFAULTS = "defaults"  # each library as it comes


def _some_threads(count: int) -> int:
    if count != -1 and count < 1:
        raise ValueError("-1 (all that this process may use) or at least 1")
    return count


Threads = Annotated[int, AfterValidator(_some_threads)]
Fraction = Annotated[float, Gt(0), Le(1)]
NonNegative = Annotated[float, Ge(0)]


class TrainingConfig(Model):
    """Canonical training parameters: one meaning for all libraries.

    max_depth alone limits depth-wise growth, n_leaves alone leaf-wise growth. min_samples_leaf is 1, not the
    RFC's 20: only two of the five libraries can count rows in a leaf, and a default that three of them
    approximate would not be fair. With early_stopping_rounds a fifth of the training rows is held out for it, the
    same rows for every library.
    """

    n_estimators: Annotated[int, Ge(1), Le(1_000_000)] = 100
    learning_rate: Annotated[float, Gt(0), Le(10)] = 0.1
    max_depth: Annotated[int, Ge(1), Le(16)] = 6
    n_leaves: Annotated[int, Ge(2), Le(131_072)] = 31
    min_samples_leaf: Annotated[int, Ge(1)] = 1
    min_child_weight: NonNegative = 1e-3
    l1: NonNegative = 0.0
    l2: NonNegative = 1.0
    min_gain: NonNegative = 0.0
    max_bins: Annotated[int, Ge(2), Le(65_535)] = 255
    subsample: Fraction = 1.0
    colsample: Fraction = 1.0
    n_threads: Threads = 1
    seed: Annotated[int, Ge(0)] = 42
    growth_strategy: GrowthStrategy = GrowthStrategy.DEPTHWISE
    early_stopping_rounds: Annotated[int, Ge(1)] | None = None


class DatasetConfig(Model):
    """A data set: what it is, and how to get it.

    The loader is called once, in the parent process. It returns (x, y) or a `boosters_eval.datasets.Table`.
    """

    name: Annotated[str, MinLen(1)]
    task: Task
    loader: Callable[[], Any]
    n_classes: int | None = None
    n_features: int | None = None
    n_samples: int | None = None
    subsample: Annotated[int, Ge(1)] | None = None
    description: str = ""
    source: str = ""
    licence: str = ""
    categorical: tuple[str | int, ...] = ()  # names or positions of categorical columns
    feature_names: tuple[str, ...] = ()
    has_missing: bool | None = None
    quantiles: tuple[Annotated[float, Gt(0), Lt(1)], ...] = ()
    primary_metric: str | None = None
    splitter: Callable[..., Any] | None = None
    recipe: str | None = None  # changes whenever a built-in loader's data would; None: never trusted from the cache
    available: Callable[[], str | None] | None = None  # None, or one sentence on why it is not here


class SplitSpec(Model):
    """How rows become training and validation rows; the seed and the fold complete it."""

    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.2
    folds: Annotated[int, Ge(2)] | None = None  # None: one random split a seed


class BenchmarkConfig(Model):
    """One benchmark: a data set, an algorithm with its parameters, and the libraries that compete."""

    name: Annotated[str, MinLen(1)]
    dataset: DatasetConfig
    task: Task
    booster_type: BoosterType = BoosterType.GBDT
    training: TrainingConfig = TrainingConfig()
    libraries: tuple[str, ...] = ()
    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.2
    folds: Annotated[int, Ge(2)] | None = None
    seeds: tuple[int, ...] = ()  # empty: the suite's default
    variant: str | None = None
    profile: Profile = Profile.PARITY
    metrics: tuple[str, ...] = ()  # beside those of the task


def _unique_names(configs: tuple[BenchmarkConfig, ...]) -> tuple[BenchmarkConfig, ...]:
    names = [config.name for config in configs]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigError(f"Config names must be unique in a suite. Got {', '.join(doubled)} more than once.")
    return configs


class BenchmarkSuite(Model):
    """Benchmarks that are run together."""

    name: Annotated[str, MinLen(1)]
    configs: Annotated[tuple[BenchmarkConfig, ...], AfterValidator(_unique_names)]
    default_seeds: Annotated[int, Ge(1), Le(MAX_SEEDS)] = DEFAULT_SEEDS
    description: str = ""


def derive_seeds(count: int) -> tuple[int, ...]:
    """The RFC's seeds, everywhere the same: 42, 1379, 2716, ..."""
    if not 1 <= count <= MAX_SEEDS:
        raise ConfigError(f"The 'seeds' parameter must be a count from 1 to {MAX_SEEDS}. Got {count} instead.")
    return tuple(42 + 1337 * i for i in range(count))


MarkKind = Literal["exact", "approximated", "unsupported"]


class Mark(BaseModel):
    """How faithfully a library takes one canonical parameter. Read by the hundred thousand, so a plain model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameter: str
    kind: MarkKind
    reason: str = ""
