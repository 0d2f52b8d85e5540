"""What a user names a library by: a registered name, `path/to/file.py:Class`, or the runner's class itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import resolved
from boosters_eval.core.modules import address_of, named_in
from boosters_eval.core.terms import the
from boosters_eval.runners import RUNNERS


def library_name(item: Any) -> str:
    """The name of the library. A class is registered under the name that it gives itself; its file is in its build."""
    if isinstance(item, type):
        return _registered(item, item.__name__)
    if not isinstance(item, str):
        raise ConfigError(
            f"{the('libraries')} must be names, 'path/to/file.py:Class' or Runner classes. Got {item!r} instead."
        )
    path, found, name = item.partition(".py:")
    if found:
        return _registered(named_in(resolved(Path(f"{path}.py")), name, "runner"), item)
    if item.endswith(".py"):
        raise ConfigError(f"The library '{item}' names no runner: write '{item}:Class'.")
    return item


def _registered(runner: Any, given: str) -> str:
    name = getattr(runner, "name", None)
    if isinstance(runner, type):
        address_of(runner, "runner")  # what workers could not find is refused before it is known
    if isinstance(name, str) and _same(RUNNERS.get(name), runner):
        RUNNERS.register(name, runner, replace=True)
        return name
    if isinstance(name, str) and name in RUNNERS:
        raise ConfigError(f"The library '{given}' calls itself '{name}', which is another library: set another name.")
    RUNNERS.register(name if isinstance(name, str) else given, runner)  # refuses what is not a whole runner
    return RUNNERS[str(name)].name


def _same(known: Any, runner: Any) -> bool:
    """Whether it is the class that is known, or the same class loaded again."""
    places = [(getattr(item, "__module__", None), getattr(item, "__qualname__", None)) for item in (known, runner)]
    return known is not None and places[0] == places[1]
