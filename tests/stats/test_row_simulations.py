"""What the test by rows promises. `make simulations` counts beforehand, with two processes; here it is checked."""

import pytest

from row_simulations import LOOKS, simulate_all

pytestmark = pytest.mark.slow

EQUAL = "Two equal learners are told apart by rows"
EQUAL_SPLITS = "Two equal learners are told apart without rows"


@pytest.fixture(scope="module")
def found():
    """{section: {claim: Count}}."""
    return simulate_all()


@pytest.mark.parametrize(("section", "title"), [("null", EQUAL), ("splits", f"{EQUAL_SPLITS}, disjoint splits")])
def test_equal_learners_are_told_apart_in_at_most_eight_percent_of_any_setting(section, title, found, simulated):
    for claim, each in found[section].items():
        rate = simulated(title, claim, each.count, each.n, "≤ 8 %")
        assert rate <= 0.08 + 2 * each.error, claim


def test_equal_learners_are_told_apart_in_at_most_six_percent_of_all_settings(found):
    rows, splits = found["pooled"].values()
    assert 0.02 <= rows.rate <= 0.06  # so intervals cover 94 to 98 %
    assert 0.02 <= splits.rate <= 0.06


def test_what_the_test_cannot_hold_is_written_beside_what_it_holds(found, simulated):
    for claim, each in found["limit"].items():
        simulated(f"{EQUAL}: the limit", claim, each.count, each.n, "none")
    assert found["limit"]


def test_no_pair_of_five_equal_learners_is_told_apart_in_more_than_six_percent(found, simulated):
    for name, each in found["any"].items():
        what = f"any pair of three, at any of four {name}" if name in LOOKS else f"any pair of five: {name}, 5 seeds"
        rate = simulated(EQUAL, f"{what}, RMSE", each.count, each.n, "≤ 6 %")
        assert rate <= 0.06


def test_a_true_difference_is_found_and_covered_and_not_called_equivalent(found, simulated):
    section, least = "A true difference in RMSE, LightGBM 1000, 5 seeds", iter((0.7, 0.35))
    for claim, each in found["power"].items():
        if claim.endswith("found"):
            wanted = next(least)
            assert simulated(section, claim, each.count, each.n, f"≥ {wanted:.0%}") >= wanted
        elif claim.endswith("covers"):
            assert 0.93 <= simulated(section, claim, each.count, each.n, "93 to 98 %") <= 0.98 + 2 * each.error
        elif "equivalent" in claim:
            assert simulated(section, claim, each.count, each.n, "≤ 5 %") <= 0.05
        else:
            simulated(section, claim, each.count, each.n, "none")
