"""Thousands of verdicts at once: the arithmetic of `significance`, over the rows of two matrices.

An answer is given only where rounding cannot matter. Whatever is near an edge is left to the comparison of one pair, so
that both ways never disagree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from boosters_eval.stats.inference import HUGE, freedom

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.significance import Criteria, Verdict

_EDGE = 1e-9  # relative; sums of different order differ by far less
_LEAST = 1e-100  # below it, squares lose their digits


def verdicts_of_scores(
    a: FloatArray,
    b: FloatArray,
    criteria: Criteria,
    *,
    test_train_ratio: float,
    resolution: float | None,
    identical: NDArray[np.bool_],
) -> list[Verdict | None]:
    """The verdict on each row of `a` against that of `b` by the corrected test on random splits, all of them different.

    `identical` says in which rows the predictions are. None: compare that pair by itself.
    """
    count = a.shape[1]
    scale = _scale(a, b)
    margin = criteria.rope * (np.abs(a.mean(axis=1)) + np.abs(b.mean(axis=1))) / 2
    share = 1 / count + test_train_ratio
    found = _read(a - b, margin, scale, criteria, share, freedom(count, test_train_ratio), resolution or 0.0)
    usable = _usable(a, b)
    same = (a == b).all(axis=1)
    for row in np.flatnonzero(same & usable):
        if identical[row] or resolution == 0:
            found[row] = "equivalent"
        elif resolution is None:
            found[row] = "inconclusive"
    return [verdict if known else None for verdict, known in zip(found, usable, strict=True)]


def verdicts_of_times(a: FloatArray, b: FloatArray, criteria: Criteria) -> list[Verdict | None]:
    """The verdict on each row by the ratio, as times and memory are compared. None: compare that pair by itself."""
    count = a.shape[1]
    usable = _usable(a, b) & (a > 0).all(axis=1) & (b > 0).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(a) - np.log(b)
    margin = np.full(len(a), math.log1p(criteria.rope))
    found = _read(logs, margin, np.ones(len(a)), criteria, 1 / count, count - 1, 0.0)
    for row in np.flatnonzero((a == b).all(axis=1)):
        found[row] = "equivalent"
    return [verdict if known else None for verdict, known in zip(found, usable, strict=True)]


def _usable(a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """The rows that a test can be made of; of NaN, and of what is too large or too small, one pair is judged."""
    if a.shape[1] < 2:
        return np.zeros(len(a), dtype=bool)
    found: NDArray[np.bool_] = (np.abs(a) < HUGE).all(axis=1) & (np.abs(b) < HUGE).all(axis=1)
    return found & (_scale(a, b) > _LEAST)


def _scale(a: FloatArray, b: FloatArray) -> FloatArray:
    found: FloatArray = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
    return found


def _read(
    differences: FloatArray,
    margin: FloatArray,
    scale: FloatArray,
    criteria: Criteria,
    share: float,
    degrees: int,
    resolution: float,
) -> list[Verdict | None]:
    """The verdict that the interval of each row stands for."""
    if differences.shape[1] < 2:
        return [None] * len(differences)
    with np.errstate(invalid="ignore", over="ignore"):
        spread = differences.std(axis=1, ddof=1)
        half = float(stdtrit(degrees, 1 - criteria.alpha / 2)) * math.sqrt(share) * np.maximum(spread, resolution)
        mean = differences.mean(axis=1)
        low, high = mean - half, mean + half
        edges = np.stack([low, high, low + margin, high - margin])
        sure = (np.abs(edges).min(axis=0) > _EDGE * scale) & (np.ptp(differences, axis=1) > _EDGE * scale)
        equivalent = (low >= -margin) & (high <= margin)
        open_ = (low <= 0) & (high >= 0)
        good = (low > 0) == criteria.higher_is_better
    codes = np.where(~sure, 0, np.where(equivalent, 1, np.where(open_, 2, np.where(good, 3, 4))))
    return [_MEANING[code] for code in codes.tolist()]


_MEANING: tuple[Verdict | None, ...] = (None, "equivalent", "inconclusive", "better", "worse")
