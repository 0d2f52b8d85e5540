"""How far two rankings, vectors or sets of rows agree. What is not defined is None, never a 0 or a 1 by accident.

Kendall's tau is computed here and not by scipy.stats, which takes a second to import; a test holds the two together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.stats.inference import HUGE
from boosters_eval.stats.tables import mean_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.core.repeat import Repeat
    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.observations import Observation


FEWEST = 3  # values that a ranking needs: two are in the same or the opposite order whatever they mean
FEWEST_SPLITS = 3  # of two, a library has one agreement with itself, of which nobody knows how far it can be trusted
# What takes the place of n_test / n_train in the corrected variance, because a ranking depends on the training rows, of
# which two splits of 80 % share 80 %: by the simulations in docs/statistics.md.
_OVERLAP, _OVERLAP_OF_PAIRS = (5, 4), (1, 2)


def kendall_tau(a: FloatArray, b: FloatArray) -> float | None:
    """Kendall's tau-b; None with fewer than three values, with equal ones on a side, or with one that is no number."""
    if not _usable(a, b) or len(a) < FEWEST:
        return None
    concordance = ties_a = ties_b = 0
    for index in range(len(a) - 1):  # a row at a time: all pairs at once would take the square of their number
        above, beyond = np.sign(a[index] - a[index + 1 :]), np.sign(b[index] - b[index + 1 :])
        concordance += int(above @ beyond)
        ties_a += int(np.count_nonzero(above == 0))
        ties_b += int(np.count_nonzero(beyond == 0))
    pairs = len(a) * (len(a) - 1) // 2
    if pairs in (ties_a, ties_b):
        return None
    return _bounded(concordance / math.sqrt((pairs - ties_a) * (pairs - ties_b)))


def tau_step(count: int) -> float:
    """What one exchange of neighbors changes in the tau of so many values: the least that can be told."""
    return 4 / (count * (count - 1))


def tau_interval(taus: Mapping[Repeat, Observation], count: int, *, alpha: float = 0.05) -> tuple[float, float] | None:
    """The interval of the mean tau over splits, of rankings of so many values; None if there is but one split.

    It is never narrower than one exchange of neighbors in one of the splits would make it: rankings that agree in all
    of five splits need not do so in the next one.
    """
    step = tau_step(count) / math.sqrt(max(len(taus), 1))
    return _clipped(resampled_interval(taus, step=step, alpha=alpha))


def own_tau_interval(
    shares: Mapping[Repeat, Observation], count: int, *, alpha: float = 0.05
) -> tuple[float, float] | None:
    """The interval of the mean tau over all pairs of splits, from the share of each split in it (`split_shares`).

    Never narrower than by one exchange in one split either, which changes its tau with every other one.
    """
    step = 2 * tau_step(count) / math.sqrt(max(len(shares), 1))
    return _clipped(resampled_interval(shares, step=step, overlap=_OVERLAP_OF_PAIRS, alpha=alpha))


def split_shares(taus: Mapping[tuple[Repeat, Repeat], float]) -> dict[Repeat, float]:
    """What each split contributes to the mean over all pairs of splits, by the jackknife; their mean is that mean.

    Each split is in many pairs, so that pairs are no sample. Empty if a pair is missing, or with fewer than three
    splits.
    """
    splits = list(dict.fromkeys(split for pair in taus for split in pair))
    count = len(splits)
    if count < FEWEST_SPLITS or len(taus) < count * (count - 1) // 2:
        return {}
    mean = fmean(taus.values())
    without = {split: fmean(tau for pair, tau in taus.items() if split not in pair) for split in splits}
    return {split: count * mean - (count - 1) * without[split] for split in splits}


def resampled_interval(
    values: Mapping[Repeat, Observation],
    *,
    step: float = 0.0,
    overlap: tuple[int, int] = _OVERLAP,
    alpha: float = 0.05,
) -> tuple[float, float] | None:
    """The interval of the mean of what models of resampled splits tell, widened because their training rows overlap.

    Scores depend on the validation rows, and are corrected by n_test / n_train; here, `overlap` takes its place. That
    5 / 4 does is as if the values of two splits correlated by 5 / 9.
    """
    above, below = overlap
    widened = {repeat: replace(one, n_train=below, n_valid=above, resolution=step) for repeat, one in values.items()}
    return mean_interval(widened, alpha=alpha)


def _clipped(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if bounds is None else (max(bounds[0], -1.0), min(bounds[1], 1.0))


def top_overlap(a: FloatArray, b: FloatArray, k: int) -> float | None:
    """The share of the k largest values that both have in common, where equal values share the last places.

    None where it could only be one: of k values or fewer, or where all values of a side are equal.
    """
    if not _usable(a, b) or not 0 < k < len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return _bounded(float(np.minimum(_membership(a, k), _membership(b, k)).sum()) / k)


def _membership(values: FloatArray, k: int) -> FloatArray:
    """How far each value is one of the k largest: wholly above the k-th one, and in equal shares at it."""
    last = np.sort(values)[-k]
    above, equal = values > last, values == last
    share = (k - np.count_nonzero(above)) / np.count_nonzero(equal)
    return np.where(above, 1.0, np.where(equal, share, 0.0))


def cosine(a: FloatArray, b: FloatArray) -> float | None:
    """The cosine of the angle between two vectors; None if one of them is zero."""
    if not _usable(a, b):
        return None
    largest = np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)
    if not all(largest):
        return None
    a, b = a / largest[0], b / largest[1]
    return _bounded(float(a @ b) / math.sqrt(float(a @ a) * float(b @ b)))


def correlation(a: FloatArray, b: FloatArray) -> float | None:
    """Pearson's correlation, of several columns together, each around its own mean; None if a side is constant."""
    if not _usable(a, b) or len(a) < FEWEST:
        return None
    if not np.ptp(a, axis=0).any() or not np.ptp(b, axis=0).any():  # before the rounding of the means
        return None
    return cosine((a - a.mean(axis=0)).ravel(), (b - b.mean(axis=0)).ravel())


def row_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """For each row, the sum of |a - b| over the sum of |a| + |b|: 0 if equal, 1 if nothing is shared.

    A row without any value on both sides has no distance: it is NaN.
    """
    axes = tuple(range(1, a.ndim))
    size = (np.abs(a) + np.abs(b)).sum(axis=axes)
    difference = np.abs(a - b).sum(axis=axes)
    return np.asarray(np.divide(difference, size, out=np.full(len(a), np.nan), where=size > 0))


def _usable(a: FloatArray, b: FloatArray) -> bool:
    """Whether both are of one shape and hold numbers whose squares are numbers."""
    if a.shape != b.shape:
        raise ValueError(f"two sides of one shape, not {a.shape} and {b.shape}")
    return a.size > 0 and bool((np.abs(a) < HUGE).all() and (np.abs(b) < HUGE).all())


def _bounded(value: float) -> float:
    """Rounding may lead beyond 1."""
    return min(max(value, -1.0), 1.0)
