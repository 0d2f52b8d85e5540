"""What a bisection promises, by simulation with fixed seeds: a wrong version is named in at most 5 % of searches."""

from dataclasses import replace

import numpy as np
import pytest

from boosters_eval.stats.sequential import SPARE
from searches import SCORES, TIMES, Versions, step

COUNT = 17


def searches(rng, repetitions, means, noise, yardstick=SCORES):
    """Counts of what was found: the right version, a wrong one, only a range (right or wrong), or nothing."""
    counts = dict.fromkeys(("right", "wrong", "range", "wrong range", "unchanged", "undecided"), 0)
    for _ in range(repetitions):
        at = int(rng.integers(1, COUNT))
        versions = Versions(rng, means(at), noise, yardstick)
        outcome, found = versions.search()
        inside = found.low < at <= found.high
        if outcome == "changed":
            counts["right" if inside else "wrong"] += 1
        elif outcome == "narrowed":
            counts["range" if inside else "wrong range"] += 1
        else:
            counts[outcome] += 1
    return counts


def test_a_step_is_found_where_it_is():
    found = searches(np.random.default_rng(1), 40, lambda at: step(COUNT, at), 0.005)
    assert found["right"] == 40


def test_noise_costs_seeds_and_not_truth():
    """With more noise the same search looks more often; what it cannot tell it leaves open."""
    looks = {}
    for noise in (0.002, 0.015):
        versions = Versions(np.random.default_rng(2), step(COUNT, 6), noise)
        _, found = versions.search()
        assert found.low < 6 <= found.high
        looks[noise] = versions.looks
    assert looks[0.015] > looks[0.002]


def test_of_equal_versions_none_is_named():
    found = searches(np.random.default_rng(3), 40, lambda _: [1.0] * COUNT, 0.005)
    assert found["unchanged"] + found["undecided"] == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "yardstick", "noises", "size"),
    [("score", SCORES, (0.002, 0.005, 0.01, 0.02), 0.05), ("time", TIMES, (0.02, 0.05, 0.1), 0.2)],
)
def test_a_wrong_version_is_named_in_at_most_five_percent(simulated, what, yardstick, noises, size):
    section, repetitions = "A bisection names a wrong version", 1000
    for noise in noises:
        rng = np.random.default_rng(round(1000 * noise))
        found = searches(rng, repetitions, lambda at: step(COUNT, at, size), noise, yardstick)
        of = f"a {what} that changes by {size:.0%} in one of {COUNT} versions, noise {noise:.1%}"
        wrong = found["wrong"] + found["wrong range"]
        assert simulated(section, f"{of}: wrong", wrong, repetitions, "≤ 5 %") <= 0.05
        missed = simulated(section, f"{of}: called unchanged", found["unchanged"], repetitions, "≤ 5 %")
        assert missed <= 0.05
        simulated(section, f"{of}: the right version", found["right"], repetitions, "none")
        simulated(section, f"{of}: the right range", found["range"], repetitions, "none")


@pytest.mark.slow
@pytest.mark.parametrize(("what", "yardstick", "noise"), [("score", SCORES, 0.005), ("time", TIMES, 0.05)])
def test_of_equal_versions_one_is_named_in_at_most_five_percent(simulated, what, yardstick, noise):
    section, repetitions = "A bisection names a wrong version", 2000
    found = searches(np.random.default_rng(9), repetitions, lambda _: [1.0] * COUNT, noise, yardstick)
    named = repetitions - found["unchanged"] - found["undecided"]
    claim = f"a {what} that is the same in {COUNT} versions, noise {noise:.1%}: a change is named"
    assert simulated(section, claim, named, repetitions, "≤ 5 %") <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("what", "yardstick", "noise"), [("score", SCORES, 0.005), ("time", TIMES, 0.05)])
def test_without_a_tolerance_the_error_rate_holds_as_well(simulated, what, yardstick, noise):
    """The hardest case: any difference counts, so nothing but the level of the tests keeps the search from erring."""
    section, repetitions = "A bisection names a wrong version", 1000
    any_change = replace(yardstick, tolerance=0.0)
    rng = np.random.default_rng(10)
    equal = searches(rng, repetitions, lambda _: [1.0] * COUNT, noise, any_change)
    named = repetitions - equal["unchanged"] - equal["undecided"]
    claim = f"a {what} that is the same in {COUNT} versions, noise {noise:.1%}, tolerance 0: a change is named"
    assert simulated(section, claim, named, repetitions, "≤ 5 %") <= 0.05
    size = 5 * noise
    found = searches(rng, repetitions, lambda at: step(COUNT, at, size), noise, any_change)
    of = f"a {what} that changes by {size:.1%} in one of {COUNT} versions, noise {noise:.1%}, tolerance 0"
    wrong = found["wrong"] + found["wrong range"]
    assert simulated(section, f"{of}: wrong", wrong, repetitions, "≤ 5 %") <= 0.05
    simulated(section, f"{of}: the right version", found["right"], repetitions, "none")


@pytest.mark.slow
def test_of_a_gradual_drift_only_steps_beyond_the_tolerance_are_named(simulated):
    """Seventeen versions that each add 0.5 %, below the tolerance of 1 %: a range remains, of more than one version."""
    section, repetitions = "A bisection names a wrong version", 500
    rng = np.random.default_rng(11)
    drift = [1.0 + 0.005 * position for position in range(COUNT)]
    named = sum(Versions(rng, drift, 0.002).search()[0] == "changed" for _ in range(repetitions))
    claim = f"a drift of 0.5 % per version, {SPARE} spare steps: a single version is named"
    assert simulated(section, claim, named, repetitions, "≤ 5 %") <= 0.05


@pytest.mark.slow
def test_of_two_changes_of_just_the_tolerance_neither_is_named(simulated):
    """The hardest case for the tests of a candidate: all between the ends are within the tolerance of both."""
    section, repetitions = "A bisection names a wrong version", 1000
    rng = np.random.default_rng(12)
    plateau = [1.0, *[1.01] * 7, 1.02]
    found = (Versions(rng, plateau, 0.001).search() for _ in range(repetitions))
    narrowed = sum(outcome in ("changed", "narrowed") and (at.low, at.high) != (0, 8) for outcome, at in found)
    claim = "two changes of 1 %, at the first and at the last of 9 versions, tolerance 1 %: the range is narrowed"
    assert simulated(section, claim, narrowed, repetitions, "≤ 5 %") <= 0.05
