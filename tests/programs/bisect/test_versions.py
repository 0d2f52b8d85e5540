"""The search over positions, without any run."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.programs.bisect.versions import choose, locate


def stepped(at, broken=(), asked=None):
    """A judge of a sequence that changes at one position."""

    def judge(low, candidate, high):
        assert low < candidate < high
        if asked is not None:
            asked.append(candidate)
        if candidate in broken:
            return "unusable"
        return "later" if candidate >= at else "earlier"

    return judge


@given(count=st.integers(2, 300), data=st.data())
def test_the_step_is_found_by_halving(count, data):
    at = data.draw(st.integers(1, count - 1))
    asked = []
    found = locate(count, stepped(at, asked=asked), tries=count)
    assert (found.low, found.high) == (at - 1, at)
    assert len(asked) <= math.ceil(math.log2(count))


@given(count=st.integers(3, 60), data=st.data())
def test_what_is_unusable_is_passed_over_and_the_step_is_still_enclosed(count, data):
    at = data.draw(st.integers(1, count - 1))
    broken = data.draw(st.sets(st.integers(1, count - 2)))
    found = locate(count, stepped(at, broken), tries=count)
    assert found.low < at <= found.high
    assert all(position in broken for position in found.between)


def test_a_block_of_broken_positions_is_left_by_growing_leaps():
    asked = []
    locate(101, stepped(20, broken=range(35, 66), asked=asked), tries=20)
    assert sum(position in range(35, 66) for position in asked) <= 6


def test_undecided_candidates_count_as_tries_and_unusable_ones_do_not():
    assert locate(100, lambda *_: "undecided", tries=3).undecided == (48, 49, 50)
    assert len(locate(100, lambda *_: "unusable", tries=3).unusable) == 98


@pytest.mark.parametrize(("low", "high", "passed", "chosen"), [(0, 1, (), None), (0, 4, (), 2), (0, 4, (2,), 1)])
def test_the_candidate_nearest_to_the_middle_is_chosen(low, high, passed, chosen):
    assert choose(low, high, passed) == chosen
