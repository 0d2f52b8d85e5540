"""What a difference looks like: each fault has a name, and none is named that does not explain everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boosters_eval.programs.parity.diagnosis import UNEXPLAINED, CellEvidence, describe_agreement, diagnose

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

RNG = np.random.default_rng(3)
REFERENCE = 3 * RNG.normal(size=200) + 1
SCORES = RNG.normal(size=(60, 4))
X = RNG.normal(size=(200, 5))
X[::7, 2] = np.nan
X[:40, 4] = 7.0
MARKED = np.arange(200) % 5 == 1
OTHER = RNG.normal(size=200)
EVIDENCE = CellEvidence(allowed=1e-10, x=X, marked=MARKED, others=(OTHER,))


def put(values: Numbers, where: Any, by: Any) -> Numbers:
    changed = values.copy()
    changed[where] = by
    return changed


def named(prediction: Any, reference: Numbers = REFERENCE, **evidence: Any) -> str:
    plain = EVIDENCE if reference is REFERENCE else CellEvidence(allowed=1e-10)
    return diagnose(reference, np.asarray(prediction, dtype=float), plain._replace(**evidence)).name


WHERE = {
    "missing": np.isnan(X[:, 2]),
    "threshold": MARKED,
    "column_above": X[:, 3] > 0.5,
    "column_below": X[:, 3] < -0.5,
    "column_value": X[:, 4] == 7,
    "block": np.arange(200) // 50 == 1,
    "every_nth": np.arange(200) % 10 == 3,
    "few_rows": np.isin(np.arange(200), (5, 90)),
    "one_row": np.arange(200) == 17,
}
WHOLE: dict[str, tuple[Numbers, Callable[[Numbers], Any]]] = {
    "rows_swapped": (REFERENCE, lambda r: put(r, [3, 4], r[[4, 3]])),
    "rows_reversed": (REFERENCE, lambda r: r[::-1]),
    "rows_shifted": (REFERENCE, lambda r: np.roll(r, 5)),
    "rows_sorted": (REFERENCE, np.sort),
    "rows_permuted": (REFERENCE, RNG.permutation),
    "sign": (REFERENCE, np.negative),
    "scaled": (REFERENCE, lambda r: 1.001 * r),
    "shifted": (REFERENCE, lambda r: r + 0.25),
    "affine": (REFERENCE, lambda r: 2 * r - 1),
    "centered": (REFERENCE, lambda r: r - r.mean()),
    "standardized": (REFERENCE, lambda r: (r - r.mean()) / r.std()),
    "output_float32": (REFERENCE, lambda r: r.astype(np.float32)),
    "output_float16": (REFERENCE, lambda r: r.astype(np.float16)),
    "output_decimals": (REFERENCE, lambda r: np.round(r, 4)),
    "output_truncated": (REFERENCE, np.trunc),
    "absolute": (REFERENCE, np.abs),
    "clipped_at_0": (REFERENCE, lambda r: np.maximum(r, 0)),
    "clipped": (REFERENCE, lambda r: np.minimum(r, 2.5)),
    "link_logistic": (REFERENCE, lambda r: 1 / (1 + np.exp(-r))),
    "link_exp": (REFERENCE, np.exp),
    "complement": (REFERENCE, lambda r: 1 - r),
    "constant": (REFERENCE, lambda r: np.full(200, r.mean())),
    "stale": (REFERENCE, lambda _: OTHER),
    "single_precision": (REFERENCE, lambda r: r * (1 + 1e-7 * RNG.normal(size=200))),
    "columns_permuted": (SCORES, lambda r: r[:, [1, 0, 2, 3]]),
    "column_sign": (SCORES, lambda r: r * [1, -1, 1, 1]),
    "columns_affine": (SCORES, lambda r: r * [1, 2, 1, 1]),
    "softmax": (SCORES, lambda r: np.exp(r) / np.exp(r).sum(axis=1, keepdims=True)),
    UNEXPLAINED: (REFERENCE, lambda r: r + RNG.normal(size=200)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_fault_of_the_whole_prediction_has_its_name(name: str) -> None:
    reference, fault = WHOLE[name]
    assert named(fault(reference), reference) == name


@pytest.mark.parametrize("name", WHERE)
def test_rows_that_are_off_are_located_and_told_what_happened_there(name: str) -> None:
    assert named(put(REFERENCE, WHERE[name], -REFERENCE[WHERE[name]])) == f"{name}_sign"
    assert named(put(REFERENCE, WHERE[name], 0)) == f"{name}_zero"
    count = WHERE[name].sum()
    assert named(put(REFERENCE, WHERE[name], REFERENCE[WHERE[name]] + RNG.normal(size=count))) == name


def test_sentences_name_the_rows_and_columns() -> None:
    told = diagnose(REFERENCE, put(REFERENCE, [3, 4], REFERENCE[[4, 3]]), EVIDENCE).sentence
    assert told == "rows 3 and 4 are swapped"
    told = diagnose(SCORES, SCORES[:, [0, 2, 1, 3]], CellEvidence(allowed=1e-10)).sentence
    assert told == "columns 1 and 2 are swapped"
    told = diagnose(SCORES, SCORES[:, [0, 2, 1, 3]] * [1, 1, -1, 1], CellEvidence(allowed=1e-10)).sentence
    assert told == "columns 1 and 2 are swapped and the sign of column 2 is flipped"
    told = diagnose(REFERENCE, put(REFERENCE, 17, 0), EVIDENCE).sentence
    assert told == "row 17 is off: it is 0 there"


def test_what_the_reference_predicts_with_the_fault_is_told_by_its_sentence() -> None:
    variant = REFERENCE + RNG.normal(size=200)
    told = diagnose(REFERENCE, variant, EVIDENCE._replace(variants={"leave_out=1": ("agrees without a tree", variant)}))
    assert told == ("leave_out=1", "agrees without a tree")


def test_a_second_run_with_other_bits_is_told_where_nothing_fits() -> None:
    assert named(REFERENCE + RNG.normal(size=200), repeatable=False) == "not_repeatable"


FINITE = st.floats(-1e6, 1e6)


@given(st.integers(0, 199), st.integers(0, 199))
def test_any_two_swapped_rows_are_named(first: int, second: int) -> None:
    assume(first != second)
    told = diagnose(REFERENCE, put(REFERENCE, [first, second], REFERENCE[[second, first]]), EVIDENCE).sentence
    assert told == f"rows {min(first, second)} and {max(first, second)} are swapped"


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_any_factor_and_shift_are_named(factor: float, shift: float) -> None:
    assume(abs(abs(factor) - 1) > 1e-3 and abs(factor) > 1e-3 and abs(shift) > 1e-3)
    assert named(REFERENCE * factor) == "scaled"
    assert named(REFERENCE + shift) in ("shifted", "centered")
    assert named(REFERENCE * factor + shift) in ("affine", "standardized")


@given(st.sets(st.integers(0, 199), min_size=1, max_size=150))
def test_rows_that_are_named_as_off_are_those_that_are(rows: set[int]) -> None:
    noise = put(np.zeros(200), sorted(rows), RNG.normal(size=len(rows)) + 5)
    found = diagnose(REFERENCE, REFERENCE + noise, CellEvidence(allowed=1e-10))
    assert found.name in ("one_row", "few_rows", "block", "every_nth", "rows")
    assert str(min(rows)) in found.sentence


@given(arrays(np.float64, (12,), elements=FINITE), arrays(np.float64, (12,), elements=FINITE))
def test_any_two_predictions_get_a_diagnosis(reference: Numbers, prediction: Numbers) -> None:
    assume((np.abs(reference - prediction) > 1e-9).any())
    found = diagnose(reference, prediction, CellEvidence(allowed=1e-9))
    assert found.name
    assert found.sentence


@given(st.integers(0, 2**32), st.permutations(range(3)))
def test_columns_in_another_order_are_found(seed: int, order: list[int]) -> None:
    assume(order != [0, 1, 2])
    reference = np.random.default_rng(seed).normal(size=(8, 3))
    assert named(reference[:, order], reference) == "columns_permuted"


@pytest.mark.parametrize(
    ("prediction", "name"),
    [
        (np.nextafter(REFERENCE, np.inf), "last_bits"),
        (REFERENCE.astype(np.float32).astype(np.float64), "output_float32"),
        (REFERENCE + 1e-13, "summation"),
        (REFERENCE + 1e-9, "within_tolerance"),
    ],
)
def test_what_is_left_of_an_agreement_has_a_name_too(prediction: Numbers, name: str) -> None:
    found = describe_agreement(REFERENCE, prediction)
    assert found is not None
    assert found.name == name
    assert describe_agreement(REFERENCE, REFERENCE.copy()) is None
