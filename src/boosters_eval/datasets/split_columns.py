"""The column that `--split` follows: times as numbers, groups as codes. A row without one cannot be placed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DataFileError, suggest
from boosters_eval.datasets.config import parse_split
from boosters_eval.datasets.dates import parse_dates

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.config import DatasetConfig, SplitBy
    from boosters_eval.datasets.table import Table


_WHOLE = re.compile(r"^(-?\d+)\.0*$")


def followed(config: DatasetConfig, table: Table) -> Table:
    """The table with the column that its data set is split by, which is no feature; without one if it has no use."""
    by = parse_split(config.split_by)
    if by is None:
        return replace(table, split_by=None, split_column="")
    if table.split_by is not None and table.split_column == by.column:
        values: Any = table.split_by
    else:
        position = _position(config.name, table, by)
        if by.kind == "time" and position in table.categorical:
            raise DataFileError(f"Column '{by.column}' of data set '{config.name}' has categories, which are no times.")
        values, table = table.x[:, position], _without(config.name, table, position)
    found = split_values(config.name, by, values)
    _check_queries(config.name, by, table, found)
    return replace(table, split_by=found, split_column=by.column)


def with_split_column(config: DatasetConfig, frame: pd.DataFrame) -> tuple[pd.DataFrame, Any, str]:
    """The frame without the column that its data set is split by, the column, and its name."""
    by = parse_split(config.split_by)
    if by is None or by.column not in frame.columns:
        return frame, None, ""
    return frame.drop(columns=by.column), split_values(config.name, by, frame[by.column]), by.column


def split_values(source: str, by: SplitBy, column: Any) -> NDArray[Any]:
    """Times as numbers of their own order, groups as codes 0, 1, ...; a value that is missing is refused."""
    return _times(source, by.column, column) if by.kind == "time" else _groups(source, by.column, column)


def _times(source: str, name: str, column: Any) -> NDArray[Any]:
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind == "f":
        numbers = np.asarray(column, dtype=np.float64)
        _refuse_missing(source, "time", name, ~np.isfinite(numbers))
        return numbers
    if kind in "biu":
        if hasattr(column, "isna"):  # pandas has integers and booleans that may be missing
            _refuse_missing(source, "time", name, np.asarray(column.isna(), dtype=bool))
        values = np.asarray(column)
        # Numbers that int64 cannot hold become places in their order, which is all that matters.
        whole = kind != "u" or int(values.max(initial=0)) <= np.iinfo(np.int64).max
        return values.astype(np.int64) if whole else np.unique(values, return_inverse=True)[1].astype(np.int64)
    import pandas as pd  # noqa: PLC0415 (slow to import, and numbers do not need it)

    texts = pd.Series(column)
    _refuse_missing(source, "time", name, texts.isna().to_numpy())
    found = parse_dates(texts)
    lost = np.ones(len(texts), dtype=bool) if found is None else found.moments.isna().to_numpy()
    if found is None or lost.any():
        first = texts[lost].iloc[0]
        raise DataFileError(
            f"The time column '{name}' of {source} must hold dates or numbers. Got '{first}' and"
            f" {int(lost.sum()) - 1} other such rows instead."
        )
    if found.ambiguous:
        raise DataFileError(
            f"The time column '{name}' of {source} can be read with the day or the month first ('{texts.iloc[0]}'):"
            " write it as year-month-day."
        )
    moments = found.moments.to_numpy()
    try:
        return moments.astype("datetime64[ns]").astype(np.int64)
    except OverflowError:  # centuries ago, or ahead
        return moments.astype("datetime64[us]").astype(np.int64)


def _groups(source: str, name: str, column: Any) -> NDArray[np.int64]:
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        _refuse_missing(source, "group", name, np.isnan(values))
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    import pandas as pd  # noqa: PLC0415 (slow to import, and numbers do not need it)

    codes, names = pd.factorize(pd.Series(column))
    _refuse_missing(source, "group", name, codes < 0)
    merged = pd.factorize(pd.Series([_group_name(each) for each in names], dtype=object))[0]
    return merged[codes].astype(np.int64)


def _group_name(name: Any) -> str:
    """One name for what is surely one group: 7, "7", "7.0" and " 7" must not be on both sides of a split."""
    text = str(name).strip()
    return _WHOLE.sub(r"\1", text)


def _refuse_missing(source: str, kind: str, name: str, missing: NDArray[np.bool_]) -> None:
    count = int(missing.sum())
    if count:
        rows = "1 row" if count == 1 else f"{count} rows"
        raise DataFileError(
            f"The {kind} column '{name}' of {source} must be known in every row. It is missing in {rows}."
        )


def _position(source: str, table: Table, by: SplitBy) -> int:
    names = [*table.feature_names, *filter(None, [table.split_column])]
    if by.column not in table.feature_names:
        known = "" if names else " Its columns have no names."
        raise DataFileError(f"Data set '{source}' has no column '{by.column}'.{suggest(by.column, names)}{known}")
    return table.feature_names.index(by.column)


def _without(source: str, table: Table, position: int) -> Table:
    if table.x.shape[1] == 1:
        raise DataFileError(
            f"Data set '{source}' has no column besides '{table.feature_names[position]}' to learn from."
        )
    name = table.feature_names[position]
    return replace(
        table,
        x=np.ascontiguousarray(np.delete(table.x, position, axis=1)),
        categorical=tuple(other - (other > position) for other in table.categorical if other != position),
        feature_names=tuple(other for other in table.feature_names if other != name),
        category_names={k: v for k, v in (table.category_names or {}).items() if k != name} or None,
    )


def _check_queries(source: str, by: SplitBy, table: Table, values: NDArray[Any]) -> None:
    """A query is never cut, so all of its rows must have one time, or be of one group."""
    if table.groups is None:
        return
    same_query = table.groups[1:] == table.groups[:-1]
    if (same_query & (values[1:] != values[:-1])).any():
        raise DataFileError(f"All rows of a query of {source} must have the same {by.kind} '{by.column}'.")
