"""Process handling that all workers share: exit with the parent, notice a child's exit, kill a whole group."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


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
