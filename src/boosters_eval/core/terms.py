"""Speaking to the caller: parameters in the caller's own terms, and what is said while a program works."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_options: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)


@contextmanager
def speaking_of(options: Mapping[str, str]) -> Iterator[None]:
    """Let sentences name the options of a command, by the parameters that they set; others stay parameters."""
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


def the(parameter: str) -> str:
    """The subject of a sentence: "The 'seeds' parameter", or "The '--seeds' option" if the running command has it."""
    option = (_options.get() or {}).get(parameter)
    if option is None:
        return f"The '{parameter}' parameter"
    return f"The '{option}' option" if option.startswith("-") else option  # an argument is told by its place


def named(parameter: str) -> str:
    """A parameter within a sentence: 'seeds', or --seeds, of whichever command."""
    return _option(parameter) or f"'{parameter}'"


def given(parameter: str, value: Any = True) -> str:
    """A parameter with a value, or a list of some: seeds='auto' or resume=True, or --seeds auto or --resume."""
    option = _option(parameter)
    if option is None:
        return f"{parameter}={value!r}"
    values = value if isinstance(value, list) else [value]
    return option if value is True else " ".join([option, *map(str, values)])


def is_typed() -> bool:
    return _options.get() is not None


def get_options() -> dict[str, str] | None:
    """The options that sentences name, by their parameters; for another process that speaks to the same caller."""
    options = _options.get()
    return None if options is None else dict(options)


def _option(parameter: str) -> str | None:
    options = _options.get()
    return None if options is None else options.get(parameter, f"--{parameter.replace('_', '-')}")


_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listen(listener: Callable[[str], None] | None) -> Iterator[None]:
    """Let the listener hear what is said meanwhile. A sentence that ends in dots is of work that goes on."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_heard() -> bool:
    """Whether anybody listens, who then wants to see progress too."""
    return _listener.get() is not None


def tell(text: str) -> None:
    """Say a sentence to the listener; to nobody if there is none."""
    hears = _listener.get()
    if hears is not None:
        hears(text)
