"""A column as it is audited, and what is suspicious about it by itself: ids, constants, dates, numbers as text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from boosters_eval.core.text import format_share
from boosters_eval.datasets.audit_relations import hash_rows
from boosters_eval.datasets.checks import find_coarse_step, is_text
from boosters_eval.datasets.generated import Stream
from boosters_eval.datasets.texts import find_clock, is_date_text, parse_dates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets.config import ColumnRole, SplitBy, Table
    from boosters_eval.metrics.task import Task

    RowNumbers = NDArray[np.int64]

LEAST_ROWS = 20  # fewer say nothing about a column
ALMOST_UNIQUE = 0.95  # the share of distinct values from which texts, or numbers named like ids, are ids
DENSE = 1.1  # distinct whole numbers that fill so short a range, in rows, are row numbers in another order
KEY = 10**15  # whole numbers beyond are keys, not quantities
ALMOST_CONSTANT, MANY_ROWS = 0.999, 1_000
ALMOST_MISSING = 0.95
ALIKE = 0.95  # the share of distinct texts that must look like dates, or like numbers
MANY_TEXTS, ROWS_EACH = 50, 5.0  # from so many texts on, so few rows of each are told
TOLD_APART = 0.95  # the share of distinct values that float32 must keep apart
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
_NAMED_TIME = re.compile(
    r"(.*[^a-z])?(year|date|time|datetime|timestamp|ts|epoch|when|created|updated|day|month|week)([^a-z].*)?",
    re.IGNORECASE,
)
_NAMED_CYCLE = re.compile(r"(.*[^a-z])?(day|month|week)([^a-z].*)?", re.IGNORECASE)
_BEGINS_WITH_YEAR = re.compile(r"\s*(19|20)\d\d(\D|$)")
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

    @cached_property
    def whole(self) -> NDArray[Any]:
        """The numbers or codes in all rows."""
        return self.numbers if self.all_rows is None else self.all_rows()

    @cached_property
    def known(self) -> NDArray[np.float64]:
        return self.numbers[~np.isnan(self.numbers)]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        return np.unique(self.known, return_counts=True)[1]

    @property
    def missing(self) -> float:
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
        return not self.categorical and len(self.known) > 0 and bool((self.known == np.floor(self.known)).all())


def note_missing(column: SampledColumn) -> str:
    if not len(column.known) and _is_missing(column.whole).all():
        return "has no value at all"
    return f"is missing in {format_share(column.missing, 1)} of the rows" if column.missing >= ALMOST_MISSING else ""


def note_constant(column: SampledColumn) -> str:
    if len(column.counts) != 1 or column.missing:
        return ""
    whole = column.whole
    inexact = not column.categorical and whole.dtype.kind == "f" and abs(whole[0]) >= KEY  # they may well differ
    value = f"{column.known[0]:g}" if column.texts is None else f"'{column.texts[int(column.known[0])]}'"
    return f"is always {value}" if not inexact and (whole == whole[0]).all() else ""


def note_almost_constant(column: SampledColumn) -> str:
    several = len(column.counts) + (column.missing > 0) > 1
    enough = several and len(column.numbers) >= MANY_ROWS and column.largest >= ALMOST_CONSTANT
    return f"has one value in {format_share(column.largest, 2)} of the rows" if enough else ""


def note_id(column: SampledColumn) -> str:
    rows, distinct = len(column.known), len(column.counts)
    if rows < LEAST_ROWS or not (column.texts is not None or column.integers):
        return ""
    if column.texts is not None:
        return f"has {distinct} distinct texts in {rows} rows" if column.almost_unique else ""
    if np.abs(column.known).max() >= KEY and (note := _note_key(column)):
        return note
    named = _NAMED_ID.fullmatch(column.name) is not None
    if not column.almost_unique or (distinct < rows and not named):
        return ""
    said = f"is named like an id and has {distinct} distinct values in {rows} rows" if named else ""
    return _note_row_numbers(column.whole) or said


def _note_key(column: SampledColumn) -> str:
    """That whole numbers are longer than a model can see, unless they are few."""
    whole = column.whole
    some = whole[:_KEYS_LOOKED_AT]
    exact = whole.dtype.kind != "f"
    largest = max(int(whole.max()), -int(whole.min())) if exact else 0
    digits = len(str(largest)) if exact else int(np.log10(np.abs(column.known).max()) + 1e-9) + 1
    said = f"holds whole numbers of up to {digits} digits; the libraries' float32 keeps {_FLOAT32_DIGITS}"
    if not exact:  # a float has lost digits itself
        return said
    before, after = len(np.unique(some)), len(np.unique(some.astype(np.float32)))
    if before <= LEAST_ROWS:
        return ""
    where = f" in the first {len(some)} rows" if len(some) < len(whole) else ""
    return f"{said}: {before} distinct values become {after}{where}"


def _note_row_numbers(whole: NDArray[Any]) -> str:
    """That whole numbers rise or fall from row to row, or number the rows in another order."""
    known = whole[~_is_missing(whole)]
    rises, falls = bool((known[1:] > known[:-1]).all()), bool((known[1:] < known[:-1]).all())
    if not rises and not falls:
        low, high = float(known.min()), float(known.max())
        if high - low + 1 > DENSE * len(known) or np.bincount((known - known.min()).astype(np.int64)).max() > 1:
            return ""
        return f"numbers the rows in another order: {len(known)} distinct whole numbers from {low:.0f} to {high:.0f}"
    steps = np.diff(known.astype(np.float64))
    if (steps == steps[0]).all():
        return f"counts the rows: each value is the one before {'+' if rises else '-'} {abs(steps[0]):g}"
    return f"never repeats and {'rises' if rises else 'falls'} from row to row"


def rises(column: SampledColumn) -> bool:
    """Whether numbers rise from row to row and never stay."""
    return not column.categorical and bool((np.diff(column.numbers) > 0).all())


def grows(column: SampledColumn) -> bool:
    """Whether numbers rise or fall from row to row in uneven steps, as a quantity does that grows with time."""
    if not column.integers or np.abs(column.known).max() >= KEY or _NAMED_ID.fullmatch(column.name):
        return False
    steps = np.diff(column.known)
    return bool((steps > 0).all() or (steps < 0).all()) and not bool((steps == steps[0]).all())


def is_rare(column: SampledColumn) -> bool:
    """Whether there are so many categories that most have few rows; if not in a sample, then not in all rows."""
    return len(column.counts) >= MANY_TEXTS and len(column.known) < ROWS_EACH * len(column.counts)


def note_many_texts(column: SampledColumn) -> str:
    """That most texts are too rare for a model to learn anything of them but the rows themselves."""
    if column.texts is None or column.declared or not is_rare(column):
        return ""
    codes = column.whole[~np.isnan(column.whole)]
    distinct = len(np.unique(codes))
    each = len(codes) / distinct
    return f"has {distinct} distinct texts in {len(codes)} rows: {each:.1f} rows each" if each < ROWS_EACH else ""


def note_blurred(column: SampledColumn) -> str:
    """That float32, which all libraries keep features in, cannot tell many values of a number apart."""
    if column.categorical or not len(column.known) or find_coarse_step(column.known) is None:
        return ""
    after = len(np.unique(column.known.astype(np.float32)))
    if after > TOLD_APART * len(column.counts):
        return ""
    return f"has {len(column.counts)} distinct values, but only {after} in float32, which libraries keep features in"


def note_numbers(column: SampledColumn) -> str:
    if column.texts is None or column.declared:
        return ""
    return note_numbers_as_text([str(text) for text in column.texts[:_TEXTS_LOOKED_AT]])


def note_numbers_as_text(texts: Sequence[str]) -> str:
    hits = [text for text in texts if _NUMBER.fullmatch(text.strip())]
    odd = [text for text in hits if not _PLAIN.fullmatch(text.strip())]
    if len(hits) < ALIKE * len(texts) or not hits or (not odd and len(texts) <= FEW_NUMBERS):
        return ""
    return f"holds numbers as text, such as '{(odd or hits)[0].strip()}'"


def note_dates(column: SampledColumn) -> str:
    if column.texts is not None and not column.declared:
        looked = [str(text).strip() for text in column.texts[:_TEXTS_LOOKED_AT]]
        hits = sum(map(is_date_text, looked))
        return f"holds dates, such as '{looked[0]}'" if looked and hits >= ALIKE * len(looked) else ""
    if is_unix_time(column):
        return f"holds times, such as {column.known[0]:.0f}"
    if not column.integers or len(column.counts) < 2:
        return ""
    years, rest = np.divmod(column.known, 10_000)
    months, days = np.divmod(rest, 100)
    as_day = (years >= 1900) & (years < 2100) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return f"holds dates, such as {column.known[0]:.0f}" if as_day.all() else ""


def is_unix_time(column: SampledColumn) -> bool:
    """Whether numbers are a clock's: seconds since 1970, or parts of them, named or ordered like times."""
    known = column.known
    if column.categorical or len(column.counts) < FEW_NUMBERS or not find_clock(known.min(), known.max()):
        return False
    return is_named_time(column.name) or (in_order(column.numbers) and not (np.diff(known) == 1).all())


