"""Which library leads over many data sets? One number per data set and library, however many seeds it is based on.

Pooling the seeds of several data sets would count the same evidence many times, so only the means are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from itertools import count as count_up
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.stats.inference import (
    HUGE,
    SAME,
    StatisticsInputError,
    doubled_ranks,
    holm,
    sign_flip_floor,
    signed_rank,
)
from boosters_eval.stats.tables import mean_interval, shared_means

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.observations import AnySide

MIN_DATASETS = 6  # with fewer, Wilcoxon's smallest p-value exceeds 5 %


@dataclass(frozen=True, slots=True)
class RankedPair:
    """One library against another over the data sets; wins are a's."""

    wins: int
    losses: int
    ties: int
    p_value: float | None = None
    p_adjusted: float | None = None

    def separated(self, alpha: float) -> bool:
        """Whether the two differ after Holm's correction."""
        return self.p_adjusted is not None and self.p_adjusted <= alpha


@dataclass(frozen=True, slots=True)
class Ranking:
    """Average ranks (1 is best) over the data sets that every library has."""

    average_ranks: Mapping[str, float]  # best first
    pairs: Mapping[tuple[str, str], RankedPair]
    groups: tuple[tuple[str, ...], ...]  # neighbors in rank that cannot be separated; they may overlap
    n: int
    left_out: tuple[str, ...]  # data sets without a split that every library has
    alpha: float
    note: str = ""
    partial: Mapping[str, str] = field(default_factory=dict)  # data sets with failures: "3 of 5" splits were used


def rank(
    scores: Mapping[str, Mapping[str, float]],
    *,
    higher_is_better: bool | Mapping[str, bool],
    alpha: float = 0.05,
    equivalent: Mapping[str, Collection[frozenset[str]]] | None = None,
) -> Ranking:
    """Rank libraries by {data set: {library: mean score}}; the direction may differ between data sets.

    Wilcoxon's test sees relative differences, because data sets need not share a metric or a scale. The pairs that
    were shown to be `equivalent` on a data set tie there: each has half a rank of the other.
    """
    libraries = list(dict.fromkeys(name for row in scores.values() for name in row))
    if len(libraries) < 2:
        raise StatisticsInputError(f"A ranking needs at least two libraries. Got {len(libraries)} instead.")
    complete = [dataset for dataset, row in scores.items() if len(row) == len(libraries)]
    table = np.array([[scores[dataset][name] for name in libraries] for dataset in complete], dtype=np.float64)
    if not (np.abs(table) < HUGE).all():
        raise StatisticsInputError(
            "The 'scores' parameter of a ranking must be finite numbers. Got NaN or infinity instead."
        )
    if not complete:
        raise StatisticsInputError("A ranking needs a data set on which every library has a score, but there is none.")
    higher = dict.fromkeys(complete, higher_is_better) if isinstance(higher_is_better, bool) else higher_is_better
    signs = [-1.0 if higher[dataset] else 1.0 for dataset in complete]
    losses = table * np.array(signs)[:, None]
    # Twelve digits, so that equal scores summed in a different order share a rank.
    rounded = [np.array([float(f"{value:.12g}") for value in row]) for row in losses]
    level = [(equivalent or {}).get(dataset, ()) for dataset in complete]
    averages = np.mean([_rank_row(row, libraries, tied) for row, tied in zip(rounded, level, strict=True)], axis=0)
    order = [libraries[i] for i in np.argsort(averages, kind="stable")]
    relative = {
        (a, b): np.where(
            [frozenset((a, b)) in tied for tied in level],
            0.0,
            _relative(losses[:, libraries.index(a)], losses[:, libraries.index(b)]),
        )
        for a, b in combinations(order, 2)
    }
    pairs, note = _pairs(relative, alpha)
    return Ranking(
        average_ranks={name: float(averages[libraries.index(name)]) for name in order},
        pairs=pairs,
        groups=_groups(order, pairs, alpha) if not note else (),
        n=len(complete),
        left_out=tuple(dataset for dataset in scores if dataset not in complete),
        alpha=alpha,
        note=note,
    )


def rank_splits(
    scores: Mapping[str, Mapping[str, Mapping[Hashable, float]]],
    *,
    higher_is_better: bool | Mapping[str, bool],
    alpha: float = 0.05,
    equivalent: Mapping[str, Collection[frozenset[str]]] | None = None,
) -> Ranking:
    """Rank libraries by {data set: {library: {split: score}}}: means over the splits that every library has."""
    shared = {dataset: shared_means(row) for dataset, row in scores.items()}
    means = {name: one.means for name, one in shared.items()}
    found = rank(means, higher_is_better=higher_is_better, alpha=alpha, equivalent=equivalent)
    partial = {name: f"{one.n} of {one.total}" for name, one in shared.items() if 0 < one.n < one.total}
    return replace(found, partial={name: text for name, text in partial.items() if name not in found.left_out})


