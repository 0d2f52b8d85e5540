import warnings

import numpy as np
import pytest
from fairlearn import metrics as fl
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.metrics import MetricWarning, get

FEW = settings(max_examples=20)  # fairlearn is slow
WEIGHTS = st.one_of(st.floats(1e-2, 1e2), st.integers(1, 3))


@st.composite
def problems(draw):
    """Probabilities, labels, the group of each row, weights or None."""
    n = draw(st.integers(2, 25))
    p = np.array(draw(st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.9]), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    s = np.array(draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n)))
    w = draw(st.none() | st.lists(WEIGHTS, min_size=n, max_size=n).map(np.array))
    return p, y, s, w


@pytest.mark.filterwarnings("ignore::boosters_eval.metrics.MetricWarning")
@FEW
@given(problems(), st.sampled_from([0.3, 0.5]))
def test_gaps_are_fairlearns(problem, threshold):
    p, y, s, w = problem
    d = (p >= threshold).astype(int)
    options = {"sensitive_features": s, "sample_weight": w}
    for name in ("demographic_parity", "equalized_odds"):
        for mode in ("difference", "ratio"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of its own divisions
                reference = getattr(fl, f"{name}_{mode}")(y, d, **options)
            got = get(name, threshold=threshold, mode=mode).compute(p, y, w, sensitive=s)
            assert 0 <= got <= 1
            if np.isfinite(reference):  # it says NaN where all rates are 0
                assert got == pytest.approx(reference, rel=1e-12, abs=1e-12)


def test_equal_treatment_has_no_gap():
    p, y, s = [0.9, 0.1, 0.9, 0.1], [1, 0, 1, 0], ["a", "a", "b", "b"]
    for name in ("demographic_parity", "equalized_odds"):
        assert get(name).compute(p, y, sensitive=s) == 0.0
        assert get(name, mode="ratio").compute(p, y, sensitive=s) == 1.0


def test_rates_that_are_all_zero_are_equal():
    p, y, s = [0.1, 0.1], [1, 0], [0, 1]
    assert get("demographic_parity@mode=ratio").compute(p, y, sensitive=s) == 1.0


def test_the_larger_gap_counts():
    # True positive rates 1 and 1/2, false positive rates 0 and 0.
    p, y, s = [0.9, 0.1, 0.9, 0.1, 0.1], [1, 0, 1, 1, 0], [0, 0, 1, 1, 1]
    assert get("equalized_odds").compute(p, y, sensitive=s) == 0.5
    assert get("equalized_odds@mode=ratio").compute(p, y, sensitive=s) == 0.5
    # The other way round: the false positive rates differ.
    assert get("equalized_odds").compute(p, [1 - v for v in y], sensitive=s) == 0.5


def test_one_group_has_no_gap():
    assert get("demographic_parity").compute([0.9, 0.1], [1, 0], sensitive=[True, True]) == 0.0


def test_a_group_without_rows_of_a_class_is_said():
    with pytest.warns(MetricWarning, match="rate of 0 for the group 'b', which has no rows of one class"):
        assert get("equalized_odds").compute([0.9, 0.1, 0.1], [1, 0, 0], sensitive=["a", "a", "b"]) == 1.0


def test_a_group_of_weight_zero_does_not_exist():
    p, y, s = [0.9, 0.1, 0.9, 0.1, 0.1], [1, 0, 1, 0, 1], ["a", "a", "b", "b", "c"]
    assert get("demographic_parity").compute(p, y, [1, 1, 1, 1, 0], sensitive=s) == 0.0
