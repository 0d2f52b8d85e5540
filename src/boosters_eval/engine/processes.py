"""Process handling that all workers share: how they start, exit with the parent, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

# Set in every worker and inherited by whatever it starts: the mark of its ancestor. Without it, a script that runs a
# comparison on import would start it again in a worker.
IN_WORKER = "BOOSTERS_EVAL_IN_WORKER"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# How a worker process starts: with the program's own copy of this package, wherever that lies, and the path given.
# What is imported is no garbage: looking for any cost a tenth of an import. Whoever computes enables it again.
_START = """
import gc, importlib.util, json, os, sys
gc.disable()
setup = json.load(os.fdopen(int(sys.argv[1])))
sys.path[:] = setup["path"]
spec = importlib.util.spec_from_file_location("boosters_eval", os.path.join(setup["package"], "__init__.py"))
sys.modules["boosters_eval"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
importlib.import_module(setup.get("main", "boosters_eval.engine.ancestor")).main(setup)
"""


def worker_command(setup: dict[str, Any]) -> tuple[list[str], IO[bytes]]:
    """The command of a worker process, and the open file with its set-up, which must be inherited.

    A command line is limited to 128 KB per word, a file is not.
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115 (lives until the process has started)
    file.write(json.dumps(setup).encode())
    file.seek(0)
    return [sys.executable, *setup["options"], "-c", _START, str(file.fileno())], file


def adopt_orphans() -> None:
    """On Linux, let this process become the parent of what its dead children leave behind, wherever that hides."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_orphans(known: Collection[int]) -> None:
    """Kill the children of this process that it did not start, with all that they started."""
    for pid in _children() - set(known):
        kill_group(pid)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)


def _children() -> set[int]:
    """The children of the main thread; none where the system does not tell."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return set()
    return {int(word) for word in text.split()}


def kill_marked(mark: str) -> None:
    """Kill all processes that inherited this mark, for when the ancestor of them all can no longer do it."""
    wanted = f"{IN_WORKER}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


def die_with_parent(parent: int) -> None:
    """On Linux, let the kernel kill this process when its parent exits; exit now if the parent already has."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def wake_on_exit() -> int:
    """A descriptor that becomes readable when a child exits."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def kill_group(pid: int) -> None:
    """Kill a process and everything that it started."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def signal_name(number: int) -> str:
    """The name of a signal such as SIGSEGV, or "signal 35" for a real-time signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_name(code: int) -> str:
    """How a process ended, as text."""
    return signal_name(-code) if code < 0 else f"exit status {code}"
