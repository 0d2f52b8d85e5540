"""What people do with a library: tasks, data, growths, sampling, early stopping and objectives, on small real data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from boosters_eval.datasets.catalog import BUILTIN
from boosters_eval.datasets.config import DatasetConfig, Table
from boosters_eval.runners.base import lazy_module
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from boosters_eval.runners.config import BenchmarkConfig
else:
    np = lazy_module("numpy")

_ROWS = 1_500
_ROUNDS = 40
_STREAM = 23  # keeps these weights and gaps apart from other uses of a stream


@dataclass(frozen=True)
class UpgradeCase:
    """One thing that a version must go on doing; `asked` are the canonical parameters that are passed at all."""

    name: str
    dataset: DatasetConfig
    asked: Mapping[str, Any] = field(default_factory=dict)
    booster: BoosterType = BoosterType.GBDT
    native: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by library; others have no such cell
    config: BenchmarkConfig | None = None  # of a suite, which says how

    @property
    def training(self) -> TrainingConfig:
        return TrainingConfig(**{"n_estimators": _ROUNDS, **self.asked})

    @property
    def names(self) -> tuple[str, ...]:
        return ("n_estimators", *self.asked)


def list_matrix(library: str) -> list[UpgradeCase]:
    """The default matrix, without what a library has no name for."""
    return [cell for cell in _cells() if not cell.native or library in cell.native]


def vary(dataset: DatasetConfig) -> list[UpgradeCase]:
    """What the matrix does with any data, done with data of the user."""
    return [UpgradeCase(f"{dataset.name}{name}", dataset, asked) for name, asked in _WAYS.items()]


_STOPPING = {"n_estimators": 200, "early_stopping_rounds": 5}
_LEAFWISE = {"growth_strategy": GrowthStrategy.LEAFWISE, "n_leaves": 15}
_DEPTHWISE = {"growth_strategy": GrowthStrategy.DEPTHWISE, "max_depth": 4}
_WAYS: dict[str, dict[str, Any]] = {
    "": {},
    ", early stopping": _STOPPING,
    ", depthwise": _DEPTHWISE,
    ", leafwise": _LEAFWISE,
    ", row sampling": {"subsample": 0.7},
    ", column sampling": {"colsample": 0.7},
}
_ABSOLUTE = {
    "xgboost": {"objective": "reg:absoluteerror"},
    "lightgbm": {"objective": "regression_l1"},
    "catboost": {"loss_function": "MAE"},
    "sklearn": {"loss": "absolute_error"},
}
_COUNTS = {
    "xgboost": {"objective": "count:poisson"},
    "lightgbm": {"objective": "poisson"},
    "catboost": {"loss_function": "Poisson"},
    "sklearn": {"loss": "poisson"},
}
_LOGISTIC = {
    "xgboost": {"objective": "reg:logistic"},
    "lightgbm": {"objective": "cross_entropy"},
}
_ONE_AGAINST_REST = {
    "lightgbm": {"objective": "multiclassova"},
    "catboost": {"loss_function": "MultiClassOneVsAll"},
}


def _cells() -> Iterator[UpgradeCase]:
    regression, binary, multiclass = (_take(name) for name in ("california", "breast_cancer", "wine"))
    for task, data in (("regression", regression), ("binary", binary), ("multiclass", multiclass)):
        yield UpgradeCase(task, data)
        yield UpgradeCase(f"{task} with weights", _with(data, "weights"))
        yield UpgradeCase(f"{task} with missing values", _with(data, "missing"))
        for name, asked in _WAYS.items():
            if asked:
                yield UpgradeCase(f"{task}{name}", data, asked)
    yield UpgradeCase("multiclass of ten", _take("digits", 600), {"n_estimators": 15})
    yield UpgradeCase("regression with categories", _take("diamonds"))
    yield UpgradeCase("binary with categories and missing values", _take("adult"))
    yield UpgradeCase("regression, absolute error", regression, native=_ABSOLUTE)
    yield UpgradeCase("regression, Poisson", regression, native=_COUNTS)
    yield UpgradeCase("binary, cross entropy", binary, native=_LOGISTIC)
    yield UpgradeCase("multiclass, one against the rest", multiclass, native=_ONE_AGAINST_REST)
    yield UpgradeCase("quantiles", BUILTIN["synthetic_quantile_small"])
    yield UpgradeCase("ranking", BUILTIN["synthetic_rank_small"])
    for booster, words in ((BoosterType.GBLINEAR, "linear model"), (BoosterType.LINEAR_TREES, "linear trees")):
        yield UpgradeCase(f"regression, {words}", regression, booster=booster)
        yield UpgradeCase(f"binary, {words}", binary, booster=booster)


def _take(name: str, rows: int = _ROWS) -> DatasetConfig:
    found = BUILTIN[name]
    return found.replace(subsample=rows) if (found.n_samples or 0) > rows else found


def _with(dataset: DatasetConfig, what: str) -> DatasetConfig:
    """The data set with weights that differ by row, or without a tenth of its values."""
    loader = partial(_load_with, dataset.loader, what)
    missing = {"has_missing": True} if what == "missing" else {}
    return dataset.replace(name=f"{dataset.name}_{what}", loader=loader, recipe=None, table_digest=None, **missing)


def _load_with(loader: Any, what: str) -> Table:
    from boosters_eval.datasets.generated import Stream  # noqa: PLC0415 (loads numpy)

    found = loader()
    table = found if isinstance(found, Table) else Table(*found)
    stream = Stream(_STREAM, len(table.y))
    if what == "weights":
        return replace(table, weights=0.25 + np.floor(8 * stream.uniform(len(table.y))) / 4)
    x = np.array(table.x, dtype=np.float32)
    x[(stream.uniform(x.size) < 0.1).reshape(x.shape)] = np.nan
    return replace(table, x=x)
