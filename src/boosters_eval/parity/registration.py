"""Methods, backends and generators from a user's file."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.modules import load_file
from boosters_eval.parity.backend import BACKENDS, Backend
from boosters_eval.parity.data import GENERATORS, Generator
from boosters_eval.parity.method import METHODS, MethodSpec

if TYPE_CHECKING:
    from pathlib import Path


def register_file(file: Path) -> None:
    """Register whatever a file defines. A name that is taken is refused: nothing shipped is replaced in silence."""
    module = load_file(file.absolute())
    found = [item for item in vars(module).values() if _is_own(item, module.__name__)]
    if not found:
        raise ConfigError(f"The file {file} defines no method, backend or data generator.")
    for item in found:
        if isinstance(item, MethodSpec):
            METHODS.register(item.name, item)
        elif issubclass(item, Backend):
            BACKENDS.register(item.name, item)
        else:
            GENERATORS.register(item.name, item)


def _is_own(item: object, module: str) -> bool:
    if isinstance(item, MethodSpec):
        return True
    kinds = (Backend, Generator)
    return (
        isinstance(item, type)
        and issubclass(item, kinds)
        and item.__module__ == module
        and not inspect.isabstract(item)
    )
