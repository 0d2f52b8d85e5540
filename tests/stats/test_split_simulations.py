"""What the tests on windows of time and on groups promise, by simulation with fixed seeds."""

import numpy as np
import pytest

from boosters_eval.stats import inference, observations
from learners import in_time, odd_groups
from simulated_splits import compared_by_group, compared_in_time, window_edges

pytestmark = pytest.mark.slow

TIME, GROUP = "Two equal learners are told apart by time", "Two equal learners are told apart by group"
ROWS, REPETITIONS, BATCH = 600, 2000, 500


def told(pair):
    return pair.verdict in {"better", "worse"}


def plainly(scores):
    fitted = inference.paired(scores[0] - scores[1])
    return 2 * min(fitted.greater(0.0), fitted.less(0.0)) < 0.05


@pytest.mark.parametrize("windows", [3, 5, 10, 20])
@pytest.mark.parametrize("memory", [0.0, 1.0, 2.0])
def test_equal_learners_are_told_apart_in_at_most_six_percent_of_time_splits(windows, memory, simulated):
    """`memory` is how long features and noise stay alike, in windows."""
    edges = window_edges(ROWS, windows)
    rng = np.random.default_rng(100 * windows + int(10 * memory))
    count = plain = 0
    for _ in range(REPETITIONS // BATCH):
        scores = in_time(rng, edges, BATCH, memory=memory * ROWS / (2 * windows))
        count += sum(told(compared_in_time(scores[:, case], edges)) for case in range(BATCH))
        plain += sum(plainly(scores[:, case]) for case in range(BATCH))
    of = f"{windows} windows, rows alike over {memory:g} windows"
    assert simulated(TIME, f"{of}: default verdict", count, REPETITIONS, "≤ 6 %") <= 0.06
    simulated(TIME, f"{of}: paired t-test", plain, REPETITIONS, "none")


@pytest.mark.parametrize("windows", [5, 10, 20])
def test_lasting_changes_are_beyond_any_test(windows, simulated):
    """Weights that wander by half their size: which learner is better then depends on the years, not on chance."""
    edges = window_edges(ROWS, windows)
    scores = in_time(np.random.default_rng(windows), edges, 1000, drift=0.5)
    count = sum(told(compared_in_time(scores[:, case], edges)) for case in range(1000))
    assert simulated(TIME, f"{windows} windows, weights that wander: default verdict", count, 1000, "none") > 0.06


@pytest.mark.parametrize("windows", [5, 10, 20])
def test_the_power_of_time_splits(windows, simulated):
    edges = window_edges(ROWS, windows)
    scores = in_time(np.random.default_rng(windows), edges, 1000, lead=0.5)
    found = sum(told(compared_in_time(scores[:, case], edges)) for case in range(1000))
    section = "A true difference is found by time"
    rate = simulated(section, f"RMSE 2.65 against 3.28, {windows} windows: default verdict", found, 1000, "none")
    plain = sum(plainly(scores[:, case]) for case in range(1000))
    simulated(section, f"RMSE 2.65 against 3.28, {windows} windows: paired t-test", plain, 1000, "none")
    assert rate > 0.3


def sizes_of(kind, groups, rng):
    if kind == "equal":
        return np.full(groups, 12)
    return np.maximum(2, (12 * np.exp(rng.normal(size=groups))).astype(int))


@pytest.mark.parametrize("kind", ["equal", "unequal"])
@pytest.mark.parametrize(("groups", "seeds", "folds"), [(10, 1, 5), (20, 1, 5), (20, 5, None), (20, 20, None)])
def test_equal_learners_are_told_apart_in_at_most_seven_percent_of_group_splits(groups, seeds, folds, kind, simulated):
    rng = np.random.default_rng(groups + seeds)
    repetitions = 1000
    count = sum(
        told(compared_by_group(rng, sizes_of(kind, groups, rng), seeds=seeds, folds=folds)) for _ in range(repetitions)
    )
    of = f"{groups} groups of {kind} sizes, {f'{folds} folds' if folds else f'{seeds} seeds'}"
    assert simulated(GROUP, f"{of}: default verdict", count, repetitions, "≤ 7 %") <= 0.07


@pytest.mark.parametrize(("groups", "seeds", "folds"), [(10, 5, None), (20, 5, None), (20, 10, None), (10, 1, 5)])
def test_why_few_groups_are_not_tested(groups, seeds, folds, simulated, monkeypatch):
    """Differences between groups that are skewed: so few cannot show it."""
    monkeypatch.setattr(observations, "LEAST_GROUPS", 2)
    rng = np.random.default_rng(groups + seeds)
    sizes = np.full(groups, 12)
    pairs = (compared_by_group(rng, sizes, seeds=seeds, folds=folds, draw=odd_groups) for _ in range(1000))
    count = sum(map(told, pairs))
    tested = folds is not None or groups >= 20
    of = f"{groups} groups that differ exponentially, {f'{folds} folds' if folds else f'{seeds} seeds'}"
    promised = "≤ 9 %" if tested else "none: refused"
    rate = simulated(GROUP, f"{of}: default verdict", count, 1000, promised)
    assert rate <= 0.09 or not tested
