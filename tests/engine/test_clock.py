"""The one clock, with a time source that the test moves."""

import gc
import os
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval import Clock
from boosters_eval.engine import clock


class Source:
    """Seconds that pass only when the work says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@given(steps=st.lists(st.integers(0, 10**6), min_size=1, max_size=9))
def test_every_sample_is_kept_and_the_median_is_told(steps):
    wall, cpu = Source(), Source()
    left = iter(steps)

    def work():
        step = next(left)
        wall.now += step
        cpu.now += 2 * step
        return step

    with mock.patch("gc.collect"):  # its own test is below; here it would only cost time
        timed = Clock(wall=wall, cpu=cpu).time(work, runs=len(steps))
    assert timed.value == steps[0]
    assert [sample.wall for sample in timed.samples] == steps
    assert [sample.cpu for sample in timed.samples] == [2 * step for step in steps]
    assert sorted(steps)[(len(steps) - 1) // 2] <= timed.wall <= sorted(steps)[len(steps) // 2]
    assert timed.cpu == 2 * timed.wall


def test_no_garbage_is_collected_inside_the_clock_and_afterwards_it_is_again():
    assert Clock().time(gc.isenabled).value is False
    assert gc.isenabled()

    def fail():
        raise RuntimeError("mid-way")

    with pytest.raises(RuntimeError, match="mid-way"):
        Clock().time(fail)
    assert gc.isenabled()


def test_what_other_programs_take_is_the_rest_of_the_cpus_that_were_used(tmp_path, monkeypatch):
    monkeypatch.setattr(clock, "_STAT", tmp_path / "stat")
    assert clock.cpu_use() is None
    mine = min(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {mine})
    (tmp_path / "stat").write_text(f"cpu 9 9 9 9 9 9 9 9 9 9\ncpu{mine} 10 20 30 5000 700 1 2 37 0 0\nintr 5 5\n")
    use = clock.cpu_use()
    assert (use.all, use.cpus) == (100 / os.sysconf("SC_CLK_TCK"), 1)
    before = clock.CpuUse(wall=10.0, own=1.0, all=5.0, cpus=2)
    assert clock.taken(before, clock.CpuUse(wall=12.0, own=2.0, all=7.0, cpus=2)) == pytest.approx(0.25)
    assert clock.taken(before, clock.CpuUse(wall=12.0, own=2.0, all=6.04, cpus=2)) == 0  # less than can be told
    assert clock.taken(before, None) is None
