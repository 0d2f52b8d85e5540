"""From a Metric and its input to numbers that are finite, or to one sentence."""

from __future__ import annotations

import inspect
import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics.metric import Metric, get
from boosters_eval.metrics.rows import as_array, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.metrics.rows import Array, Rows

__all__ = ["as_array", "check_classes", "evaluate", "quantile_columns"]


def evaluate(metric: Metric, predictions: Any, labels: Any, weights: Any, groups: Any, sensitive: Any) -> list[float]:
    """The metric's value for each output."""
    given = {"groups": groups, "sensitive": sensitive}
    for name in metric.info.needs:
        if given[name] is None:
            raise MetricInputError(f"The '{name}' parameter of {metric} is required.")
    rows = prepare(metric.spec, predictions, labels, weights, groups, sensitive)
    implementation = metric.info.implementation
    if not isinstance(implementation, str):
        return [_call_user(metric, implementation, rows)]
    module, _, function = implementation.partition(":")
    with np.errstate(all="ignore"):  # what is not finite is found below
        values = getattr(import_module(f"boosters_eval.metrics.{module}"), function)(
            rows.normalized(), **dict(metric.params)
        )
    listed = [float(value) + 0.0 for value in (values if isinstance(values, list) else [values])]  # no -0.0
    if not all(map(math.isfinite, listed)):
        rows.require_finite()
        raise MetricInputError(f"The metric '{metric}' has no finite value here: the numbers are too large.")
    return listed


def _call_user(metric: Metric, fn: Callable[..., Any], rows: Rows) -> float:
    """The user's function with as many arguments as it takes; its value must be a finite number."""
    rows.require_finite()
    positional, keywords = _arguments(metric, fn, rows)
    try:
        value = fn(*positional, **keywords)
    except Exception as error:
        raise MetricInputError(f"The metric '{metric}' failed with {type(error).__name__}: {error}") from error
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise MetricInputError(f"The metric '{metric}' must return a finite number. Got {value!r} instead.")
    return float(array.item())


def _copy(array: Any) -> Any:
    return None if array is None else np.array(array)


def _arguments(metric: Metric, fn: Callable[..., Any], rows: Rows) -> tuple[list[Any], dict[str, Any]]:
    """What the signature asks for: up to three arrays by position, weights, groups and sensitive also by name."""
    # Copies: a function that sorts or scales its arguments in place must not change what the next metric sees.
    arrays = [_copy(rows.predictions), _copy(rows.labels), _copy(rows.weights)]
    named = {
        "weights": arrays[2],
        "sample_weight": arrays[2],
        "groups": _copy(rows.groups),
        "sensitive": _copy(rows.sensitive),
    }
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some builtins have none
        return arrays, {}
    parameters = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return arrays, {}
    keywords = {each.name: named[each.name] for each in parameters if each.name in named}
    places = [each for each in parameters if each.name not in named and each.kind is not each.KEYWORD_ONLY]
    required = sum(each.default is each.empty for each in places)
    if not places or required > 3:
        raise MetricInputError(
            f"The metric '{metric}' must take predictions, labels and at most weights. Got the signature "
            f"{signature} instead."
        )
    return arrays[: max(required, min(2, len(places)))], keywords


def check_classes(predictions: Array, n_classes: int | None) -> None:
    """Refuse a matrix of probabilities without one column for each class of the data set."""
    columns = predictions.shape[1] if predictions.ndim == 2 else 1
    if columns < 2 or (n_classes is not None and columns != n_classes):
        raise MetricInputError(
            f"The 'y_pred' parameter of metrics must have one column for each of {n_classes or 'two or more'} "
            f"classes. Got the shape {predictions.shape} instead."
        )


def quantile_columns(predictions: Array, quantiles: tuple[float, ...]) -> Callable[..., tuple[Metric, Array] | None]:
    """How to find what a metric scores among the columns of predicted quantiles."""
    matrix = predictions[:, None] if predictions.ndim == 1 else predictions
    levels = quantiles or ((0.5,) if matrix.shape[1] == 1 else ())
    if matrix.shape[1] != len(levels):
        raise MetricInputError(
            f"The 'y_pred' parameter of metrics must have one column for each of {len(levels)} quantiles. "
            f"Got the shape {predictions.shape} instead."
        )

    def pick(metric: Metric, *, optional: bool) -> tuple[Metric, Array] | None:
        named: Any = dict(metric.params).get("alphas", (0.5,))  # a point metric scores the median
        wanted = named or levels
        missing = [level for level in wanted if level not in levels]
        if missing and optional:
            return None
        if missing:
            raise MetricInputError(
                f"The metric '{metric}' scores the quantile {missing[0]}, which is not among those predicted: "
                f"{', '.join(map(str, levels))}."
            )
        scored = metric if named else get(metric.name, alphas=levels)
        return scored, np.take(matrix, [levels.index(level) for level in wanted], axis=1)

    return pick
