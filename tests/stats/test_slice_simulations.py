"""What `where` promises of slices: few in `make test`, the full ones in `make simulations`."""

import pytest

from slice_simulations import PLANTS, Scene, count_found, count_told

NULLS = (
    Scene("regression", "LightGBM", 1000),
    Scene("regression", "LightGBM", 5000),
    Scene("regression", "XGBoost", 1000),
    Scene("regression", "tree", 1000),
    Scene("regression", "LightGBM", 2000, grouped=True),
    Scene("binary", "bagged LightGBM", 1000),
    Scene("multiclass", "LightGBM", 1000),
    Scene("ranking", "ridge", 8000),
)
FOUND = {  # with how many repetitions: more of the hardest
    Scene("regression", "LightGBM", 1000): 150,
    Scene("regression", "LightGBM", 2000): 50,
    Scene("regression", "LightGBM", 5000): 50,
    Scene("binary", "LightGBM", 5000): 50,
    Scene("multiclass", "LightGBM", 5000): 50,
}


def test_planted_slices_are_found_in_a_small_simulation():
    hits = count_found(Scene("regression", "ridge", 2000), range(8))
    assert sum(hits.values()) >= 0.8 * 8 * len(PLANTS), hits


def test_equal_learners_have_no_slice_in_a_small_simulation():
    assert count_told(Scene("regression", "ridge", 1000), range(10)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("scene", NULLS, ids=str)
def test_equal_learners_have_no_slice_in_95_percent(scene, simulated):
    told = count_told(scene, range(100))
    assert simulated("Two equal learners: a slice is told", str(scene), told, 200, "≤ 5 %") <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("scene", FOUND, ids=str)
def test_a_planted_slice_of_a_tenth_with_half_more_error_is_found_in_80_percent(scene, simulated):
    n = FOUND[scene]
    for kind, hits in count_found(scene, range(n)).items():
        assert simulated("A planted slice is found", f"{scene}: {kind}", hits, n, "≥ 80 %") >= 0.8
