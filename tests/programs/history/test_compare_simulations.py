"""How often two equal learners are told apart in runs that share no split, by simulation with a fixed seed."""

import numpy as np
import pytest

from boosters_eval.programs.history.compare import compare_series
from histories import a_series, on_other_splits

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("splits", [3, 10, 30])
def test_equal_learners_on_other_splits_are_told_apart_in_at_most_six_percent(splits, simulated):
    """Splits of 80 to 20 correlate by about 0.2: what a learner makes of the rows is shared by its splits."""
    rng = np.random.default_rng(splits)
    repetitions, wrong = 2000, 0
    for _ in range(repetitions):
        before, after = (0.5 + 0.02 * (0.447 * rng.normal() + 0.894 * rng.normal(size=splits)) for _ in range(2))
        pair = compare_series(a_series(before.tolist()), on_other_splits(a_series(after.tolist())))
        wrong += pair.verdict in ("better", "worse")
    claim = f"two runs of {splits} splits that they do not share: verdict of `history diff`"
    assert simulated("Two equal learners are told apart", claim, wrong, repetitions, "≤ 6 %") <= 0.06
