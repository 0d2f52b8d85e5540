"""From what a user names to a competitor; a build is installed on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BuildError, ConfigError
from boosters_eval.runners import RUNNERS, Runner
from boosters_eval.runners.builds.install import install_reference
from boosters_eval.runners.builds.reference import is_reference, parse_reference
from boosters_eval.runners.builds.store import changed_since
from boosters_eval.runners.installed import installed_build
from boosters_eval.runners.resolve import library_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def resolve_build(text: str, *, home: Path | None = None, isolated: bool = False) -> type[Runner]:
    """The adapter of the build that a text names, installed if it is not yet."""
    reference = parse_reference(text)
    build = install_reference(reference, home=home, isolated=isolated)
    return reference.runner.at(reference.label, build.installation)


def resolve_competitors(items: Iterable[Any], home: Path | None = None) -> dict[Any, type[Runner]]:
    """The adapter of each competitor: a library, or a build, which is installed on first use.

    Two that have one name, or are the same build, are refused.
    """
    every = list(items)
    for item in every:
        if not isinstance(item, (str, type)):
            library_name(item)  # refuses it
    found = {item: _competitor(item, home) for item in dict.fromkeys(every)}
    names: dict[str, Any] = {}
    for item, runner in found.items():
        other = names.setdefault(runner.name, item)
        if found[other].installation != runner.installation:
            build = other if runner.installation is None else item
            raise ConfigError(
                f"Two competitors are named '{runner.name}' ({_shown(other)} and {_shown(item)}): give one of"
                f" them another name, as in NAME={_shown(build).removeprefix(f'{runner.name}=') or build}."
            )
    if any(runner.installation is not None for runner in found.values()):
        _refuse_equal({name: found[item] for name, item in names.items()})
    return found


def _competitor(item: Any, home: Path | None) -> type[Runner]:
    if isinstance(item, type) and issubclass(item, Runner) and item.installation is not None:
        return _unchanged(item)
    if isinstance(item, str) and is_reference(item):
        return resolve_build(item, home=home)
    return RUNNERS[library_name(item)]


def _unchanged(runner: type[Runner]) -> type[Runner]:
    """A build that was named before, which nobody has looked at since."""
    fault = "" if runner.installation is None else changed_since(runner.installation)
    if fault:
        raise BuildError(
            f"{runner.name}: {fault}; name it again by its version or its path, and it is installed again."
        )
    return runner


def _refuse_equal(runners: dict[str, type[Runner]]) -> None:
    """The same files under two names would be compared with themselves, as if that could tell something."""
    seen: dict[str, str] = {}
    for name, runner in runners.items():
        build = installed_build(runner) if runner.missing() is None else None
        if build is None:
            continue
        other = seen.setdefault(build.digest, name)
        if other != name:
            raise ConfigError(
                f"'{other}' and '{name}' are the same build of {runner.library()} ({build.version}, digest"
                f" {build.digest}): leave one of them out."
            )


def _shown(item: Any) -> str:
    return str(getattr(item, "__name__", item))
