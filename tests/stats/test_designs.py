"""Splits by time and by group: which test holds on them, and where none does."""

from functools import partial

import numpy as np
import pytest

from boosters_eval.core.repeat import Repeat
from boosters_eval.stats import inference
from boosters_eval.stats.designs import design_of
from boosters_eval.stats.observations import Observation, split_ratio
from boosters_eval.stats.tables import compare_table, mean_interval
from learners import in_time, of_groups
from simulated_splits import compared_by_group, compared_in_time, window_edges

VARIED = (1.0, 1.02, 1.01, 1.03, 0.99)


def sides(kind, count, *, folds=True, seeds=1, **fields):
    """Two sides that clearly differ, on `count` splits of a kind."""
    out = {"a": {}, "b": {}}
    for seed in range(seeds):
        for part in range(count):
            repeat = Repeat(seed, part) if folds else Repeat(seed * count + part)
            for name, shift in (("a", 0.0), ("b", 1.0)):
                value = 1 + shift * VARIED[part % 5]
                out[name][repeat] = Observation(value, f"split {part}", 80, 20, kind=kind, resolution=0.0, **fields)
    return out


def verdict(observations, **options):
    return compare_table(observations, metric="rmse", higher_is_better=False, **options).get("a", "b")


@pytest.mark.parametrize(("windows", "answer"), [(2, "inconclusive"), (3, "better"), (5, "better")])
def test_fewer_than_three_windows_of_time_are_not_tested(windows, answer):
    found = verdict(sides("time", windows))
    assert found.verdict == answer
    assert ("too few for a test: 3 are needed" in found.note) == (windows < 3)


def test_model_seeds_in_a_window_are_one_observation_of_it():
    alone, repeated = verdict(sides("time", 5)), verdict(sides("time", 5, seeds=4))
    assert repeated.n == alone.n == 5
    assert repeated.p_value == pytest.approx(alone.p_value)


def test_windows_are_tested_in_the_order_of_time_whatever_the_order_of_the_results():
    observations = sides("time", 5)
    turned = {name: dict(reversed(side.items())) for name, side in observations.items()}
    assert verdict(turned) == verdict(observations)
    assert mean_interval(turned["a"]) == mean_interval(observations["a"])


def test_neighboring_windows_that_are_alike_widen_the_interval():
    steps = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 0.6, 0.7, 0.8, 0.9, 1.0])
    ordered = inference.Design(ordered=True)
    alike = inference.paired(np.sort(steps), overlap=0.05, design=ordered)
    mixed = inference.paired(steps[[0, 5, 1, 6, 2, 7, 3, 8, 4, 9]], overlap=0.05, design=ordered)
    assert alike.error > 1.5 * mixed.error
    assert mixed.error == pytest.approx(inference.paired(steps, overlap=0.05).error)


def test_the_correlation_of_neighbors_is_seen_too_low_by_one_over_their_number():
    """Of 1, 1, -1, -1 it is (1 - 1 + 1) / 4, and 1 / 4 more: the mean varies by (1 + 1/2) / (1 - 1/2) / 4."""
    ordered = inference.Design(ordered=True)
    found = inference.paired(np.array([1.0, 1.0, -1.0, -1.0]) + 5, design=ordered)
    assert found.error == pytest.approx(np.sqrt(4 / 3 * 0.75))


@pytest.mark.parametrize("test", ["welch", "paired", "wilcoxon"])
@pytest.mark.parametrize("kind", ["time", "group"])
def test_tests_for_independent_splits_are_refused_on_splits_that_are_not(kind, test):
    groups = {"n_train_groups": 40, "n_valid_groups": 10} if kind == "group" else {}
    found = verdict(sides(kind, 5, **groups), test=test)
    assert (found.verdict, found.p_value) == ("inconclusive", None)
    assert f"The test '{test}' takes splits for independent" in found.note


@pytest.mark.parametrize(
    ("groups", "folds", "seeds", "answer"),
    [
        (19, False, 1, "inconclusive"),
        (20, False, 1, "better"),
        (9, True, 1, "inconclusive"),
        (10, True, 1, "better"),
        (10, True, 2, "inconclusive"),
    ],
)
def test_few_groups_are_not_tested(groups, folds, seeds, answer):
    counts = {"n_train_groups": groups - 2, "n_valid_groups": 2}
    found = verdict(sides("group", 5, folds=folds, seeds=seeds, **counts))
    assert found.verdict == answer
    assert (f"{groups} groups are too few for a test" in found.note) == (answer == "inconclusive")


def test_the_correction_takes_the_larger_share_of_groups_and_rows():
    many_groups = Observation(1.0, None, 80, 20, kind="group", n_train_groups=5, n_valid_groups=5)
    many_rows = Observation(1.0, None, 50, 50, kind="group", n_train_groups=8, n_valid_groups=2)
    assert split_ratio([many_groups]) == split_ratio([many_rows]) == 1.0


def test_groups_limit_the_degrees_of_freedom():
    side = sides("group", 5, folds=True, n_train_groups=9, n_valid_groups=1)["a"]
    assert design_of(side, "corrected").most_freedom == 9


def test_identical_predictions_need_no_test():
    observations = sides("time", 2)
    same = observations["a"]
    assert verdict({"a": same, "b": same}).verdict == "equivalent"


def test_results_of_different_kinds_of_split_are_not_compared():
    mixed = {"a": sides("time", 5)["a"], "b": sides("random", 5)["b"]}
    assert verdict(mixed).note == "The results were made with splits of different kinds."


def test_equal_learners_are_seldom_told_apart_in_autocorrelated_time():
    """The short form of the simulation: the plain paired test tells them apart in one case out of eight."""
    edges = window_edges(600, 10)
    scores = in_time(np.random.default_rng(3), edges, 150, memory=30.0)
    cases = [compared_in_time(scores[:, case], edges) for case in range(150)]
    assert sum(case.verdict in {"better", "worse"} for case in cases) <= 0.06 * 150
    plain = [inference.paired(scores[0, case] - scores[1, case]) for case in range(150)]
    assert sum(2 * min(one.greater(0), one.less(0)) < 0.05 for one in plain) >= 0.09 * 150


def test_equal_learners_are_seldom_told_apart_by_group():
    rng = np.random.default_rng(4)
    cases = [compared_by_group(rng, np.full(20, 6), seeds=10) for _ in range(50)]
    assert sum(case.verdict in {"better", "worse"} for case in cases) <= 3


def test_a_difference_by_group_is_found():
    rng = np.random.default_rng(5)
    assert compared_by_group(rng, np.full(40, 12), seeds=10, draw=partial(of_groups, lead=2.0)).verdict == "better"
