"""The target of a user's table: the task that it stands for, and its values as numbers or classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DataFileError, DatasetError
from boosters_eval.datasets.columns import as_categories, as_written, few, number_like
from boosters_eval.datasets.dates import is_date, looks_like_dates
from boosters_eval.datasets.frames import is_text, numbers, plain
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.config import DataSettings

MAX_CLASSES_OF_NUMBERS = 20  # more distinct whole numbers than this are a quantity, not classes
ROWS_PER_CLASS = 10


def target_values(
    source: str, name: str, column: pd.Series[Any], task: Task | None, settings: DataSettings
) -> tuple[NDArray[np.float64], Task, str, str]:
    """The values, the task, the reason for it, and a note; a DatasetError if it cannot be a target."""
    if not len(column):
        raise DatasetError(f"The target '{name}' of {source} has no values.")
    column, note = _as_asked(source, name, column, task, settings)
    found, reason = _infer(column, name) if task is None else (task, "as asked")
    y, names = _values(source, name, column, found)
    return y, found, f"{reason}, classes {few(names)}" if names else reason, note


def _as_asked(
    source: str, name: str, column: pd.Series[Any], task: Task | None, settings: DataSettings
) -> tuple[pd.Series[Any], str]:
    """The column as numbers or as texts; what looks like numbers but is text is refused, unless that is asked for."""
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    if name in settings.date:
        raise DataFileError(f"The target '{name}' of {source} cannot be given to --date: a date is no target.")
    if name in settings.categorical:
        return as_categories(column), ""
    if is_date(column) or (is_text(column) and looks_like_dates(column)):
        raise DataFileError(f"The target '{name}' of {source} holds dates: a date is no target.")
    column = plain(name, column)
    if not is_text(column) or isinstance(column.dtype, pd.CategoricalDtype) or column.nunique() == 2:
        return column, ""
    written = as_written(column, settings)
    if written is not None:
        return written, ""
    problem, note = number_like(name, column, settings, target=True)
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
    numbers(target, column)
    values = column.to_numpy(dtype=np.float64)
    whole = bool((values == np.floor(values)).all())
    if 2 < distinct <= MAX_CLASSES_OF_NUMBERS and whole and len(column) >= ROWS_PER_CLASS * distinct:
        return Task.MULTICLASS, f"{said}, all whole numbers"
    return Task.REGRESSION, said


def _values(source: str, name: str, column: pd.Series[Any], task: Task) -> tuple[NDArray[np.float64], list[str]]:
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    if (column == column.iloc[0]).all():
        raise DatasetError(
            f"The target '{name}' of {source} is constant ({column.iloc[0]}): there is nothing to learn."
        )
    if task.is_classification:
        codes, labels = pd.factorize(column.astype(str) if is_text(column) else column, sort=True)
        if len(labels) > max(MAX_CLASSES_OF_NUMBERS, len(column) // 2):
            raise DatasetError(
                f"The target '{name}' of {source} has {len(labels)} distinct values: too many for classes."
            )
        return codes.astype(np.float64), [str(label) for label in labels]
    parsed = pd.to_numeric(column, errors="coerce") if is_text(column) else column
    y = parsed.to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(y))
    if len(wrong):
        raise DatasetError(
            f"The target '{name}' of {source} must be finite numbers for {task.value}. "
            f"Got '{column.iloc[wrong[0]]}' in row {column.index[wrong[0]] + 1} instead."
        )
    return y, []
