"""Steps in a sequence: found where they are, and not where they are not."""

import numpy as np
import pytest

from boosters_eval.stats import changepoints
from boosters_eval.stats.changepoints import fewest_for_any_step, find_steps
from boosters_eval.stats.inference import StatisticsInputError


def places(values, **options):
    return [step.index for step in find_steps(values, **options)]


def noise(n, seed=0):
    return np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 3, [1.0, 1.0, 2.0, 2.0], [0.5] * 100])
def test_too_few_runs_and_equal_ones_have_no_step(values):
    assert find_steps(values) == ()


def test_a_step_in_noise_is_found_where_it_is():
    values = noise(60)
    values[40:] += 8
    (step,) = find_steps(values)
    assert (step.index, step.n_before, step.n_after) == (40, 40, 20)
    assert step.before == np.median(values[:40])
    assert step.after == np.median(values[40:])
    assert 0 < step.p_value <= 0.01


def test_several_steps_are_found_in_the_order_of_time():
    values = noise(90)
    values[30:60] += 8
    values[60:] += 16
    assert places(values) == [30, 60]


def test_the_level_is_shared_by_the_stretches_that_are_searched():
    assert places([0.25] * 5 + [0.5] * 5) == [5]
    assert places([0.25] * 5 + [0.5] * 5 + [9.0] * 30) == [10]  # two stretches: five runs on each side are too few
    assert places([0.25] * 6 + [0.5] * 6 + [9.0] * 30) == [6, 12]


@pytest.mark.parametrize("length", [3, 10, 30])
def test_a_change_that_was_taken_back_is_two_steps(length):
    assert places([1.0] * 30 + [2.0] * length + [1.0] * 30) == [30, 30 + length]


@pytest.mark.parametrize(("before", "above", "back"), [(10, 6, 3), (20, 4, 3), (30, 4, 4)])
def test_a_step_back_that_the_runs_around_it_do_not_show_yet_is_not_told(before, above, back):
    """Both are found together, but the second must also hold between its neighbors."""
    assert places([0.0] * before + [1.0] * above + [0.0] * back) == [before]
    assert places([0.0] * before + [1.0] * above + [0.0] * (back + 20)) == [before, before + above]


@pytest.mark.parametrize(("after", "runs"), [(2, 23), (3, 13), (4, 11), (5, 10), (6, 11)])
def test_a_step_between_equal_runs_is_found_as_soon_as_the_level_allows(after, runs):
    assert places([0.25] * (runs - after) + [0.5] * after) == [runs - after]
    assert places([0.25] * (runs - after - 1) + [0.5] * after) == []


def test_a_single_run_is_never_a_step():
    for position in (0, 1, 200, 398, 399):
        values = [1.0] * 400
        values[position] = 9.0
        assert places(values) == []
    values = noise(50, seed=1)
    values[-1] = 1e6
    assert places(values) == []


def test_a_step_is_found_beside_an_outlier():
    values = [1.0] * 20 + [1.5] * 20
    values[5], values[30] = 1e9, -1e9
    assert places(values) == [20]


def test_an_outlier_does_not_make_all_other_runs_equal():
    values = [0.5] * 20 + [0.5001] * 20
    values[5] = 1e15
    assert places(values) == [20]


def test_no_step_is_found_in_fewer_runs_than_said():
    assert fewest_for_any_step() == 10
    assert places(list(range(9))) == []
    assert places(list(range(10))) == [5]


def test_rounding_is_not_a_step():
    assert places([0.3] * 20 + [0.1 + 0.2] * 20) == []
    assert places([0.3] * 20 + [0.3 + 1e-9] * 20) == [20]


def test_the_same_values_give_the_same_steps_whatever_their_unit_and_direction():
    values = noise(80, seed=3)
    values[50:] += 1.2
    found = find_steps(values)
    assert found == find_steps(values.tolist())
    assert places(values) == places(1000 * values) == [79 + 1 - index for index in reversed(places(values[::-1]))]
    np.random.seed(1)  # noqa: NPY002 (the global state must not matter)
    assert find_steps(values) == found


def test_a_line_without_a_step_rarely_gets_one():
    found = sum(bool(find_steps(noise(30, seed))) for seed in range(150))
    assert found <= 150 * 0.03


def test_a_looser_level_finds_a_step_sooner():
    values = [1.0] * 4 + [2.0] * 4
    assert places(values) == []
    assert places(values, alpha=0.05) == [4]


@pytest.mark.parametrize("values", [[1.0, float("nan")], [1.0, float("inf")], [[1.0], [2.0]]])
def test_values_that_are_not_finite_numbers_are_refused(values):
    with pytest.raises(StatisticsInputError, match="must hold finite numbers"):
        find_steps(values)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, float("nan")])
def test_a_level_that_is_none_is_refused(alpha):
    with pytest.raises(StatisticsInputError, match="between 0 and 1"):
        find_steps([1.0, 2.0], alpha=alpha)


def test_a_side_is_lasting_only_if_most_of_it_lies_beyond_the_median_of_the_other():
    other = np.array([4, 5, 6])
    assert changepoints._is_lasting(np.array([6, 7]), other)
    assert changepoints._is_lasting(np.array([4, 3]), other)
    assert not changepoints._is_lasting(np.array([5, 5]), other)
    assert not changepoints._is_lasting(np.array([4, 7]), other)


def test_a_p_value_of_exactly_the_level_is_told():
    def draws():
        return changepoints._Draws(iter([np.array([[1.0]] * 4 + [[0.0]] * 95)]), 99, 1)

    assert draws().p_value(lambda block: block, 1.0, 0.05) == 0.05
    assert draws().p_value(lambda block: block, 1.0, 0.049) == 1.0


@pytest.mark.parametrize(("runs", "permutations"), [(10, 9999), (50, 4000), (400, 1999)])
def test_a_shorter_stretch_is_permuted_more_often(runs, permutations, monkeypatch):
    asked = []
    real = changepoints._permutations
    monkeypatch.setattr(changepoints, "_permutations", lambda scores, total: asked.append(total) or real(scores, total))
    levels = np.arange(runs)
    changepoints._one_step(levels, changepoints._scores(levels), 0.01)
    assert asked == [permutations]


def test_no_values_have_no_groups():
    assert changepoints._without_rounding(np.array([])).shape == (0,)
