"""A user's own file as a data set: the task inferred from its target, and stated in the description."""

from __future__ import annotations

import gzip
import re
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import ConfigError, DatasetError, suggest
from boosters_eval.core.files import MAX_TEXT, check_regular
from boosters_eval.datasets import checks
from boosters_eval.datasets.catalog import DEFAULT_QUANTILES
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.datasets.frames import is_text, numbers, plain, refuse_stray, table_from_frame
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.table import Table

GROUP_COLUMN = "qid"
MAX_CLASSES_OF_NUMBERS = 20  # more distinct whole numbers than this are a quantity, not classes
ROWS_PER_CLASS = 10
MAX_COLUMNS = 2**16  # pandas takes a gigabyte and minutes to read a million
_MOST_ZIPPED = 1032  # bytes that gzip can make of one


def config_from_file(path: str, target: str, task: Task | None = None) -> DatasetConfig:
    """Read the file, find out what it is, and declare it; the rows are read once."""
    file = Path(path)
    try:
        check_regular(file)
        stamp = file.stat().st_mtime_ns
    except FileNotFoundError:
        raise ConfigError(f"The data file {path} does not exist.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    table, found, reason = _read(file.resolve(), stamp, target, task)

    def load() -> Table:
        rows, _, _ = _read(file.resolve(), stamp, target, task)
        _read.cache_clear()  # from here on the cache on disk has it
        return rows

    told = "task given" if task is not None else "task inferred"
    categorical = [table.feature_names[position] for position in table.categorical]
    notes = [f"{told}: {found.value} ({reason})", f"categorical: {', '.join(categorical) or 'none'}"]
    return DatasetConfig(
        name=re.sub(r"[^\w.+-]", "_", f"{file.name.split('.')[0]}.{target}"),
        task=found,
        loader=load,
        n_samples=table.x.shape[0],
        n_features=table.x.shape[1],
        n_classes=int(table.y.max()) + 1 if found.is_classification else None,
        has_missing=bool(np.isnan(table.x).any()),
        categorical=table.categorical,
        feature_names=table.feature_names,
        quantiles=DEFAULT_QUANTILES if found is Task.QUANTILE else (),
        description="; ".join(notes),
        source=f"{file.name}:{target}",
        licence="the user's own",
    )


@lru_cache(maxsize=1)
def _read(file: Path, stamp: int, target: str, task: Task | None) -> tuple[Table, Task, str]:  # noqa: ARG001 (a newer file is read anew)
    frame = _frame(file)
    frame.columns = frame.columns.map(str)
    if target not in frame.columns:
        hint = suggest(target, frame.columns)
        raise ConfigError(f"{file.name} has no column '{target}'.{hint} Its columns: {_few(list(frame.columns))}.")
    if not len(frame):
        raise DatasetError(f"{file.name} has a header but no rows.")
    if len(frame) * len(frame.columns) > checks.MAX_CELLS:
        raise DatasetError(f"{file.name} has {len(frame)} x {len(frame.columns)} cells: more than 2**31.")
    column = plain(target, frame.pop(target))
    if column.isna().any():
        raise DatasetError(f"The target '{target}' of {file.name} is missing in {int(column.isna().sum())} rows.")
    found, reason = _infer(column, target) if task is None else (task, "as asked")
    groups = None
    if found is Task.RANKING:
        frame, column, groups = _by_query(file.name, frame, column)
    if not len(frame.columns):
        raise DatasetError(f"{file.name} has no column besides the target '{target}'.")
    y, names = _target(file.name, target, column, found)
    return table_from_frame(frame, y, groups), found, f"{reason}, classes {_few(names)}" if names else reason


def _frame(file: Path) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415 (slow to import, and only files need it)

    try:
        if file.suffix == ".parquet":
            return _parquet(file)
        _refuse_too_large(file)
        header = pd.read_csv(file, encoding="utf-8", header=None, nrows=1, dtype=str).iloc[0].dropna()
        if not header.is_unique:  # pandas would rename the second one
            twice = header[header.duplicated()].iloc[0]
            raise DatasetError(f"Column names must be unique. {file.name} has '{twice}' twice.")
        return pd.read_csv(file, encoding="utf-8", low_memory=False)
    except pd.errors.EmptyDataError:
        raise DatasetError(f"{file.name} is empty.") from None
    except ImportError:
        raise DatasetError("Reading parquet needs pyarrow: pip install 'boosters-eval[parquet]'.") from None
    except (OSError, EOFError, ValueError, zlib.error, pd.errors.ParserError) as error:
        what = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise DatasetError(f"{file.name} cannot be read: {what}.") from None


def _parquet(file: Path) -> pd.DataFrame:
    """A parquet file. Its account of its size is looked at first: a few bytes can stand for any number of rows."""
    import pandas as pd  # noqa: PLC0415 (loaded by now)
    from pyarrow import parquet  # noqa: PLC0415 (an extra)

    try:
        told = parquet.read_metadata(file)
        _refuse_too_wide(file.name, told.num_columns)
        if told.num_rows * told.num_columns <= checks.MAX_CELLS:
            return pd.read_parquet(file)
    except DatasetError:
        raise
    except Exception as error:  # noqa: BLE001 (altered metadata fail in pyarrow and pandas in any way)
        raise ValueError(f"{type(error).__name__}: {error}") from None
    raise DatasetError(f"{file.name} has {told.num_rows} x {told.num_columns} cells: more than 2**31.")


def _refuse_too_large(file: Path) -> None:
    """A file of more than 2**31 cells has more bytes than that; only such a file is counted before it is read."""
    zipped = file.suffix == ".gz"
    with gzip.open(file) if zipped else file.open("rb") as stream:
        columns = stream.readline(MAX_TEXT).count(b",") + 1
        _refuse_too_wide(file.name, columns)
        if file.stat().st_size * (_MOST_ZIPPED if zipped else 1) <= checks.MAX_CELLS:
            return
        rows = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 24), b""))
    if rows * columns > checks.MAX_CELLS:
        raise DatasetError(f"{file.name} has {rows} x {columns} cells: more than 2**31.")


