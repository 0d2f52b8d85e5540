"""The rows of a data set for a seed, split and prepared as any library's row of the same table has them."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.model import Model
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import (
    Prepared,
    Protocol,
    ProtocolSplit,
    prepare_rows,
    split_by_protocol,
)
from boosters_eval.programs.benchmark.preprocessing import load_steps
from boosters_eval.runners.base import FitRequest, lazy_module
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.datasets import Stored, Table
else:
    np = lazy_module("numpy")


class Scoring(Model):
    """The data on which something is scored that no library's runner trains."""

    dataset: str
    data_digest: str
    task: Task
    n_classes: int | None
    quantiles: tuple[float, ...]
    max_categories: int
    metrics: tuple[str, ...]
    protocol: Protocol | None  # None: all rows


@dataclass(frozen=True)
class PaperRows:
    """Rows to learn from, to stop early on, and to be tested on. What is categorical holds codes; NaN is missing."""

    task: Task
    n_classes: int | None
    seed: int
    train: NDArray[np.int64]  # places in the data set
    valid: NDArray[np.int64]
    test: NDArray[np.int64]
    table: Table
    prepared: Prepared
    scoring: Scoring

    @property
    def x_train(self) -> NDArray[np.float32]:
        return self.prepared.train.x

    @property
    def y_train(self) -> NDArray[np.float64]:
        return self.prepared.train.y

    @property
    def x_valid(self) -> NDArray[np.float32]:
        return self.prepared.stop.x

    @property
    def y_valid(self) -> NDArray[np.float64]:
        return self.prepared.stop.y

    @property
    def x_test(self) -> NDArray[np.float32]:
        return self.prepared.test.x

    @property
    def y_test(self) -> NDArray[np.float64]:
        """The targets in their own units, as predictions of them are scored."""
        return np.asarray(self.table.y[self.test])

    @property
    def names(self) -> tuple[str, ...]:
        return self.prepared.test.names

    @property
    def categorical(self) -> tuple[int, ...]:
        return self.prepared.test.categorical

    def make_request(self, n_threads: int = 1) -> FitRequest:
        return FitRequest(
            task=self.task,
            training=TrainingConfig(),
            n_classes=self.n_classes,
            quantiles=self.scoring.quantiles,
            categorical=self.categorical,
            max_categories=self.scoring.max_categories,
            n_threads=n_threads,
            seed=self.seed,
        )

    def score(self, predictions: Any) -> dict[str, float]:
        """The metrics of predictions for the test rows: values, probabilities of class 1, or (n, k) for k classes.

        They are in the units of the targets that were trained on, and computed by the code that scores every fit.
        """
        from boosters_eval.metrics import compute_metrics  # noqa: PLC0415 (imports numpy)
        from boosters_eval.runners.measure import check_predictions  # noqa: PLC0415 (imports numpy)

        array = np.asarray(predictions)
        if self.task is Task.BINARY and array.ndim == 2 and array.shape[1] == 2:
            array = array[:, 1]
        elif array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        checked = check_predictions(array, self.make_request(), len(self.test))

        def part(column: Any) -> Any:
            return None if column is None else np.asarray(column[self.test])

        return compute_metrics(
            self.task,
            part(self.table.y),
            self.prepared.restore(checked),
            self.n_classes,
            part(self.table.weights),
            groups=part(self.table.groups),
            sensitive=part(self.table.sensitive),
            quantiles=self.scoring.quantiles,
            metrics=self.scoring.metrics,
        )


def open_rows(scoring: Scoring, inputs: Mapping[str, str], seed: int) -> PaperRows:
    """The rows of the protocol for a seed, or all of them as they are."""
    from boosters_eval.datasets import open_stored  # noqa: PLC0415 (imports numpy)

    load_steps(inputs)
    table = open_stored(Path(inputs["data"]))
    every = np.arange(len(table.y))
    protocol = scoring.protocol or Protocol()
    split = (
        ProtocolSplit(every[:0], every[:0], every)
        if scoring.protocol is None
        else split_by_protocol(table, scoring.task, protocol, seed, stopping=False)
    )
    prepared = prepare_rows(table, split, protocol, seed)
    return PaperRows(
        scoring.task, scoring.n_classes, seed, split.train, split.stop, split.test, table, prepared, scoring
    )


def describe_data(config: Any, data: Stored, metrics: tuple[str, ...]) -> dict[str, Any]:
    """What a spec says of its data set."""
    return {
        "dataset": config.name,
        "data_digest": data.digest,
        "task": data.task,
        "n_classes": data.n_classes,
        "quantiles": config.quantiles,
        "max_categories": data.max_categories,
        "metrics": metrics,
    }


@dataclass(frozen=True)
class _Asked:
    """What the function of a row is to reproduce."""

    dataset: str
    seed: int
    scoring: Scoring | None
    inputs: Mapping[str, str]


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


def ask(dataset: str, seed: int, scoring: Scoring | None, inputs: Mapping[str, str]) -> None:
    """From now on `split()` gives the rows of this target; for the process of a cell, which does nothing else."""
    _asked.set(_Asked(dataset, seed, scoring, inputs))


def split(
    dataset: str | None = None,
    seed: int | None = None,
    *,
    train: int | None = None,
    validation: int | None = None,
    test: float | Literal["official"] = 0.2,
    preprocessing: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> PaperRows:
    """The rows of a data set for a seed, on the very split on which libraries are trained and tested.

    In a function that `paper run` calls nothing need be given: the rows are those of its target, by the data set and
    the sizes that the specification names. Elsewhere a data set and a seed are needed; the rest is as in one.
    """
    asked = _asked.get()
    if dataset is None or seed is None:
        if asked is None:
            raise ConfigError("Outside of 'paper run' split() must be given a data set and a seed.")
        if asked.scoring is None:
            raise ConfigError(f"There is no data set '{asked.dataset}' here: name one by 'use' in the specification.")
        return open_rows(asked.scoring, asked.inputs, asked.seed if seed is None else seed)
    from boosters_eval.datasets import materialize, resolve_dataset  # noqa: PLC0415 (imports numpy)

    config = resolve_dataset(dataset)
    data = materialize(config)
    protocol = Protocol(train=train, validation=validation, test=test, preprocessing=tuple(preprocessing))
    scoring = Scoring(**describe_data(config, data, tuple(metrics)), protocol=protocol)
    return open_rows(scoring, {"data": str(data.path)}, seed)