def in_order(values: NDArray[np.float64]) -> bool:
    """Whether values hardly ever go back from row to row, and do go on."""
    known = values[~np.isnan(values)]
    if len(known) < LEAST_ROWS:
        return False
    steps = np.diff(known)
    return float((steps >= 0).mean()) >= IN_ORDER and len(np.unique(known)) >= FEW_NUMBERS


def read_times(column: SampledColumn) -> NDArray[np.float64]:
    found = parse_dates(pd.Series(column.texts, dtype=object))
    if found is None:
        return np.full(len(column.numbers), np.nan)
    seconds = found.moments.to_numpy(dtype="datetime64[s]").astype(np.int64).astype(np.float64)
    known = np.where(found.moments.isna(), np.nan, seconds)
    codes = column.numbers
    return np.where(np.isnan(codes), np.nan, known[np.nan_to_num(codes).astype(np.int64)])


def is_named_time(name: str) -> bool:
    return _NAMED_TIME.fullmatch(name) is not None


def tells_time(column: SampledColumn) -> bool:
    """Whether it is named like a time, or its texts begin with a year, such as 2024Q1."""
    if column.texts is None:
        return is_named_time(column.name)
    looked = column.texts[:_TEXTS_LOOKED_AT]
    return sum(bool(_BEGINS_WITH_YEAR.match(str(text))) for text in looked) >= ALIKE * len(looked) > 0


