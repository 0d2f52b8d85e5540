"""A user's file as a data frame: what it claims to contain, and how it is written, is looked at before it is read."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from boosters_eval.core.errors import BoostersEvalError, ConfigError, DataFileError, DatasetError, describe_error
from boosters_eval.core.files import MAX_TEXT
from boosters_eval.core.terms import named, the
from boosters_eval.datasets import checks
from boosters_eval.datasets.blocks import read_blocks
from boosters_eval.datasets.config import FileReading
from boosters_eval.datasets.texts import parse_dates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boosters_eval.datasets.config import DataSettings

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " ", "whitespace": r"\s+"}
LOOKED_AT = 200  # rows from which the separator and the decimal mark are detected
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_WORDS = {"utf-8-sig": "UTF-8 with a byte order mark", "utf-16": "UTF-16"}
_BINARY = re.compile(r"[\x00-\x08\x0e-\x19\x1b-\x1f]")  # no text has them; 0x1a once ended files
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
_DECIMAL_POINT = re.compile(r"[-+]?\d+\.\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_EITHER = re.compile(r"[-+]?\d{1,3},\d{3}")  # a thousand and some, or a little more than one


class _Dialect(NamedTuple):
    """What is needed to read a text file, and what of it was detected rather than given."""

    encodings: tuple[str, ...]  # to be tried in turn: not all of the file has been looked at
    sep: str
    decimal: str | None
    thousands: str | None
    notes: tuple[str, ...]
    index_col: bool | None  # False: each row ends with a separator, so that there is a field too many

    def reading(self, encoding: str) -> FileReading:
        """The file as it is read, in a few words where that is not the usual way."""
        shown = {"\t": "tab", r"\s+": "whitespace"}.get(self.sep, f"'{self.sep}'")
        parts = [f"separator {shown}"] if self.sep != "," else []
        parts += [f"decimal mark '{self.decimal}'"] if self.decimal not in (None, ".") else []
        parts += [f"thousands mark '{self.thousands}'"] if self.thousands else []
        parts += [f"encoding {_WORDS.get(encoding, encoding)}"] if encoding != "utf-8" else []
        return FileReading(", ".join(parts), self.notes, self.sep, self.decimal, self.thousands, encoding)


def _find_dialect(name: str, sample: bytes, *, whole: bool, settings: DataSettings) -> _Dialect:
    """The dialect of a file that begins with the sample, as the settings say or as it is found to be."""
    encodings = (_check_encoding(settings.encoding),) if settings.encoding else _encodings(sample, whole=whole)
    text = _decode(name, sample, encodings, whole=whole)
    if _BINARY.search(text):
        why = f"it is not a text file, or not encoded in {encodings[0]} ({named('encoding')})"
        raise DataFileError(f"{name} cannot be read: {why}.")
    sep = _check_separator(settings.sep) if settings.sep else _separator(text, whole=whole, tabs=".tsv" in name)
    rows = _records(text, sep, whole=whole)
    decimal, thousands = _marks(rows, sep) if settings.decimal is None else (None, None)
    index_col, notes = _shape(name, rows)
    decimal = _check_mark("decimal", settings.decimal) or decimal
    thousands = _check_mark("thousands", settings.thousands) or thousands
    return _Dialect(encodings, sep, decimal, thousands, notes, index_col)


def _check_encoding(given: str) -> str:
    try:
        found = codecs.lookup(given)
    except (LookupError, ValueError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise ConfigError(
            f"{the('encoding')} must be an encoding such as utf-8, utf-16, latin-1 or cp1252. Got {given!r} instead."
        )
    return found.name


def _check_separator(given: str) -> str:
    """The separator itself, from its name or from itself."""
    sep = SEPARATORS.get(given, "\t" if given == r"\t" else given)
    if sep not in SEPARATORS.values() and (len(sep) != 1 or sep.isalnum() or sep in '"\r\n' or not sep.isprintable()):
        names = ", ".join(SEPARATORS)
        raise ConfigError(f"{the('sep')} must be one character, or one of {names}. Got {given!r} instead.")
    return sep


def _check_mark(parameter: str, given: str | None) -> str | None:
    if given is not None and (len(given) != 1 or given.isalnum() or given in '+-"\r\n'):
        raise ConfigError(f"{the(parameter)} must be one character such as ',' or '.'. Got {given!r} instead.")
    return given


def _encodings(sample: bytes, *, whole: bool) -> tuple[str, ...]:
    for mark, encoding in _BOMS.items():
        if sample.startswith(mark):
            return (encoding,)
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if len(sample) > 3 and max(even, odd) > 0.4 * (len(sample) / 2) and min(even, odd) == 0:
        return ("utf-16-le" if odd else "utf-16-be",)  # every other byte of western text in UTF-16 is zero
    others = ("cp1252", "latin-1")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError:
        return others
    return ("utf-8", *others) if sample.isascii() else ("utf-8",)  # of a file that is UTF-8, no byte is anything else


def _decode(name: str, sample: bytes, encodings: Sequence[str], *, whole: bool) -> str:
    """The sample as text, in the first encoding that it has. A character may be cut off at its end."""
    for encoding in encodings:
        try:
            return codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
        except UnicodeDecodeError:
            continue
    raise DataFileError(f"{name} cannot be read: it is not encoded in {encodings[0]} ({named('encoding')}).")


def _records(text: str, sep: str, *, whole: bool) -> list[list[str]]:
    """The first rows, split into fields. The last one may be cut off, so it is left out, and so are empty lines."""
    rows: list[list[str]] = []
    lines = io.StringIO(text, newline="")
    reader = ([line.split() for line in lines]) if sep == r"\s+" else csv.reader(lines, delimiter=sep)
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > LOOKED_AT + 1:
                return rows[:-1]
    except csv.Error:  # a field of more than 128 KB: pandas will say what is wrong, if anything is
        return []
    return rows if whole else rows[:-1]


def _separator(text: str, *, whole: bool, tabs: bool) -> str:
    """The comma, unless another one splits all rows into equally many fields, and the comma does not."""
    usual = ("\t", ",", ";", "|") if tabs else (",", ";", "\t", "|")
    fitting = {sep: _fits(_records(text, sep, whole=whole)) for sep in usual}
    return max(usual, key=lambda sep: fitting[sep])  # of equals the first


def _fits(rows: list[list[str]]) -> int:
    """2: all rows have as many fields as the header; 1: the header has several; 0: it has one."""
    width = len(rows[0]) if rows else 0
    if width < 2:
        return 0
    return 1 + all(len(row) in (width, width + 1) for row in rows[1:])


def _marks(rows: list[list[str]], sep: str) -> tuple[str | None, str | None]:
    """The marks of decimals and of thousands, if they are other than usual beyond doubt."""
    fields = [field.strip() for row in rows[1:] for field in row]
    commas = [field for field in fields if _DECIMAL_COMMA.fullmatch(field)]
    thousands = [field for field in fields if _THOUSANDS.fullmatch(field)]
    points = [field for field in fields if _DECIMAL_POINT.fullmatch(field) and field not in thousands]
    if sep == "," or not commas or points or all(map(_EITHER.fullmatch, commas)):
        return None, None
    return ",", "." if thousands else None


def _shape(name: str, rows: list[list[str]]) -> tuple[bool | None, tuple[str, ...]]:
    """Whether each row ends with a separator that the header has not, and what is to be said about the rows."""
    if len(rows) < 2:
        return None, ()
    header, data = rows[0], rows[1:]
    width, notes = len(header), []
    if len(data[0]) > width + 1:
        fields = f"the first row has {len(data[0])} fields, and the header {width}"
        raise DataFileError(f"{name} cannot be read: {fields}; check the separator ({named('sep')}).")
    if width > 1 and all(re.fullmatch(r"\s*[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?\s*", field) for field in header):
        notes.append(f"the column names are numbers ({', '.join(header[:4])}): is the header missing?")
    if all(len(row) == width + 1 and not row[-1].strip() for row in data):
        return False, (*notes, "each row ends with a separator, which is ignored")
    if all(len(row) == width + 1 for row in data):
        notes.append("the rows have one field more than the header: the first is taken as row names and left out")
    short = sum(len(row) < width for row in data)
    if short:
        notes.append(f"{short} of the first {len(data)} rows have fewer fields than the header: the rest is missing")
    return None, tuple(notes)


_NAME = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{},'"][^\s{},]*)"""
_ATTRIBUTE = re.compile(rf"@attribute\s+(?P<name>{_NAME})\s+(?P<type>.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*(?P<value>{_NAME})\s*(?:,|$)")
_NUMERIC = ("numeric", "real", "integer")


