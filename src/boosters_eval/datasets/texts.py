"""Texts that mean something else: dates and numbers, as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boosters_eval.core.text import join_words

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week", "hour": "hour"}
LOOKED_AT = 500  # distinct texts from which the format is detected
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
    *("%b %d %Y", "%B %d %Y", "%d-%b-%y", "%d %b %y", "%d%b%Y", "%A, %B %d, %Y", "%a, %d %b %Y"),
)
_MONTHS = ("%Y-%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y")  # without a day: dates only when asked for, by their first day
_TIMES = ("", " %H:%M:%S", " %H:%M", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (19_000_101, 20_991_231)  # as numbers
_COMPACT = "%Y%m%d"  # eight digits: a date only when asked for
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_NAMED = rf"\d{{1,2}}[ -]?{_MONTH}[ ,-]{{0,2}}(?:\d{{4}}|\d{{2}})|{_MONTH}[ -]\d{{1,2}}[a-z]{{0,2}},? \d{{4}}"
_SHAPE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2}(?:\d{2})?"
    rf"|(?:[a-z]{{3,9}}, )?(?:{_NAMED}))(?:[T ]+\d{{1,2}}:\d{{2}}.*)?\s*",
    re.IGNORECASE,
)
_MONTH_SHAPE = re.compile(
    rf"\s*(?:(?:19|20)\d\d-(?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])/(?:19|20)\d\d|{_MONTH}[ -](?:19|20)\d\d)\s*",
    re.IGNORECASE,
)
_UNIX = (1e9, 4.1e9)  # seconds since 1970, from 2001 to 2099
_UNITS: dict[Literal["s", "ms", "us", "ns"], float] = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}
_NAMED_UTC = re.compile(r" ?(?:UTC|GMT)$")
_ZONE = re.compile(r":[\d.]+ ?(?:Z|[-+]\d\d(?::?\d\d)?|UTC|GMT)$")


@dataclass(frozen=True)
class Dates:
    """A column as dates, NaT where there is none, and how they were written."""

    moments: pd.Series[Any]
    format: str
    ambiguous: bool = False  # the day and the month could be swapped


def write_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """The values as they would be written, None where missing."""
    values = column.astype(object)
    if str(column.dtype) != "str":  # texts are written as they are
        values = values.map(_written, na_action="ignore")
    return values.where(column.notna(), None)


def _written(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_date(column: pd.Series[Any]) -> bool:
    """Whether the column is of dates by its type, or by that of its objects: so come those of a Parquet file."""
    there = column.dropna() if column.dtype == object else column[:0]
    return column.dtype.kind == "M" or (len(there) > 0 and all(isinstance(value, date) for value in there))


def looks_like_dates(column: pd.Series[Any]) -> bool:
    """Whether nine of ten texts have the shape of a date."""
    texts = column.dropna().iloc[:LOOKED_AT].astype(str)
    return bool(len(texts)) and sum(map(bool, map(_SHAPE.fullmatch, texts))) >= 0.9 * len(texts)


def is_date_text(text: str) -> bool:
    """Whether a text has the shape of a date, or of a month."""
    return bool(_SHAPE.fullmatch(text) or _MONTH_SHAPE.fullmatch(text))


def find_clock(low: float, high: float) -> Literal["s", "ms", "us", "ns"] | None:
    """The unit in which numbers of such a range would be times since 1970, in this century; None: they are not."""
    return next((unit for unit, of in _UNITS.items() if _UNIX[0] * of <= low and high <= _UNIX[1] * of), None)


def parse_dates(column: pd.Series[Any]) -> Dates | None:
    """A column as dates, by the format that reads most of it; None if none reads half of it."""
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return Dates(column.dt.tz_convert("UTC").dt.tz_localize(None), "by their type, in UTC")
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "M":
        return Dates(column, "by their type")
    if column.dtype.kind in "iuf" and (unit := find_clock(column.min(), column.max())):
        return Dates(pd.to_datetime(column, unit=unit), f"{unit} since 1970, in UTC")
    texts = write_texts(column).str.strip()
    some = texts.dropna().drop_duplicates().iloc[:LOOKED_AT]
    times = _TIMES if some.str.contains(":", regex=False).any() else _TIMES[:1]
    formats = ["ISO8601", _COMPACT, *(day + time for day in _DATES for time in times), *_MONTHS]
    iso = int(_parsed(some, "ISO8601").notna().sum())
    formats = formats[:1] if iso == len(some) else formats  # the usual case, which no other format can better
    counts = {form: int(_parsed(some, form).notna().sum()) for form in formats}
    most = max(counts.values(), default=0)
    if not len(some) or most < 0.5 * len(some):
        return None
    best = [form for form in formats if counts[form] == most]
    values = _parsed(texts, best[0])
    exchanged = best[0].translate(str.maketrans("md", "dm"))
    told = _words(best[0]) + (", in UTC" if best[0] == "ISO8601" and some.str.contains(_ZONE).any() else "")
    return Dates(pd.Series(values, index=column.index), told, exchanged != best[0] and exchanged in best)


def _parsed(texts: pd.Series[Any], form: str) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    if form == "ISO8601":  # which for pandas may be a year alone, or eight digits
        texts = texts.where(texts.str.match(r"\d{4}-\d{2}-\d{2}", na=False))
        if texts.str.endswith(("UTC", "GMT"), na=False).any():
            texts = texts.str.replace(_NAMED_UTC, "Z", regex=True)
        return pd.to_datetime(texts, format=form, errors="coerce", utc=True).dt.tz_localize(None)
    if form == _COMPACT:
        texts = texts.where(texts.str.fullmatch(r"\d{8}", na=False))
    return pd.to_datetime(texts, format=form, errors="coerce")


def _words(form: str) -> str:
    if form == "ISO8601":
        return "year-month-day"
    names = {"%Y": "year", "%y": "year", "%m": "month", "%d": "day", "%b": "month", "%B": "month"}
    names |= dict.fromkeys(("%a", "%A"), "weekday")
    return re.sub(r"%\w", lambda found: names[found[0]], re.split(r" %[HI]", form)[0])


def split_dates(name: str, values: pd.Series[Any]) -> dict[str, pd.Series[Any]]:
    """The columns that stand for a date: those of its parts that vary, or the year if none does."""
    parts = {part: getattr(values.dt, field).astype("float64") for part, field in PARTS.items()}
    varying = {part: column for part, column in parts.items() if column.min() < column.max()}
    return {f"{name}.{part}": column for part, column in (varying or {"year": parts["year"]}).items()}


def spread_times(name: str, column: Any) -> dict[str, pd.Series[Any]]:
    """The features made of a time that rows are split by: a number itself; of a date, the days since the first one too.

    Without them a model could not follow what changes with time, such as a trend or a season.
    Days (20240131) and clocks (seconds since 1970) are dates too: float32 could not tell such numbers apart.
    """
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    column = pd.Series(column)
    plain = column.dtype.kind in "biuf" and not (column.between(*_DAYS).all() or find_clock(column.min(), column.max()))
    found = None if plain else parse_dates(column)
    if found is None or found.moments.isna().any():
        return {name: column}
    days = (found.moments - found.moments.min()).dt.total_seconds() / 86_400
    return {f"{name}.ordinal": days, **split_dates(name, found.moments)}


# The marks of decimals and of thousands, the likeliest first: of two that fit equally well the first is taken.
NOTATIONS: list[tuple[str, str | None]]
NOTATIONS = [(".", None), (".", ","), (",", None), (",", "."), (".", " "), (",", " "), (".", "'")]
_NUMERALS_LOOKED_AT = 2000  # distinct texts by which the notation is chosen
_CURRENCY = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY"
_SPACES = "\u00a0\u202f\u2009"  # not to be broken, narrow, thin: all separate thousands somewhere
_AFFIXES = re.compile(rf"(?P<sign>[-+]?)\s*(?:{_CURRENCY})?\s*(?P<core>.*?)\s*(?P<unit>%|{_CURRENCY})?", re.DOTALL)


@dataclass(frozen=True)
class Numerals:
    """The values of a column, NaN where there is no number, and how they were written."""

    numbers: NDArray[np.float64]
    notation: str  # such as "',' separates thousands, '$' is left out"
    read: int  # texts that are numbers
    plain: int  # those among them that need no reading of their own


def parse_numerals(column: pd.Series[Any], decimal: str | None = None, thousands: str | None = None) -> Numerals:
    """The texts of a column as numbers, in the one notation that most of them have."""
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    codes, distinct = pd.factorize(column)
    texts = [str(value).strip() for value in distinct]
    weights = np.bincount(codes[codes >= 0], minlength=len(texts))
    plain = np.isfinite(pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=np.float64))
    cores, marks = zip(*map(_strip_signs, texts), strict=True) if texts else ((), ())
    fitting = [n for n in NOTATIONS if decimal in (None, n[0]) and (thousands is None or n[1] == thousands)]
    fitting = fitting or [(decimal or ("," if thousands == "." else "."), thousands)]
    mark, group = max(
        fitting, key=lambda notation: int((~np.isnan(_parse_cores(cores[:_NUMERALS_LOOKED_AT], notation))).sum())
    )
    values = _parse_cores(cores, (mark, group))
    read = ~np.isnan(values)
    used = {char for core, good in zip(cores, read, strict=True) if good for char in core}
    told = [f"'{group}' separates thousands"] if group and group in used else []
    told += ["',' is the decimal mark"] if mark == "," and "," in used else []
    left_out = sorted({each for found, good in zip(marks, read, strict=True) if good for each in found})
    told += [f"{join_words(map(repr, left_out))} left out"] if left_out else []
    every = np.append(values, np.nan)[codes]
    return Numerals(every, ", ".join(told), int(weights[read].sum()), int(weights[plain].sum()))


def _strip_signs(text: str) -> tuple[str, tuple[str, ...]]:
    """The digits and their separators, and the signs around them that are left out."""
    found = _AFFIXES.fullmatch(text)
    if found is None:  # never: everything in it is optional
        return text, ()
    core = found["sign"] + found["core"].translate(dict.fromkeys(map(ord, _SPACES), " "))
    outside = text[: found.start("core")] + text[found.end("core") :]
    return core, tuple(re.findall(rf"%|{_CURRENCY}", outside))


def _parse_cores(cores: tuple[str, ...], notation: tuple[str, str | None]) -> NDArray[np.float64]:
    decimal, thousands = notation
    whole = r"\d+" if thousands is None else rf"(?:\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d+)"
    mark = re.escape(decimal)
    pattern = re.compile(rf"[-+]?(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][-+]?\d+)?", re.ASCII)
    out = np.full(len(cores), np.nan)
    for position, core in enumerate(cores):
        if pattern.fullmatch(core):
            digits = core if thousands is None else core.replace(thousands, "")
            out[position] = float(digits.replace(decimal, "."))
    return np.where(np.isinf(out), np.nan, out)
