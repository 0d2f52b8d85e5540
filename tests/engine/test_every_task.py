"""Every library on every kind of data that it says it can do, through the real engine."""

import pytest

from boosters_eval import TrainingConfig, compare
from boosters_eval.runners import RUNNERS

FEW = TrainingConfig(n_estimators=5, max_depth=3)


@pytest.mark.parametrize(
    "dataset",
    [
        "synthetic_reg_small",
        "synthetic_bin_small",
        "synthetic_multi_small",
        "synthetic_rank_small",
        "synthetic_quantile_small",
    ],
)
@pytest.mark.parametrize("booster", ["gbdt", "gblinear", "linear_trees"])
def test_no_cell_fails_and_what_cannot_run_says_why(dataset, booster, home):
    if "rank" in dataset and booster != "gbdt":
        pytest.skip("no library ranks with another booster")
    results = compare(dataset, booster=booster, seeds=1, training=FEW)
    assert results.errors == []
    installed = {name for name in RUNNERS if RUNNERS[name].missing() is None}
    assert {r.library for r in results.results} | {u.library for u in results.unsupported} == installed
    assert all(u.reason for u in results.unsupported)
    assert all(r.warnings == () for r in results.results)


def test_categories_and_missing_values_run_on_every_library(home):
    results = compare("adult", seeds=1, training=FEW)
    assert results.errors == []
    assert len(results.results) + len(results.unsupported) == sum(r.missing() is None for r in RUNNERS.values())
    assert all(0.25 < r.metrics["logloss"] < 0.6 for r in results.results)
