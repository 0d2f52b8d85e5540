"""Which library leads over many data sets? One number per data set and library, however many seeds it is based on.

Pooling the seeds of several data sets would count the same evidence many times, so only the means are used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
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
from boosters_eval.stats.tables import shared_means

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

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
    scores: Mapping[str, Mapping[str, float]], *, higher_is_better: bool | Mapping[str, bool], alpha: float = 0.05
) -> Ranking:
    """Rank libraries by {data set: {library: mean score}}; the direction may differ between data sets.

    Wilcoxon's test sees relative differences, because data sets need not share a metric or a scale.
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
    signs = [-1.0 if _direction(higher_is_better, dataset) else 1.0 for dataset in complete]
    losses = table * np.array(signs)[:, None]
    averages = np.mean([doubled_ranks(_rounded(row)) / 2 for row in losses], axis=0)
    order = [libraries[i] for i in np.argsort(averages, kind="stable")]
    columns = {name: losses[:, libraries.index(name)] for name in order}
    pairs, note = _pairs(columns, alpha)
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
) -> Ranking:
    """Rank libraries by {data set: {library: {split: score}}}: means over the splits that every library has."""
    shared = {dataset: shared_means(row) for dataset, row in scores.items()}
    found = rank({name: one.means for name, one in shared.items()}, higher_is_better=higher_is_better, alpha=alpha)
    partial = {name: f"{one.n} of {one.total}" for name, one in shared.items() if 0 < one.n < one.total}
    return replace(found, partial={name: text for name, text in partial.items() if name not in found.left_out})


def _pairs(columns: Mapping[str, np.ndarray], alpha: float) -> tuple[dict[tuple[str, str], RankedPair], str]:
    names = list(combinations(columns, 2))
    relative = {(a, b): _relative(columns[a], columns[b]) for a, b in names}
    counted = {
        pair: RankedPair(int((d < 0).sum()), int((d > 0).sum()), int((d == 0).sum())) for pair, d in relative.items()
    }
    count = len(next(iter(relative.values())))
    smallest = min(1.0, sign_flip_floor(count) * len(names))
    if count < MIN_DATASETS or smallest > alpha:
        return counted, (
            f"n too small: {count} data set(s) and {len(names)} comparison(s) cannot give a p-value below "
            f"{smallest:.3g}, so the ranks are descriptive only; at least {_needed(len(names), alpha)} are needed."
        )
    p_values = [_two_sided(relative[pair]) for pair in names]
    return {
        pair: RankedPair(counted[pair].wins, counted[pair].losses, counted[pair].ties, p_value, adjusted)
        for pair, p_value, adjusted in zip(names, p_values, holm(p_values), strict=True)
    }, ""


def _needed(comparisons: int, alpha: float) -> int:
    count = MIN_DATASETS
    while sign_flip_floor(count) * comparisons > alpha:
        count += 1
    return count


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


def _two_sided(differences: np.ndarray) -> float:
    test = signed_rank(differences)
    return min(1.0, 2 * min(test.greater(0.0), test.less(0.0)))


def _rounded(row: np.ndarray) -> np.ndarray:
    """Twelve digits, so that equal scores summed in a different order share a rank."""
    return np.array([float(f"{value:.12g}") for value in row])


def _direction(higher_is_better: bool | Mapping[str, bool], dataset: str) -> bool:
    return higher_is_better if isinstance(higher_is_better, bool) else higher_is_better[dataset]
