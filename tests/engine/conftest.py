import os
import sys
from pathlib import Path

import numpy as np
import pytest

from boosters_eval import DatasetConfig, Task, TrainingConfig
from boosters_eval.api import Settings, prepare, run_prepared
from boosters_eval.benchmark.config import BenchmarkConfig
from boosters_eval.runners import RUNNERS

PLUGINS = Path(__file__).parent.parent / "plugins"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Runs of this test, apart from everybody else's; data is cached once for all."""
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def faulty(home, monkeypatch):
    """The library that fails on request, registered as a third party's would be."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    import faulty_runner

    for runner in (faulty_runner.FaultyRunner, faulty_runner.BrokenImportRunner):
        RUNNERS.register(runner.name, runner, replace=True)
    yield faulty_runner
    for runner in (faulty_runner.FaultyRunner, faulty_runner.BrokenImportRunner):
        RUNNERS.unregister(runner.name)
    sys.modules.pop("faulty_runner", None)


def tiny_table():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((60, 3)).astype(np.float32)
    return x, x[:, 0].astype(np.float64) + 2.0


TINY = DatasetConfig(name="tiny", task=Task.REGRESSION, loader=tiny_table)


def tiny_config(fault="none", name=None, library="faulty", **changes):
    import faulty_runner

    return BenchmarkConfig(
        name=name or f"tiny/{fault}",
        dataset=TINY,
        task=Task.REGRESSION,
        training=TrainingConfig(max_depth=faulty_runner.BY_NAME[fault]),
        libraries=(library,),
        **changes,
    )


def run_tiny(*configs, seeds=1, observer=None, **settings):
    chosen = Settings(**settings)
    return run_prepared(prepare("tiny", configs, seeds, chosen), chosen, observer)


@pytest.fixture
def program(home):
    """The environment in which the real command line knows the faulty library too."""
    env = {**os.environ, "PYTHONPATH": str(PLUGINS), "COLUMNS": "120"}
    return [sys.executable, "-m", "boosters_eval"], env
