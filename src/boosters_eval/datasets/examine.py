"""A user's data frame into a table: all of its problems are found before any is reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from boosters_eval.core.errors import DataFileError, DatasetError, suggest
from boosters_eval.core.text import count_of
from boosters_eval.datasets import checks
from boosters_eval.datasets.auditing import audit_frame
from boosters_eval.datasets.checks import is_text, table_from_frame
from boosters_eval.datasets.columns import name_problems, target_values, use_column
from boosters_eval.datasets.config import AuditedColumn, DataAudit
from boosters_eval.datasets.splits import split_values
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.datasets.config import DataSettings, SplitBy, Table
    from boosters_eval.datasets.reading import FileReading


GROUP_COLUMN = "qid"
MOST_SAID = 20
MIN_ROWS = 10  # fewer cannot be split into rows to train on and rows to judge by


@dataclass(frozen=True)
class Examined:
    """A table of the user's, and all that is to be said about it."""

    table: Table
    task: Task
    reason: str  # for the task
    columns: tuple[AuditedColumn, ...]  # in the order of the file
    audit: DataAudit
    notes: tuple[str, ...] = ()
    reading: FileReading | None = None  # None: it came as a data frame
    split: SplitBy | None = None  # the column that rows are split by


def examine(
    source: str,
    frame: pd.DataFrame,
    target: str,
    task: Task | None,
    settings: DataSettings,
    split: SplitBy | None = None,
) -> Examined:
    """Use each column as the settings ask for, or as what it is found to be.

    The column of the split is no feature, unless the settings keep it.
    """
    names = [str(label) for label in frame.columns]
    if len(frame) * len(names) > checks.MAX_CELLS:
        raise DataFileError(f"{source} has {len(frame)} x {len(names)} cells: more than 2**31.")
    problems = name_problems(source, names, target, settings)
    notes: list[str] = []
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    frame = frame.loc[:, ~frame.columns.duplicated()]
    if not len(frame):
        problems.append(f"{source} has a header but no rows.")
    if not len(frame) or target not in names:
        raise _refusal(source, problems)
    if target in settings.numeric:
        frame = _numeric_target(frame, target, settings, problems, notes)
    frame = _with_target(source, frame, target, settings, problems, notes)
    if len(frame) < MIN_ROWS:  # of which nothing more can be said
        raise _refusal(source, problems)
    groups = None
    if task is Task.RANKING:
        frame, groups = _by_query(source, frame, problems)
    split_by = _split_column(source, frame, target, split, problems)
    columns, features = _features(
        frame, target, apart=_apart(split, grouped=groups is not None), settings=settings, said=(problems, notes)
    )
    if not features:
        problems.append(f"{source} has no column besides the target '{target}'.")
    y, found, reason = _target(source, frame[target], task, settings, (problems, notes))
    if problems:
        raise _refusal(source, problems)
    table = table_from_frame(pd.DataFrame(features), y, groups)
    table = replace(table, split_by=split_by, split_column=split.column if split else "")
    audit = _audit(source, frame, features, columns, (target, y, found, reason), settings)
    ids = {column.name for column in audit.columns if column.role == "id"}  # of numbers, it says that they are too long
    twice = {column.note for column in columns if column.role == "numeric" and column.name in ids}
    notes = [note for note in notes if note not in twice]
    return Examined(table, found, reason, columns, audit, tuple(_first(notes)), split=split)


def _apart(split: SplitBy | None, *, grouped: bool) -> dict[str, AuditedColumn]:
    """The columns that are no features unless they are kept."""
    found = [AuditedColumn(name=GROUP_COLUMN, role="group", used=False, note="the queries")] if grouped else []
    if split is not None:
        found.append(AuditedColumn(name=split.column, role=split.kind, used=False, note="rows are split by it"))
    return {column.name: column for column in found}


def _split_column(
    source: str, frame: pd.DataFrame, target: str, split: SplitBy | None, problems: list[str]
) -> NDArray[Any] | None:
    if split is None:
        return None
    if split.column not in frame.columns or split.column == target:
        what = "is the target" if split.column == target else f"is not a column of {source}"
        others = [str(name) for name in frame.columns if name != target]
        problems.append(f"The {split.kind} column '{split.column}' {what}.{suggest(split.column, others)}")
        return None
    try:
        return split_values(source, split, frame[split.column])
    except DatasetError as error:
        problems.append(str(error))
        return None


