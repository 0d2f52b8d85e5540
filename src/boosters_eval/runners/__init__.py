"""The libraries under test, each behind one adapter."""

from __future__ import annotations

from importlib import import_module

from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.runners.base import FitRequest, ModelFacts, Runner, TrainData, Translation

_BUILTIN = {
    "boosters": "BoostersRunner",
    "xgboost": "XGBoostRunner",
    "lightgbm": "LightGBMRunner",
    "catboost": "CatBoostRunner",
    "sklearn": "SklearnRunner",
}


def _builtin() -> dict[str, type[Runner]]:
    return {name: getattr(import_module(f"boosters_eval.runners.{name}_runner"), cls) for name, cls in _BUILTIN.items()}


def _fault(item: object) -> str:
    """What keeps a class from being a runner. One that times and scores itself, as the RFC's does, is refused."""
    fault = must_extend(Runner)(item)
    if fault and isinstance(item, type) and not issubclass(item, Runner) and hasattr(item, "run"):
        return f"{fault}, whose run would time and score itself; here one clock and one scorer serve all libraries"
    lacking = [name for name in ("name", "module", "distributions", "install") if not hasattr(item, name)]
    return fault or (f"{getattr(item, '__name__', item)} does not define {', '.join(lacking)}" if lacking else "")


RUNNERS: Registry[type[Runner]] = Registry("library", group="boosters_eval.runners", builtin=_builtin, fault=_fault)

__all__ = ["RUNNERS", "FitRequest", "ModelFacts", "Runner", "TrainData", "Translation"]
