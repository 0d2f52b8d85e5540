"""How much one parameter explains of a score: a trend that may turn once, in ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy  # its `special` is loaded when it is used

from boosters_eval.stats.inference import doubled_ranks

if TYPE_CHECKING:
    from boosters_eval.stats.inference import FloatArray


def explain_ranks(values: FloatArray, losses: FloatArray) -> tuple[float, float]:
    """The share of the variance of the losses' ranks that a quadratic of the values' ranks explains, and its p-value.

    The best value of a parameter is often inside its range, which a straight line would not see.
    """
    x, y = (doubled_ranks(each) / 2 for each in (values, losses))
    x, y = x - x.mean(), y - y.mean()
    if not x.any() or not y.any():
        return 0.0, 1.0
    columns = np.column_stack([np.ones(len(x)), x, x * x])
    fitted, _, rank, _ = np.linalg.lstsq(columns, y, rcond=None)
    left, most = float(((y - columns @ fitted) ** 2).sum()), float(y @ y)
    share = min(max(1 - left / most, 0.0), 1.0)
    free, used = len(x) - rank, rank - 1
    if free < 1 or used < 1:
        return share, 1.0
    f = share / used / max((1 - share) / free, 1e-300)
    return share, float(scipy.special.fdtrc(used, free, f))
