"""Silence for dask's loggers while a program uses a cluster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class QuietLoggers:
    """Dask's loggers say little that a user can act on; what matters is told in a sentence of ours."""

    def __init__(self) -> None:
        self._before = {name: logging.getLogger(name).level for name in self._names()}
        for name in self._before:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    @staticmethod
    def _names() -> Iterator[str]:
        yield "distributed"
        for name, item in logging.Logger.manager.loggerDict.items():
            if name.startswith("distributed.") and isinstance(item, logging.Logger) and item.level:
                yield name

    def end(self) -> None:
        """Let them speak again."""
        for name, level in self._before.items():
            logging.getLogger(name).setLevel(level)
