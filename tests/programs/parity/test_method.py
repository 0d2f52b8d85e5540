"""The data that all backends read: the same bits in every language, or an error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import fake_backends as fakes
from boosters_eval.core.errors import RunError
from boosters_eval.programs.parity.method import BASE_SEED, GENERATORS, ensure_data, read_arrays, read_csv, to_csv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

TINIEST = 5e-324


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    GENERATORS.register("rows", fakes.Rows)
    yield
    GENERATORS.unregister("rows")


@settings(max_examples=30)  # each writes a file
@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=5), elements=st.floats()))
def test_any_number_is_read_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, array: NDArray[np.float64]
) -> None:
    path = tmp_path_factory.getbasetemp() / "x.csv"
    for given_ in (array, array[:, 0]):
        path.write_bytes(to_csv(given_))
        found = read_csv(path)
        assert found.shape == given_.shape
        assert np.array_equal(np.isnan(found), np.isnan(given_)), "missing stays missing"
        known = ~np.isnan(given_)
        assert found[known].tobytes() == given_[known].tobytes()


@pytest.mark.parametrize(
    "value", [0.0, -0.0, TINIEST, -TINIEST, 2.2250738585072014e-308, 1.7976931348623157e308, np.inf, -np.inf, 0.1]
)
def test_the_ends_of_the_numbers_survive(tmp_path: Path, value: float) -> None:
    (tmp_path / "x.csv").write_bytes(to_csv(np.array([value, 1.0])))
    assert read_csv(tmp_path / "x.csv").tobytes() == np.array([value, 1.0]).tobytes()


def test_the_same_method_size_and_seed_give_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    method, size = fakes.method(), fakes.Size(5, 2)
    place, digest = ensure_data(tmp_path / "a", method, size)
    assert ensure_data(tmp_path / "a", method, size) == (place, digest)
    assert ensure_data(tmp_path / "b", method, size)[1] == digest
    assert ensure_data(tmp_path / "a", method, size, BASE_SEED + 1)[1] != digest
    assert place.name == str(BASE_SEED)


def test_a_matrix_of_one_column_is_no_vector(tmp_path: Path) -> None:
    place, _ = ensure_data(tmp_path, fakes.method(), fakes.Size(5, 1))
    assert read_arrays(place)["X"].shape == (5, 1)
    assert read_arrays(ensure_data(tmp_path, fakes.method(), fakes.Size(1, 5))[0])["X"].shape == (1, 5)


def test_what_was_verified_is_read_again_only_if_a_file_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, digest = ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2))
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"{path} was read again"))
        assert ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2)) == (place, digest)
    times = (place / "X.csv").stat().st_mtime_ns
    (place / "X.csv").write_bytes((place / "X.csv").read_bytes()[::-1])
    os.utime(place / "X.csv", ns=(times, times))  # the time of its last change still tells
    with pytest.raises(RunError, match="was changed after it was written"):
        ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2))


def test_data_that_were_changed_or_lost_are_an_error(tmp_path: Path) -> None:
    place, _ = ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2))
    text = (place / "X.csv").read_text()
    for damaged in (text.replace("1", "2", 1), text[:-3], None):
        (place / "X.csv").unlink() if damaged is None else (place / "X.csv").write_text(damaged)
        with pytest.raises(RunError, match="was changed after it was written"):
            ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2))


def test_data_that_were_half_written_are_made_again(tmp_path: Path) -> None:
    place, digest = ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2))
    (place / "manifest.json").unlink()
    (place / "X.csv").write_text("1,")
    assert ensure_data(tmp_path, fakes.method(), fakes.Size(5, 2)) == (place, digest)
