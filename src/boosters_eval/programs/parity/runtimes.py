"""A trained tree model in the library that trained it, exported to C++, and in the runtimes of others."""
# ruff: noqa: PLC0415 (what a session uses is imported by its lane, before the clock starts)

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from abc import abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.errors import RunError
from boosters_eval.programs.parity.backend import PythonBackend, PythonSession
from boosters_eval.programs.parity.method import SHARED
from boosters_eval.programs.parity.pls import PIP
from boosters_eval.programs.parity.trees import MODEL_FILES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Predict = Callable[[NDArray[np.float64]], Any]  # the rows' predictions


class Runtime(PythonBackend):
    """Something that predicts with the trained model: it is converted once per cell, and never fitted."""

    prepare_once: ClassVar[bool] = True
    install = PIP
    compiler: ClassVar[str] = ""  # that it needs besides its packages

    @classmethod
    def missing(cls) -> str | None:
        lacks = cls.compiler and shutil.which(cls.compiler) is None
        return super().missing() or (
            f"{cls.compiler} is not installed: apt-get install {cls.compiler}" if lacks else None
        )

    @classmethod
    def model(cls, session: PythonSession) -> Path:
        """The file of the trained model."""
        return session.place.parent / SHARED / MODEL_FILES[str(session.parameters["library"])]

    @classmethod
    @abstractmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """What predicts the rows of an array."""

    @classmethod
    def fit(cls, session: PythonSession, prepared: Predict) -> Predict:  # noqa: ARG003 (the model is trained)
        return prepared

    @classmethod
    def predict(cls, session: PythonSession, fitted: Predict) -> NDArray[Any]:
        return np.asarray(fitted(session.arrays["X"]))


class XgboostNative(Runtime):
    name = "xgboost.native"
    own = True
    imports: ClassVar[tuple[str, ...]] = ("xgboost",)
    distributions: ClassVar[tuple[str, ...]] = ("xgboost-cpu", "xgboost", "numpy")

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import xgboost as xgb

        return xgb.Booster({"nthread": session.threads}, model_file=cls.model(session))

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        import xgboost as xgb

        model, options = cls.open(session), {"missing": cls.missing_value(session), "nthread": session.threads}
        return lambda x: model.predict(xgb.DMatrix(x, **options))

    @classmethod
    def missing_value(cls, session: PythonSession) -> float:
        return 0.0 if session.parameters["variant"] == "missing_zero" else np.nan


class XgboostInplace(XgboostNative):
    name = "xgboost.inplace"

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        return partial(cls.open(session).inplace_predict, missing=cls.missing_value(session))


class XgboostSklearn(XgboostNative):
    """XGBoost's regressor with the interface of scikit-learn. It is loaded from the file, and knows no more."""

    name = "xgboost.sklearn"
    imports: ClassVar[tuple[str, ...]] = ("xgboost", "sklearn.base")

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        import xgboost as xgb

        model = xgb.XGBRegressor(n_jobs=session.threads)
        model.load_model(cls.model(session))
        return partial(model.predict)


class XgboostReloaded(XgboostNative):
    """XGBoost's Booster, saved in its other format, UBJSON, and loaded again."""

    name = "xgboost.reloaded"

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import xgboost as xgb

        model = xgb.Booster({"nthread": session.threads})
        model.load_model(bytearray(super().open(session).save_raw("ubj")))
        return model


class LightgbmNative(Runtime):
    name = "lightgbm.native"
    own = True
    imports: ClassVar[tuple[str, ...]] = ("lightgbm",)
    distributions: ClassVar[tuple[str, ...]] = ("lightgbm", "numpy")

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import lightgbm as lgb

        return lgb.Booster(model_file=str(cls.model(session)))

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        return partial(cls.open(session).predict, num_threads=session.threads)


class LightgbmReloaded(LightgbmNative):
    name = "lightgbm.reloaded"

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import lightgbm as lgb

        return lgb.Booster(model_str=super().open(session).model_to_string())


class CatboostNative(Runtime):
    name = "catboost.native"
    own = True
    imports: ClassVar[tuple[str, ...]] = ("catboost",)
    distributions: ClassVar[tuple[str, ...]] = ("catboost", "numpy")

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import catboost

        return catboost.CatBoostRegressor().load_model(str(cls.model(session)))

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        return partial(cls.open(session).predict, thread_count=session.threads)


class CatboostReloaded(CatboostNative):
    name = "catboost.reloaded"

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import catboost

        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.json")
            super().open(session).save_model(path, format="json")
            return catboost.CatBoostRegressor().load_model(path, format="json")


_LOOP = """
extern "C" void predict_rows(const float* x, long n, long p, double* out) {
    for (long i = 0; i < n; ++i)
        out[i] = ApplyCatboostModel(std::vector<float>(x + i * p, x + (i + 1) * p));
}
"""


class CatboostCpp(Runtime):
    name = "catboost.c++"
    language = "c++"
    imports: ClassVar[tuple[str, ...]] = ("catboost",)
    distributions: ClassVar[tuple[str, ...]] = ("catboost",)
    compiler = "g++"

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """The exported source, with a loop over rows."""
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "model.cpp", Path(folder) / "model.so"
            CatboostNative.open(session).save_model(str(source), format="cpp")
            source.write_text(source.read_text() + _LOOP)
            compiler = str(shutil.which(cls.compiler))
            command = [compiler, "-O2", "-std=c++17", "-shared", "-fPIC", "-o", str(library), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own command)
            if done.returncode:
                raise RunError(f"The exported model cannot be compiled: {done.stderr.strip()[-500:]}")
            call = ctypes.CDLL(str(library)).predict_rows

        def predict_rows(x: NDArray[np.float64]) -> NDArray[np.float64]:
            rows = np.ascontiguousarray(x, dtype=np.float32)
            out = np.empty(len(rows))
            shape = map(ctypes.c_long, rows.shape)
            call(rows.ctypes.data_as(ctypes.c_void_p), *shape, out.ctypes.data_as(ctypes.c_void_p))
            return out

        return predict_rows


