"""CatBoost behind the runner contract."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import ModelFacts
from boosters_eval.runners.mapping import MAPPING
from boosters_eval.runners.rules import TableRunner, stopping_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, TrainData, Translation


class CatBoostRunner(TableRunner):
    """Depth-wise and leaf-wise trees. A model is a list: one booster per quantile."""

    name = "catboost"
    module = "catboost"
    distributions = ("catboost",)
    dependencies = ("numpy", "pandas", "scipy.sparse")
    install = "catboost"
    cuda_build = "pip install catboost, on Linux or Windows"
    editions = MAPPING["catboost"]

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """Pools; binning happens in training."""
        valid = stopping_rows(translation, data)
        return _pool(translation, data), None if valid is None else _pool(translation, valid)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """One booster, or one for each quantile."""
        import catboost  # noqa: PLC0415 (imported when a model is trained)

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
        """Values, scores, or probabilities."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        request = translation.request
        kind = "Probability" if request.task.is_classification else "RawFormulaVal"
        rows = _columns(translation, x)
        outputs = [booster.predict(rows, prediction_type=kind, thread_count=request.n_threads) for booster in model]
        if request.task is Task.QUANTILE:
            return np.column_stack(outputs)
        return outputs[0][:, 1] if request.task is Task.BINARY else np.asarray(outputs[0])

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Raw scores."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

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
        import numpy as np  # noqa: PLC0415 (not needed to start)

        counts = np.zeros(len(model[0].feature_names_))
        for booster in model:
            for column in _split_columns(json.loads(_saved(booster, "json"))):
                counts[column] += 1
        return counts

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        found = [_explained(translation, booster, x, "ShapValues") for booster in model]
        joined = [part[:, None, :] if part.ndim == 2 else part for part in found]
        return np.moveaxis(np.concatenate(joined, axis=1), 1, 2)

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, without those of the base value."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

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
        n_bytes = sum(len(_saved(booster, "cbm")) for booster in model)
        return ModelFacts(n_trees=trees, n_leaves=leaves, n_bytes=n_bytes, extra={"leaf_values": values})


def _saved(booster: Any, kind: str) -> bytes:
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
    import catboost  # noqa: PLC0415 (imported when a model is used)
    import numpy as np  # noqa: PLC0415 (not needed to start)

    threads, categorical = translation.request.n_threads, list(translation.request.categorical) or None
    pool = catboost.Pool(_columns(translation, x), cat_features=categorical, thread_count=threads)
    return np.asarray(booster.get_feature_importance(pool, type=kind, thread_count=threads))


def _pool(translation: Translation, data: TrainData) -> Any:
    import catboost  # noqa: PLC0415 (imported when data is there)

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
    import numpy as np  # noqa: PLC0415 (not needed to start)
    import pandas as pd  # noqa: PLC0415 (only for categories)

    columns = {i: x[:, i] for i in range(x.shape[1])}
    columns |= {i: np.nan_to_num(x[:, i], nan=-1).astype(np.int64) for i in categorical}
    return pd.DataFrame(columns, copy=False)
