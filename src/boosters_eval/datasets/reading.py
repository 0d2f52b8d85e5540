"""A user's file as a data frame."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from boosters_eval.core.errors import DatasetError
from boosters_eval.core.files import MAX_TEXT
from boosters_eval.datasets import checks

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

MAX_COLUMNS = 2**16  # pandas takes a gigabyte and minutes to read a million
_MOST_ZIPPED = 1032  # bytes that gzip can make of one


def read_file(file: Path) -> pd.DataFrame:
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
