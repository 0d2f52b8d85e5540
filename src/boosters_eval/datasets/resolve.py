"""What a user names a data set by: a registered name, or a file and its target column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.datasets.catalog import DATASETS, DEFAULT_QUANTILES
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.datasets.config import DataSettings

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def resolve_dataset(
    item: str | DatasetConfig, task: Task | None = None, settings: DataSettings | None = None
) -> DatasetConfig:
    """The data set that is meant; of a file, the description says what was inferred. Settings are for files."""
    if isinstance(item, DatasetConfig) or item in DATASETS:
        config = item if isinstance(item, DatasetConfig) else DATASETS[item]
        return config if task is None or task is config.task else _as_task(config, task)
    if item.endswith(SUFFIXES):
        raise ConfigError(f"The data set '{item}' names no target column: write '{item}:column'.")
    path, colon, target = item.rpartition(":")
    if colon and path.endswith(SUFFIXES):
        from boosters_eval.datasets.files import config_from_file  # noqa: PLC0415 (pandas only where a file is read)

        return config_from_file(path, target, task, settings)
    if colon or "/" in item:
        raise ConfigError(
            f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{item}' instead."
        )
    return DATASETS[item]


def check_applicable(settings: DataSettings, items: Sequence[object]) -> None:
    """Refuse settings that none of the data sets could follow."""
    given = sorted(name for name in settings.model_fields_set if getattr(settings, name) not in ((), None, False))
    if given and not any(map(is_file, items)):
        raise ConfigError(f"The '{given[0]}' parameter is for data files. Got none among the data sets.")


def is_file(item: object) -> bool:
    """Whether a file is meant, to which the settings of data apply."""
    return isinstance(item, str) and item not in DATASETS and item.rpartition(":")[0].endswith(SUFFIXES)


def _as_task(config: DatasetConfig, task: Task) -> DatasetConfig:
    """Numbers may be predicted as numbers or by their quantiles; other readings of a known data set are mistakes."""
    if {config.task, task} != {Task.REGRESSION, Task.QUANTILE}:
        raise ConfigError(f"The data set '{config.name}' is of task {config.task.value}. Got {task.value} instead.")
    quantiles = DEFAULT_QUANTILES if task is Task.QUANTILE else ()
    return config.replace(task=task, quantiles=quantiles)
