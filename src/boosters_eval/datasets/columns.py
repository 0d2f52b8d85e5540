"""What each column of a user's table is used as, the target included. Nothing is decided in silence."""

from __future__ import annotations

import csv
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from boosters_eval.core.errors import DataFileError, DatasetError, find_doubled, suggest
from boosters_eval.core.terms import given, is_typed, named
from boosters_eval.core.text import count_of, join_words
from boosters_eval.datasets.checks import MANY_TEXTS, check_number, is_number, is_text, to_float64, unwrap_objects
from boosters_eval.datasets.config import COLUMN_SETTINGS
from boosters_eval.datasets.texts import (
    is_date,
    looks_like_dates,
    parse_dates,
    parse_numerals,
    split_dates,
    write_texts,
)
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets.config import ColumnRole, DataSettings


@dataclass(frozen=True)
class Use:
    """The columns that stand for one of the file, or the sentence on why it cannot be used as it is."""

    role: ColumnRole
    columns: dict[str, pd.Series[Any]] = field(default_factory=dict)
    note: str = ""
    problem: str = ""


def offer(column: str, *settings: str) -> str:
    """What acts on a column: parameters, or options as typed in a shell, where a name like an option needs the sign."""
    if not is_typed():
        return join_words([given(setting, [column]) for setting in settings], "or")
    sign = "=" if column.startswith("-") else " "
    return join_words([f"--{setting}{sign}{shlex.quote(column)}" for setting in settings], "or")


