"""What is compared, as data: methods with their tolerances and conventions, and the files that all backends read."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from annotated_types import Ge, MinLen
from pydantic import Field, model_validator

from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.core.files import (
    FORMAT,
    check_format,
    compute_digest,
    dump_canonical,
    load_json,
    read_text,
    write_atomically,
)
from boosters_eval.core.model import Model
from boosters_eval.core.registry import Registry, must_be, must_extend

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray

BASE_SEED = 1_234_567_890  # a whole number that R and Octave hold exactly, and that fits 32 bits
BINDING_TOLERANCE = 1e-6

ParameterValue = str | int | float | bool
DifferenceMetric = Literal["relative_rmse", "max_abs", "jaccard"]


class Size(NamedTuple):
    """Rows and columns of a cell's data."""

    n: int
    p: int

    def __str__(self) -> str:
        return f"{self.n}x{self.p}"


class Variant(Model):
    """Something else that the reference can be asked for: what it predicts with other parameters."""

    sentence: Annotated[str, MinLen(1)]
    changes: Annotated[dict[str, ParameterValue], MinLen(1)]  # of the parameters that its session gets

    @property
    def name(self) -> str:
        """What it is stored by: a mapping in one order."""
        return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(self.changes.items()))


class Convention(Variant):
    """A documented way in which a backend means something else.

    It excuses only what the reference predicts as well, within the tolerance, once these parameters are changed.
    """

    backend: Annotated[str, MinLen(1)]


class Defect(Convention):
    """A known fault of somebody else's backend, proven as a convention is. It stays visible, and is no agreement."""

    reference: Annotated[str, MinLen(1)]  # where it is described


class Oracle(Model):
    """The reference of a method: one backend in one version, never whatever happens to be installed."""

    backend: Annotated[str, MinLen(1)]
    version: Annotated[str, MinLen(1)]  # a requirement such as ">=1.5,<2" or "==1.9.0"


class MethodSpec(Model):
    """A method: what is computed, on which data, by whom, and what counts as agreement."""

    name: Annotated[str, MinLen(1)]
    description: str = ""
    canonical: Annotated[str, MinLen(1)]  # the backend with which the project's own bindings must agree
    oracle: Oracle | None = None
    backends: Annotated[tuple[str, ...], MinLen(1)]
    data: Annotated[str, MinLen(1)]  # who makes the data: a name in GENERATORS
    parameters: dict[str, ParameterValue] = Field(default_factory=dict)
    sizes: Annotated[tuple[Size, ...], MinLen(1)]  # the default sweep; the first is the registry cell
    timed: tuple[Literal["prepare", "fit", "predict"], ...] = ("fit", "predict")
    metric: DifferenceMetric = "relative_rmse"
    tolerance: Annotated[float, Ge(0)] = 1e-9  # of the oracle
    binding_tolerance: Annotated[float, Ge(0)] = BINDING_TOLERANCE  # of the canonical binding, max abs
    transformer: str = ""  # the backend that computes variants; '': the oracle, or the canonical one without an oracle
    conventions: tuple[Convention, ...] = ()
    defects: tuple[Defect, ...] = ()
    probes: tuple[Variant, ...] = ()  # faults that a divergence may come from: they explain, and excuse nothing
    stochastic: str = ""  # why no two selections can agree; a mismatch is then a cross-check

    @model_validator(mode="after")
    def _names_are_backends(self) -> Self:
        references = [self.canonical, self.transforms, *([self.oracle.backend] if self.oracle else [])]
        named = (*references, *(item.backend for item in (*self.conventions, *self.defects)))
        unknown = next((name for name in named if name not in self.backends), None)
        if unknown:
            raise ConfigError(
                f"The method '{self.name}' names the backend '{unknown}', which is not among its backends."
            )
        if self.stochastic and self.metric != "jaccard":
            raise ConfigError(
                f"The method '{self.name}' is declared stochastic, which only a selection (metric 'jaccard') can be:"
                " give numbers a tolerance."
            )
        return self

    @property
    def transforms(self) -> str:
        """The backend that computes the variants."""
        return self.transformer or (self.oracle.backend if self.oracle else self.canonical)

    @property
    def parameters_digest(self) -> str:
        return compute_digest(json.dumps([self.name, self.parameters, self.timed], sort_keys=True), 16)

    @property
    def variants(self) -> dict[str, Variant]:
        """All that are declared, by name."""
        return {item.name: item for item in (*self.probes, *self.defects, *self.conventions)}

    def exceptions(self, backend: str) -> tuple[Convention, ...]:
        """What is declared of a backend, its conventions first."""
        return tuple(item for item in (*self.conventions, *self.defects) if item.backend == backend)


def list_defined(module: ModuleType, kind: type) -> list[Any]:
    """The methods of a module, or the classes of a kind that it defines and that can be used."""
    items = vars(module).values()
    if kind is MethodSpec:
        return [item for item in items if isinstance(item, MethodSpec)]
    classes = (item for item in items if isinstance(item, type) and issubclass(item, kind))
    return [item for item in classes if item.__module__ == module.__name__ and not inspect.isabstract(item)]


