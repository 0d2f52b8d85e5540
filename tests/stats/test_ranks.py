import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from boosters_eval.core.errors import ConfigError
from boosters_eval.stats.inference import holm
from boosters_eval.stats.ranks import rank, rank_splits

rng = np.random.default_rng(4)
DATASETS = [f"d{i}" for i in range(12)]
# a and b are alike, c is worse everywhere by a tenth; the scales of the data sets are far apart.
SCALE = dict(zip(DATASETS, 10.0 ** np.arange(-5, 7), strict=True))
SCORES = {
    name: {
        "c": SCALE[name] * 1.1 * (1 + 0.004 * rng.normal()),
        "a": SCALE[name] * (1 + 0.01 * rng.normal()),
        "b": SCALE[name] * (1 + 0.01 * rng.normal()),
    }
    for name in DATASETS
}


def test_average_ranks_are_best_first():
    made = rank(SCORES, higher_is_better=False)
    assert list(made.average_ranks)[-1] == "c"
    assert made.average_ranks["c"] == 3.0
    assert made.average_ranks["a"] + made.average_ranks["b"] == 3.0
    assert (made.n, made.left_out, made.note) == (12, (), "")


def test_pairs_are_wilcoxons_test_on_relative_differences_with_holm():
    made = rank(SCORES, higher_is_better=False)
    relative = {}
    for a, b in made.pairs:
        x, y = (np.array([SCORES[d][name] for d in DATASETS]) for name in (a, b))
        relative[a, b] = scipy_stats.wilcoxon((x - y) / ((x + y) / 2), method="exact").pvalue
    assert [pair.p_value for pair in made.pairs.values()] == pytest.approx(list(relative.values()))
    assert [pair.p_adjusted for pair in made.pairs.values()] == pytest.approx(holm(list(relative.values())))


def test_groups_hold_those_that_cannot_be_separated():
    made = rank(SCORES, higher_is_better=False)
    assert [set(group) for group in made.groups] == [{"a", "b"}, {"c"}]


def test_groups_may_overlap():
    shift = {"a": 1.0, "b": 1.02, "c": 1.04}
    noise = {name: 0.03 * np.random.default_rng(ord(name)).normal(size=12) for name in shift}
    scores = {d: {name: shift[name] + noise[name][i] for name in shift} for i, d in enumerate(DATASETS)}
    made = rank(scores, higher_is_better=False)
    assert made.groups == (("a", "b"), ("b", "c"))


def test_the_direction_may_differ_between_data_sets():
    turned = {
        name: {library: -value for library, value in row.items()} if name == "d3" else row
        for name, row in SCORES.items()
    }
    straight = rank(SCORES, higher_is_better=False)
    assert rank(turned, higher_is_better={name: name == "d3" for name in DATASETS}) == straight
    assert next(iter(rank(SCORES, higher_is_better=True).average_ranks)) == "c"


def test_fewer_than_six_data_sets_are_too_few():
    made = rank({name: SCORES[name] for name in DATASETS[:5]}, higher_is_better=False)
    assert made.note.startswith("n too small: 5 data set(s)")
    assert made.groups == ()
    assert all(pair.p_value is None and not pair.separated(0.05) for pair in made.pairs.values())
    assert made.pairs["a", "c"].wins == 5


def test_six_are_enough_for_two_libraries_but_not_for_three():
    six = {name: SCORES[name] for name in DATASETS[:6]}
    two = rank({name: {k: v for k, v in row.items() if k != "b"} for name, row in six.items()}, higher_is_better=False)
    assert (two.note, two.pairs["a", "c"].p_value) == ("", 0.03125)
    assert "at least 7 are needed" in rank(six, higher_is_better=False).note


def test_data_sets_that_some_library_lacks_are_left_out_and_named():
    scores = {**SCORES, "d0": {"a": 1.0, "b": 1.0}}
    made = rank(scores, higher_is_better=False)
    assert (made.n, made.left_out) == (11, ("d0",))


def test_equal_scores_share_a_rank_and_rounding_is_no_difference():
    scores = {name: {"a": 0.1 + 0.2, "b": 0.3} for name in DATASETS}
    made = rank(scores, higher_is_better=False)
    assert made.average_ranks == {"a": 1.5, "b": 1.5}
    assert made.pairs["a", "b"].ties == 12
    assert made.pairs["a", "b"].p_value == 1.0
    zero = rank({name: {"a": 0.0, "b": 0.0} for name in DATASETS}, higher_is_better=False)
    assert zero.pairs["a", "b"].ties == 12


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "at least two libraries"),
        ({"d": {"a": 1.0}}, "at least two libraries. Got 1"),
        ({"d": {"a": 1.0}, "e": {"b": 1.0}}, "every library has a score"),
        ({"d": {"a": 1.0, "b": float("nan")}}, "finite"),
        ({"d": {"a": 1.0, "b": 1e140}}, "finite"),  # its square is not
    ],
)
def test_what_cannot_be_ranked_is_told(scores, message):
    with pytest.raises(ConfigError, match=message):
        rank(scores, higher_is_better=False)


def test_only_the_splits_that_every_library_has_enter():
    scores = {f"d{i}": {"a": {0: 1.0, 1: 1.0, 2: 5.0, 3: 5.0}, "b": {0: 1.2, 1: 1.2}} for i in range(7)}
    made = rank_splits({**scores, "apart": {"a": {0: 1.0}, "b": {1: 1.0}}}, higher_is_better=False)
    assert made.average_ranks == {"a": 1.0, "b": 2.0}
    assert made.partial == {f"d{i}": "2 of 4" for i in range(7)}
    assert made.alpha == 0.05
    assert (made.n, made.left_out) == (7, ("apart",))


@given(
    st.lists(st.lists(st.floats(0.1, 10).map(lambda v: round(v, 3)), min_size=4, max_size=4), min_size=1, max_size=12)
)
@settings(max_examples=100, deadline=None)
def test_every_library_is_in_a_group_and_ranks_add_up(table):
    scores = {f"d{i}": dict(zip("wxyz", row, strict=True)) for i, row in enumerate(table)}
    made = rank(scores, higher_is_better=False)
    assert sum(made.average_ranks.values()) == pytest.approx(10)
    if not made.note:
        assert {name for group in made.groups for name in group} == set("wxyz")
    for pair in made.pairs.values():
        assert pair.wins + pair.losses + pair.ties == made.n
