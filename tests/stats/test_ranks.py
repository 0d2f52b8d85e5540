from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as reference
from scipy import stats as scipy_stats

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import Repeat
from boosters_eval.programs.importances.agreement import MARGIN, add_readings
from boosters_eval.programs.importances.records import PairAgreement
from boosters_eval.stats.inference import holm
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.ranks import (
    correlation,
    cosine,
    kendall_tau,
    rank,
    rank_splits,
    resampled_interval,
    row_distances,
    split_shares,
    tau_interval,
    tau_step,
    top_overlap,
)

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
    assert made.note.startswith("n too small: 5 data sets for ")
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


SOME = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3))
FEW = st.sampled_from([0.0, 0.5, 1.0, 2.0])  # many ties


@st.composite
def pairs_of_vectors(draw, values=SOME | FEW, least=3):
    count = draw(st.integers(least, 15))
    return tuple(np.array(draw(st.lists(values, min_size=count, max_size=count))) for _ in range(2))


@given(pairs_of_vectors())
def test_tau_is_that_of_scipy_and_undefined_where_it_has_none(pair):
    ours, theirs = kendall_tau(*pair), reference.kendalltau(*pair).statistic
    if np.isnan(theirs):
        assert ours is None
    else:
        assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    "measure", [kendall_tau, cosine, correlation, lambda a, b: top_overlap(a, b, 2)], ids=["tau", "cos", "r", "top"]
)
@given(pair=pairs_of_vectors(values=SOME | FEW), data=st.data())
def test_agreement_has_no_sides_no_order_of_features_and_ends_at_one(measure, pair, data):
    a, b = pair
    order = np.array(data.draw(st.permutations(range(len(a)))))
    found = measure(a, b)
    for other in (measure(b, a), measure(a[order], b[order])):
        assert other == (None if found is None else pytest.approx(found, abs=1e-9))
    assert found is None or -1 <= found <= 1
    assert measure(a, a) in (None, pytest.approx(1, abs=1e-12))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1.0], [1.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]),
        ([5.0, 5.0, 5.0], [5.0, 5.0, 5.0]),
        ([0.1, 0.1, 0.1], [1.0, 2.0, 3.0]),  # whose mean is not 0.1
        ([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]),
        ([np.nan, 1.0, 2.0], [1.0, 2.0, 3.0]),
        ([np.inf, 1.0, 2.0], [1.0, 2.0, 3.0]),
        ([], []),
    ],
)
def test_what_is_not_defined_is_none(a, b):
    a, b = np.array(a), np.array(b)
    assert kendall_tau(a, b) is None
    assert correlation(a, b) is None
    if len(a) != 2:
        assert top_overlap(a, b, 1) is None


def test_a_zero_vector_has_no_angle_and_all_features_have_no_top():
    assert cosine(np.zeros(3), np.ones(3)) is None
    assert top_overlap(np.arange(3.0), np.arange(3.0), 3) is None
    assert top_overlap(np.arange(3.0), np.arange(3.0), 0) is None


def test_sides_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="one shape"):
        cosine(np.ones(3), np.ones(4))


def test_equal_values_share_the_last_places_of_the_top():
    a = np.array([3.0, 1.0, 1.0, 0.0])
    assert top_overlap(a, np.array([3.0, 1.0, 0.0, 0.0]), 2) == pytest.approx(0.75)  # 1 and half of the second place
    assert top_overlap(a, np.array([0.0, 1.0, 1.0, 3.0]), 1) == 0


@given(
    arrays(np.float64, (6, 3, 2), elements=SOME | FEW),
    arrays(np.float64, (6, 3, 2), elements=SOME | FEW),
    st.floats(1e-3, 1e3),
)
def test_row_distances_are_a_share_free_of_units(a, b, scale):
    found = row_distances(a, b)
    size = np.abs(a).sum((1, 2)) + np.abs(b).sum((1, 2))
    assert (np.isnan(found) == (size == 0)).all()
    kept = found[size > 0]
    assert ((kept >= 0) & (kept <= 1 + 1e-12)).all()
    assert row_distances(b, a)[size > 0] == pytest.approx(kept)
    assert row_distances(scale * a, scale * b)[size > 0] == pytest.approx(kept)
    own = row_distances(a, a)
    assert (own[~np.isnan(own)] == 0).all()


def test_rows_that_share_nothing_are_one_apart():
    assert row_distances(np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])).tolist() == [1.0]
    assert row_distances(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])).tolist() == [1.0]
    assert row_distances(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]])).tolist() == [pytest.approx(1 / 3)]


