"""The competitors of this process by name: registered libraries, and builds of them by their labels.

Two threads may use one name for different builds at the same time: each gets the build that it named itself.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING

from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.runners.base import Runner

_builds: dict[str, type[Runner]] = {}  # not in RUNNERS: nobody who asks for all libraries means them
_said_here: ContextVar[Mapping[str, type[Runner] | None]] = ContextVar("builds", default=MappingProxyType({}))


def runner_of(target: str) -> type[Runner]:
    """The runner of a build that is known by this label, or of the library of this name."""
    build = _build(target)
    return RUNNERS[target] if build is None else build


def library_of(target: str) -> str:
    """The library that a target is a build of; a library's own name stays."""
    build = _build(target)
    return target if build is None else build.library()


def known_as(label: str, runner: type[Runner]) -> None:
    """Make a build known by its label; a later one of the same label takes its place."""
    _builds[label] = runner
    _said_here.set({**_said_here.get(), label: runner})


def forget(label: str) -> None:
    """Let the label mean what it did before; unknown labels are no fault."""
    _builds.pop(label, None)
    _said_here.set({**_said_here.get(), label: None})


def is_known_build(label: str) -> bool:
    """Whether a build of this process has the label."""
    return _build(label) is not None


def _build(label: str) -> type[Runner] | None:
    here = _said_here.get()
    return here[label] if label in here else _builds.get(label)
