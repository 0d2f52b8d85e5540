"""CatBoost: its table and its runner.

Symmetric trees, row sampling and random scores are switched off: they have no counterpart elsewhere.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
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
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, TrainData, Translation
else:
    np = lazy_module("numpy")

catboost = lazy_module("catboost")

_GRADIENT_SCORES = "splits are scored with gradients alone, not with hessians; the leaves are Newton steps"

_RULES = (
    Rule("objective", {"loss_function": "RMSE"}, where="task == 'regression'"),
    approximated("objective", {"loss_function": "Logloss"}, _GRADIENT_SCORES, "task == 'binary'"),
    approximated(
        "objective",
        {"loss_function": "MultiClass", "classes_count": "=n_classes"},
        "one tree per round with a vector in each leaf, not one tree per class; " + _GRADIENT_SCORES,
        "task == 'multiclass'",
    ),
    approximated(
        "objective",
        {"loss_function": "Quantile", "alpha": "=list(quantiles)"},
        rules.OWN_QUANTILE,
        "task == 'quantile'",
    ),
    approximated("objective", {"loss_function": "YetiRank"}, rules.OWN_LAMBDAS, "task == 'ranking'"),
    *rules.common_rules("iterations", "learning_rate", "random_seed"),
    approximated(
        "n_threads",
        {"thread_count": "=n_threads"},
        "training uses one thread for the device; the others only prepare the data",
        rules.CUDA,
    ),
    Rule("n_threads", {"thread_count": "=n_threads"}),
    rules.ON_CPU,
    # Left to itself it would use all devices, where the other libraries use one.
    approximated(
        "device",
        {"task_type": "GPU", "devices": "0"},
        "the order of sums is not fixed; predictions are made on the CPU",
    ),
    Rule("growth_strategy", {"grow_policy": "Depthwise"}, where="growth == 'depthwise'"),
    Rule("growth_strategy", {"grow_policy": "Lossguide"}, where="growth == 'leafwise'"),
    Rule("max_depth", {"depth": "=max_depth"}, where="growth == 'depthwise'"),
    approximated(
        "n_leaves",
        {"max_leaves": "=n_leaves", "depth": 8},
        "in ranking on the device, no leaf is deeper than 8",
        f"growth == 'leafwise' and task == 'ranking' and {rules.CUDA}",
        "n_leaves <= 9",
    ),
    approximated(
        "n_leaves",
        {"max_leaves": "=n_leaves", "depth": 16},
        "no leaf is deeper than 16",
        "growth == 'leafwise'",
        "n_leaves <= 17",
    ),
    unsupported(
        "min_child_weight",
        {},
        "there is no minimal sum of hessians",
        exact_if="min_child_weight == 0 or min_child_weight <= 1 and task in ('regression', 'quantile') "
        "and not weighted",
    ),
    approximated(
        "min_samples_leaf",
        {"min_data_in_leaf": "=min_samples_leaf"},
        "it is the smallest number of rows at which a node is split, not the smallest in a leaf",
        exact_if="min_samples_leaf == 1",
    ),
    unsupported("l1", {}, "there is no L1 penalty", exact_if="l1 == 0"),
    approximated(
        "l2",
        {"l2_leaf_reg": "=l2"},
        "the penalty is multiplied by the mean weight of a row",
        exact_if="not weighted or l2 == 0",
    ),
    unsupported("min_gain", {}, "there is no minimal gain", exact_if="min_gain == 0"),
    approximated(
        "max_bins",
        {"border_count": "=min(max_bins if has_missing else max_bins - 1, 255)"},
        "on the device a column has at most 255 borders; one with missing values spends one bin on them, and to make "
        "up for it a column without them gets one more",
        rules.CUDA,
        "not has_missing and max_bins <= 256",
    ),
    approximated(
        "max_bins",
        {"border_count": "=max_bins if has_missing else max_bins - 1"},
        "a column with missing values spends one bin on them; to make up for it a column without them gets one more",
        exact_if="not has_missing",
    ),
    Rule("subsample", {"bootstrap_type": "No"}, where="subsample == 1"),
    # On the device rows are always drawn once per tree.
    Rule("subsample", {"bootstrap_type": "Bernoulli", "subsample": "=subsample"}, where=rules.CUDA),
    Rule("subsample", {"bootstrap_type": "Bernoulli", "subsample": "=subsample", "sampling_frequency": "PerTree"}),
    unsupported("colsample", {}, "columns are not sampled on the device", rules.CUDA, "colsample == 1"),
    approximated(
        "colsample",
        {"rsm": "=colsample"},
        "columns are drawn anew for every split, not for every tree",
        exact_if="colsample == 1",
    ),
    *rules.stopping_rules("od_wait", joint=False),
    approximated(
        "base_score",
        {},
        "multiclass starts from equal probabilities, not from the class priors",
        "task == 'multiclass'",
    ),
    Rule("base_score", {"boost_from_average": True}, where="task != 'ranking'"),
    approximated(
        "missing",
        {"nan_mode": "Min"},
        "missing values go with the smallest ones; the other libraries learn at every split where they go",
        "has_missing",
    ),
    rules.own_categories(
        "categories with many values become statistics of the target, on the device others than on the CPU",
        where=f"categorical and {rules.CUDA}",
    ),
    rules.own_categories("categories with more than 2 values become statistics of the target"),
    Rule("weights", where="weighted"),
)

_EDITIONS = (
    Edition(
        library="catboost",
        since="1.2.5",
        until="1.3",
        rules=_RULES,
        pins=(
            Pin({"random_strength": 0.0}, "no random term in the scores of splits"),
            Pin({"boosting_type": "Plain"}, "ordered boosting has no counterpart elsewhere"),
            Pin({"score_function": "L2"}, "the gain of the other libraries; the default is a cosine"),
            Pin(
                {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1},
                "one Newton step per leaf",
                "task != 'quantile'",
            ),
            Pin(
                {"leaf_estimation_method": "Exact", "leaf_estimation_iterations": 1},
                "a leaf is the quantile of its rows",
                "task == 'quantile'",
            ),
            Pin({"use_best_model": False}, "all rounds are kept", "early_stopping_rounds is None"),
            Pin(
                {"od_type": "Iter", "use_best_model": True},
                "stops like the others",
                "early_stopping_rounds is not None",
            ),
            Pin({"allow_writing_files": False, "logging_level": "Silent"}, rules.SILENT),
        ),
        refusals=(
            rules.NO_GBLINEAR,
            rules.NO_LINEAR_TREES,
            Refusal("task == 'ranking' and weighted", "ranking takes weights of queries, not of rows"),
            Refusal(
                f"task == 'ranking' and {rules.CUDA} and profile == 'parity' and growth == 'depthwise' and "
                "max_depth > 8",
                "in ranking on the device, trees are at most 8 deep",
            ),
        ),
        defaults=(Pin({"allow_writing_files": False, "logging_level": "Silent"}, rules.SILENT),),
        nondeterministic=(Refusal(rules.CUDA, "the order of sums on the device is not fixed"),),
    ),
)


class CatBoostRunner(TableRunner):
    """Depth-wise and leaf-wise trees. A model is a list: one booster per quantile."""

    name = "catboost"
    module = "catboost"
    distributions = ("catboost",)
    dependencies = ("numpy", "pandas", "scipy.sparse")
    install = "catboost"
    joint = (Task.MULTICLASS, Task.REGRESSION)
    cuda_build = "pip install catboost, on Linux or Windows"
    editions = _EDITIONS

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """Pools; binning happens in training."""
        valid = find_stopping_rows(translation, data)
        return _pool(translation, data), None if valid is None else _pool(translation, valid)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """One booster, or one for each quantile."""
        train, valid = dataset
        native = dict(translation.native)
        losses = [f"Quantile:alpha={alpha!r}" for alpha in native.pop("alpha", ())] or [native["loss_function"]]
        return [
            # Even when silent it warns of a class that no row has.
            catboost.CatBoost(native | {"loss_function": loss}).fit(train, eval_set=valid, log_cerr=io.StringIO())
            for loss in losses
        ]

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        request = translation.request
        kind = "Probability" if request.task.is_classification else "RawFormulaVal"
        rows = _columns(translation, x)
        names = model[0].feature_names_
        if rows is not x and names != [str(place) for place in range(len(names))]:  # of a model of the user
            rows.columns = names
        outputs = [booster.predict(rows, prediction_type=kind, thread_count=request.n_threads) for booster in model]
        if request.task is Task.QUANTILE:
            return np.column_stack(outputs)
        return outputs[0][:, 1] if request.task is Task.BINARY else np.asarray(outputs[0])

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        rows, threads = _columns(translation, x), translation.request.n_threads
        outputs = [booster.predict(rows, prediction_type="RawFormulaVal", thread_count=threads) for booster in model]
        return np.column_stack(outputs)

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:  # noqa: ARG003
        """The number of splits, as its JSON form has them; a level of a symmetric tree is one."""
        if kind == "gain":
            raise UnsupportedError(
                "CatBoost does not keep the gain of its splits; its own PredictionValuesChange is another quantity"
            )
        counts = np.zeros(len(model[0].feature_names_))
        for booster in model:
            for column in _split_columns(json.loads(save_booster(booster, "json"))):
                counts[column] += 1
        return counts

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        found = [_explained(translation, booster, x, "ShapValues") for booster in model]
        joined = [part[:, None, :] if part.ndim == 2 else part for part in found]
        return np.moveaxis(np.concatenate(joined, axis=1), 1, 2)

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, without those of the base value."""
        found = [_explained(translation, booster, x, "ShapInteractionValues") for booster in model]
        joined = [part[:, None] if part.ndim == 3 else part for part in found]
        return np.moveaxis(np.concatenate(joined, axis=1), 1, 3)[:, :-1, :-1]

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves; a multiclass leaf holds a vector, so the values are counted too.

        The size is that of its own binary format, which it only writes to a file.
        """
        leaves = sum(int(booster.get_tree_leaf_counts().sum()) for booster in model)
        values = sum(len(booster.get_leaf_values()) for booster in model)
        trees = sum(booster.tree_count_ for booster in model)
        n_bytes = sum(len(save_booster(booster, "cbm")) for booster in model)
        return ModelFacts(n_trees=trees, n_leaves=leaves, n_bytes=n_bytes, extra={"leaf_values": values})

    @classmethod
    def effective(cls, model: Any) -> dict[str, Any]:
        return dict(model[0].get_all_params())


def save_booster(booster: Any, kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        booster.save_model(str(path), format=kind)
        return path.read_bytes()


def _split_columns(model: dict[str, Any]) -> Iterator[int]:
    """The column of each split. Statistics of several categories together belong to no single one."""
    features = model["features_info"]
    flat = {
        "FloatFeature": [item["flat_feature_index"] for item in features.get("float_features") or ()],
        "OneHotFeature": [item["flat_feature_index"] for item in features.get("categorical_features") or ()],
    }
    splits = [split for tree in model.get("oblivious_trees") or () for split in tree.get("splits") or ()]
    nodes = list(model.get("trees") or ())
    while nodes:
        node = nodes.pop()
        if "split" in node:
            splits.append(node["split"])
            nodes += [node["left"], node["right"]]
    for split in splits:
        if split["split_type"] not in flat:
            raise UnsupportedError("CatBoost splits on statistics of categories, which belong to no single column")
        place = split["float_feature_index" if split["split_type"] == "FloatFeature" else "cat_feature_index"]
        yield flat[split["split_type"]][place]


def _explained(translation: Translation, booster: Any, x: NDArray[np.float32], kind: str) -> NDArray[Any]:
    threads, categorical = translation.request.n_threads, list(translation.request.categorical) or None
    pool = catboost.Pool(_columns(translation, x), cat_features=categorical, thread_count=threads)
    return np.asarray(booster.get_feature_importance(pool, type=kind, thread_count=threads))


def _pool(translation: Translation, data: TrainData) -> Any:
    return catboost.Pool(
        _columns(translation, data.x),
        label=data.y,
        weight=data.weights,
        group_id=data.groups,
        cat_features=list(translation.request.categorical) or None,
        thread_count=translation.request.n_threads,
    )


def _columns(translation: Translation, x: NDArray[np.float32]) -> Any:
    """The rows as they are, or as a frame whose categorical columns are integers with -1 for missing."""
    categorical = translation.request.categorical
    if not categorical:
        return x
    import pandas as pd  # noqa: PLC0415 (only for categories)

    columns = {i: x[:, i] for i in range(x.shape[1])}
    columns |= {i: np.nan_to_num(x[:, i], nan=-1).astype(np.int64) for i in categorical}
    return pd.DataFrame(columns, copy=False)
