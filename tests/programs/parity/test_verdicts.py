"""The one function that turns a difference into a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.programs.parity.verdicts import (
    IncomparableError,
    ParityVerdict,
    decide_verdict,
    measure_difference,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 1_000
REFERENCE = np.linspace(-3.0, 3.0, ROWS)


def judged(gaps: NDArray[Any], tolerance: float = 1e-9, **rules: Any) -> ParityVerdict:
    metric = rules.pop("metric", "relative_rmse")
    found = measure_difference(REFERENCE, REFERENCE + gaps, metric, tolerance)
    return decide_verdict([found], metric, tolerance, **rules)


def off(share: float, by: float = 2.0) -> NDArray[np.float64]:
    gaps = np.zeros(ROWS)
    gaps[: int(share * ROWS)] = by
    return gaps


def test_equal_bits_are_exact_and_small_differences_are_rounding() -> None:
    assert judged(np.zeros(ROWS)) is ParityVerdict.BIT_EXACT
    assert judged(np.full(ROWS, 1e-12)) is ParityVerdict.ROUNDING
    assert judged(np.full(ROWS, 1e-6)) is ParityVerdict.DIVERGENT


def test_one_row_that_is_far_off_cannot_hide_in_an_average() -> None:
    found = measure_difference(REFERENCE, REFERENCE + off(0.001), "relative_rmse", 0.1)
    assert found.relative_rmse < 0.1
    assert judged(off(0.001), tolerance=0.1) is ParityVerdict.DIVERGENT


def test_one_data_set_that_is_off_cannot_hide_among_others() -> None:
    good, bad = (
        measure_difference(REFERENCE, REFERENCE + gap, "relative_rmse", 1e-9) for gap in (0 * REFERENCE, off(0.001))
    )
    assert decide_verdict([good, good], "relative_rmse", 1e-9) is ParityVerdict.BIT_EXACT
    assert decide_verdict([good, bad], "relative_rmse", 1e-9) is ParityVerdict.DIVERGENT


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_numbers_whose_squares_do_not_exist_forgive_nothing(scale: float) -> None:
    big = REFERENCE * scale
    found = measure_difference(big, big * 1.5, "relative_rmse", 1e-6)
    assert found.relative_rmse == pytest.approx(0.5)
    assert decide_verdict([found], "relative_rmse", 1e-6) is ParityVerdict.DIVERGENT
    found = measure_difference(np.array([1.7e308, 1.0]), np.array([-1.7e308, 1.0]), "relative_rmse", 1e-6)
    assert decide_verdict([found], "relative_rmse", 1e-6) is ParityVerdict.DIVERGENT


def test_only_what_the_reference_reproduced_is_excused() -> None:
    for word in (ParityVerdict.CONVENTION, ParityVerdict.KNOWN_DEFECT):
        assert judged(np.full(ROWS, 0.1), explained=word) is word
        assert judged(np.zeros(ROWS), explained=word) is ParityVerdict.BIT_EXACT
    assert judged(np.full(ROWS, 0.1)) is ParityVerdict.DIVERGENT
    assert ParityVerdict.CONVENTION.agrees
    assert not ParityVerdict.KNOWN_DEFECT.agrees


def test_what_cannot_agree_is_a_cross_check() -> None:
    assert judged(np.full(ROWS, 0.5), stochastic=True) is ParityVerdict.CROSS_CHECK


def test_an_absolute_tolerance_does_not_scale_with_the_reference() -> None:
    big = REFERENCE * 1000
    found = measure_difference(big, big + 5e-4, "max_abs", 1e-6)
    assert decide_verdict([found], "max_abs", 1e-6) is ParityVerdict.DIVERGENT
    found = measure_difference(big, big + 5e-4, "relative_rmse", 1e-6)
    assert decide_verdict([found], "relative_rmse", 1e-6) is ParityVerdict.ROUNDING


@pytest.mark.parametrize("shape", [(ROWS, 1), (ROWS - 1,), (1, ROWS)])
def test_another_shape_is_an_error_even_of_the_same_size(shape: tuple[int, ...]) -> None:
    with pytest.raises(IncomparableError):
        measure_difference(REFERENCE, np.zeros(shape), "relative_rmse", 1e-9)


def test_selections_are_compared_as_sets() -> None:
    wanted, chosen = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])
    found = measure_difference(wanted, chosen, "jaccard", 0.0)
    assert found.jaccard == pytest.approx(2 / 3)
    assert decide_verdict([found], "jaccard", 0.5) is ParityVerdict.DIVERGENT
    assert decide_verdict([found], "jaccard", 0.7) is ParityVerdict.ROUNDING


@pytest.mark.parametrize("chosen", [[7.0, 8, 9, 0], [0.5, 0, 0, 0], [-1.0, 1, 0, 0]])
def test_a_selection_that_is_no_mask_is_an_error(chosen: list[float]) -> None:
    wanted = np.array([1.0, 2, 3, 0])
    for reference, prediction in ((wanted, np.array(chosen)), (np.array([1.0, 1, 0, 0]), np.array(chosen))):
        with pytest.raises(IncomparableError, match="A selection must be a mask"):
            measure_difference(reference, prediction, "jaccard", 0.0)


def test_a_reference_of_zeros_forgives_nothing() -> None:
    zeros = np.zeros(10)
    assert (
        decide_verdict([measure_difference(zeros, zeros + 1e-300, "relative_rmse", 1e-6)], "relative_rmse", 1e-6)
        is ParityVerdict.DIVERGENT
    )


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(1e-12, 1))
def test_a_larger_difference_is_never_a_better_verdict(a: float, b: float, tolerance: float) -> None:
    order = [ParityVerdict.BIT_EXACT, ParityVerdict.ROUNDING, ParityVerdict.DIVERGENT]
    small, large = sorted((a, b))
    assert order.index(judged(np.full(ROWS, small), tolerance)) <= order.index(judged(np.full(ROWS, large), tolerance))
