"""ARFF files: a header that declares the columns, then rows as in a CSV file, '?' where a value is missing."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import DataFileError
from boosters_eval.datasets.dates import parse_dates

if TYPE_CHECKING:
    import pandas as pd

_NAME = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{},'"][^\s{},]*)"""
_ATTRIBUTE = re.compile(rf"@attribute\s+(?P<name>{_NAME})\s+(?P<type>.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*(?P<value>{_NAME})\s*(?:,|$)")
_NUMERIC = ("numeric", "real", "integer")


def read_arff(source: str, text: str, max_cells: int) -> pd.DataFrame:
    """The table of an ARFF file. Nominal columns become categories, and a value that was not declared is refused."""
    import pandas as pd  # noqa: PLC0415 (slow to import)

    found = re.search(r"^[ \t]*@data[ \t]*(?:%.*)?\r?$", text, re.IGNORECASE | re.MULTILINE)
    if found is None:
        raise DataFileError(f"{source} cannot be read: an ARFF file has a line '@data', and this one has none.")
    kinds = _attributes(source, text[: found.start()])
    rows = text[found.end() :].lstrip("\r\n")
    if re.search(r"^[ \t]*%", rows, re.MULTILINE):
        rows = "".join(line for line in rows.splitlines(keepends=True) if not line.lstrip().startswith("%"))
    if rows.lstrip().startswith("{"):
        raise DataFileError(f"{source} cannot be read: sparse ARFF, with rows in braces, is not supported.")
    if rows.count("\n") * len(kinds) > max_cells:
        raise DataFileError(f"{source} has {rows.count(chr(10))} x {len(kinds)} cells: more than 2**31.")
    if not rows.strip():
        raise DataFileError(f"{source} has a header but no rows.")
    quote = "'" if rows.count("'") >= rows.count('"') else '"'
    raw = pd.read_csv(
        io.StringIO(rows),
        header=None,
        dtype=str,
        na_values=["?"],
        keep_default_na=False,
        quotechar=quote,
        escapechar="\\",
        skipinitialspace=True,
    )
    if len(raw.columns) != len(kinds):
        raise DataFileError(f"{source} declares {len(kinds)} columns, but its rows have {len(raw.columns)}.")
    typed = [_typed(source, name, kind, raw[at]) for at, (name, kind) in enumerate(kinds)]
    return pd.concat(typed, axis=1, keys=[name for name, _ in kinds])


def _attributes(source: str, header: str) -> list[tuple[str, str | list[str]]]:
    """The names of the columns with their types; of a nominal one, its values."""
    out: list[tuple[str, str | list[str]]] = []
    for number, line in enumerate(header.splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("%") or text.lower().startswith("@relation"):
            continue
        found = _ATTRIBUTE.fullmatch(text)
        kind = _kind(found["type"].strip()) if found else None
        if found is None or kind is None:
            raise DataFileError(f"{source} cannot be read: line {number} is no declaration of ARFF: '{text[:60]}'.")
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
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    texts = column.str.strip().str.replace(r"""^(['"])(.*)\1$""", r"\2", regex=True)  # a file may have both quotes
    if isinstance(kind, list):
        texts = texts.where(~column.isin(kind), column)  # spaces within quotes are part of a name
        wrong = texts.notna() & ~texts.isin(kind)
        if wrong.any():
            row = int(wrong.to_numpy().argmax()) + 1
            raise DataFileError(f"{source}: column '{name}' has '{texts[wrong].iloc[0]}' in row {row}, not declared.")
        return texts.astype("category")
    if kind in _NUMERIC:
        values = pd.to_numeric(texts, errors="coerce")
        wrong = texts.notna() & values.isna() & (texts.str.lower() != "nan")
        if wrong.any():
            row = int(wrong.to_numpy().argmax()) + 1
            raise DataFileError(f"{source}: column '{name}' has '{texts[wrong].iloc[0]}' in row {row}, no number.")
        return values
    if kind == "date":
        return _dates(source, name, texts)
    return texts


def _dates(source: str, name: str, texts: pd.Series[Any]) -> pd.Series[Any]:
    """The format of a declaration is in the words of Java, so the values are looked at instead."""
    found = parse_dates(texts)
    wrong = texts.notna() if found is None else texts.notna() & found.moments.isna()
    if found is None or wrong.any():
        shown = texts[wrong].iloc[0] if wrong.any() else ""
        raise DataFileError(f"{source}: column '{name}' has '{shown}', which is no date in a known format.")
    return found.moments
