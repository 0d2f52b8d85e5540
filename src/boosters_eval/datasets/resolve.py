"""What a user names a data set by: a registered name, or a file and its target column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import the
from boosters_eval.datasets.catalog import DATASETS, DEFAULT_QUANTILES
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.datasets.config import DataSettings

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".feather", ".arff", ".arff.gz")
_OF_TEXT = ("sep", "encoding")


def resolve_dataset(
    item: str | DatasetConfig,
    task: Task | None = None,
    settings: DataSettings | None = None,
    split: str | None = None,
) -> DatasetConfig:
    """The data set that is meant; of a file, the description says what was inferred. Settings are for files.

    `split` is that of a benchmark: the column that it names is no feature of a file.
    """
    if isinstance(item, DatasetConfig) or item in DATASETS:
        config = item if isinstance(item, DatasetConfig) else DATASETS[item]
        return config if task is None or task is config.task else _as_task(config, task)
    path, target = split_item(item)
    if path.endswith(SUFFIXES):
        return _from_file(path, target, task, settings, split)
    if ":" in item or "/" in item:
        raise ConfigError(
            f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{item}' instead."
        )
    return DATASETS[item]


def split_item(item: str) -> tuple[str, str | None]:
    """The path of a file and its target; the name of a column may have colons too."""
    colons = [position for position, char in enumerate(item) if char == ":"]
    found = next((position for position in colons if item[:position].endswith(SUFFIXES)), None)
    return (item, None) if found is None else (item[:found], item[found + 1 :])


def is_file(item: object) -> bool:
    """Whether a file is meant, to which the settings of data apply."""
    return isinstance(item, str) and item not in DATASETS and split_item(item)[0].endswith(SUFFIXES)


def check_applicable(settings: DataSettings, items: Sequence[object]) -> None:
    """Refuse settings that none of the data sets could follow."""
    given = [name for name in type(settings).model_fields if getattr(settings, name) not in ((), None, False)]
    files = [split_item(item)[0] for item in items if isinstance(item, str) and is_file(item)]
    for name in given:
        accepted = TEXT_SUFFIXES if name in _OF_TEXT else SUFFIXES
        if not any(file.endswith(accepted) for file in files):
            kind = "text files" if name in _OF_TEXT else "data files"
            raise ConfigError(f"{the(name)} is for {kind}, such as data.csv:target. Got none of them instead.")


def _from_file(
    path: str, target: str | None, task: Task | None, settings: DataSettings | None, split: str | None
) -> DatasetConfig:
    """The file as its sidecar says, unless something else was given."""
    from boosters_eval.datasets.files import config_from_file  # noqa: PLC0415 (pandas only where a file is read)
    from boosters_eval.datasets.sidecar import merged, read_sidecar, sidecar_path  # noqa: PLC0415 (likewise YAML)

    file = Path(path)
    try:
        sidecar = read_sidecar(file)
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    wanted = target or (sidecar.target if sidecar else None)
    if not wanted:
        raise ConfigError(
            f"The data set '{path}' names no target column: write '{path}:column', or keep it in {path}.yaml by"
            f" 'boosters-eval datasets init {path}:column'."
        )
    if sidecar is None:
        return config_from_file(path, wanted, task, settings, split)
    used, by, notes = merged(sidecar_path(file).name, sidecar, settings, split, wanted)
    known = sidecar.task if wanted == sidecar.target else None
    config = config_from_file(path, wanted, task or known, used, by)
    return config.replace(notes=(*notes, *config.notes))


def _as_task(config: DatasetConfig, task: Task) -> DatasetConfig:
    """Numbers may be predicted as numbers or by their quantiles; other readings of a known data set are mistakes."""
    if {config.task, task} != {Task.REGRESSION, Task.QUANTILE}:
        raise ConfigError(f"The data set '{config.name}' is of task {config.task.value}. Got {task.value} instead.")
    quantiles = DEFAULT_QUANTILES if task is Task.QUANTILE else ()
    return config.replace(task=task, quantiles=quantiles)
