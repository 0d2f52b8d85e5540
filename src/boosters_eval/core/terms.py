"""Parameters in the caller's own terms: 'seeds' for whoever calls from Python, --seeds on the command line."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_options: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)


@contextmanager
def speaking_of(options: Mapping[str, str]) -> Iterator[None]:
    """Let sentences name the options of a command, by the parameters that they set; others stay parameters."""
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


def option_of(parameter: str) -> str | None:
    """The option that sets a parameter of the running command, if there is one."""
    return (_options.get() or {}).get(parameter)


def the(parameter: str) -> str:
    """The subject of a sentence: "The 'seeds' parameter", or "The '--seeds' option", or "RUN", of an argument."""
    option = option_of(parameter)
    if option is None:
        return f"The '{parameter}' parameter"
    return f"The '{option}' option" if option.startswith("-") else option


def named(parameter: str) -> str:
    """A parameter within a sentence: 'seeds', or --seeds."""
    return option_of(parameter) or f"'{parameter}'"


def given(parameter: str, value: Any = True) -> str:
    """A parameter with a value: seeds='auto' or resume=True, or --seeds auto or --resume."""
    option = option_of(parameter)
    if option is None:
        return f"{parameter}={value!r}"
    return option if value is True else f"{option} {value}"
