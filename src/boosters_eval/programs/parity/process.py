"""Backends in other languages: a program per cell, which answers one JSON request per line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from abc import abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.programs.parity.backend import Backend, BackendSession, TimedStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.programs.parity.method import MethodSpec, ParameterValue

MARK = "@@parity "  # whatever else a program prints is not an answer
_LONGEST = 10_000  # lines that are no answer, before the program is given up
_LONGEST_LINE = 2**20


class WorkerError(BoostersEvalError):
    """A program that did not answer what was asked."""


class Worker:
    """A program that was started for one cell, and shares its process group, limits and stderr."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.command = command
        self._process = subprocess.Popen(  # noqa: S603 (the backend's own command)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace"
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None  # noqa: S101 (for the type checker)
        assert self._process.stdout is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            for _ in range(_LONGEST):
                line = self._process.stdout.readline(_LONGEST_LINE)
                if not line:
                    break
                if len(line) == _LONGEST_LINE:  # it might go on until the memory is full
                    raise WorkerError(f"{self.command[0]} printed a line of more than {_LONGEST_LINE} characters.")
                if line.startswith(MARK):
                    found = json.loads(line.removeprefix(MARK))
                    if not isinstance(found, dict):
                        raise WorkerError(f"{self.command[0]} gave an answer that is no JSON object.")
                    return found
            else:
                raise WorkerError(f"{self.command[0]} printed {_LONGEST} lines instead of an answer.")
        except BrokenPipeError:
            pass
        except ValueError as error:
            raise WorkerError(f"{self.command[0]} gave an answer that is not JSON: {error}.") from None
        return self._died(request)

    def _died(self, request: dict[str, Any]) -> dict[str, Any]:
        """A program that died of a signal takes the cell with it in the same way, so that the signal is recorded."""
        code = self._process.wait()
        if code < 0:
            signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
            os.kill(os.getpid(), -code)
        raise WorkerError(f"{self.command[0]} ended with exit status {code} when asked to {request.get('op')}.")

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # of a request that it did not live to read
            self._process.__exit__(None, None, None)


class ProcessSession(BackendSession):
    """A session with a program. It times its own steps, so that no pipe is part of a time."""

    def __init__(self, backend: type[ProcessBackend], parameters: Mapping[str, ParameterValue]) -> None:
        self.options = {**parameters, **backend.options}
        self.worker = Worker(backend.command())
        self._folder = tempfile.TemporaryDirectory()

    def load(self, data: Path) -> TimedStep:
        """Let the program read the shared files."""
        return self._step("load", x=str(data / "X.csv"), y=str(data / "Y.csv"))

    def prepare(self) -> TimedStep:
        """The program's own form of the data."""
        return self._step("prepare")

    def fit(self) -> TimedStep:
        """A fitted model, in the program."""
        return self._step("fit", **self.options)

    def predict(self) -> TimedStep:
        """The prediction comes in a file of doubles, row by row."""
        out = Path(self._folder.name) / "prediction"
        out.unlink(missing_ok=True)
        answer = self.worker.ask(op="predict", out=str(out), **self.options)
        rows, columns = (answer.get(name) for name in ("rows", "columns"))
        if not isinstance(rows, int) or not isinstance(columns, int) or rows < 0 or columns < 1:
            raise WorkerError(f"A prediction must tell its rows and columns. Got {rows!r} and {columns!r} instead.")
        numbers = np.fromfile(out, dtype="<f8") if out.exists() else np.empty(0)
        if len(numbers) != rows * columns:
            raise WorkerError(f"{rows} x {columns} numbers were announced. Got {len(numbers)} instead.")
        return TimedStep(_elapsed(answer), numbers if columns == 1 else numbers.reshape(rows, columns))

    def close(self) -> None:
        """End the program."""
        self.worker.close()
        self._folder.cleanup()

    def _step(self, op: str, **request: Any) -> TimedStep:
        return TimedStep(_elapsed(self.worker.ask(op=op, **request)))


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
        found = _versions(cls.command())
        return None if found else f"{cls.program} cannot run this backend: {cls.install}"

    @classmethod
    def load(cls) -> None:
        """Ask the program once for its versions: each cell is forked from here, and need not ask again."""
        super().load()
        cls.versions()

    @classmethod
    def versions(cls) -> dict[str, str]:
        """What the program tells of itself."""
        return dict(_versions(cls.command()))

    @classmethod
    def session(cls, method: MethodSpec, parameters: Mapping[str, ParameterValue], n_threads: int) -> ProcessSession:
        """A session with a new program; its threads are limited by the environment."""
        del method, n_threads
        return ProcessSession(cls, parameters)


@cache
def _versions(command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Asked once per process: starting a program takes a quarter of a second."""
    if shutil.which(command[0]) is None:
        return ()
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
