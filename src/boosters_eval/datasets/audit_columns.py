"""What is suspicious about a column by itself: ids, constants, dates, numbers written as text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.dates import is_date_text, parse_dates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

LEAST_ROWS = 20  # fewer say nothing about a column
ALMOST_UNIQUE = 0.95  # the share of distinct values from which texts, or numbers named like ids, are ids
DENSE = 1.1  # distinct whole numbers that fill so short a range, in rows, are row numbers in another order
KEY = 10**15  # whole numbers beyond are keys, not quantities
ALMOST_CONSTANT, MANY_ROWS = 0.999, 1_000
ALMOST_MISSING = 0.95
ALIKE = 0.95  # the share of distinct texts that must look like dates, or like numbers
FEW_NUMBERS = 10  # plain numbers kept as text are grades rather than quantities up to so many
IN_ORDER = 0.99  # the share of steps that must not go back
_TEXTS_LOOKED_AT, _KEYS_LOOKED_AT = 500, 20_000
_FLOAT32_DIGITS = 7
_WEEKS = 53  # of a year

_NAMED_ID = re.compile(
    r"unnamed: \d+|index|level_0|(row|record|line|sample|serial)?[ _.-]?(id|nr|no|number|num|index)"
    r"|.*[ _.-](id|uuid|guid|key)|.*[a-z](Id|ID|Key)|row|rowid|rownum|uuid|guid",
    re.IGNORECASE,
)
_NAMED_TIME = re.compile(r"(.*[^a-z])?(year|date|time|datetime|timestamp|day|month|week)([^a-z].*)?", re.IGNORECASE)
_NAMED_CYCLE = re.compile(r"(.*[^a-z])?(day|month|week)([^a-z].*)?", re.IGNORECASE)
_CURRENCY = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY"
_PLAIN = re.compile(r"[-+]?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_NUMBER = re.compile(
    rf"\(?[-+]?\s*({_CURRENCY})?\s*[-+]?(\d{{1,3}}([,.' \u00a0\u202f]\d{{3}})+|0|[1-9]\d*|(?=[.,]\d))([.,]\d+)?"
    rf"([eE][-+]?\d+)?\s*(%|[kKmM]|{_CURRENCY})?\)?"
)


@dataclass(frozen=True)
class SampledColumn:
    """A column in the rows that are looked at, as numbers: texts are codes, and a missing value is NaN."""

    name: str
    numbers: NDArray[np.float64]
    texts: NDArray[Any] | None = None  # the distinct texts, by code
    declared: bool = False  # a category because somebody says so, not because it is text
    all_rows: Callable[[], NDArray[Any]] | None = field(default=None, repr=False)  # None: the values are all
    share: float = 1.0  # of all rows, that these are

    @property
    def categorical(self) -> bool:
        """Whether its numbers are only codes."""
        return self.texts is not None or self.declared

    def whole(self) -> NDArray[Any]:
        """The numbers or codes in all rows."""
        return self.numbers if self.all_rows is None else self.all_rows()

    @cached_property
    def known(self) -> NDArray[np.float64]:
        """The values that are not missing."""
        return self.numbers[~np.isnan(self.numbers)]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How often each distinct value occurs."""
        return np.unique(self.known, return_counts=True)[1]

    @property
    def missing(self) -> float:
        """The share of missing values."""
        return 1 - len(self.known) / len(self.numbers)

    @property
    def largest(self) -> float:
        """The share of the most frequent value, where a missing one is a value too."""
        most = max(int(self.counts.max()) if len(self.counts) else 0, len(self.numbers) - len(self.known))
        return most / len(self.numbers)

    @property
    def almost_unique(self) -> bool:
        """Whether hardly any value repeats in all rows: of the pairs that do, a sample meets only its share squared."""
        return len(self.known) - len(self.counts) <= (1 - ALMOST_UNIQUE) * self.share * len(self.known)

    @cached_property
    def integers(self) -> bool:
        """Whether it holds whole numbers, and no texts."""
        return not self.categorical and len(self.known) > 0 and bool((self.known == np.floor(self.known)).all())


def missing_note(column: SampledColumn) -> str:
    """That hardly anything is known."""
    if not len(column.known) and _is_missing(column.whole()).all():
        return "has no value at all"
    return f"is missing in {column.missing:.1%} of the rows" if column.missing >= ALMOST_MISSING else ""


def constant_note(column: SampledColumn) -> str:
    """That there is but one value."""
    if len(column.counts) != 1 or column.missing:
        return ""
    whole = column.whole()
    inexact = not column.categorical and whole.dtype.kind == "f" and abs(whole[0]) >= KEY  # they may well differ
    return f"is always {_shown(column, column.known[0])}" if not inexact and (whole == whole[0]).all() else ""


def almost_constant_note(column: SampledColumn) -> str:
    """That nearly all rows have one value."""
    if (
        len(column.numbers) < MANY_ROWS
        or column.largest < ALMOST_CONSTANT
        or len(column.counts) + (column.missing > 0) < 2
    ):
        return ""
    return f"has one value in {column.largest:.2%} of the rows"


def id_note(column: SampledColumn) -> str:
    """That it tells rows apart instead of describing them."""
    rows, distinct = len(column.known), len(column.counts)
    if rows < LEAST_ROWS or not (column.texts is not None or column.integers):
        return ""
    if column.texts is not None:
        return f"has {distinct} distinct texts in {rows} rows" if column.almost_unique else ""
    if np.abs(column.known).max() >= KEY and (note := _key_note(column)):
        return note
    named = _NAMED_ID.fullmatch(column.name) is not None
    if not column.almost_unique or (distinct < rows and not named):
        return ""
    said = f"is named like an id and has {distinct} distinct values in {rows} rows" if named else ""
    return _row_numbers(column.whole()) or said