class XgboostBoosters(Runtime):
    name = "xgboost.boosters"
    imports: ClassVar[tuple[str, ...]] = ("boosters", "xgboost", "pandas")
    distributions: ClassVar[tuple[str, ...]] = ("boosters", "xgboost-cpu", "xgboost")
    native: ClassVar[type[XgboostNative | LightgbmNative]] = XgboostNative
    converter: ClassVar[str] = "xgboost_to_json_bytes"

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """Its one output is the method's vector."""
        import boosters

        content = getattr(boosters, cls.converter)(cls.native.open(session))
        model = boosters.Model.load_from_bytes(bytes(content))
        return lambda x: np.asarray(model.predict(boosters.Dataset(x), n_threads=session.threads))[:, 0]


class LightgbmBoosters(XgboostBoosters):
    name = "lightgbm.boosters"
    imports: ClassVar[tuple[str, ...]] = ("boosters", "lightgbm", "pandas")
    distributions: ClassVar[tuple[str, ...]] = ("boosters", "lightgbm")
    native = LightgbmNative
    converter = "lightgbm_to_json_bytes"


class XgboostOnnx(Runtime):
    name = "xgboost.onnxruntime"
    imports: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools.convert", "xgboost")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools", "xgboost-cpu", "xgboost")
    native: ClassVar[type[XgboostNative | LightgbmNative]] = XgboostNative
    converter: ClassVar[str] = "convert_xgboost"

    @classmethod
    def convert(cls, session: PythonSession) -> bytes:
        from onnxmltools import convert
        from onnxmltools.convert.common.data_types import FloatTensorType

        columns = ("X", FloatTensorType([None, session.arrays["X"].shape[1]]))
        model = getattr(convert, cls.converter)(cls.native.open(session), initial_types=[columns])
        return bytes(model.SerializeToString())

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """It predicts in single precision, as the format demands."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = session.threads
        model = onnxruntime.InferenceSession(cls.convert(session), options, providers=["CPUExecutionProvider"])
        return lambda x: model.run(None, {model.get_inputs()[0].name: x.astype(np.float32)})[0][:, 0]


class LightgbmOnnx(XgboostOnnx):
    name = "lightgbm.onnxruntime"
    imports: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools.convert", "lightgbm")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnxmltools", "lightgbm")
    native = LightgbmNative
    converter = "convert_lightgbm"


class CatboostOnnx(XgboostOnnx):
    name = "catboost.onnxruntime"
    imports: ClassVar[tuple[str, ...]] = ("onnxruntime", "catboost", "onnx")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime", "catboost")

    @classmethod
    def convert(cls, session: PythonSession) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            CatboostNative.open(session).save_model(str(path), format="onnx")
            return path.read_bytes()


class XgboostTreelite(Runtime):
    name = "xgboost.treelite"
    imports: ClassVar[tuple[str, ...]] = ("treelite",)
    distributions: ClassVar[tuple[str, ...]] = ("treelite",)

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import treelite

        return treelite.frontend.load_xgboost_model(str(cls.model(session)), format_choice="json")

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """It predicts in the precision in which the model's thresholds are stored."""
        import treelite

        model = cls.open(session)
        predict = partial(treelite.gtil.predict, model, nthread=session.threads)
        return lambda x: np.asarray(predict(x.astype(model.input_type))).reshape(len(x), -1)[:, 0]


class LightgbmTreelite(XgboostTreelite):
    name = "lightgbm.treelite"

    @classmethod
    def open(cls, session: PythonSession) -> Any:
        import treelite

        return treelite.frontend.load_lightgbm_model(str(cls.model(session)))


class XgboostTl2cgen(Runtime):
    name = "xgboost.tl2cgen"
    language = "c"
    imports: ClassVar[tuple[str, ...]] = ("tl2cgen", "treelite")
    distributions: ClassVar[tuple[str, ...]] = ("tl2cgen", "treelite")
    compiler = "gcc"
    frontend: ClassVar[type[XgboostTreelite]] = XgboostTreelite

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """It predicts in the precision in which the model's thresholds are stored."""
        import tl2cgen

        model, parallel = cls.frontend.open(session), {"parallel_comp": 4}
        kind = np.dtype(str(model.input_type))
        with tempfile.TemporaryDirectory() as folder:
            library = str(Path(folder) / "model.so")
            tl2cgen.export_lib(model, toolchain=cls.compiler, libpath=library, params=parallel, verbose=False)
            predict = tl2cgen.Predictor(library, nthread=session.threads).predict
        data = partial(tl2cgen.DMatrix, dtype=kind.name)
        return lambda x: np.asarray(predict(data(x.astype(kind)))).reshape(len(x), -1)[:, 0]


class LightgbmTl2cgen(XgboostTl2cgen):
    name = "lightgbm.tl2cgen"
    frontend = LightgbmTreelite


class LightgbmLleaves(Runtime):
    name = "lightgbm.lleaves"
    imports: ClassVar[tuple[str, ...]] = ("lleaves",)
    distributions: ClassVar[tuple[str, ...]] = ("lleaves", "llvmlite")

    @classmethod
    def prepare(cls, session: PythonSession) -> Predict:
        import lleaves

        model = lleaves.Model(model_file=str(cls.model(session)))
        model.compile()
        return partial(model.predict, n_jobs=session.threads)
