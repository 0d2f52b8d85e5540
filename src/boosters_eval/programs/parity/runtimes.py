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
from boosters_eval.programs.parity.trees import MODEL_FILES, alter_lightgbm, alter_xgboost

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Predict = Callable[[NDArray[np.float64]], Any]  # the rows' predictions
    Convert = Callable[[PythonSession], Predict]


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
    @abstractmethod
    def prepare(cls, session: PythonSession) -> Predict:
        """What predicts the rows of an array."""

    @classmethod
    def fit(cls, session: PythonSession, prepared: Predict) -> Predict:  # noqa: ARG003 (the model is trained)
        return prepared

    @classmethod
    def predict(cls, session: PythonSession, fitted: Predict) -> NDArray[Any]:
        return np.asarray(fitted(session.arrays["X"]))


def runtime(name: str, *imports: str, of: tuple[str, ...], **more: Any) -> Callable[[Convert], type[Runtime]]:
    """Make a runtime of a function that converts the model of a session; `of` are the distributions of its version."""

    def make(convert: Convert) -> type[Runtime]:
        fields = {"name": name, "imports": imports, "distributions": of, **more}
        fields |= {"prepare": classmethod(lambda _, session: convert(session)), "__module__": convert.__module__}
        return type(convert.__name__, (Runtime,), fields)

    return make


def find_model(session: PythonSession) -> Path:
    """The file of the trained model."""
    return session.place.parent / SHARED / MODEL_FILES[str(session.parameters["library"])]


_XGBOOST = ("xgboost-cpu", "xgboost")  # of which one is installed


def open_xgboost(session: PythonSession) -> Any:
    import xgboost as xgb

    content = find_model(session).read_bytes()
    return xgb.Booster({"nthread": session.threads}, model_file=bytearray(alter_xgboost(content, session.parameters)))


def _missing_value(session: PythonSession) -> float:
    default = "zero" if session.parameters["variant"] == "missing_zero" else "nan"
    return 0.0 if session.parameters.get("missing", default) == "zero" else np.nan


def _predict_xgboost(session: PythonSession, model: Any) -> Predict:
    import xgboost as xgb

    options = {"missing": _missing_value(session), "nthread": session.threads}
    end = model.best_iteration + 1 if session.parameters.get("iterations") == "best" else model.num_boosted_rounds()
    end -= int(session.parameters.get("leave_out", 0))
    return lambda x: model.predict(xgb.DMatrix(x, **options), iteration_range=(0, end))


@runtime("xgboost.native", "xgboost", of=(*_XGBOOST, "numpy"), own=True)
def xgboost_native(session: PythonSession) -> Predict:
    return _predict_xgboost(session, open_xgboost(session))


@runtime("xgboost.inplace", "xgboost", of=(*_XGBOOST, "numpy"), own=True)
def xgboost_inplace(session: PythonSession) -> Predict:
    return partial(open_xgboost(session).inplace_predict, missing=_missing_value(session))


@runtime("xgboost.sklearn", "xgboost", "sklearn.base", of=(*_XGBOOST, "numpy"))
def xgboost_sklearn(session: PythonSession) -> Predict:
    """XGBoost's regressor with the interface of scikit-learn. It is loaded from the file, and knows no more."""
    import xgboost as xgb

    model = xgb.XGBRegressor(n_jobs=session.threads)
    model.load_model(find_model(session))
    return partial(model.predict)


@runtime("xgboost.reloaded", "xgboost", of=(*_XGBOOST, "numpy"), own=True)
def xgboost_reloaded(session: PythonSession) -> Predict:
    """XGBoost's Booster, saved in its other format, UBJSON, and loaded again."""
    import xgboost as xgb

    model = xgb.Booster({"nthread": session.threads})
    model.load_model(bytearray(open_xgboost(session).save_raw("ubj")))
    return _predict_xgboost(session, model)


def open_lightgbm(session: PythonSession) -> Any:
    import lightgbm as lgb

    return lgb.Booster(model_str=alter_lightgbm(find_model(session).read_text(), session.parameters))


@runtime("lightgbm.native", "lightgbm", of=("lightgbm", "numpy"), own=True)
def lightgbm_native(session: PythonSession) -> Predict:
    model = open_lightgbm(session)
    count = model.num_trees() - int(session.parameters.get("leave_out", 0))
    return partial(model.predict, num_iteration=count, num_threads=session.threads)


@runtime("lightgbm.reloaded", "lightgbm", of=("lightgbm", "numpy"), own=True)
def lightgbm_reloaded(session: PythonSession) -> Predict:
    import lightgbm as lgb

    model = lgb.Booster(model_str=open_lightgbm(session).model_to_string())
    return partial(model.predict, num_threads=session.threads)


def open_catboost(session: PythonSession) -> Any:
    import catboost

    return catboost.CatBoostRegressor().load_model(str(find_model(session)))


@runtime("catboost.native", "catboost", of=("catboost", "numpy"), own=True)
def catboost_native(session: PythonSession) -> Predict:
    model = open_catboost(session)
    count = model.tree_count_ - int(session.parameters.get("leave_out", 0))
    return partial(model.predict, ntree_end=count, thread_count=session.threads)


@runtime("catboost.reloaded", "catboost", of=("catboost", "numpy"), own=True)
def catboost_reloaded(session: PythonSession) -> Predict:
    import catboost

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.json")
        open_catboost(session).save_model(path, format="json")
        model = catboost.CatBoostRegressor().load_model(path, format="json")
    return partial(model.predict, thread_count=session.threads)


