import numpy as np
import pytest

from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest, TrainData
from boosters_eval.runners.parameters import TrainingConfig

ROWS = 3_000


class Trainer:
    """Shortcuts from canonical parameters to a trained model; a library that is not here skips the test."""

    def __init__(self):
        rng = np.random.default_rng(1)
        # At most 64 integers a column: binning is then no confounder. Every column matters in every part of the
        # rows, because LightGBM gives up a column where it does not (see the test of that name).
        self.x = rng.integers(0, 64, size=(ROWS, 6)).astype(np.float32)
        z = self.x / 64
        self.score = 3 * z[:, 0] + 2 * np.sin(6 * z[:, 1]) + 3 * z[:, 2] * z[:, 3] + 2 * z[:, 4] - 2 * z[:, 5] ** 2
        self.score += 0.3 * rng.standard_normal(ROWS)
        edges = np.quantile(self.score, [0.3, 0.55, 0.8])
        self.labels = {
            Task.REGRESSION: self.score,
            Task.QUANTILE: self.score,
            Task.BINARY: (self.score > np.quantile(self.score, 0.65)).astype(np.float64),
            Task.MULTICLASS: np.digitize(self.score, edges).astype(np.float64),
            Task.RANKING: np.digitize(self.score, edges).astype(np.float64),
        }

    def request(self, task=Task.REGRESSION, *, training=None, **changes):
        fields = {name: changes.pop(name) for name in list(changes) if name in FitRequest.__dataclass_fields__}
        return FitRequest(
            task=task,
            training=(training or TrainingConfig()).replace(**changes),
            n_classes={Task.BINARY: 2, Task.MULTICLASS: 4}.get(task),
            quantiles=(0.1, 0.5, 0.9) if task is Task.QUANTILE else (),
            **fields,
        )

    def data(self, request, rows=slice(None), valid=None):
        groups = np.arange(len(self.x)) // 20
        return TrainData(
            x=self.x[rows],
            y=self.labels[request.task][rows],
            weights=np.linspace(0.5, 2, len(self.x))[rows] if request.weighted else None,
            groups=groups[rows] if request.task is Task.RANKING else None,
            valid=None if valid is None else self.data(request, valid),
        )

    def fit(self, library, request, data=None):
        runner = RUNNERS[library]
        if runner.missing():
            pytest.skip(f"{library} is {runner.missing()}")
        translation = runner.translate(request)
        model = runner.fit(translation, runner.build(translation, data or self.data(request)))
        return runner, translation, model

    def predict(self, library, request, data=None, x=None):
        runner, translation, model = self.fit(library, request, data)
        return runner.predict(translation, model, self.x if x is None else x)

    def facts(self, library, request, data=None):
        runner, _, model = self.fit(library, request, data)
        return runner.inspect(model)


@pytest.fixture(scope="session")
def trainer():
    return Trainer()
