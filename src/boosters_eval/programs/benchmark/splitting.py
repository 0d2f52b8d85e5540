"""Splits by time and by groups: what they mean for a benchmark, and whether its data can be split so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.errors import ConfigError, DatasetError
from boosters_eval.core.repeat import Repeat
from boosters_eval.core.terms import given
from boosters_eval.datasets import hold_out_rows, open_stored, split_rows
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.runners.parameters import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from boosters_eval.datasets import Stored, Table
    from boosters_eval.programs.benchmark.spec import FitSpec
    from boosters_eval.runners.config import BenchmarkConfig


def settled(config: BenchmarkConfig) -> BenchmarkConfig:
    """The benchmark with its split decided: its own, or that of its data set; by time, in windows."""
    dataset = config.dataset
    by = config.split_by
    if by is None:
        return config if dataset.split_by is None else config.replace(dataset=dataset.replace(split_by=None))
    if dataset.splitter is not None:
        raise ConfigError(
            f"The data set '{dataset.name}' has its own splitter, so it cannot be split by {by.kind} too."
        )
    if by.kind == "time" and "validation_fraction" in config.model_fields_set:
        raise ConfigError(
            f"The 'validation_fraction' parameter of {config.name} must not be set: it is split by time, in windows."
        )
    text = f"{by.kind}:{by.column}"
    if dataset.split_by != text:
        dataset = dataset.replace(split_by=text)
    return config.replace(dataset=dataset, folds=config.n_folds)


def split_spec(config: BenchmarkConfig) -> SplitSpec:
    """How the rows of a settled benchmark are divided."""
    by = config.split_by
    spec = SplitSpec(validation_fraction=config.validation_fraction, folds=config.folds)
    return spec if by is None else spec.replace(kind=by.kind, column=by.column)


def check_splits(spec: FitSpec, data: Stored, repeats: Iterable[Repeat]) -> None:
    """Refuse a plan, once, whose splits cannot be made or leave a class without a row to learn from."""
    if spec.split.kind == "random":
        return
    table = open_stored(data.path)
    by_time = spec.split.kind == "time"
    for repeat in dict.fromkeys(Repeat(0, r.fold) if by_time else r for r in repeats):
        try:
            rows = split_rows(table, spec.task, spec.split, repeat.seed, repeat.fold).train
            if spec.training.early_stopping_rounds is not None and spec.profile is Profile.PARITY:
                rows = rows[hold_out_rows(_of(table, rows), spec.task, spec.split.kind, repeat.seed).train]
        except DatasetError as error:
            raise ConfigError(f"{spec.name}: {error}") from None
        if spec.task.is_classification:
            _check_classes(spec, table, rows, repeat)


def check_growth(specs: Iterable[FitSpec], stored: dict[str, Stored]) -> None:
    """Refuse to add seeds that could never decide anything."""
    from boosters_eval.stats.observations import LEAST_GROUPS  # noqa: PLC0415 (loads scipy)

    for spec in specs:
        if spec.split.kind == "group":
            count = len(np.unique(np.asarray(open_stored(stored[spec.dataset].path).split_by)))
            if count < LEAST_GROUPS:
                raise ConfigError(
                    f"{given('seeds', 'auto')} needs at least {LEAST_GROUPS} groups to decide anything."
                    f" Got {count} in '{spec.split.column}' of {spec.dataset} instead."
                )


def _of(table: Table, rows: NDArray[np.int64]) -> Table:
    split_by = None if table.split_by is None else np.asarray(table.split_by[rows])
    groups = None if table.groups is None else np.asarray(table.groups[rows])
    return replace(table, x=table.x[:0], y=np.asarray(table.y[rows]), groups=groups, split_by=split_by)


def _check_classes(spec: FitSpec, table: Table, rows: NDArray[np.int64], repeat: Repeat) -> None:
    missing = np.setdiff1d(table.y, np.asarray(table.y)[rows])
    if not len(missing):
        return
    label = f"class {missing[0]:g} of {spec.dataset}"
    where = f"window {(repeat.fold or 0) + 1}" if spec.split.kind == "time" else str(repeat)
    raise ConfigError(
        f"{spec.name}: {label} has no training row in {where} of the split by {spec.split.kind} '{spec.split.column}':"
        " leave the class out, or split in another way."
    )
