"""boosters behind the runner contract."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from boosters_eval.config import BoosterType, Task
from boosters_eval.runners.base import ModelFacts
from boosters_eval.runners.mapping import MAPPING
from boosters_eval.runners.rules import TableRunner, shift_categories, stopping_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import TrainData, Translation


class BoostersRunner(TableRunner):
    """Trees with constant or linear leaves, and boosted linear models."""

    name = "boosters"
    module = "boosters"
    distributions = ("boosters",)
    install = "boosters"
    min_python = (3, 12)
    editions = MAPPING["boosters"]

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """Data sets; binning happens in training."""
        valid = stopping_rows(translation, data)
        return _dataset(translation, data), None if valid is None else _dataset(translation, valid)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """A trained model."""
        import boosters  # noqa: PLC0415 (imported when a model is trained)

        linear = translation.request.booster_type is BoosterType.GBLINEAR
        model, config = (
            (boosters.GBLinearModel, boosters.GBLinearConfig) if linear else (boosters.GBDTModel, boosters.GBDTConfig)
        )
        train, valid = dataset
        native = dict(translation.native)
        threads = native.pop("n_threads")
        return model.train(train, config=config(**_objects(native)), val_set=valid, n_threads=threads)

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its (n, outputs) form, flattened where the task has one output."""
        import boosters  # noqa: PLC0415 (imported when a model is used)
        import numpy as np  # noqa: PLC0415 (not needed to start)

        request = translation.request
        rows = boosters.Dataset(shift_categories(x, request.categorical))
        predictions = np.asarray(model.predict(rows, n_threads=request.n_threads))
        return predictions if request.task in (Task.MULTICLASS, Task.QUANTILE) else predictions[:, 0]

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Trees and leaves from its JSON form; a linear model has neither."""
        trees = json.loads(bytes(model.to_json_bytes()))["model"].get("forest", {}).get("trees")
        if trees is None:
            return ModelFacts()
        # A binary tree with n leaves has n - 1 inner nodes.
        return ModelFacts(n_trees=len(trees), n_leaves=sum((tree["num_nodes"] + 1) // 2 for tree in trees))

    @classmethod
    def dump(cls, model: Any) -> bytes:
        """Its own binary format."""
        return bytes(model.to_bytes())


def _dataset(translation: Translation, data: TrainData) -> Any:
    import boosters  # noqa: PLC0415 (imported when data is there)

    categorical = translation.request.categorical
    return boosters.Dataset(
        shift_categories(data.x, categorical),
        data.y.astype("float32"),
        weights=None if data.weights is None else data.weights.astype("float32"),
        categorical_features=list(categorical) or None,
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
