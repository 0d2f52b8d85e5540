"""From what a user names to a competitor: the build is installed on first use and known by its label from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BuildError, ConfigError
from boosters_eval.runners import RUNNERS, Runner
from boosters_eval.runners.builds.install import install_reference
from boosters_eval.runners.builds.reference import is_reference, parse_reference
from boosters_eval.runners.builds.store import changed_since
from boosters_eval.runners.installed import installed_build
from boosters_eval.runners.resolve import library_name
from boosters_eval.runners.targets import forget, is_known_build, known_as, runner_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def resolve_build(text: str, *, home: Path | None = None, isolated: bool = False) -> type[Runner]:
    """The runner of the build that a text names, installed if it is not yet, and known by its label in this process."""
    reference = parse_reference(text)
    build = install_reference(reference, home=home, isolated=isolated)
    runner = reference.runner.at(reference.label, build.installation)
    known_as(reference.label, runner)
    return runner


def competitor_names(items: Iterable[Any], home: Path | None = None) -> list[str]:
    """The names of competitors: libraries and builds, which are installed on first use."""
    return list(dict.fromkeys(competitors_by_text(items, home).values()))


def competitors_by_text(items: Iterable[Any], home: Path | None = None) -> dict[Any, str]:
    """The name of each competitor. Two that have one name, or are the same build, are refused."""
    every = list(items)
    for item in every:
        if not isinstance(item, (str, type)):
            library_name(item)  # refuses it
    given = list(dict.fromkeys(every))
    found = [_competitor(item, home) for item in given]
    names: dict[str, tuple[Any, type[Runner]]] = {}
    for item, runner in zip(given, found, strict=True):
        known = names.setdefault(runner.name, (item, runner))
        if known[1] is not runner and known[1].installation != runner.installation:
            build = known[0] if runner.installation is None else item
            raise ConfigError(
                f"Two competitors are named '{runner.name}' ({_shown(known[0])} and {_shown(item)}): give one of"
                f" them another name, as in NAME={_shown(build).removeprefix(f'{runner.name}=') or build}."
            )
    runners = {name: runner for name, (_, runner) in names.items()}
    for name, runner in runners.items():
        if runner.installation is None:
            forget(name)  # an earlier build that took the library's place has no part in this
        else:
            known_as(name, runner)
    _refuse_equal(runners)
    return {item: runner.name for item, runner in zip(given, found, strict=True)}


def all_libraries() -> list[str]:
    """The names of all libraries, each meaning the one that is installed here."""
    names = list(RUNNERS)
    for name in names:
        forget(name)
    return names


def _competitor(item: Any, home: Path | None) -> type[Runner]:
    if isinstance(item, type) and issubclass(item, Runner) and item.installation is not None:
        return _unchanged(item)
    if isinstance(item, str) and is_known_build(item) and item not in RUNNERS and not _can_be_installed(item):
        return _unchanged(runner_of(item))
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


def _can_be_installed(label: str) -> bool:
    """Whether a label says itself what it is a build of, so that it is looked at again: a folder may have changed."""
    try:
        parse_reference(label)
    except ConfigError:
        return False
    return True


def _refuse_equal(runners: dict[str, type[Runner]]) -> None:
    """The same files under two names would be compared with themselves, as if that could tell something."""
    if all(runner.installation is None for runner in runners.values()):
        return
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
