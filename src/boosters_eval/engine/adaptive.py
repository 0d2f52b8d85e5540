"""How often to repeat what is timed: the protocol adaptive-v1, the same for every language and every target."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        """The time that is reported."""
        return self.summarized(self.samples_ns) / 1e6

    def summarized(self, samples_ns: Sequence[int]) -> float:
        """A part of what was timed, summed up as the whole is."""
        scored = samples_ns[1:] or samples_ns
        if self.statistic == "mean":
            return fmean(scored)
        return median(scored) if self.statistic == "median" else scored[0]

    @property
    def n_runs(self) -> int:
        """How many samples count."""
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
        """The median."""
        return self.summarized(self.samples_ns) / 1e6

    def summarized(self, samples_ns: Sequence[int]) -> float:
        """The median of a part of what was timed."""
        return median(samples_ns)


def fixed(run: Callable[[int], int], count: int) -> FixedTiming:
    """Repeat a run as often as is asked for."""
    return FixedTiming(tuple(run(0) for _ in range(count)))


def adaptive_v1(run: Callable[[int], int], *, max_runs: int = 40, budget_ns: int | None = None) -> AdaptiveTiming:
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
