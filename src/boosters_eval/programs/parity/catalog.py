"""What can be compared here: the methods and backends that are shipped, installed, or defined in a user's files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.modules import load_file
from boosters_eval.programs.parity.backend import BACKENDS, Backend, BrokenBackendError, find_versions
from boosters_eval.programs.parity.findings import name_kind
from boosters_eval.programs.parity.method import GENERATORS, METHODS, Generator, MethodSpec, list_defined
from boosters_eval.reports.document import Document, Paragraph, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from boosters_eval.core.registry import Registry
    from boosters_eval.programs.parity.request import ParityListRequest
    from boosters_eval.programs.parity.rows import ParityRow

_REGISTRIES: tuple[tuple[type, Registry[Any]], ...] = (
    (MethodSpec, METHODS),
    (Backend, BACKENDS),
    (Generator, GENERATORS),
)


def register_files(files: Iterable[Path]) -> None:
    """Register whatever files define, which are the user's own code. Nothing shipped is replaced in silence."""
    for file in files:
        module = load_file(file.absolute())
        found = [(item, registry) for kind, registry in _REGISTRIES for item in list_defined(module, kind)]
        if not found:
            raise ConfigError(f"The file {file} defines no method, backend or data generator.")
        for item, registry in found:
            name = getattr(item, "name", None)
            if not isinstance(name, str) or not name:
                raise ConfigError(f"The file {file} defines the {registry.kind} {item.__name__}, which has no name.")
            if name in registry and registry[name] is not item:
                raise ConfigError(f"The file {file} defines the {registry.kind} '{name}', but that name is taken.")
            registry.register(name, item, replace=True)


def list_declared(rows: Iterable[ParityRow]) -> dict[str, tuple[str, ...]]:
    """The backends that the registry declares for the methods of these rows; an unknown method has none."""
    names = dict.fromkeys(row.method for row in rows)
    return {name: METHODS[name].backends for name in names if name in METHODS}


def list_own(rows: Iterable[ParityRow]) -> tuple[tuple[str, str], ...]:
    """The methods of these rows, each with the project's own bindings that the registry declares for it."""
    declared = list_declared(rows).items()
    return tuple((method, name) for method, names in declared for name in names if BACKENDS[name].own)


_ABOUT = {
    "Methods": "Each method is computed by several backends. Their predictions are compared with those of its reference"
    " implementation (its oracle), up to the tolerance.",
    "Backends": "A backend is a library, program or binding that computes methods. 'parity gate' checks those of the"
    " project under test; the others are there for comparison.",
}


@dataclass(frozen=True)
class ListedBackend:
    """A backend, and whether it can be used here."""

    name: str
    language: str
    own: bool
    missing: str = ""  # why it cannot be used; '': it can
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParityListing(ReportedFindings):
    plain: ClassVar = True
    methods: tuple[MethodSpec, ...]
    backends: tuple[ListedBackend, ...]

    def document(self) -> Document:
        methods = tuple(
            (
                method.name,
                f"{method.oracle.backend} {method.oracle.version}" if method.oracle else "none",
                f"{method.tolerance:g} ({method.metric})",
                ", ".join(map(str, method.sizes)),
                ", ".join(method.backends),
                method.description,
            )
            for method in self.methods
        )
        backends = []
        for backend in self.backends:
            found = ", ".join(f"{name} {version}" for name, version in backend.versions.items())
            backends.append(
                (backend.name, backend.language, name_kind(backend.own), backend.missing or f"yes ({found})")
            )
        columns = ("method", "reference", "tolerance", "sizes", "backends", "description")
        tables = (
            PlainTable("Methods", columns, methods),
            PlainTable("Backends", ("backend", "language", "project", "available"), tuple(backends)),
        )
        sections = (Section(table.name.lower(), table.name, (Paragraph(_ABOUT[table.name]), table)) for table in tables)
        return Document("What can be compared", sections=tuple(sections))

    def to_model(self) -> dict[str, Any]:
        methods = [method.model_dump(mode="json") for method in self.methods]
        return {"methods": methods, "backends": list(map(asdict, self.backends))}


def list_available(request: ParityListRequest) -> ParityListing:
    register_files(request.registry)
    backends = []
    for name, backend in BACKENDS.items():
        try:
            missing, versions = find_versions(backend)
        except BrokenBackendError as error:
            missing, versions = str(error), {}
        backends.append(ListedBackend(name, backend.language, backend.own, missing or "", versions))
    return ParityListing(tuple(METHODS.values()), tuple(backends))
