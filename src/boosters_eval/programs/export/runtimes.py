"""What a saved model is carried over to: its library's other formats, and the runtimes that are installed."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boosters_eval.core.distributions import installed_version
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import the
from boosters_eval.programs.export.saved import (
    ExportError,
    name_categories,
    open_bytes,
    open_saved,
    read_boosters,
    read_xgboost,
    save_apart,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.programs.export.saved import ExportRows, OpenedModel, PredictRows


class ExportRuntime(NamedTuple):
    """A way to carry models of some libraries over, and the distributions that it stands on."""

    libraries: tuple[str, ...]
    needs: tuple[
        str, ...
    ]  # distributions, of which the first one's version is the runtime's; none: the model's library
    carry: Callable[[OpenedModel, Path], PredictRows]
    compiler: str = ""

    def missing(self) -> str:
        """Why it cannot be used here; empty if it can."""
        lost = [name for name in self.needs if not any(map(installed_version, name.split("|")))]
        if lost:
            return f"pip install {' '.join(name.partition('|')[0] for name in lost)}"
        return f"install {self.compiler}" if self.compiler and not shutil.which(self.compiler) else ""

    @property
    def version(self) -> str:
        return find_version(self.needs[0]) if self.needs else ""


def find_version(distribution: str) -> str:
    """That of the first that is installed of several, as in "one|other"."""
    return next((found for one in distribution.split("|") if (found := installed_version(one))), "")


# ---- The libraries' own formats


def _carry_json(saved: OpenedModel, _: Path) -> PredictRows:
    model = saved.model
    match saved.library:
        case "xgboost":
            return read_xgboost(bytes(model.save_raw("json"))).predict
        case "catboost":
            content = save_apart(".json", partial(model.save_model, format="json"))
            return open_bytes(content, ".json").predict
        case _:
            return read_boosters(bytes(model.to_json_bytes())).predict


def _carry_binary(saved: OpenedModel, _: Path) -> PredictRows:
    model = saved.model
    match saved.library:
        case "xgboost":
            return read_xgboost(bytes(model.save_raw("ubj"))).predict
        case "catboost":
            return open_bytes(save_apart(".cbm", model.save_model), ".cbm").predict
        case _:
            return read_boosters(bytes(model.to_bytes())).predict


def _carry_text(saved: OpenedModel, _: Path) -> PredictRows:
    return open_bytes(saved.model.model_to_string(num_iteration=-1).encode(), ".txt").predict


def _carry_skops(saved: OpenedModel, _: Path) -> PredictRows:
    return open_bytes(save_apart(".skops", partial(import_module("skops.io").dump, saved.model)), ".skops").predict


def _carry_interface(saved: OpenedModel, path: Path) -> PredictRows:
    """XGBoost's interface of scikit-learn, which predicts with the trees up to the best one."""
    xgb = import_module("xgboost")
    kind = xgb.XGBRegressor if saved.kind == "regression" else xgb.XGBClassifier
    types = ["c" if at in saved.categorical else "q" for at in range(saved.width)]
    model = kind(n_jobs=1, feature_types=types, validate_parameters=False)
    model.load_model(str(path))
    model.get_booster().feature_names = None
    return model.predict if saved.kind == "regression" else model.predict_proba  # type: ignore[no-any-return]


# ---- boosters


def _carry_boosters(saved: OpenedModel, _: Path) -> PredictRows:
    boosters = import_module("boosters")
    model = saved.model
    if saved.library == "xgboost":
        return read_boosters(bytes(boosters.xgboost_to_json_bytes(model))).predict
    return read_boosters(bytes(boosters.lightgbm_to_json_bytes(model))).predict


# ---- ONNX


def _carry_onnx(saved: OpenedModel, _: Path) -> PredictRows:
    model = saved.model
    match saved.library:
        case "catboost":
            content = save_apart(".onnx", partial(model.save_model, format="onnx"))
        case "sklearn":
            types = import_module("skl2onnx.common.data_types")
            columns = [("X", types.FloatTensorType([None, saved.width]))]
            content = import_module("skl2onnx").to_onnx(model, initial_types=columns).SerializeToString()
        case _:
            convert = import_module("onnxmltools.convert")
            types = import_module("onnxmltools.convert.common.data_types")
            columns = [("X", types.FloatTensorType([None, saved.width]))]
            if saved.library == "xgboost":
                model = model.copy()
                model.feature_names = None  # its converter takes no names but f0, f1, ...
                made = convert.convert_xgboost(model, initial_types=columns)
            else:
                made = convert.convert_lightgbm(model, initial_types=columns, zipmap=False)
            content = made.SerializeToString()
    return read_onnx(bytes(content))


