"""The deterministic BCa lower bound that the promotion gate keys on (ADR-0002).

The only source of randomness is `numpy.random.default_rng(int(run_id[:8], 16))`. ADR-0002 on that rule: "changing
it would invalidate the audit chain's reproducibility claim."

The readable form of what is computed:

    means = [rng.choice(scores, size=n, replace=True).mean() for _ in range(n_resamples)]
    level = _bca_alpha_lower(_bias_correction(scores, means), _acceleration(scores), 0.025)
    bound = numpy.percentile(means, 100 * level)

Floating-point sums differ between Python, numpy and processors, so scores are fixed-point integers: every sum and
the interpolation are exact, and only correctly rounded operations follow. The level goes through the C library's
erfc; its last bit is lost when the rank is rounded to 2**-32.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


logger = logging.getLogger(__name__)

MIN_CASES = 5
DEFAULT_RESAMPLES = 1000
LEVEL = 0.025
MOSTLY = 0.8  # share of scores at 0 or 1 above which ADR-0002 asks for another interval

_NORMAL = NormalDist()
_TIE = 2.0**-40  # means closer than this are equal: decimal scores have no exact sums
_RANK_BITS = 32
_CHUNK = 2**17  # indices drawn at a time, so that memory does not grow with N
_NUDGE = 2.0**-50  # keeps the window's lower edge on the inner side of a caller's rounding


class BootstrapInputError(ConfigError):
    """Scores, a run id or a number of resamples from which no bound can be computed."""


def compute_lower_bound_95(scores: Sequence[float], *, run_id: str, n_resamples: int = DEFAULT_RESAMPLES) -> float:
    """The lower confidence bound of the mean score: the BCa bootstrap's 2.5th percentile.

    The bound depends on the order of the scores: sort them by case id first.
    """
    seed = _seed(run_id)
    values = _scores(scores)
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int) or n_resamples < 1:
        raise BootstrapInputError(
            f"The 'n_resamples' parameter must be a whole number of at least 1. Got {n_resamples!r} instead."
        )
    if len(values) < MIN_CASES:
        logger.warning(
            "bootstrap_n_too_small: n_cases=%d run_id=%s: the bound is 0 below %d cases; see ADR-0002",
            len(values),
            run_id,
            MIN_CASES,
        )
        return 0.0
    if np.isin(values, (0.0, 1.0)).sum() > MOSTLY * len(values):
        logger.warning(
            "bootstrap_scores_mostly_binary: n_cases=%d run_id=%s: more than %d %% of the scores are 0 or 1, "
            "where the bound covers less than it says; see ADR-0002",
            len(values),
            run_id,
            round(100 * MOSTLY),
        )
    if values.min() == values.max():
        return float(values[0]) + 0.0
    return _bound(values, seed, n_resamples) + 0.0


def _bound(values: NDArray[np.float64], seed: int, n_resamples: int) -> float:
    count = len(values)
    bits = _bits(count)
    fixed = _fixed(values, bits)
    sums = np.sort(_resampled_sums(fixed, seed, n_resamples))
    unit = count << bits
    plain: list[float] = values.tolist()
    mean = math.fsum(plain) / count
    if fixed.min() == fixed.max():
        return mean
    z0 = _bias_correction(values, sums / unit)
    level = _bca_alpha_lower(z0, _acceleration(values), LEVEL)
    rank, part = divmod(round(level * (n_resamples - 1) * 2**_RANK_BITS), 2**_RANK_BITS)
    below, above = int(sums[rank]), int(sums[min(rank + 1, n_resamples - 1)])
    quantile: float = ((below << _RANK_BITS) + part * (above - below)) / (unit << _RANK_BITS)
    deviation = math.sqrt(math.fsum((value - mean) * (value - mean) for value in plain) / (count - 1))
    # A resample that draws one index N times may lie outside the window; no mean is below the smallest score.
    floor = max(mean - 2 * deviation + _NUDGE, min(plain))
    return min(max(quantile, floor), mean)


def _bias_correction(scores: ArrayLike, boot_means: ArrayLike) -> float:
    """Efron's z0: how far the resampled means' median is from the mean. Ties count half."""
    values, means = np.asarray(scores, dtype=np.float64), np.asarray(boot_means, dtype=np.float64)
    distance = means - math.fsum(values.tolist()) / len(values)
    doubled = np.count_nonzero(distance < -_TIE) + np.count_nonzero(distance <= _TIE)  # below twice, ties once
    # With all means on one side, z0 would be infinite.
    return _NORMAL.inv_cdf(min(max(int(doubled), 1), 2 * len(means) - 1) / (2 * len(means)))


def _acceleration(scores: ArrayLike) -> float:
    """Efron's a from the jackknife; for a mean the jackknife's differences are (x - mean) / (n - 1).

    The factor cancels, so whole numbers n x - sum(x) give the same without rounding or underflow.
    """
    values = np.asarray(scores, dtype=np.float64)
    fixed: list[int] = _fixed(values, _bits(len(values))).tolist()
    total = sum(fixed)
    differences = [len(fixed) * value - total for value in fixed]
    squares = float(sum(d * d for d in differences))
    return float(sum(d * d * d for d in differences)) / (6.0 * squares * math.sqrt(squares))


def _bca_alpha_lower(z0: float, a: float, alpha: float) -> float:
    """The level at which to read the resampled means, instead of alpha."""
    z = z0 + _NORMAL.inv_cdf(alpha)
    shrink = 1.0 - a * z
    if shrink <= 0.0:  # beyond the pole: the limit from its inner side
        return 0.0 if z < 0 else 1.0
    return 0.5 * math.erfc(-(z0 + z / shrink) / math.sqrt(2.0))


def _resampled_sums(fixed: NDArray[np.int64], seed: int, n_resamples: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    count = len(fixed)
    rows = max(1, _CHUNK // count)
    sums = np.empty(n_resamples, dtype=np.int64)
    for start in range(0, n_resamples, rows):
        part = sums[start : start + rows]
        drawn = fixed.take(rng.integers(0, count, (len(part), count)))
        np.einsum("ij->i", drawn, out=part)  # the row sums, three times as fast as sum() for short rows
    return sums


def _bits(count: int) -> int:
    """Fractional bits such that no sum of `count` scores overflows; 53 hold every score from a half up exactly."""
    return min(53, 62 - count.bit_length())


def _fixed(values: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    return np.rint(values * 2.0**bits).astype(np.int64)


def _seed(run_id: str) -> int:
    if not isinstance(run_id, str) or not re.match(r"[0-9a-fA-F]{8}", run_id):
        raise BootstrapInputError(
            f"The 'run_id' parameter must begin with eight hexadecimal digits. Got {run_id!r} instead."
        )
    return int(run_id[:8], 16)


def _scores(scores: Sequence[float]) -> NDArray[np.float64]:
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        text = repr(scores)
        got = text if len(text) <= 80 else f"{text[:77]}..."
        raise BootstrapInputError(f"The 'scores' parameter must be a list of numbers from 0 to 1. Got {got} instead.")
    return values


PROMISED = 0.95  # what the bound is said to cover; nothing here claims more
_DIGITS = 3  # scores that agree when rounded to this many decimals are one lump


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
    between = math.fsum(len(unit) * _square(fmean(unit) - grand) for unit in units) / outer
    within = math.fsum(_square(score - fmean(unit)) for unit in units for score in unit) / inner
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
    found = fmean(scores)
    if found < threshold:
        return None
    unseen = math.prod([threshold / found] * len(scores))
    return min(1.0 - unseen, PROMISED)


def vouched_threshold(scores: Sequence[float], level: float) -> float:
    """The highest threshold that `covered_level` gives this level for."""
    return fmean(scores) * math.exp(math.log1p(-level) / len(scores))


def units_needed(scores: Sequence[float], threshold: float, level: float) -> int | None:
    """How many units with this mean `covered_level` needs for the level; None if no number is enough."""
    found = fmean(scores)
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
