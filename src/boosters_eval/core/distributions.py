"""Which distributions are installed, and in which version, without importing them."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def find_distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def normalized(name: str) -> str:
    """A distribution's name as its files spell it, so that two spellings of one name are equal."""
    return re.sub(r"[-_.]+", "_", name).lower()


def distributions_in(folders: Sequence[str]) -> dict[str, Distribution]:
    """What is installed in these folders alone, by normalized name."""
    return {normalized(found.name): found for found in distributions(path=list(folders)) if found.name}


def installed_version(name: str) -> str | None:
    """The version of a distribution, or None. It is read again only once a folder of the path has changed."""
    return _version(name, tuple((place, _modified(place or ".")) for place in sys.path))


@lru_cache(maxsize=256)
def _version(name: str, places: tuple[tuple[str, int], ...]) -> str | None:  # noqa: ARG001 (they decide what is found)
    found = find_distribution(name)
    return found.version if found else None


def _modified(place: str) -> int:
    try:
        return os.stat(place).st_mtime_ns  # noqa: PTH116 (asked for thousands of times)
    except OSError:
        return 0
