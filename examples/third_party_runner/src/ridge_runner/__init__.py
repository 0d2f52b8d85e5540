"""Ridge regression in plain numpy behind the runner contract of boosters-eval.

The module's top level imports neither numpy nor a library under test: `boosters-eval list` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.metrics.task import Task
from boosters_eval.runners import FitRequest, ModelFacts, Runner, TrainData, Translation
from boosters_eval.runners.parameters import BoosterType, Mark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ONE_STEP = "the optimum is reached in one step: there are no rounds"


class RidgeRunner(Runner):
    """The minimizer of the squared error with an L2 penalty, in closed form."""

    name = "ridge"
    module = "numpy"
    distributions = ("numpy",)
    install = "numpy"

    @classmethod
    def unsupported(cls, request: FitRequest) -> str | None:
        """What is not refused here must work."""
        if request.booster_type is not BoosterType.GBLINEAR:
            return "it is a linear model"
        if request.task is not Task.REGRESSION:
            return "it minimizes the squared error only"
        if request.has_missing:
            return "a linear model has no value for what is missing"
        if request.categorical:
            return "a linear model would take categories as numbers"
        return None

    @classmethod
    def translate(cls, request: FitRequest) -> Translation:
        """One parameter is taken; those that cannot be are marked, with the reason."""
        training = request.training
        marks = [
            Mark(parameter="l2", kind="exact"),
            Mark(parameter="n_estimators", kind="unsupported", reason=_ONE_STEP),
            Mark(parameter="learning_rate", kind="unsupported", reason=_ONE_STEP),
            Mark(parameter="weights", kind="exact"),
        ]
        if training.l1 > 0:
            marks.append(Mark(parameter="l1", kind="unsupported", reason="there is no L1 penalty"))
        marks += [
            Mark(parameter=name, kind="unsupported", reason="all rows and all columns are used")
            for name in ("subsample", "colsample")
            if getattr(training, name) < 1
        ]
        if training.early_stopping_rounds is not None:
            marks.append(Mark(parameter="early_stopping_rounds", kind="unsupported", reason=_ONE_STEP))
        return Translation(request, {"alpha": training.l2}, tuple(marks))

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:  # noqa: ARG003 (nothing depends on it)
        """The rows in double precision, scaled by the roots of their weights; the last column is the intercept."""
        import numpy as np  # noqa: PLC0415 (imported when data is there)

        root = np.ones(len(data.y)) if data.weights is None else np.sqrt(data.weights)
        columns = np.column_stack([data.x.astype(np.float64), np.ones(len(data.y))])
        return columns * root[:, None], data.y * root

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """Solve the normal equations. The intercept is not penalized.

        As in the linear models of the other libraries the penalty is one of the mean loss: it is multiplied by the
        sum of the weights, which are the squares of the last column.
        """
        import numpy as np  # noqa: PLC0415 (imported when a model is trained)

        columns, y = dataset
        total = columns[:, -1] @ columns[:, -1]
        penalty = np.eye(columns.shape[1]) * translation.native["alpha"] * total
        penalty[-1, -1] = 0
        return np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        """Row by row: a matrix product may round a row differently when there are more rows."""
        import numpy as np  # noqa: PLC0415 (imported when a model is used)

        return np.asarray((x * model[:-1]).sum(axis=1) + model[-1])

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """No trees, but a size."""
        return ModelFacts(n_bytes=model.nbytes)