def read_onnx(content: bytes) -> PredictRows:
    """Single precision, as the format demands; the last output has the probabilities, where there are any."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def ask(x: ExportRows) -> Any:
        wanted = session.get_inputs()
        kind = np.float64 if "double" in wanted[0].type else np.float32
        found = session.run(None, {wanted[0].name: x.astype(kind)})[-1]
        if isinstance(found, list) and found and isinstance(found[0], dict):  # a map of classes per row
            return np.array([list(row.values()) for row in found])
        return found

    return ask


# ---- treelite, tl2cgen, lleaves, C++


def _read_by_treelite(saved: OpenedModel, path: Path) -> Any:
    treelite = import_module("treelite")
    if saved.library == "sklearn":
        return treelite.sklearn.import_model(saved.model)
    if saved.library == "lightgbm":
        return treelite.frontend.load_lightgbm_model(str(path))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "model.json")
        place.write_bytes(bytes(saved.model.save_raw("json")))
        return treelite.frontend.load_xgboost_model(str(place), format_choice="json")


def _carry_treelite(saved: OpenedModel, path: Path) -> PredictRows:
    model, gtil = _read_by_treelite(saved, path), import_module("treelite").gtil
    return lambda x: gtil.predict(model, x.astype(model.input_type), nthread=1)


def _carry_tl2cgen(saved: OpenedModel, path: Path) -> PredictRows:
    model = _read_by_treelite(saved, path)
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder, "model.so"))
        options = {"parallel_comp": 4}
        import_module("tl2cgen").export_lib(model, toolchain="gcc", libpath=library, params=options, verbose=False)
        return read_compiled(library, str(model.input_type))


def read_compiled(library: str, kind: str = "float32") -> PredictRows:
    tl2cgen = import_module("tl2cgen")
    predictor = tl2cgen.Predictor(library, nthread=1)
    return lambda x: predictor.predict(tl2cgen.DMatrix(x.astype(kind), dtype=kind))


def _carry_lleaves(saved: OpenedModel, path: Path) -> PredictRows:
    del saved
    model = import_module("lleaves").Model(model_file=str(path))
    model.compile()
    return partial(model.predict, n_jobs=1)


_LOOP = """
extern "C" void predict_rows(const float* x, long n, long p, double* out) {
    for (long i = 0; i < n; ++i)
        out[i] = ApplyCatboostModel(std::vector<float>(x + i * p, x + (i + 1) * p));
}
"""


def _carry_cpp(saved: OpenedModel, _: Path) -> PredictRows:
    if saved.categorical or saved.kind == "classes":
        raise ExportError("The exported C++ is checked for one value per row, and without categories.")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "model.cpp"), Path(folder, "model.so")
        saved.model.save_model(str(source), format="cpp")
        source.write_text(source.read_text() + _LOOP)
        command = [str(shutil.which("g++")), "-O2", "-std=c++17", "-shared", "-fPIC", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own command)
        if done.returncode:
            raise ExportError(f"The exported model cannot be compiled: {done.stderr.strip()[-500:]}")
        call = ctypes.CDLL(str(library)).predict_rows

    def ask(x: ExportRows) -> Any:
        rows = np.ascontiguousarray(x, dtype=np.float32)
        out = np.empty(len(rows))
        shape = map(ctypes.c_long, rows.shape)
        call(rows.ctypes.data_as(ctypes.c_void_p), *shape, out.ctypes.data_as(ctypes.c_void_p))
        return 1 / (1 + np.exp(-out)) if saved.kind == "binary" else out

    return ask


_ONNX = ("onnxruntime", "onnx")
_BOTH = ("xgboost", "lightgbm")
_XGBOOST = "xgboost|xgboost-cpu"
RUNTIMES: dict[str, ExportRuntime] = {
    "json": ExportRuntime(("xgboost", "catboost", "boosters"), (), _carry_json),
    "binary": ExportRuntime(("xgboost", "catboost", "boosters"), (), _carry_binary),
    "text": ExportRuntime(("lightgbm",), ("lightgbm",), _carry_text),
    "skops": ExportRuntime(("sklearn",), ("skops",), _carry_skops),
    "interface": ExportRuntime(("xgboost",), (_XGBOOST,), _carry_interface),
    "boosters": ExportRuntime(_BOTH, ("boosters",), _carry_boosters),
    "onnxruntime": ExportRuntime(("catboost",), _ONNX, _carry_onnx),
    "onnxruntime-skl2onnx": ExportRuntime(("sklearn",), (*_ONNX, "skl2onnx"), _carry_onnx),
    "onnxruntime-onnxmltools": ExportRuntime(_BOTH, (*_ONNX, "onnxmltools"), _carry_onnx),
    "treelite": ExportRuntime((*_BOTH, "sklearn"), ("treelite",), _carry_treelite),
    "tl2cgen": ExportRuntime((*_BOTH, "sklearn"), ("tl2cgen", "treelite"), _carry_tl2cgen, "gcc"),
    "lleaves": ExportRuntime(("lightgbm",), ("lleaves",), _carry_lleaves),
    "c++": ExportRuntime(("catboost",), ("catboost",), _carry_cpp, "g++"),
}


def open_export(export: str) -> PredictRows:
    """An export of the user's own: a file of a known format, or a function in a file."""
    file, colon, name = export.rpartition(":")
    if colon and file.endswith(".py"):
        return _import_function(Path(file), name)
    path = Path(export)
    if path.suffix.lower() == ".onnx":
        return read_onnx(path.read_bytes())
    if path.suffix.lower() in (".so", ".dylib"):
        return read_compiled(str(path.absolute()))
    return open_saved(path).predict


def locate_export(export: str) -> Path:
    """The file of an export, which must be there."""
    file, colon, _ = export.rpartition(":")
    path = Path(file if colon and file.endswith(".py") else export)
    if not path.is_file():
        raise ConfigError(f"{the('exports')} must name files that are there. {path} is none.")
    return path


def _import_function(path: Path, name: str) -> PredictRows:
    sys.path.insert(0, str(path.absolute().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ExportError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise ExportError(f"{path.name} has no function '{name}'.")
    return lambda x: found(name_categories(x))