def _rank_row(losses: FloatArray, names: Sequence[str], level: Collection[frozenset[str]]) -> FloatArray:
    """The rank of each library on one data set: one, one more for each that is better, and a half for each tie."""
    ranks = doubled_ranks(losses) / 2
    for i, j in combinations(range(len(names)), 2):
        if frozenset((names[i], names[j])) in level and losses[i] != losses[j]:
            better, worse = (i, j) if losses[i] < losses[j] else (j, i)
            ranks[better] += 0.5
            ranks[worse] -= 0.5
    return ranks


def _pairs(
    relative: Mapping[tuple[str, str], np.ndarray], alpha: float
) -> tuple[dict[tuple[str, str], RankedPair], str]:
    names = list(relative)
    counted = {
        pair: RankedPair(int((d < 0).sum()), int((d > 0).sum()), int((d == 0).sum())) for pair, d in relative.items()
    }
    count = len(next(iter(relative.values())))
    smallest = min(1.0, sign_flip_floor(count) * len(names))
    if count < MIN_DATASETS or smallest > alpha:
        needed = next(n for n in count_up(MIN_DATASETS) if sign_flip_floor(n) * len(names) <= alpha)
        return counted, (
            f"n too small: {count} data set{'' if count == 1 else 's'} for {len(names)} comparison"
            f"{'' if len(names) == 1 else 's'}, so the ranks are descriptive only; at least {needed} are needed."
        )
    tests = [signed_rank(relative[pair]) for pair in names]
    p_values = [min(1.0, 2 * min(test.greater(0.0), test.less(0.0))) for test in tests]
    return {
        pair: replace(counted[pair], p_value=p_value, p_adjusted=adjusted)
        for pair, p_value, adjusted in zip(names, p_values, holm(p_values), strict=True)
    }, ""


def _groups(order: list[str], pairs: Mapping[tuple[str, str], RankedPair], alpha: float) -> tuple[tuple[str, ...], ...]:
    """The longest runs of neighbors within which no pair is separated."""
    groups: list[tuple[str, ...]] = []
    covered = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not any(pairs[order[i], order[end]].separated(alpha) for i in range(start, end)):
            end += 1
        if end > covered:
            groups.append(tuple(order[start:end]))
            covered = end
    return tuple(groups)


def _relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Differences relative to the mean size of the two; differences due to rounding are ties."""
    size = (np.abs(a) + np.abs(b)) / 2
    share = np.divide(a - b, size, out=np.zeros_like(size), where=size > 0)
    return np.where(np.abs(share) <= SAME, 0.0, share)


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


def tau_interval(
    taus: AnySide, count: int, *, of_pairs: bool = False, alpha: float = 0.05
) -> tuple[float, float] | None:
    """The interval of the mean tau over splits, of rankings of so many values; None if there is but one split.

    With `of_pairs` the mean is over all pairs of splits, and `taus` are the shares of each split (`split_shares`).
    It is never narrower than one exchange of neighbors in one of the splits would make it, which changes its tau with
    every other one: rankings that agree in all of five splits need not do so in the next one.
    """
    exchanged, overlap = (2, _OVERLAP_OF_PAIRS) if of_pairs else (1, _OVERLAP)
    step = exchanged * tau_step(count) / math.sqrt(max(len(taus), 1))
    bounds = resampled_interval(taus, step=step, overlap=overlap, alpha=alpha)
    return None if bounds is None else (max(bounds[0], -1.0), min(bounds[1], 1.0))


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
    values: AnySide, *, step: float = 0.0, overlap: tuple[int, int] = _OVERLAP, alpha: float = 0.05
) -> tuple[float, float] | None:
    """The interval of the mean of what models of resampled splits tell, widened because their training rows overlap.

    Scores depend on the validation rows, and are corrected by n_test / n_train; here, `overlap` takes its place. That
    5 / 4 does is as if the values of two splits correlated by 5 / 9.
    """
    above, below = overlap
    widened = {repeat: one._replace(n_train=below, n_valid=above, resolution=step) for repeat, one in values.items()}
    return mean_interval(widened, alpha=alpha)


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
