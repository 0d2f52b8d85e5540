"""Every library on every kind of data that it says it can do, through the real engine."""

import pytest

from boosters_eval import TrainingConfig, compare
from boosters_eval.runners import RUNNERS
from tiny import shared_pool

FEW = TrainingConfig(n_estimators=5, max_depth=3)


KINDS = ["reg", "bin", "multi", "quantile"]
CASES = [("rank", "gbdt"), *((kind, booster) for kind in KINDS for booster in ("gbdt", "gblinear", "linear_trees"))]


@pytest.mark.parametrize(("kind", "booster"), CASES)
def test_no_cell_fails_and_what_cannot_run_says_why(kind, booster, home):
    results = compare(f"synthetic_{kind}_small", booster=booster, seeds=1, training=FEW, executor=shared_pool())
    assert results.errors == []
    installed = {name for name in RUNNERS if RUNNERS[name].missing() is None}
    assert {r.library for r in results.results} | {u.library for u in results.unsupported} == installed
    assert all(u.reason for u in results.unsupported)
    assert {r.library: r.warnings for r in results.results if r.warnings} == {}


def test_categories_and_missing_values_run_on_every_library(home):
    results = compare("adult", seeds=1, training=FEW, executor=shared_pool())
    assert results.errors == []
    assert len(results.results) + len(results.unsupported) == sum(r.missing() is None for r in RUNNERS.values())
    assert all(0.25 < r.metrics["logloss"] < 0.6 for r in results.results)