def _read_arff(source: str, text: str) -> pd.DataFrame:
    """The table of an ARFF file. Nominal columns become categories, and a value that was not declared is refused."""
    found = re.search(r"^[ \t]*@data[ \t]*(?:%.*)?\r?$", text, re.IGNORECASE | re.MULTILINE)
    if found is None:
        raise DataFileError(f"{source} cannot be read: an ARFF file has a line '@data', and this one has none.")
    kinds = _attributes(source, text[: found.start()])
    rows = text[found.end() :].lstrip("\r\n")
    if re.search(r"^[ \t]*%", rows, re.MULTILINE):
        rows = "".join(line for line in rows.splitlines(keepends=True) if not line.lstrip().startswith("%"))
    if rows.lstrip().startswith("{"):
        raise DataFileError(f"{source} cannot be read: sparse ARFF, with rows in braces, is not supported.")
    _refuse_size(source, len(kinds), rows.count("\n"))
    if not rows.strip():
        raise DataFileError(f"{source} has a header but no rows.")
    quote = "'" if rows.count("'") >= rows.count('"') else '"'
    marks: Any = {"na_values": ["?"], "keep_default_na": False, "quotechar": quote, "escapechar": "\\"}
    raw = pd.read_csv(io.StringIO(rows), header=None, dtype=str, skipinitialspace=True, **marks)
    if len(raw.columns) != len(kinds):
        raise DataFileError(f"{source} declares {len(kinds)} columns, but its rows have {len(raw.columns)}.")
    typed = [_typed(source, name, kind, raw[at]) for at, (name, kind) in enumerate(kinds)]
    return pd.concat(typed, axis=1, keys=[name for name, _ in kinds])


