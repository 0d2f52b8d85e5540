"""Stored references: they check themselves before anything is judged by them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import BoostersEvalError, FileFormatError
from boosters_eval.engine.artifacts import save_array
from boosters_eval.programs.parity.judge import is_oracle
from boosters_eval.programs.parity.method import Oracle, Size
from boosters_eval.programs.parity.references import ReferenceKey, ReferenceStore, StoredReference

if TYPE_CHECKING:
    from pathlib import Path

PREDICTION = np.array([1.5, -0.0, 5e-324, 1e300])


def stored(folder: Path, **changes: Any) -> tuple[ReferenceStore, StoredReference]:
    store = ReferenceStore(folder)
    given = {"role": "oracle", "method": "pls", "backend": "sklearn", "size": Size(4, 2), "parameters_digest": "p" * 16}
    reference = StoredReference(
        **{**given, "data_digest": "d" * 32, "predictions": (save_array(folder / "arrays", PREDICTION),), "shape": (4,)}
        | {"versions": {"scikit-learn": "1.7.2", "numpy": "2.1.0"}, **changes}
    )
    store.save(reference, [PREDICTION])
    return store, reference


def test_a_reference_is_found_by_its_cell_and_by_no_other(tmp_path: Path) -> None:
    store, reference = stored(tmp_path)
    assert store.find(ReferenceKey("oracle", "pls", Size(4, 2), "p" * 16, "d" * 32)) == reference
    assert store.predictions(reference)[0].tobytes() == PREDICTION.tobytes()
    assert store.find(ReferenceKey("canonical", "pls", Size(4, 2), "p" * 16, "d" * 32)) is None
    assert store.find(ReferenceKey("oracle", "pls", Size(4, 3), "p" * 16, "d" * 32)) is None
    assert store.find(ReferenceKey("oracle", "pls", Size(4, 2), "q" * 16, "d" * 32)) is None
    assert store.find(ReferenceKey("oracle", "pls", Size(4, 2), "p" * 16, "e" * 32)) is None
    assert reference.version == "1.7.2"


@settings(max_examples=30)  # each writes a file
@given(st.data())
def test_one_flipped_bit_anywhere_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("store")
    store, reference = stored(folder)
    (path,) = folder.glob("arrays/*/*.npy")
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(BoostersEvalError, match="was changed after it was written"):
        store.predictions(reference)
    assert [bool(fault) for _, fault in store.verify()] == [True]
    shutil.rmtree(folder)


def test_a_swapped_lost_or_foreign_file_is_noticed(tmp_path: Path) -> None:
    store, reference = stored(tmp_path)
    (path,) = tmp_path.glob("arrays/*/*.npy")
    other = save_array(tmp_path / "arrays", PREDICTION + 1)
    shutil.copy(tmp_path / "arrays" / other[:2] / f"{other}.npy", path)
    with pytest.raises(BoostersEvalError, match="was changed"):
        store.predictions(reference)
    path.unlink()
    with pytest.raises(BoostersEvalError, match="Cannot read"):
        store.predictions(reference)
    (file,) = tmp_path.glob("*.json")
    file.rename(tmp_path / file.name.replace("pls", "pls2"))
    with pytest.raises(FileFormatError, match="is not the reference that its name says"):
        store.find(ReferenceKey("oracle", "pls2", Size(4, 2), "p" * 16, "d" * 32))
    assert [fault.endswith("is not the reference that its name says.") for _, fault in store.verify()] == [True]
    (tmp_path / file.name).write_text('{"schema_version": 9}')
    with pytest.raises(FileFormatError, match="is a stored reference of format 9, which"):
        store.all()


def test_a_damaged_array_is_mended_by_storing_the_reference_again(tmp_path: Path) -> None:
    store, reference = stored(tmp_path)
    (path,) = tmp_path.glob("arrays/*/*.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    stored(tmp_path)
    assert store.predictions(reference)[0].tobytes() == PREDICTION.tobytes()


def test_a_reference_of_another_shape_than_it_says_is_refused(tmp_path: Path) -> None:
    store, reference = stored(tmp_path, shape=(2, 2))
    with pytest.raises(FileFormatError, match=r"has shape \(4,\), not \(2, 2\)"):
        store.predictions(reference)


def test_a_name_is_never_a_path(tmp_path: Path) -> None:
    stored(tmp_path / "store", method="../../evil/..")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize(
    ("required", "version", "satisfied"),
    [(">=1.5,<2", "1.7.2", True), (">=1.5,<2", "2.0", False), ("==1.9.0", "1.9.0", True), (">=1", "", False)],
)
def test_only_the_declared_version_is_the_oracle(required: str, version: str, satisfied: bool) -> None:
    assert is_oracle(Oracle(backend="b", version=required), {"b": version}) is satisfied
