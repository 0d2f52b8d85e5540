"""How many threads a cell gets, and how that is enforced from outside and verified."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.machine import available_cpus

if TYPE_CHECKING:
    from collections import Counter

# Read by OpenMP, BLAS and rayon when they are loaded, so they must be set before the worker starts.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# A spinning thread blocks its neighbour's core: a fit of 50 ms was seen to take 15.8 s.
WAIT_POLICY = "PASSIVE"
_MIN_SAMPLES = 25  # a quarter of a second


def environment(n_threads: int) -> dict[str, str]:
    """The environment variables that a worker starts with."""
    limits = dict.fromkeys(_VARIABLES, str(n_threads))
    return {**limits, "OMP_WAIT_POLICY": WAIT_POLICY, "OMP_DYNAMIC": "FALSE", "PYTHONHASHSEED": "0"}


def resolve(wish: int) -> int:
    """The number of threads that this process may actually use; -1 requests all of them."""
    usable = len(available_cpus())
    return usable if wish == -1 else min(wish, usable)


def cpu_slots(jobs: int, n_threads: int) -> list[list[int]]:
    """The CPUs of each slot in which a cell may run; slots share CPUs only when there are too few."""
    cpus = available_cpus()
    if jobs * n_threads > len(cpus):
        return [cpus] * jobs
    return [cpus[i * n_threads : (i + 1) * n_threads] for i in range(jobs)]


def pin(cpus: list[int]) -> None:
    """Restrict this process to these CPUs, if the system supports it."""
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


def busy_threads(pid: int) -> int:
    """How many of a process's threads are running or waiting for a CPU; 0 where the kernel does not provide it."""
    busy = 0
    try:
        for task in Path("/proc", str(pid), "task").iterdir():
            busy += (task / "stat").read_bytes().rpartition(b") ")[2].startswith(b"R")
    except OSError:
        return busy
    return busy


def observed(samples: Counter[int]) -> int | None:
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
