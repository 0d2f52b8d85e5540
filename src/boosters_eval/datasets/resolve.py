"""What a user names a data set by: a registered name, a file and its target column, a data frame or arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, require
from boosters_eval.core.terms import the
from boosters_eval.datasets.catalog import DATASETS, DEFAULT_QUANTILES
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    if isinstance(item, str) and item not in DATASETS and (is_file(item) or ":" in item or "/" in item):
        return _declare_file(item, task, settings, split)
    config = item if isinstance(item, DatasetConfig) else DATASETS[item]
    return config if task is None or task is config.task else _as_task(config, task)


def _declare_file(item: str, task: Task | None, settings: DataSettings | None, split: str | None) -> DatasetConfig:
    path, target = split_item(item)
    if path.endswith(SUFFIXES):
        from boosters_eval.datasets.files import declare_file  # noqa: PLC0415 (pandas and YAML, for files only)

        return declare_file(path, target, task, settings, split)
    raise ConfigError(
        f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{item}' instead."
    )


def split_item(item: str) -> tuple[str, str | None]:
    """The path of a file and its target; the name of a column may have colons too."""
    colons = [position for position, char in enumerate(item) if char == ":"]
    found = next((position for position in colons if item[:position].endswith(SUFFIXES)), None)
    return (item, None) if found is None else (item[:found], item[found + 1 :])


def split_items(text: str) -> list[str]:
    """Data sets by commas. After a file's target further targets may follow, which are no names of data sets."""
    out: list[str] = []
    for part in filter(None, text.split(",")) if split_item(text)[1] is None else text.split(","):
        follows = bool(out) and split_item(out[-1])[1] is not None
        if follows and part not in DATASETS and not split_item(part)[0].endswith(SUFFIXES):
            out[-1] += f",{part}"
        else:
            out.append(part)
    return out or [text]


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


def _as_task(config: DatasetConfig, task: Task) -> DatasetConfig:
    """Numbers may be predicted as numbers or by their quantiles; other readings of a known data set are mistakes."""
    if {config.task, task} != {Task.REGRESSION, Task.QUANTILE}:
        raise ConfigError(f"The data set '{config.name}' has the task {config.task.value}. Got {task.value} instead.")
    quantiles = DEFAULT_QUANTILES if task is Task.QUANTILE else ()
    return config.replace(task=task, quantiles=quantiles)


_ACCEPTED = "names, DatasetConfigs, data frames with a 'target', (X, y), or a dict of names and such frames or arrays"
_LONG = 60  # letters of what is not shown in a sentence


@dataclass(frozen=True, eq=False)
class GivenFrame:
    """A data frame, the column to predict, and what the data set is to be called."""

    frame: Any
    target: str
    name: str

    def config(self, task: Task | None, settings: DataSettings | None, split: str | None = None) -> DatasetConfig:
        from boosters_eval.datasets.files import config_from_frame  # noqa: PLC0415 (loads pandas)

        return config_from_frame(self.frame, self.target, name=self.name, task=task, settings=settings, split=split)


def join_targets(target: str | Sequence[str]) -> str:
    """Columns as a file's address names them: by commas, in quotes where a name has commas itself."""
    if isinstance(target, str):
        return target
    names = list(target)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"{the('target')} must be the name of a column, or of several. Got {names!r} instead.")
    odd = [len(names) > 1 and (name != name.strip() or bool({",", '"'} & set(name))) for name in names]
    return ",".join('"' + name.replace('"', '""') + '"' if it else name for name, it in zip(names, odd, strict=True))


def collect_datasets(value: Any, target: str | Sequence[str] | None = None) -> list[Any]:
    """Names, DatasetConfigs and GivenFrames, each name once, in the order of `value`.

    `target` is the column to predict in each data frame, and in each file that names none. A dict names the data
    frames and arrays in it; others are called "data", "data2" and so on.
    """
    require("target", target, (str, list, tuple, type(None)), "the name of a column, or of several")
    target = target if target is None else join_targets(target)
    out: list[Any] = []
    frames = 0
    for name, item in _items(value):
        if isinstance(item, str):
            known = f"{item}:{target}" if target is not None and item.endswith(SUFFIXES) else item
            out += [] if any(isinstance(other, str) and other == known for other in out) else [known]
        elif isinstance(item, DatasetConfig):
            out.append(item)
        else:
            frames += 1
            called = name or ("data" if frames == 1 else f"data{frames}")
            if target is None and not _is_pair(item):
                raise ConfigError("A data frame needs the 'target' parameter: the name of the column to predict.")
            out.append(_from_arrays(item, target, called) if _is_pair(item) else GivenFrame(item, str(target), called))
    if target is not None and not frames and not any(is_file(item) for item in out):
        raise ConfigError(f"{the('target')} is for data frames and files. Got '{target}' without either.")
    return out


