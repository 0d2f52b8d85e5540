"""The only clock: every time in every result is measured here, in the same way for all targets."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_TASKS = Path("/proc/self/task")


class Sample(NamedTuple):
    """One measurement, in seconds."""

    wall: float
    cpu: float
    wait: float | None = None  # for a CPU, summed over all threads; None where the kernel does not tell


def cpu_wait() -> float | None:
    """The seconds for which threads of this process could have run but had no CPU; None if the kernel counts none."""
    try:
        counts = [int((task / "schedstat").read_bytes().split()[1]) for task in _TASKS.iterdir()]
    except (OSError, ValueError, IndexError):
        return None
    return sum(counts) / 1e9 if any(counts) else None


@dataclass(frozen=True)
class Timed:
    """What the first call returned, and how long each call took."""

    value: Any
    samples: tuple[Sample, ...]

    @property
    def wall(self) -> float:
        """The median of the wall times."""
        return median(sample.wall for sample in self.samples)

    @property
    def cpu(self) -> float:
        """The median of the CPU times."""
        return median(sample.cpu for sample in self.samples)


@dataclass(frozen=True)
class Clock:
    """Wall time, CPU time and the wait for a CPU; the sources can be replaced, so that a test need not wait."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time
    wait: Callable[[], float | None] = cpu_wait

    def time(self, work: Callable[[], Any], *, runs: int = 1) -> Timed:
        """Time a piece of work. Garbage is collected before each call, and not again until the clock has stopped."""
        value: Any = None
        samples: list[Sample] = []
        for run in range(runs):
            gc.collect()
            gc.disable()
            try:
                waited = self.wait()
                cpu, wall = self.cpu(), self.wall()
                returned = work()
                spent = self.wall() - wall, self.cpu() - cpu
                samples.append(Sample(*spent, _difference(waited, self.wait())))
            finally:
                gc.enable()
            if run == 0:
                value = returned
        return Timed(value, tuple(samples))


def _difference(before: float | None, after: float | None) -> float | None:
    """How much was added; a thread that has ended takes its count with it."""
    return None if before is None or after is None else max(0.0, after - before)