def _key_note(column: SampledColumn) -> str:
    """That whole numbers are longer than a model can see, unless they are few."""
    whole = column.whole()
    some = whole[:_KEYS_LOOKED_AT]
    exact = whole.dtype.kind != "f"
    largest = max(int(whole.max()), -int(whole.min())) if exact else 0
    digits = len(str(largest)) if exact else int(np.log10(np.abs(column.known).max()) + 1e-9) + 1
    said = f"holds whole numbers of up to {digits} digits; the float32 of the libraries keeps {_FLOAT32_DIGITS}"
    if not exact:  # a float has lost digits itself
        return said
    before, after = len(np.unique(some)), len(np.unique(some.astype(np.float32)))
    if before <= LEAST_ROWS:
        return ""
    where = f" in the first {len(some)} rows" if len(some) < len(whole) else ""
    return f"{said}: {before} distinct values become {after}{where}"


def _row_numbers(whole: NDArray[Any]) -> str:
    """That whole numbers rise or fall from row to row, or number the rows in another order."""
    known = whole[~_is_missing(whole)]
    rises, falls = bool((known[1:] > known[:-1]).all()), bool((known[1:] < known[:-1]).all())
    if not rises and not falls:
        return _dense(known)
    steps = np.diff(known.astype(np.float64))
    if (steps == steps[0]).all():
        return f"counts the rows: each value is the one before {'+' if rises else '-'} {abs(steps[0]):g}"
    return f"never repeats and {'rises' if rises else 'falls'} from row to row"


def grows(column: SampledColumn) -> bool:
    """Whether numbers rise or fall from row to row in uneven steps, as a quantity does that grows with time."""
    if not column.integers or np.abs(column.known).max() >= KEY or _NAMED_ID.fullmatch(column.name):
        return False
    steps = np.diff(column.known)
    return bool((steps > 0).all() or (steps < 0).all()) and not bool((steps == steps[0]).all())


def _dense(known: NDArray[Any]) -> str:
    """That distinct whole numbers fill a range, if they do."""
    low, high = float(known.min()), float(known.max())
    if high - low + 1 > DENSE * len(known) or np.bincount((known - known.min()).astype(np.int64)).max() > 1:
        return ""
    return f"numbers the rows in another order: {len(known)} distinct whole numbers from {low:.0f} to {high:.0f}"


def number_note(column: SampledColumn) -> str:
    """That a column of text holds numbers."""
    if column.texts is None or column.declared:
        return ""
    return numbers_as_text([str(text) for text in column.texts[:_TEXTS_LOOKED_AT]])


def numbers_as_text(texts: Sequence[str]) -> str:
    """That distinct texts are numbers as people write them."""
    hits = [text for text in texts if _NUMBER.fullmatch(text.strip())]
    odd = [text for text in hits if not _PLAIN.fullmatch(text.strip())]
    if len(hits) < ALIKE * len(texts) or not hits or (not odd and len(texts) <= FEW_NUMBERS):
        return ""
    return f"holds numbers as text, such as '{(odd or hits)[0].strip()}'"


def date_note(column: SampledColumn) -> str:
    """That values are days or times."""
    if column.texts is not None and not column.declared:
        looked = [str(text).strip() for text in column.texts[:_TEXTS_LOOKED_AT]]
        hits = sum(map(is_date_text, looked))
        return f"holds dates, such as '{looked[0]}'" if looked and hits >= ALIKE * len(looked) else ""
    if not column.integers or len(column.counts) < 2:
        return ""
    years, rest = np.divmod(column.known, 10_000)
    months, days = np.divmod(rest, 100)
    as_day = (years >= 1900) & (years < 2100) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return f"holds dates, such as {column.known[0]:.0f}" if as_day.all() else ""


def in_order(values: NDArray[np.float64]) -> bool:
    """Whether values hardly ever go back from row to row, and do go on."""
    known = values[~np.isnan(values)]
    if len(known) < LEAST_ROWS:
        return False
    steps = np.diff(known)
    return float((steps >= 0).mean()) >= IN_ORDER and len(np.unique(known)) >= FEW_NUMBERS


def times_of(column: SampledColumn) -> NDArray[np.float64]:
    """The times that its texts mean, as numbers."""
    import pandas as pd  # noqa: PLC0415 (texts come from frames, so pandas is loaded)

    found = parse_dates(pd.Series(column.texts, dtype=object))
    if found is None:
        return np.full(len(column.numbers), np.nan)
    seconds = found.moments.to_numpy(dtype="datetime64[s]").astype(np.int64).astype(np.float64)
    known = np.where(found.moments.isna(), np.nan, seconds)
    codes = column.numbers
    return np.where(np.isnan(codes), np.nan, known[np.nan_to_num(codes).astype(np.int64)])


def is_named_time(name: str) -> bool:
    """Whether a name promises a time."""
    return _NAMED_TIME.fullmatch(name) is not None


def comes_round(column: SampledColumn) -> bool:
    """Whether it is a day of the month, a month or a week: numbers by which rows cannot be put in the order of time."""
    return _NAMED_CYCLE.fullmatch(column.name) is not None and bool((column.known <= _WEEKS).all())


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _shown(column: SampledColumn, value: float) -> str:
    return f"'{column.texts[int(value)]}'" if column.texts is not None else f"{value:g}"
