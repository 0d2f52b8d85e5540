"""Scores that come in units: how alike those of one unit are, and what so few units can vouch for.

Seeds of one data set are not independent cases, so the gate counts data sets (ADR-0007); and no bound can know of a
loss that the sample does not contain (ADR-0008). Everything here is sums, products and quotients: the same everywhere.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PROMISED = 0.95  # what the bound is said to cover; nothing here claims more
_DIGITS = 3  # scores that agree when rounded to this many decimals are one lump


def mean(scores: Sequence[float]) -> float:
    """The mean, without rounding in between."""
    return math.fsum(scores) / len(scores)


def intraclass_correlation(units: Sequence[Sequence[float]]) -> float | None:
    """How much of the variance lies between units: 1 when the scores of a unit are all alike, near 0 when units are.

    The estimate of the one-way analysis of variance, for units of any size; None where it cannot be estimated.
    """
    count = sum(map(len, units))
    inner = count - len(units)
    outer = len(units) - 1
    if outer < 1 or inner < 1:
        return None
    grand = math.fsum(score for unit in units for score in unit) / count
    between = math.fsum(len(unit) * _square(mean(unit) - grand) for unit in units) / outer
    within = math.fsum(_square(score - mean(unit)) for unit in units for score in unit) / inner
    size = (count - sum(len(unit) * len(unit) for unit in units) / count) / outer
    total = between + (size - 1) * within
    return (between - within) / total if total > 0 else None


def covered_level(scores: Sequence[float], threshold: float) -> float | None:
    """How sure it is that the true mean reaches the threshold, even if some units lose everything.

    Suppose that a share p of all units scores 0 and none of them was drawn, so that the true mean is (1 - p) times the
    mean seen here. It is below the threshold from p = 1 - threshold / mean on, and N units show no such loss with
    probability (1 - p)^N at most. No other two-point distribution with an unseen loss is harder to see. None where
    the mean is below the threshold: there is nothing to be covered.
    """
    found = mean(scores)
    if found < threshold:
        return None
    unseen = math.prod([threshold / found] * len(scores))
    return min(1.0 - unseen, PROMISED)


def vouched_threshold(scores: Sequence[float], level: float) -> float:
    """The highest threshold that `covered_level` gives this level for."""
    return mean(scores) * math.exp(math.log1p(-level) / len(scores))


def units_needed(scores: Sequence[float], threshold: float, level: float) -> int | None:
    """How many units with this mean `covered_level` needs for the level; None if no number is enough."""
    found = mean(scores)
    if found <= threshold:
        return None
    return math.ceil(math.log1p(-level) / math.log(threshold / found))


def largest_lump(scores: Sequence[float]) -> tuple[float, int]:
    """The value that most scores share, to three decimals, and how many do."""
    counts = Counter(round(score, _DIGITS) for score in scores)
    value, count = max(counts.items(), key=lambda item: (item[1], item[0]))
    return value, count


def _square(value: float) -> float:
    return value * value
