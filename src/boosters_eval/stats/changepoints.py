"""Since when is it slower? Steps in a sequence of numbers, by a rule whose error rate is known.

Binary segmentation by the normal scores of ranks: each place of a stretch is tried as a step, the largest standardized
difference of the mean scores before and after it is the statistic, and its p-value comes from permuting the stretch.
That is exact for any distribution, as long as the order of the runs means nothing; ranks make it blind to how far off
an outlier is. A change that was taken back hides from such a test, so a fifth of the level is for two steps at once:
some runs against those around them. In the end each step is tested again between its neighbors, because the first cut
through several levels may lie where no step is.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from boosters_eval.stats.inference import HUGE, SAME, TINY, StatisticsInputError, doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.stats.inference import FloatArray

DEFAULT_STEP_ALPHA = 0.01  # of a line: the chance that a line without a step gets one
SHORTEST_STRETCH = 2  # runs: a single one is an outlier, not a level
SINGLE_SHARE = 0.8  # of the level, for one step; the rest is for two at once
_PERMUTATIONS = 1999  # of a long stretch
_MOST_PERMUTATIONS = 9999  # of a short one
_NUMBERS = 200_000  # permutations times runs, between these two
_TWO_AT_ONCE = 4999  # permutations of the test for two steps, whose share of the level is small
_BLOCK = 256  # permutations at a time, so that a hopeless stretch is left early
_NEARLY = 0.95  # of the largest difference
_MOST_ARRANGEMENTS = 20_000  # of two levels: up to these, each is looked at instead of a sample


@dataclass(frozen=True, slots=True)
class LevelStep:
    """A change of level between two neighboring runs of a sequence."""

    index: int  # of the first value on the new level
    before: float  # the median of the stretch that ends here
    after: float  # the median of the stretch that begins here
    n_before: int
    n_after: int
    p_value: float  # times the number of stretches that were searched together


@dataclass(frozen=True, slots=True)
class _Split:
    """The best places for one step or two in the stretch from `start` to `stop`, and their p-value."""

    start: int
    stop: int
    places: tuple[int, ...]
    p_value: float  # over the share of the level that the test has


def find_steps(values: Sequence[float] | FloatArray, *, alpha: float = DEFAULT_STEP_ALPHA) -> tuple[LevelStep, ...]:
    """The steps in values that are given in the order of time; the same values always give the same steps.

    A line without a step gets one with probability `alpha` at most. After each step that is found the level is shared
    by the stretches that there are, so that it nearly holds for a step too many in a line that has some.
    """
    if not 0 < alpha < 1:
        raise StatisticsInputError(f"The 'alpha' parameter must be between 0 and 1. Got {alpha} instead.")
    sequence = np.asarray(values, dtype=np.float64)
    if sequence.ndim != 1 or not (np.abs(sequence) < HUGE).all():
        raise StatisticsInputError(f"The 'values' parameter of find_steps must hold finite numbers. Got {values!r}.")
    levels = _without_rounding(sequence)
    found: dict[int, float] = {}
    candidates = [_best_split(sequence, levels, 0, len(levels), alpha)]
    while True:
        best = min(candidates, key=lambda split: split.p_value)
        p_value = best.p_value * len(candidates)
        if p_value > alpha:
            return _steps(sequence, _confirmed(sequence, levels, found, alpha))
        found |= dict.fromkeys(best.places, p_value)
        candidates.remove(best)
        edges = (best.start, *best.places, best.stop)
        candidates += [_best_split(sequence, levels, start, stop, alpha) for start, stop in pairwise(edges)]


def fewest_for_any_step(*, alpha: float = DEFAULT_STEP_ALPHA) -> int:
    """How many runs a line must have before any step can be found in it: half of them on either side say the most.

    No rule that permutes runs is faster at its level: 2 of the comb(n, k) ways to place k runs among n are as extreme.
    """
    total = 2 * SHORTEST_STRETCH
    while SINGLE_SHARE * alpha * math.comb(total, total // 2) < 2:
        total += 1
    return total


def _confirmed(
    sequence: FloatArray, levels: NDArray[np.int64], found: Mapping[int, float], alpha: float
) -> dict[int, float]:
    """The places that are still significant between their neighbors."""
    kept = dict(found)
    while True:
        edges = [0, *sorted(kept), len(sequence)]
        doubtful = [
            place
            for start, place, stop in zip(edges, edges[1:], edges[2:], strict=False)
            if not _best_split(sequence, levels, start, stop, alpha).places
        ]
        if not doubtful:
            return kept
        del kept[max(doubtful, key=kept.__getitem__)]


def _steps(sequence: FloatArray, found: Mapping[int, float]) -> tuple[LevelStep, ...]:
    edges = [0, *sorted(found), len(sequence)]
    p_values = [found[place] for place in edges[1:-1]]
    for index in range(1, len(edges) - 1):
        edges[index] = edges[index - 1] + _placed(sequence[edges[index - 1] : edges[index + 1]])
    stretches = [sequence[start:stop] for start, stop in pairwise(edges)]
    return tuple(
        LevelStep(place, float(np.median(before)), float(np.median(after)), len(before), len(after), p_value)
        for place, (before, after), p_value in zip(edges[1:-1], pairwise(stretches), p_values, strict=True)
    )


def _placed(stretch: FloatArray) -> int:
    """The place of the one step in a stretch: ranks find it, but cannot tell an outlier beside it from the new level.

    Among the places that separate the scores nearly as well as the best one, that with the smallest deviations.
    """
    differences = _differences(_scores(_without_rounding(stretch))[None, :])[0]
    near = np.flatnonzero(differences >= _NEARLY * differences.max()) + SHORTEST_STRETCH
    return min(near.tolist(), key=lambda place: _deviation(stretch[:place]) + _deviation(stretch[place:]))


def _deviation(values: FloatArray) -> float:
    return float(np.abs(values - np.median(values)).sum())


def _without_rounding(values: FloatArray) -> NDArray[np.int64]:
    """The rank of the group of each value; values that differ by rounding only share a group."""
    if not values.size:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(values, kind="stable")
    sizes = np.abs(values[order])
    # Beside the values' own size, so that one run far off does not make all others equal.
    size = np.maximum(np.maximum(sizes[1:], sizes[:-1]), np.median(sizes))
    apart = np.diff(values[order]) > np.maximum(SAME * size, TINY)
    groups = np.empty(len(values), dtype=np.int64)
    groups[order] = np.concatenate([[0], np.cumsum(apart)])
    return groups


def _scores(levels: NDArray[np.int64]) -> FloatArray:
    """Van der Waerden's: the quantile of the normal distribution at each rank, centered."""
    scores = ndtri(doubled_ranks(levels.astype(np.float64)) / (2 * (len(levels) + 1)))
    return np.asarray(scores - scores.mean())


