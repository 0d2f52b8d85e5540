"""What metrics there are, as data: names, directions, ranges, tasks, parameters. It imports nothing scientific."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.core.registry import Registry
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

Direction = Literal["lower_better", "higher_better"]
Value = float | int | str | tuple[float, ...] | None
# What a score can resolve: any difference, steps of one row in n, or steps whose size the number of rows does not tell
# (a class, a rank or a group may have few rows).
Resolution = Literal["continuous", "rows", "unknown"]


class MetricWarning(UserWarning):
    """A score that had to be defined by convention, for example AUC with one class."""


@dataclass(frozen=True)
class Param:
    """A parameter of a metric; the first one is what stands bare after the '@' of a spec."""

    name: str
    kind: Literal["float", "int", "levels", "choice"]
    default: Value
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetricInfo:
    """The declaration of one metric."""

    name: str
    summary: str
    higher_is_better: bool
    tasks: frozenset[Task]
    # "module:function" of this package, or the user's callable, which need not be hashable
    implementation: str | Callable[..., Any] = field(hash=False)
    params: tuple[Param, ...] = ()
    aliases: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # "groups", "sensitive"
    reversed_by: tuple[str, str] | None = None  # the parameter value that reverses the direction
    label: str = ""  # as a person reads it; the name where it is empty
    low: float | None = None  # what no value can be below; None: unbounded, or unknown of a user's metric
    high: float | None = None
    resolution: Resolution = "unknown"
    constant_is_best: bool = False  # whether the same prediction for every row cannot be beaten, whatever the data

    @property
    def built_in(self) -> bool:
        """Whether it is one of this package's, which no user's metric can replace."""
        return isinstance(self.implementation, str)

    @property
    def direction(self) -> Direction:
        """The direction with default parameters, in the words of result files."""
        return "higher_better" if self.higher_is_better else "lower_better"


_POINT = frozenset({Task.REGRESSION, Task.QUANTILE})
_QUANTILE = frozenset({Task.QUANTILE})
_BINARY = frozenset({Task.BINARY})
_MULTICLASS = frozenset({Task.MULTICLASS})
_RANKING = frozenset({Task.RANKING})

_THRESHOLD = Param("threshold", "float", 0.5)
_ALPHAS = Param("alphas", "levels", ())
_CUT = Param("k", "int", None, low=1)
_MODE = Param("mode", "choice", "difference", choices=("difference", "ratio"))

_LOWER = False
_HIGHER = True

_BUILTIN = (
    MetricInfo(
        "rmse",
        "root mean squared error, averaged over outputs",
        _LOWER,
        _POINT,
        "regression:rmse",
        aliases=("root_mean_squared_error",),
        label="RMSE",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "mae",
        "mean absolute error, averaged over outputs",
        _LOWER,
        _POINT,
        "regression:mae",
        aliases=("mean_absolute_error",),
        label="MAE",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "r2",
        "coefficient of determination; constant labels give 0, or 1 if predicted exactly",
        _HIGHER,
        _POINT,
        "regression:r2",
        aliases=("rsquared", "r_squared"),
        label="R²",
        high=1.0,
        resolution="continuous",
    ),
    MetricInfo(
        "mape",
        "mean absolute percentage error, in percent; a label of 0 is refused unless epsilon is given",
        _LOWER,
        _POINT,
        "regression:mape",
        params=(Param("epsilon", "float", None, low=0.0),),
        aliases=("mean_absolute_percentage_error",),
        label="MAPE",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "rmsle",
        "root mean squared error of log(1 + x)",
        _LOWER,
        _POINT,
        "regression:rmsle",
        aliases=("root_mean_squared_log_error",),
        label="RMSLE",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "median_ae",
        "median absolute error",
        _LOWER,
        _POINT,
        "regression:median_ae",
        aliases=("median_absolute_error",),
        label="Median AE",
        low=0.0,
    ),
    MetricInfo(
        "pinball",
        "quantile loss, averaged over the levels",
        _LOWER,
        _POINT,
        "regression:pinball",
        params=(_ALPHAS,),
        aliases=("pinball_loss", "quantile_loss"),
        label="Pinball loss",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "crps",
        "continuous ranked probability score of predicted quantiles: twice their mean pinball loss",
        _LOWER,
        _QUANTILE,
        "regression:crps",
        params=(_ALPHAS,),
        label="CRPS",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "logloss",
        "negative log likelihood of the class, probabilities clipped at 1e-15",
        _LOWER,
        _BINARY,
        "classification:logloss",
        aliases=("log_loss", "binary_logloss"),
        label="Log loss",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "accuracy",
        "share of correct classes: p >= threshold, or the first most probable class",
        _HIGHER,
        _BINARY | _MULTICLASS,
        "classification:accuracy",
        params=(_THRESHOLD,),
        aliases=("multi_accuracy", "multiclass_accuracy"),
        label="Accuracy",
        low=0.0,
        high=1.0,
        resolution="rows",
    ),
    MetricInfo(
        "auc_roc",
        "area under the ROC curve; ties count half, one class alone gives 0.5",
        _HIGHER,
        _BINARY,
        "classification:auc_roc",
        aliases=("auc", "roc_auc"),
        label="AUC",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "f1",
        "harmonic mean of precision and recall at p >= threshold",
        _HIGHER,
        _BINARY,
        "classification:f1",
        params=(_THRESHOLD,),
        aliases=("f1_score",),
        label="F1",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "average_precision",
        "precision averaged over recall, without interpolation",
        _HIGHER,
        _BINARY,
        "classification:average_precision",
        aliases=("ap",),
        label="Average precision",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "matthews",
        "Matthews correlation of classes at p >= threshold",
        _HIGHER,
        _BINARY,
        "classification:matthews",
        params=(_THRESHOLD,),
        aliases=("mcc", "matthews_corrcoef"),
        label="MCC",
        low=-1.0,
        high=1.0,
    ),
    MetricInfo(
        "brier",
        "mean squared error of the probability",
        _LOWER,
        _BINARY,
        "classification:brier",
        aliases=("brier_score",),
        label="Brier",
        low=0.0,
        high=1.0,
        resolution="continuous",
    ),
    MetricInfo(
        "ece",
        "expected calibration error over equal-width bins",
        _LOWER,
        _BINARY,
        "classification:ece",
        params=(Param("n_bins", "int", 10, low=1, high=1_000_000),),
        aliases=("expected_calibration_error",),
        label="ECE",
        low=0.0,
        high=1.0,
        resolution="continuous",
        constant_is_best=True,
    ),
    MetricInfo(
        "mlogloss",
        "negative log likelihood of the class, probabilities clipped at 1e-15",
        _LOWER,
        _MULTICLASS,
        "classification:mlogloss",
        aliases=("multi_logloss", "multiclass_logloss"),
        label="Log loss",
        low=0.0,
        resolution="continuous",
    ),
    MetricInfo(
        "macro_f1",
        "F1 of each class that occurs among labels or predictions, averaged",
        _HIGHER,
        _MULTICLASS,
        "classification:macro_f1",
        aliases=("f1_macro",),
        label="Macro F1",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "top_k_accuracy",
        "share of rows whose class is among the k most probable",
        _HIGHER,
        _MULTICLASS,
        "classification:top_k_accuracy",
        params=(Param("k", "int", 2, low=1),),
        aliases=("top_k",),
        label="Top-k accuracy",
        low=0.0,
        high=1.0,
        resolution="rows",
    ),
    MetricInfo(
        "ndcg",
        "normalized discounted cumulative gain at rank k, ties averaged",
        _HIGHER,
        _RANKING,
        "ranking:ndcg",
        params=(_CUT, Param("gain", "choice", "exp", choices=("exp", "linear"))),
        needs=("groups",),
        label="NDCG",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "map",
        "mean average precision at rank k, ties averaged",
        _HIGHER,
        _RANKING,
        "ranking:mean_average_precision",
        params=(_CUT, Param("divisor", "choice", "min", choices=("min", "all"))),
        aliases=("mean_average_precision",),
        needs=("groups",),
        label="MAP",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "mrr",
        "mean reciprocal rank of the first relevant row, ties averaged",
        _HIGHER,
        _RANKING,
        "ranking:mrr",
        params=(_CUT,),
        aliases=("mean_reciprocal_rank",),
        needs=("groups",),
        label="MRR",
        low=0.0,
        high=1.0,
    ),
    MetricInfo(
        "demographic_parity",
        "largest minus smallest selection rate between groups (or their ratio)",
        _LOWER,
        _BINARY,
        "classification:demographic_parity",
        params=(_THRESHOLD, _MODE),
        needs=("sensitive",),
        reversed_by=("mode", "ratio"),
        label="Demographic parity",
        low=0.0,
        high=1.0,
        constant_is_best=True,
    ),
    MetricInfo(
        "equalized_odds",
        "the larger gap between groups of true and false positive rates (or the smaller ratio)",
        _LOWER,
        _BINARY,
        "classification:equalized_odds",
        params=(_THRESHOLD, _MODE),
        needs=("sensitive",),
        reversed_by=("mode", "ratio"),
        label="Equalized odds",
        low=0.0,
        high=1.0,
        constant_is_best=True,
    ),
)

METRICS: Registry[MetricInfo] = Registry("metric", builtin=lambda: {info.name: info for info in _BUILTIN})

PRIMARY: dict[Task, str] = {
    Task.REGRESSION: "rmse",
    Task.BINARY: "logloss",
    Task.MULTICLASS: "mlogloss",
    Task.QUANTILE: "pinball",
    Task.RANKING: "ndcg@10",
}
SECONDARY: dict[Task, tuple[str, ...]] = {
    Task.REGRESSION: ("mae", "r2"),
    Task.BINARY: ("accuracy", "auc_roc"),
    Task.MULTICLASS: ("accuracy", "macro_f1"),
    Task.QUANTILE: ("mae",),
    Task.RANKING: ("map@10", "mrr"),
}
LOG_LOSSES = ("logloss", "mlogloss")  # without bound per row: one that is surely wrong outweighs many others
FAIRNESS = ("demographic_parity", "equalized_odds")  # of binary tasks whose data has a sensitive column

# What the engine measures besides the metrics: for all of it, less is better.
RESOURCES = (
    "train_time_s",
    "build_time_s",
    "fit_time_s",
    "predict_time_s",
    "cpu_time_s",
    "peak_memory_mb",
    "first_use_mb",
    "model_size_mb",
)
OF_MACHINE = tuple(
    name for name in RESOURCES if name != "model_size_mb"
)  # what another machine would measure otherwise


def as_task(task: Task | str) -> Task:
    """A task by itself or by its name."""
    try:
        return Task(task)
    except ValueError:
        raise UnknownNameError("task", str(task), [each.value for each in Task]) from None


def resolve(name: str) -> MetricInfo | None:
    """The declaration behind a name or an alias."""
    info = METRICS.get(name)
    return info or next((each for each in METRICS.values() if name in each.aliases), None)


def all_names() -> list[str]:
    """Every name and alias, for suggestions."""
    return [name for info in METRICS.values() for name in (info.name, *info.aliases)]
