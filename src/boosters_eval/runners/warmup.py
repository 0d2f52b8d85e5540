"""A small fit before anything is measured: what a library does on its first use is not what a fit costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.engine.lane import message_of
from boosters_eval.runners.parameters import Device, Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.metrics.task import Task
    from boosters_eval.runners.base import FitRequest, Runner, TrainData, Translation

ROUNDS = 2
_ROWS = 64
_QUERIES = 8


def fit_once(runner: type[Runner], translation: Translation, train: TrainData, x: NDArray[np.float32]) -> None:
    """Build, fit and predict, and keep nothing of it."""
    runner.predict(translation, runner.fit(translation, runner.build(translation, train)), x)


def warm_up(runner: type[Runner], translation: Translation, train: TrainData) -> tuple[str, ...]:
    """Fit once on a few rows. An error is only a warning: if it was not due to the few rows, the fit will fail too.

    On a device it is not: the first error tells what is wrong with it, those after it only that there was one.
    """
    try:
        small = runner.translate(small_request(translation.request, stopping=train.valid is not None))
        few = few_rows(train, translation.request.task)
        fit_once(runner, small, few, few.x)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a Rust panic is no Exception
        if translation.request.training.device is not Device.CPU:
            raise
        reason = f"{type(error).__name__}: {message_of(error)}"
        return (f"the warm-up failed, so times and memory include the library's first use ({reason})",)
    return ()


def small_request(request: FitRequest, *, stopping: bool) -> FitRequest:
    """The same task with few rounds, and without the limits that would leave a few rows unsplit or unsampled.

    A library with its own defaults would train all of its rounds, so it is warmed up with mapped parameters as well.
    """
    training = request.training.replace(
        n_estimators=ROUNDS,
        min_samples_leaf=1,
        min_child_weight=1e-3,
        min_gain=0.0,
        subsample=max(request.training.subsample, 0.5),
        early_stopping_rounds=request.training.early_stopping_rounds if stopping else None,
    )
    return replace(request, training=training, profile=Profile.PARITY)


def few_rows(data: TrainData, task: Task) -> TrainData:
    """Rows that any library can train on if it can train on all of them."""
    valid = None if data.valid is None else few_rows(data.valid, task)
    return replace(data.take(_chosen(data, task)), valid=valid)


def _chosen(data: TrainData, task: Task) -> NDArray[np.int64]:
    """Rows with a weight, from all over the data; every class and unequal targets; whole queries' first rows."""
    usable = np.arange(len(data.y))
    if data.weights is not None and (data.weights > 0).any():
        usable = np.flatnonzero(data.weights > 0)
    y = data.y[usable]
    parts: list[Any] = [_spread(len(usable), _ROWS), [y.argmin(), y.argmax()]]
    if task.is_classification:
        parts.append(np.unique(y, return_index=True)[1])
    if data.groups is not None:
        starts = np.flatnonzero(np.diff(data.groups[usable], prepend=data.groups[usable[0]] - 1))
        ends = np.append(starts[1:], len(usable))
        parts[0] = np.concatenate(
            [np.arange(starts[i], min(ends[i], starts[i] + _ROWS // _QUERIES)) for i in _spread(len(starts), _QUERIES)]
        )
    rows: NDArray[np.int64] = usable[np.unique(np.concatenate(parts))]
    if not (data.x[rows] != data.x[rows[0]]).any():  # CatBoost refuses data in which no column varies
        other = np.flatnonzero((data.x != data.x[rows[0]]).any(axis=1))[:1]
        rows = np.union1d(rows, other)
    return rows


def _spread(total: int, count: int) -> NDArray[np.int64]:
    return np.linspace(0, total - 1, min(total, count)).astype(np.int64)
