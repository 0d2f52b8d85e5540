"""What a cell may use, enforced and verified from outside: its CPUs, threads and memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import sys
from collections import Counter, deque
from pathlib import Path

from boosters_eval.core.machine import list_cpus

# Read by OpenMP, BLAS and rayon when they are loaded, so they must be set before the worker starts.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BENCH_THREADS",  # for programs of users, which know no other
)
# A spinning thread blocks its neighbor's core: a fit of 50 ms was seen to take 15.8 s.
WAIT_POLICY = "PASSIVE"
_MIN_SAMPLES = 25  # a quarter of a second
_WINDOW = 5  # looks over which CPU time is added up
_SHARE = 0.1  # of the process's CPU time: a thread with less does not compute


def make_environment(n_threads: int) -> dict[str, str]:
    limits = dict.fromkeys(_VARIABLES, str(n_threads))
    return {**limits, "OMP_WAIT_POLICY": WAIT_POLICY, "OMP_DYNAMIC": "FALSE", "PYTHONHASHSEED": "0"}


def resolve_threads(wish: int) -> int:
    """The number of threads that this process may actually use; -1 requests all of them."""
    usable = len(list_cpus())
    return usable if wish == -1 else min(wish, usable)


def assign_cpus(jobs: int, n_threads: int, cpus: list[int] | None = None) -> list[list[int]]:
    """The CPUs of each slot in which a cell may run; slots share CPUs only when there are too few."""
    cpus = cpus or list_cpus()
    if jobs * n_threads > len(cpus):
        return [cpus] * jobs
    return [cpus[i * n_threads : (i + 1) * n_threads] for i in range(jobs)]


def pin_to(cpus: list[int]) -> None:
    """Restrict this process to these CPUs, if the system supports it."""
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


class ThreadWatch:
    """Counts the threads of a process that compute at the same time, by looking at it every few milliseconds."""

    def __init__(self, tasks: Path) -> None:
        self._tasks = tasks  # /proc/<pid>/task
        self._last: dict[str, int] = {}  # nanoseconds on a CPU, by thread, at the last look
        self._recent: deque[dict[str, int]] = deque(maxlen=_WINDOW)  # what each thread computed between two looks
        self.samples: Counter[int] = Counter()

    def look(self) -> None:
        runnable, spent = self._read()
        self._recent.append({name: total - self._last.get(name, 0) for name, total in spent.items()})
        self._last = spent
        computing = self._computing() if spent else runnable
        self.samples[len(runnable & computing) or int(bool(runnable))] += 1

    def observed(self) -> int | None:
        return summarize_samples(self.samples)

    def _read(self) -> tuple[set[str], dict[str, int]]:
        """The threads that run or wait for a CPU, and the time that each has had as far as the kernel tells."""
        runnable, spent = set(), {}
        with contextlib.suppress(OSError):
            for task in self._tasks.iterdir():
                with contextlib.suppress(OSError, IndexError):  # the thread has ended, or the kernel does not count
                    if (task / "stat").read_bytes().rpartition(b") ")[2].startswith(b"R"):
                        runnable.add(task.name)
                    spent[task.name] = int((task / "schedstat").read_bytes().split()[0])
        return runnable, spent

    def _computing(self) -> set[str]:
        """The threads with a share of the CPU time of the last moments.

        One that handed its work to another and waits for a CPU only to go to sleep has none, however long it waits.
        """
        totals: Counter[str] = Counter()
        for spent in self._recent:
            totals.update(spent)
        least = _SHARE * totals.total()
        return {name for name, spent in totals.items() if spent >= least}


def summarize_samples(samples: Counter[int]) -> int | None:
    """The parallelism reached in a quarter of the samples, so that one thread briefly waking another does not count.

    With too few samples the answer is 1: on a busy machine a pool of one thread can briefly look like two, because the
    thread that hands over the work and the one that takes it both wait for the same CPU.
    """
    looks = sum(count for busy, count in samples.items() if busy)
    enough = max(2, looks / 4)
    for level in sorted(samples, reverse=True):
        if level and sum(count for busy, count in samples.items() if busy >= level) >= enough:
            return level if looks >= _MIN_SAMPLES else 1
    return None


_STATUS = Path("/proc/self/status")
_LINUX = sys.platform.startswith("linux")
MEMORY_METHOD = f"{'kernel peak (VmHWM)' if _LINUX else 'process peak (ru_maxrss)'} after a warm-up"


def start_peak() -> int:
    """Release freed memory, reset the peak, and return the current use in bytes."""
    gc.collect()
    if not _LINUX:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _read_status("VmRSS")


def measure_peak(start: int) -> int:
    """The peak in bytes since `start_peak`, above the use at that time."""
    if not _LINUX:
        return max(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
    return max(0, _read_status("VmHWM") - start)


def limit_memory(megabytes: float) -> None:
    """Limit what this process may allocate beyond its current use; further allocations fail."""
    if _LINUX:
        ceiling = _read_status("VmData") + int(megabytes * 2**20)
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


def looks_out_of_memory(*texts: str) -> bool:
    return any(sign in text.lower() for text in texts for sign in _SIGNS)


def _read_status(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0
