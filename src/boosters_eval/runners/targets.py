"""The competitors of this process by name: registered libraries, and builds of them by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from boosters_eval.runners.base import Runner

_builds: dict[str, type[Runner]] = {}  # not in RUNNERS: nobody who asks for all libraries means them


def runner_of(target: str) -> type[Runner]:
    """The runner of a build that is known by this label, or of the library of this name."""
    build = _builds.get(target)
    return RUNNERS[target] if build is None else build


def library_of(target: str) -> str:
    """The library that a target is a build of; a library's own name stays."""
    build = _builds.get(target)
    return target if build is None else build.library()


def known_as(label: str, runner: type[Runner]) -> None:
    """Make a build known by its label; a later one of the same label takes its place."""
    _builds[label] = runner


def forget(label: str) -> None:
    """Let the label mean what it did before; unknown labels are no fault."""
    _builds.pop(label, None)


def is_known_build(label: str) -> bool:
    """Whether a build of this process has the label."""
    return label in _builds