def _items(value: Any) -> Iterator[tuple[str | None, Any]]:
    single = isinstance(value, (str, DatasetConfig)) or _is_frame(value) or _is_pair(value) or hasattr(value, "shape")
    if isinstance(value, Mapping):
        pairs = [*value.items()]
    else:
        items = list(value) if isinstance(value, Iterable) and not single else [value]
        pairs = [(None, one) for it in items for one in (split_items(it) if isinstance(it, str) else [it])]
    for name, item in pairs or [(None, value)]:
        known = isinstance(item, (str, DatasetConfig)) and name is None
        if not (known or _is_frame(item) or _is_pair(item)) or not isinstance(name, (str, type(None))):
            got = f"{name!r}: {_shown(item)}" if isinstance(value, Mapping) and value else _shown(item)
            raise ConfigError(f"{the('datasets')} must be {_ACCEPTED}. Got {got} instead.")
        yield name, item


def _shown(item: Any) -> str:
    """A value as a sentence can have it: an array is not written out."""
    text = repr(item)
    return text if len(text) < _LONG and "\n" not in text else f"an object of type {type(item).__name__}"


def _is_frame(item: Any) -> bool:
    """A data frame of pandas or polars, without importing either."""
    return hasattr(item, "columns") and (hasattr(item, "iloc") or hasattr(item, "to_pandas"))


def _is_pair(item: Any) -> bool:
    """Features and a target: two things of which the second is one column, and neither names a data set."""
    if not (isinstance(item, tuple) and len(item) == 2):
        return False
    x, y = item
    if isinstance(x, (str, DatasetConfig)) or isinstance(y, (str, DatasetConfig)) or _is_frame(y):
        return False
    return (_is_frame(x) or hasattr(x, "shape") or isinstance(x, list)) and hasattr(y, "__len__")


def _from_arrays(pair: tuple[Any, Any], target: str | None, name: str) -> GivenFrame:
    """Arrays as a data frame, in which text is as welcome as numbers."""
    import numpy as np  # noqa: PLC0415 (keeps start-up fast)
    import pandas as pd  # noqa: PLC0415 (slow to import)

    x, y = pair
    if hasattr(x, "tocsr"):
        raise ConfigError("The features X must be a dense array: pass X.toarray(). Got a sparse one instead.")
    if _is_frame(x):
        frame = x.copy() if hasattr(x, "iloc") else x.to_pandas()
    else:
        try:
            array = np.asarray(x)
        except ValueError:  # rows of unlike lengths
            array = np.empty(0)
        if array.ndim != 2:
            raise ConfigError(f"The features X must have two dimensions. Got {array.ndim} instead.")
        frame = pd.DataFrame(array, columns=[f"x{position}" for position in range(array.shape[1])]).infer_objects()
    labels = np.asarray(y)
    labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim not in (1, 2) or len(labels) != len(frame):
        raise ConfigError(f"The target y must be one value per row of X, {len(frame)}. Got {labels.shape} instead.")
    columns = _name_targets(target, 1 if labels.ndim == 1 else labels.shape[1])
    for column, values in zip(columns, np.atleast_2d(labels.T), strict=True):
        if column in frame.columns:
            raise ConfigError(f"The target y cannot be called '{column}', as a column of X is: set 'target'.")
        frame[column] = values
    return GivenFrame(frame, join_targets(columns), name)


def _name_targets(target: str | None, count: int) -> list[str]:
    """The names of the columns of y; of one, its name may have commas."""
    if count == 1:
        return [target or "target"]
    from boosters_eval.datasets.columns import split_targets  # noqa: PLC0415 (loads pandas)

    names = [f"target{place + 1}" for place in range(count)] if target is None else list(split_targets(target))
    if len(names) != count:
        raise ConfigError(f"{the('target')} must name the {count} columns of y. Got {target!r} instead.")
    return names
