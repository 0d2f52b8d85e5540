"""Input of any kind as checked arrays, and what a metric makes of it: finite numbers, or one sentence.

A sentence names the argument, the row and the value.
"""

from __future__ import annotations

import inspect
import math
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics.catalog import MetricWarning
from boosters_eval.metrics.metric import Metric, get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

BLOCK = 2**15  # rows whose temporaries stay in the processor's cache


def blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))


def as_array(argument: str, value: Any, metric: str = "metrics") -> Array:
    """A numeric array of one or two dimensions; numeric arrays, pandas and polars columns are not copied."""
    array = _raw(argument, value, metric)
    if array.ndim not in (1, 2):
        _refuse(metric, argument, "an array of one or two dimensions", f"{array.ndim} dimensions")
    if array.dtype.kind == "O":
        array = _from_objects(argument, value, array, metric)
    if array.dtype.kind not in "fiub":
        _refuse(metric, argument, "numeric", f"data of type {array.dtype}")
    if array.size == 0:
        _refuse(metric, argument, "of at least one row and column", f"the shape {array.shape}")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def as_ids(argument: str, value: Any, metric: str, n: int) -> Array:
    """Group labels of any comparable kind, one for each row."""
    array = _raw(argument, value, metric)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1 or len(array) != n:
        _refuse(metric, argument, f"one label for each of {n} rows", f"the shape {array.shape}")
    if array.dtype.kind in "fOmM":
        missing = np.fromiter(map(_missing, array), dtype=bool, count=n) if array.dtype.kind != "f" else np.isnan(array)
        if missing.any():
            row = int(missing.argmax())
            _refuse(metric, argument, "a label in every row", f"{array[row]} in row {row}")
    return array


def _missing(label: Any) -> bool:
    """Whether it is None, NaN, NaT, or pandas' NA, which has no truth value."""
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 (NaN differs from itself)
    except TypeError:
        return True


def _raw(argument: str, value: Any, metric: str) -> Array:
    """The container's own array, without interpretation."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        row = int(np.argwhere(np.ma.getmaskarray(value))[0][0])
        _refuse(metric, argument, "without masked values", f"a masked value in row {row}")
    try:
        return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    except ValueError:  # a ragged list
        _refuse(metric, argument, "a rectangular array", type(value).__name__)


def _from_objects(argument: str, value: Any, array: Array, metric: str) -> Array:
    """Python numbers and nullable columns as float64, missing values as NaN; text is not a number."""
    for row, each in enumerate(array):
        for item in each if array.ndim == 2 else (each,):
            if isinstance(item, (str, bytes)):
                _refuse(metric, argument, "numeric", f"{item!r} in row {row}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        return np.asarray(value.to_numpy(dtype="float64", na_value=np.nan))
    except (AttributeError, TypeError, ValueError):
        _refuse(metric, argument, "numeric", "objects that are not numbers")


def _refuse(metric: str, argument: str, must: str, got: str) -> NoReturn:
    raise MetricInputError(f"The '{argument}' parameter of {metric} must be {must}. Got {got} instead.")


@dataclass(frozen=True)
class Rows:
    """The input of one metric: same number of rows, weights positive."""

    metric: str
    predictions: Array
    labels: Array
    weights: Floats | None = None
    groups: Array | None = None
    sensitive: Array | None = None
    numbers: NDArray[np.intp] | None = None  # the caller's row numbers, once rows of weight 0 are gone

    @property
    def n(self) -> int:
        return len(self.predictions)

    def normalized(self) -> Self:
        """Normalized alike for every built-in metric: equal weights are dropped, extreme ones scaled to near 1."""
        if self.weights is None:
            return self
        largest = float(self.weights.max())
        if float(self.weights.min()) == largest:
            return replace(self, weights=None)
        if 2.0**-100 < largest < 2.0**100:
            return self
        # Sums and products of such weights would overflow or vanish; scaling by a power of two is exact.
        return replace(self, weights=np.ldexp(self.weights, -math.frexp(largest)[1]))

    def refuse(self, argument: str, must: str, got: str) -> NoReturn:
        _refuse(self.metric, argument, must, got)

    def warn(self, text: str) -> None:
        """Say that a score had to be defined by convention."""
        warnings.warn(f"The metric '{self.metric}' {text}", MetricWarning, stacklevel=3)

    def require(self, argument: str, holds: Callable[[Array], Flags], must: str) -> None:
        """Refuse the first value of an argument for which `holds` is false."""
        values: Array = getattr(self, argument)
        for block in blocks(self.n):
            ok = holds(values[block])
            if not ok.all():
                self._refuse_value(argument, must, block.start, np.argwhere(~ok)[0])

    def _refuse_value(self, argument: str, must: str, start: int, at: NDArray[np.intp]) -> NoReturn:
        row = start + int(at[0])
        value = getattr(self, argument)[(row, *at[1:])].item()
        column = f", column {at[1]}" if len(at) > 1 else ""
        self.refuse(argument, must, f"{value} in row {self.number(row)}{column}")

    def number(self, row: int) -> int:
        """The row's number in the caller's input."""
        return row if self.numbers is None else int(self.numbers[row])

    def require_finite(self) -> None:
        """Refuse NaN and infinity in predictions and labels."""
        self.require("predictions", np.isfinite, "finite")
        self.require("labels", np.isfinite, "finite")

    def single(self, argument: str) -> Array:
        """An argument that must have one column."""
        values: Array = getattr(self, argument)
        if values.ndim != 1:
            self.refuse(argument, "of one column", f"the shape {values.shape}")
        return values

    def encode(self, argument: str) -> tuple[Array, NDArray[np.intp]]:
        """The distinct labels of `groups` or `sensitive`, and each row's position among them."""
        try:
            names, codes = np.unique(getattr(self, argument), return_inverse=True)
        except TypeError:
            self.refuse(argument, "of labels of one kind", "labels that cannot be compared")
        return names, codes

    def mean(self, term: Callable[[slice], Floats]) -> float:
        """The weighted mean of a term, block by block; `term` returns an array that may be overwritten."""
        parts = []
        for block in blocks(self.n):
            values = term(block)
            if self.weights is not None:
                values *= self.weights[block]
            parts.append(float(values.sum()))
        weight = self.n if self.weights is None else float(self.weights.sum())
        try:
            return math.fsum(parts) / weight
        except (OverflowError, ValueError):
            return math.nan

    def mean_over_queries(self, scores: Floats, weights: Floats | None, firsts: NDArray[np.intp]) -> float:  # noqa: ARG002
        """The mean of one score per query; `firsts` are their first rows, which only a linearization wants."""
        if weights is None:
            return float(scores.mean())
        return float((scores * weights).sum() / weights.sum())

    def keep(self, mask: Flags) -> Rows:
        """Some of the rows, remembering their numbers."""
        parts = ("predictions", "labels", "weights", "groups", "sensitive")
        given = {part: getattr(self, part) for part in parts}
        kept: dict[str, Any] = {part: None if array is None else array[mask] for part, array in given.items()}
        return replace(self, numbers=np.flatnonzero(mask), **kept)


