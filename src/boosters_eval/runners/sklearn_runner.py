"""scikit-learn's HistGradientBoosting: its table and its runner. From 1.7 on it can stop early on rows it is given."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import rules
from boosters_eval.runners.base import ModelFacts, lazy_module
from boosters_eval.runners.rules import (
    Edition,
    Pin,
    Refusal,
    Rule,
    TableRunner,
    approximated,
    find_stopping_rows,
    unsupported,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, TrainData, Translation
else:
    np = lazy_module("numpy")

ensemble = lazy_module("sklearn.ensemble")
pickle = lazy_module("pickle")
shap = lazy_module("shap")

_RULES = (
    Rule("objective", {"loss": "squared_error"}, where="task == 'regression'"),
    Rule("objective", {"loss": "log_loss"}, where="task in ('binary', 'multiclass')"),
    approximated(
        "objective", {"loss": "quantile", "quantile": "=list(quantiles)"}, rules.OWN_QUANTILE, "task == 'quantile'"
    ),
    *rules.common_rules("max_iter", "learning_rate", "random_state"),
    Rule("n_threads"),
    rules.ON_CPU,
    Rule("growth_strategy"),
    Rule("max_depth", {"max_depth": "=max_depth", "max_leaf_nodes": None}, where=rules.DEPTHWISE),
    Rule("n_leaves", {"max_leaf_nodes": "=n_leaves", "max_depth": None}, where=rules.LEAFWISE),
    unsupported(
        "min_child_weight",
        {},
        "the minimal sum of hessians is fixed at 0.001",
        exact_if="min_child_weight == 0.001 or min_child_weight <= 1 and task in ('regression', 'quantile') "
        "and not weighted",
    ),
    Rule("min_samples_leaf", {"min_samples_leaf": "=min_samples_leaf"}),
    unsupported("l1", {}, "there is no L1 penalty", exact_if="l1 == 0"),
    Rule("l2", {"l2_regularization": "=l2"}),
    unsupported("min_gain", {}, "there is no minimal gain", exact_if="min_gain == 0"),
    approximated("max_bins", {"max_bins": "=min(max_bins, 255)"}, "255 is the maximum", exact_if="max_bins <= 255"),
    unsupported("subsample", {}, "there is no row sampling", exact_if="subsample == 1"),
    approximated(
        "colsample",
        {"max_features": "=colsample"},
        "columns are drawn anew for every node, not for every tree",
        exact_if="colsample == 1",
    ),
    Rule("base_score"),
    Rule("missing", where="has_missing"),
    rules.own_categories(
        "categories are sorted by their gradients, smoothed by 10 rows; those with fewer rows in a node stay together",
        {"categorical_features": "=list(categorical)"},
    ),
    Rule("weights", where="weighted"),
)
_KEEPS = approximated(
    "early_stopping_rounds",
    {"early_stopping": True, "n_iter_no_change": "=early_stopping_rounds", "tol": 0.0, "scoring": "loss"},
    rules.KEEPS_ROUNDS,
    rules.STOPPING,
)
_CANNOT = unsupported(
    "early_stopping_rounds",
    {"early_stopping": False},
    "before version 1.7 it cannot watch rows that it is given",
    rules.STOPPING,
)


def _edition(since: str, until: str, early_stopping: Rule) -> Edition:
    return Edition(
        library="sklearn",
        since=since,
        until=until,
        rules=(*_RULES, early_stopping),
        pins=(
            Pin(
                {"early_stopping": False},
                "otherwise it holds out rows and stops by itself above 10 000 rows",
                "early_stopping_rounds is None",
            ),
            Pin({"categorical_features": None}, "no guess from the types of columns", "not categorical"),
            Pin({"verbose": 0}, rules.SILENT),
        ),
        refusals=(
            rules.NO_GBLINEAR,
            rules.NO_LINEAR_TREES,
            rules.NO_RANKING,
            rules.NO_DEVICE,
            Refusal(
                "categorical and max_categories > (255 if profile == 'defaults' else min(max_bins, 255))",
                "a column may have no more categories than max_bins, and no more than 255",
            ),
        ),
        defaults=(
            Pin({"categorical_features": "=list(categorical)"}, "what the data says", "categorical"),
            Pin({"verbose": 0}, rules.SILENT),
        ),
    )


_EDITIONS = (_edition("1.5", "1.7", _CANNOT), _edition("1.7", "1.10", _KEEPS))


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
    editions = _EDITIONS

    @classmethod
    def load(cls) -> None:
        """Import, and find the OpenMP library, so that the search is not under the clock."""
        super().load()
        _openmp()

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """The arrays themselves: the estimator bins when it is fitted."""
        find_stopping_rows(translation, data)
        return data

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """One estimator, or one for each quantile."""
        kind = (
            ensemble.HistGradientBoostingClassifier
            if translation.request.task.is_classification
            else ensemble.HistGradientBoostingRegressor
        )
        given = translation.native.get("quantile")
        quantiles = given if isinstance(given, (list, tuple)) else [given]
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
        if not translation.request.task.is_classification:
            return cls.predict(translation, model, x)
        with _openmp().limit(limits=translation.request.n_threads):
            return _of_classes(translation, model, np.asarray(model[0].decision_function(x)))

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:  # noqa: ARG003
        """The sum of the gains, or the number of splits, from the nodes, which the estimators keep to themselves."""
        nodes = np.concatenate([tree.nodes for tree in _trees(model)])
        inner = nodes[nodes["is_leaf"] == 0]
        weights = inner["gain"].astype(np.float64) if kind == "gain" else np.ones(len(inner))
        found = np.empty(model[0].n_features_in_)
        found[_column_order(model[0])] = np.bincount(inner["feature_idx"], weights, minlength=len(found))
        return found

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Those of the package shap, as the library has none."""
        parts = []
        for explainer in _explainers(translation, model):
            values = np.asarray(explainer.shap_values(x, check_additivity=False)).reshape(*x.shape, -1)
            base = np.broadcast_to(np.ravel(explainer.expected_value), (len(x), 1, values.shape[2]))
            parts.append(np.concatenate([values, base], axis=1))
        found = np.concatenate(parts, axis=2)
        return _of_classes(translation, model, found) if translation.request.task.is_classification else found

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
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
        trees = _trees(model)
        n_leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
        return ModelFacts(n_trees=len(trees), n_leaves=n_leaves, n_bytes=len(pickle.dumps(model)))

    @classmethod
    def effective(cls, model: Any) -> dict[str, Any]:
        return dict(model[0].get_params())


def _trees(model: Any) -> list[Any]:
    return [tree for estimator in model for stage in estimator._predictors for tree in stage]  # noqa: SLF001


def _column_order(estimator: Any) -> NDArray[Any]:
    """The columns of the data in the order in which the trees have them: since scikit-learn 1.4, categories first."""
    if getattr(estimator, "_preprocessor", None) is None:
        return np.arange(estimator.n_features_in_)
    return np.argsort(~estimator.is_categorical_, kind="stable")


def _explainers(translation: Translation, model: Any) -> list[Any]:
    if find_spec("shap") is None:
        raise UnsupportedError("scikit-learn has none of its own: pip install 'boosters-eval[importances]'")
    if translation.request.categorical:
        raise UnsupportedError("shap does not know the splits of scikit-learn's trees on categories")
    return [shap.TreeExplainer(estimator, feature_perturbation="tree_path_dependent") for estimator in model]


def _of_classes(translation: Translation, model: Any, found: NDArray[Any]) -> NDArray[Any]:
    """The outputs of the classes that the training rows have, each in its place among all; 0 for the others."""
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
