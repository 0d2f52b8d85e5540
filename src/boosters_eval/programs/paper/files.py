"""Results and comparisons as files: JSON, or YAML for people. Reading one needs no engine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeVar

import yaml

from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import check_format, load_json, read_text
from boosters_eval.core.model import Model
from boosters_eval.core.text import escape_json
from boosters_eval.programs.paper.comparison import PaperComparison
from boosters_eval.programs.paper.results import PaperResults
from boosters_eval.programs.paper.source import parse_yaml

_AnyModel = TypeVar("_AnyModel", bound=Model)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"})


def read_results(source: Path | PaperResults) -> PaperResults:
    """What `paper run` wrote, or what it would write."""
    return _read(source, PaperResults, "results of 'paper run'")


def read_comparison(source: Path | PaperComparison) -> PaperComparison:
    """What `paper compare` wrote. A verdict that does not follow from its numbers is refused."""
    return _read(source, PaperComparison, "a comparison of 'paper compare'")


def _read(path: Path | _AnyModel, model: type[_AnyModel], what: str) -> _AnyModel:
    if isinstance(path, model):
        return path
    assert isinstance(path, Path)  # noqa: S101 (for the type checker)
    text = read_text(path)
    data = load_json(text, str(path)) if text.lstrip().startswith("{") else parse_yaml(text, str(path))
    kind = model.model_fields["kind"].default
    if not isinstance(data, dict) or data.get("kind") != kind:
        got = f"'{data['kind']}'" if isinstance(data, dict) and "kind" in data else "no 'kind'"
        raise FileFormatError(f"{path} must be {what}, of the kind '{kind}'. Got {got} instead.")
    check_format(data.get("schema_version"), str(path), f"a '{kind}' file")
    try:
        return model.model_validate(data)
    except ConfigError as error:
        raise FileFormatError(f"{path}: {error}") from None


def digest_of(path: Path) -> str:
    """The digest of a specification file, as results record it."""
    return hashlib.sha256(read_text(path).encode()).hexdigest()


def to_json(comparison: PaperComparison) -> str:
    """The comparison for programs."""
    return escape_json(comparison.model_dump_json(indent=1)) + "\n"


def to_yaml(comparison: PaperComparison) -> str:
    """The comparison for people and programs."""
    data = comparison.model_dump(mode="json")
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    harmful = {char for char in text if not char.isprintable()} - {"\n"}  # all of it is in quotes
    return text.translate({ord(char): f"\\U{ord(char):08X}" for char in harmful})


class _Dumper(yaml.SafeDumper):
    """Text stays text for every reader: what could be a number or a word of YAML is quoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (a file without references is easier to read)
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text[:1].isalpha() and text.isprintable() and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


def _number(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(value))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)
