"""A trained tree model in the library that trained it, and exported to C++ by it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.programs.parity.data import shared_folder
from boosters_eval.programs.parity.families.training import MODEL_FILES
from boosters_eval.programs.parity.python import PythonBackend, PythonSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from boosters_eval.programs.parity.method import ParameterValue

PIP = "pip install 'boosters-eval[parity]'"


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
        from boosters_eval.programs.parity.families.compiled import compiler  # noqa: PLC0415 (keeps start-up fast)

        return super().missing() or (None if compiler() else "g++ is not installed: apt-get install g++")

    @classmethod
    def prepare(cls, session: PythonSession) -> Any:
        """A shared library of the exported code."""
        from boosters_eval.programs.parity.families.compiled import compile_catboost  # noqa: PLC0415

        return compile_catboost(CatboostNative.prepare(session), session.arrays["X"].shape[1])

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """All rows in one call."""
        return np.asarray(fitted(session.arrays["X"]))