def prepare(metric: str, predictions: Any, labels: Any, weights: Any, groups: Any, sensitive: Any) -> Rows:
    """All arguments as arrays of the same number of rows; rows of weight 0 are gone."""
    p = as_array("predictions", predictions, metric)
    y = as_array("labels", labels, metric)
    n = len(p)
    if len(y) != n:
        _refuse(metric, "labels", f"one row for each of {n} predictions", f"{len(y)} rows")
    rows = Rows(
        metric,
        p,
        y,
        groups=None if groups is None else as_ids("groups", groups, metric, n),
        sensitive=None if sensitive is None else as_ids("sensitive", sensitive, metric, n),
    )
    return rows if weights is None else _weighted(rows, as_array("weights", weights, metric))


def _weighted(rows: Rows, weights: Array) -> Rows:
    """Refuse weights that mean nothing, and drop the rows that have none."""
    if weights.shape != (rows.n,):
        rows.refuse("weights", f"one number for each of {rows.n} rows", f"the shape {weights.shape}")
    w = weights.astype(np.float64, copy=False)
    rows = replace(rows, weights=w)
    rows.require("weights", lambda v: np.isfinite(v) & (v >= 0), "finite and not negative")
    if not w.any():
        rows.refuse("weights", "greater than 0 in at least one row", f"0.0 in all {rows.n} rows")
    if w.min() > 0:
        return rows
    rows.require_finite()  # a broken model is not hidden by a weight of 0
    return rows.keep(w > 0)


def evaluate(metric: Metric, predictions: Any, labels: Any, weights: Any, groups: Any, sensitive: Any) -> list[float]:
    given = {"groups": groups, "sensitive": sensitive}
    for name in metric.info.needs:
        if given[name] is None:
            raise MetricInputError(f"The '{name}' parameter of {metric} is required.")
    return score_rows(metric, prepare(metric.spec, predictions, labels, weights, groups, sensitive))


def score_rows(metric: Metric, rows: Rows) -> list[float]:
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
    if metric.info.by_rows is not None:
        if array.shape != (rows.n,) or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise MetricInputError(
                f"The metric '{metric}' must return a finite number for each row. Got {value!r} instead."
            )
        return rows.mean(array.astype(np.float64).__getitem__)
    if array.size != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise MetricInputError(f"The metric '{metric}' must return a finite number. Got {value!r} instead.")
    return float(array.item())


def _arguments(metric: Metric, fn: Callable[..., Any], rows: Rows) -> tuple[list[Any], dict[str, Any]]:
    """What the signature asks for: up to three arrays by position, weights, groups and sensitive also by name."""
    # Copies: a function that sorts or scales its arguments in place must not change what the next metric sees.
    given = (rows.predictions, rows.labels, rows.weights, rows.groups, rows.sensitive)
    *arrays, groups, sensitive = (None if array is None else np.array(array) for array in given)
    named = {"weights": arrays[2], "sample_weight": arrays[2], "groups": groups, "sensitive": sensitive}
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
