"""The one clock, with a time source that the test moves."""

import gc
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval import Clock


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
