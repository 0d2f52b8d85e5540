"""How a saved model is scored: on the rows and by the metrics that a fit would be scored on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import MetricInputError
from boosters_eval.datasets import open_stored
from boosters_eval.metrics import compute_metrics
from boosters_eval.programs.benchmark.preparing import Prepared, ProtocolSplit, prepare_rows, protocol_split
from boosters_eval.programs.benchmark.protocol import Protocol
from boosters_eval.programs.paper.models import open_model, predict
from boosters_eval.runners.base import FitRequest
from boosters_eval.runners.measure import check_predictions
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boosters_eval.datasets import Table
    from boosters_eval.programs.paper.evaluate import Scoring


def score_model(
    scoring: Scoring, form: str, path: Path, data: Path, seed: int, n_threads: int, phase: Callable[[str], None]
) -> tuple[dict[str, float], int]:
    """Open, predict, score; and on how many rows."""
    phase("load")
    table = open_stored(data)
    rows, prepared = _rows(table, scoring, seed)
    request = FitRequest(
        task=scoring.task,
        training=TrainingConfig(),
        n_classes=scoring.n_classes,
        quantiles=scoring.quantiles,
        categorical=prepared.test.categorical,
        max_categories=scoring.max_categories,
        n_threads=n_threads,
        seed=seed,
    )
    model = open_model(form, path)
    phase("predict")
    predictions = check_predictions(predict(form, model, request, prepared.test.x), request, len(rows))
    phase("score")

    def part(column: Any) -> Any:
        return None if column is None else np.asarray(column[rows])

    metrics = compute_metrics(
        scoring.task,
        part(table.y),
        prepared.restore(predictions),
        scoring.n_classes,
        part(table.weights),
        groups=part(table.groups),
        sensitive=part(table.sensitive),
        quantiles=scoring.quantiles,
        metrics=scoring.metrics,
    )
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise MetricInputError(f"The metric '{name}' must be finite. Got {value} instead.")
    return metrics, len(rows)


def _rows(table: Table, scoring: Scoring, seed: int) -> tuple[Any, Prepared]:
    """The rows of the protocol's test, or all of them as they are."""
    if scoring.protocol is None:
        every = np.arange(len(table.y))
        return every, prepare_rows(table, ProtocolSplit(every[:0], every[:0], every), Protocol(), seed)
    split = protocol_split(table, scoring.task, scoring.protocol, seed, stopping=False)
    return split.test, prepare_rows(table, split, scoring.protocol, seed)
