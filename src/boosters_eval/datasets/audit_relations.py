"""What is suspicious between columns, rows and classes: leaks, copies, rare classes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.datasets.audit_trees import alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets.audit_columns import SampledColumn
    from boosters_eval.datasets.audit_trees import AuditTarget

LEAK_AUC = 0.99
LEAK_R2 = 0.98
SAME = 0.999  # the absolute correlation from which two columns say the same
LEAST_ROWS = 20
_MOST_LEVELS = 1_000
_MOST_COMPARED = 500  # columns: their correlations are a matrix
COPIES, COPIES_BUT_TARGET, FEW_COPIES = 0.01, 0.05, 5  # the shares of rows that repeat an earlier one, and how many
_CHANCE = 100  # possible rows for each row: with fewer, rows repeat by chance
RARE = 10  # rows of a class
IMBALANCE = 0.99  # the share of the largest class
REPEATED = 0.5  # the share of one value of a target that is a quantity


def leaks(columns: Sequence[SampledColumn], target: AuditTarget) -> Iterator[tuple[str, float]]:
    """Columns that alone predict the target, with the score."""
    bound = LEAK_AUC if target.classes else LEAK_R2
    for column in columns if target.usable else ():
        score = alone(column.numbers, target, bound, categorical=column.categorical)
        if score is not None:
            yield column.name, score


def same_columns(columns: Sequence[SampledColumn]) -> Iterator[tuple[str, str, str]]:
    """A column, an earlier one that says the same, and in which sense. Each column is named at most once as a copy."""
    if not columns or len(columns[0].numbers) < LEAST_ROWS:
        return
    told: set[str] = set()
    seen: dict[bytes, str] = {}
    for column in columns:
        if 2 <= len(column.counts) <= _MOST_LEVELS and len(column.counts) <= len(column.numbers) / 2:
            other = seen.setdefault(_pattern(column.numbers).tobytes(), column.name)
            if other != column.name:
                told.add(column.name)
                yield column.name, other, "each value of one goes with one value of the other"
    numeric = [column for column in columns if not column.categorical and column.name not in told]
    for first, second, correlation in _correlated(numeric[:_MOST_COMPARED]):
        if second not in told:
            told.add(second)
            yield second, first, f"their correlation is {correlation:.5f}"


def _pattern(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Codes in the order of first appearance: equal for columns that are one to one."""
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    renamed = np.empty(len(first), dtype=np.int64)
    renamed[np.argsort(first)] = np.arange(len(first))
    return renamed[codes]


def _correlated(columns: Sequence[SampledColumn]) -> Iterator[tuple[str, str, float]]:
    usable = [column for column in columns if len(column.counts) > 1]
    if len(usable) < 2:
        return
    scaled = np.stack([_standardized(column) for column in usable])
    found = scaled @ scaled.T
    missing = np.array([column.missing for column in usable])
    for second in range(1, len(usable)):
        for first in np.flatnonzero(np.abs(found[second, :second]) >= SAME):
            if missing[first] == missing[second]:
                yield usable[first].name, usable[second].name, float(found[second, first])


def _standardized(column: SampledColumn) -> NDArray[np.float64]:
    """Of mean 0 and length 1; a missing value is the mean."""
    centered = np.where(np.isnan(column.numbers), 0.0, column.numbers - column.known.mean())
    length = float(np.sqrt((centered**2).sum()))
    return centered / (length or 1.0)


def repeated_rows(columns: Sequence[SampledColumn], y: NDArray[np.float64]) -> tuple[int, int] | None:
    """How many rows repeat an earlier one, with the target and without; None where rows repeat by chance.

    A table of few possible rows must repeat them, and that is no fault of it.
    """
    possible = prod(max(len(column.counts) + (column.missing > 0), 1) for column in columns)
    if not columns or len(y) < LEAST_ROWS or possible < _CHANCE * len(y):
        return None
    features = row_hash([column.numbers for column in columns])
    whole = row_hash([*(column.numbers for column in columns), y])
    return len(y) - len(np.unique(whole)), len(y) - len(np.unique(features))


def row_hash(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.uint64]:
    """A number for each row, equal for equal rows."""
    found = np.full(len(columns[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        words = np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
        found ^= words
        found *= np.uint64(0xFF51AFD7ED558CCD)
        found ^= found >> np.uint64(32)
    return found
