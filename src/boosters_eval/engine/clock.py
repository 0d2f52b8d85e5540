"""The only clock: every time in every result is measured here, in the same way for all targets."""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_STAT = Path("/proc/stat")
_TICKS = 0.05  # seconds: the kernel counts in hundredths


class Sample(NamedTuple):
    """One measurement, in seconds."""

    wall: float
    cpu: float


class CpuUse(NamedTuple):
    """How much of the CPUs that this process may use has been used, by itself and in all; in seconds."""

    wall: float
    own: float
    all: float
    cpus: int


def cpu_use() -> CpuUse | None:
    """The use so far, time stolen from a virtual machine included; None where the kernel does not tell."""
    try:
        cpus = os.sched_getaffinity(0)
        lines = [line.split() for line in _STAT.read_text().splitlines()]
        mine = [list(map(int, line[1:9])) for line in lines if line[0][:3] == "cpu" and line[0][3:] in map(str, cpus)]
    except (AttributeError, OSError, ValueError, IndexError):
        return None
    if len(mine) != len(cpus):
        return None
    used = sum(sum(counts) - counts[3] - counts[4] for counts in mine)  # without idling and waiting for a disk
    return CpuUse(time.perf_counter(), time.process_time(), used / os.sysconf("SC_CLK_TCK"), len(cpus))


def taken(before: CpuUse | None, after: CpuUse | None) -> float | None:
    """The share of this process's CPUs that other programs used in between."""
    if before is None or after is None:
        return None
    others = (after.all - before.all) - (after.own - before.own)
    return others / (after.cpus * (after.wall - before.wall)) if others > _TICKS else 0.0


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
    """Wall time, CPU time and the use of the CPUs; the sources can be replaced, so that a test need not wait."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time
    use: Callable[[], CpuUse | None] = cpu_use

    def time(self, work: Callable[[], Any], *, runs: int = 1) -> Timed:
        """Time a piece of work. Garbage is collected before each call, and not again until the clock has stopped."""
        value: Any = None
        samples: list[Sample] = []
        for run in range(runs):
            gc.collect()
            gc.disable()
            try:
                cpu, wall = self.cpu(), self.wall()
                returned = work()
                samples.append(Sample(self.wall() - wall, self.cpu() - cpu))
            finally:
                gc.enable()
            if run == 0:
                value = returned
        return Timed(value, tuple(samples))
