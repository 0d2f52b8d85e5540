"""The best of k: what a search of k trials is worth, exactly, over all orders in which its trials could be drawn.

A search chooses by one score (the inner one) and is paid by another (the outer one). Of n trials that were drawn, each
set of k is as likely as any other, so the trial whose inner loss has rank i among them is chosen with probability
C(n - 1 - i, k - 1) / C(n, k). Nothing is sampled: what these chances give equals the mean over all sets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.stats.inference import FloatArray


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


def count_trials(count: int, better: int, chance: float) -> int | None:
    """How many of `count` trials find one of the `better` ones with this chance; None if there is none to be found."""
    if not better:
        return None
    found = (k for k in range(count + 1) if 1 - math.comb(count - better, k) / math.comb(count, k) >= chance - 1e-12)
    return next(found, None)
