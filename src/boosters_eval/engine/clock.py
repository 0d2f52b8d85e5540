"""The only clock: what every time in every result is measured by, and how often timed work is repeated."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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


def read_cpu_use() -> CpuUse | None:
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


def read_thread_times() -> dict[str, tuple[int, int]]:
    """How long each thread of this process has run, and waited for a CPU, in nanoseconds; empty if unknown."""
    times: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError, ValueError):
        for task in _TASKS.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                ran, waited, _ = map(int, (task / "schedstat").read_bytes().split())
                times[task.name] = ran, waited
    return times


def measure_waiting(before: Times, after: Times) -> float:
    """The seconds in which the busiest thread waited for a CPU.

    The others do not count: a helper that waits for a CPU only to go to sleep again delays nothing.
    """
    grown = [
        (ran - before.get(name, (0, 0))[0], waited - before.get(name, (0, 0))[1])
        for name, (ran, waited) in after.items()
    ]
    return max(grown, default=(0, 0))[1] / 1e9


def measure_taken(before: CpuUse | None, after: CpuUse | None, samples: Sequence[Sample] = ()) -> float | None:
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
        return median(sample.wall for sample in self.samples)

    @property
    def cpu(self) -> float:
        return median(sample.cpu for sample in self.samples)


@dataclass(frozen=True)
class Clock:
    """Wall time, CPU time and the use of the CPUs; the sources can be replaced, so that a test need not wait."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time
    use: Callable[[], CpuUse | None] = read_cpu_use
    threads: Callable[[], Times] = read_thread_times

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
                samples.append(Sample(wall, cpu, measure_waiting(threads, self.threads())))
            finally:
                gc.enable()
            if run == 0:
                value = returned
        return Timed(value, tuple(samples))


PROTOCOL = "adaptive-v1"
SECOND = 1_000_000_000  # all times are whole nanoseconds, so that a threshold is met exactly or not at all

Statistic = Literal["warm_start", "single", "mean", "median"]
StopReason = Literal["slow_warm_start", "complete", "max_runs", "budget"]


class _Band(NamedTuple):
    """What the second run decides: the first band that it exceeds applies."""

    above: int
    total_runs: int  # the warm start included
    statistic: Statistic


_SLOW_WARM_START = 300 * SECOND
_BANDS = (
    _Band(30 * SECOND, 2, "single"),
    _Band(5 * SECOND, 3, "mean"),
    _Band(1 * SECOND, 10, "median"),
    _Band(SECOND // 10, 20, "median"),
    _Band(-1, 40, "median"),
)


@dataclass(frozen=True)
class AdaptiveTiming:
    """All samples, and the one number that they are summed up in."""

    samples_ns: tuple[int, ...]  # the warm start is the first
    statistic: Statistic
    stop_reason: StopReason
    budgeted: bool = False

    @property
    def protocol(self) -> str:
        """The protocol's name; one that was cut short by a budget is not the protocol any more."""
        return f"{PROTOCOL}+budget" if self.budgeted else PROTOCOL

    @property
    def scored_ns(self) -> tuple[int, ...]:
        """The samples that count: all but the warm start, unless there is nothing else."""
        return self.samples_ns[1:] or self.samples_ns

    @property
    def reported_ms(self) -> float:
        return self.summarized(self.samples_ns) / 1e6

    def summarized(self, samples_ns: Sequence[int]) -> float:
        """A part of what was timed, summed up as the whole is."""
        scored = samples_ns[1:] or samples_ns
        if self.statistic == "mean":
            return fmean(scored)
        return median(scored) if self.statistic == "median" else scored[0]

    @property
    def n_runs(self) -> int:
        return len(self.scored_ns)

    @property
    def total_runs(self) -> int:
        """How many runs there were, the warm start included."""
        return len(self.samples_ns)


@dataclass(frozen=True)
class FixedTiming:
    """A number of runs that was given, of which all count."""

    samples_ns: tuple[int, ...]

    @property
    def reported_ms(self) -> float:
        return self.summarized(self.samples_ns) / 1e6

    def summarized(self, samples_ns: Sequence[int]) -> float:
        return median(samples_ns)


def time_fixed(run: Callable[[int], int], count: int) -> FixedTiming:
    return FixedTiming(tuple(run(0) for _ in range(count)))


def time_adaptively(run: Callable[[int], int], *, max_runs: int = 40, budget_ns: int | None = None) -> AdaptiveTiming:
    """Repeat a run as often as its second time allows.

    `run` receives what is added to the base seed of its data, and returns how long it took. The first two runs use
    the same data. `max_runs` caps all runs; a budget is looked at between runs only.
    """
    samples = [run(0)]
    budgeted = budget_ns is not None

    def ended(statistic: Statistic, reason: StopReason) -> AdaptiveTiming:
        return AdaptiveTiming(tuple(samples), statistic, reason, budgeted)

    def spent() -> bool:
        return budget_ns is not None and sum(samples) >= budget_ns

    if samples[0] > _SLOW_WARM_START:
        return ended("warm_start", "slow_warm_start")
    if max_runs < 2:
        return ended("warm_start", "max_runs")
    if spent():
        return ended("warm_start", "budget")
    samples.append(run(0))
    band = next(band for band in _BANDS if samples[1] > band.above)
    reason: StopReason = "complete"
    while len(samples) < band.total_runs:
        if len(samples) >= max_runs or spent():
            reason = "max_runs" if len(samples) >= max_runs else "budget"
            break
        samples.append(run(len(samples) - 1))
    return ended(band.statistic if len(samples) > 2 else "single", reason)