def _audit(
    source: str,
    frame: pd.DataFrame,
    features: dict[str, pd.Series[Any]],
    columns: tuple[AuditedColumn, ...],
    target: tuple[str, Any, Task, str],
    settings: DataSettings,
) -> DataAudit:
    """Of the columns as they were read, except for those whose texts are used as numbers."""
    name, y, task, reason = target
    read = [column.name for column in columns if column.role == "numeric" and is_text(frame[column.name])]
    changed = {column: features[column] for column in read}
    return audit_frame(
        frame.assign(**changed, **({} if task.is_classification else {name: y})),
        name,
        task,
        name=source,
        reason=reason,
        columns=columns,
        asked={*settings.keep, *settings.categorical, *settings.numeric, *settings.date},
    )


def _refusal(source: str, problems: list[str]) -> DataFileError:
    if len(problems) == 1:
        return DataFileError(problems[0])
    return DataFileError(f"{source} cannot be used as it is, for {len(problems)} reasons:", _first(problems))


def _first(sentences: list[str]) -> list[str]:
    """A table of thousands of columns may have as many sentences."""
    more = len(sentences) - MOST_SAID
    return sentences if more < 2 else [*sentences[:MOST_SAID], f"and {more} more of this kind"]


def _numeric_target(
    frame: pd.DataFrame, target: str, settings: DataSettings, problems: list[str], notes: list[str]
) -> pd.DataFrame:
    """With the target as numbers, as asked: a row in which it is none is a row without a target."""
    use = use_column(target, frame[target], settings)
    problems += [use.problem] if use.problem else []
    notes += [use.note] if use.note else []
    return frame.assign(**use.columns)


def _with_target(
    source: str, frame: pd.DataFrame, target: str, settings: DataSettings, problems: list[str], notes: list[str]
) -> pd.DataFrame:
    """The rows that have a target. The index keeps their numbers in the file."""
    missing = frame[target].isna()
    count = int(missing.sum())
    if count and not settings.drop_missing_target:
        problems.append(
            f"The target '{target}' of {source} is missing in {count_of(count, 'row')}: --drop-missing-target leaves"
            f" {'it' if count == 1 else 'them'} out."
        )
    elif count:
        notes.append(f"{count_of(count, 'row')} without a target left out, {len(frame) - count} kept")
    kept = frame[~missing] if count else frame
    if len(kept) < MIN_ROWS:
        what = count_of(len(kept), "row") if not count else f"a target in {count_of(len(kept), 'row')} only"
        problems.append(f"{source} has {what}: at least {MIN_ROWS} are needed.")
    return kept


def _by_query(source: str, frame: pd.DataFrame, problems: list[str]) -> tuple[pd.DataFrame, Any]:
    if GROUP_COLUMN not in frame.columns:
        problems.append(f"Ranking needs a column '{GROUP_COLUMN}' with a query id per row; {source} has none.")
        return frame, None
    missing = int(frame[GROUP_COLUMN].isna().sum())
    if missing:
        problems.append(f"The query id '{GROUP_COLUMN}' of {source} is missing in {count_of(missing, 'row')}.")
    codes = frame[GROUP_COLUMN].factorize()[0]
    order = np.argsort(codes, kind="stable")
    return frame.iloc[order], codes[order].astype(np.int64)


def _features(
    frame: pd.DataFrame,
    target: str,
    *,
    apart: dict[str, AuditedColumn],
    settings: DataSettings,
    said: tuple[list[str], list[str]],
) -> tuple[tuple[AuditedColumn, ...], dict[str, pd.Series[Any]]]:
    problems, notes = said
    columns: list[AuditedColumn] = []
    features: dict[str, pd.Series[Any]] = {}
    for name in frame.columns:
        if name == target or name in settings.drop:
            columns.append(AuditedColumn(name=name, role="target" if name == target else "dropped", used=False))
            continue
        if name in apart and name not in settings.keep:
            columns.append(apart[name])
            continue
        use = use_column(name, frame[name], settings)
        problems += [use.problem] if use.problem else []
        notes += [use.note] if use.note else []
        columns.append(AuditedColumn(name=name, role=use.role, note=use.note))
        taken = [part for part in use.columns if part != name and part in frame.columns]
        if taken:
            problems.append(f"The date '{name}' would become '{taken[0]}', but there is such a column: rename it.")
        features |= use.columns
    return tuple(columns), features


def _target(
    source: str, column: pd.Series[Any], task: Task | None, settings: DataSettings, said: tuple[list[str], list[str]]
) -> tuple[Any, Task, str]:
    problems, notes = said
    there = column.dropna()
    try:
        y, found, reason, note = target_values(source, str(column.name), there, task, settings)
    except DatasetError as error:
        problems.append(str(error))
        return None, task or Task.REGRESSION, ""
    notes += [note] if note else []
    return y, found, reason
