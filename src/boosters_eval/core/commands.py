"""Programs of others that are run to their end, pip above all: stopped with whoever waits for them."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boosters_eval.core.temporary import temporary_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PATIENCE = 0.5  # seconds
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """On Linux, let the kernel kill this process when its parent exits; exit now if the parent already has."""
    if sys.platform.startswith("linux"):
        import ctypes  # noqa: PLC0415 (only in processes that are started)

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def has_pip() -> bool:
    """Whether this environment has a pip of its own; uv makes environments without one."""
    return find_spec("pip") is not None


def make_pip_command(*words: str) -> list[str]:
    """This interpreter's own pip, or the one that Python carries; never a folder pip/ in the current folder."""
    ensurepip = None if has_pip() else find_spec("ensurepip")
    carried = sorted(Path(str(ensurepip.origin)).parent.glob("_bundled/pip-*.whl")) if ensurepip else []
    return [sys.executable, "-P", *([str(carried[-1] / "pip")] if carried else ["-m", "pip"]), *words]


class Ended(NamedTuple):
    """How a program ended, and what it printed on both of its streams."""

    code: int
    output: str


def run_command(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, timeout: float | None = None
) -> Ended:
    """Run a program and wait for it. An interruption, or a timeout, ends it together with whatever it started."""
    process = None
    try:
        with hold_signals():  # one that came while it starts would leave it behind
            process = subprocess.Popen(  # noqa: S603 (the caller's own command)
                words,
                cwd=cwd,
                env={**env, **temporary_environment()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that a compiler which it started can be stopped with it
            )
        output = _wait(process, None if timeout is None else time.monotonic() + timeout)
    except BaseException:
        if process is not None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise
    finally:
        if process is not None and process.stdout is not None:
            process.stdout.close()
    return Ended(process.returncode, output)


def _wait(process: subprocess.Popen[str], deadline: float | None) -> str:
    """What a program printed, when it has ended.

    A signal that arrives just before a read that blocks would be noticed only after it, so none blocks for long.
    """
    while True:
        left = math.inf if deadline is None else deadline - time.monotonic()
        try:
            return process.communicate(timeout=min(PATIENCE, max(left, 0.0)))[0]
        except subprocess.TimeoutExpired:
            if left <= PATIENCE:
                raise


def without_current_folder(env: Mapping[str, str]) -> dict[str, str]:
    """An environment in which Python's path has no folder that depends on where a program is started."""
    folders = [folder for folder in env.get("PYTHONPATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    others = {name: value for name, value in env.items() if name != "PYTHONPATH"}
    return {**others, "PYTHONPATH": os.pathsep.join(folders)} if folders else others


@contextlib.contextmanager
def hold_signals() -> Iterator[None]:
    """Let interruptions wait until the end of the block. Only the main thread gets any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    known = {number: signal.getsignal(number) for number in INTERRUPTIONS}
    caught = [number for number, handler in known.items() if callable(handler)]
    for number in caught:
        signal.signal(number, lambda got, _: held.append(got))
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, known[number])
        for got in held[:1]:
            signal.raise_signal(got)
