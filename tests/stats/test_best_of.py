"""The best of k trials, against the enumeration of all sets of k."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.stats.best_of import find_chances

LOSSES = st.lists(st.one_of(st.integers(0, 5).map(float), st.just(math.inf)), min_size=1, max_size=8)


def enumerate_chances(losses, k, kept):
    """What each set of k chooses, counted."""
    counts, own = [0] * len(losses), 0
    sets = list(combinations(range(len(losses)), k))
    for drawn in sets:
        best = min(drawn, key=lambda at: (losses[at], at), default=None)
        if best is None or not losses[best] < kept:
            own += 1
        else:
            counts[best] += 1
    return [Fraction(count, len(sets)) for count in counts], Fraction(own, len(sets))


@given(LOSSES, st.data(), st.one_of(st.integers(0, 5).map(float), st.just(math.inf)))
def test_chances_equal_the_enumeration_of_all_sets(losses, data, kept):
    k = data.draw(st.integers(0, len(losses)))
    found, own = find_chances(losses, k, kept)
    expected, expected_own = enumerate_chances(losses, k, kept)
    assert found == pytest.approx([float(chance) for chance in expected], abs=1e-15)
    assert own == pytest.approx(float(expected_own), abs=1e-15)
    assert found.sum() + own == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), min_size=1, max_size=8), st.data())
def test_the_expected_outer_score_equals_its_mean_over_all_sets(trials, data):
    """Chosen by the inner score, valued by the outer one."""
    k = data.draw(st.integers(1, len(trials)))
    inner, outer = zip(*trials, strict=True)
    chances, _ = find_chances(inner, k)
    chosen = [outer[min(drawn, key=lambda at: (inner[at], at))] for drawn in combinations(range(len(trials)), k)]
    assert chances @ np.array(outer) == pytest.approx(sum(chosen) / len(chosen))


def test_all_trials_together_choose_the_best_and_none_leaves_what_is_kept():
    assert find_chances([3.0, 1.0, 2.0], 3)[0].tolist() == [0, 1, 0]
    assert find_chances([3.0, 1.0, 2.0], 0, kept=9.0)[1] == 1
    assert find_chances([3.0, 1.0, 2.0], 3, kept=1.0)[1] == 1  # what is kept wins a tie


def test_hundreds_of_trials_are_exact_too():
    chances, own = find_chances(np.arange(500.0), 250, kept=10.0)
    assert chances.sum() + own == pytest.approx(1.0, abs=1e-12)
    assert chances[0] == 0.5


@pytest.mark.parametrize("count", [1, 5, 20, 64])
def test_one_better_trial_is_found_in_proportion_to_the_trials(count):
    for k in range(1, count + 1):
        losses = [1.0] * count
        losses[count // 2] = 0.0
        assert find_chances(losses, k, kept=0.5)[0].sum() == pytest.approx(k / count)


def test_a_number_of_trials_that_there_are_not_is_refused():
    with pytest.raises(ValueError, match="k must be from 0 to 2"):
        find_chances([1.0, 2.0], 3)