def _attributes(source: str, header: str) -> list[tuple[str, str | list[str]]]:
    out: list[tuple[str, str | list[str]]] = []
    for number, line in enumerate(header.splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("%") or text.lower().startswith("@relation"):
            continue
        found = _ATTRIBUTE.fullmatch(text)
        kind = _kind(found["type"].strip()) if found else None
        if found is None or kind is None:
            raise DataFileError(f"{source} cannot be read: line {number} is not an ARFF declaration: '{text[:60]}'.")
        out.append((_unquoted(found["name"]), kind))
    if not out:
        raise DataFileError(f"{source} cannot be read: it declares no columns ('@attribute').")
    return out


def _kind(text: str) -> str | list[str] | None:
    if text.startswith("{") and text.endswith("}"):
        inner, values, at = text[1:-1].strip(), [], 0
        while at < len(inner):
            found = _VALUE.match(inner, at)
            if found is None:
                return None
            values.append(_unquoted(found["value"]))
            at = found.end()
        return values
    word = text.split(maxsplit=1)[0].lower()
    return word if word in (*_NUMERIC, "string", "date") else None


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "'\"" else text


def _typed(source: str, name: str, kind: str | list[str], column: pd.Series[Any]) -> pd.Series[Any]:
    texts = column.str.strip().str.replace(r"""^(['"])(.*)\1$""", r"\2", regex=True)  # a file may have both quotes
    if isinstance(kind, list):
        texts = texts.where(~column.isin(kind), column)  # spaces within quotes are part of a name
        _refuse_value(source, name, texts, ~texts.isin(kind), "which is not declared")
        return texts.astype("category")
    if kind in _NUMERIC:
        values = pd.to_numeric(texts, errors="coerce")
        _refuse_value(source, name, texts, values.isna() & (texts.str.lower() != "nan"), "which is not a number")
        return values
    if kind != "date":
        return texts
    found = parse_dates(texts)  # the format of a declaration is in the words of Java, so the values are looked at
    lost = pd.Series(data=True, index=texts.index) if found is None else found.moments.isna()
    _refuse_value(source, name, texts, lost, "which is not a date in a known format")
    return texts.astype("datetime64[ns]") if found is None else found.moments


def _refuse_value(source: str, name: str, texts: pd.Series[Any], wrong: pd.Series[Any], why: str) -> None:
    wrong = wrong & texts.notna()
    if wrong.any():
        row = int(wrong.to_numpy().argmax()) + 1
        raise DataFileError(f"{source}: column '{name}' has '{texts[wrong].iloc[0]}' in row {row}, {why}.")


MAX_COLUMNS = 2**16  # pandas takes a gigabyte and minutes to read a million
MAX_ARFF = 2**29  # bytes: all of it is held in memory, several times
SAMPLE = 2**18  # bytes from which the dialect is detected
_MOST_ZIPPED = 1032  # bytes that gzip can make of one
_FIELDS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def read_file(file: Path, settings: DataSettings) -> tuple[pd.DataFrame, FileReading]:
    """Read a file by the ending of its name; one sentence for every way in which that fails."""
    try:
        return _columnar(file) if file.suffix in (".parquet", ".feather") else _text(file, settings)
    except pd.errors.EmptyDataError:
        raise DataFileError(f"{file.name} is empty.") from None
    except ImportError:
        kind = "parquet" if file.suffix == ".parquet" else "Feather"
        raise DatasetError(f"Reading {kind} needs pyarrow: pip install 'boosters-eval[parquet]'.") from None
    except BoostersEvalError:
        raise
    except UnicodeDecodeError as error:
        why = f"it is not encoded in {error.encoding} ({named('encoding')})"
        raise DataFileError(f"{file.name} cannot be read: {why}.") from None
    except (OSError, EOFError, ValueError, zlib.error, pd.errors.ParserWarning) as error:
        if "out of memory" in str(error):  # as pandas has it
            raise MemoryError from None
        raise DataFileError(f"{file.name} cannot be read: {_what(error)}.") from None


def _what(error: Exception) -> str:
    text = str(error).strip()
    fields = _FIELDS.search(text)
    if fields:
        return f"line {fields[2]} has {fields[3]} fields instead of {fields[1]}; check the separator ({named('sep')})"
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def _text(file: Path, settings: DataSettings) -> tuple[pd.DataFrame, FileReading]:
    with _opened(file) as stream:
        sample = stream.read(SAMPLE)
        whole = len(sample) < SAMPLE
    if not sample.strip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"):
        raise DataFileError(f"{file.name} is empty.")
    dialect = _find_dialect(file.name, sample, whole=whole, settings=settings)
    if file.name.removesuffix(".gz").endswith(".arff"):
        with _opened(file) as stream:
            data = stream.read(MAX_ARFF + 1)
        if len(data) > MAX_ARFF:
            raise DataFileError(f"{file.name} is larger than {MAX_ARFF >> 20} MB, the limit for ARFF files.")
        text = _decode(file.name, data, dialect.encodings, whole=True)
        return _read_arff(file.name, text), FileReading("ARFF")
    _refuse_too_large(file, dialect.sep)
    for encoding in dialect.encodings[:-1]:
        with suppress(UnicodeDecodeError):
            return _csv(file, encoding, dialect, settings)
    return _csv(file, dialect.encodings[-1], dialect, settings)


def _opened(file: Path) -> Any:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _csv(file: Path, encoding: str, dialect: _Dialect, settings: DataSettings) -> tuple[pd.DataFrame, FileReading]:
    common: dict[str, Any] = {"encoding": encoding, "sep": dialect.sep}
    header = pd.read_csv(file, header=None, nrows=1, dtype=str, **common).iloc[0]
    texts = dict.fromkeys((*settings.categorical, *settings.date), str)  # 007 stays 007, and 20200131 a date
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a loss of data
        options = {"decimal": dialect.decimal or ".", "dtype": texts, "index_col": dialect.index_col, **common}
        with _opened(file) as stream:
            frame = read_blocks(stream, options)
        if frame is None:
            frame = pd.read_csv(file, low_memory=False, **options)
    if frame.index.nlevels > 1:
        raise ValueError("the rows have more fields than the header")
    if not header.dropna().is_unique and len(header) == len(frame.columns):  # pandas renamed the second one
        frame.columns = pd.Index(header.where(header.notna(), pd.Series(frame.columns)))
    return frame, dialect.reading(encoding)


def _columnar(file: Path) -> tuple[pd.DataFrame, FileReading]:
    try:
        return (
            (_parquet(file), FileReading()) if file.suffix == ".parquet" else (_feather(file), FileReading("Feather"))
        )
    except (DatasetError, ImportError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 (altered files fail in pyarrow and pandas in any way)
        raise ValueError(describe_error(error)) from None


def _parquet(file: Path) -> pd.DataFrame:
    """A parquet file. Its account of its size is looked at first: a few bytes can stand for any number of rows."""
    from pyarrow import parquet  # noqa: PLC0415 (an extra)

    told = parquet.read_metadata(file)
    _refuse_size(file.name, told.num_columns, told.num_rows)
    return pd.read_parquet(file)


def _feather(file: Path) -> pd.DataFrame:
    """A Feather file, batch by batch: its rows are counted before the next one is read."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    with pa.memory_map(str(file)) as source:
        reader = pa.ipc.open_file(source)
        _refuse_size(file.name, len(reader.schema))
        batches, count = [], 0
        for position in range(reader.num_record_batches):
            batches.append(reader.get_batch(position))
            count += batches[-1].num_rows
            _refuse_size(file.name, len(reader.schema), count)
        return pa.Table.from_batches(batches, reader.schema).to_pandas()  # type: ignore[no-any-return]


def _refuse_too_large(file: Path, sep: str) -> None:
    """A file of more than 2**31 cells has more bytes than that; only such a file is counted before it is read."""
    zipped = file.suffix == ".gz"
    with _opened(file) as stream:
        columns, fields = (_count_fields(stream.readline(MAX_TEXT), sep) for _ in ("the names", "the first row"))
        _refuse_size(file.name, max(columns, fields))  # pandas would take each field too many for a level of an index
        if file.stat().st_size * (_MOST_ZIPPED if zipped else 1) <= checks.MAX_CELLS:
            return
        rows = 1 + sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 24), b""))
    _refuse_size(file.name, columns, rows)


def _count_fields(line: bytes, sep: str) -> int:
    outside = re.sub(rb'"[^"]*("|$)', b"", line)  # of texts in quotes
    return len(outside.split()) if sep == r"\s+" else outside.count(sep.encode()) + 1


def _refuse_size(name: str, columns: int, rows: int = 0) -> None:
    if columns > MAX_COLUMNS:
        raise DataFileError(f"{name} has {columns} columns, more than the {MAX_COLUMNS} that can be read.")
    if rows * columns > checks.MAX_CELLS:
        raise DataFileError(f"{name} has {rows} x {columns} cells: more than 2**31.")
