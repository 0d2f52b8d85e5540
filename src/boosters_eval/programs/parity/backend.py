"""Who carries a method out: a Python package, or a program in another language that answers JSON requests."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from boosters_eval.core.distributions import installed_version
from boosters_eval.core.errors import BoostersEvalError, describe_error
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.engine.clock import Clock
from boosters_eval.programs.parity.method import MethodSpec, ParameterValue, load_shipped, read_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


MARK = "@@parity "  # whatever else a program prints is not an answer
_LONGEST = 10_000  # lines that are no answer, before the program is given up
_LONGEST_LINE = 2**20


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
        """Import what the sessions use, and look up the versions once: every cell is forked from this process."""
        for name in cls.imports:
            import_module(name)
        cls.versions()

    @classmethod
    @abstractmethod
    def session(cls, method: MethodSpec, parameters: Mapping[str, ParameterValue], n_threads: int) -> BackendSession:
        """A session for one cell."""


class BrokenBackendError(BoostersEvalError):
    """A backend that cannot even tell whether it is here."""


def find_versions(backend: type[Backend]) -> tuple[str | None, dict[str, str]]:
    """Why it cannot be used here, or its versions. It may be anybody's code, which must cost no other backend."""
    try:
        missing = backend.missing()
        return missing, {} if missing else backend.versions()
    except Exception as error:
        told = describe_error(error).rstrip(".")
        raise BrokenBackendError(f"The backend cannot tell whether it is installed, or its version: {told}.") from error


BACKENDS: Registry[type[Backend]] = Registry(
    "backend", group="boosters_eval.backends", builtin=lambda: load_shipped(Backend), fault=must_extend(Backend)
)
_CLOCK = Clock(threads=dict)  # what each thread did is not asked for: reading it takes longer than many a step


def _time(work: Callable[[], Any]) -> tuple[TimedStep, Any]:
    done = _CLOCK.time(work)
    return TimedStep(round(done.wall * 1e9)), done.value


@dataclass
class PythonSession(BackendSession):
    """A session in the cell's own process. Each step is a method that the backend defines."""

    backend: type[PythonBackend]
    method: MethodSpec
    parameters: Mapping[str, ParameterValue]
    threads: int
    place: Path = field(init=False)
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    _step: TimedStep | None = None
    _prepared: Any = None
    _fitted: Any = None

    def load(self, data: Path) -> TimedStep:
        """Read the arrays. Loading never counts, so no garbage is collected for it."""
        start = _CLOCK.wall()
        self.place, self.arrays = data, read_arrays(data)
        return TimedStep(round((_CLOCK.wall() - start) * 1e9))

    def prepare(self) -> TimedStep:
        """The backend's own form of the data; what does not depend on the data is prepared once per cell."""
        if self._step is None or not self.backend.prepare_once:
            self._step, self._prepared = _time(lambda: self.backend.prepare(self))
        return self._step

    def fit(self) -> TimedStep:
        step, self._fitted = _time(lambda: self.backend.fit(self, self._prepared))
        return step

    def predict(self) -> TimedStep:
        step, prediction = _time(lambda: self.backend.predict(self, self._fitted))
        return TimedStep(step.elapsed_ns, prediction)


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
        gone = next((name for name in cls.imports if find_spec(name.partition(".")[0]) is None), None)
        return f"{gone} is not installed: {cls.install}" if gone else None

    @classmethod
    def versions(cls) -> dict[str, str]:
        named = ((name, installed_version(name)) for name in cls.distributions)
        found = {name: version for name, version in named if version}
        return {**(found or {cls.name: "unknown"}), **_foundations()}

    @classmethod
    def session(cls, method: MethodSpec, parameters: Mapping[str, ParameterValue], n_threads: int) -> PythonSession:
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


class WorkerError(BoostersEvalError):
    """A program that did not answer what was asked."""


