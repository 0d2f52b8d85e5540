import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from boosters_eval.core.repeat import Repeat
from boosters_eval.stats.observations import Observation, Side, by_split, split_ratio
from boosters_eval.stats.tables import compare_table, mean_interval

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
