"""The only clock: every time in every result is measured here, in the same way for all targets."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Sample(NamedTuple):
    """One measurement, in seconds."""

    wall: float
    cpu: float


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
    """Wall and CPU time; both sources can be replaced, so that a test need not wait."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time

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
