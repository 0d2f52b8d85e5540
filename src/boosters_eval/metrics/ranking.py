"""Rows ordered within their query group.

Where scores tie, the value is the mean over all orders of the tied rows: the order of the input has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.metrics.rows import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from boosters_eval.metrics.rows import Array, Flags, Floats, Rows

    Ints = NDArray[np.intp]

_MAX_EXPONENT = 1000  # 2 to a higher power does not fit into float64


@dataclass(frozen=True)
class _Batch:
    """Some groups as the rows of a matrix, best score first, padded at the end with rows of label 0."""

    labels: Floats
    tied: Flags | None  # whether a place has the score of the one before; None where no place does

    def runs(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """For each place: the sum of `values` in its run of equal scores, the run's length, the place in the run."""
        if self.tied is None:
            return values, np.ones_like(values), np.ones_like(values)
        starts = np.flatnonzero(~self.tied)
        lengths = np.diff(starts, append=values.size)
        sums = np.add.reduceat(values.ravel(), starts)
        place = np.arange(1, values.size + 1) - np.repeat(starts, lengths)
        shape = values.shape
        return (
            np.repeat(sums, lengths).reshape(shape),
            np.repeat(lengths.astype(np.float64), lengths).reshape(shape),
            place.astype(np.float64).reshape(shape),
        )


def _groups(rows: Rows) -> tuple[Ints | None, Ints, Ints]:
    """An order that makes equal ids adjacent (None: they are), and where each group starts and how long it is."""
    ids, order = np.asarray(rows.groups), None
    starts = _starts(ids)
    if len(starts) > 1 and len(np.unique(ids[starts])) < len(starts):
        codes = rows.encode("groups")[1]
        order = np.argsort(codes, kind="stable")
        starts = _starts(codes[order])
    return order, starts, np.diff(starts, append=rows.n)


def _starts(ids: Array) -> Ints:
    return np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))


def _batches(sizes: Ints) -> Iterator[Ints]:
    """Groups of similar size together, so that there is little padding and temporaries stay small."""
    descending = np.argsort(-sizes, kind="stable")
    at = 0
    while at < len(descending):
        count = max(1, BLOCK // int(sizes[descending[at]]))
        yield descending[at : at + count]
        at += count


def _batch(rows: Rows, order: Ints | None, starts: Ints, sizes: Ints) -> _Batch:
    places = np.arange(int(sizes.max()))
    inside = places < sizes[:, None]
    index = np.minimum(starts[:, None] + places, rows.n - 1)
    index = index if order is None else order[index]
    key = np.where(inside, -rows.predictions[index].astype(np.float64, copy=False), np.inf)
    labels = np.where(inside, rows.labels[index].astype(np.float64, copy=False), 0.0)
    best_first = np.argsort(key, axis=1)
    key = np.take_along_axis(key, best_first, axis=1)
    same = np.zeros(key.shape, dtype=bool)
    np.equal(key[:, 1:], key[:, :-1], out=same[:, 1:])
    tied = bool((same & inside).any())
    return _Batch(np.take_along_axis(labels, best_first, axis=1), same if tied else None)


def _mean_over_groups(rows: Rows, score: Callable[[_Batch], Floats]) -> float:
    """Each group's score, weighted by the mean weight of its rows."""
    rows.single("predictions")
    rows.single("labels")
    rows.require("predictions", np.isfinite, "finite")
    rows.require("labels", lambda v: (v >= 0) & np.isfinite(v), "finite relevance grades of at least 0")
    order, starts, sizes = _groups(rows)
    scores = np.empty(len(sizes))
    for some in _batches(sizes):
        scores[some] = score(_batch(rows, order, starts[some], sizes[some]))
    weights = rows.weights
    if weights is not None:
        weights = np.add.reduceat(weights if order is None else weights[order], starts) / sizes
    return rows.mean_over_queries(scores, weights, starts if order is None else order[starts])


def ndcg(rows: Rows, k: int | None, gain: str) -> float:
    """Discounted gain relative to the best order's; a group without relevant rows counts 1."""
    if gain == "exp":
        rows.require("labels", lambda v: ~(v > _MAX_EXPONENT), f"at most {_MAX_EXPONENT} where the gain is 'exp'")

    def score(batch: _Batch) -> Floats:
        gains = np.exp2(batch.labels) - 1.0 if gain == "exp" else batch.labels
        discount = 1.0 / np.log2(np.arange(2.0, gains.shape[1] + 2.0))[:k]
        sums, lengths, _ = batch.runs(gains)
        found = (sums[:, :k] / lengths[:, :k] * discount).sum(axis=1)
        best = (np.sort(gains, axis=1)[:, ::-1][:, :k] * discount).sum(axis=1)
        return np.divide(found, best, out=np.ones(len(gains)), where=best > 0)

    return _mean_over_groups(rows, score)


def mean_average_precision(rows: Rows, k: int | None, divisor: str) -> float:
    """Precision at the rank of each relevant row within k, over the relevant rows, or over k if these are more.

    A group without relevant rows counts 1; with the divisor "all", which is trec_eval's, 0.
    """

    def score(batch: _Batch) -> Floats:
        relevant = (batch.labels > 0).astype(np.float64)
        hits, lengths, place = batch.runs(relevant)
        rank = np.arange(1.0, relevant.shape[1] + 1.0)
        # How many precede a place's run: each run is counted once, at its first place.
        before = np.cumsum(np.where(place == 1.0, hits, 0.0), axis=1) - hits
        # A tied place is relevant with probability hits/length, and then the places before it in the run
        # hold their share of the other hits.
        others = (place - 1.0) * (hits - 1.0) / np.maximum(lengths - 1.0, 1.0)
        terms = hits / lengths * (before + 1.0 + others) / rank
        count = relevant.sum(axis=1)
        over = count if divisor == "all" or k is None else np.minimum(count, k)
        precision = np.full(len(relevant), 0.0 if divisor == "all" else 1.0)
        np.divide(terms[:, :k].sum(axis=1), over, out=precision, where=count > 0)
        return precision

    return _mean_over_groups(rows, score)


def mrr(rows: Rows, k: int | None) -> float:
    """The reciprocal rank of the first relevant row; 0 where there is none within k."""

    def score(batch: _Batch) -> Floats:
        hits, lengths, place = batch.runs((batch.labels > 0).astype(np.float64))
        chance = np.minimum(hits / (lengths - place + 1.0), 1.0)  # of being relevant if no row before it in the run was
        none_before = np.cumprod(1.0 - chance, axis=1)
        chance[:, 1:] *= none_before[:, :-1]
        rank = np.arange(1.0, chance.shape[1] + 1.0)
        return np.asarray((chance / rank)[:, :k].sum(axis=1))

    return _mean_over_groups(rows, score)
