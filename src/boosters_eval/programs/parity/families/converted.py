"""A trained tree model in runtimes of others: boosters, ONNX Runtime, treelite, tl2cgen and lleaves."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.programs.parity.families.native import CatboostNative, LightgbmNative, Runtime, XgboostNative

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.programs.parity.python import PythonSession


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
        from boosters_eval.programs.parity.families.compiled import compiler  # noqa: PLC0415 (keeps start-up fast)

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
