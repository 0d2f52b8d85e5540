"""YAML from outside as plain data that knows its lines. Nothing is constructed, and numbers keep their digits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import compose_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NODES = 200_000  # of a whole file, with every alias counted as often as it is used
MAX_DEPTH = 100
_PLAIN = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "timestamp", "value")
)
# YAML 1.2's core schema. The older one would read 1:30 as 90, and the model names "no" and "on" as booleans.
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"})
_WORDS = {"": None, "~": None, "null": None, "Null": None, "true": True, "True": True, "false": False, "False": False}


class PlacedError(FileFormatError):
    """A mistake in a file, with the file and the line in front of the sentence."""


class UnplacedError(ConfigError):
    """A mistake in keyword arguments, which know no lines; whoever has them adds them, by the path to it."""

    path: tuple[str | int, ...] = ()


class PrintedInt(int):
    """A whole number as it was written."""

    text: str


class PrintedFloat(float):
    """A number as it was written: 0.870 has three decimals."""

    text: str


class PlacedDict(dict[Any, Any]):
    """A mapping of a file. `lines` has the line of each key."""

    source: str
    line: int
    lines: dict[str, int]


class PlacedList(list[Any]):
    """A list of a file. `lines` has the line of each item."""

    source: str
    line: int
    lines: dict[int, int]


def parse_yaml(text: str, source: str) -> PlacedDict:
    """The mapping that a YAML file holds. Tags, doubled keys and files of aliases that explode are refused."""
    try:
        root = compose_yaml(text, source, values=MAX_NODES)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}, line {mark.line + 1}" if mark else source
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise PlacedError(f"{where}: This is not YAML: {what}.") from None
    except RecursionError:
        raise PlacedError(f"{source}: This is nested too deeply.") from None
    if not isinstance(root, yaml.MappingNode):
        raise PlacedError(f"{source}, line 1: The file must be a mapping of keys to values.")
    found = _Reader(source).read(root, 0)
    assert isinstance(found, PlacedDict)  # noqa: S101 (for the type checker)
    return found


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.count = 0

    def read(self, node: yaml.Node, depth: int) -> Any:
        self.count += 1
        if self.count > MAX_NODES or depth > MAX_DEPTH:
            raise PlacedError(f"{self._at(node)}: The file has more than {MAX_NODES} values or {MAX_DEPTH} levels.")
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            items = PlacedList(self.read(item, depth + 1) for item in node.value)
            items.source, items.line = self.source, _line(node)
            items.lines = {position: _line(item) for position, item in enumerate(node.value)}
            return items
        if isinstance(node, yaml.ScalarNode) and node.tag in _PLAIN:
            return _scalar(node)
        raise PlacedError(f"{self._at(node)}: The tag '{node.tag}' is refused: a specification is data only.")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> PlacedDict:
        found = PlacedDict()
        found.source, found.line, found.lines = self.source, _line(node), {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _PLAIN:
                raise PlacedError(f"{self._at(key_node)}: A key must be a name.")
            if key_node.value in found:
                raise PlacedError(f"{self._at(key_node)}: The key '{key_node.value}' is there twice.")
            found[key_node.value] = self.read(value_node, depth + 1)
            found.lines[key_node.value] = _line(key_node)
        return found

    def _at(self, node: yaml.Node) -> str:
        return f"{self.source}, line {_line(node)}"


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if node.style:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    digits = text.replace("_", "")
    number = PrintedInt(digits) if re.fullmatch(r"[-+]?\d{1,4000}", digits) else PrintedFloat(digits)
    number.text = text
    return number


def locate_error(data: Any, path: Sequence[str | int], sentence: str) -> ConfigError:
    """A mistake with its file, line and key in front; without them for data that came from elsewhere.

    The line is that of what the path leads to, or of the nearest thing around it that the file has.
    """
    source, line = getattr(data, "source", ""), getattr(data, "line", None)
    keys = []
    for part in path:
        lines: dict[Any, int] = getattr(data, "lines", {})
        if part in lines:  # else it is no key, but the name of a type among alternatives
            line, data = lines[part], data[part]
            keys += [part] if isinstance(part, str) else []
    if line is None:
        error = UnplacedError(sentence)
        error.path = tuple(path)
        return error
    key = f", key '{'.'.join(keys)}'" if keys and f"'{keys[-1]}'" not in sentence else ""
    return PlacedError(f"{source}, line {line}{key}: {sentence}")


def dump_yaml(data: Any) -> str:
    """Plain data for people and programs: text stays text for every reader, and nothing in it is invisible."""
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    harmful = {char for char in text if not char.isprintable()} - {"\n"}  # all of it is in quotes
    return text.translate({ord(char): f"\\U{ord(char):08X}" for char in harmful})


class _Dumper(yaml.SafeDumper):
    """Text stays text for every reader: what could be a number or a word of YAML is quoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (a file without references is easier to read)
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text[:1].isalpha() and text.isprintable() and text.lower() not in _RESERVED
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


def _represent_number(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(value))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_number)
