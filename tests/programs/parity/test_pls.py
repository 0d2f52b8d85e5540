"""The family `pls`: a convention is what the reference predicts once it follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from threadpoolctl import threadpool_limits

from boosters_eval.programs.parity.method import ensure_data, read_arrays
from boosters_eval.programs.parity.pls import PLS, PLS2, NumpyPls, SklearnDefaultPls, SklearnPls
from boosters_eval.programs.parity.verdicts import measure_difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.programs.parity.backend import PythonBackend
    from boosters_eval.programs.parity.method import MethodSpec, Size


class Impatient(SklearnDefaultPls):
    """It stops long before its documented tolerance."""

    tol = 1e-2


class Patient(SklearnDefaultPls):
    """It does better than is documented: also this is worth a look."""

    tol = 1e-16


class Scaled(SklearnDefaultPls):
    """It does what is documented, and is off by a factor besides."""

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return 1.001 * super().predict(session, fitted)


class OneRow(SklearnDefaultPls):
    """It does what is documented, but for the sign of one row."""

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        found = super().predict(session, fitted)
        found[7] *= -1
        return found


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def predicted(backend: type[PythonBackend], method: MethodSpec, size: Size, root: Path, **changes: Any) -> Any:
    """As a session does it, without the clock."""
    session = backend.session(method, {**method.parameters, **changes}, 1)
    session.arrays = read_arrays(ensure_data(root, method, size)[0])
    return backend.predict(session, backend.fit(session, session.arrays))


def agrees(one: Any, other: Any, method: MethodSpec) -> bool:
    return measure_difference(one, other, method.metric, method.tolerance).rows_off == 0


@pytest.mark.parametrize("size", PLS2.sizes, ids=str)
def test_stopping_early_is_a_convention_only_if_it_is_what_the_reference_predicts_then(
    size: Size, tmp_path: Path
) -> None:
    (convention,) = PLS2.exceptions("sklearn.default")
    variant = predicted(NumpyPls, PLS2, size, tmp_path, **convention.changes)
    assert agrees(variant, predicted(SklearnDefaultPls, PLS2, size, tmp_path), PLS2)
    assert not agrees(variant, predicted(SklearnPls, PLS2, size, tmp_path), PLS2)
    for wrong in (Impatient, Patient, Scaled, OneRow):
        assert not agrees(variant, predicted(wrong, PLS2, size, tmp_path), PLS2), wrong


@pytest.mark.parametrize(("method", "size"), [(m, size) for m in (PLS, PLS2) for size in m.sizes], ids=str)
def test_who_computes_the_conventions_agrees_with_the_reference_without_them(
    method: MethodSpec, size: Size, tmp_path: Path
) -> None:
    oracle = predicted(SklearnPls, method, size, tmp_path)
    assert agrees(oracle, predicted(NumpyPls, method, size, tmp_path), method)


def test_with_one_target_simpls_is_nipals_and_nothing_iterates(tmp_path: Path) -> None:
    size = PLS.sizes[0]
    oracle = predicted(SklearnPls, PLS, size, tmp_path)
    assert agrees(oracle, predicted(NumpyPls, PLS, size, tmp_path, algorithm="simpls"), PLS)
    assert agrees(oracle, predicted(Impatient, PLS, size, tmp_path), PLS)


def test_every_convention_differs_from_the_reference(tmp_path: Path) -> None:
    for method in (PLS, PLS2):
        oracle = predicted(SklearnPls, method, method.sizes[0], tmp_path)
        for convention in method.conventions:
            variant = predicted(NumpyPls, method, method.sizes[0], tmp_path, **convention.changes)
            assert not agrees(oracle, variant, method), convention.name
