"""The one clock, with a time source that the test moves."""

import gc
import os
import subprocess
import sys
import time
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval import Clock
from boosters_eval.engine import clock
from boosters_eval.engine.clock import CpuUse, Sample, measure_taken, measure_waiting, read_thread_times


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
    assert clock.read_cpu_use() is None
    mine = min(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {mine})
    (tmp_path / "stat").write_text(f"cpu 9 9 9 9 9 9 9 9 9 9\ncpu{mine} 10 20 30 5000 700 1 2 37 0 0\nintr 5 5\n")
    use = clock.read_cpu_use()
    assert (use.all, use.cpus) == (100 / os.sysconf("SC_CLK_TCK"), 1)
    before = clock.CpuUse(wall=10.0, own=1.0, all=5.0, cpus=2)
    assert clock.measure_taken(before, clock.CpuUse(wall=12.0, own=2.0, all=7.0, cpus=2)) == pytest.approx(0.25)
    assert clock.measure_taken(before, clock.CpuUse(wall=12.0, own=2.0, all=6.04, cpus=2)) == 0  # less than can be told
    assert clock.measure_taken(before, None) is None


@pytest.mark.parametrize(
    ("sample", "others", "share"),
    [
        (Sample(wall=0.020, cpu=0.011, waited=0.009), 0.02, 0.45),  # shorter than what the kernel can count
        (Sample(wall=0.001, cpu=0.0005, waited=0.0005), 0.0, 0.0),  # waking up
        (Sample(wall=2.0, cpu=2.0, waited=1.0), 0.0, 0.025),  # it waited for its own threads, for nobody used a CPU
        (Sample(wall=0.9, cpu=0.8, waited=0.0), 0.5, 0.5),  # others used a CPU that it did not need
    ],
)
def test_what_others_took_from_a_short_cell_is_what_it_waited(sample, others, share):
    before, after = CpuUse(0.0, 0.0, 0.0, 1), CpuUse(1.0, sample.cpu, sample.cpu + others, 1)
    assert measure_taken(before, after, [sample]) == pytest.approx(share)


def test_only_the_busiest_thread_counts_as_waiting():
    before = {"1": (1_000, 5_000), "2": (0, 0)}
    after = {"1": (9_001_000, 4_005_000), "2": (10_000, 900_000_000), "3": (20_000, 800_000_000)}
    assert measure_waiting(before, after) == pytest.approx(0.004)
    assert measure_waiting({}, {}) == 0.0


@pytest.mark.skipif(not read_thread_times(), reason="the kernel does not tell")
def test_a_thread_that_shares_its_cpu_has_waited():
    """Two processes that compute on one CPU: each waits while the other runs."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as hog:
            time.sleep(0.1)  # it has started
            (sample,) = Clock().time(lambda: sum(range(10_000_000))).samples
            hog.kill()
    finally:
        os.sched_setaffinity(0, cpus)
    assert sample.waited > 0.001
