"""pip as a module of this interpreter, told to install into a folder of the store and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boosters_eval.builds.reference import BuildReference
    from boosters_eval.runners.installation import Installation


def install_reference(
    reference: BuildReference,
    *,
    home: Path | None = None,
    say: Callable[[str], None] | None = None,
    isolated: bool = False,
) -> Installation:
    """The build, installed on first use."""
    raise NotImplementedError


def released_versions(library: str) -> list[str]:
    """The versions of a library that pip finds, ascending, without pre-releases."""
    raise NotImplementedError
