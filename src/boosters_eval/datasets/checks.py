"""What a loader returned, made into a Table or refused with one sentence. Text becomes category codes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DatasetError
from boosters_eval.core.text import join_words
from boosters_eval.datasets.config import Table, parse_split
from boosters_eval.datasets.splits import follow_split, read_split_values
from boosters_eval.datasets.texts import spread_times
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.config import DatasetConfig

MANY_TEXTS = 1000  # a text column with more distinct values than this, hardly any of them twice, is not a category


def is_frame(value: Any) -> bool:
    """Whether it is a pandas data frame, detected without importing pandas."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def table_from_frame(frame: pd.DataFrame, y: Any, groups: Any = None) -> Table:
    """Features as float32; categorical columns as codes in the order of their names, NaN where missing."""
    columns: list[NDArray[Any]] = []
    categories: dict[str, list[str]] = {}
    if not frame.columns.is_unique:
        raise DatasetError("Column names must be unique.")
    for label in frame.columns:
        name = str(label)
        column = unwrap_objects(name, frame[label])
        if is_text(column):
            codes, names = encode_texts(name, column)
            categories[name] = names
            columns.append(codes)
        else:
            check_number(name, column)
            columns.append(column.to_numpy() if isinstance(column.dtype, np.dtype) else to_float64(column))
    names_of_all = tuple(str(label) for label in frame.columns)
    return Table(
        _stack(columns, len(frame)),
        y,
        groups=groups,
        categorical=tuple(names_of_all.index(name) for name in categories),
        feature_names=names_of_all,
        category_names=categories or None,
    )


def is_text(column: pd.Series[Any]) -> bool:
    from pandas.api import types  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    kinds = (types.is_string_dtype, types.is_object_dtype)
    return isinstance(column.dtype, types.CategoricalDtype) or any(kind(column.dtype) for kind in kinds)


def is_number(column: pd.Series[Any]) -> bool:
    from pandas.api import types  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    return bool(types.is_any_real_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype))


