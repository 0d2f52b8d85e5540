"""LightGBM behind the runner contract."""

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

_LEAVES = re.compile(r"^num_leaves=(\d+)$", re.MULTILINE)
# What is passed to the training function and not to the booster.
_TRAIN_ARGUMENTS = ("num_iterations", "early_stopping_rounds", "alpha")


class LightGBMRunner(TableRunner):
    """Leaf-wise histogram trees, with constant or linear leaves. A model is a list: one booster per quantile."""

    name = "lightgbm"
    module = "lightgbm"
    distributions = ("lightgbm",)
    dependencies = ("numpy", "pandas", "scipy.sparse", "sklearn.model_selection")
    install = "lightgbm"
    cuda_build = "pip install --no-binary lightgbm --config-settings=cmake.define.USE_CUDA=ON lightgbm"
    editions = MAPPING["lightgbm"]

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """A constructed data set: left to itself the library would bin inside training."""
        valid = stopping_rows(translation, data)
        train = _dataset(translation, data)
        return train, None if valid is None else _dataset(translation, valid, train)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """One booster, or one for each quantile."""
        alphas = translation.native.get("alpha", [None])
        return [_train(translation, dataset, {} if alpha is None else {"alpha": alpha}) for alpha in alphas]

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Probabilities, scores or quantiles; the best round is the last that is used."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        request = translation.request
        outputs = [booster.predict(x, num_threads=request.n_threads) for booster in model]
        return np.column_stack(outputs) if request.task is Task.QUANTILE else outputs[0]

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Raw scores, up to the best round."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        threads = translation.request.n_threads
        return np.column_stack([booster.predict(x, raw_score=True, num_threads=threads) for booster in model])

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:  # noqa: ARG003
        """Total gain, or the number of splits, up to the best round."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        return np.asarray(sum(np.asarray(booster.feature_importance(kind), dtype=np.float64) for booster in model))

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, up to the best round: for each class the columns and the base value, one class after another."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        request = translation.request
        if request.booster_type is BoosterType.LINEAR_TREES:
            raise UnsupportedError("LightGBM does not attribute the predictions of linear trees")
        parts = [booster.predict(x, pred_contrib=True, num_threads=request.n_threads) for booster in model]
        found = np.concatenate([part.reshape(len(x), -1, x.shape[1] + 1) for part in parts], axis=1)
        return np.moveaxis(found, 1, 2)

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        """It has none."""
        raise UnsupportedError("LightGBM has no interactions of attributions")

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Leaves and size from the text form of the model, its own format, up to the best round."""
        text = "".join(booster.model_to_string() for booster in model)
        leaves = [int(count) for count in _LEAVES.findall(text)]
        return ModelFacts(n_trees=len(leaves), n_leaves=sum(leaves), n_bytes=len(text.encode()))


def _params(translation: Translation) -> dict[str, Any]:
    return {name: value for name, value in translation.native.items() if name not in _TRAIN_ARGUMENTS}


def _dataset(translation: Translation, data: TrainData, reference: Any = None) -> Any:
    import lightgbm  # noqa: PLC0415 (imported when data is there)

    sizes = None
    if data.groups is not None:
        import numpy as np  # noqa: PLC0415 (not needed to start)

        starts = np.flatnonzero(np.diff(data.groups)) + 1
        sizes = np.diff(np.concatenate(([0], starts, [len(data.groups)])))
    dataset = lightgbm.Dataset(
        data.x,
        label=data.y,
        weight=data.weights,
        group=sizes,
        categorical_feature=list(translation.request.categorical),
        params=_params(translation),
        reference=reference,
        free_raw_data=False,  # versions before 4.6 look at it again when they train; the rows are kept anyway
    )
    return dataset.construct()


def _train(translation: Translation, dataset: Any, extra: dict[str, Any]) -> Any:
    import lightgbm  # noqa: PLC0415 (imported when a model is trained)

    train, valid = dataset
    rounds = translation.native.get("early_stopping_rounds")
    return lightgbm.train(
        _params(translation) | extra,
        train,
        num_boost_round=translation.native["num_iterations"],
        valid_sets=None if valid is None else [valid],
        callbacks=[lightgbm.early_stopping(rounds, verbose=False)] if rounds else None,
    )
