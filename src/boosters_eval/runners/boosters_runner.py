"""boosters behind the runner contract."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import ModelFacts
from boosters_eval.runners.mapping import MAPPING
from boosters_eval.runners.parameters import BoosterType
from boosters_eval.runners.rules import TableRunner, stopping_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, TrainData, Translation

_NODES = re.compile(rb'"num_nodes":(\d+)')  # of each tree; reading all of the JSON takes longer than some fits


class BoostersRunner(TableRunner):
    """Trees with constant or linear leaves, and boosted linear models."""

    name = "boosters"
    module = "boosters"
    distributions = ("boosters",)
    dependencies = ("numpy", "pandas")  # the library imports pandas for its first data set
    install = "boosters"
    min_python = (3, 12)
    editions = MAPPING["boosters"]

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """Data sets, and the categories that they were encoded with; binning happens in training."""
        valid = stopping_rows(translation, data)
        codes = _categories(data.x, translation.request.categorical)
        return _dataset(data, codes), None if valid is None else _dataset(valid, codes), codes

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """A trained model."""
        import boosters  # noqa: PLC0415 (imported when a model is trained)

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
        import boosters  # noqa: PLC0415 (imported when a model is used)
        import numpy as np  # noqa: PLC0415 (not needed to start)

        request = translation.request
        booster, codes = model
        rows = boosters.Dataset(_encode(x, codes))
        predictions = np.asarray(booster.predict(rows, n_threads=request.n_threads))
        return predictions if request.task in (Task.MULTICLASS, Task.QUANTILE) else predictions[:, 0]

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Raw scores."""
        import boosters  # noqa: PLC0415 (imported when a model is used)
        import numpy as np  # noqa: PLC0415 (not needed to start)

        booster, codes = model
        rows = boosters.Dataset(_encode(x, codes))
        return np.asarray(booster.predict_raw(rows, n_threads=translation.request.n_threads))

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:
        """The sum of the gains, or the number of splits."""
        import boosters  # noqa: PLC0415 (imported when a model is used)
        import numpy as np  # noqa: PLC0415 (not needed to start)

        if translation.request.booster_type is BoosterType.GBLINEAR:
            raise UnsupportedError("a linear model has no splits")
        named = {"gain": boosters.ImportanceType.Gain, "split": boosters.ImportanceType.Split}
        return np.asarray(model[0].feature_importance(named[kind]))

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, of trees."""
        import boosters  # noqa: PLC0415 (imported when a model is used)
        import numpy as np  # noqa: PLC0415 (not needed to start)

        if translation.request.booster_type is BoosterType.GBLINEAR:
            raise UnsupportedError("boosters does not attribute the predictions of linear models")
        booster, codes = model
        return np.asarray(booster.shap_values(boosters.Dataset(_encode(x, codes))))

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        """It has none."""
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
    import numpy as np  # noqa: PLC0415 (not needed to start)

    return {column: np.unique(np.nan_to_num(x[:, column], nan=-1)) for column in categorical}


def _encode(x: NDArray[np.float32], codes: dict[int, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Categories by their place among those of the training rows; one that was not there comes after them all."""
    if not codes:
        return x
    import numpy as np  # noqa: PLC0415 (not needed to start)

    encoded = x.copy()
    for column, known in codes.items():
        values = np.nan_to_num(x[:, column], nan=-1)
        place = np.searchsorted(known, values)
        encoded[:, column] = np.where(np.isin(values, known), place, len(known))
    return encoded


def _dataset(data: TrainData, codes: dict[int, NDArray[np.float32]]) -> Any:
    import boosters  # noqa: PLC0415 (imported when data is there)

    return boosters.Dataset(
        _encode(data.x, codes),
        data.y.astype("float32"),
        weights=None if data.weights is None else data.weights.astype("float32"),
        categorical_features=list(codes) or None,
    )


def _objects(native: dict[str, Any]) -> dict[str, Any]:
    """The library's own objects for the names that the table holds."""
    import boosters  # noqa: PLC0415 (imported when a model is trained)

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