def load_shipped(kind: type) -> dict[str, Any]:
    """What the shipped families define of a kind, by name. They are imported here, since they know this module."""
    modules = (import_module(f"{__package__}.{name}") for name in ("pls", "runtimes", "trees"))
    return {item.name: item for module in modules for item in list_defined(module, kind)}


METHODS: Registry[MethodSpec] = Registry(
    "method", group="boosters_eval.methods", builtin=lambda: load_shipped(MethodSpec), fault=must_be(MethodSpec)
)


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
    def missing(cls, method: MethodSpec) -> str | None:  # noqa: ARG003 (most need nothing that may be missing)
        """Why it cannot make the data here, or None."""
        return None

    @classmethod
    def shared(cls, method: MethodSpec, size: Size) -> dict[str, bytes]:  # noqa: ARG003 (most share nothing)
        """What all seeds of a size have in common, such as a trained model."""
        return {}

    @classmethod
    @abstractmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        """The data of one seed."""


GENERATORS: Registry[type[Generator]] = Registry(
    "data generator",
    group="boosters_eval.generators",
    builtin=lambda: load_shipped(Generator),
    fault=must_extend(Generator),
)
_MANIFEST = "manifest.json"
SHARED = "shared"  # the folder of the files that all seeds have in common, beside those of each seed


def to_csv(array: NDArray[np.float64]) -> bytes:
    """Text that every language reads back to the same bits: 17 digits, no header, one row per line, NaN for missing."""
    rows = array[:, None] if array.ndim == 1 else array
    return b"".join(",".join(f"{value:.17g}" for value in row).encode() + b"\n" for row in rows.tolist())


def read_csv(path: Path) -> NDArray[np.float64]:
    """An array that `to_csv` wrote; a single column becomes a vector."""
    found = np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    return found[:, 0] if found.shape[1] == 1 else found


def ensure_data(root: Path, method: MethodSpec, size: Size, seed: int = BASE_SEED) -> tuple[Path, str]:
    """The folder with the files of a seed, made if it is not there, and the digest of all that they hold.

    The folder's name depends on everything that the data depend on.
    """
    generator = GENERATORS[method.data]
    content = dump_canonical([method.data, generator.recipe, method.parameters, list(size)])
    folder = root / f"{method.data}-{size}-{compute_digest(content, 16)}"
    shared, place = folder / SHARED, folder / str(seed)
    if not (shared / _MANIFEST).exists():
        _write(shared, generator.shared(method, size))
    if not (place / _MANIFEST).exists():
        common = {name: (shared / name).read_bytes() for name in _read_manifest(shared)["files"]}
        made = generator.generate(method, size, seed, common)
        narrow = [name for name, array in made.arrays.items() if array.ndim == 2 and array.shape[1] == 1]
        _write(place, {f"{name}.csv": to_csv(array) for name, array in made.arrays.items()} | made.files, narrow)
    return place, compute_digest(f"{_verify(shared)} {_verify(place)}", 32)


def read_arrays(folder: Path) -> dict[str, NDArray[np.float64]]:
    """The arrays of a folder, each of the shape that its generator gave it."""
    arrays = {file.stem: read_csv(file) for file in sorted(folder.glob("*.csv"))}
    narrow = _read_manifest(folder)["narrow"]
    return {name: array[:, None] if name in narrow else array for name, array in arrays.items()}


def _write(folder: Path, files: dict[str, bytes], narrow: Sequence[str] = ()) -> None:
    """The manifest is written last: without it, the folder is made again.

    A matrix of one column (`narrow`) and a vector are the same text, so the manifest tells them apart.
    """
    for name, content in files.items():
        write_atomically(folder / name, content, own=True)
    digests = {name: compute_digest(content) for name, content in files.items()}
    manifest = {"schema_version": FORMAT, "files": digests, "narrow": list(narrow)}
    write_atomically(folder / _MANIFEST, json.dumps(manifest, indent=1) + "\n", own=True)


def _read_manifest(folder: Path) -> Any:
    path = folder / _MANIFEST
    found = load_json(read_text(path), str(path))
    check_format(found.get("schema_version"), str(path), "a manifest")
    return found


# The folders whose content this process has verified: what the system tells of their files, and the digest.
_VERIFIED: dict[Path, tuple[dict[Path, tuple[int, ...]], str]] = {}


def _verify(folder: Path) -> str:
    """The digest of a folder's content. A file that is not what was written is an error: all backends must read it.

    A folder is read once per process, and again if one of its files is not the one that was read.
    """
    known, digest = _VERIFIED.get(folder, ({}, ""))
    if known and known == {file: _stat(file) for file in known}:
        return digest
    manifest = folder / _MANIFEST
    told = {manifest: _stat(manifest)}  # what the system tells of each file, taken before it is read
    listed = _read_manifest(folder)["files"]
    for name, expected in listed.items():
        file = folder / name
        told[file] = _stat(file)
        if not told[file] or compute_digest(file.read_bytes()) != expected:
            raise RunError(f"{file} was changed after it was written: delete {folder} and run again.")
    _VERIFIED[folder] = told, compute_digest(dump_canonical(listed))
    return _VERIFIED[folder][1]


def _stat(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
