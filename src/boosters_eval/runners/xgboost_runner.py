"""XGBoost behind the runner contract."""

from __future__ import annotations

import json
import re
import sys
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

# What is passed to the training function and not to the booster.
# Of each tree, a text after its length, which is no digit.
_NODES, _DELETED = (re.compile(rb"num_%sS\D+(\d+)" % name) for name in (b"nodes", b"deleted"))
_TRAIN_ARGUMENTS = ("num_boost_round", "early_stopping_rounds")


class XGBoostRunner(TableRunner):
    """Histogram trees and boosted linear models."""

    name = "xgboost"
    module = "xgboost"
    distributions = ("xgboost-cpu", "xgboost")
    dependencies = ("numpy", "pandas", "scipy.sparse", "sklearn.model_selection")
    install = "xgboost" if sys.platform == "darwin" else "xgboost-cpu"  # which has no wheels for macOS
    cuda_build = "install xgboost instead of xgboost-cpu"
    editions = MAPPING["xgboost"]

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """A quantile matrix for trees, with a second one that shares its bins for early stopping."""
        valid = stopping_rows(translation, data)
        train = _matrix(translation, data)
        return train, None if valid is None else _matrix(translation, valid, train)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """A booster; one of trees is cut at its best round when it stopped early."""
        import xgboost  # noqa: PLC0415 (imported when a model is trained)

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
        linear = translation.request.booster_type is BoosterType.GBLINEAR
        return model if valid is None or linear else model[: model.best_iteration + 1]

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """In place for trees; linear models need a matrix."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        request = translation.request
        if request.booster_type is BoosterType.GBLINEAR:
            import xgboost  # noqa: PLC0415 (imported when a model is used)

            predictions = model.predict(xgboost.DMatrix(x, nthread=request.n_threads))
        else:
            predictions = model.inplace_predict(x)
        return np.reshape(predictions, (len(x), -1)) if request.task is Task.QUANTILE else np.asarray(predictions)

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Margins."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        return np.asarray(model.predict(_rows(translation, x), output_margin=True))

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:
        """Total gain, or the number of splits; the library leaves out columns that it does not use."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        _refuse_linear(translation)
        found = model.get_score(importance_type={"gain": "total_gain", "split": "weight"}[kind])
        return np.array([found.get(f"f{column}", 0.0) for column in range(model.num_features())])

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, of trees and of linear models."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        found = np.asarray(model.predict(_rows(translation, x), pred_contribs=True))
        return found if found.ndim == 2 else np.moveaxis(found, 1, 2)

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, of trees, without those of the base value."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

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


def _refuse_linear(translation: Translation, reason: str = "a linear model has no splits") -> None:
    if translation.request.booster_type is BoosterType.GBLINEAR:
        raise UnsupportedError(reason)


def _rows(translation: Translation, x: NDArray[np.float32]) -> Any:
    """Rows to be explained: only a matrix can be."""
    import xgboost  # noqa: PLC0415 (imported when a model is used)

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
    import xgboost  # noqa: PLC0415 (imported when data is there)

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
    if request.booster_type is BoosterType.GBLINEAR:
        return xgboost.DMatrix(data.x, **arguments)
    return xgboost.QuantileDMatrix(data.x, **arguments, max_bin=translation.native.get("max_bin", 256), ref=ref)


def _ascending(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equal ids are adjacent, but XGBoost also wants them to ascend: number the queries in the order of their rows."""
    import numpy as np  # noqa: PLC0415 (not needed to start)

    return np.concatenate(([0], np.cumsum(np.diff(groups) != 0)))
