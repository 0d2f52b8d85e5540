"""boosters 0.1: its table and its runner. Depth-wise growth knows only a depth, leaf-wise growth only leaves.

Its min_samples_leaf counts occupied bins and forbids, even at 1, leaves that the other libraries build: with 0 all
four agree on every row. Rows are counted by min_child_weight wherever a row's hessian is 1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import rules
from boosters_eval.runners.base import ModelFacts, lazy_module
from boosters_eval.runners.parameters import BoosterType
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

boosters = lazy_module("boosters")

_NODES = re.compile(rb'"num_nodes":(\d+)')  # of each tree; reading all of the JSON takes longer than some fits

_PINBALL = {"objective": "pinball", "quantiles": "=list(quantiles)"}

_RULES = (
    Rule("objective", {"objective": "squared"}, where="task == 'regression'"),
    Rule("objective", {"objective": "logistic"}, where="task == 'binary'"),
    Rule("objective", {"objective": "softmax", "n_classes": "=n_classes"}, where="task == 'multiclass'"),
    approximated(
        "objective",
        _PINBALL,
        "a linear model steps by the sign of the error: it needs several times the rounds of the other losses, "
        "and until then its outer quantiles lie too far out",
        "task == 'quantile' and booster == 'gblinear'",
    ),
    approximated("objective", _PINBALL, rules.OWN_QUANTILE, "task == 'quantile'"),
    *rules.common_rules("n_estimators", "learning_rate", "seed"),
    Rule("n_threads", {"n_threads": "=n_threads"}),
    rules.ON_CPU,
    Rule("growth_strategy", {"growth_strategy": "Depthwise"}, where=rules.DEPTHWISE),
    Rule("growth_strategy", {"growth_strategy": "Leafwise"}, where=rules.LEAFWISE),
    Rule("max_depth", {"max_depth": "=max_depth"}, where=rules.DEPTHWISE),
    Rule("n_leaves", {"n_leaves": "=n_leaves"}, where=rules.LEAFWISE),
    approximated(
        "min_child_weight",
        {"min_child_weight": "=min_child_weight"},
        "leaves of next to no weight are lost by rounding where the weights of rows span many orders of magnitude",
        f"weighted and min_child_weight < 0.001 and {rules.TREES}",
    ),
    Rule("min_child_weight", {"min_child_weight": "=min_child_weight"}, where=rules.TREES),
    Rule(
        "min_samples_leaf",
        {"min_child_weight": "=max(min_child_weight, min_samples_leaf)", "min_samples_leaf": 0},
        where=rules.UNIT_HESSIAN,
    ),
    unsupported(
        "min_samples_leaf", {"min_samples_leaf": 0}, rules.NO_ROWS_IN_LEAF, rules.TREES, "min_samples_leaf == 1"
    ),
    approximated(
        "l1",
        {"l1": "=l1"},
        "it shrinks the values of leaves, but the gain of a split ignores it",
        rules.TREES,
        "l1 == 0",
    ),
    Rule("l1", {"l1": "=l1"}),
    Rule("l2", {"l2": "=l2"}),
    Rule("min_gain", {"min_gain_to_split": "=min_gain / 4"}, where=rules.TREES),
    Rule("max_bins", {"max_bins": "=max_bins"}, where=rules.TREES),
    Rule("subsample", {"subsample": "=subsample"}, where=rules.TREES),
    Rule("colsample", {"colsample_bytree": "=colsample"}, where=rules.TREES),
    *rules.NO_SAMPLING,
    *rules.stopping_rules("early_stopping_rounds", joint=True),
    Rule("base_score"),
    approximated(
        "missing", {}, "a column with a single value besides missing ones is ignored", f"has_missing and {rules.TREES}"
    ),
    Rule("missing", where="has_missing"),
    rules.own_categories("more than 4 categories (max_onehot_cats) are sorted by their gradients"),
    Rule("weights", where="weighted"),
    approximated(
        "linear_leaves", {"linear_leaves": True, "linear_l2": 0.01}, rules.OWN_LINES, "booster == 'linear_trees'"
    ),
)

_EDITIONS = (
    Edition(
        library="boosters",
        since="0.1",
        until="0.2",
        rules=_RULES,
        pins=(
            Pin(
                {"update_strategy": "Sequential"},
                "coordinate descent in the order of the columns, as in XGBoost",
                "booster == 'gblinear'",
            ),
            Pin(
                {"sparsity_threshold": 1.0},
                "columns that are mostly zero are kept dense: version 0.1 trains sparse ones wrongly",
                rules.TREES,
            ),
            Pin({"verbosity": "Silent"}, rules.SILENT),
        ),
        refusals=(
            rules.NO_RANKING,
            rules.NO_DEVICE,
            Refusal(
                "categorical and (profile == 'defaults' or max_bins <= 256) "
                "and max_categories > (255 if has_missing else 256)",
                "more than 256 categories, missing being one, are trained wrongly unless max_bins is above 256",
            ),
            Refusal("booster == 'gblinear' and categorical", "a linear model would take categories as numbers"),
        ),
        defaults=(
            Pin({"linear_leaves": True}, "what was asked for", "booster == 'linear_trees'"),
            Pin({"verbosity": "Silent"}, rules.SILENT),
        ),
        nondeterministic=(
            Refusal(
                "colsample < 1 and booster != 'gblinear' and profile == 'parity'", "column sampling ignores the seed"
            ),
        ),
    ),
)


class BoostersRunner(TableRunner):
    """Trees with constant or linear leaves, and boosted linear models."""

    name = "boosters"
    module = "boosters"
    distributions = ("boosters",)
    dependencies = ("numpy", "pandas")  # the library imports pandas for its first data set
    install = "boosters"
    min_python = (3, 12)
    editions = _EDITIONS

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """Data sets, and the categories that they were encoded with; binning happens in training."""
        valid = find_stopping_rows(translation, data)
        codes = _categories(data.x, translation.request.categorical)
        return _dataset(data, codes), None if valid is None else _dataset(valid, codes), codes

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        linear = translation.request.booster_type is BoosterType.GBLINEAR
        model, config = (
            (boosters.GBLinearModel, boosters.GBLinearConfig) if linear else (boosters.GBDTModel, boosters.GBDTConfig)
        )
        train, valid, codes = dataset
        native = dict(translation.native)
        threads = native.pop("n_threads")
        return model.train(train, config=config(**_objects(native)), val_set=valid, n_threads=threads), codes

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its (n, outputs) form, flattened where the task has one output."""
        request = translation.request
        booster, codes = model
        rows = boosters.Dataset(_encode(x, codes))
        predictions = np.asarray(booster.predict(rows, n_threads=request.n_threads))
        return predictions if request.task in (Task.MULTICLASS, Task.QUANTILE) else predictions[:, 0]

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        booster, codes = model
        rows = boosters.Dataset(_encode(x, codes))
        return np.asarray(booster.predict_raw(rows, n_threads=translation.request.n_threads))

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:
        if translation.request.booster_type is BoosterType.GBLINEAR:
            raise UnsupportedError("a linear model has no splits")
        named = {"gain": boosters.ImportanceType.Gain, "split": boosters.ImportanceType.Split}
        return np.asarray(model[0].feature_importance(named[kind]))

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        if translation.request.booster_type is BoosterType.GBLINEAR:
            raise UnsupportedError("boosters does not attribute the predictions of linear models")
        booster, codes = model
        return np.asarray(booster.shap_values(boosters.Dataset(_encode(x, codes))))

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        raise UnsupportedError("boosters has no interactions of attributions")

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves from its JSON form; a linear model has neither. The size is that of its binary form."""
        n_bytes = len(model[0].to_bytes())
        trees = list(map(int, _NODES.findall(model[0].to_json_bytes())))
        if not trees:
            return ModelFacts(n_bytes=n_bytes)
        # A binary tree with n leaves has n - 1 inner nodes.
        return ModelFacts(n_trees=len(trees), n_leaves=sum((nodes + 1) // 2 for nodes in trees), n_bytes=n_bytes)


def _categories(x: NDArray[np.float32], categorical: tuple[int, ...]) -> dict[int, NDArray[np.float32]]:
    """The categories of each column that the training rows have, -1 for missing.

    Version 0.1.0 numbers the categories it meets in training but compares with the raw codes in prediction: only
    codes without gaps from 0 on, and without missing values, are understood.
    """
    return {column: np.unique(np.nan_to_num(x[:, column], nan=-1)) for column in categorical}


def _encode(x: NDArray[np.float32], codes: dict[int, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Categories by their place among those of the training rows; one that was not there comes after them all."""
    if not codes:
        return x
    encoded = x.copy()
    for column, known in codes.items():
        values = np.nan_to_num(x[:, column], nan=-1)
        place = np.searchsorted(known, values)
        encoded[:, column] = np.where(np.isin(values, known), place, len(known))
    return encoded


def _dataset(data: TrainData, codes: dict[int, NDArray[np.float32]]) -> Any:
    return boosters.Dataset(
        _encode(data.x, codes),
        data.y.astype("float32"),
        weights=None if data.weights is None else data.weights.astype("float32"),
        categorical_features=list(codes) or None,
    )


def _objects(native: dict[str, Any]) -> dict[str, Any]:
    """The library's own objects for the names that the table holds."""
    arguments = dict(native)
    kind = arguments.pop("objective")
    parts = [arguments.pop(name) for name in ("n_classes", "quantiles") if name in arguments]
    arguments["objective"] = getattr(boosters.Objective, kind)(*parts)
    enums = {
        "growth_strategy": boosters.GrowthStrategy,
        "update_strategy": boosters.GBLinearUpdateStrategy,
        "verbosity": boosters.Verbosity,
    }
    return arguments | {name: getattr(enum, arguments[name]) for name, enum in enums.items() if name in arguments}
