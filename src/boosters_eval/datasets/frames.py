"""Data frames into tables: text becomes category codes, bools and numbers stay numbers."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DatasetError
from boosters_eval.datasets.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

MANY_TEXTS = 1000  # a text column with more distinct values than this, hardly any of them twice, is not a category


def is_frame(value: Any) -> bool:
    """Whether it is a pandas data frame, detected without importing pandas."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def table_from_frame(frame: pd.DataFrame, y: Any, groups: Any = None) -> Table:
    """Features as float32; categorical columns as codes in the order of their names, NaN where missing."""
    columns, categories = [], {}
    if not frame.columns.is_unique:
        raise DatasetError("Column names must be unique.")
    for label in frame.columns:
        name = str(label)
        column = plain(name, frame[label])
        if is_text(column):
            codes, names = encode(name, column)
            categories[name] = names
            columns.append(codes)
        else:
            columns.append(numbers(name, column))
    names_of_all = tuple(str(label) for label in frame.columns)
    return Table(
        np.stack(columns, axis=1) if columns else np.empty((len(frame), 0), dtype=np.float32),
        y,
        groups=groups,
        categorical=tuple(names_of_all.index(name) for name in categories),
        feature_names=names_of_all,
        category_names=categories or None,
    )


def is_text(column: pd.Series[Any]) -> bool:
    """Whether the values are names rather than quantities."""
    from pandas.api import types  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    kinds = (types.is_string_dtype, types.is_object_dtype)
    return isinstance(column.dtype, types.CategoricalDtype) or any(kind(column.dtype) for kind in kinds)


def is_number(column: pd.Series[Any]) -> bool:
    """Whether the values are numbers or bools."""
    from pandas.api import types  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    return bool(types.is_any_real_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype))


def texts_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """The values as they would be written, None where missing."""
    values = column.astype(object)
    if str(column.dtype) != "str":  # texts are written as they are
        values = values.map(_written, na_action="ignore")
    return values.where(column.notna(), None)


def _written(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def plain(name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of Python objects as what all of them are, texts or numbers; any other column as it is."""
    if column.dtype != object:
        return column
    there = column.notna()
    kinds = {type(value) for value in column[there]}
    if all(issubclass(kind, str) for kind in kinds):
        return column
    if all(issubclass(kind, (Real, Decimal)) for kind in kinds):
        return column.where(there, np.nan).astype(np.float64)
    found = " and ".join(sorted(kind.__name__ for kind in kinds))
    raise DatasetError(f"Column '{name}' holds values of type {found}: convert them to numbers or texts first.")


def numbers(name: str, column: pd.Series[Any]) -> NDArray[np.float32]:
    """A numeric or bool column as float32."""
    if not is_number(column):
        raise DatasetError(f"Column '{name}' is of type {column.dtype}: convert it to numbers first.")
    with np.errstate(over="ignore"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).astype(np.float32)


def encode(name: str, column: pd.Series[Any]) -> tuple[NDArray[np.float32], list[str]]:
    """Texts as codes by alphabet; a column of numbers with a stray text in it is refused, not encoded."""
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    codes, distinct = pd.factorize(column)
    texts = [str(value) for value in distinct]
    names = sorted(set(texts))
    if not isinstance(column.dtype, pd.CategoricalDtype):
        refuse_stray(name, column)
        if len(names) > MANY_TEXTS and len(names) > 0.5 * len(column):
            raise DatasetError(
                f"Column '{name}' has {len(names)} distinct texts in {len(column)} rows: not a category; drop it."
            )
    index = {text: code for code, text in enumerate(names)}
    lookup = np.array([*(index[text] for text in texts), np.nan], dtype=np.float32)  # a missing one has code -1
    return lookup[codes], names


def refuse_stray(name: str, column: pd.Series[Any]) -> None:
    """A text among numbers is a slip of the pen, not a category."""
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    parsed = pd.to_numeric(column, errors="coerce").notna().to_numpy()
    stray = ~parsed & column.notna().to_numpy()
    if parsed.sum() > 9 * stray.sum() > 0:
        row = int(np.flatnonzero(stray)[0])
        raise DatasetError(f"Column '{name}' holds numbers, but '{column.iloc[row]}' in row {row + 1} is not a number.")
