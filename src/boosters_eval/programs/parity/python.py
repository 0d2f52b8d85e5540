"""Backends in Python: a session is a few lines, timed by the one clock."""

from __future__ import annotations

import platform
from abc import abstractmethod
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.distributions import installed_version
from boosters_eval.engine.clock import Clock
from boosters_eval.programs.parity.backend import Backend, BackendSession, TimedStep
from boosters_eval.programs.parity.data import read_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from boosters_eval.programs.parity.method import MethodSpec, ParameterValue


class PythonSession(BackendSession):
    """A session in the cell's own process. Each step is a method that the backend defines."""

    def __init__(
        self, backend: type[PythonBackend], method: MethodSpec, parameters: Mapping[str, ParameterValue], threads: int
    ) -> None:
        self.backend = backend
        self.method = method
        self.parameters = parameters
        self.threads = threads
        self.place: Path
        self.arrays: dict[str, NDArray[np.float64]] = {}
        self._step: TimedStep | None = None
        self._prepared: Any = None
        self._fitted: Any = None

    def load(self, data: Path) -> TimedStep:
        """Read the arrays. Loading never counts, so no garbage is collected for it."""
        start = _CLOCK.wall()
        self.place, self.arrays = data, read_arrays(data)
        return TimedStep(round((_CLOCK.wall() - start) * 1e9))

    def prepare(self) -> TimedStep:
        """The backend's own form of the data; what does not depend on the data is prepared once per cell."""
        if self._step is None or not self.backend.prepare_once:
            self._step, self._prepared = _timed(lambda: self.backend.prepare(self))
        return self._step

    def fit(self) -> TimedStep:
        """A fitted model."""
        step, self._fitted = _timed(lambda: self.backend.fit(self, self._prepared))
        return step

    def predict(self) -> TimedStep:
        """The prediction as an array."""
        step, prediction = _timed(lambda: self.backend.predict(self, self._fitted))
        return TimedStep(step.elapsed_ns, prediction)


_CLOCK = Clock(threads=dict)  # what each thread did is not asked for: reading it takes longer than many a step


def _timed(work: Callable[[], Any]) -> tuple[TimedStep, Any]:
    done = _CLOCK.time(work)
    return TimedStep(round(done.wall * 1e9)), done.value


@cache
def _foundations() -> dict[str, str]:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return {"python": platform.python_version(), "BLAS": f"{blas.get('name', '')} {blas.get('version', '')}".strip()}


class PythonBackend(Backend):
    """A backend that is a Python package: it prepares, fits and predicts with the arrays of its session."""

    distributions: ClassVar[tuple[str, ...]]  # what is installed; the first one's version is the backend's
    prepare_once: ClassVar[bool] = False  # what is prepared does not depend on the data

    @classmethod
    def missing(cls) -> str | None:
        """Which module is not installed."""
        gone = next((name for name in cls.imports if find_spec(name.partition(".")[0]) is None), None)
        return f"{gone} is not installed: {cls.install}" if gone else None

    @classmethod
    def versions(cls) -> dict[str, str]:
        """The versions of its packages, of the language and of numpy's BLAS."""
        named = ((name, installed_version(name)) for name in cls.distributions)
        found = {name: version for name, version in named if version}
        return {**(found or {cls.name: "unknown"}), **_foundations()}

    @classmethod
    def load(cls) -> None:
        """Import what it uses, and look up the versions once for all cells."""
        super().load()
        for name in cls.distributions:
            installed_version(name)
        _foundations()

    @classmethod
    def session(cls, method: MethodSpec, parameters: Mapping[str, ParameterValue], n_threads: int) -> PythonSession:
        """A session in this process."""
        return PythonSession(cls, method, parameters, n_threads)

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """By default, the arrays as they are."""
        return session.arrays

    @classmethod
    @abstractmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        """A fitted model; a backend that only predicts returns what was prepared."""

    @classmethod
    @abstractmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """The prediction for the session's rows."""
