"""The protocol adaptive-v1, rule by rule, as a function of a clock that the test holds."""

from __future__ import annotations

import itertools
from statistics import median
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.engine.clock import SECOND, AdaptiveTiming, time_adaptively

if TYPE_CHECKING:
    from collections.abc import Iterable

MS = SECOND // 1000


def timed(times: Iterable[int], **options: int | None) -> tuple[AdaptiveTiming, list[int]]:
    """The timing of runs that take these times, the last one for ever; and the data that each run was given."""
    given = list(times)
    clock = itertools.chain(given, itertools.repeat(given[-1]))
    seen: list[int] = []

    def run(offset: int) -> int:
        seen.append(offset)
        return next(clock)

    return time_adaptively(run, **options), seen  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("times", "statistic", "n_runs", "total_runs", "reported_ms"),
    [
        ([301 * SECOND, SECOND], "warm_start", 1, 1, 301_000.0),
        ([300 * SECOND + 1, SECOND], "warm_start", 1, 1, 300_000.000001),
        ([300 * SECOND, 31 * SECOND], "single", 1, 2, 31_000.0),  # exactly five minutes is not more than five minutes
        ([SECOND, 31 * SECOND], "single", 1, 2, 31_000.0),
        ([SECOND, 30 * SECOND + 1], "single", 1, 2, 30_000.000001),
        ([SECOND, 30 * SECOND, 10 * SECOND], "mean", 2, 3, 20_000.0),
        ([SECOND, 6 * SECOND, 8 * SECOND], "mean", 2, 3, 7_000.0),
        ([9 * SECOND, 5 * SECOND + 1, 5 * SECOND + 1], "mean", 2, 3, 5_000.000001),
        ([9 * SECOND, 5 * SECOND, 2 * SECOND], "median", 9, 10, 2_000.0),
        ([SECOND, 2 * SECOND, 3 * SECOND], "median", 9, 10, 3_000.0),
        ([SECOND, SECOND + 1, SECOND + 1], "median", 9, 10, 1_000.000001),
        ([SECOND, SECOND, SECOND], "median", 19, 20, 1_000.0),
        ([SECOND, 500 * MS, 500 * MS], "median", 19, 20, 500.0),
        ([SECOND, 100 * MS + 1, 100 * MS + 1], "median", 19, 20, 100.000001),
        ([SECOND, 100 * MS, 100 * MS], "median", 39, 40, 100.0),
        ([SECOND, MS, MS], "median", 39, 40, 1.0),
        ([MS, 1], "median", 39, 40, 1e-6),
        ([0, 0], "median", 39, 40, 0.0),
        ([290 * SECOND, 10 * MS], "median", 39, 40, 10.0),  # the warm start is never scored beside others
        ([SECOND, 10 * MS, 400 * SECOND], "median", 39, 40, 400_000.0),  # only the second run chooses the rule
        ([SECOND, 2 * SECOND, *[SECOND] * 4, *[3 * SECOND] * 4], "median", 9, 10, 2_000.0),
    ],
)
def test_the_second_run_decides_how_many_follow(
    times: list[int], statistic: str, n_runs: int, total_runs: int, reported_ms: float
) -> None:
    timing, _ = timed(times)
    assert (timing.statistic, timing.n_runs, timing.total_runs) == (statistic, n_runs, total_runs)
    assert timing.reported_ms == pytest.approx(reported_ms, rel=1e-15)
    assert timing.stop_reason == ("slow_warm_start" if statistic == "warm_start" else "complete")
    assert timing.protocol == "adaptive-v1"


@pytest.mark.parametrize(
    ("times", "max_runs", "statistic", "total_runs", "reason"),
    [
        ([MS, MS], 0, "warm_start", 1, "max_runs"),
        ([MS, MS], 1, "warm_start", 1, "max_runs"),
        ([MS, MS], 2, "single", 2, "max_runs"),
        ([MS, MS], 3, "median", 3, "max_runs"),
        ([MS, MS], 39, "median", 39, "max_runs"),
        ([MS, MS], 40, "median", 40, "complete"),
        ([MS, MS], 1000, "median", 40, "complete"),
        ([MS, 6 * SECOND], 2, "single", 2, "max_runs"),
        ([MS, 6 * SECOND], 3, "mean", 3, "complete"),
        ([MS, 31 * SECOND], 2, "single", 2, "complete"),
        ([301 * SECOND], 1, "warm_start", 1, "slow_warm_start"),
    ],
)
def test_a_cap_ends_the_runs_and_is_named(
    times: list[int], max_runs: int, statistic: str, total_runs: int, reason: str
) -> None:
    timing, _ = timed(times, max_runs=max_runs)
    assert (timing.statistic, timing.total_runs, timing.stop_reason) == (statistic, total_runs, reason)


@pytest.mark.parametrize(
    ("budget", "statistic", "total_runs", "reason"),
    [
        (1, "warm_start", 1, "budget"),
        (11, "single", 2, "budget"),
        (21, "median", 3, "budget"),
        (10**6, "median", 40, "complete"),
    ],
)
def test_a_budget_is_looked_at_between_runs_and_changes_the_name(
    budget: int, statistic: str, total_runs: int, reason: str
) -> None:
    timing, _ = timed([10 * MS], budget_ns=budget * MS)
    assert (timing.statistic, timing.total_runs, timing.stop_reason) == (statistic, total_runs, reason)
    assert timing.protocol == "adaptive-v1+budget"


def test_the_first_two_runs_share_their_data_and_later_ones_have_their_own() -> None:
    assert timed([2 * SECOND])[1] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]


@given(st.lists(st.integers(0, 400 * SECOND), min_size=40, max_size=40), st.integers(0, 60))
def test_every_sample_is_kept_and_the_report_lies_among_the_scored(times: list[int], cap: int) -> None:
    timing, _ = timed(times, max_runs=cap)
    assert timing.samples_ns == tuple(times[: timing.total_runs])
    assert min(timing.scored_ns) / 1e6 <= timing.reported_ms <= max(timing.scored_ns) / 1e6
    assert timing.total_runs <= max(1, min(cap, 40))
    if timing.statistic == "median":
        assert timing.reported_ms == median(times[1 : timing.total_runs]) / 1e6
