"""Is one library better than another in general? A random-effects mean of relative differences over data sets.

Data sets are a sample of those that there could be: each has an effect of its own, known with an error of its own. The
mean weighs each by both variances (DerSimonian and Laird), and its interval comes from how the effects vary (Hartung
and Knapp, never narrower than the errors say), which keeps its level with six data sets as with many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy  # its `special` is loaded when a test is made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.stats.inference import FloatArray

MIN_EFFECTS = 6  # fewer data sets only describe themselves
InGeneral = Literal["better", "worse", "equivalent", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One data set: the logarithm of the ratio of both errors, below zero where a is better, and its error."""

    size: float
    error: float | None = None  # None: not known, as of a single split


@dataclass(frozen=True, slots=True)
class Pooled:
    """The mean over data sets, as logarithms of ratios of errors."""

    mean: float
    low: float
    high: float
    n: int
    between: float  # the standard deviation of true effects between data sets
    hinges: tuple[str, ...] = ()  # each of these alone: without it the verdict would be another

    @property
    def share(self) -> float:
        """How much larger a's error is, as a share of b's."""
        return math.expm1(self.mean)

    @property
    def interval(self) -> tuple[float, float]:
        return math.expm1(self.low), math.expm1(self.high)

    def conclude(self, rope: float) -> InGeneral:
        """Of a: its interval is beyond zero, inside the region of practical equivalence, or neither."""
        if self.high < 0:
            return "better"
        if self.low > 0:
            return "worse"
        return "equivalent" if -math.log1p(rope) <= self.low and self.high <= math.log1p(rope) else "inconclusive"


def pool(effects: Mapping[str, Effect], *, level: float, rope: float) -> Pooled | None:
    """The mean over data sets with its interval at 1 - level; None of fewer than six."""
    if len(effects) < MIN_EFFECTS:
        return None
    whole = _mean(list(effects.values()), level)
    verdict = whole.conclude(rope)
    others = {name: [one for other, one in effects.items() if other != name] for name in effects}
    hinges = tuple(name for name, rest in others.items() if _mean(rest, level).conclude(rope) != verdict)
    return replace(whole, hinges=hinges)


def _mean(effects: list[Effect], level: float) -> Pooled:
    sizes = np.array([one.size for one in effects])
    variances = _variances(effects)
    between = _between(sizes, variances)
    weights = 1 / (variances + between) if (variances + between).all() else np.ones(len(sizes))
    mean = float(weights @ sizes / weights.sum())
    spread = float(weights @ (sizes - mean) ** 2) / (len(sizes) - 1)
    freedom = max(1.0, float(weights.sum() ** 2 / (weights @ weights)) - 1)  # a few that outweigh the others are few
    error = math.sqrt((max(spread, 1.0) if between or variances.any() else spread) / weights.sum())
    half = float(scipy.special.stdtrit(freedom, 1 - level / 2)) * error
    return Pooled(mean, mean - half, mean + half, len(sizes), math.sqrt(between))


def _variances(effects: list[Effect]) -> FloatArray:
    """What is not known is taken to be as uncertain as the most uncertain that is."""
    known = [one.error for one in effects if one.error is not None]
    largest = max(known, default=0.0)
    return np.array([largest if one.error is None else one.error for one in effects]) ** 2


def _between(sizes: FloatArray, variances: FloatArray) -> float:
    """The variance between data sets, by moments; where no error is known, all of what is seen."""
    if not variances.all():
        return float(sizes.var(ddof=1))
    weights = 1 / variances
    mean = weights @ sizes / weights.sum()
    excess = float(weights @ (sizes - mean) ** 2) - (len(sizes) - 1)
    return max(0.0, excess / float(weights.sum() - (weights @ weights) / weights.sum()))
