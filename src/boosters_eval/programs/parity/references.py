"""Stored references: what an oracle or a canonical binding predicted, so that others can be judged without it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from boosters_eval.core.errors import BoostersEvalError, ExitCode, FileFormatError
from boosters_eval.core.files import FORMAT, Format, check_format, find_home, load_json, read_text, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.engine.artifacts import load_array, save_array
from boosters_eval.programs.parity.method import ParameterValue, Size
from boosters_eval.reports.document import Document, Listing, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.request import OraclesListRequest, OraclesVerifyRequest, ParityRequest

ReferenceRole = Literal["oracle", "canonical", "transformed"]
_ROLES = {"oracle": "reference", "canonical": "main binding", "transformed": "conventions"}


class ReferenceKey(NamedTuple):
    """Whose prediction it is, and of what."""

    role: ReferenceRole
    method: str
    size: Size
    parameters_digest: str
    data_digest: str

    @property
    def file(self) -> str:
        """A method's name is data, and never a path."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", self.method)
        return f"{plain}-{self.size}-{self.parameters_digest[:12]}-{self.data_digest[:12]}-{self.role}.json"


class StoredReference(Model):
    """Who predicted what on which data: the JSON file beside the array."""

    schema_version: Format = FORMAT
    role: ReferenceRole
    method: str
    backend: str
    size: Size
    parameters: dict[str, ParameterValue] = Field(default_factory=dict)
    parameters_digest: str
    data_digest: str
    versions: dict[str, str] = Field(default_factory=dict)
    predictions: tuple[str, ...]  # the digests of the arrays, for the base data and for further ones
    shape: tuple[int, ...]
    n_sets: int = 0  # unlike data sets that it was run on
    n_answers: int = 0  # unlike predictions on them
    variants: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # what it predicts otherwise
    untold: dict[str, str] = Field(default_factory=dict)  # why it has no prediction of a variant
    measured_at: str = ""

    @property
    def key(self) -> ReferenceKey:
        return ReferenceKey(self.role, self.method, self.size, self.parameters_digest, self.data_digest)

    @property
    def digests(self) -> tuple[str, ...]:
        """Those of all its arrays."""
        return (*self.predictions, *(digest for digests in self.variants.values() for digest in digests))

    @property
    def version(self) -> str:
        return next(iter(self.versions.values()), "")


class ReferenceStore:
    """A folder of references, each a JSON file, with the arrays by digest beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def arrays(self) -> Path:
        return self.folder / "arrays"

    def save(self, reference: StoredReference, arrays: Iterable[NDArray[np.float64]]) -> None:
        """Keep a reference with its arrays; an older one of the same cell is replaced."""
        if tuple(save_array(self.arrays, array) for array in arrays) != reference.digests:
            raise ValueError("the digests of a reference must be those of its arrays")
        write_atomically(self.folder / reference.key.file, reference.model_dump_json(indent=1) + "\n", own=True)

    def find(self, key: ReferenceKey) -> StoredReference | None:
        path = self.folder / key.file
        found = self._read(path) if path.exists() else None
        if found is not None and found.key != key:  # digests are cut in the file's name
            raise FileFormatError(f"{path} is not the reference that its name says.")
        return found

    def predictions(self, reference: StoredReference) -> tuple[NDArray[np.float64], ...]:
        """The predictions, verified against their digests and shape."""
        arrays = tuple(load_array(self.arrays, digest) for digest in reference.predictions)
        for array in arrays:
            if array.shape != reference.shape:
                name = reference.key.file.removesuffix(".json")
                raise FileFormatError(f"The array of {name} has shape {array.shape}, not {reference.shape}.")
        return arrays

    def all(self) -> list[StoredReference]:
        return [self._read(path) for path in sorted(self.folder.glob("*.json"))]

    def verify(self) -> Iterator[tuple[str, str]]:
        """The name of each reference and what is wrong with it; '' if nothing is."""
        for path in sorted(self.folder.glob("*.json")):
            try:
                found = self._read(path)
                self.predictions(found)
                for digest in found.digests:
                    load_array(self.arrays, digest)
            except BoostersEvalError as error:
                yield path.stem, str(error)
            else:
                yield path.stem, ""

    def _read(self, path: Path) -> StoredReference:
        raw = load_json(read_text(path), str(path))
        if not isinstance(raw, dict):
            raise FileFormatError(f"{path} is not a stored reference.")
        check_format(raw.get("schema_version"), str(path), "a stored reference")
        try:
            found = StoredReference.model_validate(raw)
        except BoostersEvalError as error:
            raise FileFormatError(f"{path} is not a stored reference: {error}") from None
        if found.key.file != path.name:
            raise FileFormatError(f"{path} is not the reference that its name says.")
        return found


def find_root(request: ParityRequest | OraclesListRequest) -> Path:
    """Where data, arrays and references are kept."""
    return find_home(request.home).absolute() / "parity"


def open_store(request: ParityRequest | OraclesListRequest) -> ReferenceStore:
    return ReferenceStore(request.oracles or find_root(request) / "oracles")


def list_stored(request: OraclesListRequest) -> StoredOracles:
    return StoredOracles(tuple(open_store(request).all()))


def verify_stored(request: OraclesVerifyRequest) -> VerifiedOracles:
    return VerifiedOracles(dict(open_store(request).verify()))


@dataclass(frozen=True)
class StoredOracles(ReportedFindings):
    plain: ClassVar = True
    references: tuple[StoredReference, ...]

    def document(self) -> Document:
        rows = tuple(
            (found.method, str(found.size), _ROLES[found.role], f"{found.backend} {found.version}", found.measured_at)
            for found in self.references
        )
        table = PlainTable("References", ("method", "size", "role", "backend", "measured"), rows, keys=3)
        return Document("Stored references", sections=(Section("references", "", (table,)),))

    def to_model(self) -> list[dict[str, Any]]:
        return [found.model_dump(mode="json") for found in self.references]


@dataclass(frozen=True)
class VerifiedOracles(ReportedFindings):
    """What is wrong with each reference, by its name; '' if nothing is."""

    plain: ClassVar = True
    faults: dict[str, str]

    @property
    def exit_code(self) -> int:
        """Nothing that was verified proves nothing."""
        whole = self.faults and not any(self.faults.values())
        return ExitCode.SUCCESS if whole else ExitCode.EXECUTION_ERROR

    def document(self) -> Document:
        lines = Listing.of(*(f"{name}: {fault or 'unchanged'}" for name, fault in self.faults.items()))
        return Document("Stored references", sections=(Section("references", "", (lines,)),))

    def to_model(self) -> dict[str, str]:
        return self.faults

    def conclude(self, screen: Screen) -> None:
        if not self.faults:
            screen.note("Error: No reference is stored, so nothing was verified.")
