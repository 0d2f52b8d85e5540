"""A user's own file or data frame as a data set, and the file `data.csv.yaml` beside it that says how it is read."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import yaml

from boosters_eval.core.errors import ConfigError, DataFileError, DatasetError, FileFormatError
from boosters_eval.core.files import check_format, check_regular, compose_yaml, read_text
from boosters_eval.core.model import Model
from boosters_eval.core.reader import ReaderAnswer, read_apart
from boosters_eval.core.terms import the
from boosters_eval.core.text import make_encodable
from boosters_eval.datasets.catalog import DEFAULT_QUANTILES
from boosters_eval.datasets.checks import as_table, is_frame
from boosters_eval.datasets.config import (
    COLUMN_SETTINGS,
    AuditedColumn,
    DataAudit,
    DatasetConfig,
    DataSettings,
    Examined,
    FileReading,
    SplitBy,
    SplitText,
    Table,
    parse_split,
)
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

MAX_SIDECAR = 2**18  # bytes
MAX_KEYS = 100
_MARKS = ("sep", "decimal", "thousands", "encoding")
SCHEMA_VERSION = 1


class Sidecar(DataSettings):
    """What is known about a data file; what is not set is detected from the data."""

    schema_version: Literal[1]
    kind: Literal["boosters-eval data"]
    target: str | None = None
    task: Task | None = None
    split: SplitText | None = None  # random, time:COLUMN or group:COLUMN

    @property
    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in DataSettings.model_fields if name in self.model_fields_set}


def sidecar_path(file: Path) -> Path:
    return file.with_name(f"{file.name}.yaml")


def read_sidecar(file: Path) -> Sidecar | None:
    """The sidecar of a data file, or None if it has none. A key that is unknown or there twice is a mistake."""
    path = sidecar_path(file)
    if not path.exists():
        return None
    if check_regular(path) > MAX_SIDECAR:
        raise FileFormatError(f"{path} is larger than {MAX_SIDECAR >> 10} KB, more than this program ever writes.")
    content = _parse(path, read_text(path, limit=MAX_SIDECAR))
    if "schema_version" in content:
        check_format(content["schema_version"], str(path), "a sidecar", SCHEMA_VERSION)
    try:
        return Sidecar.model_validate(content)
    except ConfigError as error:
        said = str(error).replace(" of Sidecar ", " ").replace("Sidecar has", "It has").replace(" parameter ", " key ")
        raise FileFormatError(f"{path} cannot be used. {said}") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    """A flat mapping. Anything deeper, which could be made to take forever, is refused before it is constructed."""
    try:
        root = compose_yaml(text, str(path), values=MAX_SIDECAR)
        if not isinstance(root, yaml.MappingNode):
            raise FileFormatError(f"{path} must be a mapping of keys to values, as 'datasets init' writes it.")
        if len(root.value) > MAX_KEYS:
            raise FileFormatError(f"{path} has {len(root.value)} keys, more than there are settings.")
        found: dict[str, Any] = {}
        for name, value in root.value:
            key = name.value
            items = value.value if isinstance(value, yaml.SequenceNode) else [value]
            if not isinstance(key, str) or not all(isinstance(item, yaml.ScalarNode) for item in items):
                raise FileFormatError(f"{path} must have a text, or a list of texts, for each key.")
            if key in found:
                raise FileFormatError(f"{path} has the key '{key}' twice.")
            found[key] = _construct(path, key, value)
    except yaml.YAMLError as error:
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise FileFormatError(f"{path} is not YAML: {what}.") from None
    except RecursionError:
        raise FileFormatError(f"{path} is nested too deeply.") from None
    return found


def _construct(path: Path, key: str, node: yaml.Node) -> Any:
    """A value of YAML. One that only looks like a date, or is marked as a number, fails in any way."""
    try:
        return yaml.SafeLoader("").construct_document(node)
    except (ArithmeticError, AttributeError, LookupError, ValueError):
        raise FileFormatError(f"{path} has a value under '{key}' that is none in YAML; put it in quotes.") from None


def merge_settings(
    name: str, sidecar: Sidecar, given: DataSettings | None, split: str | None, target: str
) -> tuple[DataSettings, str | None, list[str]]:
    """The settings and the split of a sidecar, replaced one by one by those that were given; what is replaced is said.

    What it says of a column gives way to an option for that column, and to its use as another target.
    """
    asked = {} if given is None else {field: getattr(given, field) for field in given.model_fields_set}
    asked |= {} if split is None else {"split": split}
    other = target if sidecar.target not in (None, target) else None
    own, gone = _still_valid(name, sidecar.settings, asked, other)
    by = parse_split(sidecar.split)
    if by is not None and by.column == other and split is None:
        gone.append(f"'split' in {name} is ignored: '{target}' is the target")
    elif sidecar.split is not None:
        own["split"] = sidecar.split
    shown = [f"{field} {_shown(value)}" for field, value in own.items() if field not in asked and _shown(value)]
    notes = [f"{name} is used" + (f": {', '.join(shown)}" if shown else "")]
    notes += [
        f"{the(field)} overrides '{field}' in {name} ({_shown(own[field])})"
        for field in asked
        if field in own and own[field] != asked[field]
    ]
    used = {**own, **asked}
    return DataSettings(**{field: used[field] for field in used if field != "split"}), used.get("split"), notes + gone


def _still_valid(
    name: str, own: dict[str, Any], asked: dict[str, Any], target: str | None
) -> tuple[dict[str, Any], list[str]]:
    """The settings of a sidecar without the columns that are given to another option, or are another target now."""
    kept, said = dict(own), []
    for field in COLUMN_SETTINGS:
        for column in own.get(field, ()):
            # A column may be kept as anything, but not dropped as well.
            others = [each for each in COLUMN_SETTINGS if "drop" in (field, each) or "keep" not in (field, each)]
            clash = [each for each in others if each != field and column in asked.get(each, ())]
            if clash and field not in asked:
                said.append(f"{the(clash[0])} overrides '{field}' in {name} for '{column}'")
            elif column == target and field in ("drop", "keep", "date"):
                said.append(f"'{field}' in {name} is ignored for '{column}': it is the target")
            else:
                continue
            kept[field] = tuple(each for each in kept[field] if each != column)
    return kept, said


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return "yes" if value is True else repr(value) if value else ""


def format_sidecar(source: str, target: str, found: Examined, settings: DataSettings) -> str:
    """The sidecar of a file that has been examined, as YAML: the settings that were found and those that were asked."""
    roles = {role: [column.name for column in found.columns if column.role == role] for role in ("categorical", "date")}
    asked = {field: (*getattr(settings, field), *roles.get(field, ())) for field in COLUMN_SETTINGS}
    content = {
        "schema_version": SCHEMA_VERSION,
        "kind": "boosters-eval data",
        "target": target,
        "task": found.task.value,
        **{mark: getattr(found.reading, mark, None) or getattr(settings, mark) for mark in _MARKS},
        **{field: list(dict.fromkeys(asked[field])) for field in ("drop", "keep", "numeric", "categorical", "date")},
        "drop_missing_target": settings.drop_missing_target,
        "split": f"{found.split.kind}:{found.split.column}" if found.split else None,
    }
    numeric = [column.name for column in found.columns if column.role == "numeric"]
    others = [name for name in numeric if name not in settings.numeric]
    written = "written by 'boosters-eval datasets init'. Options override what is here."
    head = f"# How boosters-eval reads {source}; {written}"
    stated = {key: value for key, value in content.items() if value}
    body = yaml.safe_dump(stated, sort_keys=False, allow_unicode=True, width=100)
    reason = f"# task: {found.reason}"
    tail = [f"#   {yaml.safe_dump(name, allow_unicode=True, width=10**6).splitlines()[0]}" for name in others]
    return "\n".join(
        [head.replace("\n", " "), body.rstrip(), reason.replace("\n", " "), "# numeric as found:", *tail, ""]
    )


def declare_file(
    path: str, target: str | None, task: Task | None, settings: DataSettings | None, split: str | None
) -> DatasetConfig:
    file = Path(path)
    try:
        sidecar = read_sidecar(file)
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    wanted = target or (sidecar.target if sidecar else None)
    if not wanted:
        raise ConfigError(
            f"The data set '{path}' names no target column: write '{path}:column', or save it in {path}.yaml with"
            f" 'boosters-eval datasets init {path}:column'."
        )
    if sidecar is None:
        return config_from_file(path, wanted, task, settings, split)
    used, by, notes = merge_settings(sidecar_path(file).name, sidecar, settings, split, wanted)
    known = sidecar.task if wanted == sidecar.target else None
    config = config_from_file(path, wanted, task or known, used, by)
    return config.replace(notes=(*notes, *config.notes))


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

    return _declare(file.name.split(".")[0], f"{file.name}:{target}", found, load, task)


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
    from boosters_eval.datasets.examine import Examination  # noqa: PLC0415 (loads pandas)

    found = Examination(name, target, task, asked, parse_split(split)).examine(_as_pandas(frame))
    return _declare(name, f"data frame:{target}", found, lambda: found.table, task)


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
    question = _Question(target=target, task=task, settings=settings, split=split).model_dump_json()
    given = {"file": str(file), "question": question}  # apart: a name that is no text has no place in a model
    answer = read_apart(f"{__name__}:read_table", given, source=file.name)
    told = _Told.model_validate_json(answer.text)
    parts: dict[str, Any] = {**answer.arrays, **{name: getattr(told, name) for name in _OF_TABLE}}
    return Examined(
        Table(**parts), **{name: getattr(told, name) for name in _Told.model_fields if name not in _OF_TABLE}
    )


class _Question(Model):
    """What the process that reads a file must know."""

    target: str
    task: Task | None
    settings: DataSettings
    split: SplitBy | None


class _Told(Model):
    """What it says of the file, besides the arrays of the table."""

    task: Task
    reason: str
    columns: tuple[AuditedColumn, ...]
    audit: DataAudit
    notes: tuple[str, ...]
    reading: FileReading
    split: SplitBy | None
    targets: tuple[str, ...]
    categorical: tuple[int, ...]
    feature_names: tuple[str, ...]
    category_names: dict[str, list[str]] | None
    split_column: str


_OF_TABLE = ("categorical", "feature_names", "category_names", "split_column")


def read_table(file: str, question: str) -> ReaderAnswer:
    """Read and examine a file, in the process that does nothing else."""
    from boosters_eval.datasets.examine import Examination  # noqa: PLC0415 (loads pandas, which the program may not need)
    from boosters_eval.datasets.reading import read_file  # noqa: PLC0415 (the same)

    asked = _Question.model_validate_json(question)
    frame, reading = read_file(Path(file), asked.settings)
    marks = {mark: getattr(reading, mark) or getattr(asked.settings, mark) for mark in ("decimal", "thousands")}
    settings = asked.settings.replace(**marks)
    found = Examination(make_encodable(Path(file).name), asked.target, asked.task, settings, asked.split).examine(frame)
    told = {name: getattr(found, name) for name in ("task", "reason", "columns", "audit", "split", "targets")}
    told |= {name: getattr(found.table, name) for name in _OF_TABLE}
    text = _Told(**told, reading=reading, notes=(*reading.notes, *found.notes)).model_dump_json()
    arrays = {part: getattr(found.table, part) for part in ("x", "y", "groups", "split_by")}
    return ReaderAnswer(text, {part: array for part, array in arrays.items() if array is not None})


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


def _declare(name: str, source: str, found: Examined, load: Callable[[], Table], given: Task | None) -> DatasetConfig:
    table = found.table
    lists = {
        "categorical": [table.feature_names[position] for position in table.categorical],
        "dates": [column.name for column in found.columns if column.role == "date"],
        "left out": [column.name for column in found.columns if column.role == "dropped"],
    }
    said = [f"task {'given' if given else 'inferred'}: {found.task.value} ({found.reason})"]
    said += [f"{what}: {', '.join(names) or 'none'}" for what, names in lists.items() if names or what == "categorical"]
    said += [f"reading: {found.reading.text}"] if found.reading and found.reading.text else []
    safe = re.sub(r"[^\w.+ %#()$€£¥₹°-]", "_", f"{name}.{'+'.join(found.targets)}")
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
        targets=found.targets if len(found.targets) > 1 else (),
        description="; ".join(said),
        source=source,
        license="the user's own",
        notes=found.notes,
        split_by=f"{found.split.kind}:{found.split.column}" if found.split else None,
        audit=found.audit.replace(dataset=safe, reading=found.reading.text if found.reading else ""),
    )
    try:
        as_table(config, table)  # what is still wrong with it is a mistake in the user's data
    except DatasetError as error:
        raise DataFileError(str(error)) from None
    return config