def join_first(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (", ..." if len(names) > 8 else "")


def split_targets(text: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that a target names: one that is called so, else several by commas, quoted where a name has some."""
    if text in names or "," not in text:
        return (text,)
    try:
        (parts,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        return (text,)
    return tuple(part if part in names else part.strip() for part in parts)


def find_name_problems(source: str, names: list[str], targets: Sequence[str], settings: DataSettings) -> list[str]:
    """What is wrong with the names of the columns, before any column is looked at."""
    out = [f"The target '{each}' is named twice." for each in find_doubled(targets)]
    counts = Counter(names)
    for target in dict.fromkeys(each for each in targets if each not in counts):
        single = " Its only column is" if len(names) == 1 else " Its columns:"
        check = f": check the separator ({named('sep')})" if len(names) == 1 else ""
        out.append(f"{source} has no column '{target}'.{suggest(target, names)}{single} {join_first(names)}{check}.")
    for setting in COLUMN_SETTINGS:
        unknown = [name for name in dict.fromkeys(getattr(settings, setting)) if name not in counts]
        out += [f"{named(setting)}: {source} has no column '{name}'.{suggest(name, names)}" for name in unknown]
    for name, count in counts.items():
        asked = [setting for setting in COLUMN_SETTINGS if name in getattr(settings, setting)]
        clash = [setting for setting in asked if setting != "keep"] if "drop" not in asked else asked
        if len(clash) > 1:
            out.append(f"Column '{name}' cannot be given to {named(clash[0])} and to {named(clash[1])}.")
        if name in targets and "drop" in asked:
            out.append(f"Column '{name}' is the target, so {named('drop')} cannot leave it out.")
        if count > 1 and "drop" not in asked:
            times = "twice" if count == 2 else f"{count} times"
            act = "rename one" if name in targets else f"rename one, or leave out all with {offer(name, 'drop')}"
            out.append(f"Column names must be unique. {source} has '{name}' {times}: {act}.")
    return out


def use_column(name: str, column: pd.Series[Any], settings: DataSettings) -> Use:
    """The column as the settings ask for, or as what it is found to be."""
    if name in settings.categorical:
        return Use("categorical", {name: as_categories(column)})
    if name in settings.numeric:
        return _as_numbers(name, column, settings)
    if name in settings.date:
        return _as_dates(name, column, asked=True)
    return _detect(name, column, settings)


def as_categories(column: pd.Series[Any]) -> pd.Series[Any]:
    """Any column as categories. A whole number is named without a point, wherever it was stored with one."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    texts = column if is_text(column) and column.dtype != object else write_texts(column)
    return texts.astype("category")


def _as_numbers(name: str, column: pd.Series[Any], settings: DataSettings) -> Use:
    """As asked: what is no finite number is missing, and it is said how many."""
    told = ""
    if is_text(column):
        found = parse_numerals(write_texts(column), settings.decimal, settings.thousands)
        values, told = found.numbers, found.notation
    elif is_number(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        return Use(
            "numeric", problem=f"{named('numeric')}: column '{name}' is of type {column.dtype}, which is not a number."
        )
    with np.errstate(over="ignore"):
        values = np.where(np.isinf(values.astype(np.float32)), np.nan, values)
    lost = column.notna().to_numpy() & np.isnan(values)
    if lost.sum() * 2 > column.notna().sum():
        problem = f"{named('numeric')}: most of column '{name}' is not a number: {_first(column, lost)}."
        return Use("numeric", problem=problem)
    if lost.any():
        shown = join_first([f"'{text}'" for text in dict.fromkeys(column[lost].astype(str))])
        told += f"{', ' if told else ''}{count_of(int(lost.sum()), 'row')} without a finite number ({shown}) missing"
    note = f"column '{name}' is read as numbers: {told}" if told else ""
    return Use("numeric", {name: pd.Series(values, index=column.index)}, note)


def _as_dates(name: str, column: pd.Series[Any], *, asked: bool) -> Use:
    found = parse_dates(column)
    if found is None and not asked:
        shown, ways = _first(column), offer(name, "categorical", "drop")
        return Use("date", problem=f"Column '{name}' looks like dates, but not in a known format: {shown}; use {ways}.")
    if found is None:
        return Use(
            "date", problem=f"{named('date')}: column '{name}' has no dates in any known format: {_first(column)}."
        )
    lost = (column.notna() & found.moments.isna()).to_numpy()
    if not asked and (lost.any() or found.ambiguous):
        swapped = f"the day and the month of {_first(column)} could be swapped"
        what = f"{_first(column, lost)} is not a date" if lost.any() else swapped
        ways = offer(name, "date", "categorical", "drop")
        return Use("date", problem=f"Column '{name}' looks like dates, but {what}: use {ways}.")
    parts = split_dates(name, found.moments)
    note = f"column '{name}' is read as dates ({found.format}): {', '.join(parts)}"
    if found.ambiguous:
        note += "; the day and the month could be swapped"
    if lost.any():
        note += f"; {count_of(int(lost.sum()), 'row')} without a date ('{column[lost].iloc[0]}') missing"
    return Use("date", dict(parts), note)


def _detect(name: str, column: pd.Series[Any], settings: DataSettings) -> Use:
    if is_date(column):
        return _as_dates(name, column, asked=False)
    try:
        column = unwrap_objects(name, column)
    except DatasetError as error:
        ways = offer(name, "categorical", "numeric", "drop")
        return Use("categorical", problem=f"{str(error).removesuffix('.')}, or use {ways}.")
    if isinstance(column.dtype, pd.CategoricalDtype):
        return Use("categorical", {name: column})
    if is_text(column):
        return _use_text(name, column, settings)
    if not is_number(column):
        problem = f"Column '{name}' is of type {column.dtype}: convert it to numbers first, or use"
        return Use("numeric", problem=f"{problem} {offer(name, 'drop')}.")
    return _use_number(name, column)


def _use_text(name: str, column: pd.Series[Any], settings: DataSettings) -> Use:
    if looks_like_dates(column):
        return _as_dates(name, column, asked=False)
    written = read_as_written(column, settings)
    if written is not None:
        return Use("numeric", {name: written})
    problem, note = explain_number_like(name, column, settings)
    distinct = column.nunique()
    if not problem and distinct > MANY_TEXTS and distinct > 0.5 * len(column):
        problem = (
            f"Column '{name}' has {distinct} distinct texts in {len(column)} rows: not a category;"
            f" use {offer(name, 'drop')}, or {offer(name, 'categorical')} if it is one."
        )
    return Use("categorical", {name: as_categories(column)}, note, problem)


def read_as_written(column: pd.Series[Any], settings: DataSettings) -> pd.Series[Any] | None:
    """The numbers of a column whose texts are all written with the marks that the file is said, or found, to have."""
    if not (settings.decimal or settings.thousands):
        return None
    found = parse_numerals(column, settings.decimal, settings.thousands)
    if found.read < column.notna().sum() or "left out" in found.notation:
        return None
    return pd.Series(found.numbers, index=column.index)


def explain_number_like(
    name: str, column: pd.Series[Any], settings: DataSettings, *, target: bool = False
) -> tuple[str, str]:
    """The problem of texts that look like numbers, and what is to be said of texts that are used as categories."""
    found = parse_numerals(column, settings.decimal, settings.thousands)
    stray = int(column.notna().sum()) - found.read
    kinds = "classes" if target else "categories"
    ways = f"{offer(name, 'numeric')} reads them as numbers, {offer(name, 'categorical')} as {kinds}"
    marked = bool(settings.decimal or settings.thousands) and "left out" not in found.notation
    if found.read > 9 * stray and (found.read == found.plain or marked):
        if not stray:
            return "", f"column '{name}' has texts that look like numbers, used as {kinds}: {ways}"
        lost = (column.notna() & np.isnan(found.numbers)).to_numpy()
        act = f"with {given('drop_missing_target')} leaves out such rows" if target else "makes it missing"
        return (
            f"Column '{name}' holds numbers, but {_first(column, lost)} is not a"
            f" number: {offer(name, 'numeric')} {act}, {offer(name, 'categorical')} keeps the texts."
        ), ""
    if found.read > 9 * stray and found.read:
        there = column.notna().to_numpy() & ~np.isnan(found.numbers)
        odd = there & np.isnan(pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64))
        how = f" ({found.notation})" if found.notation else ""
        return f"Column '{name}' has numbers written as text, such as {_first(column, odd)}{how}: {ways}.", ""
    if not found.read:
        return "", ""
    share = f"{found.read} numbers among {int(column.notna().sum())} texts"
    return "", f"column '{name}' has {share}, used as {kinds}: {offer(name, 'numeric')} reads the numbers only"


def _use_number(name: str, column: pd.Series[Any]) -> Use:
    values = to_float64(column)
    with np.errstate(over="ignore"):
        beyond = np.isinf(values.astype(np.float32))
    if beyond.any():
        problem = (
            f"Column '{name}' must be finite in float32, but row {_row(column, beyond)} has {values[beyond][0]:g}:"
            f" {offer(name, 'numeric')} makes it missing, {offer(name, 'drop')} leaves the column out."
        )
        return Use("numeric", problem=problem)
    return Use("numeric", {name: column})


def _row(column: pd.Series[Any], mask: Any) -> int:
    """The first such row, counted from 1 in the file: rows without a target may have been left out."""
    return int(column.index[np.flatnonzero(mask)[0]]) + 1


def _first(column: pd.Series[Any], mask: Any = None) -> str:
    """The first value in quotes, and of those that are marked its row; what cannot be seen in it is written out."""
    there = column.dropna() if mask is None else column[mask]
    text = str(there.iloc[0]) if len(there) else ""
    shown = f"'{text}'" if text.isprintable() else repr(text)
    return shown if mask is None else f"{shown} in row {_row(column, mask)}"


MAX_CLASSES_OF_NUMBERS = 20  # more distinct whole numbers than this are a quantity, not classes
ROWS_PER_CLASS = 10


def read_target(
    source: str, name: str, column: pd.Series[Any], task: Task | None, settings: DataSettings
) -> tuple[NDArray[np.float64], Task, str, str]:
    """The values, the task, the reason for it, and a note; a DatasetError if it cannot be a target."""
    what = f"The target '{name}' of {source}"
    column, note = _target_as_asked(what, name, column, task, settings)
    found, reason = _infer(column, name) if task is None else (task, "as asked")
    y, names = _target_numbers(what, column, found)
    return y, found, f"{reason}, classes {join_first(names)}" if names else reason, note


def _target_as_asked(
    what: str, name: str, column: pd.Series[Any], task: Task | None, settings: DataSettings
) -> tuple[pd.Series[Any], str]:
    """The column as numbers or as texts; what looks like numbers but is text is refused, unless that is asked for."""
    if name in settings.date:
        raise DataFileError(f"{what} cannot be given to {named('date')}: a date cannot be a target.")
    if name in settings.categorical:
        return as_categories(column), ""
    if is_date(column) or (is_text(column) and looks_like_dates(column)):
        raise DataFileError(f"{what} holds dates: a date cannot be a target.")
    column = unwrap_objects(name, column)
    if not is_text(column) or isinstance(column.dtype, pd.CategoricalDtype) or column.nunique() == 2:
        return column, ""
    written = read_as_written(column, settings)
    if written is not None:
        return written, ""
    problem, note = explain_number_like(name, column, settings, target=True)
    if task is not None and not task.is_classification and not problem:
        return column, ""
    if note and "look like numbers" in note and column.nunique() > MAX_CLASSES_OF_NUMBERS:
        problem = f"The target {note.removeprefix('column ')}."
    if problem:
        raise DataFileError(problem)
    return column, note


def _infer(column: pd.Series[Any], target: str) -> tuple[Task, str]:
    distinct = int(column.nunique())
    said = f"{distinct} distinct values in '{target}'"
    if distinct == 2:
        return Task.BINARY, said
    if is_text(column):
        return Task.MULTICLASS, f"{said}, which are text"
    check_number(target, column)
    values = column.to_numpy(dtype=np.float64)
    whole = bool((values == np.floor(values)).all())
    if 2 < distinct <= MAX_CLASSES_OF_NUMBERS and whole and len(column) >= ROWS_PER_CLASS * distinct:
        return Task.MULTICLASS, f"{said}, all whole numbers"
    return Task.REGRESSION, said


def _target_numbers(what: str, column: pd.Series[Any], task: Task) -> tuple[NDArray[np.float64], list[str]]:
    if (column == column.iloc[0]).all():
        raise DatasetError(f"{what} is constant ({column.iloc[0]}): there is nothing to learn.")
    if task.is_classification:
        codes, labels = pd.factorize(column.astype(str) if is_text(column) else column, sort=True)
        if len(labels) > max(MAX_CLASSES_OF_NUMBERS, len(column) // 2):
            raise DatasetError(f"{what} has {len(labels)} distinct values: too many for classes.")
        return codes.astype(np.float64), [str(label) for label in labels]
    parsed = pd.to_numeric(column, errors="coerce") if is_text(column) else column
    y = parsed.to_numpy(dtype=np.float64)
    wrong = ~np.isfinite(y)
    if wrong.any():
        raise DatasetError(f"{what} must be finite numbers for {task.value}. Got {_first(column, wrong)} instead.")
    return y, []