def comes_round(column: SampledColumn) -> bool:
    """Whether it is a day of the month, a month or a week: numbers by which rows cannot be put in the order of time."""
    return _NAMED_CYCLE.fullmatch(column.name) is not None and bool((column.known <= _WEEKS).all())


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


SAMPLE = 20_000  # rows; of more, so many are looked at
MOST_COLUMNS = 1_000  # that are looked at
_FEWEST, _VALUES = 2_000, 10_000_000  # of wide tables fewer rows, so that there are at most so many values
_HASHED = 8  # numeric columns by which copies of rows are found in a large table
_STREAM = 5  # keeps this use of the stream apart from its others


@dataclass(frozen=True)
class Subject:
    name: str
    task: Task
    target: str
    y: NDArray[np.float64]  # in all rows: numbers, or the codes of classes
    labels: tuple[str, ...]  # of the classes
    columns_at: Callable[[RowNumbers | None], tuple[SampledColumn, ...]]  # the features in some rows, or in all
    numbers: Callable[[str], NDArray[Any]]  # a column of numbers, in all rows
    numeric: tuple[str, ...]  # the names of these columns
    width: int  # columns that are looked at
    by_option: bool = True  # whether options of the command line act on it
    asked: frozenset[str] = frozenset()  # columns that the user wants as they are
    dates: frozenset[str] = frozenset()  # columns that are used as dates
    left_out: Callable[[], tuple[SampledColumn, ...]] = tuple  # columns that are no features, in all rows
    split: SplitBy | None = None  # what the user splits rows by
    split_by: NDArray[Any] | None = None  # its values

    @property
    def limit(self) -> int:
        """How many rows are looked at, if there are more."""
        return max(_FEWEST, min(SAMPLE, _VALUES // max(self.width, 1)))

    def sample(self) -> RowNumbers | None:
        """The rows that are looked at, always the same and in their order; None: all of them."""
        rows = len(self.y)
        if rows <= self.limit:
            return None
        return np.flatnonzero(Stream(0, _STREAM, rows).uniform(rows) < self.limit / rows).astype(np.int64)

    def copies_sample(self, sample: RowNumbers | None, ids: Collection[str]) -> RowNumbers | None:
        """The rows among which copies are counted: with each of them, all of its copies are there.

        A random sample of a large table would hardly ever hold two copies of a row. So rows are chosen by a hash of
        their numbers but for ids, which is the same for all copies.
        """
        if sample is None:
            return None
        numbers = [self.numbers(name) for name in [name for name in self.numeric if name not in ids][:_HASHED]]
        if not numbers:
            return sample
        every = -(-len(self.y) // self.limit)
        chosen = np.flatnonzero(hash_rows(numbers) % np.uint64(every) == 0)
        return chosen if self.limit // 4 <= len(chosen) <= 4 * self.limit else sample


def sample_table(table: Table, names: Sequence[str]) -> Callable[[RowNumbers | None], tuple[SampledColumn, ...]]:
    def column(position: int, rows: RowNumbers | None) -> SampledColumn:
        values = np.asarray(table.x[:, position])
        texts = (table.category_names or {}).get(names[position])
        return SampledColumn(
            name=names[position],
            numbers=(values if rows is None else values[rows]).astype(np.float64),
            texts=None if texts is None else np.asarray(texts, dtype=object),
            declared=position in table.categorical,
            all_rows=None if rows is None else lambda: values,
            share=1.0 if rows is None else len(rows) / len(values),
        )

    return lambda rows: tuple(column(position, rows) for position in range(len(names)))


def sample_column(name: str, column: pd.Series[Any], rows: RowNumbers | None, role: ColumnRole) -> SampledColumn:
    """A column of a data frame, as numbers or as codes, by what it is used as."""
    some = column if rows is None else column.take(rows)
    share = len(some) / max(len(column), 1)
    if role == "categorical" or (role == "date" and is_text(column)):
        codes, texts = _coded(some)
        return SampledColumn(
            name,
            codes,
            texts=texts,
            declared=isinstance(column.dtype, pd.CategoricalDtype) or not is_text(column),
            all_rows=None if rows is None else lambda: _coded(column)[0],
            share=share,
        )
    return SampledColumn(name, _as_numbers(some), all_rows=lambda: _exact_numbers(column), share=share)


def encode_target(column: pd.Series[Any], *, classes: bool) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """A target without missing values: its numbers, or the codes and names of its classes."""
    if not classes:
        return column.to_numpy(dtype=np.float64, na_value=np.nan), ()
    codes, names = pd.factorize(column.astype(str) if is_text(column) else column, sort=True)
    return codes.astype(np.float64), tuple(map(str, names))


def _coded(column: pd.Series[Any]) -> tuple[NDArray[np.float64], NDArray[Any]]:
    missing = column.isna().to_numpy()
    plain = column.astype(str) if column.dtype == object else column
    codes, texts = pd.factorize(plain.astype(object) if hasattr(column, "cat") else plain)
    return np.where(missing, np.nan, codes.astype(np.float64)), np.asarray(texts, dtype=object)


def _as_numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers that are finite in float32, and times as numbers of nanoseconds; what is neither is missing."""
    kind = column.dtype.kind
    if kind in "mM":
        moments = column.to_numpy(dtype="datetime64[ns]" if kind == "M" else "timedelta64[ns]").astype(np.int64)
        return np.where(column.isna().to_numpy(), np.nan, moments.astype(np.float64))
    if is_text(column) or kind not in "biuf":
        try:
            column = pd.to_numeric(column, errors="coerce")
        except (TypeError, ValueError):  # such as an interval
            return np.full(len(column), np.nan)
    found = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.abs(found) > np.finfo(np.float32).max, np.nan, found)


def _exact_numbers(column: pd.Series[Any]) -> NDArray[Any]:
    """Whole numbers as such: beyond 2**53 they are not exact as floats."""
    values = column.to_numpy()
    return values if values.dtype.kind in "iu" else _as_numbers(column)
