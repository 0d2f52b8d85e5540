"""scikit-learn's HistGradientBoosting behind the runner contract."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import ModelFacts
from boosters_eval.runners.mapping import MAPPING
from boosters_eval.runners.rules import TableRunner, stopping_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import TrainData, Translation


class SklearnRunner(TableRunner):
    """Histogram trees. A model is a list: one estimator per quantile."""

    name = "sklearn"
    module = "sklearn.ensemble"
    distributions = ("scikit-learn",)
    dependencies = (
        "numpy",
        "pandas",
        "scipy.sparse",
        "sklearn.model_selection",
        "pickle",
        "threadpoolctl",
        "multiprocessing.dummy",
    )
    install = "scikit-learn"
    editions = MAPPING["sklearn"]

    @classmethod
    def load(cls) -> None:
        """Import, and find the OpenMP library, so that the search is not under the clock."""
        super().load()
        _openmp()

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """The arrays themselves: the estimator bins when it is fitted."""
        stopping_rows(translation, data)
        return data

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """One estimator, or one for each quantile."""
        from sklearn import ensemble  # noqa: PLC0415 (imported when a model is trained)

        kind = (
            ensemble.HistGradientBoostingClassifier
            if translation.request.task.is_classification
            else ensemble.HistGradientBoostingRegressor
        )
        quantiles = translation.native.get("quantile", [None])
        valid = dataset.valid if translation.native.get("early_stopping") is True else None
        watched = {} if valid is None else {"X_val": valid.x, "y_val": valid.y, "sample_weight_val": valid.weights}
        models = []
        for quantile in quantiles:
            native = translation.native if quantile is None else translation.native | {"quantile": quantile}
            with _openmp().limit(limits=translation.request.n_threads):
                models.append(kind(**native).fit(dataset.x, dataset.y, sample_weight=dataset.weights, **watched))
        return models

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Values, or probabilities."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        task = translation.request.task
        with _openmp().limit(limits=translation.request.n_threads):
            if task is Task.QUANTILE:
                return np.column_stack([estimator.predict(x) for estimator in model])
            if task is Task.REGRESSION:
                return np.asarray(model[0].predict(x))
            known = model[0].predict_proba(x)
        # A class that no training row has gets no column from the library.
        probabilities = np.zeros((len(x), translation.request.n_classes or 2))
        probabilities[:, model[0].classes_.astype(np.int64)] = known
        return probabilities[:, 1] if task is Task.BINARY else probabilities

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves, which the estimators keep in a private attribute."""
        trees = [tree for estimator in model for stage in estimator._predictors for tree in stage]  # noqa: SLF001
        return ModelFacts(n_trees=len(trees), n_leaves=sum(tree.get_n_leaf_nodes() for tree in trees))

    @classmethod
    def dump(cls, model: Any) -> bytes:
        """A pickle, only ever measured: the library has no format of its own."""
        import pickle  # noqa: PLC0415 (written for its size, never read)

        return pickle.dumps(model)


@lru_cache(maxsize=1)
def _openmp() -> Any:
    """The one knob for its threads; finding it takes milliseconds, turning it microseconds."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 (not needed to start)

    return ThreadpoolController().select(user_api="openmp")
