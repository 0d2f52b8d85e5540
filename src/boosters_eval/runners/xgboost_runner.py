"""XGBoost: its table and its runner.

Up to 3.4 its softmax hessian is 2p(1-p); its start scores and its quantile loss changed with versions.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import rules
from boosters_eval.runners.base import ModelFacts, lazy_module
from boosters_eval.runners.parameters import BoosterType, Profile
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

xgboost = lazy_module("xgboost")

# What is passed to the training function and not to the booster.
# Of each tree, a text after its length, which is no digit.
_NODES, _DELETED = (re.compile(rb"num_%sS\D+(\d+)" % name) for name in (b"nodes", b"deleted"))
_TRAIN_ARGUMENTS = ("num_boost_round", "early_stopping_rounds")
_FOLLOWING = ("name", "num_feature", "num_trees", "rng_state", "updater", "updater_seq")  # from others, in its config

_RULES = (
    Rule("objective", {"objective": "reg:squarederror"}, where="task == 'regression'"),
    Rule("objective", {"objective": "binary:logistic"}, where="task == 'binary'"),
    Rule("objective", {"objective": "multi:softprob", "num_class": "=n_classes"}, where="task == 'multiclass'"),
    approximated(
        "objective",
        {"objective": "rank:ndcg", "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 30},
        rules.OWN_LAMBDAS,
        "task == 'ranking'",
    ),
    approximated(
        "learning_rate",
        {"eta": "=learning_rate * c"},
        "the step is corrected for the hessian 2p(1-p), but the residuals within a round cannot be: "
        "the optimum is the same, the path to it is not",
        "booster == 'gblinear' and task == 'multiclass'",
    ),
    *rules.common_rules("num_boost_round", "eta", "seed"),
    Rule("n_threads", {"nthread": "=n_threads"}),
    rules.ON_CPU,
    approximated(
        "device",
        {"device": "cuda"},
        "bins are those of the CPU, but gradients are rounded before they are summed, so that their order does not "
        "matter: of splits that gain nearly the same, another one may win",
    ),
    Rule("growth_strategy", {"grow_policy": "depthwise"}, where=rules.DEPTHWISE),
    Rule("growth_strategy", {"grow_policy": "lossguide"}, where=rules.LEAFWISE),
    Rule("max_depth", {"max_depth": "=max_depth", "max_leaves": 0}, where=rules.DEPTHWISE),
    Rule("n_leaves", {"max_leaves": "=n_leaves", "max_depth": 0}, where=rules.LEAFWISE),
    Rule("min_child_weight", {"min_child_weight": "=min_child_weight * c"}, where=rules.TREES),
    Rule("l1", {"alpha": "=l1"}),
    Rule("l2", {"lambda": "=l2 * c"}, where=rules.TREES),
    Rule("l2", {"lambda": "=l2"}),
    approximated(
        "min_gain",
        {"gamma": "=min_gain / c"},
        "no split may gain less than 0.000001: targets or residuals below about 0.01, and rows of little weight, are "
        "cut short",
        rules.TREES,
        "min_gain / c >= 0.000001",
    ),
    Rule("max_bins", {"max_bin": "=max_bins"}, where=rules.TREES),
    Rule("subsample", {"subsample": "=subsample"}, where=rules.TREES),
    Rule("colsample", {"colsample_bytree": "=colsample"}, where=rules.TREES),
    *rules.NO_SAMPLING,
    approximated(
        "early_stopping_rounds",
        {"early_stopping_rounds": "=early_stopping_rounds"},
        rules.KEEPS_ROUNDS,
        "early_stopping_rounds is not None and booster == 'gblinear'",
    ),
    *rules.stopping_rules("early_stopping_rounds", joint=True),
    Rule("missing", where="has_missing"),
    rules.own_categories(
        "4 or more categories are sorted by their gradients, and at most 64 of them (max_cat_threshold) go to one side"
    ),
    Rule("weights", where="weighted"),
)
_PINS = (
    Pin({"booster": "gbtree", "tree_method": "hist"}, "histogram trees, as in the other libraries", rules.TREES),
    Pin(
        {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "cyclic"},
        "coordinate descent in the order of the columns: the shotgun updater is not repeatable",
        "booster == 'gblinear'",
    ),
    Pin({"verbosity": 0}, rules.SILENT),
)
_DEFAULTS = (
    Pin({"num_boost_round": 100}, "the default of its estimators; its train function has 10"),
    Pin({"booster": "gblinear", "updater": "coord_descent"}, "repeatable", "booster == 'gblinear'"),
    Pin({"verbosity": 0}, rules.SILENT),
)
_REFUSALS = (
    rules.NO_LINEAR_TREES,
    Refusal("booster == 'gblinear' and task == 'quantile'", "its linear models learn nothing from the quantile loss"),
    Refusal(f"booster == 'gblinear' and {rules.CUDA}", "its linear models are trained on CPUs only"),
    Refusal("booster == 'gblinear' and categorical", "a linear model would take categories as numbers"),
    Refusal("task == 'ranking' and weighted", "ranking takes weights of queries, not of rows"),
)


_ROWS = {"min_child_weight": "=max(min_child_weight, min_samples_leaf)"}
_NO_ROWS = unsupported("min_samples_leaf", {}, rules.NO_ROWS_IN_LEAF, rules.TREES, "min_samples_leaf == 1")
_PINBALL = {"objective": "reg:quantileerror", "quantile_alpha": "=list(quantiles)"}

# Up to 3.3 a leaf of the quantile loss is the quantile of its rows, and every row's hessian is 1.
_EXACT_QUANTILE = (
    approximated("objective", _PINBALL, rules.OWN_QUANTILE, "task == 'quantile'"),
    Rule("min_samples_leaf", _ROWS, where=rules.UNIT_HESSIAN),
    _NO_ROWS,
)
_SMOOTH_QUANTILE = (
    approximated(
        "objective",
        _PINBALL,
        "from 3.4 on a leaf is a Newton step of a smoothed loss, while elsewhere it is the quantile of its rows: "
        "it needs several times as many rounds",
        "task == 'quantile'",
    ),
    Rule("min_samples_leaf", _ROWS, where=f"task == 'regression' and {rules.UNIT_HESSIAN}"),
    _NO_ROWS,
)


def _start(reason: str, exact_if: str) -> Rule:
    """The start score is the mean, the log odds or the quantile; that of several outputs came in steps."""
    return approximated("base_score", {}, reason, "task != 'ranking'", exact_if)


def _edition(since: str, until: str, *rules: Rule) -> Edition:
    return Edition(
        library="xgboost",
        since=since,
        until=until,
        rules=(*_RULES, *rules),
        pins=_PINS,
        refusals=_REFUSALS,
        defaults=_DEFAULTS,
        hessian="=2 if task == 'multiclass' else 1",
    )


_PRIORS = Rule("base_score", where="task != 'ranking'")

_EDITIONS = (
    _edition(
        "3.0",
        "3.1",
        *_EXACT_QUANTILE,
        _start(
            "all outputs start alike: from equal probabilities, or from the mean of the quantiles",
            "task in ('regression', 'binary') or task == 'quantile' and n_quantiles == 1",
        ),
    ),
    _edition(
        "3.1",
        "3.2",
        *_EXACT_QUANTILE,
        _start("multiclass starts one Newton step towards the class priors", "task != 'multiclass'"),
    ),
    _edition("3.2", "3.4", *_EXACT_QUANTILE, _PRIORS),
    _edition("3.4", "3.5", *_SMOOTH_QUANTILE, _PRIORS),
)


class XGBoostRunner(TableRunner):
    """Histogram trees and boosted linear models."""

    name = "xgboost"
    module = "xgboost"
    distributions = ("xgboost-cpu", "xgboost")
    dependencies = ("numpy", "pandas", "scipy.sparse", "sklearn.model_selection")
    install = "xgboost" if sys.platform == "darwin" else "xgboost-cpu"  # which has no wheels for macOS
    cuda_build = "install xgboost instead of xgboost-cpu"
    editions = _EDITIONS

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """A quantile matrix for trees, with a second one that shares its bins for early stopping."""
        valid = find_stopping_rows(translation, data)
        train = _matrix(translation, data)
        return train, None if valid is None else _matrix(translation, valid, train)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """A booster; one of trees is cut at its best round when it stopped early."""
        train, valid = dataset
        params = {name: value for name, value in translation.native.items() if name not in _TRAIN_ARGUMENTS}
        model = xgboost.train(
            params,
            train,
            num_boost_round=translation.native["num_boost_round"],
            evals=() if valid is None else [(valid, "valid")],
            early_stopping_rounds=translation.native.get("early_stopping_rounds"),
            verbose_eval=False,
        )
        _check_device(translation, model)
        stopped = valid is not None and not _is_linear(translation)
        return model[: model.best_iteration + 1] if stopped else model

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """In place for trees; linear models need a matrix."""
        request = translation.request
        if _is_linear(translation):
            named = model.feature_names  # of a model of the user, perhaps
            predictions = model.predict(xgboost.DMatrix(x, nthread=request.n_threads, feature_names=named))
        else:
            predictions = model.inplace_predict(x)
        return np.reshape(predictions, (len(x), -1)) if request.task is Task.QUANTILE else np.asarray(predictions)

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        return np.asarray(model.predict(_rows(translation, x), output_margin=True))

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:
        """Total gain, or the number of splits; the library leaves out columns that it does not use."""
        _refuse_linear(translation)
        found = model.get_score(importance_type={"gain": "total_gain", "split": "weight"}[kind])
        return np.array([found.get(f"f{column}", 0.0) for column in range(model.num_features())])

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, of trees and of linear models."""
        found = np.asarray(model.predict(_rows(translation, x), pred_contribs=True))
        return found if found.ndim == 2 else np.moveaxis(found, 1, 2)

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, of trees, without those of the base value."""
        _refuse_linear(translation, "interactions of a linear model cannot be computed by XGBoost")
        found = np.asarray(model.predict(_rows(translation, x), pred_interactions=True))
        found = found if found.ndim == 3 else np.moveaxis(found, 1, 3)
        return found[:, :-1, :-1]

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves from the model as UBJSON, its own format; a linear model has neither."""
        raw = bytes(model.save_raw("ubj"))
        trees, deleted = (list(map(int, pattern.findall(raw))) for pattern in (_NODES, _DELETED))
        if not trees:
            return ModelFacts(n_bytes=len(raw))
        # A binary tree with n leaves has n - 1 inner nodes.
        n_leaves = (sum(trees) - sum(deleted) + len(trees)) // 2
        return ModelFacts(n_trees=len(trees), n_leaves=n_leaves, n_bytes=len(raw))

    @classmethod
    def effective(cls, model: Any) -> dict[str, Any]:
        """Every text in its configuration, without what follows from others."""
        found: dict[str, Any] = {}
        parts = [json.loads(model.save_config())["learner"]]
        while parts:
            part = parts.pop()
            found |= {name: value for name, value in part.items() if isinstance(value, str)}
            for one in part.values():
                parts += [one] if isinstance(one, dict) else one if isinstance(one, list) else []
        return {name: value for name, value in found.items() if name not in _FOLLOWING}