class ProcessSession(BackendSession):
    """A session with a program that was started for one cell, and shares its process group, limits and stderr.

    The program times its own steps, so that no pipe is part of a time.
    """

    def __init__(self, backend: type[ProcessBackend], parameters: Mapping[str, ParameterValue], threads: int) -> None:
        self.options = {**parameters, **backend.options}
        self.threads = threads
        self.command = backend.command()
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(  # noqa: S603 (the backend's own command)
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace"
        )

    def load(self, data: Path) -> TimedStep:
        files = {name.lower(): str(data / f"{name}.csv") for name in ("X", "Y")}
        return self._step("load", **files, folder=str(data), threads=self.threads)

    def prepare(self) -> TimedStep:
        return self._step("prepare")

    def fit(self) -> TimedStep:
        return self._step("fit", **self.options)

    def predict(self) -> TimedStep:
        """The prediction comes in a file of doubles, row by row."""
        out = Path(self._folder.name) / "prediction"
        out.unlink(missing_ok=True)
        answer = self._ask(op="predict", out=str(out), **self.options)
        rows, columns = answer.get("rows"), answer.get("columns")
        if not isinstance(rows, int) or not isinstance(columns, int) or rows < 0 or columns < 1:
            raise WorkerError(f"A prediction must tell its rows and columns. Got {rows!r} and {columns!r} instead.")
        numbers = np.fromfile(out, dtype="<f8") if out.exists() else np.empty(0)
        if len(numbers) != rows * columns:
            raise WorkerError(f"{rows} x {columns} numbers were announced. Got {len(numbers)} instead.")
        return TimedStep(_elapsed(answer), numbers if columns == 1 else numbers.reshape(rows, columns))

    def close(self) -> None:
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # of a request that it did not live to read
            self._process.__exit__(None, None, None)
        self._folder.cleanup()

    def _step(self, op: str, **request: Any) -> TimedStep:
        return TimedStep(_elapsed(self._ask(op=op, **request)))

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None  # noqa: S101 (for the type checker)
        assert self._process.stdout is not None  # noqa: S101
        program = self.command[0]
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            for _ in range(_LONGEST):
                line = self._process.stdout.readline(_LONGEST_LINE)
                if not line:
                    break
                if len(line) == _LONGEST_LINE:  # it might go on until the memory is full
                    raise WorkerError(f"{program} printed a line of more than {_LONGEST_LINE} characters.")
                if line.startswith(MARK):
                    found = json.loads(line.removeprefix(MARK))
                    if not isinstance(found, dict):
                        raise WorkerError(f"{program} gave an answer that is no JSON object.")
                    return found
            else:
                raise WorkerError(f"{program} printed {_LONGEST} lines instead of an answer.")
        except BrokenPipeError:
            pass
        except ValueError as error:
            raise WorkerError(f"{program} gave an answer that is not JSON: {error}.") from None
        code = self._process.wait()
        if code < 0:  # it died of a signal: the cell goes with it in the same way, so that the signal is recorded
            if -code not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        raise WorkerError(f"{program} ended with exit status {code} when asked to {request.get('op')}.")


def _elapsed(answer: dict[str, Any]) -> int:
    seconds = answer.get("elapsed_s")
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e7:
        raise WorkerError(f"An answer must tell the seconds that it took. Got {seconds!r} instead.")
    return round(seconds * 1e9)


class ProcessBackend(Backend):
    """A backend that is a program in another language."""

    program: ClassVar[str]  # what is started
    options: ClassVar[dict[str, Any]] = {}  # sent with each request, beside the method's parameters

    @classmethod
    @abstractmethod
    def command(cls) -> tuple[str, ...]:
        """The program with its arguments."""

    @classmethod
    def missing(cls) -> str | None:
        """Whether the program is not there, or lacks what it needs."""
        if shutil.which(cls.program) is None:
            return f"{cls.program} is not installed: {cls.install}"
        return None if cls.versions() else f"{cls.program} cannot run this backend: {cls.install}"

    @classmethod
    def versions(cls) -> dict[str, str]:
        return dict(_program_versions(cls.command()))

    @classmethod
    def session(cls, method: MethodSpec, parameters: Mapping[str, ParameterValue], n_threads: int) -> ProcessSession:
        """A session with a new program; its threads are limited by the environment, and it is told how many."""
        del method
        return ProcessSession(cls, parameters, n_threads)


@cache
def _program_versions(command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Asked once per process: starting a program takes a quarter of a second."""
    try:
        done = subprocess.run(  # noqa: S603 (the backend's own command)
            command, input='{"op": "versions"}\n', capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    line = next((line for line in done.stdout.splitlines() if line.startswith(MARK)), None)
    try:
        versions = json.loads(line.removeprefix(MARK))["versions"] if line else {}
    except (ValueError, KeyError, TypeError):
        return ()
    return tuple((str(name).replace("_", " "), str(value)) for name, value in versions.items())
