"""The workload `determinism`: train on rows that a probe has changed in a way that should not matter, and predict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.datasets import open_stored
from boosters_eval.datasets.generated import Stream
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.cell import CellOutcome, Outcome, Spec
from boosters_eval.programs.benchmark.fit import Fit, take_data
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.runners.measure import check_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from boosters_eval.engine.cell import Cell, Target
    from boosters_eval.runners.base import FitRequest, Runner, TrainData

ProbeName = Literal[
    "once",
    "again",
    "process",
    "threads",
    "threads again",
    "all threads",
    "rows",
    "columns",
    "weights",
    "repeated",
]
_STREAM = 29  # keeps these orders apart from other uses of a stream
_SEED = 42  # of every model, whatever its spec is called


class ProbedSpec(FitSpec):
    """A fit with one thing about it changed."""

    workload: Literal["determinism"] = "determinism"  # type: ignore[assignment]  # everything else is as in a fit
    probe: ProbeName


class ProbedOutcome(CellOutcome):
    """What the model says of the test rows, in their own order."""

    predictions: str  # digest

    @property
    def digests(self) -> tuple[str, ...]:
        return (self.predictions,)


class Determinism(Fit):
    """The workload whose targets are libraries."""

    name: ClassVar[str] = "determinism"
    spec_type: ClassVar[type[Spec]] = ProbedSpec
    outcome_type: ClassVar[type[Outcome]] = ProbedOutcome  # type: ignore[assignment]

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        return (__name__, *super().imports(target))

    @classmethod
    def run(  # type: ignore[override]
        cls, cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> ProbedOutcome:
        spec = cell.spec
        if not isinstance(spec, ProbedSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'determinism'.")
        phase("load")
        data = take_data(cell, open_stored(Path(inputs["data"])), inputs)
        request = replace(data.request, seed=_SEED)
        request, train, x = change(spec.probe, request, data.train, data.x_valid)
        reason = loaded.unsupported(request)
        if reason is not None:
            raise UnsupportedError(reason)
        translation = loaded.translate(request)
        phase("fit")
        model = loaded.fit(translation, loaded.build(translation, train))
        if spec.probe == "again":
            model = loaded.fit(translation, loaded.build(translation, train))
        phase("predict")
        predictions = check_predictions(loaded.predict(translation, model, x), request, len(x))
        phase("done")
        return ProbedOutcome.of(cell, predictions=save_array(Path(inputs["artifacts"]), predictions))


def change(
    probe: ProbeName, request: FitRequest, train: TrainData, x: NDArray[Any]
) -> tuple[FitRequest, TrainData, NDArray[Any]]:
    """What a model is trained on and asked about under a probe."""
    count = len(train.y)
    if probe == "columns":
        order = Stream(_STREAM, train.x.shape[1]).order(train.x.shape[1])
        place = {int(column): at for at, column in enumerate(order)}
        names = tuple(train.feature_names[column] for column in order) if train.feature_names else ()
        moved = replace(train, x=np.ascontiguousarray(train.x[:, order]), feature_names=names)
        categorical = tuple(sorted(place[column] for column in request.categorical))
        return replace(request, categorical=categorical), moved, np.ascontiguousarray(x[:, order])
    if probe == "rows":
        return request, train.take(_reorder(train, count)), x
    if probe in ("weights", "repeated"):
        times = 1 + (Stream(_STREAM, count, 1).uniform(count) * 3).astype(np.int64)
        if probe == "weights":
            return replace(request, weighted=True), replace(train, weights=times.astype(np.float64)), x
        return (
            replace(request, weighted=False),
            replace(train, weights=None).take(np.repeat(np.arange(count), times)),
            x,
        )
    return request, train, x


def _reorder(train: TrainData, count: int) -> NDArray[np.int64]:
    """Rows in another order; of a ranking whole queries, since the rows of one are adjacent."""
    if train.groups is None:
        return Stream(_STREAM, count).order(count)
    starts = np.flatnonzero(np.diff(train.groups, prepend=train.groups[0] - 1))
    parts = np.split(np.arange(count), starts[1:])
    return np.concatenate([parts[at] for at in Stream(_STREAM, len(parts)).order(len(parts))])
