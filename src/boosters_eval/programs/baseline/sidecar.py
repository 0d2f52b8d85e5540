"""The file beside a baseline: what each recorded fit predicted for each row, compressed, and named by its digests."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any, Protocol

from boosters_eval.core.errors import FileFormatError, RunError
from boosters_eval.core.files import check_regular, compute_digest, write_atomically
from boosters_eval.engine.artifacts import load_array

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from boosters_eval.programs.baseline.model import Baseline

MOST_BYTES = 2**28  # of a file
MOST_OF_AN_ARRAY = 2**27
_MOST_ARRAYS = 2**17  # an entry of the list takes ten times its size in memory
_ENTRY = b"PK\x01\x02"  # begins each
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same predictions are the same bytes, whenever they are written


class RowStore(Protocol):
    """Where arrays are found by their digests."""

    def find(self, digest: str) -> NDArray[Any] | None:
        """The array, or None if it is not there; one that was changed is an error."""


class RunRows:
    """What a run of this home keeps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, digest: str) -> NDArray[Any] | None:
        try:
            return load_array(self._folder, digest)
        except RunError:  # `verify` tells of it, and the check that rows could not serve
            return None


class PredictionsFile:
    """The arrays of a file beside a baseline, read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            size = check_regular(path)
            content = path.read_bytes() if size <= MOST_BYTES else b""
        except OSError as error:
            raise FileFormatError(f"Cannot read {path}: {error.strerror}.") from None
        if size > MOST_BYTES:
            raise FileFormatError(f"{path} is larger than any file of predictions.")
        if content.count(_ENTRY) > _MOST_ARRAYS:
            raise FileFormatError(f"{path} has more arrays than any file of predictions.")
        try:
            self._file = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise FileFormatError(f"{path} is not a file of predictions: {error}.") from None

    @property
    def digests(self) -> set[str]:
        return {name.removesuffix(".npy") for name in self._file.namelist()}

    def find(self, digest: str) -> NDArray[Any] | None:
        """The array of a digest, which its content must have."""
        import numpy as np  # noqa: PLC0415 (who compares means only needs none of it)

        info = self._file.NameToInfo.get(f"{digest}.npy")
        if info is None:
            return None
        if info.file_size > MOST_OF_AN_ARRAY:
            raise FileFormatError(f"{self.path} has an array of {info.file_size} bytes, which is too large.")
        if info.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):  # others make all of it at once, however much that is
            raise FileFormatError(f"{self.path} is compressed in a way that this program does not use.")
        try:
            with self._file.open(info) as file:
                content = file.read(info.file_size)  # and no more, whatever there is
        except Exception as error:  # noqa: BLE001 (a damaged archive fails in many ways)
            raise FileFormatError(f"{self.path} is damaged: {error}.") from None
        if compute_digest(content, 32) != digest:
            raise FileFormatError(f"{self.path} was changed: the predictions {digest} are not what was recorded.")
        try:
            return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        except (ValueError, MemoryError):
            raise FileFormatError(f"{self.path} has something that is no array: {digest}.") from None


def locate_sidecar(path: Path) -> Path:
    return path.with_suffix(".predictions.npz")


def open_sidecar(path: Path) -> PredictionsFile | None:
    """The predictions beside a baseline's file; None if there are none."""
    place = locate_sidecar(path)
    return PredictionsFile(place) if place.exists() else None


def list_kept(baseline: Baseline) -> list[str]:
    """The digests of all arrays that a baseline names, each once."""
    kept = [fit.kept for result in baseline.results for fit in result.fits.values() if fit.kept is not None]
    return list(dict.fromkeys(digest for one in kept for digest in (one.predictions, one.rows)))


def save_sidecar(baseline: Baseline, path: Path, stores: Iterable[RowStore]) -> int:
    """Write what a baseline names beside its file, whole or not at all, and return its size; 0: there is nothing."""
    import numpy as np  # noqa: PLC0415 (as above)

    stores = list(stores)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for digest in sorted(list_kept(baseline)):
            array = next((found for store in stores if (found := store.find(digest)) is not None), None)
            if array is None or array.nbytes > MOST_OF_AN_ARRAY - 2**16:  # it could not be read again
                continue
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{digest}.npy", _EPOCH), content.getvalue(), zipfile.ZIP_DEFLATED)
        empty = not file.namelist()
    place = locate_sidecar(path)
    if empty:
        place.unlink(missing_ok=True)
        return 0
    write_atomically(place, buffer.getvalue())
    return len(buffer.getvalue())
