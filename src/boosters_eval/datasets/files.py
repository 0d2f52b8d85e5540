"""A user's own file or data frame as a data set: what was detected about it is stated, never assumed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import ConfigError, DataFileError, DatasetError
from boosters_eval.core.files import check_regular
from boosters_eval.core.terms import the
from boosters_eval.datasets import checks
from boosters_eval.datasets.catalog import DEFAULT_QUANTILES
from boosters_eval.datasets.config import DatasetConfig, DataSettings, SplitBy, parse_split
from boosters_eval.datasets.examine import Examined, examine
from boosters_eval.datasets.frames import is_frame
from boosters_eval.datasets.reading import read_file
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from boosters_eval.datasets.table import Table


def config_from_file(
    path: str,
    target: str,
    task: Task | None = None,
    settings: DataSettings | None = None,
    split: str | None = None,
) -> DatasetConfig:
    """Read the file, find out what it is, and declare it; the rows are read once."""
    file = Path(path)
    by = parse_split(split)
    found = examine_file(file, target, task, settings, by)

    def load() -> Table:
        table = examine_file(file, target, task, settings, by).table
        _read.cache_clear()  # from here on the cache on disk has it
        return table

    return _declared(f"{file.name.split('.')[0]}.{target}", f"{file.name}:{target}", found, load, task)


def config_from_frame(
    frame: Any,
    target: str,
    *,
    name: str = "data",
    task: Task | None = None,
    settings: DataSettings | None = None,
    split: str | None = None,
) -> DatasetConfig:
    """Declare a pandas or a polars data frame as a data set. The frame itself is never changed."""
    asked = settings or DataSettings()
    for setting in ("sep", "encoding"):
        if getattr(asked, setting) is not None:
            raise ConfigError(f"{the(setting)} is for text files. Got a data frame instead.")
    found = examine(name, _as_pandas(frame), target, task, asked, parse_split(split))
    return _declared(f"{name}.{target}", f"data frame:{target}", found, lambda: found.table, task)


def examine_file(
    file: Path,
    target: str,
    task: Task | None = None,
    settings: DataSettings | None = None,
    split: SplitBy | None = None,
) -> Examined:
    """What the file is found to be. The last one is kept."""
    try:
        check_regular(file)
        stamp = file.stat().st_mtime_ns
    except FileNotFoundError:
        raise ConfigError(f"The data file {file} does not exist.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror}.") from None
    return _read(file.resolve(), stamp, target, task, settings or DataSettings(), split)


@lru_cache(maxsize=1)
def _read(
    file: Path,
    stamp: int,  # noqa: ARG001 (a newer file is read anew)
    target: str,
    task: Task | None,
    settings: DataSettings,
    split: SplitBy | None,
) -> Examined:
    frame, reading = read_file(file, settings)
    marks = {"decimal": reading.decimal or settings.decimal, "thousands": reading.thousands or settings.thousands}
    found = examine(file.name, frame, target, task, settings.replace(**marks), split)
    return replace(found, reading=reading, notes=(*reading.notes, *found.notes))


def _as_pandas(frame: Any) -> pd.DataFrame:
    if is_frame(frame):
        return frame  # type: ignore[no-any-return]
    if not hasattr(frame, "to_pandas"):
        kind = type(frame).__name__
        raise ConfigError(f"The 'frame' parameter must be a pandas or a polars DataFrame. Got {kind} instead.")
    try:
        return frame.to_pandas()  # type: ignore[no-any-return]
    except ImportError:
        raise DatasetError("Converting this data frame needs pyarrow: pip install 'boosters-eval[parquet]'.") from None


def _declared(name: str, source: str, found: Examined, load: Callable[[], Table], given: Task | None) -> DatasetConfig:
    table = found.table
    lists = {
        "categorical": [table.feature_names[position] for position in table.categorical],
        "dates": [column.name for column in found.columns if column.role == "date"],
        "left out": [column.name for column in found.columns if column.role == "dropped"],
    }
    said = [f"task {'given' if given else 'inferred'}: {found.task.value} ({found.reason})"]
    said += [f"{what}: {', '.join(names) or 'none'}" for what, names in lists.items() if names or what == "categorical"]
    said += [f"reading: {found.reading.text}"] if found.reading and found.reading.text else []
    safe = re.sub(r"[^\w.+-]", "_", name)
    config = DatasetConfig(
        name=safe,
        task=found.task,
        loader=load,
        n_samples=table.x.shape[0],
        n_features=table.x.shape[1],
        n_classes=int(table.y.max()) + 1 if found.task.is_classification else None,
        has_missing=bool(np.isnan(table.x).any()),
        categorical=table.categorical,
        feature_names=table.feature_names,
        quantiles=DEFAULT_QUANTILES if found.task is Task.QUANTILE else (),
        description="; ".join(said),
        source=source,
        license="the user's own",
        notes=found.notes,
        split_by=f"{found.split.kind}:{found.split.column}" if found.split else None,
        audit=found.audit.replace(dataset=safe, reading=found.reading.text if found.reading else ""),
    )
    try:
        checks.as_table(config, table)  # what is still wrong with it is a mistake in the user's data
    except DatasetError as error:
        raise DataFileError(str(error)) from None
    return config
