"""The best of k: what a search of k trials is worth, exactly, over all orders in which its trials could be drawn.

A search chooses by one score (the inner one) and is paid by another (the outer one). Of n trials that were drawn, each
set of k is as likely as any other, so the trial whose inner loss has rank i among them is chosen with probability
C(n - 1 - i, k - 1) / C(n, k). Nothing is sampled: what these chances give equals the mean over all sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.stats.observations import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.observations import Observation
    from boosters_eval.stats.rows import RowScores


def find_chances(losses: Sequence[float] | FloatArray, k: int, kept: float = math.inf) -> tuple[FloatArray, float]:
    """How likely each trial is to be chosen among k of them, and how likely what is `kept` is: it always competes.

    `losses` are what is chosen by, the lower the better; one that is not finite is of a trial that failed, and is drawn
    but never chosen. Of equal losses the first wins, and what is kept before all.
    """
    values = np.asarray(losses, dtype=np.float64)
    count = len(values)
    if not 0 <= k <= count:
        raise ValueError(f"k must be from 0 to {count}. Got {k} instead.")
    chances = np.zeros(count)
    order = [at for at in np.argsort(values, kind="stable") if values[at] < kept]  # no failed one: those are infinite
    every = math.comb(count, k)
    for rank, at in enumerate(order):
        if k and count - 1 - rank >= k - 1:
            chances[at] = math.comb(count - 1 - rank, k - 1) / every
    return chances, math.comb(count - len(order), k) / every


@dataclass(frozen=True)
class SearchedTrials:
    """What one learner tried on some splits. The first of its trials is what it is without a search."""

    repeats: Sequence[Repeat]
    losses: FloatArray  # by split and trial: what is chosen by; infinite where a fit failed
    outer: Sequence[Sequence[Observation | None]]  # by split and trial: what is valued; None where a fit failed

    @property
    def trials(self) -> int:
        return len(self.outer[0]) - 1

    def find_chances(self, k: int) -> FloatArray:
        """By split and trial: how likely it is the best of k of them and the first."""
        found = (find_chances(losses[1:], k, losses[0]) for losses in self.losses)
        return np.array([[own, *chances] for chances, own in found])

    @cached_property
    def choices(self) -> list[int]:
        """The trial that is chosen on each split, of all of them."""
        return [int(at) for at in self.find_chances(self.trials).argmax(axis=1)]

    def expect(self, k: int) -> float:
        """The mean score of the best of k."""
        return float(np.mean([one.value for one in self.observe(k, by_rows=False).values()]))

    def observe(self, k: int, *, by_rows: bool = True) -> Side:
        """The best of k as a side of a comparison: of each row, the mean over what may be chosen."""
        chances = self.find_chances(k)
        return Side(
            (repeat, _mix(every, shares, by_rows=by_rows))
            for repeat, every, shares in zip(self.repeats, self.outer, chances, strict=True)
        )


def _mix(trials: Sequence[Observation | None], chances: FloatArray, *, by_rows: bool) -> Observation:
    found = [(float(chance), one) for chance, one in zip(chances, trials, strict=True) if chance and one is not None]
    value = math.fsum(chance * one.value for chance, one in found)
    first = found[0][1]
    if len(found) == 1:
        return first
    rows: RowScores | None = None
    if by_rows and first.rows is not None and all(one.rows is not None for _, one in found):
        mixed = sum((chance * one.rows.contributions for chance, one in found if one.rows is not None), np.zeros(1))
        rows = replace(first.rows, value=value, contributions=mixed)
    return first._replace(value=value, rows=rows, predictions_digest=None)
