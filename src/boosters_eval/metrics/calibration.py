"""Whether probabilities mean what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.metrics.binary import probabilities, targets
from boosters_eval.metrics.metric import get
from boosters_eval.metrics.rows import blocks, prepare

if TYPE_CHECKING:
    from boosters_eval.metrics.rows import Floats, Rows


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows whose probability lies in [lower, upper); the last bin includes 1."""

    lower: float
    upper: float
    rows: int
    weight: float
    mean_prediction: float | None  # None: the bin is empty
    mean_label: float | None


def brier(rows: Rows) -> float:
    """Mean squared error of the probability."""
    p, y = probabilities(rows), targets(rows)

    def term(block: slice) -> Floats:
        d = np.array(p[block], dtype=np.float64)
        d -= y[block] == 1
        return np.multiply(d, d, out=d)

    return rows.mean(term)


def _binned(rows: Rows, n_bins: int) -> Floats:
    """For each bin: rows, weight, weighted predictions, weighted labels."""
    p, y = probabilities(rows), targets(rows)
    edges = np.arange(1, n_bins) / n_bins
    sums = np.zeros((4, n_bins))
    for block in blocks(rows.n):
        part = p[block].astype(np.float64, copy=False)
        index = np.searchsorted(edges, part, side="right")
        w = np.ones(len(part)) if rows.weights is None else rows.weights[block]
        for into, values in enumerate((None, w, w * part, w * (y[block] == 1))):
            sums[into] += np.bincount(index, values, minlength=n_bins)
    return sums


def ece(rows: Rows, n_bins: int) -> float:
    """Mean gap between the average probability and the share of positives, over bins by weight."""
    _, weight, predicted, observed = _binned(rows, n_bins)
    return float(np.abs(predicted - observed).sum() / weight.sum())


def reliability(predictions: Any, labels: Any, weights: Any = None, *, n_bins: int = 10) -> list[ReliabilityBin]:
    """The bins behind `ece`, for a reliability diagram."""
    metric = get("ece", n_bins=n_bins)
    rows = prepare(metric.spec, predictions, labels, weights, None, None)
    edges = (np.arange(n_bins + 1) / n_bins).tolist()
    return [
        ReliabilityBin(
            edges[index],
            edges[index + 1],
            int(count),
            weight,
            predicted / weight if count else None,
            observed / weight if count else None,
        )
        for index, (count, weight, predicted, observed) in enumerate(_binned(rows, n_bins).T.tolist())
    ]
