"""With equal leaves no library wins by its capacity: on the suites' regression data all five are near each other."""

import numpy as np
import pytest

from boosters_eval.datasets import DATASETS, split_rows
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest, TrainData
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.parameters import GrowthStrategy, TrainingConfig

LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")


def scored(library, table, growth):
    """Its error on the held-out rows, and its leaves. One seed: two of them would only average the noise away."""
    runner = RUNNERS[library]
    (seed,) = derive_seeds(1)
    rows = split_rows(table, Task.REGRESSION, SplitSpec(), seed, None)
    training = TrainingConfig(n_estimators=50, growth_strategy=growth)
    translation = runner.translate(FitRequest(Task.REGRESSION, training, seed=seed))
    train = TrainData(np.ascontiguousarray(table.x[rows.train]), np.asarray(table.y[rows.train]))
    model = runner.fit(translation, runner.build(translation, train))
    predictions = runner.predict(translation, model, np.ascontiguousarray(table.x[rows.valid]))
    return float(np.sqrt(np.mean((predictions - table.y[rows.valid]) ** 2))), runner.inspect(model).n_leaves


@pytest.mark.parametrize("growth", GrowthStrategy)
@pytest.mark.parametrize(("name", "within"), [("synthetic_reg_medium", 0.05), ("synthetic_reg_small", 0.10)])
def test_the_errors_of_all_libraries_are_close_when_their_leaves_are_equal(name, within, growth):
    table = DATASETS[name].loader()
    found = {library: scored(library, table, growth) for library in LIBRARIES if not RUNNERS[library].missing()}
    errors, leaves = zip(*found.values(), strict=True)
    assert max(errors) / min(errors) - 1 < within, found
    assert max(leaves) / min(leaves) - 1 < 0.1, found
