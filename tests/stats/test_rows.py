"""Differences that rows show: the arithmetic. What it promises is simulated in test_row_simulations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.request import Part, Repeat
from boosters_eval.metrics import get
from boosters_eval.metrics.linear import linearize_rows
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.rows import LUCK, USUAL_WITHIN, RowScores, find_overlap, fit_rows, prepare_rows
from boosters_eval.stats.sequential import Yardstick, find_shift, splits_to_decide
from boosters_eval.stats.significance import Criteria, compare_pair, conclude
from boosters_eval.stats.tables import compare_table

CRITERIA = Criteria(higher_is_better=False, test="rows")


def partition(losses, *, block=0, folds=5, seed=0, units=None, weights=None, keep=None):
    """The scores of losses by row, in the folds of one partition."""
    losses = np.asarray(losses, dtype=float)
    names = np.arange(len(losses)) if units is None else np.asarray(units)
    order = np.random.default_rng([seed, block]).permutation(np.unique(names))
    fold_of = {name: place % folds for place, name in enumerate(order)}
    found = []
    for fold in range(folds if keep is None else keep):
        rows = np.flatnonzero([fold_of[name] == fold for name in names])
        mine = None if weights is None else weights[rows]
        value = float(np.average(losses[rows], weights=mine))
        mine_units = None if units is None else names[rows]
        found.append(RowScores(block, fold, folds, rows, value, losses[rows], mine_units, mine))
    return found


def compared(a, b, criteria=CRITERIA, **options):
    return conclude([prepare_rows(a, b, criteria, **options)])[0]


def two_losses(n=200, *, lead=0.0, seed=1):
    rng = np.random.default_rng(seed)
    base = rng.gamma(2.0, size=n)
    return base + 0.3 * rng.normal(size=n) + lead, base + 0.3 * rng.normal(size=n)


def test_one_partition_is_the_variance_of_rows_times_the_luck():
    a, b = two_losses()
    test = fit_rows(list(zip(partition(a), partition(b), strict=True)))
    assert test.estimate == pytest.approx((a - b).mean())
    assert test.error == pytest.approx(math.sqrt((a - b).var(ddof=1) / 200 * (1 + LUCK)), rel=0.01)
    assert (test.units, test.splits, test.within) == (200, 5, None)
    assert 100 < test.freedom < 200


def test_the_verdict_is_read_off_the_interval_like_any_other():
    a, b = two_losses(lead=0.3)
    found = compared(partition(a), partition(b))
    assert (found.verdict, found.test, found.n) == ("worse", "rows", 5)
    assert found.difference == pytest.approx((a - b).mean())
    assert found.interval[0] < found.difference < found.interval[1]
    assert found.p_value < 0.001
    assert found.min_detectable < 0.15
    back = compared(partition(b), partition(a))
    assert back.verdict == "better"
    assert back.interval == pytest.approx([-found.interval[1], -found.interval[0]])
    assert back.p_value == pytest.approx(found.p_value)


def test_rows_that_are_tested_again_are_summed_before_their_variance_is_taken():
    a, b = two_losses()
    once = fit_rows(list(zip(partition(a), partition(b), strict=True)))
    sides = [[*partition(losses), *partition(losses, block=1)] for losses in (a, b)]
    twice = fit_rows(list(zip(*sides, strict=True)))
    assert twice.within == pytest.approx(0.0, abs=1e-12)
    assert twice.error == pytest.approx(once.error, rel=1e-6)  # the models of both partitions were the same


def test_what_retraining_moves_is_known_from_rows_that_are_tested_again():
    a, b = two_losses(2000)
    rng = np.random.default_rng(3)
    for moved in (0.03, 0.3):
        other = a + moved * rng.normal(size=2000)
        sides = [[*partition(x), *partition(y, block=1)] for x, y in ((a, other), (b, b))]
        test = fit_rows(list(zip(*sides, strict=True)))
        share = moved**2 / 2 / (2 * 0.3**2 + moved**2 / 2)
        assert test.within == pytest.approx(share, rel=0.2)


@pytest.mark.parametrize(
    ("splits", "overlap"),
    [(5, 0.8 / 5), (10, (1 - USUAL_WITHIN / 2) * 1.8 / 5 - 0.1), (3, 0.8 * 0.625 / 3), (7, None)],
)
def test_disjoint_splits_have_the_luck_of_their_partition_and_not_the_overlap_of_others(splits, overlap):
    parts = [Part(number // 5, number % 5) for number in range(splits)]
    assert find_overlap(parts, 5.0) == (overlap if overlap is None else pytest.approx(overlap))


@pytest.mark.parametrize(("kept", "exposed"), [(1, 0.25), (3, 0.625), (5, 1.0)])
def test_part_of_a_partition_has_part_of_the_luck(kept, exposed):
    """The rows that are not tested are trained on by every model."""
    a, b = two_losses(1000)
    test = fit_rows(list(zip(partition(a, keep=kept), partition(b, keep=kept), strict=True)))
    rows = np.concatenate([one.rows for one in partition(a, keep=kept)])
    plain = (a - b)[rows].var(ddof=1) / len(rows)
    assert test.error**2 == pytest.approx(plain * (1 + LUCK * exposed), rel=0.01)


def test_groups_are_units():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    shift = rng.normal(size=40)[groups]
    a, b = two_losses(400)
    test = fit_rows(list(zip(partition(a + shift, units=groups), partition(b, units=groups), strict=True)))
    alone = fit_rows(list(zip(partition(a + shift), partition(b), strict=True)))
    assert test.units == 40
    assert test.freedom <= 39
    assert test.error > 2 * alone.error


@given(seed=st.integers(0, 2**32), scale=st.floats(0.01, 100.0))
@settings(max_examples=25, deadline=None)
def test_the_scale_of_weights_and_of_losses_does_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    a, b = two_losses(60, seed=seed)
    weights = rng.uniform(0.5, 2.0, size=60)

    def fit(factor, weight):
        sides = (partition(factor * losses, weights=weight * weights) for losses in (a, b))
        return fit_rows(list(zip(*sides, strict=True)))

    plain, scaled = fit(1.0, 1.0), fit(scale, 3.0)
    assert scaled.estimate == pytest.approx(scale * plain.estimate)
    assert scaled.error == pytest.approx(scale * plain.error)
    assert scaled.freedom == pytest.approx(plain.freedom)


def test_a_few_rows_that_outweigh_all_others_are_few():
    a = np.zeros(500)
    a[[3, 77, 205]] = 1.0
    test = fit_rows(list(zip(partition(a), partition(np.zeros(500)), strict=True)))
    assert 5 < test.freedom < 8


def test_a_row_of_a_count_differs_by_one_at_least():
    """No discordant row among 100 does not exclude 2 of them."""
    right = np.random.default_rng(2).random(100) < 0.9
    same = partition(right)
    found = compared(same, same, replace(CRITERIA, higher_is_better=True), resolution=1 / 20)
    assert found.verdict == "inconclusive"
    assert found.interval[1] == pytest.approx(1.99 * math.sqrt(1 + LUCK) / 100, rel=0.01)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda side: [], "Unmatched seeds"),
        (lambda side: [replace(one, rows=one.rows + 1) for one in side], "The splits differ for fold 0 of block 0"),
        (lambda side: [replace(one, value=math.nan) for one in side], "not a finite number"),
        (lambda side: side[:1], "One split only"),
        (lambda side: side[:4], "1 result(s) without a partner"),
    ],
)
def test_what_cannot_be_compared_is_said(change, sentence):
    a, b = two_losses()
    assert sentence in compared(partition(a), change(partition(b))).note


def test_an_official_split_is_one_split_whatever_the_seeds():
    a, b = two_losses()
    sides = [[replace(partition(losses)[0], block=block) for block in range(3)] for losses in (a, b + 0.01)]
    found = compared(*sides)
    assert found.p_value is None
    assert "One split only" in found.note


def test_few_groups_are_not_tested():
    a, b = two_losses(90)
    groups = np.repeat(np.arange(9), 10)
    found = compared(partition(a, units=groups), partition(b, units=groups))
    assert found.p_value is None
    assert "9 groups are too few" in found.note


def test_identical_predictions_are_equivalent():
    a, _ = two_losses()
    assert compared(partition(a), partition(a), identical=True).verdict == "equivalent"
    assert compared(partition(a), partition(a)).verdict == "equivalent"
    assert compared(partition(a), partition(a), resolution=None).verdict == "inconclusive"


def test_a_table_shares_its_level():
    a, b = two_losses(lead=0.03)
    pending = prepare_rows(partition(a), partition(b), CRITERIA)
    alone, among = conclude([pending])[0], conclude([pending] * 10)[0]
    assert alone.verdict == "worse"
    assert among.verdict == "inconclusive"
    assert among.p_adjusted == pytest.approx(10 * alone.p_value)


def test_more_splits_are_reckoned_with():
    a, b = two_losses(lead=0.06)
    test = fit_rows(list(zip(partition(a), partition(b), strict=True)))
    assert test.error_with(5) == test.error
    assert test.error_with(3) > test.error > test.error_with(10) > test.error_with(50)
    assert test.error_with(10**6) > 0.8 * test.error
    weak = replace(test, estimate=1.9 * test.error)
    assert 5 < weak.splits_to_decide(lambda count: 0.05) < 20
    assert replace(test, estimate=0.1 * test.error).splits_to_decide(lambda count: 0.05) is None


def test_margins_are_shares_of_the_error():
    """The same two models: R² of 0.98 and 0.97 is a third of the error, and never equivalent."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=4000)
    models = [y + scale * rng.normal(size=4000) for scale in (0.14, 0.17)]
    verdicts = {}
    for spec in ("rmse", "r2"):
        metric = get(spec)
        criteria = Criteria(metric.higher_is_better, "rows", best=metric.best)
        sides = []
        for model in models:
            folds = [np.arange(fold, 4000, 5) for fold in range(5)]
            made = [linearize_rows(metric, model[rows], y[rows]) for rows in folds]
            sides.append(
                [RowScores(0, k, 5, folds[k], one.value, one.contributions, None) for k, one in enumerate(made)]
            )
        verdicts[spec] = compared(*sides, criteria)
    assert {pair.verdict for pair in verdicts.values()} == {"better"}
    assert verdicts["rmse"].percent == pytest.approx(-17.6, abs=2)
    assert verdicts["r2"].percent == pytest.approx(32, abs=3)
    low, high = verdicts["r2"].percent_interval
    assert 20 < low < 32 < high < 45


