"""Several targets: how each library learns them, by a model of all where it has one, else by a model of each.

Adapters know nothing of it: a runner is put around them, whose model stands for all targets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.runners.base import ModelFacts, Runner
from boosters_eval.runners.parameters import BoosterType, Mark
from boosters_eval.runners.rules import TableRunner, choose_edition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from boosters_eval.runners.base import FitRequest, TrainData, Translation

TARGETS = "targets"  # what the mark is on
_EACH = "one model per target: times and sizes are those of all of them"
_TOGETHER = "all targets stop at the same round; in other libraries each stops on its own"


class OneOfEach(Runner):
    """A model per target, for a library that learns one target at a time."""

    adapter: ClassVar[type[Runner]]

    @classmethod
    def translate(cls, request: FitRequest) -> Translation:
        return _marked(cls.adapter.translate(request), Mark(parameter=TARGETS, kind="own", reason=_EACH))

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        return [cls.adapter.build(translation, _take(data, place)) for place in range(data.y.shape[1])]

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        return [cls.adapter.fit(translation, one) for one in dataset]

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        return np.column_stack([cls.adapter.predict(translation, one, x) for one in model])

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        parts = [cls.adapter.inspect(one) for one in model]
        sums: dict[str, Any] = {}
        for name in ("n_trees", "n_leaves", "n_bytes"):
            known = [value for part in parts if (value := getattr(part, name)) is not None]
            sums[name] = sum(known) if len(known) == len(parts) else None
        return ModelFacts(**sums)


class AllTogether(Runner):
    """One model of all targets, for a library that takes a matrix of them."""

    adapter: ClassVar[type[Runner]]
    native: ClassVar[Mapping[str, Any]] = {}
    mark: ClassVar[Mark] = Mark(parameter=TARGETS, kind="exact")

    @classmethod
    def translate(cls, request: FitRequest) -> Translation:
        found = cls.adapter.translate(request)
        origins = {**found.origins, **dict.fromkeys(cls.native, TARGETS)}
        found = _marked(replace(found, native={**found.native, **cls.native}, origins=origins), cls.mark)
        stopped = [mark for mark in found.marks if mark.parameter == "early_stopping_rounds" and mark.kind == "exact"]
        if not stopped or request.training.early_stopping_rounds is None:
            return found
        together = Mark(parameter="early_stopping_rounds", kind="approximated", reason=_TOGETHER)
        return replace(found, marks=tuple(together if mark in stopped else mark for mark in found.marks))


class OfCatBoost(AllTogether):
    """Its loss of several targets."""

    native: ClassVar[Mapping[str, Any]] = {"loss_function": "MultiRMSE"}
    mark: ClassVar[Mark] = Mark(
        parameter=TARGETS,
        kind="approximated",
        reason="one tree per round with a vector in each leaf, not one tree per target",
    )


def for_targets(runner: type[Runner], request: FitRequest, count: int) -> type[Runner]:
    """The runner that learns so many targets; of one, the adapter itself."""
    if count < 2:
        return runner
    way = _choose(runner, request)
    own = {
        "__doc__": runner.__doc__,
        "__module__": runner.__module__,
        "__qualname__": runner.__qualname__,
        "adapter": runner,
        **{name: classmethod(_refuse) for name in ("raw", "importances", "attributions", "interactions")},
    }
    return type(runner.__name__, (way, runner), own)


def _choose(runner: type[Runner], request: FitRequest) -> type[Runner]:
    """Trees of XGBoost are one per target in each round: what a model of each target would have."""
    library = runner.library()
    if not issubclass(runner, TableRunner) or request.booster_type is not BoosterType.GBDT:
        return OneOfEach
    if library == "catboost":
        return OfCatBoost
    # Before 3.2 all targets started from one common score.
    since = choose_edition(runner.editions, runner.version())[0].since
    joint = library == "xgboost" and tuple(map(int, since.split("."))) >= (3, 2)
    return AllTogether if joint else OneOfEach


def _refuse(*_: Any) -> Any:
    raise UnsupportedError("models of several targets are not explained")


def _take(data: TrainData, place: int) -> TrainData:
    valid = None if data.valid is None else _take(data.valid, place)
    return replace(data, y=np.ascontiguousarray(data.y[:, place]), valid=valid)


def _marked(found: Translation, mark: Mark) -> Translation:
    return replace(found, marks=(*found.marks, mark))