def _best_split(sequence: FloatArray, levels: NDArray[np.int64], start: int, stop: int, alpha: float) -> _Split:
    """One step where it is significant, else two at once; a p-value of infinity where neither is."""
    stretch = levels[start:stop]
    if len(stretch) >= 2 * SHORTEST_STRETCH and not (stretch == stretch[0]).all():
        scores = _scores(stretch)
        for share, test in ((SINGLE_SHARE, _one_step), (1 - SINGLE_SHARE, _two_steps)):
            places, p_value = test(stretch, scores, share * alpha)
            if p_value <= share * alpha:
                places = (_placed(sequence[start:stop]),) if len(places) == 1 else places
                return _Split(start, stop, tuple(start + place for place in places), p_value / share)
    return _Split(start, stop, (), math.inf)


def _one_step(stretch: NDArray[np.int64], scores: FloatArray, level: float) -> tuple[tuple[int, ...], float]:
    differences = _differences(scores[None, :])[0]
    order = np.argsort(-differences, kind="stable") + SHORTEST_STRETCH
    place = next((place for place in order.tolist() if _is_lasting(stretch[:place], stretch[place:])), None)
    if place is None:
        return (), 1.0
    draws = _every_arrangement(scores) or _permutations(
        scores, min(max(_NUMBERS // len(scores), _PERMUTATIONS), _MOST_PERMUTATIONS)
    )
    return (place,), draws.p_value(_differences, float(differences[place - SHORTEST_STRETCH]), level)


def _two_steps(stretch: NDArray[np.int64], scores: FloatArray, level: float) -> tuple[tuple[int, ...], float]:
    n = len(scores)
    observed = float(_excursions(scores[None, :]).max(initial=0.0))
    if not observed:
        return (), 1.0
    p_value = _permutations(scores, _TWO_AT_ONCE).p_value(_excursions, observed, level)
    if p_value > level:
        return (), p_value
    sums = np.concatenate([[0.0], np.cumsum(scores)])
    length = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]
    inside = (length >= SHORTEST_STRETCH) & (length <= n // 2)
    inside[:1, :] = inside[:, n:] = False  # one that touches an end is a single step
    scale = np.sqrt(np.where(inside, length * (n - length) / n, 1.0))
    begin, end = divmod(int(np.where(inside, np.abs(sums[None, :] - sums[:, None]) / scale, -1.0).argmax()), n + 1)
    lasting = _is_lasting(stretch[begin:end], np.concatenate([stretch[:begin], stretch[end:]]))
    return ((begin, end), p_value) if lasting else ((), 1.0)


def _is_lasting(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Whether most runs of the shorter side lie beyond the median of the other: one outlier among two does not."""
    short, long = sorted((first, second), key=len)
    middle = float(np.median(long))
    return max(int((short > middle).sum()), int((short < middle).sum())) > len(short) / 2


def _differences(scores: FloatArray) -> FloatArray:
    """For each row and each place of a step, the standardized difference of the mean scores on its two sides.

    Ranks are centered; their spread is the same in every permutation and is left out.
    """
    n = scores.shape[1]
    places = np.arange(SHORTEST_STRETCH, n - SHORTEST_STRETCH + 1)
    sums = np.cumsum(scores, axis=1)[:, places - 1]
    return np.asarray(np.abs(sums) / np.sqrt(places * (n - places) / n))


def _excursions(scores: FloatArray) -> FloatArray:
    """For each row and each of some lengths, the largest standardized difference of so many runs from those around."""
    n = scores.shape[1]
    sums = np.cumsum(scores, axis=1)  # of the first run, of the first two, ...
    largest = [
        np.abs(sums[:, length:-1] - sums[:, : -length - 1]).max(axis=1) / math.sqrt(length * (n - length) / n)
        for length in _lengths(min(n // 2, n - 2 * SHORTEST_STRETCH))
    ]
    return np.stack(largest, axis=1) if largest else np.zeros((len(scores), 0))


def _lengths(longest: int) -> Iterator[int]:
    """2, 3, 4, 5, 6, 7, 8, 10, ...: a quarter more each time, which is near enough to any length."""
    length = SHORTEST_STRETCH
    while length <= longest:
        yield length
        length += max(1, length // 4)


@dataclass(frozen=True)
class _Draws:
    """Rearrangements of a stretch, in blocks: all that there are, or a sample in which the stretch itself counts."""

    blocks: Iterator[FloatArray]
    total: int
    itself: int  # 1 in a sample, 0 where all are looked at

    def p_value(self, statistic: Callable[[FloatArray], FloatArray], observed: float, level: float) -> float:
        """The share that is as extreme as what was seen; 1 as soon as it is certain to exceed the level."""
        extreme, total = self.itself, self.total + self.itself
        floor = observed * (1 - SAME)  # a sum in another order must not be taken for a smaller one
        for block in self.blocks:
            extreme += int((statistic(block).max(axis=1) >= floor).sum())
            if extreme > level * total:
                return 1.0
        return extreme / total


def _permutations(scores: FloatArray, total: int) -> _Draws:
    """A sample of permutations that depends on nothing but the scores."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(scores.tobytes()).digest()[:8], "big"))
    sizes = (min(_BLOCK, total - done) for done in range(0, total, _BLOCK))
    blocks = (rng.permuted(np.broadcast_to(scores, (size, len(scores))), axis=1) for size in sizes)
    return _Draws(blocks, total, 1)


def _every_arrangement(scores: FloatArray) -> _Draws | None:
    """Each way to place two levels; None if there are more levels, or too many ways."""
    low, high = float(scores.min()), float(scores.max())
    n, above = len(scores), int((scores == high).sum())
    if above + int((scores == low).sum()) < n or math.comb(n, above) > _MOST_ARRANGEMENTS:
        return None
    chosen = np.array(list(combinations(range(n), above)))
    block = np.full((len(chosen), n), low)
    np.put_along_axis(block, chosen, high, axis=1)
    return _Draws(iter([block]), len(chosen), 0)
