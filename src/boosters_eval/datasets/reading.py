"""A user's file as a data frame. What it claims to contain is looked at before it is read."""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, DataFileError, DatasetError
from boosters_eval.core.files import MAX_TEXT
from boosters_eval.datasets import checks
from boosters_eval.datasets.arff import read_arff
from boosters_eval.datasets.dialect import Dialect, decoded, find_dialect, words_of

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from boosters_eval.datasets.config import DataSettings

MAX_COLUMNS = 2**16  # pandas takes a gigabyte and minutes to read a million
MAX_ARFF = 2**29  # bytes: all of it is held in memory, several times
SAMPLE = 2**18  # bytes from which the dialect is detected
_MOST_ZIPPED = 1032  # bytes that gzip can make of one
_FIELDS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


@dataclass(frozen=True)
class FileReading:
    """How a file was read; what is None does not matter for this kind of file, or is as usual."""

    text: str = ""  # in a few words; empty if there is nothing to be said
    notes: tuple[str, ...] = ()
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None


def read_file(file: Path, settings: DataSettings) -> tuple[pd.DataFrame, FileReading]:
    """Read a file by the ending of its name; one sentence for every way in which that fails."""
    import pandas as pd  # noqa: PLC0415 (slow to import, and only files need it)

    try:
        if file.suffix == ".parquet":
            return _parquet(file), FileReading()
        if file.suffix == ".feather":
            return _feather(file), FileReading("Feather")
        return _text(file, settings)
    except pd.errors.EmptyDataError:
        raise DataFileError(f"{file.name} is empty.") from None
    except ImportError:
        kind = "parquet" if file.suffix == ".parquet" else "Feather"
        raise DatasetError(f"Reading {kind} needs pyarrow: pip install 'boosters-eval[parquet]'.") from None
    except BoostersEvalError:
        raise
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{file.name} cannot be read: it is not in the encoding {error.encoding} (--encoding)."
        ) from None
    except (OSError, EOFError, ValueError, zlib.error, pd.errors.ParserWarning) as error:
        raise DataFileError(f"{file.name} cannot be read: {_what(error)}.") from None


def _what(error: Exception) -> str:
    text = str(error).strip()
    fields = _FIELDS.search(text)
    if fields:
        return f"line {fields[2]} has {fields[3]} fields instead of {fields[1]}; check the separator (--sep)"
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def _text(file: Path, settings: DataSettings) -> tuple[pd.DataFrame, FileReading]:
    with _opened(file) as stream:
        sample = stream.read(SAMPLE)
        whole = len(sample) < SAMPLE
    if not sample.strip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"):
        raise DataFileError(f"{file.name} is empty.")
    dialect = find_dialect(file.name, sample, whole=whole, settings=settings)
    if file.name.removesuffix(".gz").endswith(".arff"):
        with _opened(file) as stream:
            data = stream.read(MAX_ARFF + 1)
        if len(data) > MAX_ARFF:
            raise DataFileError(
                f"{file.name} is larger than {MAX_ARFF >> 20} MB, the most that is read of an ARFF file."
            )
        text = decoded(file.name, data, dialect.encodings, whole=True)
        return read_arff(file.name, text, checks.MAX_CELLS), FileReading("ARFF")
    _refuse_too_large(file, dialect.sep)
    for encoding in dialect.encodings[:-1]:
        try:
            return _csv(file, encoding, dialect, settings)
        except UnicodeDecodeError:
            continue
    return _csv(file, dialect.encodings[-1], dialect, settings)


def _opened(file: Path) -> Any:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _csv(file: Path, encoding: str, dialect: Dialect, settings: DataSettings) -> tuple[pd.DataFrame, FileReading]:
    import pandas as pd  # noqa: PLC0415 (loaded by now)

    common: dict[str, Any] = {"encoding": encoding, "sep": dialect.sep}
    header = pd.read_csv(file, header=None, nrows=1, dtype=str, **common).iloc[0]
    texts = dict.fromkeys((*settings.categorical, *settings.date), str)  # 007 stays 007, and 20200131 a date
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a loss of data
        frame = pd.read_csv(
            file, decimal=dialect.decimal or ".", dtype=texts, index_col=dialect.index_col, low_memory=False, **common
        )
    if frame.index.nlevels > 1:
        raise ValueError("the rows have more fields than the header")
    if not header.dropna().is_unique and len(header) == len(frame.columns):  # pandas renamed the second one
        frame.columns = pd.Index(header.where(header.notna(), pd.Series(frame.columns)))
    reading = words_of(encoding, dialect.sep, dialect.decimal, dialect.thousands)
    return frame, FileReading(reading, dialect.notes, dialect.sep, dialect.decimal, dialect.thousands, encoding)


def _parquet(file: Path) -> pd.DataFrame:
    """A parquet file. Its account of its size is looked at first: a few bytes can stand for any number of rows."""
    import pandas as pd  # noqa: PLC0415 (loaded by now)
    from pyarrow import parquet  # noqa: PLC0415 (an extra)

    try:
        told = parquet.read_metadata(file)
        _refuse_too_wide(file.name, told.num_columns)
        _refuse_too_many(file.name, told.num_rows, told.num_columns)
        return pd.read_parquet(file)
    except DatasetError:
        raise
    except Exception as error:  # noqa: BLE001 (altered metadata fail in pyarrow and pandas in any way)
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _feather(file: Path) -> pd.DataFrame:
    """A Feather file, batch by batch: its rows are counted before the next one is read."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    try:
        with pa.memory_map(str(file)) as source:
            reader = pa.ipc.open_file(source)
            _refuse_too_wide(file.name, len(reader.schema))
            batches, count = [], 0
            for position in range(reader.num_record_batches):
                batches.append(reader.get_batch(position))
                count += batches[-1].num_rows
                _refuse_too_many(file.name, count, len(reader.schema))
            return pa.Table.from_batches(batches, reader.schema).to_pandas()  # type: ignore[no-any-return]
    except DatasetError:
        raise
    except Exception as error:  # noqa: BLE001 (altered files fail in pyarrow in any way)
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _refuse_too_large(file: Path, sep: str) -> None:
    """A file of more than 2**31 cells has more bytes than that; only such a file is counted before it is read."""
    zipped = file.suffix == ".gz"
    with _opened(file) as stream:
        line = stream.readline(MAX_TEXT)
        columns = (len(line.split()) if sep == r"\s+" else line.count(sep.encode())) + 1
        _refuse_too_wide(file.name, columns)
        if file.stat().st_size * (_MOST_ZIPPED if zipped else 1) <= checks.MAX_CELLS:
            return
        rows = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 24), b""))
    _refuse_too_many(file.name, rows, columns)


def _refuse_too_wide(name: str, columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise DataFileError(f"{name} has {columns} columns, more than the {MAX_COLUMNS} that can be read.")


def _refuse_too_many(name: str, rows: int, columns: int) -> None:
    if rows * columns > checks.MAX_CELLS:
        raise DataFileError(f"{name} has {rows} x {columns} cells: more than 2**31.")
