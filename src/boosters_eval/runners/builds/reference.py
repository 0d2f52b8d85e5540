"""What a user names a competitor by: a library or the file of its runner, or a build of it.

A library is a registered name, `path/to/file.py:Class`, or the class itself; a build is `[NAME=]LIBRARY==VERSION` or
`[NAME=]LIBRARY@PATH`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.distributions import normalized
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import resolved
from boosters_eval.core.modules import address_of, named_in
from boosters_eval.core.terms import the
from boosters_eval.core.text import join_words
from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from boosters_eval.runners.base import Runner

FORMS = "LIBRARY, LIBRARY==VERSION or LIBRARY@PATH, with NAME= before it if you like"
_NAMED = re.compile(r"([^=@<>!~/\\:]*)=(?!=)(.+)", re.DOTALL)
_LIBRARY = re.compile(r"(.+\.py:[A-Za-z_]\w*|[^=@<>!~]+?)(==|@|>=|<=|!=|~=|>|<)(.*)", re.DOTALL)
_CLASS = re.compile(r"[^=]*\.py:[A-Za-z_]\w*")  # a runner in a file, whose folder may have an @ in its name
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?", re.IGNORECASE)


@dataclass(frozen=True)
class BuildReference:
    """A build that a user asks for: a released version, or what lies at a path."""

    runner: type[Runner]  # of the library that it is a build of
    spelt: str  # the library as the user named it, by a file perhaps
    version: str | None = None
    path: Path | None = None  # a wheel, or a folder with the library's source
    name: str | None = None

    @property
    def library(self) -> str:
        return self.runner.name

    @property
    def is_wheel(self) -> bool:
        return self.path is not None and self.path.suffix == ".whl"

    @property
    def label(self) -> str:
        """The competitor's name: the one that was given, or what distinguishes the build most plainly."""
        if self.name is not None:
            return self.name
        if self.path is None:
            return f"{self.library}=={self.version}"
        found = wheel_parts(self.path)[1] if self.is_wheel else self.path.resolve().name
        return f"{self.library}@{re.sub(r'[^A-Za-z0-9._+-]+', '-', found)}"

    def __str__(self) -> str:
        what = f"=={self.version}" if self.path is None else f"@{self.path}"
        return f"{self.spelt}{what}"


def is_reference(text: object) -> bool:
    if not isinstance(text, str) or _CLASS.fullmatch(text):
        return False
    return bool(_NAMED.fullmatch(text)) or bool(_LIBRARY.fullmatch(text))


def parse_reference(text: str) -> BuildReference:
    """The build that a text names; anything else is refused in one sentence."""
    named = _NAMED.fullmatch(text)
    name, rest = (named[1].strip(), named[2]) if named else (None, text)
    found = _LIBRARY.fullmatch(rest)
    if found is None:
        raise ConfigError(f"The build '{text}' has neither a version nor a path: write {FORMS}.")
    library, sign, value = found[1].strip(), found[2], found[3].strip()
    runner = RUNNERS[library_name(library)]
    _check_name(name, runner.name, text)
    if sign == "@":
        return BuildReference(runner, library, path=_checked(value, runner, text), name=name)
    if sign != "==" or not _VERSION.fullmatch(value):
        raise ConfigError(f"The version of a build must be exact, such as {library}==1.2.3. Got '{text}' instead.")
    return BuildReference(runner, library, version=value, name=name)


def is_version(text: str) -> bool:
    return bool(_VERSION.fullmatch(text))


def parts_of(text: str) -> tuple[str, str, str] | None:
    """The library, the sign and the version or path of what may name a build, without looking whether there is any."""
    named = _NAMED.fullmatch(text)
    found = _LIBRARY.fullmatch(named[2] if named else text)
    return None if found is None else (found[1].strip(), found[2], found[3].strip())


def label_of(text: str) -> str:
    """The name of the competitor that a text names, found without installing it; a label stays as it is."""
    try:
        return parse_reference(text).label if is_reference(text) else text
    except ConfigError:
        return text


def _check_name(name: str | None, library: str, text: str) -> None:
    if name is None or name == library:
        return
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"The name of a build must be letters, digits, '.', '+', '-' and '_', at most 64. Got '{name}' in '{text}'."
        )
    if name in RUNNERS:
        raise ConfigError(f"The build '{text}' cannot be named '{name}': that is another library.")


def _checked(value: str, runner: type[Runner], text: str) -> Path:
    """The path, which must be a wheel of this library or a folder that pip can build."""
    if not value:
        raise ConfigError(f"The build '{text}' names no path: write {FORMS}.")
    path = resolved(Path(value).expanduser()).absolute()
    if not path.exists():
        raise ConfigError(f"The build '{text}': there is no file or folder {path}.")
    if path.is_dir():
        if not any((path / name).is_file() for name in ("pyproject.toml", "setup.py")):
            raise ConfigError(f"The build '{text}': the folder {path} has no pyproject.toml.")
        return path
    if path.suffix != ".whl":
        raise ConfigError(f"The build '{text}' must be a wheel (.whl) or a source folder. Got the file {path} instead.")
    found = wheel_parts(path)[0]
    if normalized(found) not in map(normalized, runner.distributions):
        raise ConfigError(
            f"The wheel {path.name} is one of {found}, not of {runner.name} ({join_words(runner.distributions, 'or')})."
        )
    return path


def wheel_parts(path: Path) -> tuple[str, str]:
    """Distribution and version, by the wheel's file name, which a wheel must have."""
    parts = path.name.removesuffix(".whl").split("-")
    if len(parts) not in {5, 6}:
        raise ConfigError(
            f"The wheel {path.name} does not have a wheel's name, DISTRIBUTION-VERSION-PYTHON-ABI-PLATFORM.whl."
        )
    return parts[0], parts[1]


def library_name(item: Any) -> str:
    """The name of the library. A class is registered under the name that it gives itself; its file is in its build."""
    if isinstance(item, type):
        return _register(item, item.__name__)
    if not isinstance(item, str):
        raise ConfigError(
            f"{the('libraries')} must be names, 'path/to/file.py:Class' or Runner classes. Got {item!r} instead."
        )
    path, found, name = item.partition(".py:")
    if found:
        return _register(named_in(resolved(Path(f"{path}.py")), name, "runner"), item)
    if item.endswith(".py"):
        raise ConfigError(f"The library '{item}' names no runner: write '{item}:Class'.")
    return item


def _register(runner: Any, given: str) -> str:
    name = getattr(runner, "name", None)
    if isinstance(runner, type):
        address_of(runner, "runner")  # what workers could not find is refused before it is known
    known = RUNNERS.get(name) if isinstance(name, str) else None
    places = [(getattr(item, "__module__", None), getattr(item, "__qualname__", None)) for item in (known, runner)]
    if known is not None and places[0] == places[1]:  # the class that is known, perhaps loaded again
        RUNNERS.register(str(name), runner, replace=True)
        return str(name)
    if isinstance(name, str) and name in RUNNERS:
        raise ConfigError(f"The library '{given}' calls itself '{name}', which is another library: set another name.")
    RUNNERS.register(name if isinstance(name, str) else given, runner)  # refuses what is not a whole runner
    return RUNNERS[str(name)].name
