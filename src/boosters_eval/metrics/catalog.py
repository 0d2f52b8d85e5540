"""What metrics there are, as data: names, directions, ranges, tasks, parameters. It imports nothing scientific."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import BoostersEvalWarning, UnknownNameError, fold
from boosters_eval.core.registry import Registry
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Direction = Literal["lower_better", "higher_better"]
Value = float | int | str | tuple[float, ...] | None
# What a score can resolve: any difference, steps of one row in n, or steps whose size the number of rows does not tell
# (a class, a rank or a group may have few rows).
Resolution = Literal["continuous", "rows", "unknown"]
# How rows make a value: the mean of their losses, a function of such means (or counts), pairs of them, whole queries.
ByRows = Literal["mean", "function", "pairs", "queries"]


class MetricWarning(BoostersEvalWarning):
    """A score that had to be defined by convention, for example AUC with one class."""


@contextmanager
def gather_warnings() -> Iterator[list[str]]:
    """Take what metrics warn of as text, for whoever shows the scores; without it, a screen would get source lines."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(one.message) for one in caught if issubclass(one.category, MetricWarning)]


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
    by_rows: ByRows | None = None  # None: rows cannot tell how sure a value is, only splits can
    squared: bool = False  # whether the error is a square, twice as far from the best in percent as its root is
    constant_is_best: bool = False  # whether the same prediction for every row cannot be beaten, whatever the data

    @property
    def built_in(self) -> bool:
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
_GAIN = Param("gain", "choice", "exp", choices=("exp", "linear"))
_DIVISOR = Param("divisor", "choice", "min", choices=("min", "all"))
_MODE = Param("mode", "choice", "difference", choices=("difference", "ratio"))


def _metric(names: str, label: str, summary: str, tasks: frozenset[Task], *params: Param, **facts: Any) -> MetricInfo:
    """The first of the names is the metric's own, the others are aliases; its function is in the module of its task."""
    name, *aliases = names.split()
    module = "regression" if tasks <= _POINT else "ranking" if tasks <= _RANKING else "classification"
    facts = {"label": label, "needs": ("groups",) if module == "ranking" else (), **facts}
    where = f"{module}:{facts.pop('function', name)}"
    return MetricInfo(name, summary, tasks=tasks, implementation=where, params=params, aliases=tuple(aliases), **facts)


def _loss(*about: Any, **facts: Any) -> MetricInfo:
    """Best at 0, and any value above is possible; the mean of losses."""
    return _metric(
        *about, **{"higher_is_better": False, "low": 0.0, "resolution": "continuous", "by_rows": "mean", **facts}
    )


def _score(*about: Any, **facts: Any) -> MetricInfo:
    """Best at 1, and never below 0."""
    return _metric(*about, **{"higher_is_better": True, "low": 0.0, "high": 1.0, **facts})


def _gap(*about: Any) -> MetricInfo:
    """Between groups: best at 0, or at 1 where it is a ratio."""
    facts = {"high": 1.0, "resolution": "unknown", "needs": ("sensitive",), "reversed_by": ("mode", "ratio")}
    return _loss(*about, _BINARY, _THRESHOLD, _MODE, constant_is_best=True, by_rows=None, **facts)


