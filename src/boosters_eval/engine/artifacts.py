"""Arrays that are too big for a line of the journal: stored by the digest of their content, verified when read."""

from __future__ import annotations

import contextlib
import io
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import RunError
from boosters_eval.core.files import check_regular, compute_digest, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MAX_BYTES = 2**31
_AT_ONCE = 16


def save_array(folder: Path, array: NDArray[Any], *, synced: bool = True) -> str:
    """Store an array and return its digest. Equal arrays are stored once, whoever writes them.

    Whoever stores many in little time need not wait for the disk each time, but calls `sync_arrays` in the end.
    """
    import numpy as np  # noqa: PLC0415 (whoever only asks where arrays are needs none of it)

    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    content = buffer.getvalue()
    if len(content) > MAX_BYTES:
        raise RunError(f"An array of {len(content)} bytes is larger than any that this program stores.")
    digest = compute_digest(content, 32)
    path = locate_array(folder, digest)
    if not _holds(path, content):  # a damaged one is mended by whoever has the array
        write_atomically(path, content, own=True, synced=synced)
    return digest


def sync_arrays(folder: Path) -> None:
    """Wait until all arrays of a folder are on disk: at once, which takes a tenth of the time of one after another."""
    files = list(folder.glob("??/*.npy"))
    if files:
        with ThreadPoolExecutor(min(_AT_ONCE, len(files))) as threads:
            list(threads.map(_sync, files))


def _sync(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("rb") as file:  # whoever reads a lost one is told
        os.fsync(file.fileno())


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def load_array(folder: Path, digest: str) -> NDArray[Any]:
    """The array of a digest. One that is missing or has been changed is an error, never an answer."""
    import numpy as np  # noqa: PLC0415 (as above)

    path = locate_array(folder, digest)
    try:
        if check_regular(path) > MAX_BYTES:
            raise RunError(f"{path} is larger than any array that this program stores.")
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"Cannot read {path}: {error.strerror}.") from None
    if compute_digest(content, 32) != digest:
        raise RunError(f"{path} was changed after it was written: its digest is not its name.")
    try:
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except (ValueError, MemoryError):
        raise RunError(f"{path} is no array that this program stored.") from None


def locate_array(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / f"{digest}.npy"
