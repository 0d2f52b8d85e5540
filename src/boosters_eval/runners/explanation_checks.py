"""The part of the conformance suite that is about importances and attributions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.runners.explanations import (
    InvalidExplanationError,
    attributions,
    interactions,
    load_explaining,
    own_importances,
    raw_scores,
    with_constant,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, Runner, Translation
    from boosters_eval.runners.conformance import ConformanceCase

__all__ = ["check_explanations", "load_explaining"]

TOLERANCE = 1e-4  # of the largest raw score: sums of a few hundred single-precision numbers stay far below it
_KINDS: tuple[ImportanceKind, ...] = ("gain", "split")
_PLACED = ("regression plain", "regression categorical")
_FEW = 4  # rows of which interactions are computed


def check_explanations(
    runner: type[Runner], translation: Translation, model: Any, case: ConformanceCase, unsound: dict[str, str]
) -> Iterator[str]:
    """How a runner's explanations break the contract; where they break their own definition is put into `unsound`."""
    x, given = case.x_test, (runner, translation, model)
    try:
        for kind in _KINDS:
            with suppress(UnsupportedError):
                found = own_importances(*given, x.shape[1], kind)
                if (found < 0).any():
                    yield f"importances() gives a negative {kind}"
                if not np.array_equal(found, own_importances(*given, x.shape[1], kind)):
                    yield f"importances() gives two answers for {kind}"
        yield from _check_places(runner, case)
        with suppress(UnsupportedError):
            explained = attributions(*given, x)
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
    x = np.ascontiguousarray(case.train.x[:, [1, 2, 0, 3, 4]])
    for column in range(x.shape[1]):
        data = replace(case.train, x=x, y=x[:, column].astype(np.float64))
        model = runner.fit(translation, runner.build(translation, data))
        for kind in _KINDS:
            with suppress(UnsupportedError):
                most = int(own_importances(runner, translation, model, x.shape[1], kind).argmax())
                if most != column:
                    yield f"importances() gives the {kind} of column {column} to column {most}"


def _check_attributions(
    given: tuple[type[Runner], Translation, Any],
    case: ConformanceCase,
    explained: NDArray[np.float64],
    unsound: dict[str, str],
) -> Iterator[str]:
    x = case.x_test
    if not np.array_equal(explained, attributions(*given, x)):
        yield "attributions() gives two answers"
    try:
        raw = raw_scores(*given, x)
    except UnsupportedError as error:
        yield f"attributions() are offered without raw(): {error}"
        return
    faults = [_sum_fault("attributions and the base value", explained.sum(axis=1), raw)]
    with suppress(UnsupportedError):
        sums = interactions(*given, x[:_FEW]).sum(axis=2)
        faults.append(_sum_fault("interactions", sums, explained[:_FEW, :-1]))
    if case.name.endswith("plain"):
        faults.append(_constant_fault(*given[:2], case))
    if any(faults):
        unsound[case.name] = "; ".join(filter(None, faults))


def _sum_fault(what: str, sums: NDArray[np.float64], expected: NDArray[np.float64]) -> str:
    error, scale = float(np.abs(sums - expected).max()), float(np.abs(expected).max())
    return "" if error <= TOLERANCE * scale else f"{what} miss what they must add up to by {error:.3g} of {scale:.3g}"


def _constant_fault(runner: type[Runner], translation: Translation, case: ConformanceCase) -> str:
    data = with_constant(case.train)
    model = runner.fit(translation, runner.build(translation, data))
    most = float(np.abs(attributions(runner, translation, model, data.x)[:, -2]).max())
    for kind in _KINDS:
        with suppress(UnsupportedError):
            most = max(most, float(own_importances(runner, translation, model, data.x.shape[1], kind)[-1]))
    return f"a constant column gets {most:.3g}" if most else ""