def test_predictions_of_several_outputs_correlate_around_the_mean_of_each():
    a = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]])
    assert correlation(a, a + np.array([5.0, -7.0])) == pytest.approx(1)
    assert correlation(a, a[::-1]) == pytest.approx(-1)


@pytest.mark.parametrize("count", [3, 8, 20])
def test_a_step_of_tau_is_one_exchange_of_neighbors(count):
    ranking = np.arange(count, dtype=float)
    exchanged = ranking.copy()
    exchanged[[0, 1]] = exchanged[[1, 0]]
    assert kendall_tau(ranking, exchanged) == pytest.approx(1 - tau_step(count), rel=1e-12)


def taus(values):
    return {Repeat(s): Observation(v, f"split{s}", 800, 200) for s, v in enumerate(values)}


def test_the_interval_is_never_surer_than_one_exchange_of_neighbors_in_one_split():
    low, high = tau_interval(taus([1.0] * 5), 8)
    assert high == 1
    assert low == pytest.approx(1 - tau_step(8) / np.sqrt(5) * 2.7764 * np.sqrt(1 / 5 + 5 / 4), abs=1e-3)
    assert tau_interval(taus([0.5]), 8) is None
    assert tau_interval(taus([0.5, np.nan]), 8) is None


def test_the_interval_takes_splits_to_correlate_by_five_ninths():
    values = [0.8, 0.9, 0.7, 0.85, 0.75]
    low, high = resampled_interval(taus(values))
    assert (high - low) / 2 == pytest.approx(2.7764 * np.std(values, ddof=1) * np.sqrt(1 / 5 + 5 / 4), rel=1e-4)


def test_the_interval_of_a_library_with_itself_is_never_surer_than_one_exchange_in_one_split():
    low, high = tau_interval(taus([1.0] * 5), 8, of_pairs=True)
    assert high == 1
    assert low == pytest.approx(1 - 2 * tau_step(8) / np.sqrt(5) * 2.7764 * np.sqrt(1 / 5 + 1 / 2), abs=1e-3)


@given(st.integers(3, 7), st.data())
def test_the_shares_of_the_splits_have_the_mean_of_all_pairs(count, data):
    pairs = list(combinations(map(Repeat, range(count)), 2))
    drawn = data.draw(st.lists(st.floats(-1, 1), min_size=len(pairs), max_size=len(pairs)))
    found = split_shares(dict(zip(pairs, drawn, strict=True)))
    assert list(found) == [Repeat(split) for split in range(count)]
    assert np.mean(list(found.values())) == pytest.approx(np.mean(drawn), abs=1e-9)


def test_one_odd_split_is_told_by_its_share():
    pairs = combinations(map(Repeat, range(4)), 2)
    found = split_shares({pair: 0.2 if Repeat(3) in pair else 0.8 for pair in pairs})
    assert found[Repeat(3)] < 0 < found[Repeat(0)] == found[Repeat(1)] == found[Repeat(2)]


def test_two_splits_or_a_missing_pair_have_no_shares():
    assert split_shares({}) == split_shares({(Repeat(0), Repeat(1)): 1.0}) == {}
    assert split_shares({(Repeat(0), Repeat(1)): 1.0, (Repeat(1), Repeat(2)): 1.0}) == {}


def importances_by_two_ways(x, y):
    """What least squares and a ridge hold to be important."""
    x, y = x - x.mean(axis=0), y - y.mean()
    gram, moments = x.T @ x, x.T @ y
    ridge = len(y) * np.eye(len(gram))
    return (np.abs(np.linalg.solve(g, moments)) * x.std(axis=0) for g in (gram, gram + ridge))


class Population:
    """Rows of correlated columns, and a target that some of them tell more of than others."""

    def __init__(self, columns, noise, rng):
        self.noise, self.rng = noise, rng
        self.weights, self.mix = np.linspace(1, 0.2, columns), np.eye(columns) + 0.25

    def drawn(self, count):
        x = self.rng.normal(size=(count, len(self.weights))) @ self.mix
        return x, x @ self.weights + self.noise * self.rng.normal(size=count)


