"""The file `data.csv.yaml` beside a data file: how it is read, so that a comparison of it is repeatable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import yaml

from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import check_format, check_regular, read_text
from boosters_eval.datasets.config import COLUMN_SETTINGS, DataSettings, SplitText, parse_split
from boosters_eval.metrics.task import Task  # noqa: TC001 (pydantic needs it)

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.datasets.examine import Examined

MAX_SIDECAR = 2**18  # bytes
MAX_KEYS = 100
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
        """The settings that are in the file."""
        return {name: getattr(self, name) for name in DataSettings.model_fields if name in self.model_fields_set}


def sidecar_path(file: Path) -> Path:
    """Where the sidecar of a data file is."""
    return file.with_name(f"{file.name}.yaml")


def read_sidecar(file: Path) -> Sidecar | None:
    """The sidecar of a data file, or None if it has none. A key that is unknown or there twice is a mistake."""
    path = sidecar_path(file)
    if not path.exists():
        return None
    if check_regular(path) > MAX_SIDECAR:
        raise FileFormatError(f"{path} is larger than {MAX_SIDECAR >> 10} KB, more than this program ever writes.")
    content = _parsed(path, read_text(path, limit=MAX_SIDECAR))
    if "schema_version" in content:
        check_format(content["schema_version"], str(path), "a sidecar", SCHEMA_VERSION)
    try:
        return Sidecar.model_validate(content)
    except ConfigError as error:
        said = str(error).replace(" of Sidecar ", " ").replace("Sidecar has", "It has").replace(" parameter ", " key ")
        raise FileFormatError(f"{path} cannot be used. {said}") from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    """A flat mapping. Anything deeper, which could be made to take forever, is refused before it is constructed."""
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise FileFormatError(f"{path} must be a mapping of keys to values, as 'datasets init' writes it.")
        if len(root.value) > MAX_KEYS:
            raise FileFormatError(f"{path} has {len(root.value)} keys, more than there are settings.")
        keys = [key.value for key, _ in root.value]
        for key, (_, value) in zip(keys, root.value, strict=True):
            items = value.value if isinstance(value, yaml.SequenceNode) else [value]
            if not isinstance(key, str) or not all(isinstance(item, yaml.ScalarNode) for item in items):
                raise FileFormatError(f"{path} must have a text, or a list of texts, for each key.")
            if keys.count(key) > 1:
                raise FileFormatError(f"{path} has the key '{key}' twice.")
        return {str(key): value for key, value in loader.construct_document(root).items()}
    except yaml.YAMLError as error:
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise FileFormatError(f"{path} is not YAML: {what}.") from None
    except RecursionError:
        raise FileFormatError(f"{path} is nested too deeply.") from None
    finally:
        loader.dispose()


def merged(
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
        gone.append(f"the split of {name} is not followed: '{target}' is the target")
    elif sidecar.split is not None:
        own["split"] = sidecar.split
    shown = [f"{field} {_shown(value)}" for field, value in own.items() if field not in asked and _shown(value)]
    notes = [f"{name} is used" + (f": {', '.join(shown)}" if shown else "")]
    notes += [
        f"--{field.replace('_', '-')} replaces the {field} of {name} ({_shown(own[field])})"
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
            clash = [option for option in _instead_of(field) if column in asked.get(option, ())]
            if clash and field not in asked:
                said.append(f"--{clash[0]} comes before the {field} of {name} for '{column}'")
            elif column == target and field in ("drop", "keep", "date"):
                said.append(f"the {field} of {name} is not followed for '{column}': it is the target")
            else:
                continue
            kept[field] = tuple(each for each in kept[field] if each != column)
    return kept, said


def _instead_of(field: str) -> list[str]:
    """The settings that a column cannot have together with this one: one may be kept as anything, but not dropped."""
    others = [other for other in COLUMN_SETTINGS if other != field]
    return [other for other in others if "drop" in (field, other) or "keep" not in (field, other)]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return "yes" if value is True else repr(value) if value else ""


def sidecar_text(source: str, target: str, found: Examined, settings: DataSettings) -> str:
    """The sidecar of a file that has been examined, as YAML: the settings that were found and those that were asked."""
    roles = {role: [column.name for column in found.columns if column.role == role] for role in ("categorical", "date")}
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": "boosters-eval data",
        "target": target,
        "task": found.task.value,
    }
    for field in ("sep", "decimal", "thousands", "encoding"):
        value = getattr(found.reading, field, None) or getattr(settings, field)
        content |= {field: value} if value else {}
    for field in ("drop", "keep", "numeric", "categorical", "date"):
        names = list(dict.fromkeys((*getattr(settings, field), *roles.get(field, ()))))
        content |= {field: names} if names else {}
    content |= {"drop_missing_target": True} if settings.drop_missing_target else {}
    content |= {"split": f"{found.split.kind}:{found.split.column}"} if found.split else {}
    others = [
        column.name for column in found.columns if column.role == "numeric" and column.name not in settings.numeric
    ]
    head = (
        f"# How boosters-eval reads {source}; written by 'boosters-eval datasets init'. Options replace what is here."
    )
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    reason = f"# task: {found.reason}"
    tail = [f"#   {yaml.safe_dump(name, allow_unicode=True, width=10**6).splitlines()[0]}" for name in others]
    return "\n".join(
        [head.replace("\n", " "), body.rstrip(), reason.replace("\n", " "), "# numeric as found:", *tail, ""]
    )
