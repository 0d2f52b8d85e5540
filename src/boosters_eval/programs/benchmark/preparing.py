"""The rows of a cell that follows a protocol: split by its sizes, and preprocessed with what the training rows tell."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DatasetError
from boosters_eval.datasets import Split, split_rows
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.datasets.generated import Stream
from boosters_eval.programs.benchmark.paper_protocol import STEPS, StepRows
from boosters_eval.runners.base import TrainData

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from boosters_eval.datasets import Table
    from boosters_eval.metrics.task import Task
    from boosters_eval.programs.benchmark.paper_protocol import Protocol
    from boosters_eval.runners.base import FitRequest

_PROTOCOL = 4  # keeps this use of a seed apart from its others


@dataclass(frozen=True)
class ProtocolSplit:
    """The rows that a protocol learns from, stops early on, and is scored on."""

    train: NDArray[np.int64]
    stop: NDArray[np.int64]
    test: NDArray[np.int64]

    def as_split(self) -> Split:
        """For the record of a fit. The digest covers the rows to stop on too."""
        content = hashlib.sha256(f"{len(self.train)} {len(self.stop)} {len(self.test)} ".encode())
        for rows in (self.train, self.stop, self.test):
            content.update(np.ascontiguousarray(rows, dtype="<i8").data)
        return Split(self.train, self.test, content.hexdigest())


@dataclass(frozen=True)
class Prepared:
    """Rows as a library or a saved model sees them, and the way back to the target's own units."""

    train: StepRows
    stop: StepRows
    test: StepRows
    restore: Callable[[NDArray[Any]], NDArray[Any]]


def protocol_split(table: Table, task: Task, protocol: Protocol, seed: int, *, stopping: bool) -> ProtocolSplit:
    """The split of a seed. A fraction keeps the shares of classes and whole queries; counted rows are drawn at random.

    The rows to stop on are those that the protocol counts, or a fifth of the others where a library is to stop early.
    """
    rest, test = _tested(table, task, protocol, seed)
    count = protocol.validation or (max(1, len(rest) // 5) if stopping else 0)
    wanted = (protocol.train or 1) + count
    if wanted > len(rest):
        raise DatasetError(
            f"The split needs {wanted} rows besides the {len(test)} that are tested on. Got {len(rest)} instead."
        )
    last = len(rest) if protocol.train is None else count + protocol.train
    return ProtocolSplit(train=rest[count:last], stop=rest[:count], test=test)


def _tested(table: Table, task: Task, protocol: Protocol, seed: int) -> tuple[Any, Any]:
    """All other rows in a random order, and the rows to be scored on."""
    if protocol.test == "official":
        if table.split is None:
            raise DatasetError("The data set has no official test rows: give their number, or a fraction.")
        official = np.asarray(table.split)
        rest = np.flatnonzero(official == 0)
        return rest[Stream(seed, _PROTOCOL).order(len(rest))], np.flatnonzero(official == 1)
    if isinstance(protocol.test, float):
        split = split_rows(table, task, SplitSpec(validation_fraction=protocol.test), seed, None)
        return split.train, split.valid
    order = Stream(seed, _PROTOCOL).order(len(table.y))
    return order[protocol.test :], order[: protocol.test]


def prepare_rows(table: Table, split: ProtocolSplit, protocol: Protocol, seed: int) -> Prepared:
    """Fit every step on the training rows, and apply it to the others."""
    train, stop, test = (_taken(table, rows) for rows in (split.train, split.stop, split.test))
    steps = [STEPS[name]() for name in protocol.preprocessing]
    for step in steps:
        train, test = step.fit(train, seed), step.apply(test)
        stop = step.apply(stop) if len(stop.y) else stop  # no step need know what to do with no rows

    def restore(predictions: NDArray[Any]) -> NDArray[Any]:
        for step in reversed(steps):
            predictions = step.restore(predictions)
        return predictions

    return Prepared(train, stop, test, restore)


def _taken(table: Table, rows: Any) -> StepRows:
    return StepRows(
        x=np.ascontiguousarray(table.x[rows]),
        y=np.asarray(table.y[rows]),
        categorical=table.categorical,
        names=table.feature_names,
    )


@dataclass(frozen=True)
class FitData:
    """What a cell trains on and predicts, as its library sees it."""

    split: Split
    request: FitRequest
    train: TrainData
    x_valid: NDArray[np.float32]
    restore: Callable[[NDArray[Any]], NDArray[Any]] = lambda predictions: predictions  # to the target's own units


def protocol_data(protocol: Protocol, table: Table, request: FitRequest, seed: int) -> FitData:
    """What a fit under a protocol is given."""
    stopping = request.training.early_stopping_rounds is not None
    split = protocol_split(table, request.task, protocol, seed, stopping=stopping)
    found = prepare_rows(table, split, protocol, seed)
    has_missing = any(bool(np.isnan(part.x).any()) for part in (found.train, found.stop, found.test))
    train = _train_data(found.train, table, split.train)
    return FitData(
        split=split.as_split(),
        request=replace(request, categorical=found.train.categorical, has_missing=has_missing),
        train=replace(train, valid=_train_data(found.stop, table, split.stop)) if stopping else train,
        x_valid=np.ascontiguousarray(found.test.x),
        restore=found.restore,
    )


def _train_data(part: StepRows, table: Table, rows: Any) -> TrainData:
    return TrainData(
        x=np.ascontiguousarray(part.x),
        y=part.y,
        weights=None if table.weights is None else np.asarray(table.weights[rows]),
        groups=None if table.groups is None else np.asarray(table.groups[rows]),
        feature_names=part.names,
    )