ROWS, TRAIN = 250, 200
SECTION = "Agreement of rankings over splits of one data set"


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("noise", [0.3, 10.0])
@pytest.mark.parametrize("columns", [5, 8, 20])
def test_intervals_of_resampled_rankings_hold_the_expected_tau(columns, noise, seeds, simulated):
    rng = np.random.default_rng(columns + seeds)
    population, repetitions = Population(columns, noise, rng), 500
    every = [kendall_tau(*importances_by_two_ways(*population.drawn(TRAIN))) for _ in range(10 * repetitions)]
    expected = np.mean(every)
    held = 0
    for _ in range(repetitions):
        x, y = population.drawn(ROWS)
        picks = [rng.permutation(ROWS)[:TRAIN] for _ in range(seeds)]
        found = taus([kendall_tau(*importances_by_two_ways(x[rows], y[rows])) for rows in picks])
        low, high = tau_interval(found, columns)
        held += low <= expected <= high
    claim = f"{columns} features, noise {noise:g}, {seeds} splits: the 95 % interval holds the expected tau"
    assert simulated(SECTION, claim, held, repetitions, "≥ 94 %") >= 0.94


def own_taus(population, splits):
    """The tau of each pair of splits of one data set, by least squares."""
    x, y = population.drawn(ROWS)
    picks = [population.rng.permutation(ROWS)[:TRAIN] for _ in range(splits)]
    found = {Repeat(place): next(importances_by_two_ways(x[rows], y[rows])) for place, rows in enumerate(picks)}
    return {(a, b): kendall_tau(found[a], found[b]) for a, b in combinations(found, 2)}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("noise", [0.3, 10.0])
@pytest.mark.parametrize("columns", [5, 8, 20])
def test_intervals_of_a_library_with_itself_hold_the_expected_tau(columns, noise, seeds, simulated):
    population, repetitions = Population(columns, noise, np.random.default_rng(columns + seeds)), 500
    expected = np.mean([tau for _ in range(10 * repetitions) for tau in own_taus(population, 2).values()])
    held = 0
    for _ in range(repetitions):
        low, high = tau_interval(taus(split_shares(own_taus(population, seeds)).values()), columns, of_pairs=True)
        held += low <= expected <= high
    claim = f"{columns} features, noise {noise:g}, {seeds} splits: the 95 % interval holds the tau with itself"
    assert simulated(SECTION, claim, held, repetitions, "≥ 94 %") >= 0.94


def judged(population, seeds, bias=1.0):
    """The agreement of two libraries, read beside each with itself; the second has rows of other splits, and a bias."""
    x, y = population.drawn(ROWS)
    splits = [population.rng.permutation(ROWS)[:TRAIN] for _ in range(2 * seeds)]
    found = [next(importances_by_two_ways(x[rows], y[rows])) for rows in splits]
    first, second = found[:seeds], [bias * one for one in found[seeds:]]
    between = taus([kendall_tau(a, b) for a, b in zip(first, second, strict=True)])
    low, high = tau_interval(between, x.shape[1])
    selves = [np.mean([kendall_tau(a, b) for a, b in combinations(one, 2)]) for one in (first, second)]
    mean = np.mean([seen.value for seen in between.values()])
    pair = PairAgreement(kind="gain", a="a", b="b", n=seeds, tau=mean, low=low, high=high)
    own = [PairAgreement(kind="gain", a=name, b=name, n=seeds, tau=tau) for name, tau in zip("ab", selves, strict=True)]
    return add_readings([pair, *own])[0].reading, min(selves) - mean


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("columns", [8, 20])
def test_libraries_that_differ_as_seeds_do_are_hardly_ever_said_to_agree_less(columns, seeds, simulated):
    population, repetitions = Population(columns, 10.0, np.random.default_rng(columns * seeds)), 400
    wrong = sum(judged(population, seeds)[0] == "less" for _ in range(repetitions))
    claim = f"{columns} features, {seeds} splits, libraries that differ as seeds do: less alike than with themselves"
    assert simulated(SECTION, claim, wrong, repetitions, "≤ 5 %") <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_libraries_that_differ_more_are_hardly_ever_said_to_agree_as_much(seeds, simulated):
    population, repetitions = Population(8, 0.3, np.random.default_rng(seeds)), 400
    bias = np.where(np.arange(8) % 2, 1.3, 1.0)  # three pairs of neighbors change places
    readings, short = zip(*(judged(population, seeds, bias) for _ in range(repetitions)), strict=True)
    assert np.mean(short) > MARGIN
    claim = f"8 features, {seeds} splits, libraries that differ by more than the margin: as much as with themselves"
    assert simulated(SECTION, claim, readings.count("as much"), repetitions, "≤ 5 %") <= 0.05
    claim = f"8 features, {seeds} splits, libraries that differ by more than the margin: less than with themselves"
    simulated(SECTION, claim, readings.count("less"), repetitions, "none")
