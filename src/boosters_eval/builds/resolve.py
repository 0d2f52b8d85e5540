"""From what a user names to a competitor: the build is installed on first use and known by its label from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.builds.install import install_reference, released_versions
from boosters_eval.builds.reference import is_reference, parse_reference
from boosters_eval.runners.resolve import library_name
from boosters_eval.runners.targets import is_known_build, known_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boosters_eval.runners.base import Runner

__all__ = ["competitor_name", "install_reference", "released_versions", "resolve_build"]


def resolve_build(
    text: str,
    *,
    home: Path | None = None,
    say: Callable[[str], None] | None = None,
    isolated: bool = False,
) -> type[Runner]:
    """The runner of the build that a text names, installed if it is not yet, and known by its label in this process."""
    reference = parse_reference(text)
    installation = install_reference(reference, home=home, say=say, isolated=isolated)
    runner = reference.runner.at(reference.label, installation)
    known_as(reference.label, runner)
    return runner


def competitor_name(item: Any, *, home: Path | None = None, say: Callable[[str], None] | None = None) -> str:
    """The name of a competitor: of a library, or of a build, which is installed on first use."""
    if isinstance(item, str) and not is_known_build(item) and is_reference(item):
        return resolve_build(item, home=home, say=say).name
    return item if isinstance(item, str) and is_known_build(item) else library_name(item)
