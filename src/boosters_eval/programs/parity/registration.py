"""Methods, backends and generators from a user's file."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.modules import load_file
from boosters_eval.programs.parity.backend import BACKENDS, Backend
from boosters_eval.programs.parity.data import GENERATORS, Generator
from boosters_eval.programs.parity.method import METHODS, MethodSpec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from boosters_eval.core.registry import Registry


def register_files(files: Iterable[Path]) -> None:
    """Register the methods, backends and generators of files, which are the user's own code."""
    for file in files:
        register_file(file)


def register_file(file: Path) -> None:
    """Register whatever a file defines. A name that is taken is refused: nothing shipped is replaced in silence."""
    module = load_file(file.absolute())
    found = [item for item in vars(module).values() if _is_own(item, module.__name__)]
    if not found:
        raise ConfigError(f"The file {file} defines no method, backend or data generator.")
    for item in found:
        registry: Registry[Any] = _registry_of(item)
        name = getattr(item, "name", None)
        if not isinstance(name, str) or not name:
            raise ConfigError(f"The file {file} defines the {registry.kind} {item.__name__}, which has no name.")
        if name in registry and registry[name] is not item:
            raise ConfigError(f"The file {file} defines the {registry.kind} '{name}', but that name is taken.")
        registry.register(name, item, replace=True)


def _registry_of(item: MethodSpec | type) -> Registry[Any]:
    if isinstance(item, MethodSpec):
        return METHODS
    return BACKENDS if issubclass(item, Backend) else GENERATORS


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
