"""The only clock: every time in every result is measured here, in the same way for all targets."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Times = Mapping[str, tuple[int, int]]

_STAT = Path("/proc/stat")
_TASKS = Path("/proc/self/task")
_TICKS = 0.05  # seconds: the kernel counts the use of a CPU in hundredths
_WAKING = 0.001  # seconds: waking up takes some time on an idle machine too


class Sample(NamedTuple):
    """One measurement, in seconds."""

    wall: float
    cpu: float
    waited: float = 0.0  # in which its busiest thread was ready to run, but had no CPU


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


def thread_times() -> dict[str, tuple[int, int]]:
    """How long each thread of this process has run, and waited for a CPU, in nanoseconds; empty if unknown."""
    times: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError, ValueError):
        for task in _TASKS.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                ran, waited, _ = map(int, (task / "schedstat").read_bytes().split())
                times[task.name] = ran, waited
    return times


def waited_between(before: Times, after: Times) -> float:
    """The seconds in which the busiest thread waited for a CPU.

    The others do not count: a helper that waits for a CPU only to go to sleep again delays nothing.
    """
    grown = [
        (ran - before.get(name, (0, 0))[0], waited - before.get(name, (0, 0))[1])
        for name, (ran, waited) in after.items()
    ]
    return max(grown, default=(0, 0))[1] / 1e9


def taken(before: CpuUse | None, after: CpuUse | None, samples: Sequence[Sample] = ()) -> float | None:
    """The share of its CPUs that other programs took from this process in between.

    That is what they used or, if it is more, the share of the samples in which the process waited for a CPU: the use is
    counted too coarsely for a short cell, and says nothing where a container is throttled.
    """
    if before is None or after is None:
        return None
    others = (after.all - before.all) - (after.own - before.own)
    used = others / (after.cpus * (after.wall - before.wall)) if others > _TICKS else 0.0
    # Beyond what others used, as far as that is known, a process waits for its own threads.
    waited = min(sum(sample.waited for sample in samples), max(others, 0.0) + _TICKS)
    return max(used, waited / sum(sample.wall for sample in samples)) if waited > _WAKING else used


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
    threads: Callable[[], Times] = thread_times

    def time(self, work: Callable[[], Any], *, runs: int = 1) -> Timed:
        """Time a piece of work. Garbage is collected before each call, and not again until the clock has stopped."""
        value: Any = None
        samples: list[Sample] = []
        for run in range(runs):
            gc.collect()
            gc.disable()
            try:
                threads, cpu, wall = self.threads(), self.cpu(), self.wall()
                returned = work()
                wall, cpu = self.wall() - wall, self.cpu() - cpu
                samples.append(Sample(wall, cpu, waited_between(threads, self.threads())))
            finally:
                gc.enable()
            if run == 0:
                value = returned
        return Timed(value, tuple(samples))
