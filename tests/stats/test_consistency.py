"""No verdict contradicts the interval that is printed beside it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.request import Repeat
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.tables import compare_table

ROPE = 0.01


@st.composite
def tables(draw):
    """Two to five sides whose differences are of the size of the region, some of them rounded to a row or a tie."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sides, splits = draw(st.integers(2, 5)), draw(st.integers(2, 12))
    spread, apart = (10 ** draw(st.floats(-5, -1)) for _ in range(2))
    values = 0.8 + apart * rng.normal(size=(sides, 1)) + spread * rng.normal(size=(sides, splits))
    rows = draw(st.sampled_from([None, 30, 300, 3000]))
    if rows is not None:
        values = np.clip(np.round(values * rows) / rows, 1 / rows, 1)
    resolution = draw(st.sampled_from([None, 0.0])) if rows is None else 1 / rows
    return {
        f"side{index}": {
            Repeat(seed): Observation(float(abs(value)), f"split{seed}", 800, 200, resolution=resolution)
            for seed, value in enumerate(row)
        }
        for index, row in enumerate(values)
    }


def expected(pair, *, higher_is_better):
    """The verdict that a reader of the interval would give."""
    if pair.interval is None:
        return "inconclusive"
    low, high = pair.interval
    if pair.ratio is None:
        margin, zero = ROPE * (abs(pair.mean_a) + abs(pair.mean_b)) / 2, 0.0
        inside = -margin <= low and high <= margin
    else:
        zero = 1.0
        inside = low >= 1 / (1 + ROPE) and high <= 1 + ROPE
    if inside:
        return "equivalent"
    if low <= zero <= high:
        return "inconclusive"
    return "better" if (low > zero) == higher_is_better else "worse"


@given(
    tables(),
    st.sampled_from(["corrected", "paired", "welch", "wilcoxon"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.05, 0.0125, 0.2]),
)
@settings(max_examples=120)
def test_a_verdict_never_contradicts_its_interval(sides, test, higher_is_better, as_ratio, alpha):
    table = compare_table(
        sides,
        metric="x",
        higher_is_better=higher_is_better,
        as_ratio=as_ratio,
        test=test,
        alpha=alpha,
        rope=ROPE,
    )
    for a, b in table.pairs:
        for pair in (table.get(a, b), table.get(b, a)):
            assert pair.verdict == expected(pair, higher_is_better=higher_is_better)
            if pair.verdict in {"better", "worse"}:
                assert pair.p_adjusted <= alpha * (1 + 1e-9)
            if pair.p_adjusted is not None and pair.p_adjusted > alpha * (1 + 1e-9):
                assert pair.verdict in {"equivalent", "inconclusive"}
