"""How a text file is written: its encoding, its separator and its decimal mark, detected from its beginning."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, DataFileError
from boosters_eval.core.terms import the

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(frozen=True)
class Dialect:
    """What is needed to read a text file, and what of it was detected rather than given."""

    encodings: tuple[str, ...]  # to be tried in turn: not all of the file has been looked at
    sep: str
    decimal: str | None = None
    thousands: str | None = None
    notes: tuple[str, ...] = ()
    index_col: bool | None = None  # False: each row ends with a separator, so that there is a field too many


def words_of(encoding: str, sep: str, decimal: str | None, thousands: str | None) -> str:
    """How the file is read, in a few words; nothing if that is the usual way."""
    shown = {"\t": "tab", r"\s+": "whitespace"}.get(sep, f"'{sep}'")
    parts = [f"separator {shown}"] if sep != "," else []
    parts += [f"decimal mark '{decimal}'"] if decimal not in (None, ".") else []
    parts += [f"thousands mark '{thousands}'"] if thousands else []
    parts += [f"encoding {_WORDS.get(encoding, encoding)}"] if encoding != "utf-8" else []
    return ", ".join(parts)


def find_dialect(name: str, sample: bytes, *, whole: bool, settings: DataSettings) -> Dialect:
    """The dialect of a file that begins with the sample, as the settings say or as it is found to be."""
    encodings = (checked_encoding(settings.encoding),) if settings.encoding else _encodings(sample, whole=whole)
    text = decoded(name, sample, encodings, whole=whole)
    if _BINARY.search(text):
        raise DataFileError(f"{name} cannot be read: it is no text file, or not in {encodings[0]} (--encoding).")
    sep = checked_separator(settings.sep) if settings.sep else _separator(text, whole=whole, tabs=".tsv" in name)
    rows = _records(text, sep, whole=whole)
    decimal, thousands = _marks(rows, sep) if settings.decimal is None else (None, None)
    index_col, notes = _shape(name, rows)
    return Dialect(
        encodings,
        sep,
        checked_mark("decimal", settings.decimal) or decimal,
        checked_mark("thousands", settings.thousands) or thousands,
        notes,
        index_col,
    )


def checked_encoding(given: str) -> str:
    """The encoding by the name that Python knows it by."""
    try:
        found = codecs.lookup(given)
    except (LookupError, ValueError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise ConfigError(
            f"{the('encoding')} must be an encoding such as utf-8, utf-16, latin-1 or cp1252. Got {given!r} instead."
        )
    return found.name


def checked_separator(given: str) -> str:
    """The separator itself, from its name or from itself."""
    sep = SEPARATORS.get(given, "\t" if given == r"\t" else given)
    if sep not in SEPARATORS.values() and (len(sep) != 1 or sep.isalnum() or sep in '"\r\n' or not sep.isprintable()):
        names = ", ".join(SEPARATORS)
        raise ConfigError(f"{the('sep')} must be one character, or one of {names}. Got {given!r} instead.")
    return sep


def checked_mark(parameter: str, given: str | None) -> str | None:
    """The mark of decimals or of thousands."""
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


def decoded(name: str, sample: bytes, encodings: Sequence[str], *, whole: bool) -> str:
    """The sample as text, in the first encoding that it has. A character may be cut off at its end."""
    for encoding in encodings:
        try:
            return codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
        except UnicodeDecodeError:
            continue
    raise DataFileError(f"{name} cannot be read: it is not in the encoding {encodings[0]} (--encoding).")


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
        raise DataFileError(f"{name} cannot be read: {fields}; check the separator (--sep).")
    if width > 1 and all(re.fullmatch(r"\s*[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?\s*", field) for field in header):
        notes.append(f"the names of the columns are numbers ({', '.join(header[:4])}): is there no header?")
    if all(len(row) == width + 1 and not row[-1].strip() for row in data):
        return False, (*notes, "each row ends with a separator, after which there is nothing")
    if all(len(row) == width + 1 for row in data):
        notes.append("the rows have a field more than the header: the first is taken for row names and left out")
    short = sum(len(row) < width for row in data)
    if short:
        notes.append(f"{short} of the first {len(data)} rows have fewer fields than the header: the rest is missing")
    return None, tuple(notes)
