"""One trained tree model across its runtimes, on rows that include those exactly on its thresholds."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.datasets.streams import Stream
from boosters_eval.parity.data import GeneratedData, Generator, shared_folder
from boosters_eval.parity.families.training import MODEL_FILES, TRAINERS
from boosters_eval.parity.method import MethodSpec, Oracle, Size
from boosters_eval.parity.python import PythonBackend, PythonSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from boosters_eval.parity.method import ParameterValue

PIP = "pip install 'boosters-eval[parity]'"
ROWS_TO_LEARN = 2_000


class TrainedModel(Generator):
    """A model that is trained once per size; rows at random, and as many with one value on, or next to, a threshold."""

    name = "trained"
    recipe = "2"

    @classmethod
    def missing(cls, method: MethodSpec) -> str | None:
        """Whether the library that trains is not installed."""
        return TRAINERS[str(method.parameters["library"])].missing()

    @classmethod
    def shared(cls, method: MethodSpec, size: Size) -> dict[str, bytes]:
        """The model in its library's own format, and its thresholds by column."""
        library, variant = str(method.parameters["library"]), str(method.parameters["variant"])
        x = _features(Stream(7, size.p), Size(ROWS_TO_LEARN, size.p), variant)
        y = 10 * np.sin(3 * np.nan_to_num(x[:, 0])) + 5 * np.nan_to_num(x[:, 1]) * np.nan_to_num(x[:, 2])
        y += np.nan_to_num(x).sum(axis=1) + 0.1 * Stream(8, size.p).noise(len(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that dart is going out of fashion, say: this is why it is looked at
            model, thresholds = TRAINERS[library].train(x, y, variant)
        return {MODEL_FILES[library]: model, "thresholds.json": json.dumps(thresholds).encode()}

    @classmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        """The first half at random; in the second, one value of each row is a threshold or its neighbour."""
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


def _features(stream: Stream, size: Size, variant: str) -> NDArray[np.float64]:
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
    """The value, or its neighbour below or above in the precision in which the library compares."""
    kind = np.float32 if single else np.float64
    return float(np.nextafter(kind(value), kind(step * np.inf)) if step else kind(value))


class Runtime(PythonBackend):
    """Something that predicts with the trained model: it is converted once per cell, and never fitted."""

    prepare_once: ClassVar[bool] = True
    install = PIP

    @classmethod
    def model(cls, session: PythonSession) -> Path:
        """The file of the trained model."""
        return shared_folder(session.place) / MODEL_FILES[str(session.parameters["library"])]

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        """The model is trained."""
        del session
        return prepared


def _missing_value(parameters: Mapping[str, ParameterValue]) -> float:
    return 0.0 if parameters["variant"] == "missing_zero" else np.nan


class XgboostNative(Runtime):
    """XGBoost's Booster on a DMatrix."""

    name = "xgboost.native"
    own = True
    imports: ClassVar[tuple[str, ...]] = ("xgboost",)
    distributions: ClassVar[tuple[str, ...]] = ("xgboost-cpu", "xgboost", "numpy")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """The model, loaded from its file."""
        import xgboost as xgb  # noqa: PLC0415 (imported by the lane)

        return xgb.Booster({"nthread": session.threads}, model_file=cls.model(session))

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """Through a DMatrix, with the value that stands for missing."""
        import xgboost as xgb  # noqa: PLC0415

        missing = _missing_value(session.parameters)
        data = xgb.DMatrix(session.arrays["X"], missing=missing, nthread=session.threads)
        return np.asarray(fitted.predict(data))


class XgboostInplace(XgboostNative):
    """XGBoost's Booster without a DMatrix."""

    name = "xgboost.inplace"

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """Directly on the array."""
        return np.asarray(fitted.inplace_predict(session.arrays["X"], missing=_missing_value(session.parameters)))


class XgboostSklearn(XgboostNative):
    """XGBoost's regressor with the interface of scikit-learn, loaded from the file."""

    name = "xgboost.sklearn"
    imports: ClassVar[tuple[str, ...]] = ("xgboost", "sklearn.base")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """The regressor, which knows no more than the file does."""
        import xgboost as xgb  # noqa: PLC0415

        model = xgb.XGBRegressor(n_jobs=session.threads)
        model.load_model(cls.model(session))
        return model

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """As a user of scikit-learn calls it."""
        return np.asarray(fitted.predict(session.arrays["X"]))


class XgboostReloaded(XgboostNative):
    """XGBoost's Booster, saved in its other format and loaded again."""

    name = "xgboost.reloaded"

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Through UBJSON."""
        import xgboost as xgb  # noqa: PLC0415

        raw = super().prepare(session).save_raw("ubj")
        model = xgb.Booster({"nthread": session.threads})
        model.load_model(bytearray(raw))
        return model


class LightgbmNative(Runtime):
    """LightGBM's Booster."""

    name = "lightgbm.native"
    own = True
    imports: ClassVar[tuple[str, ...]] = ("lightgbm",)
    distributions: ClassVar[tuple[str, ...]] = ("lightgbm", "numpy")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """The model, loaded from its file."""
        import lightgbm as lgb  # noqa: PLC0415 (imported by the lane)

        return lgb.Booster(model_file=str(cls.model(session)))

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """In double precision."""
        return np.asarray(fitted.predict(session.arrays["X"], num_threads=session.threads))


class LightgbmReloaded(LightgbmNative):
    """LightGBM's Booster, written as text and read again."""

    name = "lightgbm.reloaded"

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Through its text."""
        import lightgbm as lgb  # noqa: PLC0415

        return lgb.Booster(model_str=super().prepare(session).model_to_string())


class CatboostNative(Runtime):
    """CatBoost's own model."""

    name = "catboost.native"
    own = True
    imports: ClassVar[tuple[str, ...]] = ("catboost",)
    distributions: ClassVar[tuple[str, ...]] = ("catboost", "numpy")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """The model, loaded from its file."""
        import catboost  # noqa: PLC0415 (imported by the lane)

        model = catboost.CatBoostRegressor()
        model.load_model(str(cls.model(session)))
        return model

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """With as many threads as the cell has."""
        return np.asarray(fitted.predict(session.arrays["X"], thread_count=session.threads))


class CatboostReloaded(CatboostNative):
    """CatBoost's model, saved as JSON and loaded again."""

    name = "catboost.reloaded"

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Through JSON."""
        import catboost  # noqa: PLC0415

        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.json")
            super().prepare(session).save_model(path, format="json")
            model = catboost.CatBoostRegressor()
            model.load_model(path, format="json")
        return model


class CatboostCpp(Runtime):
    """CatBoost's export to C++, compiled here."""

    name = "catboost.c++"
    language = "c++"
    imports: ClassVar[tuple[str, ...]] = ("catboost",)
    distributions: ClassVar[tuple[str, ...]] = ("catboost",)

    @classmethod
    def missing(cls) -> str | None:
        """Whether there is no compiler."""
        from boosters_eval.parity.families.compiled import compiler  # noqa: PLC0415 (keeps start-up fast)

        return super().missing() or (None if compiler() else "g++ is not installed: apt-get install g++")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """A shared library of the exported code."""
        from boosters_eval.parity.families.compiled import compile_catboost  # noqa: PLC0415

        return compile_catboost(CatboostNative.prepare(session), session.arrays["X"].shape[1])

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """All rows in one call."""
        return np.asarray(fitted(session.arrays["X"]))


class XgboostBoosters(Runtime):
    """An XGBoost model in boosters, by its converter."""

    name = "xgboost.boosters"
    imports: ClassVar[tuple[str, ...]] = ("boosters", "xgboost", "pandas")
    distributions: ClassVar[tuple[str, ...]] = ("boosters", "xgboost-cpu", "xgboost")

    @classmethod
    def converted(cls, session: PythonSession) -> bytes:
        """The model in boosters' own format."""
        import boosters  # noqa: PLC0415 (imported by the lane)

        return bytes(boosters.xgboost_to_json_bytes(XgboostNative.prepare(session)))

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Convert and load."""
        import boosters  # noqa: PLC0415

        return boosters.Model.load_from_bytes(cls.converted(session))

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """One output: the method's vector is its only column."""
        import boosters  # noqa: PLC0415

        return np.asarray(fitted.predict(boosters.Dataset(session.arrays["X"]), n_threads=session.threads))[:, 0]


class LightgbmBoosters(XgboostBoosters):
    """A LightGBM model in boosters, by its converter."""

    name = "lightgbm.boosters"
    imports: ClassVar[tuple[str, ...]] = ("boosters", "lightgbm", "pandas")
    distributions: ClassVar[tuple[str, ...]] = ("boosters", "lightgbm")

    @classmethod
    def converted(cls, session: PythonSession) -> bytes:
        """The model in boosters' own format."""
        import boosters  # noqa: PLC0415

        return bytes(boosters.lightgbm_to_json_bytes(LightgbmNative.prepare(session)))


class XgboostOnnx(Runtime):
    """An XGBoost model in ONNX Runtime."""

    name = "xgboost.onnxruntime"
    imports: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools.convert", "xgboost")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools", "xgboost-cpu", "xgboost")

    @classmethod
    def converted(cls, session: PythonSession) -> bytes:
        """The model as ONNX."""
        from onnxmltools.convert import convert_xgboost  # noqa: PLC0415 (imported by the lane)
        from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: PLC0415

        shape = [None, session.arrays["X"].shape[1]]
        model = convert_xgboost(XgboostNative.prepare(session), initial_types=[("X", FloatTensorType(shape))])
        return bytes(model.SerializeToString())

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Convert, and start a session with as many threads as the cell has."""
        import onnxruntime  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = session.threads
        return onnxruntime.InferenceSession(cls.converted(session), options, providers=["CPUExecutionProvider"])

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """In single precision, as the format demands."""
        (found,) = fitted.run(None, {fitted.get_inputs()[0].name: session.arrays["X"].astype(np.float32)})
        return np.asarray(found)[:, 0]


class LightgbmOnnx(XgboostOnnx):
    """A LightGBM model in ONNX Runtime."""

    name = "lightgbm.onnxruntime"
    imports: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools.convert", "lightgbm")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools", "lightgbm")

    @classmethod
    def converted(cls, session: PythonSession) -> bytes:
        """The model as ONNX."""
        from onnxmltools.convert import convert_lightgbm  # noqa: PLC0415
        from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: PLC0415

        shape = [None, session.arrays["X"].shape[1]]
        model = convert_lightgbm(LightgbmNative.prepare(session), initial_types=[("X", FloatTensorType(shape))])
        return bytes(model.SerializeToString())


class CatboostOnnx(XgboostOnnx):
    """A CatBoost model in ONNX Runtime, by CatBoost's own export."""

    name = "catboost.onnxruntime"
    imports: ClassVar[tuple[str, ...]] = ("onnxruntime", "catboost", "onnx")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime", "catboost")

    @classmethod
    def converted(cls, session: PythonSession) -> bytes:
        """The model as ONNX."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            CatboostNative.prepare(session).save_model(str(path), format="onnx")
            return path.read_bytes()


class XgboostTreelite(Runtime):
    """An XGBoost model in treelite's general inference library."""

    name = "xgboost.treelite"
    imports: ClassVar[tuple[str, ...]] = ("treelite",)
    distributions: ClassVar[tuple[str, ...]] = ("treelite",)

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """The model, loaded from its file."""
        import treelite  # noqa: PLC0415 (imported by the lane)

        return treelite.frontend.load_xgboost_model(str(cls.model(session)), format_choice="json")

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """In the precision in which the model's thresholds are stored."""
        import treelite  # noqa: PLC0415

        x = session.arrays["X"].astype(fitted.input_type)
        return np.asarray(treelite.gtil.predict(fitted, x, nthread=session.threads)).reshape(len(x), -1)[:, 0]


class LightgbmTreelite(XgboostTreelite):
    """A LightGBM model in treelite's general inference library."""

    name = "lightgbm.treelite"

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """The model, loaded from its file."""
        import treelite  # noqa: PLC0415

        return treelite.frontend.load_lightgbm_model(str(cls.model(session)))


class XgboostTl2cgen(Runtime):
    """An XGBoost model, compiled to C by tl2cgen."""

    name = "xgboost.tl2cgen"
    language = "c"
    imports: ClassVar[tuple[str, ...]] = ("tl2cgen", "treelite")
    distributions: ClassVar[tuple[str, ...]] = ("tl2cgen", "treelite")
    frontend: ClassVar[type[XgboostTreelite]] = XgboostTreelite

    @classmethod
    def missing(cls) -> str | None:
        """Whether there is no compiler."""
        from boosters_eval.parity.families.compiled import compiler  # noqa: PLC0415 (keeps start-up fast)

        return super().missing() or (None if compiler() else "gcc is not installed: apt-get install gcc")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Compile the model."""
        import tl2cgen  # noqa: PLC0415 (imported by the lane)

        model = cls.frontend.prepare(session)
        with tempfile.TemporaryDirectory() as folder:
            library = str(Path(folder) / "model.so")
            tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 4}, verbose=False)
            return tl2cgen.Predictor(library, nthread=session.threads), np.dtype(str(model.input_type))

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """In the precision in which the model's thresholds are stored."""
        import tl2cgen  # noqa: PLC0415

        predictor, kind = fitted
        data = tl2cgen.DMatrix(session.arrays["X"].astype(kind), dtype=kind.name)
        return np.asarray(predictor.predict(data)).reshape(len(session.arrays["X"]), -1)[:, 0]


class LightgbmTl2cgen(XgboostTl2cgen):
    """A LightGBM model, compiled to C by tl2cgen."""

    name = "lightgbm.tl2cgen"
    frontend = LightgbmTreelite


class LightgbmLleaves(Runtime):
    """A LightGBM model, compiled by lleaves."""

    name = "lightgbm.lleaves"
    imports: ClassVar[tuple[str, ...]] = ("lleaves",)
    distributions: ClassVar[tuple[str, ...]] = ("lleaves", "llvmlite")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """Compile the model."""
        import lleaves  # noqa: PLC0415 (imported by the lane)

        model = lleaves.Model(model_file=str(cls.model(session)))
        model.compile()
        return model

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """In double precision."""
        return np.asarray(fitted.predict(session.arrays["X"], n_jobs=session.threads))


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
