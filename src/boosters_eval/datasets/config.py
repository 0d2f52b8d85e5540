"""What a data set is and how its rows are split, as data. Nothing scientific is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.model import Model
from boosters_eval.core.repeat import SplitKind
from boosters_eval.core.terms import the
from boosters_eval.datasets.audit import DataAudit
from boosters_eval.metrics.task import Task


class SplitBy(NamedTuple):
    """A split that follows a column: later rows are validated on, or groups are kept whole."""

    kind: Literal["time", "group"]
    column: str


def parse_split(text: str | None) -> SplitBy | None:
    """`time:COLUMN` or `group:COLUMN`; None where rows are split at random."""
    kind, _, column = (text or "random").partition(":")
    if kind == "random" and not column:
        return None
    if kind == "time" and column:
        return SplitBy("time", column)
    if kind == "group" and column:
        return SplitBy("group", column)
    raise ConfigError(f"{the('split')} must be random, time:COLUMN or group:COLUMN. Got '{text}' instead.")


def _checked_split(text: str) -> str:
    parse_split(text)
    return text


SplitText = Annotated[str, AfterValidator(_checked_split)]


class DatasetConfig(Model):
    """A data set: what it is, and how to get it.

    The loader is called once, in the parent process. It returns (x, y) or a `boosters_eval.datasets.Table`.
    """

    name: Annotated[str, MinLen(1)]
    task: Task
    loader: Callable[[], Any]
    n_classes: int | None = None
    n_features: int | None = None
    n_samples: int | None = None
    subsample: Annotated[int, Ge(1)] | None = None
    description: str = ""
    source: str = ""
    license: str = ""
    categorical: tuple[str | int, ...] = ()  # names or positions of categorical columns
    feature_names: tuple[str, ...] = ()
    has_missing: bool | None = None
    quantiles: tuple[Annotated[float, Gt(0), Lt(1)], ...] = ()
    primary_metric: str | None = None
    splitter: Callable[..., Any] | None = None
    split_by: SplitText | None = None  # time:COLUMN or group:COLUMN, unless a benchmark says otherwise
    recipe: str | None = None  # changes whenever a built-in loader's data would; None: never trusted from the cache
    notes: tuple[str, ...] = ()  # sentences on how a user's file or frame was read
    audit: DataAudit | None = None  # of a user's file or frame; other data sets are audited when they are used
    available: Callable[[], str | None] | None = None  # None, or one sentence on why it is not here


Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]


COLUMN_SETTINGS = ("drop", "keep", "categorical", "numeric", "date")  # those that name columns


class DataSettings(Model):
    """How a user's table is read and used; columns are given by name. What is not set is detected from the data."""

    drop: Names = ()
    keep: Names = ()  # as features, although they look like ids or are constant; others stay as they are
    categorical: Names = ()
    numeric: Names = ()
    date: Names = ()  # each becomes year, month, day, weekday and hour
    drop_missing_target: bool = False
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None


class SplitSpec(Model):
    """How rows become training and validation rows; the seed and the fold complete it."""

    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.2
    folds: Annotated[int, Ge(2)] | None = None  # None: one random split per seed; of time, the number of windows
    kind: SplitKind = "random"
    column: str = ""  # of the times or the groups
