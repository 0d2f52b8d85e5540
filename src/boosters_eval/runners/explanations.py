"""What runners say of their models, in one form (shaped, finite and double), and whether it keeps the contract."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import BoostersEvalError, UnsupportedError
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from boosters_eval.runners.base import FitRequest, ImportanceKind, Runner, TrainData, Translation
    from boosters_eval.runners.conformance import ConformanceCase

_CONSTANT = 3.0
TOLERANCE = 1e-4  # of the largest raw score: sums of a few hundred single-precision numbers stay far below it
_KINDS: tuple[ImportanceKind, ...] = ("gain", "split")
_PLACED = ("regression plain", "regression categorical")
_FEW = 4  # rows of which interactions are computed
_REPEATED = 20  # times that rows are repeated to see which column is split by


class InvalidExplanationError(BoostersEvalError):
    """A runner returned something that explains nothing."""


def load_explaining(runner: type[Runner]) -> None:
    """Import what the attributions of a runner need. Where it is not installed, the runner gives the reason."""
    for name in runner.explaining:
        with suppress(ImportError):
            import_module(name)


def count_outputs(request: FitRequest) -> int:
    """How many raw scores a row has."""
    return {Task.MULTICLASS: request.n_classes or 1, Task.QUANTILE: len(request.quantiles)}.get(request.task, 1)


def compute_importances(
    runner: type[Runner], translation: Translation, model: Any, n_columns: int, kind: ImportanceKind
) -> NDArray[np.float64]:
    """(p,): the importances of the library itself."""
    return _checked(runner.importances(translation, model, kind), (n_columns,))


def compute_attributions(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, p + 1, outputs): attributions, the base value last."""
    found = np.asarray(runner.attributions(translation, model, x))
    shape = (len(x), x.shape[1] + 1, count_outputs(translation.request))
    return _checked(found[:, :, None] if found.ndim == 2 else found, shape)


def compute_raw_scores(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, outputs): raw scores."""
    found = np.asarray(runner.raw(translation, model, x))
    return _checked(found[:, None] if found.ndim == 1 else found, (len(x), count_outputs(translation.request)))


def compute_interactions(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(n, p, p, outputs): interactions."""
    found = np.asarray(runner.interactions(translation, model, x))
    shape = (len(x), x.shape[1], x.shape[1], count_outputs(translation.request))
    return _checked(found[..., None] if found.ndim == 3 else found, shape)


def _checked(found: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.asarray(found, dtype=np.float64)
    if array.shape != shape:
        raise InvalidExplanationError(f"An explanation must have the shape {shape}. Got {array.shape} instead.")
    wrong = int((~np.isfinite(array)).sum())
    if wrong:
        raise InvalidExplanationError(f"An explanation must be finite: {wrong} of its {array.size} values are not.")
    return array


def add_constant(data: TrainData) -> TrainData:
    """The same rows with one more column, the last, which is constant: nothing may be attributed to it."""
    column = np.full((len(data.x), 1), _CONSTANT, dtype=np.float32)
    return replace(
        data,
        x=np.hstack([data.x, column]),
        feature_names=(*data.feature_names, "constant") if data.feature_names else (),
        valid=None if data.valid is None else add_constant(data.valid),
    )


def check_explanations(
    runner: type[Runner], translation: Translation, model: Any, case: ConformanceCase, unsound: dict[str, str]
) -> Iterator[str]:
    """How a runner's explanations break the contract; where they break their own definition is put into `unsound`."""
    x, given = case.x_test, (runner, translation, model)
    try:
        for kind in _KINDS:
            with suppress(UnsupportedError):
                found = compute_importances(*given, x.shape[1], kind)
                if (found < 0).any():
                    yield f"importances() gives a negative {kind}"
                if not np.array_equal(found, compute_importances(*given, x.shape[1], kind)):
                    yield f"importances() gives two answers for {kind}"
        yield from _check_places(runner, case)
        with suppress(UnsupportedError):
            explained = compute_attributions(*given, x)
            yield from _check_attributions(given, case, explained, unsound)
    except InvalidExplanationError as error:
        yield str(error)


def _check_places(runner: type[Runner], case: ConformanceCase) -> Iterator[str]:
    """A target that is one of the columns is explained by that column: a library may have them in another order.

    Categories, where there are any, are in the middle, as libraries put them first or last.
    """
    if not case.name.endswith(_PLACED):
        return
    translation = runner.translate(replace(case.request, categorical=(2,) if case.request.categorical else ()))
    # So often that no library takes a category for a rare one, which it may guard against.
    every = case.train.take(np.tile(np.arange(len(case.train.y)), _REPEATED))
    x = np.ascontiguousarray(every.x[:, [1, 2, 0, 3, 4]])
    for column in range(x.shape[1]):
        data = replace(every, x=x, y=x[:, column].astype(np.float64))
        model = runner.fit(translation, runner.build(translation, data))
        for kind in _KINDS:
            with suppress(UnsupportedError):
                most = int(compute_importances(runner, translation, model, x.shape[1], kind).argmax())
                if most != column:
                    yield f"importances() gives the {kind} of column {column} to column {most}"


def _check_attributions(
    given: tuple[type[Runner], Translation, Any],
    case: ConformanceCase,
    explained: NDArray[np.float64],
    unsound: dict[str, str],
) -> Iterator[str]:
    x = case.x_test
    if not np.array_equal(explained, compute_attributions(*given, x)):
        yield "attributions() gives two answers"
    try:
        raw = compute_raw_scores(*given, x)
    except UnsupportedError as error:
        yield f"attributions() are offered without raw(): {error}"
        return
    faults = [_sum_fault("attributions and the base value", explained.sum(axis=1), raw)]
    with suppress(UnsupportedError):
        sums = compute_interactions(*given, x[:_FEW]).sum(axis=2)
        faults.append(_sum_fault("interactions", sums, explained[:_FEW, :-1]))
    if case.name.endswith("plain"):
        faults.append(_constant_fault(*given[:2], case))
    if any(faults):
        unsound[case.name] = "; ".join(filter(None, faults))


def _sum_fault(what: str, sums: NDArray[np.float64], expected: NDArray[np.float64]) -> str:
    error, scale = float(np.abs(sums - expected).max()), float(np.abs(expected).max())
    return "" if error <= TOLERANCE * scale else f"{what} miss what they must add up to by {error:.3g} of {scale:.3g}"


def _constant_fault(runner: type[Runner], translation: Translation, case: ConformanceCase) -> str:
    data = add_constant(case.train)
    model = runner.fit(translation, runner.build(translation, data))
    most = float(np.abs(compute_attributions(runner, translation, model, data.x)[:, -2]).max())
    for kind in _KINDS:
        with suppress(UnsupportedError):
            most = max(most, float(compute_importances(runner, translation, model, data.x.shape[1], kind)[-1]))
    return f"a constant column gets {most:.3g}" if most else ""
