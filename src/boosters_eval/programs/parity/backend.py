"""Who carries a method out: a binding, a library, or a program in another language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.registry import Registry, must_extend

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.programs.parity.method import MethodSpec, ParameterValue


class TimedStep(NamedTuple):
    """One step of a session: how long it took, and the prediction if it made one."""

    elapsed_ns: int
    prediction: NDArray[np.float64] | None = None


class BackendSession(ABC):
    """A backend at work on one cell, in the cell's own process. Each step is timed where it happens."""

    @abstractmethod
    def load(self, data: Path) -> TimedStep:
        """Read the data that all backends of the cell share. This never counts as the backend's time."""

    @abstractmethod
    def prepare(self) -> TimedStep:
        """Bring the data, or the trained model, into the backend's own form."""

    @abstractmethod
    def fit(self) -> TimedStep:
        """Learn; a backend that only predicts returns at once."""

    @abstractmethod
    def predict(self) -> TimedStep:
        """The prediction, of the shape that the method defines."""

    def close(self) -> None:  # noqa: B027 (most sessions have nothing to end)
        """End a program that the session started."""


class Backend(ABC):
    """Something that can carry methods out. All methods are class methods: a backend has no state of its own."""

    name: ClassVar[str]
    language: ClassVar[str] = "python"
    own: ClassVar[bool] = False  # a binding of the project under test: the gate fails if it diverges
    install: ClassVar[str] = ""  # how to get it, as a command
    imports: ClassVar[tuple[str, ...]] = ()  # modules that its sessions use, imported before the fork

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Why it cannot be used here, or None; found without importing anything heavy."""

    @classmethod
    @abstractmethod
    def versions(cls) -> dict[str, str]:
        """Its own version first, then those of what it stands on: language, BLAS, libraries."""

    @classmethod
    def load(cls) -> None:
        """Import what the sessions use, and start nothing: every cell is forked from this process."""
        for name in cls.imports:
            import_module(name)

    @classmethod
    @abstractmethod
    def session(cls, method: MethodSpec, parameters: Mapping[str, ParameterValue], n_threads: int) -> BackendSession:
        """A session for one cell."""


class BrokenBackendError(BoostersEvalError):
    """A backend that cannot even tell whether it is here."""


def availability(backend: type[Backend]) -> tuple[str | None, dict[str, str]]:
    """Why it cannot be used here, or its versions. It may be anybody's code, which must cost no other backend."""
    try:
        missing = backend.missing()
        return missing, {} if missing else backend.versions()
    except Exception as error:
        told = f"{type(error).__name__}: {error}".rstrip(".")
        raise BrokenBackendError(f"The backend cannot tell whether it is installed, or its version: {told}.") from error


def _shipped() -> dict[str, type[Backend]]:
    from boosters_eval.programs.parity.families import shipped  # noqa: PLC0415 (the families know this module)

    return shipped(Backend)


BACKENDS: Registry[type[Backend]] = Registry(
    "backend", group="boosters_eval.backends", builtin=_shipped, fault=must_extend(Backend)
)
