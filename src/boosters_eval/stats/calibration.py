"""Whether predictions can be taken at their word: what was found where so much was predicted, and how sure that is.

The luck in an interval is that of the rows. A row that several fits predicted is one row, and rows of a group are not
independent: shares are bounded by Wilson's interval with the number of independent rows that their spread is worth,
means by Student's t over the groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri, stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.rows import IntArray

BINS = 10
ROWS_PER_BIN = 20  # of residuals, whose bins have equally many rows
MIDDLE = 0.8  # the share of residuals that a bin's spread holds
ALPHA = 0.05  # of each interval


@dataclass(frozen=True, slots=True)
class Bin:
    """Some rows: what was predicted for them on average, and what was found."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    at: float  # the mean prediction, or the level of a quantile
    found: float  # the share of hits, or the mean residual
    low: float | None  # None: one row or group cannot tell
    high: float | None
    rows: int  # different ones
    share: float  # of all weight
    spread: tuple[float, float] | None = None  # what the middle of the residuals lies between

    def misses(self, expected: float) -> bool:
        """Whether what should have been found is outside the interval."""
        return self.low is not None and self.high is not None and not self.low <= expected <= self.high


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """Which rows were predicted, some perhaps several times; `units` are groups whose rows belong together."""

    rows: IntArray
    units: IntArray | None = None
    weights: FloatArray | None = None

    def take(self, some: NDArray[Any]) -> PredictedRows:
        parts = (None if part is None else part[some] for part in (self.units, self.weights))
        return PredictedRows(self.rows[some], *parts)

    def place(self, numbers: NDArray[Any]) -> dict[int, NDArray[np.bool_]]:
        """The rows of each bin, given the number of its bin for each; those without weight are in none."""
        there = self.weight > 0
        return {int(number): there & (numbers == number) for number in np.unique(numbers[there])}

    @property
    def weight(self) -> FloatArray:
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    @property
    def count(self) -> int:
        return len(np.unique(self.rows))


def bin_probabilities(
    predicted: FloatArray, hits: NDArray[Any], tested: PredictedRows, *, alpha: float = ALPHA
) -> list[Bin]:
    """Bins of equal width, as those of `ece`; empty ones are left out."""
    numbers = np.searchsorted(np.arange(1, BINS) / BINS, predicted, side="right")
    total = float(tested.weight.sum())
    found = []
    for some in tested.place(numbers).values():
        within = tested.take(some)
        weight = within.weight
        share, low, high = bound_share(hits[some].astype(np.float64), within, alpha=alpha)
        mean = float(np.average(predicted[some], weights=weight))
        found.append(Bin(mean, share, low, high, within.count, float(weight.sum()) / total))
    return found


def cover_quantiles(
    levels: Sequence[float], predicted: FloatArray, actual: FloatArray, tested: PredictedRows, *, alpha: float = ALPHA
) -> list[Bin]:
    """For each level, the share of rows that are not above the predicted quantile."""
    found = []
    for place, level in enumerate(levels):
        share, low, high = bound_share((actual <= predicted[:, place]).astype(np.float64), tested, alpha=alpha)
        found.append(Bin(level, share, low, high, tested.count, 1.0))
    return found


def bin_residuals(
    predicted: FloatArray, actual: FloatArray, tested: PredictedRows, *, alpha: float = ALPHA
) -> list[Bin]:
    """The mean of what was missed, where little, more and much was predicted: bins of about equally many rows."""
    count = max(1, min(BINS, tested.count // ROWS_PER_BIN))
    edges = np.unique(np.quantile(predicted, np.arange(1, count) / count))
    numbers = np.searchsorted(edges, predicted, side="left")
    residual, total, tails = actual - predicted, float(tested.weight.sum()), (1 - MIDDLE) / 2
    found = []
    for some in tested.place(numbers).values():
        within = tested.take(some)
        weight = within.weight
        mean, low, high = bound_mean(residual[some], within, alpha=alpha)
        below, above = np.quantile(residual[some], (tails, 1 - tails)).tolist()
        at = float(np.average(predicted[some], weights=weight))
        found.append(Bin(at, mean, low, high, within.count, float(weight.sum()) / total, (below, above)))
    return found


def bound_share(hits: FloatArray, tested: PredictedRows, *, alpha: float = ALPHA) -> tuple[float, float, float]:
    """A share with Wilson's interval, for as many independent rows as these are worth."""
    weight, hit, unit = _sum_rows(hits, tested)
    share = min(1.0, float(hit.sum() / weight.sum()))
    z = float(ndtri(1 - alpha / 2))
    n = _count_equal(weight)
    if unit is not None:
        n = min(n, _count_by_units(share, weight, hit, unit, alpha=alpha))
    return share, *wilson(share, n, z)


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """The shares of which an observed one, of n rows, is at most z standard errors away."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def bound_mean(
    values: FloatArray, tested: PredictedRows, *, alpha: float = ALPHA
) -> tuple[float, float | None, float | None]:
    """A mean with Student's interval over rows, or over the groups that they belong to; None for one of them."""
    weight, value, unit = _sum_rows(values, tested)
    if unit is not None:
        weight, value = np.bincount(unit, weight), np.bincount(unit, value)
    total = float(weight.sum())
    mean, count = float(value.sum()) / total, len(weight)
    if count < 2:
        return mean, None, None
    away = value - mean * weight
    error = math.sqrt(count / (count - 1) * float(away @ away)) / total
    half = float(stdtrit(count - 1, 1 - alpha / 2)) * error
    return mean, mean - half, mean + half


def _sum_rows(values: FloatArray, tested: PredictedRows) -> tuple[FloatArray, FloatArray, IntArray | None]:
    """The weight of each row, its weighted values, and the number of its group; rows without weight are left out."""
    kept = tested.weight > 0
    tested, values = (tested.take(kept), values[kept]) if not kept.all() else (tested, values)
    _, first, place = np.unique(tested.rows, return_index=True, return_inverse=True)
    weight = np.bincount(place, tested.weight)
    value = np.bincount(place, tested.weight * values)
    unit = None if tested.units is None else np.unique(tested.units[first], return_inverse=True)[1]
    return weight, value, unit


def _count_equal(weight: FloatArray) -> float:
    """How many rows of equal weight are worth as much (Kish)."""
    return float(weight.sum() ** 2 / (weight @ weight))


def _count_by_units(share: float, weight: FloatArray, hit: FloatArray, unit: IntArray, *, alpha: float) -> float:
    """How many independent rows have the standard error that groups show; of few groups, less (Korn and Graubard)."""
    weights, hits = np.bincount(unit, weight), np.bincount(unit, hit)
    count = len(weights)
    if count < 2:
        return 1.0
    away = hits - share * weights
    variance = count / (count - 1) * float(away @ away) / float(weight.sum()) ** 2
    if variance <= 0:  # all groups alike, so that they tell nothing of their spread
        return _count_equal(weights)
    unsure = float(ndtri(1 - alpha / 2) / stdtrit(count - 1, 1 - alpha / 2)) ** 2
    return max(share * (1 - share) / variance * unsure, 1.0)
