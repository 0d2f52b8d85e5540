"""The data of a cell: written once, as text with 17 digits, and read by every backend in every language."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.errors import RunError
from boosters_eval.core.files import FORMAT, check_format, load_json, read_text, write_atomically
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.engine.plan import canonical
from boosters_eval.programs.parity.method import BASE_SEED, MethodSpec, Size

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class GeneratedData:
    """What a generator made: arrays by name, and files of other kinds such as a trained model."""

    arrays: dict[str, NDArray[np.float64]]  # X, y, and `marked` where rows sit on a boundary
    files: dict[str, bytes] = field(default_factory=dict)


class Generator(ABC):
    """Makes the data of a method. The same method, size and seed give the same bytes, everywhere."""

    name: ClassVar[str]
    recipe: ClassVar[str]  # changes whenever the data would

    @classmethod
    @abstractmethod
    def missing(cls, method: MethodSpec) -> str | None:
        """Why it cannot make the data here, or None."""

    @classmethod
    def shared(cls, method: MethodSpec, size: Size) -> dict[str, bytes]:  # noqa: ARG003 (most share nothing)
        """What all seeds of a size have in common, such as a trained model."""
        return {}

    @classmethod
    @abstractmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        """The data of one seed."""


def _shipped() -> dict[str, type[Generator]]:
    from boosters_eval.programs.parity.families import shipped  # noqa: PLC0415 (the families know this module)

    return shipped(Generator)


GENERATORS: Registry[type[Generator]] = Registry(
    "data generator", group="boosters_eval.generators", builtin=_shipped, fault=must_extend(Generator)
)


def to_csv(array: NDArray[np.float64]) -> bytes:
    """Text that every language reads back to the same bits: 17 digits, no header, one row per line, NaN for missing."""
    rows = np.atleast_2d(array.T).T if array.ndim == 1 else array
    return b"".join(",".join(f"{value:.17g}" for value in row).encode() + b"\n" for row in rows.tolist())


def read_csv(path: Path) -> NDArray[np.float64]:
    """An array that `to_csv` wrote; a single column becomes a vector."""
    found = np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    return found[:, 0] if found.shape[1] == 1 else found


def data_folder(root: Path, method: MethodSpec, size: Size, generator: type[Generator]) -> Path:
    """Where the data of a method and size are kept: its name depends on everything that the data depend on."""
    content = [method.data, generator.recipe, method.parameters, list(size)]
    digest = hashlib.sha256(canonical(content).encode()).hexdigest()[:16]
    return root / f"{method.data}-{size}-{digest}"


def ensure_data(root: Path, method: MethodSpec, size: Size, seed: int = BASE_SEED) -> tuple[Path, str]:
    """The folder with the files of a seed, made if it is not there, and the digest of all that they hold."""
    generator = GENERATORS[method.data]
    folder = data_folder(root, method, size, generator)
    shared = folder / "shared"
    if not (shared / _MANIFEST).exists():
        _write(shared, generator.shared(method, size))
    place = folder / str(seed)
    if not (place / _MANIFEST).exists():
        made = generator.generate(method, size, seed, {name: (shared / name).read_bytes() for name in _names(shared)})
        narrow = [name for name, array in made.arrays.items() if array.ndim == 2 and array.shape[1] == 1]
        _write(place, {f"{name}.csv": to_csv(array) for name, array in made.arrays.items()} | made.files, narrow)
    return place, hashlib.sha256(f"{verified(shared)} {verified(place)}".encode()).hexdigest()[:32]


def shared_folder(place: Path) -> Path:
    """The files that all seeds have in common, beside those of one seed."""
    return place.parent / "shared"


def read_arrays(folder: Path) -> dict[str, NDArray[np.float64]]:
    """The arrays of a folder, each of the shape that its generator gave it."""
    arrays = {file.stem: read_csv(file) for file in sorted(folder.glob("*.csv"))}
    narrow = _manifest(folder)["narrow"]
    return {name: array[:, None] if name in narrow else array for name, array in arrays.items()}


def _write(folder: Path, files: dict[str, bytes], narrow: Sequence[str] = ()) -> None:
    """The manifest is written last: without it, the folder is made again.

    A matrix of one column (`narrow`) and a vector are the same text, so the manifest tells them apart.
    """
    for name, content in files.items():
        write_atomically(folder / name, content, own=True)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"schema_version": FORMAT, "files": digests, "narrow": list(narrow)}
    write_atomically(folder / _MANIFEST, json.dumps(manifest, indent=1) + "\n", own=True)


def _names(folder: Path) -> list[str]:
    return list(_manifest(folder)["files"])


def _manifest(folder: Path) -> Any:
    path = folder / _MANIFEST
    found = load_json(read_text(path), str(path))
    check_format(found.get("schema_version"), str(path), "a manifest")
    return found


# The folders whose content this process has verified: what the system tells of their files, and the digest.
_VERIFIED: dict[Path, tuple[dict[Path, tuple[int, ...]], str]] = {}


def verified(folder: Path) -> str:
    """The digest of a folder's content. A file that is not what was written is an error: all backends must read it.

    A folder is read once per process, and again if one of its files is not the one that was read.
    """
    known, digest = _VERIFIED.get(folder, ({}, ""))
    if not known or known != {file: _told(file) for file in known}:
        _VERIFIED[folder] = known, digest = _read(folder)
    return digest


def _told(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(folder: Path) -> tuple[dict[Path, tuple[int, ...]], str]:
    """What the system tells of each file, taken before it is read, and the digest of all."""
    manifest = folder / _MANIFEST
    told = {manifest: _told(manifest)}
    listed = _manifest(folder)["files"]
    for name, digest in listed.items():
        file = folder / name
        told[file] = _told(file)
        if not told[file] or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise RunError(f"{file} was changed after it was written: delete {folder} and run again.")
    return told, hashlib.sha256(canonical(listed).encode()).hexdigest()
