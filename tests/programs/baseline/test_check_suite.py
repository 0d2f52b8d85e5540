"""The suite `check`: harmless changes pass, and planted losses fail."""

import pytest

import check_simulations
import damaged_runners
from boosters_eval import check_baseline, record_baseline
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.evidence import RecordedSide
from boosters_eval.programs.baseline.findings import CheckRules
from boosters_eval.programs.baseline.power import describe_power, find_power
from boosters_eval.programs.baseline.sidecar import PredictionsFile, locate_sidecar
from boosters_eval.programs.benchmark.suites import CHECK_SUITE, QUICK_SUITE, SUITES
from boosters_eval.runners import RUNNERS


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    place = tmp_path_factory.mktemp("check")
    record_baseline(place / "b.json", suite="check", libraries=["lightgbm"], home=place / "home", jobs=2)
    return place


def checked(place, change):
    before = RUNNERS["lightgbm"]
    RUNNERS.register("lightgbm", change, replace=True)
    try:
        return check_baseline(place / "b.json", libraries=["lightgbm"], home=place / "home", jobs=2)
    finally:
        RUNNERS.register("lightgbm", before, replace=True)


@pytest.mark.slow
@pytest.mark.parametrize("change", damaged_runners.HARMLESS)
def test_a_harmless_change_passes(recorded, change):
    assert checked(recorded, change).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [damaged_runners.FewerTrees, damaged_runners.BaseScoreOff, damaged_runners.OneClassIgnored]
)
def test_a_planted_loss_fails(recorded, change):
    found = checked(recorded, change)
    assert found.exit_code == 1
    assert all(finding.cause for finding in found.regressions)


PARTITIONS = (
    10  # with three libraries 30 checks of each change: if no check of four changes fails, at most 2.5 % do, 95 % sure
)
SECTION = "The suite `check` fails"


@pytest.fixture(scope="module")
def trained():
    """The suite as it is, on several partitions."""
    return check_simulations.train(PARTITIONS)


def count_failures(before, after, parts, rules=None):
    """How many checks of such a part on one partition fail, and of how many."""
    cases = [(number, *part) for part in parts for number in range(PARTITIONS)]
    sides = ([check_simulations.take_check(side, *case) for side in (before, after)] for case in cases)
    return sum(check(*pair, rules).exit_code == 1 for pair in sides), len(cases)


@pytest.mark.slow
def test_harmless_changes_fail_in_at_most_5_percent_of_checks(trained, simulated):
    whole, libraries = [0, 0], [(name,) for name in check_simulations.LIBRARIES]
    for change in check_simulations.HARMLESS:
        found = count_failures(trained, check_simulations.train(PARTITIONS, change), libraries)
        simulated(SECTION, f"a harmless change, {change}", *found, "≤ 5 % of all")
        whole = [a + b for a, b in zip(whole, found, strict=True)]
    assert simulated(SECTION, "a harmless change, all of these", *whole, "≤ 5 %") <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("loss", check_simulations.LOSSES)
def test_a_planted_rise_of_5_percent_fails_in_at_least_95_percent_of_checks(trained, simulated, loss):
    worse, pairs = check_simulations.plant(trained, loss, 0.05), [key[::-1] for key in trained.results]
    for rules, how in ((CheckRules(), ""), (CheckRules(statistical=True), ", `--statistical`")):
        claim = f"a planted rise of 5 %, {loss}{how}"
        assert simulated(SECTION, claim, *count_failures(trained, worse, pairs, rules), "≥ 95 %") >= 0.95


def test_the_suites_of_the_rfc_keep_their_data_seeds_and_trees():
    quick, check = QUICK_SUITE, CHECK_SUITE
    assert [config.name for config in quick.configs] == ["california/gbdt", "breast_cancer/gbdt"]
    assert (quick.default_seeds, quick.configs[0].training.n_estimators) == (3, 50)
    assert SUITES["check"] is check
    assert check.default_seeds == 5  # a whole partition: every row is tested once


def test_a_recorded_pair_states_its_power(tmp_path):
    suite = QUICK_SUITE.replace(configs=QUICK_SUITE.configs[1:])  # breast_cancer
    made = record_baseline(tmp_path / "b.json", suite=suite, libraries=["lightgbm"], home=tmp_path / "home")
    side = RecordedSide(made.results[0], PredictionsFile(locate_sidecar(tmp_path / "b.json")))
    power = find_power(side)
    assert (power.splits, power.rows) == (3, 114)
    assert 0.02 < power.shown < 0.3  # 342 rows show a loss of 2 % seldom
    assert 0.2 < power.alarms < 0.5
    (told,) = describe_power([power])
    assert told.startswith("breast_cancer/gbdt, 3 splits of 114 rows: a loss of 2 % would be shown in ")
    assert told.endswith("no number of seeds would do, only more rows)")
    large = find_power(side, tolerance=0.5)
    assert large.shown > 0.99
    assert large.alarms < 0.01
    assert find_power(RecordedSide(made.results[0])) is None
