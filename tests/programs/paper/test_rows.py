"""The rows of a target: an estimator, a function and a library stand on the same splits."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from boosters_eval import run_paper
from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.paper import split

MODULE = """
import numpy as np
from boosters_eval.paper import split

class Mean:
    def __init__(self, seed, shift=0.0):
        self.shift = shift
    def fit(self, x, y):
        self.mean = y.mean() + self.shift
    def predict(self, x):
        return np.full(len(x), self.mean)

class Unfitted:
    def predict(self, x): return x

class Share(Mean):
    def predict_proba(self, x):
        return np.column_stack([1 - np.full(len(x), self.mean), np.full(len(x), self.mean)])

def constant(seed):
    rows = split()
    assert rows.seed == seed
    return rows.score([rows.y_train.mean()] * len(rows.y_test))
"""


def reproduce(folder, runs, dataset, metric, **sizes):
    (folder / "own_models.py").write_text(MODULE)
    rows = [{"name": f"R{i}", "run": run} for i, run in enumerate(runs)]
    results = [{"model": row["name"], "dataset": "D", "metrics": {metric: 0.5}} for row in rows]
    table = {"id": "T", "datasets": [{"name": "D", "use": dataset, **sizes}], "models": rows, "results": results}
    spec = {"paper": "P", "tables": [table], "reproduction_targets": {"primary": [{"table": "T"}]}, "seeds": 2}
    (folder / "b.yaml").write_text(yaml.safe_dump(spec))
    return run_paper(folder / "b.yaml").targets


@pytest.mark.usefixtures("home")
def test_an_estimator_and_a_function_have_the_same_rows(tmp_path):
    runs = [{"estimator": "own_models:Mean"}, {"callable": "own_models:constant"}]
    sizes = {"train": 100, "validation": 20, "test": 50}
    estimator, function = reproduce(tmp_path, runs, "synthetic_reg_small", "rmse", sizes=sizes)
    assert (estimator.status, function.status) == ("ok", "ok"), (estimator.reason, function.reason)
    assert estimator.values["rmse"] == function.values["rmse"]
    assert len(set(estimator.values["rmse"])) == 2
    assert (estimator.std_over, estimator.conditions["rows"]) == ("splits", "50 test")


@pytest.mark.usefixtures("home")
def test_an_estimator_of_classes_gives_probabilities_and_takes_arguments(tmp_path):
    runs = [{"estimator": "own_models:Share"}, {"estimator": "own_models:Share", "arguments": {"shift": 0.1}}]
    plain, shifted = reproduce(tmp_path, runs, "breast_cancer", "logloss")
    assert plain.values["logloss"][0] < shifted.values["logloss"][0]


@pytest.mark.usefixtures("home")
def test_an_estimator_without_fit_is_one_sentence(tmp_path):
    (found,) = reproduce(tmp_path, [{"estimator": "own_models:Unfitted"}], "breast_cancer", "logloss")
    assert "must have the method 'fit', which a Unfitted has not" in found.reason


def test_rows_are_named_outside_of_a_run():
    rows = split("breast_cancer", 42, train=100, validation=20, test=50)
    assert (rows.task, len(rows.x_train), len(rows.x_valid), len(rows.x_test)) == (Task.BINARY, 100, 20, 50)
    assert not {*rows.train.tolist()} & {*rows.test.tolist()}
    assert set(rows.score(np.full(50, 0.5))) >= {"logloss"}
    again = split("breast_cancer", 42, train=100, validation=20, test=50)
    assert (rows.test == again.test).all()
    with pytest.raises(ConfigError, match="must be given a data set and a seed"):
        split()
