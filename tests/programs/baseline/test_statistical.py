"""How often `--statistical` passes what is worse, and what is not, beside the plain rule: by simulation."""

from collections import Counter

import pytest

import degradations
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.findings import CheckRules, Status
from boosters_eval.stats.sequential import SequentialRule

SECTION = "`baseline check` passes (tolerance 2 %)"
RECORDED = 30
each_count = pytest.mark.parametrize("seeds", [3, 5, 10], ids="{:02}".format)  # in this order in the table


def tally(configs, seeds, *, statistical):
    """The statuses that the configs get from each group of so many recorded seeds, by whether they fail."""
    found = Counter()
    for start in range(0, RECORDED - seeds + 1, seeds):
        sides = degradations.snapshots(configs, degradations.CELLS[start : start + seeds])
        findings = check(*sides, CheckRules(statistical=statistical)).findings
        found.update((finding.status, finding.fails) for finding in findings)
    return found


def passed(found):
    return sum(count for (_, fails), count in found.items() if not fails)


def called(found, status):
    return sum(count for (each, _), count in found.items() if each is status)


def grown(configs):
    """What each config gets from `--seeds auto`: the answer at the first look that decides it, or at the last."""
    rule = SequentialRule(max_seeds=RECORDED)
    answers = {}
    for count in rule.schedule:
        sides = degradations.snapshots(configs, degradations.CELLS[:count])
        rules = CheckRules(statistical=True, alpha=rule.level)
        for finding in check(*sides, rules).findings:
            if finding.config not in answers and (finding.decided or count == rule.schedule[-1]):
                answers[finding.config] = finding
    return Counter((finding.status, finding.fails) for finding in answers.values())


@each_count
def test_fifteen_degraded_configurations_pass_no_more_often_than_by_the_plain_rule(seeds):
    configs = degradations.degraded(15, seed=3)
    plain, tested = (tally(configs, seeds, statistical=how) for how in (False, True))
    assert passed(tested) == passed(plain) <= 0.15 * plain.total()
    assert called(tested, Status.UNDECIDED) > 0  # what used to pass


def test_adding_seeds_lets_no_degraded_configuration_pass_and_more_of_the_unchanged_ones():
    assert passed(grown(degradations.degraded(15, seed=3))) == 0
    unchanged = degradations.unchanged(30, seed=3)
    few, many = tally(unchanged, 5, statistical=True), grown(unchanged)
    assert passed(many) / many.total() > passed(few) / few.total()


@pytest.mark.slow
@each_count
def test_pass_rates(seeds, simulated):
    for kind, configs in (("degraded", degradations.degraded(200, 5)), ("unchanged", degradations.unchanged(200, 6))):
        plain, tested = (tally(configs, seeds, statistical=how) for how in (False, True))
        n, of = plain.total(), f"{kind}, {seeds} seeds"
        rate = simulated(SECTION, f"{of}: plain rule", passed(plain), n, "none")
        assert simulated(SECTION, f"{of}: `--statistical`", passed(tested), n, "as the plain rule") == rate
        if kind == "unchanged":
            wrong = called(tested, Status.REGRESSION)
            assert simulated(SECTION, f"{of}: called a regression, not undecided", wrong, n, "≤ 5 %") <= 0.05


@pytest.mark.slow
def test_pass_rates_of_adding_seeds(simulated):
    worse, same = grown(degradations.degraded(1000, 7)), grown(degradations.unchanged(1000, 8))
    of = f"`--seeds auto` up to {RECORDED}"
    assert simulated(SECTION, f"degraded, {of}", passed(worse), worse.total(), "≤ 5 %") <= 0.05
    simulated(SECTION, f"degraded, {of}: called a regression", called(worse, Status.REGRESSION), worse.total(), "none")
    simulated(SECTION, f"unchanged, {of}", passed(same), same.total(), "none")
    wrong = called(same, Status.REGRESSION)
    assert simulated(SECTION, f"unchanged, {of}: called a regression", wrong, same.total(), "≤ 5 %") <= 0.05
