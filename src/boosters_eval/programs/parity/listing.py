"""Which methods and backends there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boosters_eval.core.findings import Findings
from boosters_eval.programs.parity.backend import BACKENDS, BrokenBackendError, availability
from boosters_eval.programs.parity.method import METHODS
from boosters_eval.programs.parity.registration import register_files

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.backend import Backend
    from boosters_eval.programs.parity.method import MethodSpec
    from boosters_eval.programs.parity.request import ParityListRequest


@dataclass(frozen=True)
class ListedBackend:
    """A backend, and whether it can be used here."""

    name: str
    language: str
    own: bool
    missing: str = ""  # why it cannot be used; '': it can
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParityListing(Findings):
    """Methods and backends."""

    methods: tuple[MethodSpec, ...]
    backends: tuple[ListedBackend, ...]

    def show(self, screen: Screen) -> None:
        """Two tables."""
        screen.rows(
            ("method", "oracle", "tolerance", "sizes", "backends", "description"),
            [_method(method) for method in self.methods],
        )
        screen.rows(("backend", "language", "kind", "available"), [_backend(backend) for backend in self.backends])


def list_all(request: ParityListRequest) -> ParityListing:
    """List methods and backends, and what is available here."""
    register_files(request.registry)
    return ParityListing(tuple(METHODS.values()), tuple(_listed(*item) for item in BACKENDS.items()))


def _listed(name: str, backend: type[Backend]) -> ListedBackend:
    try:
        missing, versions = availability(backend)
    except BrokenBackendError as error:
        missing, versions = str(error), {}
    return ListedBackend(name, backend.language, backend.own, missing or "", versions)


def _method(method: MethodSpec) -> tuple[str, ...]:
    return (
        method.name,
        f"{method.oracle.backend} {method.oracle.version}" if method.oracle else "none",
        f"{method.tolerance:g} ({method.metric})",
        ", ".join(map(str, method.sizes)),
        ", ".join(method.backends),
        method.description,
    )


def _backend(backend: ListedBackend) -> tuple[str, ...]:
    found = ", ".join(f"{name} {version}" for name, version in backend.versions.items())
    return backend.name, backend.language, "own" if backend.own else "external", backend.missing or f"yes ({found})"
