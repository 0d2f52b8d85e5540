"""The methods and backends that are shipped. They are imported when a registry is first read."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_MODULES = ("pls", "native", "converted", "gbdt")


def shipped(kind: type) -> dict[str, Any]:
    """What the families define of a kind, by name: objects of it, or subclasses that can be used."""
    modules = (import_module(f"{__name__}.{name}") for name in _MODULES)
    return {item.name: item for module in modules for item in _defined(module, kind)}


def _defined(module: ModuleType, kind: type) -> Iterator[Any]:
    for item in vars(module).values():
        own = isinstance(item, type) and issubclass(item, kind) and item.__module__ == module.__name__
        if isinstance(item, kind) or (own and "name" in vars(item) and not inspect.isabstract(item)):
            yield item
