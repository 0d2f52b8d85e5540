"""Who hears that a build is being installed: whoever asked for it, or else the program that listens to all of it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("installing", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Let the listener hear of every installation meanwhile. A sentence that ends in dots is of work that goes on."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(say: Callable[[str], None] | None, text: str) -> None:
    """Say something to whoever asked, or to the listener; to nobody if there is none."""
    hears = say or _listener.get()
    if hears is not None:
        hears(text)
