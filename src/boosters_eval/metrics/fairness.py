"""How differently groups of people are treated by the same decisions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.metrics.binary import decide, positives, scores, targets
from boosters_eval.metrics.catalog import MetricWarning

if TYPE_CHECKING:
    from boosters_eval.metrics.rows import Flags, Floats, Rows


def _rates(rows: Rows, chosen: Flags, among: Flags | None = None) -> Floats:
    """The share of chosen rows in each group, among those that count; 0 where a group has none."""
    names, codes = rows.encode("sensitive")
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    w = w if among is None else w * among
    every, some = (np.bincount(codes, each, minlength=len(names)) for each in (w, w * chosen))
    empty = every == 0
    if empty.any():
        warnings.warn(
            f"The metric '{rows.metric}' takes a rate of 0 for the group '{names[int(empty.argmax())]}', "
            "which has no rows of one class.",
            MetricWarning,
            stacklevel=2,
        )
    return np.divide(some, every, out=np.zeros(len(names)), where=~empty)


def _gap(rates: Floats, mode: str) -> float:
    """Largest minus smallest, or smallest over largest; rates that are all 0 are equal."""
    low, high = float(rates.min()), float(rates.max())
    if mode == "difference":
        return high - low
    return low / high if high else 1.0


def demographic_parity(rows: Rows, threshold: float, mode: str) -> float:
    """How far the groups' selection rates are apart."""
    targets(rows)  # only checked: parity does not depend on the labels
    return _gap(_rates(rows, decide(scores(rows), threshold)), mode)


def equalized_odds(rows: Rows, threshold: float, mode: str) -> float:
    """How far the groups' true and false positive rates are apart: the worse of the two."""
    y, chosen = positives(rows), decide(scores(rows), threshold)
    gaps = [_gap(_rates(rows, chosen, among), mode) for among in (y, ~y)]
    return max(gaps) if mode == "difference" else min(gaps)
