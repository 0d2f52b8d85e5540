"""scikit-learn's HistGradientBoosting behind the runner contract."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import ModelFacts
from boosters_eval.runners.mapping import MAPPING
from boosters_eval.runners.rules import TableRunner, stopping_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, TrainData, Translation


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
    explaining = ("shap",)
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
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Values, or what becomes probabilities; 0 for a class that no training row has."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        if not translation.request.task.is_classification:
            return cls.predict(translation, model, x)
        with _openmp().limit(limits=translation.request.n_threads):
            return _of_classes(translation, model, np.asarray(model[0].decision_function(x)))

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:  # noqa: ARG003
        """The sum of the gains, or the number of splits, from the nodes, which the estimators keep to themselves."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        nodes = np.concatenate([tree.nodes for tree in _trees(model)])
        inner = nodes[nodes["is_leaf"] == 0]
        weights = inner["gain"].astype(np.float64) if kind == "gain" else np.ones(len(inner))
        found = np.empty(model[0].n_features_in_)
        found[_column_order(model[0])] = np.bincount(inner["feature_idx"], weights, minlength=len(found))
        return found

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Those of the package shap, as the library has none."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        parts = []
        for explainer in _explainers(translation, model):
            values = np.asarray(explainer.shap_values(x, check_additivity=False)).reshape(*x.shape, -1)
            base = np.broadcast_to(np.ravel(explainer.expected_value), (len(x), 1, values.shape[2]))
            parts.append(np.concatenate([values, base], axis=1))
        found = np.concatenate(parts, axis=2)
        return _of_classes(translation, model, found) if translation.request.task.is_classification else found

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Those of the package shap."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        columns = x.shape[1]
        found = np.concatenate(
            [
                np.asarray(explainer.shap_interaction_values(x)).reshape(len(x), columns, columns, -1)
                for explainer in _explainers(translation, model)
            ],
            axis=3,
        )
        return _of_classes(translation, model, found) if translation.request.task.is_classification else found

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves, which the estimators keep in a private attribute.

        The size is that of a pickle: the library has no format of its own.
        """
        import pickle  # noqa: PLC0415 (written for its size, never read)

        trees = _trees(model)
        n_leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
        return ModelFacts(n_trees=len(trees), n_leaves=n_leaves, n_bytes=len(pickle.dumps(model)))


def _trees(model: Any) -> list[Any]:
    return [tree for estimator in model for stage in estimator._predictors for tree in stage]  # noqa: SLF001


def _column_order(estimator: Any) -> NDArray[Any]:
    """The columns of the data in the order in which the trees have them: since scikit-learn 1.4, categories first."""
    import numpy as np  # noqa: PLC0415 (not needed to start)

    if getattr(estimator, "_preprocessor", None) is None:
        return np.arange(estimator.n_features_in_)
    return np.argsort(~estimator.is_categorical_, kind="stable")


def _explainers(translation: Translation, model: Any) -> list[Any]:
    if find_spec("shap") is None:
        raise UnsupportedError("scikit-learn has none of its own: pip install 'boosters-eval[importances]'")
    if translation.request.categorical:
        raise UnsupportedError("shap does not know the splits of scikit-learn's trees on categories")
    import shap  # noqa: PLC0415 (an extra, large)

    return [shap.TreeExplainer(estimator, feature_perturbation="tree_path_dependent") for estimator in model]


def _of_classes(translation: Translation, model: Any, found: NDArray[Any]) -> NDArray[Any]:
    """The outputs of the classes that the training rows have, each in its place among all; 0 for the others."""
    import numpy as np  # noqa: PLC0415 (not needed to start)

    request, classes = translation.request, model[0].classes_.astype(np.int64)
    if request.task is Task.BINARY:
        return found
    two = len(classes) == 2  # then there is only the score of the second one
    found = found[..., None] if two and found.ndim == 1 else found
    every = np.zeros((*found.shape[:-1], request.n_classes or len(classes)))
    every[..., classes[1:] if two else classes] = found
    return every


@lru_cache(maxsize=1)
def _openmp() -> Any:
    """The one knob for its threads; finding it takes milliseconds, turning it microseconds."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 (not needed to start)

    return ThreadpoolController().select(user_api="openmp")