def _refuse_too_wide(name: str, columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise DatasetError(f"{name} has {columns} columns, more than the {MAX_COLUMNS} that can be read.")


def _infer(column: pd.Series[Any], target: str) -> tuple[Task, str]:
    distinct = int(column.nunique())
    said = f"{distinct} distinct values in '{target}'"
    if distinct == 2:
        return Task.BINARY, said
    if is_text(column):
        refuse_stray(target, column)
        return Task.MULTICLASS, f"{said}, which are text"
    numbers(target, column)
    values = column.to_numpy(dtype=np.float64)
    whole = bool((values == np.floor(values)).all())
    if 2 < distinct <= MAX_CLASSES_OF_NUMBERS and whole and len(column) >= ROWS_PER_CLASS * distinct:
        return Task.MULTICLASS, f"{said}, all whole numbers"
    return Task.REGRESSION, said


def _by_query(name: str, frame: pd.DataFrame, column: pd.Series[Any]) -> tuple[pd.DataFrame, pd.Series[Any], Any]:
    if GROUP_COLUMN not in frame.columns:
        raise DatasetError(f"Ranking needs a column '{GROUP_COLUMN}' with a query id per row; {name} has none.")
    missing = int(frame[GROUP_COLUMN].isna().sum())
    if missing:
        raise DatasetError(f"The query id '{GROUP_COLUMN}' of {name} is missing in {missing} rows.")
    codes = frame[GROUP_COLUMN].factorize()[0]
    order = np.argsort(codes, kind="stable")
    return frame.drop(columns=GROUP_COLUMN).iloc[order], column.iloc[order], codes[order].astype(np.int64)


def _target(name: str, target: str, column: pd.Series[Any], task: Task) -> tuple[NDArray[np.float64], list[str]]:
    import pandas as pd  # noqa: PLC0415 (loaded by now)

    if (column == column.iloc[0]).all():
        raise DatasetError(
            f"The target '{target}' of {name} is constant ({column.iloc[0]}): there is nothing to learn."
        )
    if task.is_classification:
        codes, labels = pd.factorize(column.astype(str) if is_text(column) else column, sort=True)
        if len(labels) > max(MAX_CLASSES_OF_NUMBERS, len(column) // 2):
            raise DatasetError(
                f"The target '{target}' of {name} has {len(labels)} distinct values: too many for classes."
            )
        return codes.astype(np.float64), [str(label) for label in labels]
    parsed = pd.to_numeric(column, errors="coerce") if is_text(column) else column
    y = parsed.to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(y))
    if len(wrong):
        raise DatasetError(
            f"The target '{target}' of {name} must be finite numbers for {task.value}. "
            f"Got '{column.iloc[wrong[0]]}' in row {wrong[0] + 1} instead."
        )
    return y, []


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (", ..." if len(names) > 8 else "")
