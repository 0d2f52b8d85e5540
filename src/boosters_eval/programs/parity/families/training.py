"""The models that the runtimes share: trained once, with one thread, and written in their library's own format."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Thresholds = dict[str, list[float]]

MODEL_FILES = {"xgboost": "model.json", "lightgbm": "model.txt", "catboost": "model.cbm"}
N_TREES = 200


class Trainer(ABC):
    """Trains one library's model, and reads the thresholds out of it."""

    module: str

    @classmethod
    def missing(cls) -> str | None:
        """Whether the library is not installed."""
        return None if find_spec(cls.module) else f"{cls.module} is not installed: pip install 'boosters-eval[all]'"

    @classmethod
    @abstractmethod
    def train(cls, x: NDArray[np.float64], y: NDArray[np.float64], variant: str) -> tuple[bytes, Thresholds]:
        """The model's file, and for each column the values at which trees split it."""


class XgboostTrainer(Trainer):
    """XGBoost."""

    module = "xgboost"

    @classmethod
    def train(cls, x: NDArray[np.float64], y: NDArray[np.float64], variant: str) -> tuple[bytes, Thresholds]:
        """With the drop of dart, or an early stop that leaves trees behind the best one."""
        import xgboost as xgb  # noqa: PLC0415 (only the trainer needs it)

        parameters: dict[str, Any] = {"max_depth": 6, "eta": 0.1, "nthread": 1, "seed": 1, "verbosity": 0}
        if variant == "dart":
            parameters |= {"booster": "dart", "rate_drop": 0.1}
        missing = 0.0 if variant == "missing_zero" else np.nan
        if variant == "early_stopping":
            half = len(x) // 2
            data = xgb.DMatrix(x[:half], y[:half], missing=missing, nthread=1)
            unlike = xgb.DMatrix(x[half:], y[half:] + 3 * np.sign(y[half:]), missing=missing, nthread=1)
            watched = [(unlike, "valid")]
            model = xgb.train(
                parameters | {"eta": 0.3}, data, 500, evals=watched, early_stopping_rounds=50, verbose_eval=False
            )
        else:
            model = xgb.train(parameters, xgb.DMatrix(x, y, missing=missing, nthread=1), N_TREES)
        table = model.trees_to_dataframe()
        splits = table[table["Feature"] != "Leaf"]
        found = {name[1:]: sorted(set(part["Split"].dropna())) for name, part in splits.groupby("Feature")}
        return bytes(model.save_raw("json")), found


class LightgbmTrainer(Trainer):
    """LightGBM."""

    module = "lightgbm"

    @classmethod
    def train(cls, x: NDArray[np.float64], y: NDArray[np.float64], variant: str) -> tuple[bytes, Thresholds]:
        """With linear leaves, or with the last column as a category."""
        import lightgbm as lgb  # noqa: PLC0415 (only the trainer needs it)

        parameters = {"num_leaves": 31, "num_threads": 1, "seed": 1, "deterministic": True, "verbose": -1}
        categories = [x.shape[1] - 1] if variant == "categorical" else []
        data = lgb.Dataset(x, y, categorical_feature=categories, params={"linear_tree": variant == "linear"})
        model = lgb.train(parameters | {"linear_tree": variant == "linear"}, data, N_TREES)
        found: Thresholds = {}

        def walk(node: dict[str, Any]) -> None:
            if "split_feature" in node:
                if node["decision_type"] == "<=":
                    found.setdefault(str(node["split_feature"]), []).append(float(node["threshold"]))
                walk(node["left_child"])
                walk(node["right_child"])

        for tree in model.dump_model()["tree_info"]:
            walk(tree["tree_structure"])
        unique = {column: sorted(set(values)) for column, values in found.items()}
        return model.model_to_string().encode(), unique


class CatboostTrainer(Trainer):
    """CatBoost."""

    module = "catboost"

    @classmethod
    def train(cls, x: NDArray[np.float64], y: NDArray[np.float64], variant: str) -> tuple[bytes, Thresholds]:
        """Symmetric trees, whose thresholds are the borders of each column."""
        import catboost  # noqa: PLC0415 (only the trainer needs it)

        del variant
        model = catboost.CatBoostRegressor(
            iterations=N_TREES, depth=6, thread_count=1, random_seed=1, verbose=False, allow_writing_files=False
        )
        model.fit(x, y)
        found = {str(column): [float(value) for value in values] for column, values in model.get_borders().items()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.cbm"
            model.save_model(str(path))
            return path.read_bytes(), found


TRAINERS: dict[str, type[Trainer]] = {
    "xgboost": XgboostTrainer,
    "lightgbm": LightgbmTrainer,
    "catboost": CatboostTrainer,
}
