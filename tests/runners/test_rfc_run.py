"""The RFC's own way in: supports() and run() on every runner."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

import factories
from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.parameters import BoosterType
from tiny import loaded

LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")


def config(task, booster=BoosterType.GBDT, classes=None):
    return factories.config(factories.dataset(task=task, n_classes=classes), booster_type=booster)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("task", "classes", "metric"), [(Task.REGRESSION, None, "rmse"), (Task.MULTICLASS, 4, "mlogloss")]
)
def test_run_gives_a_whole_result(trainer, library, task, classes, metric):
    runner = loaded(library)
    if runner.missing():
        pytest.skip(runner.missing())
    x, y = trainer.x, trainer.labels[task]
    result = runner.run(config(task, classes=classes), x[:2_000], y[:2_000], x[2_000:], y[2_000:], seed=7)
    assert np.isfinite(result.metrics[metric])
    assert (result.library, result.seed, result.task) == (library, 7, task)
    assert result.library_version == runner.version()
    assert result.native_params == runner.translate(trainer.request(task, n_estimators=5, max_depth=3, seed=7)).native
    assert all(mark.kind != "exact" and mark.reason for mark in result.marks)
    assert result.n_trees_trained == (20 if task is Task.MULTICLASS and library != "catboost" else 5)
    assert result.n_leaves_total <= 8 * result.n_trees_trained
    assert result.train_time_s > 0
    assert result.model_size_mb > 0


def test_an_import_while_it_runs_is_a_warning(trainer):
    def fit(cls, translation, dataset):
        importlib.import_module("colorsys")
        return super(lazy, cls).fit(translation, dataset)

    lazy = type("Lazy", (loaded("sklearn"),), {"fit": classmethod(fit)})
    for known in (False, True):
        if not known:
            sys.modules.pop("colorsys", None)
        result = lazy.run(config(Task.REGRESSION), trainer.x, trainer.score, trainer.x, trainer.score, seed=1)
        assert ("modules were imported while the cell ran: colorsys" in result.warnings) != known


def test_supports_answers_and_run_refuses(trainer):
    ranking = config(Task.RANKING)
    assert not RUNNERS["sklearn"].supports(ranking)
    assert RUNNERS["lightgbm"].supports(ranking)
    linear = config(Task.REGRESSION).replace(booster_type=BoosterType.GBLINEAR)
    for refused, words in ((linear, "boosts no linear models"), (ranking, "does not accept query groups")):
        with pytest.raises(UnsupportedError, match=words):
            RUNNERS["sklearn"].run(refused, trainer.x, trainer.score, trainer.x, trainer.score, seed=1)


def test_a_library_that_is_not_here_says_how_to_get_it():
    absent = type("Absent", (RUNNERS["xgboost"],), {"module": "no_such_module", "distributions": ("no-such",)})
    assert absent.missing() == f"not installed: pip install {'xgboost' if sys.platform == 'darwin' else 'xgboost-cpu'}"
    assert absent.version() is None
    newer = type("Newer", (absent,), {"min_python": (sys.version_info.major, sys.version_info.minor + 1)})
    assert newer.missing().startswith("needs Python 3.")


def test_boosters_imports_no_package_under_the_clock():
    if RUNNERS["boosters"].missing():
        pytest.skip(RUNNERS["boosters"].missing())
    code = (
        "import sys, numpy as np\n"
        "from boosters_eval import Task, TrainingConfig\n"
        "from boosters_eval.runners import RUNNERS, FitRequest, TrainData\n"
        "runner = RUNNERS['boosters']\n"
        "runner.load()\n"
        "packages = lambda: {name.partition('.')[0] for name in sys.modules}\n"
        "before = packages()\n"
        "translation = runner.translate(FitRequest(Task.REGRESSION, TrainingConfig(n_estimators=2)))\n"
        "x = np.arange(100, dtype=np.float32).reshape(50, 2)\n"
        "dataset = runner.build(translation, TrainData(x=x, y=np.arange(50.0)))\n"
        "runner.predict(translation, runner.fit(translation, dataset), x)\n"
        "sys.exit(', '.join(sorted(packages() - before)) or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
