"""Pairs seen from one competitor: who leads a column, and how the others stand against one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boosters_eval.reports.model import PairVerdict, ReportTable, Row

_OPPOSITE = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Contrast:
    """A competitor against the reference."""

    name: str
    size: float | None  # the difference, or the ratio of times and memory
    low: float | None
    high: float | None
    verdict: str  # of the competitor
    text: str

    def numbers(self) -> list[float]:
        """What the axis must hold."""
        return [v for v in (self.size, self.low, self.high) if v is not None]


def leader(table: ReportTable, position: int) -> str | None:
    """Who has the best mean over the splits that all have, or over their own splits if there is none.

    As in the statistics, nobody leads whom another one was shown to be better than, unless all were.
    """
    higher = table.columns[position].higher_is_better
    values = {row.label: by_point(row, position) for row in table.rows if row.cells[position].mean is not None}
    if higher is None or not values:
        return None
    shared = set.intersection(*(set(found) for found in values.values()))
    means = {
        name: math.fsum(value for point, value in found.items() if point in shared or not shared)
        / (len(shared) or len(found) or 1)
        for name, found in values.items()
    }
    beaten = {lost for pair in table.pairs if pair.metric == table.columns[position].name for lost in _losers(pair)}
    standing = {name: mean for name, mean in means.items() if name not in beaten} or means
    return (max if higher else min)(standing, key=standing.__getitem__)


def _losers(pair: PairVerdict) -> tuple[str, ...]:
    return {"better": (pair.b,), "worse": (pair.a,)}.get(pair.verdict, ())


def by_point(row: Row, position: int) -> dict[str, float]:
    """The values of a row in one column, by the repeat of each."""
    pairs = zip(row.points, row.cells[position].values, strict=False)
    return {point: value for point, value in pairs if value is not None}


def contrast(pair: PairVerdict, reference: str, *, as_ratio: bool) -> Contrast:
    """A pair, turned so that the reference is its second member."""
    given = (pair.ratio if as_ratio else pair.difference, pair.low, pair.high)
    size, low, high = (_drawable(value, as_ratio=as_ratio) for value in given)
    if pair.a != reference:
        return Contrast(pair.a, size, low, high, pair.verdict, pair.text)
    size, high, low = (None if v is None else 1 / v if as_ratio else -v for v in (size, low, high))
    return Contrast(pair.b, size, low, high, _OPPOSITE.get(pair.verdict, pair.verdict), pair.text)


def _drawable(value: float | None, *, as_ratio: bool) -> float | None:
    """The value, if an axis can show it."""
    return value if value is not None and math.isfinite(value) and (value > 0 or not as_ratio) else None
