"""How often the change-point rule errs and finds, by simulation with fixed seeds."""

import numpy as np
import pytest

from boosters_eval.stats.changepoints import find_steps

pytestmark = pytest.mark.slow

SECTION = "Steps in a history"
REPETITIONS = 1000


def normal(rng, n):
    return rng.normal(size=n)


def heavy(rng, n):
    return np.exp(0.05 * rng.standard_t(2, size=n))


def coarse(rng, n):
    return rng.binomial(40, 0.9, size=n) / 40


def correlated(rho):
    def draw(rng, n):
        shocks = rng.normal(size=n + 50)
        for index in range(1, len(shocks)):
            shocks[index] += rho * shocks[index - 1]
        return shocks[50:]

    return draw


@pytest.mark.parametrize("n", [10, 30, 100, 300])
@pytest.mark.parametrize(
    ("draw", "name"), [(normal, "normal"), (heavy, "times with outliers (t, 2)"), (coarse, "accuracy of 40 rows")]
)
def test_a_line_without_a_step_gets_one_in_at_most_one_percent(draw, name, n, simulated):
    rng = np.random.default_rng(n)
    wrong = sum(bool(find_steps(draw(rng, n))) for _ in range(REPETITIONS))
    # Two standard errors above the level, which is the chance of a simulation and not of the rule.
    assert simulated(SECTION, f"no step, {name}, {n} runs: any step", wrong, REPETITIONS, "≤ 1 %") <= 0.0165


def test_a_line_that_is_looked_at_after_every_run_shows_a_step_more_often(simulated):
    """What the rule does not promise: the level is that of one look, and each new run is another."""
    rng = np.random.default_rng(5)
    repetitions, ends = REPETITIONS // 5, (30, 100)
    seen = dict.fromkeys(ends, 0)
    for _ in range(repetitions):
        values = normal(rng, ends[-1])
        first = next((n for n in range(10, ends[-1] + 1) if find_steps(values[:n])), None)
        for end in ends:
            seen[end] += first is not None and first <= end
    for end in ends:
        claim = f"no step, looked at after every run from 10 to {end}: any step at any time"
        assert simulated(SECTION, claim, seen[end], repetitions, "none") > 0.01


@pytest.mark.parametrize("n", [60, 200])
def test_a_line_with_two_steps_gets_a_third_one_in_at_most_two_percent(n, simulated):
    rng = np.random.default_rng(7 + n)
    more = 0
    for _ in range(REPETITIONS):
        values = normal(rng, n)
        values[n // 3 :] += 5
        values[2 * n // 3 :] += 5
        more += len(find_steps(values)) > 2
    claim = f"two steps of 5 standard deviations, {n} runs: a third step"
    # Not exact: the stretches between steps begin where the steps were found, which may be a run off.
    assert simulated(SECTION, claim, more, REPETITIONS, "≤ 2 %") <= 0.02


@pytest.mark.parametrize(
    ("before", "after", "size", "least"),
    [(10, 10, 2, 0.65), (20, 5, 3, 0.8), (30, 10, 2, 0.8), (50, 50, 1, 0.5), (100, 5, 3, 0.9), (90, 10, 2, 0.8)],
)
def test_a_step_is_found_near_its_place(before, after, size, least, simulated):
    rng = np.random.default_rng(before + after)
    found = 0
    repetitions = REPETITIONS // 2
    for _ in range(repetitions):
        values = normal(rng, before + after)
        values[before:] += size
        found += any(abs(step.index - before) <= 3 for step in find_steps(values))
    claim = f"{before} runs, then {after} that are {size} standard deviations off: found within 3 runs"
    assert simulated(SECTION, claim, found, repetitions, f"≥ {least:.0%}") >= least


@pytest.mark.parametrize("length", [5, 10])
def test_a_change_that_was_taken_back_is_found(length, simulated):
    rng = np.random.default_rng(length)
    found = 0
    repetitions = REPETITIONS // 2
    for _ in range(repetitions):
        values = normal(rng, 60 + length)
        values[30 : 30 + length] += 4
        found += len(find_steps(values)) >= 2
    claim = f"{length} runs among 60 that are 4 standard deviations off: two steps"
    assert simulated(SECTION, claim, found, repetitions, "≥ 85 %") >= 0.85


@pytest.mark.parametrize(("rho", "said"), [(0.2, 0.06), (0.5, 0.37), (0.8, 0.9)])
def test_runs_that_resemble_their_neighbors_are_taken_for_steps(rho, said, simulated):
    """What the rule does not promise: the page and the documentation say it, so it is measured."""
    rng = np.random.default_rng(int(10 * rho))
    repetitions = REPETITIONS // 2
    found = sum(bool(find_steps(correlated(rho)(rng, 60))) for _ in range(repetitions))
    rate = simulated(SECTION, f"no step, neighbors correlate by {rho}, 60 runs: any step", found, repetitions, "none")
    assert rate == pytest.approx(said, abs=3 * (said * (1 - said) / repetitions) ** 0.5)


@pytest.mark.parametrize("drift", [1, 2, 4])
def test_a_slow_drift_is_shown_as_steps(drift, simulated):
    rng = np.random.default_rng(drift)
    repetitions = REPETITIONS // 2
    found = sum(bool(find_steps(normal(rng, 60) + np.linspace(0, drift, 60))) for _ in range(repetitions))
    claim = f"a drift of {drift} standard deviations in 60 runs: any step"
    simulated(SECTION, claim, found, repetitions, "none")
