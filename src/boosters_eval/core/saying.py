"""What a program says while it works: notes, warnings about data, installations. Whoever called it may listen."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], None] | None) -> Iterator[None]:
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