def _refuse_linear(translation: Translation, reason: str = "a linear model has no splits") -> None:
    if translation.request.booster_type is BoosterType.GBLINEAR:
        raise UnsupportedError(reason)


def _is_linear(translation: Translation) -> bool:
    booster = translation.native.get("booster", translation.request.booster_type.value)
    return bool(booster == BoosterType.GBLINEAR.value)


def _takes_bins(translation: Translation) -> bool:
    """Whether trees grow from a quantile matrix, which no other method takes; before 2.0 another was the default."""
    mapped = translation.request.profile is not Profile.DEFAULTS
    return bool(translation.native.get("tree_method", "auto" if mapped else "hist") == "hist")


def _rows(translation: Translation, x: NDArray[np.float32]) -> Any:
    """Rows to be explained: only a matrix can be."""
    types = _types(translation, x)
    threads = translation.request.n_threads
    return xgboost.DMatrix(x, feature_types=types, enable_categorical=types is not None, nthread=threads)


def _types(translation: Translation, x: NDArray[np.float32]) -> list[str] | None:
    categorical = translation.request.categorical
    return ["c" if column in categorical else "q" for column in range(x.shape[1])] if categorical else None


def _check_device(translation: Translation, model: Any) -> None:
    """Where it finds no device, it trains on the CPU with no more than a warning, which is silenced."""
    wanted = translation.native.get("device", "cpu")
    if wanted == "cpu":
        return
    used = json.loads(model.save_config())["learner"]["generic_param"]["device"]
    if not used.startswith(wanted):
        raise UnsupportedError(f"XGBoost trained on the device '{used}' instead of '{wanted}'.")


def _matrix(translation: Translation, data: TrainData, ref: Any = None) -> Any:
    request = translation.request
    types = _types(translation, data.x)
    arguments: dict[str, Any] = {
        "label": data.y,
        "weight": data.weights,
        "qid": None if data.groups is None else _ascending(data.groups),
        "nthread": request.n_threads,
        "feature_types": types,
        "enable_categorical": types is not None,
    }
    if _is_linear(translation) or not _takes_bins(translation):
        return xgboost.DMatrix(data.x, **arguments)
    return xgboost.QuantileDMatrix(data.x, **arguments, max_bin=translation.native.get("max_bin", 256), ref=ref)


def _ascending(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equal ids are adjacent, but XGBoost also wants them to ascend: number the queries in the order of their rows."""
    return np.concatenate(([0], np.cumsum(np.diff(groups) != 0)))
