"""The example of a network in PyTorch runs beside a library, on rows of `split()`: `make test-lm` has torch."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from boosters_eval import run_paper
from boosters_eval.paper import split

EXAMPLE = Path(__file__).parents[4] / "examples" / "own_model"
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: run make test-lm")


def test_the_network_learns_beside_the_library(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    shutil.copytree(EXAMPLE, tmp_path / "example")
    network, library = run_paper(tmp_path / "example" / "perceptron.yaml").targets
    assert (network.status, library.status) == ("ok", "ok"), (network.reason, library.reason)
    assert library.std_over == "splits"
    spread = split("synthetic_reg_small", 42, train=500, validation=100, test=200).y_test.std()
    assert all(0 < value < spread for value in network.values["rmse"]), "it learns more than the mean"
    assert len(set(network.values["rmse"])) == 2
