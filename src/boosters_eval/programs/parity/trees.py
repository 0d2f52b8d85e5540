"""One trained tree model across its runtimes, on rows that include those exactly on its thresholds."""

from __future__ import annotations

import json
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.generated import Stream
from boosters_eval.programs.parity.method import GeneratedData, Generator, MethodSpec, Oracle, Size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Trained = tuple[bytes, dict[str, list[float]]]  # the model's file, and where trees split each column

MODEL_FILES = {"xgboost": "model.json", "lightgbm": "model.txt", "catboost": "model.cbm"}
N_TREES = 200
ROWS_TO_LEARN = 2_000


def train_xgboost(x: Numbers, y: Numbers, variant: str) -> Trained:
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


def train_lightgbm(x: Numbers, y: Numbers, variant: str) -> Trained:
    """With linear leaves, or with the last column as a category."""
    import lightgbm as lgb  # noqa: PLC0415 (only the trainer needs it)

    parameters = {"num_leaves": 31, "num_threads": 1, "seed": 1, "deterministic": True, "verbose": -1}
    categories = [x.shape[1] - 1] if variant == "categorical" else []
    data = lgb.Dataset(x, y, categorical_feature=categories, params={"linear_tree": variant == "linear"})
    model = lgb.train(parameters | {"linear_tree": variant == "linear"}, data, N_TREES)
    found: dict[str, list[float]] = {}

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


def train_catboost(x: Numbers, y: Numbers, variant: str) -> Trained:
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


TRAINERS = {"xgboost": train_xgboost, "lightgbm": train_lightgbm, "catboost": train_catboost}


class TrainedModel(Generator):
    """A model that is trained once per size; rows at random, and as many with one value on, or next to, a threshold."""

    name = "trained"
    recipe = "2"

    @classmethod
    def missing(cls, method: MethodSpec) -> str | None:
        library = str(method.parameters["library"])
        return None if find_spec(library) else f"{library} is not installed: pip install 'boosters-eval[all]'"

    @classmethod
    def shared(cls, method: MethodSpec, size: Size) -> dict[str, bytes]:
        """The model in its library's own format, and its thresholds by column."""
        library, variant = str(method.parameters["library"]), str(method.parameters["variant"])
        x = _features(Stream(7, size.p), Size(ROWS_TO_LEARN, size.p), variant)
        y = 10 * np.sin(3 * np.nan_to_num(x[:, 0])) + 5 * np.nan_to_num(x[:, 1]) * np.nan_to_num(x[:, 2])
        y += np.nan_to_num(x).sum(axis=1) + 0.1 * Stream(8, size.p).noise(len(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that dart is going out of fashion, say: this is why it is looked at
            model, thresholds = TRAINERS[library](x, y, variant)
        return {MODEL_FILES[library]: model, "thresholds.json": json.dumps(thresholds).encode()}

    @classmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        """The first half at random; in the second, one value of each row is a threshold or its neighbor."""
        library, variant = str(method.parameters["library"]), str(method.parameters["variant"])
        stream = Stream(seed, size.n, size.p)
        x = _features(stream, size, variant)
        marked = np.arange(size.n) >= size.n // 2
        listed = json.loads(shared["thresholds.json"])  # a huge one only tells missing values apart
        thresholds = {int(column): [v for v in values if abs(v) < 1e30] for column, values in listed.items()}
        columns = sorted(column for column, values in thresholds.items() if values)
        draws = stream.words(3 * size.n).reshape(size.n, 3)
        for row in np.flatnonzero(marked) if columns else ():
            column = columns[int(draws[row, 0] % len(columns))]
            value = thresholds[column][int(draws[row, 1] % len(thresholds[column]))]
            x[row, column] = _beside(value, int(draws[row, 2] % 3) - 1, single=library != "lightgbm")
        return GeneratedData({"X": x, "marked": marked.astype(np.float64)})


def _features(stream: Stream, size: Size, variant: str) -> Numbers:
    """Numbers that a single float holds exactly, so that only thresholds can tell the precisions apart."""
    x = stream.noise(size.n * size.p).reshape(size.n, size.p).astype(np.float32).astype(np.float64)
    if variant == "missing":
        x[stream.uniform(x.size).reshape(x.shape) < 0.1] = np.nan
    if variant == "missing_zero":
        x[stream.uniform(x.size).reshape(x.shape) < 0.1] = 0.0
    if variant == "categorical":
        x[:, -1] = np.floor(12 * stream.uniform(size.n))
    return x


def _beside(value: float, step: int, *, single: bool) -> float:
    """The value, or its neighbor below or above in the precision in which the library compares."""
    kind = np.float32 if single else np.float64
    return float(np.nextafter(kind(value), kind(step * np.inf)) if step else kind(value))


_RUNTIMES = {
    "xgboost": ("native", "inplace", "sklearn", "reloaded", "boosters", "onnxruntime", "treelite", "tl2cgen"),
    "lightgbm": ("native", "reloaded", "boosters", "onnxruntime", "treelite", "tl2cgen", "lleaves"),
    "catboost": ("native", "reloaded", "onnxruntime", "c++"),
}
_VERSIONS = {"xgboost": ">=3", "lightgbm": ">=4.3", "catboost": ">=1.2.5"}


def _method(library: str, variant: str, description: str) -> MethodSpec:
    native = f"{library}.native"
    return MethodSpec(
        name=f"gbdt-inference-{library}" + ("" if variant == "plain" else f"-{variant.replace('_', '-')}"),
        description=f"One trained {description} across its runtimes; half of the rows sit on its thresholds.",
        canonical=native,
        oracle=Oracle(backend=native, version=_VERSIONS[library]),
        backends=tuple(f"{library}.{runtime}" for runtime in _RUNTIMES[library]),
        data="trained",
        parameters={"library": library, "variant": variant},
        sizes=(Size(2000, 10), Size(10000, 10)),
        timed=("predict",),
        jumps="A prediction jumps where a value lies on a threshold of a tree.",
        tolerance=2e-5,  # single precision: 200 trees are added up with a relative error of 6e-8 to 1e-7 each
        binding_tolerance=1e-6,
    )


XGBOOST = _method("xgboost", "plain", "XGBoost model")
XGBOOST_MISSING = _method("xgboost", "missing", "XGBoost model with missing values")
XGBOOST_MISSING_ZERO = _method("xgboost", "missing_zero", "XGBoost model in which 0 means missing")
XGBOOST_EARLY_STOPPING = _method("xgboost", "early_stopping", "XGBoost model that stopped early")
XGBOOST_DART = _method("xgboost", "dart", "XGBoost dart model")
LIGHTGBM = _method("lightgbm", "plain", "LightGBM model")
LIGHTGBM_MISSING = _method("lightgbm", "missing", "LightGBM model with missing values")
LIGHTGBM_CATEGORICAL = _method("lightgbm", "categorical", "LightGBM model with a categorical column")
LIGHTGBM_LINEAR = _method("lightgbm", "linear", "LightGBM model with linear leaves")
CATBOOST = _method("catboost", "plain", "CatBoost model")
CATBOOST_MISSING = _method("catboost", "missing", "CatBoost model with missing values")
