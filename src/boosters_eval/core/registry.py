"""Names and what stands behind them: built in, registered by the user, or provided by a third party's package."""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from boosters_eval.core.errors import ConfigError, UnknownNameError, describe_error, fold, match, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint, EntryPoints

T = TypeVar("T")


def must_be(kind: type) -> Callable[[object], str]:
    """The fault of an item that is not an object of this type."""
    return lambda item: "" if isinstance(item, kind) else f"it must be a {kind.__name__}, got {_shown(item)}"


def must_extend(base: type) -> Callable[[object], str]:
    """The fault of an item that is not a whole subclass of this type."""

    def fault(item: object) -> str:
        if not (isinstance(item, type) and issubclass(item, base)):
            return f"it must be a subclass of {base.__module__}.{base.__name__}, got {_shown(item)}"
        lacking = sorted(getattr(item, "__abstractmethods__", ()))
        return f"{item.__name__} does not define {', '.join(lacking)}" if lacking else ""

    return fault


def _shown(item: object) -> str:
    return f"the class {item.__name__}" if isinstance(item, type) else f"an object of type {type(item).__name__}"


class _Offer(NamedTuple):
    """What an installed package offers, not imported yet."""

    point: EntryPoint


@functools.cache
def _points(path: tuple[str, ...]) -> EntryPoints:  # noqa: ARG001 (where the packages are looked for)
    """What all packages offer to anybody: they are read once for all registries."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (loads email; some registries never ask)

    return entry_points()


class Registry(Generic[T]):
    """A mapping from names, of `builtin` and of an entry-point group, to items that are imported when asked for."""

    def __init__(
        self,
        kind: str,
        *,
        group: str | None = None,
        builtin: Callable[[], dict[str, T]] = dict,
        fault: Callable[[object], str] = lambda _: "",
    ) -> None:
        self.kind = kind
        self._fault = fault  # what is wrong with an item, as in "it must be ..."; '' if nothing is
        self._broken: dict[str, str] = {}
        self._group = group
        self._builtin = builtin
        self._items: dict[str, T | _Offer] | None = None
        self._lock = threading.Lock()

    def _known(self) -> dict[str, T | _Offer]:
        """Every name in the order of registration; what a package offers is imported when it is asked for."""
        if self._items is None:
            items: dict[str, T | _Offer] = dict(self._builtin())
            for point in _points(tuple(sys.path)).select(group=self._group) if self._group else ():
                items.setdefault(point.name, _Offer(point))
            with self._lock:  # another thread may be here too: the first to have all of them wins
                self._items = items if self._items is None else self._items
        return self._items

    def _loaded(self, name: str) -> dict[str, T]:
        """The items, of which this one is loaded if there is one."""
        found = self._known().get(name)
        if isinstance(found, _Offer):
            self._load(found.point)
        return cast("dict[str, T]", self._known())

    def _all(self) -> dict[str, T]:
        for name in list(self._known()):
            self._loaded(name)
        return cast("dict[str, T]", self._known())

    def _load(self, point: EntryPoint) -> None:
        """A third party's package that cannot be loaded must not take the rest with it: only its own name fails."""
        try:
            item = point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a foreign package may fail in any way)
            self._broken[point.name] = f"cannot be loaded: {describe_error(error)}"
        else:
            fault = self._fault(item)
            if not fault:
                self._known()[point.name] = item
                return
            article = "an" if self.kind[0] in "aeiou" else "a"
            self._broken[point.name] = f"is not {article} {self.kind} ({point.value}): {fault}"
        del self._known()[point.name]

    def register(self, name: str, item: T, *, replace: bool = False) -> T:
        """Add an item. What cannot be used is refused here, not when it is needed; a name is replaced on request."""
        require("name", name, str, f"the name of the {self.kind}")
        fault = self._fault(item)
        if fault:
            raise ConfigError(f"The {self.kind} '{name}' cannot be registered: {fault}.")
        if name in self._loaded(name) and not replace:
            raise ConfigError(f"The {self.kind} '{name}' is already registered; pass replace=True to replace it.")
        self._known()[name] = item
        return item

    def unregister(self, name: str) -> None:
        self[name]
        del self._known()[name]

    def __getitem__(self, name: str) -> T:
        try:
            return self._loaded(name)[name]
        except (KeyError, TypeError):  # a TypeError: what cannot be hashed is no name either
            if isinstance(name, str) and name in self._broken:
                raise ConfigError(f"The {self.kind} '{name}' of an installed package {self._broken[name]}.") from None
            meant = self._match(name) if isinstance(name, str) else None
            if meant is not None and meant != name:
                return self[meant]
            raise UnknownNameError(self.kind, name, self._all()) from None

    def _match(self, name: str) -> str | None:
        """The name that is meant, which may end in what it is a name of: QUICK_SUITE is quick."""
        whole, kind = fold(name), fold(self.kind)
        meant = match(name, self._known())
        return match(whole.removesuffix(kind), self._known()) if meant is None and whole.endswith(kind) else meant

    def get(self, name: str, default: T | None = None) -> T | None:
        return self._loaded(name).get(name, default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @property
    def broken(self) -> dict[str, str]:
        """What third parties provide but could not be loaded, with the reason."""
        self._all()
        return dict(self._broken)

    def items(self) -> list[tuple[str, T]]:
        return list(self._all().items())

    def values(self) -> list[T]:
        return list(self._all().values())