_LOOP = """
extern "C" void predict_rows(const float* x, long n, long p, double* out) {
    for (long i = 0; i < n; ++i)
        out[i] = ApplyCatboostModel(std::vector<float>(x + i * p, x + (i + 1) * p));
}
"""


@runtime("catboost.c++", "catboost", of=("catboost",), language="c++", compiler="g++")
def catboost_cpp(session: PythonSession) -> Predict:
    """The exported source, with a loop over rows."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "model.cpp", Path(folder) / "model.so"
        open_catboost(session).save_model(str(source), format="cpp")
        source.write_text(source.read_text() + _LOOP)
        command = [str(shutil.which("g++")), "-O2", "-std=c++17", "-shared", "-fPIC", "-o", str(library), str(source)]
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


def _predict_boosters(session: PythonSession, content: Any) -> Predict:
    """Its one output is the method's vector."""
    import boosters

    model = boosters.Model.load_from_bytes(bytes(content))
    return lambda x: np.asarray(model.predict(boosters.Dataset(x), n_threads=session.threads))[:, 0]


@runtime("xgboost.boosters", "boosters", "xgboost", "pandas", of=("boosters", *_XGBOOST))
def xgboost_boosters(session: PythonSession) -> Predict:
    import boosters

    return _predict_boosters(session, boosters.xgboost_to_json_bytes(open_xgboost(session)))


@runtime("lightgbm.boosters", "boosters", "lightgbm", "pandas", of=("boosters", "lightgbm"))
def lightgbm_boosters(session: PythonSession) -> Predict:
    import boosters

    return _predict_boosters(session, boosters.lightgbm_to_json_bytes(open_lightgbm(session)))


def _convert_to_onnx(session: PythonSession, converter: str, model: Any) -> bytes:
    from onnxmltools import convert
    from onnxmltools.convert.common.data_types import FloatTensorType

    columns = ("X", FloatTensorType([None, session.arrays["X"].shape[1]]))
    return bytes(getattr(convert, converter)(model, initial_types=[columns]).SerializeToString())


def _predict_onnx(session: PythonSession, content: bytes) -> Predict:
    """It predicts in single precision, as the format demands."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = session.threads
    model = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda x: model.run(None, {model.get_inputs()[0].name: x.astype(np.float32)})[0][:, 0]


_ONNX, _CONVERTERS = "onnxruntime", "onnxmltools.convert"


@runtime("xgboost.onnxruntime", _ONNX, _CONVERTERS, "xgboost", of=(_ONNX, "onnxmltools", *_XGBOOST))
def xgboost_onnx(session: PythonSession) -> Predict:
    return _predict_onnx(session, _convert_to_onnx(session, "convert_xgboost", open_xgboost(session)))


@runtime("lightgbm.onnxruntime", _ONNX, _CONVERTERS, "lightgbm", of=(_ONNX, "onnxmltools", "lightgbm"))
def lightgbm_onnx(session: PythonSession) -> Predict:
    return _predict_onnx(session, _convert_to_onnx(session, "convert_lightgbm", open_lightgbm(session)))


@runtime("catboost.onnxruntime", _ONNX, "catboost", "onnx", of=(_ONNX, "catboost"))
def catboost_onnx(session: PythonSession) -> Predict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        open_catboost(session).save_model(str(path), format="onnx")
        return _predict_onnx(session, path.read_bytes())


def _read_by_treelite(session: PythonSession) -> Any:
    import treelite

    path = str(find_model(session))
    if session.parameters["library"] == "xgboost":
        return treelite.frontend.load_xgboost_model(path, format_choice="json")
    return treelite.frontend.load_lightgbm_model(path)


def _predict_treelite(session: PythonSession) -> Predict:
    """It predicts in the precision in which the model's thresholds are stored."""
    import treelite

    model = _read_by_treelite(session)
    predict = partial(treelite.gtil.predict, model, nthread=session.threads)
    return lambda x: np.asarray(predict(x.astype(model.input_type))).reshape(len(x), -1)[:, 0]


def _predict_tl2cgen(session: PythonSession) -> Predict:
    """It predicts in the precision in which the model's thresholds are stored."""
    import tl2cgen

    model, parallel = _read_by_treelite(session), {"parallel_comp": 4}
    kind = np.dtype(str(model.input_type))
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "model.so")
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params=parallel, verbose=False)
        predict = tl2cgen.Predictor(library, nthread=session.threads).predict
    data = partial(tl2cgen.DMatrix, dtype=kind.name)
    return lambda x: np.asarray(predict(data(x.astype(kind)))).reshape(len(x), -1)[:, 0]


@runtime("xgboost.treelite", "treelite", of=("treelite",))
def xgboost_treelite(session: PythonSession) -> Predict:
    return _predict_treelite(session)


@runtime("lightgbm.treelite", "treelite", of=("treelite",))
def lightgbm_treelite(session: PythonSession) -> Predict:
    return _predict_treelite(session)


@runtime("xgboost.tl2cgen", "tl2cgen", "treelite", of=("tl2cgen", "treelite"), language="c", compiler="gcc")
def xgboost_tl2cgen(session: PythonSession) -> Predict:
    return _predict_tl2cgen(session)


@runtime("lightgbm.tl2cgen", "tl2cgen", "treelite", of=("tl2cgen", "treelite"), language="c", compiler="gcc")
def lightgbm_tl2cgen(session: PythonSession) -> Predict:
    return _predict_tl2cgen(session)


@runtime("lightgbm.lleaves", "lleaves", of=("lleaves", "llvmlite"))
def lightgbm_lleaves(session: PythonSession) -> Predict:
    import lleaves

    model = lleaves.Model(model_file=str(find_model(session)))
    model.compile()
    return partial(model.predict, n_jobs=session.threads)
