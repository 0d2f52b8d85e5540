"""What a data set is and how its rows are split, as data. Nothing scientific is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import BeforeValidator

from boosters_eval.core.model import Model
from boosters_eval.datasets.audit import DataAudit
from boosters_eval.metrics.task import Task


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
    licence: str = ""
    categorical: tuple[str | int, ...] = ()  # names or positions of categorical columns
    feature_names: tuple[str, ...] = ()
    has_missing: bool | None = None
    quantiles: tuple[Annotated[float, Gt(0), Lt(1)], ...] = ()
    primary_metric: str | None = None
    splitter: Callable[..., Any] | None = None
    recipe: str | None = None  # changes whenever a built-in loader's data would; None: never trusted from the cache
    notes: tuple[str, ...] = ()  # sentences on how a user's file or frame was read
    audit: DataAudit | None = None  # of a user's file or frame; other data sets are audited when they are used
    available: Callable[[], str | None] | None = None  # None, or one sentence on why it is not here


Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]


class DataSettings(Model):
    """How a user's table is read and used; columns are given by name. What is not set is found out from the data."""

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
    folds: Annotated[int, Ge(2)] | None = None  # None: one random split per seed
