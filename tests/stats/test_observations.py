import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from boosters_eval.core.request import Repeat
from boosters_eval.stats import inference
from boosters_eval.stats.observations import Observation, Side, by_split, find_design, split_ratio
from boosters_eval.stats.tables import compare_table, mean_interval
from learners import in_time, of_groups
from simulated_splits import compared_by_group, compared_in_time, window_edges

REPEATS = st.builds(Repeat, st.integers(0, 3), st.none() | st.integers(0, 2))
PAIRS = st.lists(st.tuples(REPEATS, st.none() | st.builds(Observation, st.floats(0, 1))), max_size=8)


@given(PAIRS)
def test_a_side_is_a_mapping_that_remembers_what_was_given_twice(pairs):
    side = Side(pairs)
    assert dict(side) == {repeat: one for repeat, one in pairs if one is not None}
    assert len(side) == len(list(side))
    assert side.repeated == (len({repeat for repeat, _ in pairs}) < len(pairs))


def test_a_repeat_without_a_value_still_counts_as_given():
    pairs = [(Repeat(1), None), (Repeat(1), Observation(0.5))]
    assert Side(pairs).repeated
    assert not Side(pairs[:1]).repeated
    assert len(Side(pairs[:1])) == 0


def test_repeats_on_one_split_belong_together(make):
    side = {Repeat(seed): make.observation(seed // 2, 0.5) for seed in range(4)}
    assert by_split(side) == [[Repeat(0), Repeat(1)], [Repeat(2), Repeat(3)]]
    unknown = {Repeat(seed): Observation(0.5) for seed in range(3)}
    assert by_split(unknown) == [[Repeat(0)], [Repeat(1)], [Repeat(2)]]


def test_the_ratio_of_the_splits_is_known_only_if_all_are(make):
    one, other = make.observation(0, 0.5), make.observation(1, 0.5, n_valid=400)
    assert split_ratio([one, other]) == pytest.approx(0.375)
    assert split_ratio([one, Observation(0.5)]) is None
    assert split_ratio([]) is None


class TestMeanInterval:
    def test_it_is_students_with_the_correction_of_the_test(self, make):
        side = make.named("a")
        values = np.asarray([one.value for one in side.values()])
        for test, overlap in (("corrected", 0.25), ("paired", 0.0), ("welch", 0.0), ("wilcoxon", 0.0)):
            half = scipy_stats.t.ppf(0.95, 5) * values.std(ddof=1) * math.sqrt(1 / 6 + overlap)
            expected = (values.mean() - half, values.mean() + half)
            assert mean_interval(side, test=test, alpha=0.1) == pytest.approx(expected)

    def test_times_are_not_corrected_for_shared_rows(self, make):
        side = make.named("a", split_digest="official")
        assert mean_interval(side, as_ratio=True) == mean_interval(side, test="paired")

    def test_repeats_on_the_same_split_are_one_observation(self, make):
        official = make.named("a", split_digest="official")
        assert mean_interval(official) is None
        two = {repeat: make.observation(repeat.seed % 2, one.value) for repeat, one in official.items()}
        means = make.side([np.mean([one.value for r, one in official.items() if r.seed % 2 == i]) for i in (0, 1)])
        assert mean_interval(two) == mean_interval(means)
        assert mean_interval(official, test="welch") == mean_interval(make.named("a"), test="welch")

    def test_it_is_the_one_that_the_table_judges_by(self, make):
        sides = {"a": make.named("a"), "b": make.named("b", 0.05, split_digest="official")}
        for test in ("corrected", "paired", "welch", "wilcoxon"):
            made = compare_table(sides, metric="rmse", higher_is_better=False, test=test, alpha=0.01)
            for name, side in sides.items():
                assert made.summaries[name].interval == mean_interval(side, test=test, alpha=0.01)

    def test_values_without_variation_have_an_interval_of_no_width(self, make):
        assert mean_interval(make.side([0.1, 0.1, 0.1])) == (0.1, 0.1)

    @pytest.mark.parametrize("values", [[], [0.5], [0.5, math.nan], [0.5, math.inf], [0.5, 1e300]])
    def test_what_bounds_no_mean_has_no_interval(self, values, make):
        assert mean_interval(make.side(values)) is None

    def test_a_repeat_that_was_given_twice_leaves_no_interval(self, make):
        assert mean_interval(Side([*make.named("a").items()] * 2)) is None


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
    assert f"The test '{test}' treats splits as independent" in found.note


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
    assert find_design(side, "corrected").most_freedom == 9


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
