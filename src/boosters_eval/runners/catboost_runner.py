"""CatBoost behind the runner contract."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import ModelFacts
from boosters_eval.runners.mapping import MAPPING
from boosters_eval.runners.rules import TableRunner, stopping_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import TrainData, Translation


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
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves; a multiclass leaf holds a vector, so the values are counted too."""
        leaves = sum(int(booster.get_tree_leaf_counts().sum()) for booster in model)
        values = sum(len(booster.get_leaf_values()) for booster in model)
        trees = sum(booster.tree_count_ for booster in model)
        return ModelFacts(n_trees=trees, n_leaves=leaves, extra={"leaf_values": values})

    @classmethod
    def dump(cls, model: Any) -> bytes:
        """The model in its own binary format, which it only writes to a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.cbm")
            parts = []
            for booster in model:
                booster.save_model(str(path), format="cbm")
                parts.append(path.read_bytes())
        return b"".join(parts)


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
