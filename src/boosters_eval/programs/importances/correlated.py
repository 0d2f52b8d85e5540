"""Columns that tell the same, so that a model may use either: ranks among them mean little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.programs.importances.findings import CorrelatedColumns
from boosters_eval.stats.inference import doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from boosters_eval.stats.inference import FloatArray


ALIKE = 0.95  # from which two columns are told to be correlated
_MOST_CATEGORICAL = 60  # columns between which Cramér's V is computed
# Rows in which a column must differ from its most frequent value. Where two columns are 0 in all rows but one or two,
# these alone decide, and they may coincide by chance; that ten do, chance does not explain.
FEWEST_VARIED = 10


def correlated_columns(
    x: FloatArray, names: Sequence[str], categorical: Sequence[int] = ()
) -> tuple[CorrelatedColumns, ...]:
    """Pairs of columns, the most alike first: numbers by Spearman's correlation, categories by Cramér's V.

    Trees see the order of numbers alone, so ranks are what is compared. A missing value counts as one in the middle. A
    number and a category are not compared, nor is a column that hardly varies.
    """
    chosen = set(categorical)
    varied = [column for column in range(x.shape[1]) if _n_varied(x[:, column]) >= FEWEST_VARIED]
    numbers = [column for column in varied if column not in chosen]
    categories = [column for column in varied if column in chosen]
    found = [*_numbers(x, numbers, names), *_categories(x, categories[:_MOST_CATEGORICAL], names)]
    return tuple(sorted(found, key=lambda pair: -abs(pair.value)))


def _n_varied(values: FloatArray) -> int:
    """The rows in which a column differs from its most frequent value; missing is a value."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) - int(counts.max(initial=0))


def _numbers(x: FloatArray, columns: Sequence[int], names: Sequence[str]) -> Iterator[CorrelatedColumns]:
    ranked = [_centered_ranks(np.asarray(x[:, column], dtype=np.float64)) for column in columns]
    kept = [(column, ranks) for column, ranks in zip(columns, ranked, strict=True) if ranks is not None]
    if len(kept) < 2:
        return
    matrix = np.column_stack([ranks for _, ranks in kept])
    correlations = matrix.T @ matrix
    for i, j in zip(*np.nonzero(np.triu(np.abs(correlations) >= ALIKE, 1)), strict=True):
        value = float(np.clip(correlations[i, j], -1, 1))
        yield _pair(names, kept[i][0], kept[j][0], value, "Spearman's correlation")


def _centered_ranks(values: FloatArray) -> FloatArray | None:
    """Ranks around 0 with the length 1; None of a constant column."""
    present = ~np.isnan(values)
    ranks = np.zeros(len(values))
    if present.any():
        found = doubled_ranks(values[present])
        ranks[present] = found - found.mean()
    size = float(np.linalg.norm(ranks))
    return ranks / size if size > 0 else None


def _categories(x: FloatArray, columns: Sequence[int], names: Sequence[str]) -> Iterator[CorrelatedColumns]:
    codes = {column: np.unique(x[:, column], return_inverse=True)[1] for column in columns}
    for place, i in enumerate(columns):
        for j in columns[place + 1 :]:
            value = _cramers_v(codes[i], codes[j])
            if value is not None and value >= ALIKE:
                yield _pair(names, i, j, value, "Cramér's V")


def _cramers_v(a: NDArray[np.int64], b: NDArray[np.int64]) -> float | None:
    rows, columns = int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    if min(rows, columns) < 2 or rows * columns > 10 * len(a):  # one category, or hardly two rows in a cell
        return None
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns).astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(a)
    chi2 = float(((table - expected) ** 2 / expected).sum())
    return float(min(np.sqrt(chi2 / len(a) / (min(rows, columns) - 1)), 1.0))


def _pair(names: Sequence[str], i: int, j: int, value: float, measure: str) -> CorrelatedColumns:
    return CorrelatedColumns.model_validate({"a": names[i], "b": names[j], "value": value, "measure": measure})
