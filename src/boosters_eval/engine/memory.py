"""Native memory: its peak as measured by the kernel, and a limit that is enforced."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_LINUX = sys.platform.startswith("linux")
METHOD = f"{'kernel peak (VmHWM)' if _LINUX else 'process peak (ru_maxrss)'} after a warm-up"


def start_peak() -> int:
    """Release freed memory, reset the peak, and return the current use in bytes."""
    gc.collect()
    if not _LINUX:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def peak_since(start: int) -> int:
    """The peak in bytes since `start_peak`, above the use at that time."""
    if not _LINUX:
        return max(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
    return max(0, status("VmHWM") - start)


def limit(megabytes: float) -> None:
    """Limit what this process may allocate beyond its current use; further allocations fail."""
    if _LINUX:
        ceiling = status("VmData") + int(megabytes * 2**20)
        resource.setrlimit(resource.RLIMIT_DATA, (ceiling, ceiling))
    else:
        resource.setrlimit(resource.RLIMIT_AS, (int(megabytes * 2**20),) * 2)


# How Python, C++, Rust and the C library report that an allocation failed.
_SIGNS = (
    "memoryerror",
    "bad_alloc",
    "memory allocation of",
    "cannot allocate memory",
    "unable to allocate",
    "out of memory",
)


def looks_exhausted(*texts: str) -> bool:
    """Whether a failure was caused by the memory limit."""
    return any(sign in text.lower() for text in texts for sign in _SIGNS)


def status(field: str) -> int:
    """One line of /proc/self/status, in bytes."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0
