"""What is audited, as numbers: the columns that are used and the target, in the rows that are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.audit_columns import SampledColumn
from boosters_eval.datasets.audit_relations import row_hash
from boosters_eval.datasets.frames import is_text
from boosters_eval.datasets.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.audit import ColumnRole
    from boosters_eval.datasets.table import Table
    from boosters_eval.metrics.task import Task

    RowNumbers = NDArray[np.int64]

SAMPLE = 20_000  # rows; of more, so many are looked at
MOST_COLUMNS = 1_000  # that are looked at
_FEWEST, _VALUES = 2_000, 10_000_000  # of wide tables fewer rows, so that there are at most so many values
_HASHED = 8  # numeric columns by which copies of rows are found in a large table
_STREAM = 5  # keeps this use of the stream apart from its others


@dataclass(frozen=True)
class Subject:
    """A table to be audited."""

    name: str
    task: Task
    target: str
    y: NDArray[np.float64]  # in all rows: numbers, or the codes of classes
    labels: tuple[str, ...]  # of the classes
    columns_at: Callable[[RowNumbers | None], tuple[SampledColumn, ...]]  # the features in some rows, or in all
    numbers: Callable[[str], NDArray[Any]]  # a column of numbers, in all rows
    numeric: tuple[str, ...]  # the names of these columns
    width: int  # columns that are looked at
    by_option: bool = True  # whether options of the command line act on it
    asked: frozenset[str] = frozenset()  # columns that the user wants as they are
    dates: frozenset[str] = frozenset()  # columns that are used as dates

    @property
    def limit(self) -> int:
        """How many rows are looked at, if there are more."""
        return max(_FEWEST, min(SAMPLE, _VALUES // max(self.width, 1)))

    def sample(self) -> RowNumbers | None:
        """The rows that are looked at, always the same and in their order; None: all of them."""
        rows = len(self.y)
        if rows <= self.limit:
            return None
        return np.flatnonzero(Stream(0, _STREAM, rows).uniform(rows) < self.limit / rows).astype(np.int64)

    def copies_sample(self, sample: RowNumbers | None, ids: Collection[str]) -> RowNumbers | None:
        """The rows among which copies are counted: with each of them, all of its copies are there.

        A random sample of a large table would hardly ever hold two copies of a row. So rows are chosen by a hash of
        their numbers but for ids, which is the same for all copies.
        """
        if sample is None:
            return None
        numbers = [self.numbers(name) for name in [name for name in self.numeric if name not in ids][:_HASHED]]
        if not numbers:
            return sample
        every = -(-len(self.y) // self.limit)
        chosen = np.flatnonzero(row_hash(numbers) % np.uint64(every) == 0)
        return chosen if self.limit // 4 <= len(chosen) <= 4 * self.limit else sample


def columns_of_table(table: Table, names: Sequence[str]) -> Callable[[RowNumbers | None], tuple[SampledColumn, ...]]:
    """The columns of arrays."""

    def column(position: int, rows: RowNumbers | None) -> SampledColumn:
        values = np.asarray(table.x[:, position])
        texts = (table.category_names or {}).get(names[position])
        return SampledColumn(
            name=names[position],
            numbers=(values if rows is None else values[rows]).astype(np.float64),
            texts=None if texts is None else np.asarray(texts, dtype=object),
            declared=position in table.categorical,
            all_rows=None if rows is None else lambda: values,
            share=1.0 if rows is None else len(rows) / len(values),
        )

    return lambda rows: tuple(column(position, rows) for position in range(len(names)))


def column_of_frame(name: str, column: pd.Series[Any], rows: RowNumbers | None, role: ColumnRole) -> SampledColumn:
    """A column of a data frame, as numbers or as codes, by what it is used as."""
    from pandas.api import types  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    some = column if rows is None else column.take(rows)
    share = len(some) / max(len(column), 1)
    if role == "categorical" or (role == "date" and is_text(column)):
        codes, texts = _coded(some)
        return SampledColumn(
            name,
            codes,
            texts=texts,
            declared=isinstance(column.dtype, types.CategoricalDtype) or not is_text(column),
            all_rows=None if rows is None else lambda: _coded(column)[0],
            share=share,
        )
    return SampledColumn(name, _as_numbers(some), all_rows=lambda: _exact_numbers(column), share=share)


def coded_target(column: pd.Series[Any], *, classes: bool) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """A target without missing values: its numbers, or the codes and names of its classes."""
    if not classes:
        return _as_numbers(column), ()
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    codes, names = pd.factorize(column.astype(str) if is_text(column) else column, sort=True)
    return codes.astype(np.float64), tuple(map(str, names))


def _coded(column: pd.Series[Any]) -> tuple[NDArray[np.float64], NDArray[Any]]:
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    missing = column.isna().to_numpy()
    plain = column.astype(str) if column.dtype == object else column
    codes, texts = pd.factorize(plain.astype(object) if hasattr(column, "cat") else plain)
    return np.where(missing, np.nan, codes.astype(np.float64)), np.asarray(texts, dtype=object)


def _as_numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers that are finite in float32, and times as numbers of nanoseconds; what is neither is missing."""
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    kind = column.dtype.kind
    if kind in "mM":
        moments = column.to_numpy(dtype="datetime64[ns]" if kind == "M" else "timedelta64[ns]").astype(np.int64)
        return np.where(column.isna().to_numpy(), np.nan, moments.astype(np.float64))
    if is_text(column) or kind not in "biuf":
        try:
            column = pd.to_numeric(column, errors="coerce")
        except (TypeError, ValueError):  # such as an interval
            return np.full(len(column), np.nan)
    found = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.abs(found) > np.finfo(np.float32).max, np.nan, found)


def _exact_numbers(column: pd.Series[Any]) -> NDArray[Any]:
    """Whole numbers as such: beyond 2**53 they are not exact as floats."""
    values = column.to_numpy()
    return values if values.dtype.kind in "iu" else _as_numbers(column)
