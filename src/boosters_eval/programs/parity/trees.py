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
from boosters_eval.programs.parity.method import (
    Convention,
    Defect,
    GeneratedData,
    Generator,
    MethodSpec,
    Oracle,
    ParameterValue,
    Size,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


def alter_xgboost(content: bytes, changes: Mapping[str, ParameterValue]) -> bytes:
    """The model as somebody would read it who ignores the drop weights, or swaps the direction of missing values."""
    if not {"drop_weights", "missing_direction"} & changes.keys():
        return content
    found = json.loads(content)
    booster = found["learner"]["gradient_booster"]
    for place in (booster, booster.get("model", {})):  # until XGBoost 3.3, and since
        if changes.get("drop_weights") == "ignored" and "weight_drop" in place:
            place["weight_drop"] = [1.0] * len(place["weight_drop"])
    if changes.get("missing_direction") == "swapped":
        for tree in booster.get("gbtree", booster)["model"]["trees"]:
            tree["default_left"] = [1 - side for side in tree["default_left"]]
    return json.dumps(found).encode()


def alter_lightgbm(text: str, changes: Mapping[str, ParameterValue]) -> str:
    """The model as somebody would read it who rounds thresholds, ignores linear leaves, or swaps the direction."""
    if not {"thresholds", "linear_leaves", "missing_direction"} & changes.keys():
        return text
    lines = []
    for line in text.splitlines():
        name, _, values = line.partition("=")
        if name == "tree_sizes":  # of a text that is changed
            continue
        if name == "threshold" and changes.get("thresholds") == "float32":
            line = f"{name}={' '.join(f'{float(np.float32(value)):.17g}' for value in values.split())}"  # noqa: PLW2901
        if name == "is_linear" and changes.get("linear_leaves") == "ignored":
            line = "is_linear=0"  # noqa: PLW2901
        if name in _LINEAR and changes.get("linear_leaves") == "ignored":
            continue
        if name == "decision_type" and changes.get("missing_direction") == "swapped":
            flags = (int(value) for value in values.split())
            line = f"{name}={' '.join(str(flag if flag & 1 else flag ^ 2) for flag in flags)}"  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines) + "\n"


_LINEAR = ("leaf_const", "num_features", "leaf_features", "leaf_coeff")
_RUNTIMES = {
    "xgboost": ("native", "inplace", "sklearn", "reloaded", "boosters", "onnxruntime", "treelite", "tl2cgen"),
    "lightgbm": ("native", "reloaded", "boosters", "onnxruntime", "treelite", "tl2cgen", "lleaves"),
    "catboost": ("native", "reloaded", "onnxruntime", "c++"),
}
_VERSIONS = {"xgboost": ">=3", "lightgbm": ">=4.3", "catboost": ">=1.2.5"}


_PROBES = {
    "xgboost": (
        Variant(sentence="agrees without the last tree", changes={"leave_out": 1}),
        Variant(sentence="agrees if missing values go to the other side", changes={"missing_direction": "swapped"}),
        Variant(sentence="agrees without the drop weights of dart", changes={"drop_weights": "ignored"}),
        Variant(sentence="agrees with the trees up to the best one alone", changes={"iterations": "best"}),
        Variant(sentence="agrees if only NaN is missing", changes={"missing": "nan"}),
        Variant(sentence="agrees if 0 is missing", changes={"missing": "zero"}),
    ),
    "lightgbm": (
        Variant(sentence="agrees without the last tree", changes={"leave_out": 1}),
        Variant(sentence="agrees if missing values go to the other side", changes={"missing_direction": "swapped"}),
        Variant(sentence="agrees if thresholds are rounded to float32", changes={"thresholds": "float32"}),
        Variant(sentence="agrees without the linear models of the leaves", changes={"linear_leaves": "ignored"}),
    ),
    "catboost": (Variant(sentence="agrees without the last tree", changes={"leave_out": 1}),),
}
# What is declared of a backend: its runtime, by library and variant of the model.
_BEST = "The interface of scikit-learn predicts with the trees up to the best one; a Booster uses all."
_LOST = "The file of a model does not hold which value means missing: whoever loads it must tell."
_NO_DROP = "It ignores the drop weights of dart."
_SINGLE = "It compares in single precision: LightGBM's thresholds are of double precision."
_NO_LINEAR = "It ignores the linear models of the leaves."
_XGBOOST_IO = "https://github.com/dmlc/xgboost/issues/11719"
_DART = "https://xgboost.readthedocs.io/en/stable/tutorials/dart.html"
_ONNX_SINGLE = "https://github.com/onnx/onnxmltools/issues/708"
_EXCEPTIONS: dict[tuple[str, str], tuple[tuple[str, str, dict[str, ParameterValue], str], ...]] = {
    ("xgboost", "early_stopping"): (("sklearn", _BEST, {"iterations": "best"}, ""),),
    ("xgboost", "missing_zero"): (("sklearn", _LOST, {"missing": "nan"}, _XGBOOST_IO),),
    ("xgboost", "dart"): (
        ("onnxruntime", _NO_DROP, {"drop_weights": "ignored"}, _DART),
        ("boosters", _NO_DROP, {"drop_weights": "ignored"}, _DART),
    ),
    ("lightgbm", "plain"): (
        ("onnxruntime", _SINGLE, {"thresholds": "float32"}, _ONNX_SINGLE),
        ("boosters", _SINGLE, {"thresholds": "float32"}, _ONNX_SINGLE),
    ),
    ("lightgbm", "missing"): (
        ("onnxruntime", _SINGLE, {"thresholds": "float32"}, _ONNX_SINGLE),
        ("boosters", _SINGLE, {"thresholds": "float32"}, _ONNX_SINGLE),
    ),
    ("lightgbm", "linear"): (
        ("onnxruntime", _NO_LINEAR, {"linear_leaves": "ignored", "thresholds": "float32"}, _ONNX_SINGLE),
        ("lleaves", _NO_LINEAR, {"linear_leaves": "ignored"}, "https://github.com/siboehm/lleaves/issues/78"),
    ),
}


def _except(library: str, variant: str, *, known: bool) -> Iterator[dict[str, Any]]:
    for runtime, sentence, changes, reference in _EXCEPTIONS.get((library, variant), ()):
        if bool(reference) is known:
            told = {"reference": reference} if known else {}
            yield {"backend": f"{library}.{runtime}", "sentence": sentence, "changes": changes, **told}


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
        conventions=tuple(Convention(**told) for told in _except(library, variant, known=False)),
        defects=tuple(Defect(**told) for told in _except(library, variant, known=True)),
        probes=_PROBES[library],
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
