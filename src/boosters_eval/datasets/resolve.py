"""What a user names a data set by: a registered name, or a file and its target column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.datasets.catalog import DATASETS, DEFAULT_QUANTILES
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from boosters_eval.datasets.config import DatasetConfig

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def resolve_dataset(text: str, task: Task | None = None) -> DatasetConfig:
    """The data set that is meant; of a file, the description says what was inferred."""
    if text in DATASETS:
        config = DATASETS[text]
        return config if task is None or task is config.task else _as_task(config, task)
    if text.endswith(SUFFIXES):
        raise ConfigError(f"The data set '{text}' names no target column: write '{text}:column'.")
    path, colon, target = text.rpartition(":")
    if colon and path.endswith(SUFFIXES):
        from boosters_eval.datasets.files import config_from_file  # noqa: PLC0415 (pandas only where a file is read)

        return config_from_file(path, target, task)
    if colon or "/" in text:
        raise ConfigError(
            f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{text}' instead."
        )
    return DATASETS[text]


def _as_task(config: DatasetConfig, task: Task) -> DatasetConfig:
    """Numbers may be predicted as numbers or by their quantiles; other readings of a known data set are mistakes."""
    if {config.task, task} != {Task.REGRESSION, Task.QUANTILE}:
        raise ConfigError(f"The data set '{config.name}' is of task {config.task.value}. Got {task.value} instead.")
    quantiles = DEFAULT_QUANTILES if task is Task.QUANTILE else ()
    return config.replace(task=task, quantiles=quantiles)