def test_margins_of_splits_are_shares_of_the_error_too():
    a, b = np.array([0.99, 0.991, 0.9905]), np.array([0.9895, 0.9902, 0.9901])
    pair = {"higher_is_better": True, "test_train_ratio": 0.25}
    assert compare_pair(a, b, **pair).verdict == "equivalent"
    assert compare_pair(a, b, **pair, best=1.0).verdict == "inconclusive"
    assert compare_pair(a, b, **pair, best=1.0, margin=0.005).verdict == "equivalent"
    assert compare_pair(a, b, **pair, best=1.0).percent == pytest.approx(5.66, abs=0.1)


def side_of(losses, *, blocks=1, rows=True, **options):
    """Observations of one library whose rows are kept."""
    scores = [one for block in range(blocks) for one in partition(losses, block=block, **options)]
    return {
        Repeat(seed): Observation(one.value, f"split{seed}", 160, 40, resolution=0.0, rows=one if rows else None)
        for seed, one in enumerate(scores)
    }


def test_a_table_takes_rows_where_it_has_them_and_splits_where_not():
    a, b = two_losses(lead=0.3)
    sides = {"a": side_of(a), "b": side_of(b), "c": side_of(b - 0.001, rows=False)}
    table = compare_table(sides, metric="mae", higher_is_better=False, test="rows")
    assert table.get("a", "b").test == "rows"
    assert table.get("a", "b").verdict == "worse"
    assert table.get("b", "a").verdict == "better"
    assert table.get("a", "c").test == "corrected"
    assert table.get("a", "c").p_value > table.get("a", "b").p_value
    assert table.leader == "c"
    low, high = table.summaries["a"].interval
    assert low < a.mean() < high
    assert high - low < np.diff(table.summaries["c"].interval)[0]