_BUILTIN = (  # names, label and summary; then tasks, parameters, and what is not as with others of the kind
    _loss("rmse root_mean_squared_error", "RMSE", "root mean squared error, averaged over outputs",
        _POINT, by_rows="function"),
    _loss("mae mean_absolute_error", "MAE", "mean absolute error, averaged over outputs",
        _POINT),
    _score("r2 rsquared r_squared", "R²",
        "coefficient of determination; constant labels give 0, or 1 if predicted exactly",
        _POINT, low=None, resolution="continuous", by_rows="function", squared=True),
    _loss("mape mean_absolute_percentage_error", "MAPE",
        "mean absolute percentage error, in percent; a label of 0 is refused unless epsilon is given",
        _POINT, Param("epsilon", "float", None, low=0.0)),
    _loss("rmsle root_mean_squared_log_error", "RMSLE", "root mean squared error of log(1 + x)",
        _POINT, by_rows="function"),
    _loss("median_ae median_absolute_error", "Median AE", "median absolute error",
        _POINT, resolution="unknown", by_rows=None),
    _loss("pinball pinball_loss quantile_loss", "Pinball loss", "quantile loss, averaged over the levels",
        _POINT, _ALPHAS),
    _loss("crps", "CRPS", "continuous ranked probability score of predicted quantiles: twice their mean pinball loss",
        _QUANTILE, _ALPHAS),
    _loss("logloss log_loss binary_logloss", "Log loss",
        "negative log likelihood of the class, probabilities clipped at 1e-15",
        _BINARY),
    _score("accuracy multi_accuracy multiclass_accuracy", "Accuracy",
        "share of correct classes: p >= threshold, or the first most probable class",
        _BINARY | _MULTICLASS, _THRESHOLD, resolution="rows", by_rows="mean"),
    _score("auc_roc auc roc_auc", "AUC", "area under the ROC curve; ties count half, one class alone gives 0.5",
        _BINARY, by_rows="pairs"),
    _score("f1 f1_score", "F1", "harmonic mean of precision and recall at p >= threshold",
        _BINARY, _THRESHOLD, by_rows="function"),
    _score("average_precision ap", "Average precision", "precision averaged over recall, without interpolation",
        _BINARY, by_rows="pairs"),
    _score("matthews mcc matthews_corrcoef", "MCC", "Matthews correlation of classes at p >= threshold",
        _BINARY, _THRESHOLD, low=-1.0, by_rows="function"),
    _loss("brier brier_score multi_brier multiclass_brier", "Brier",
        "mean squared error of the probability; of several classes, summed over all of them",
        _BINARY | _MULTICLASS, high=2.0),
    _loss("ece expected_calibration_error", "ECE", "expected calibration error over equal-width bins",
        _BINARY, Param("n_bins", "int", 10, low=1, high=1_000_000), high=1.0, by_rows=None, constant_is_best=True),
    _loss("mlogloss multi_logloss multiclass_logloss", "Log loss",
        "negative log likelihood of the class, probabilities clipped at 1e-15",
        _MULTICLASS),
    _score("macro_f1 f1_macro", "Macro F1", "F1 of each class that occurs among labels or predictions, averaged",
        _MULTICLASS, by_rows="function"),
    _score("top_k_accuracy top_k", "Top-k accuracy", "share of rows whose class is among the k most probable",
        _MULTICLASS, Param("k", "int", 2, low=1), resolution="rows", by_rows="mean"),
    _score("ndcg", "NDCG", "normalized discounted cumulative gain at rank k, ties averaged",
        _RANKING, _CUT, _GAIN, by_rows="queries"),
    _score("map mean_average_precision", "MAP", "mean average precision at rank k, ties averaged",
        _RANKING, _CUT, _DIVISOR, by_rows="queries", function="mean_average_precision"),
    _score("mrr mean_reciprocal_rank", "MRR", "mean reciprocal rank of the first relevant row, ties averaged",
        _RANKING, _CUT, by_rows="queries"),
    _gap("demographic_parity", "Demographic parity",
        "largest minus smallest selection rate between groups (or their ratio)"),
    _gap("equalized_odds", "Equalized odds",
        "the larger gap between groups of true and false positive rates (or the smaller ratio)"),
)  # fmt: skip

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
    try:
        return Task(task)
    except ValueError:
        raise UnknownNameError("task", str(task), [each.value for each in Task]) from None


def resolve(name: str) -> MetricInfo | None:
    """The metric that is meant by a name or an alias of it, in any case."""
    if (info := METRICS.get(name)) is not None:
        return info
    found = [info for info in METRICS.values() if fold(name) in map(fold, (info.name, *info.aliases))]
    return found[0] if len(found) == 1 else None
