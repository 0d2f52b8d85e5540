"""The libraries under test, each behind one adapter."""

from __future__ import annotations

from importlib import import_module

from boosters_eval.core.registry import Registry
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


def _is_runner(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Runner)


RUNNERS: Registry[type[Runner]] = Registry(
    "library", group="boosters_eval.runners", builtin=_builtin, accepts=_is_runner
)

__all__ = ["RUNNERS", "FitRequest", "ModelFacts", "Runner", "TrainData", "Translation"]
