"""How many threads a cell gets, and how that is enforced from outside and verified."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import available_cpus, physical_cores

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
# A spinning thread steals the core of its neighbour: 15.8 s instead of 50 ms were seen.
WAIT_POLICY = "PASSIVE"
_LOOKS_TO_ACCUSE = 25  # a quarter of a second


def environment(n_threads: int) -> dict[str, str]:
    """The variables that a worker starts with."""
    limits = dict.fromkeys(_VARIABLES, str(n_threads))
    return {**limits, "OMP_WAIT_POLICY": WAIT_POLICY, "OMP_DYNAMIC": "FALSE", "PYTHONHASHSEED": "0"}


def resolve(wish: int) -> int:
    """A number of threads that this process may really use; -1 means all of them."""
    usable = len(available_cpus())
    return usable if wish == -1 else min(wish, usable)


def timing_threads() -> int:
    """What timing mode uses: BOOSTERS_EVAL_THREADS, or all physical cores."""
    text = os.environ.get("BOOSTERS_EVAL_THREADS")
    if not text:
        return min(physical_cores(), len(available_cpus()))
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"The BOOSTERS_EVAL_THREADS variable must be a count of at least 1. Got '{text}' instead.")
    return resolve(int(text))


def cpu_slots(jobs: int, n_threads: int) -> list[list[int]]:
    """The CPUs of each place where a cell may run; places share CPUs only when there are too few."""
    cpus = available_cpus()
    if jobs * n_threads > len(cpus):
        return [cpus] * jobs
    return [cpus[i * n_threads : (i + 1) * n_threads] for i in range(jobs)]


def pin(cpus: list[int]) -> None:
    """Keep this process on these CPUs, where the system can."""
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


def busy_threads(pid: int) -> int:
    """How many of a process's threads run or wait for a processor at this moment; 0 where the kernel does not tell."""
    busy = 0
    try:
        for task in Path("/proc", str(pid), "task").iterdir():
            busy += (task / "stat").read_bytes().rpartition(b") ")[2].startswith(b"R")
    except OSError:
        return busy
    return busy


def observed(samples: Counter[int]) -> int | None:
    """The parallelism that a quarter of the samples reached: one thread waking another for a moment does not count.

    In a shorter time than that, on a busy machine, a pool of one thread looks like two: whoever hands work over and
    whoever takes it are both waiting for the same processor.
    """
    looks = sum(count for busy, count in samples.items() if busy)
    enough = max(2, looks / 4)
    for level in sorted(samples, reverse=True):
        if level and sum(count for busy, count in samples.items() if busy >= level) >= enough:
            return level if looks >= _LOOKS_TO_ACCUSE else 1
    return None
