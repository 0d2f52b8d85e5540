"""The family `pls`: the findings must come from the numbers, and a band must end somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from threadpoolctl import threadpool_limits

from boosters_eval.programs.parity.method import ensure_data, read_csv
from boosters_eval.programs.parity.pls import PLS, PLS2, SklearnDefaultPls, SklearnPls
from boosters_eval.programs.parity.verdicts import ParityVerdict, decide_verdict, measure_difference

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


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def predicted(backend: type[PythonBackend], method: MethodSpec, size: Size, root: Path) -> Any:
    """As a session does it, without the clock."""
    session = backend.session(method, method.parameters, 1)
    session.arrays = {file.stem: read_csv(file) for file in ensure_data(root, method, size)[0].glob("*.csv")}
    return backend.predict(session, backend.fit(session, session.arrays))


def judged(backend: type[PythonBackend], method: MethodSpec, size: Size, root: Path) -> ParityVerdict:
    oracle = predicted(SklearnPls, method, size, root)
    found = measure_difference(oracle, predicted(backend, method, size, root), method.metric, method.tolerance)
    return decide_verdict(found, method.metric, method.tolerance, convention=method.convention("sklearn.default"))


@pytest.mark.parametrize("size", PLS2.sizes, ids=str)
def test_stopping_early_is_a_convention_only_as_far_as_it_was_measured(size: Size, tmp_path: Path) -> None:
    assert judged(SklearnDefaultPls, PLS2, size, tmp_path) is ParityVerdict.CONVENTION
    assert judged(Impatient, PLS2, size, tmp_path) is ParityVerdict.DIVERGENT
    assert judged(Patient, PLS2, size, tmp_path) is ParityVerdict.DIVERGENT


def test_with_one_target_there_is_nothing_to_iterate(tmp_path: Path) -> None:
    assert judged(Impatient, PLS, PLS.sizes[0], tmp_path) is ParityVerdict.BIT_EXACT


def test_every_convention_has_a_band_that_excludes_agreement() -> None:
    assert all(item.low > method.tolerance for method in (PLS, PLS2) for item in method.conventions)
