"""What the statistics promise, by simulation with fixed seeds."""

import logging

import numpy as np
import pytest
from scipy import stats as scipy_stats

from boosters_eval.stats.bootstrap import compute_lower_bound_95
from boosters_eval.stats.sequential import SequentialRule
from boosters_eval.stats.significance import Criteria, compare_pair, conclude, prepare
from learners import RATIO, bold_and_cautious, equal_classifiers, equal_regressions

pytestmark = pytest.mark.slow

REPETITIONS = 3000


@pytest.mark.parametrize("splits", [3, 5, 10, 30])
def test_equal_learners_are_told_apart_in_at_most_six_percent(splits, simulated):
    rng = np.random.default_rng(1000 + splits)
    default = strict = welch = paired = 0
    for _ in range(REPETITIONS):
        a, b = equal_regressions(rng, splits)["rmse"]
        verdict = compare_pair(a, b, higher_is_better=False, test_train_ratio=RATIO)
        default += verdict.verdict in {"better", "worse"}
        strict += verdict.p_value < 0.05
        welch += scipy_stats.ttest_ind(a, b, equal_var=False).pvalue < 0.05
        paired += scipy_stats.ttest_rel(a, b).pvalue < 0.05
    section, of = "Two equal learners are told apart", f"RMSE, {splits} splits"
    assert simulated(section, f"{of}: default verdict", default, REPETITIONS, "≤ 6 %") <= 0.06
    assert simulated(section, f"{of}: corrected p below 5 %", strict, REPETITIONS, "≤ 6 %") <= 0.06
    simulated(section, f"{of}: paired t-test", paired, REPETITIONS, "none")
    if simulated(section, f"{of}: Welch's test", welch, REPETITIONS, "none") <= 0.1:
        assert splits < 10


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (equal_classifiers, "logistic regressions"),
        (bold_and_cautious, "a bold and a cautious model, skewed differences on 40 rows"),
    ],
)
def test_equal_classifiers_are_told_apart_by_their_log_loss_in_at_most_six_percent(draw, name, simulated):
    rng = np.random.default_rng(30)
    told = {3: 0, 10: 0, 30: 0}
    for _ in range(REPETITIONS):
        a, b = draw(rng, 30)
        for splits in told:
            pair = compare_pair(a[:splits], b[:splits], higher_is_better=False, test_train_ratio=RATIO)
            told[splits] += pair.verdict in {"better", "worse"}
    promised = {3: 0.08, 10: 0.08, 30: 0.06}  # few splits cannot show that they are skewed
    for splits, count in told.items():
        claim = f"log loss of {name}, {splits} splits: default verdict"
        rate = simulated("Two equal learners are told apart", claim, count, REPETITIONS, f"≤ {promised[splits]:.0%}")
        assert rate <= promised[splits]


def test_looking_repeatedly_keeps_the_error_rate(simulated):
    """Three equal learners: the chance that any look calls any of them better than another."""
    rule = SequentialRule(max_seeds=50, rope=0.0)
    rng = np.random.default_rng(77)
    wrong = naive = 0
    repetitions = 2000
    for _ in range(repetitions):
        scores = equal_regressions(rng, rule.max_seeds, learners=3)["rmse"]
        verdicts = {}
        for level in (rule.level, rule.alpha):
            criteria = Criteria(higher_is_better=False, alpha=level, rope=0.0)
            verdicts[level] = [
                pair.verdict != "inconclusive"
                for count in rule.schedule
                for pair in conclude(
                    [
                        prepare(scores[i][:count], scores[j][:count], criteria, test_train_ratio=RATIO)
                        for i, j in ((0, 1), (0, 2), (1, 2))
                    ]
                )
            ]
        wrong += any(verdicts[rule.level])
        naive += any(verdicts[rule.alpha])
    section = "Looking repeatedly (`--seeds auto`)"
    assert simulated(section, "three equal learners, any wrong verdict", wrong, repetitions, "≤ 5 %") <= 0.05
    simulated(section, "the same at 5 % per look", naive, repetitions, "none")
    assert naive > 1.5 * wrong


def test_looking_repeatedly_does_not_invent_equivalence(simulated):
    """A true difference at the edge of the region; splits correlated as the correction assumes."""
    rule = SequentialRule(max_seeds=50, rope=0.01)
    rng = np.random.default_rng(78)
    repetitions = 4000
    wrong = 0
    for _ in range(repetitions):
        shared, own = rng.normal(), rng.normal(size=rule.max_seeds)
        differences = 0.01 + 0.002 * (np.sqrt(0.2) * shared + np.sqrt(0.8) * own)
        b = np.full(rule.max_seeds, 0.995)
        for look, count in enumerate(rule.schedule):
            pair = compare_pair(
                b[:count] + differences[:count],
                b[:count],
                higher_is_better=False,
                test_train_ratio=0.25,
                alpha=rule.level,
                rope=rule.rope,
            )
            if rule.decide(look, [pair]).stop:
                break
        wrong += pair.verdict == "equivalent"
    section = "Looking repeatedly (`--seeds auto`)"
    assert simulated(section, "equivalent at the edge of the region", wrong, repetitions, "≤ 5 %") <= 0.05


@pytest.mark.parametrize(
    ("shape", "count", "expected"),
    [
        ((2, 2), 10, 0.952),
        ((8, 2), 10, 0.930),
        ((5, 1), 10, 0.926),
        ((20, 1), 10, 0.911),
        ((0.5, 0.5), 10, 0.972),
        ((2, 2), 30, 0.966),
        ((8, 2), 30, 0.963),
        ((5, 1), 30, 0.960),
        ((20, 1), 30, 0.958),
        ((0.5, 0.5), 30, 0.977),
    ],
)
def test_the_lower_bound_covers_what_it_says(shape, count, expected, simulated):
    """Around 95 % on Beta scores, least on the most skewed ones at N = 10."""
    logging.disable(logging.WARNING)
    rng = np.random.default_rng(7)
    mean = shape[0] / sum(shape)
    samples = rng.beta(*shape, size=(REPETITIONS, count))
    covered = sum(compute_lower_bound_95(row, run_id=f"{index:08x}") <= mean for index, row in enumerate(samples))
    logging.disable(logging.NOTSET)
    claim = f"Beta{shape}, N = {count}"
    rate = simulated("The lower bound lies below the true mean", claim, covered, REPETITIONS, f"{expected:.1%} ± 2 %")
    assert rate == pytest.approx(expected, abs=0.02)