def unwrap_objects(name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of Python objects as what all of them are, texts or numbers; any other column as it is."""
    if column.dtype != object:
        return column
    there = column.notna()
    kinds = {type(value) for value in column[there]}
    if all(issubclass(kind, str) for kind in kinds):
        return column
    if all(issubclass(kind, (Real, Decimal)) for kind in kinds):
        return column.where(there, np.nan).astype(np.float64)
    found = join_words(sorted(kind.__name__ for kind in kinds))
    raise DatasetError(f"Column '{name}' holds values of type {found}: convert them to numbers or texts first.")


def to_float64(column: pd.Series[Any]) -> NDArray[np.float64]:
    """The numbers of a column; a missing one is NaN. What is float64 already is not copied."""
    plain = isinstance(column.dtype, np.dtype)  # others of pandas have a missing value of their own
    return column.to_numpy(dtype=np.float64) if plain else column.to_numpy(dtype=np.float64, na_value=np.nan)


def check_number(name: str, column: pd.Series[Any]) -> None:
    if not is_number(column):
        raise DatasetError(f"Column '{name}' is of type {column.dtype}: convert it to numbers first.")


_AT_ONCE = 2**18  # numbers that stay in the processor's cache while they are put into rows


def _stack(columns: list[NDArray[Any]], rows: int) -> NDArray[np.float32]:
    """The columns side by side in float32, to which all come from float64, some rows at a time."""
    table = np.empty((rows, len(columns)), dtype=np.float32)
    step = max(1, _AT_ONCE // max(1, len(columns)))

    def fill(start: int) -> None:
        with np.errstate(over="ignore"):
            for position, column in enumerate(columns):
                table[start : start + step, position] = column[start : start + step].astype(np.float64, copy=False)

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
        list(threads.map(fill, range(0, rows, step)))
    return table


def encode_texts(name: str, column: pd.Series[Any]) -> tuple[NDArray[np.float32], list[str]]:
    """Texts as codes by alphabet; a column of numbers with a stray text in it is refused, not encoded."""
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    codes, distinct = pd.factorize(column)
    texts = [str(value) for value in distinct]
    names = sorted(set(texts))
    if not isinstance(column.dtype, pd.CategoricalDtype):
        _refuse_stray(name, column)
        if len(names) > MANY_TEXTS and len(names) > 0.5 * len(column):
            raise DatasetError(
                f"Column '{name}' has {len(names)} distinct texts in {len(column)} rows: not a category; drop it."
            )
    index = {text: code for code, text in enumerate(names)}
    lookup = np.array([*(index[text] for text in texts), np.nan], dtype=np.float32)  # a missing one has code -1
    return lookup[codes], names


def _refuse_stray(name: str, column: pd.Series[Any]) -> None:
    """A text among numbers is a slip of the pen, not a category."""
    import pandas as pd  # noqa: PLC0415 (a frame is here, so pandas is loaded)

    parsed = pd.to_numeric(column, errors="coerce").notna().to_numpy()
    stray = ~parsed & column.notna().to_numpy()
    if parsed.sum() > 9 * stray.sum() > 0:
        row = int(np.flatnonzero(stray)[0])
        raise DatasetError(f"Column '{name}' holds numbers, but '{column.iloc[row]}' in row {row + 1} is not a number.")


_KINDS = {"weights": np.float64, "groups": np.int64, "sensitive": np.int64, "split": np.int8}
MAX_CELLS = 2**31
MAX_GRADE = 30  # the most that LightGBM and XGBoost take
MAX_CODE = 2**24  # float32 holds whole numbers exactly up to here


COARSE = 1e-4  # the step of float32 at the largest target, in standard deviations, from which it blurs the target


def find_coarse_step(y: NDArray[np.float64]) -> float | None:
    """How far apart neighboring numbers of float32 are at the largest target, if that blurs a target; else None."""
    for column in np.atleast_2d(np.asarray(y).T):
        largest = min(np.abs(column).max(), np.finfo(np.float32).max)
        step = 2 * float(np.spacing(np.float32(largest / 2)))
        if step > COARSE * float(column.std()):
            return step
    return None


SMALLEST, LARGEST = 2.0**-5, 2.0**60  # standard deviations beyond which least gains, or float32, decide what is learned


def find_unit(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The power of two near the standard deviation of each target that is too small or too large; of others 1."""
    spread = np.asarray(np.asarray(y).std(axis=0))
    odd = (spread > 0) & ((spread < SMALLEST) | (spread > LARGEST))
    found: NDArray[np.float64] = np.where(odd, np.exp2(np.round(np.log2(np.where(odd, spread, 1.0)))), 1.0)
    return found


def as_table(config: DatasetConfig, raw: Any) -> Table:
    """(x, y) or a Table, in the types that everything after relies on, and checked."""
    name = config.name
    if not isinstance(raw, Table):
        if not isinstance(raw, tuple) or len(raw) != 2:
            what = f"The loader of data set '{name}' must return (x, y) or a Table."
            raise DatasetError(f"{what} Got {type(raw).__name__} instead.")
        raw = _from_frame(config, raw[0], raw[1]) if is_frame(raw[0]) else Table(raw[0], raw[1])
    x = _array(name, "x", raw.x, 2)
    y = _target_array(config, raw.y)
    if x.size > MAX_CELLS:
        raise DatasetError(f"Data set '{name}' has {x.shape[0]} x {x.shape[1]} cells: more than 2**31.")
    given = {part: getattr(raw, part) for part in _KINDS if getattr(raw, part) is not None}
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused below with a sentence
        narrow = np.ascontiguousarray(x.astype(np.float32, copy=False))
    table = replace(
        raw,
        x=narrow,
        y=np.asarray(y, dtype=np.float64),
        **{part: _array(name, part, values, 1).astype(_KINDS[part]) for part, values in given.items()},
        categorical=_positions(config, raw),
        feature_names=config.feature_names or tuple(map(str, raw.feature_names)),
    )
    _check_shapes(config, table)
    _check_values(name, table)
    _check_target(config, table)
    return follow_split(config, table)


def _from_frame(config: DatasetConfig, frame: Any, y: Any) -> Table:
    """The column of the split is taken out first; times come back as features that models can use."""
    by = parse_split(config.split_by)
    if by is None or by.column not in frame.columns:
        return table_from_frame(frame, y)
    found = read_split_values(config.name, by, frame[by.column])
    rest = frame.drop(columns=by.column)
    if by.kind == "time":
        rest = rest.assign(**spread_times(by.column, frame[by.column]))
    return replace(table_from_frame(rest, y), split_by=found, split_column=by.column)


def _require(holds: bool | np.bool, sentence: str) -> None:
    if not holds:
        raise DatasetError(sentence)


def _array(name: str, part: str, value: Any, dimensions: int) -> NDArray[Any]:
    array, what = np.asarray(value), f"The {part} of data set '{name}'"
    _require(array.dtype.kind in "biuf", f"{what} must be numbers. Got {array.dtype} instead.")
    _require(array.ndim == dimensions, f"{what} must have {dimensions} dimension(s). Got {array.ndim} instead.")
    _require(array.size > 0, f"{what} is empty.")
    return array


def _target_array(config: DatasetConfig, value: Any) -> NDArray[Any]:
    """One target as a line; several, which are numbers and have names, as columns."""
    count = len(config.targets)
    y = _array(config.name, "y", value, 2 if count > 1 else 1)
    what = f"The y of data set '{config.name}'"
    _require(count < 2 or config.task is Task.REGRESSION, f"{what} can have several targets for regression only.")
    _require(y.ndim == 1 or y.shape[1] == count, f"{what} must have {count} columns. Got {y.shape[-1]} instead.")
    return y


def _positions(config: DatasetConfig, raw: Table) -> tuple[int, ...]:
    names = config.feature_names or raw.feature_names
    out = []
    for column in config.categorical or raw.categorical:
        if isinstance(column, str) and column not in names:
            raise DatasetError(f"Data set '{config.name}' has no column '{column}' that could be categorical.")
        out.append(names.index(column) if isinstance(column, str) else int(column))
    return tuple(sorted(out))


def _check_shapes(config: DatasetConfig, table: Table) -> None:
    name, (rows, columns) = config.name, table.x.shape
    for part in ("y", "weights", "groups", "sensitive", "split", "split_by"):
        array = getattr(table, part)
        count = rows if array is None else len(array)
        what = f"The {part} of data set '{name}' must have {rows} rows, as many as x."
        _require(count == rows, f"{what} Got {count} instead.")
    _require(rows >= 2, f"Data set '{name}' must have at least 2 rows. Got {rows} instead.")
    for declared, actual, what in ((config.n_samples, rows, "rows"), (config.n_features, columns, "columns")):
        _require(
            declared in (None, actual),
            f"Data set '{name}' is declared to have {declared} {what}. Got {actual} instead.",
        )
    names = len(table.feature_names)
    _require(names in (0, columns), f"Data set '{name}' must have {columns} feature names. Got {names} instead.")
    _require(len(set(table.feature_names)) == names, f"The feature names of data set '{name}' must be unique.")
    for position in table.categorical:
        _require(
            0 <= position < columns,
            f"Data set '{name}' has {columns} columns, so column {position} cannot be categorical.",
        )


def _check_values(name: str, table: Table) -> None:
    infinite = np.isinf(table.x)
    if infinite.any():
        infinite = np.flatnonzero(infinite.any(axis=0))
        column = f"'{table.feature_names[infinite[0]]}'" if table.feature_names else infinite[0]
        what = f"Column {column} of data set '{name}'"
        raise DatasetError(f"{what} must be finite in float32, or NaN where it is missing.")
    _require(np.isfinite(table.y).all(), f"The y of data set '{name}' must be finite.")
    weights = table.weights
    if weights is not None and not (np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0):
        raise DatasetError(f"The weights of data set '{name}' must be finite, not negative, and not all zero.")
    for position in table.categorical:
        codes = table.x[:, position]
        codes = codes[~np.isnan(codes)]
        if (codes < 0).any() or (codes >= MAX_CODE).any() or (codes != np.floor(codes)).any():
            raise DatasetError(f"Column {position} of data set '{name}' must hold category codes 0, 1, ... or NaN.")


def _check_target(config: DatasetConfig, table: Table) -> None:
    name, y, task = config.name, table.y, config.task
    missing = config.has_missing is False and bool(np.isnan(table.x).any())
    _require(not missing, f"Data set '{name}' is declared to have no missing values, but has some.")
    for column in np.atleast_2d(y.T):
        constant = f"The target of data set '{name}' is constant ({column[0]:g}): there is nothing to learn."
        _require(column.min() < column.max(), constant)
    if task.is_classification:
        _check_classes(config, y)
    quantiles = task is not Task.QUANTILE or bool(config.quantiles)
    _require(quantiles, f"Data set '{name}' needs 'quantiles' for the quantile task.")
    if task is Task.RANKING:
        _check_ranking(name, table)


def _check_classes(config: DatasetConfig, y: NDArray[np.float64]) -> None:
    labels = np.unique(y)
    name, count, task = config.name, len(labels), config.task
    if not np.array_equal(labels, np.arange(count)):
        shown = ", ".join(f"{label:g}" for label in labels[:4])
        raise DatasetError(f"The classes of data set '{name}' must be 0 .. K-1. Got {shown}, ... instead.")
    binary, declared = task is Task.BINARY, config.n_classes
    _require(not binary or count == 2, f"The binary data set '{name}' must have 2 classes. Got {count} instead.")
    _require(binary or count != 2, f"The data set '{name}' has 2 classes: its task is binary, not multiclass.")
    _require(
        declared in (None, count), f"Data set '{name}' is declared to have {declared} classes. Got {count} instead."
    )


def _check_ranking(name: str, table: Table) -> None:
    what = f"ranking data set '{name}'"
    if table.groups is None:
        raise DatasetError(f"The {what} needs groups: a query id per row.")
    starts = np.flatnonzero(np.diff(table.groups)) + 1
    ids = np.concatenate([table.groups[:1], table.groups[starts]])
    _require(len(ids) == len(np.unique(ids)), f"The rows of one query must be adjacent in data set '{name}'.")
    _require(len(ids) >= 2, f"The {what} must have at least 2 queries. Got 1 instead.")
    whole = bool((table.y >= 0).all() and (table.y == np.floor(table.y)).all())
    _require(whole, f"The grades of the {what} must be whole numbers from 0.")
    bound = f"The grades of the {what} must be at most {MAX_GRADE}: a gain is 2**grade."
    _require(table.y.max() <= MAX_GRADE, f"{bound} Got {table.y.max():g} instead.")
