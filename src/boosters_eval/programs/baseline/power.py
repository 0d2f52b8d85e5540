"""What a baseline can tell: how often a loss as large as the tolerance would be shown, and harmless noise would fail.

A harmless change (l2 by 5 %, one bin fewer) moves a mean by MOVED of the error that the mean itself has, as its rows
tell: 0.03 to 0.32 for LightGBM, XGBoost and boosters on five of the shipped data sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of
from boosters_eval.programs.baseline.request import DEFAULT_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.baseline.evidence import RecordedSide
    from boosters_eval.stats.rows import RowTest

MOVED = 0.15
ENOUGH = 0.8  # a loss that is shown so often is found
_MOST_SEEDS = 100
_ALPHA = 0.05


@dataclass(frozen=True)
class PairPower:
    """How sure a check of one pair can be."""

    config: str
    library: str
    splits: int
    rows: int  # of each
    shown: float  # how often rows would show a loss as large as the tolerance
    alarms: float  # how often a harmless change would be beyond it
    seeds: int | None  # that would show it often enough; None: no number does


def find_power(side: RecordedSide, tolerance: float = DEFAULT_TOLERANCE) -> PairPower | None:
    """What a recorded pair can tell; None where its rows were not kept or do not make the metric."""
    from boosters_eval.stats.rows import find_mean  # noqa: PLC0415 (loads scipy)

    record = side.record
    cells = list(record.primary.per_seed)
    scores = [found for cell in cells if (found := side.score(cell, record.primary_metric)) is not None]
    test = find_mean(scores) if scores and len(scores) == len(cells) else None
    loss = tolerance * abs(record.primary.mean)
    if test is None or not loss:
        return None
    seeds = next((n for n in range(test.splits, _MOST_SEEDS + 1) if _shown(test, loss, n) >= ENOUGH), None)
    alarms = 1 - _normal(loss / (MOVED * test.error))
    return PairPower(
        record.config,
        record.library,
        test.splits,
        record.n_valid or 0,
        _shown(test, loss, test.splits),
        alarms,
        seeds,
    )


def describe_power(found: list[PairPower], tolerance: float = DEFAULT_TOLERANCE) -> Iterator[str]:
    """One line per config, of its weakest pair, and what would do."""
    by_config: dict[str, list[PairPower]] = {}
    for one in found:
        by_config.setdefault(one.config, []).append(one)
    for config, pairs in by_config.items():
        weak = min(pairs, key=lambda one: one.shown)
        noise = max(one.alarms for one in pairs)
        size = f"{count_of(weak.splits, 'split')} of {count_of(weak.rows, 'row')}"
        found_in = f"would be shown in {100 * weak.shown:.0f} of 100 checks"
        told = f"{config}, {size}: a loss of {100 * tolerance:.3g} % {found_in}"
        told += f", and a harmless change fails in {100 * noise:.0f}"
        if weak.shown < ENOUGH:
            more = f"{weak.seeds} seeds would do" if weak.seeds else "no number of seeds would do, only more rows"
            told += f" ({weak.library}; {more})"
        yield told


def _shown(test: RowTest, loss: float, splits: int) -> float:
    """How often the test of so many splits shows a loss, where rows move as a harmless change moves them."""
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to import)

    error = MOVED * (test.error if splits == test.splits else test.error_with(splits))
    return _normal(loss / error - float(stdtrit(test.freedom, 1 - _ALPHA / 2)))


def _normal(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2))
