"""Dates: how they are recognized in texts, and the numbers that a model is given instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.frames import texts_of

if TYPE_CHECKING:
    import pandas as pd

PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week", "hour": "hour"}
LOOKED_AT = 500  # distinct texts from which the format is detected
_DATES = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%B %d %Y",
    "%d-%b-%y",
    "%d %b %y",
    "%d%b%Y",
    "%A, %B %d, %Y",
    "%a, %d %b %Y",
)
_MONTHS = ("%Y-%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y")  # without a day: dates only when asked for, by their first day
_TIMES = ("", " %H:%M:%S", " %H:%M", " %I:%M %p", " %I:%M:%S %p")
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
_NAMED_UTC = re.compile(r" ?(?:UTC|GMT)$")
_ZONE = re.compile(r":[\d.]+ ?(?:Z|[-+]\d\d(?::?\d\d)?|UTC|GMT)$")


@dataclass(frozen=True)
class Dates:
    """A column as dates, NaT where there is none, and how they were written."""

    moments: pd.Series[Any]
    format: str
    ambiguous: bool = False  # the day and the month could be exchanged


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


def parse_dates(column: pd.Series[Any]) -> Dates | None:
    """A column as dates, by the format that reads most of it; None if none reads half of it."""
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return Dates(column.dt.tz_convert("UTC").dt.tz_localize(None), "by their type, in UTC")
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "M":
        return Dates(column, "by their type")
    texts = texts_of(column).str.strip()
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


def date_parts(name: str, values: pd.Series[Any]) -> dict[str, pd.Series[Any]]:
    """The columns that stand for a date: those of its parts that vary, or the year if none does."""
    parts = {part: getattr(values.dt, field).astype("float64") for part, field in PARTS.items()}
    varying = {part: column for part, column in parts.items() if column.min() < column.max()}
    return {f"{name}.{part}": column for part, column in (varying or {"year": parts["year"]}).items()}
