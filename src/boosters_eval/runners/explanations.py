"""What runners say of their models, in one form: checked for its shape, finite, and double."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.runners.base import FitRequest, ImportanceKind, Runner, TrainData, Translation

_CONSTANT = 3.0


class InvalidExplanationError(BoostersEvalError):
    """A runner returned something that explains nothing."""


def load_explaining(runner: type[Runner]) -> None:
    """Import what the attributions of a runner need. Where it is not installed, the runner gives the reason."""
    for name in runner.explaining:
        with suppress(ImportError):
            import_module(name)


def outputs_of(request: FitRequest) -> int:
    """How many raw scores a row has."""
    return {Task.MULTICLASS: request.n_classes or 1, Task.QUANTILE: len(request.quantiles)}.get(request.task, 1)


def own_importances(
    runner: type[Runner], translation: Translation, model: Any, n_columns: int, kind: ImportanceKind
) -> NDArray[np.float64]:
    """(p,): the importances of the library itself."""
    return _checked(runner.importances(translation, model, kind), (n_columns,))


def attributions(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, p + 1, outputs): attributions, the base value last."""
    found = np.asarray(runner.attributions(translation, model, x))
    shape = (len(x), x.shape[1] + 1, outputs_of(translation.request))
    return _checked(found[:, :, None] if found.ndim == 2 else found, shape)


def raw_scores(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, outputs): raw scores."""
    found = np.asarray(runner.raw(translation, model, x))
    return _checked(found[:, None] if found.ndim == 1 else found, (len(x), outputs_of(translation.request)))


def interactions(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, p, p, outputs): interactions."""
    found = np.asarray(runner.interactions(translation, model, x))
    shape = (len(x), x.shape[1], x.shape[1], outputs_of(translation.request))
    return _checked(found[..., None] if found.ndim == 3 else found, shape)


def _checked(found: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.asarray(found, dtype=np.float64)
    if array.shape != shape:
        raise InvalidExplanationError(f"An explanation must have the shape {shape}. Got {array.shape} instead.")
    wrong = int((~np.isfinite(array)).sum())
    if wrong:
        raise InvalidExplanationError(f"An explanation must be finite: {wrong} of its {array.size} values are not.")
    return array


def with_constant(data: TrainData) -> TrainData:
    """The same rows with one more column, the last, which is constant: nothing may be attributed to it."""
    column = np.full((len(data.x), 1), _CONSTANT, dtype=np.float32)
    return replace(
        data,
        x=np.hstack([data.x, column]),
        feature_names=(*data.feature_names, "constant") if data.feature_names else (),
        valid=None if data.valid is None else with_constant(data.valid),
    )