def test_rows_of_splits_that_failed_are_left_out():
    a, b = two_losses(lead=0.3)
    less = {repeat: one for repeat, one in side_of(b).items() if repeat.seed < 3}
    found = compare_table({"a": side_of(a), "b": less}, metric="mae", higher_is_better=False, test="rows").get("a", "b")
    assert (found.test, found.n) == ("rows", 3)
    assert found.note == "2 result(s) without a partner on the same split are left out."


def test_rows_tell_how_many_more_seeds_are_needed():
    a, b = two_losses(lead=-0.01)
    table = compare_table({"a": side_of(a), "b": side_of(b)}, metric="mae", higher_is_better=False, test="rows")
    found = table.get("a", "b")
    assert found.verdict == "inconclusive"
    assert found.evidence.splits == 5
    assert splits_to_decide(found, 0.25) == found.evidence.splits_to_decide(lambda count: 0.05)


def test_a_search_for_a_change_takes_the_rows():
    a, b = two_losses(500)
    sides = [{Repeat(one.fold): Observation(one.value, rows=one) for one in partition(losses)} for losses in (a, b)]
    found = find_shift(*sides, Yardstick("mae", higher_is_better=False, as_ratio=False, tolerance=0.01), alpha=0.05)
    assert found.comparison.test == "rows"


def test_the_tolerance_of_a_search_is_a_share_of_the_error():
    yardstick = Yardstick("auc_roc", higher_is_better=True, as_ratio=False, tolerance=0.01, best=1.0)
    assert yardstick.margin(0.9) == pytest.approx(0.001)
