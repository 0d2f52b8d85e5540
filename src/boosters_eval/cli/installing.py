"""The progress line of builds that are installed: with its seconds on a terminal, a plain line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from boosters_eval.cli.output import note, terminal_width
from boosters_eval.core.saying import listening
from boosters_eval.core.text import message

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLEAR = "\r\x1b[2K"


class _Progress:
    """Prints what is said. On a terminal, a sentence that ends in dots counts its seconds until the next one."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, text: str) -> None:
        self.stop()
        if not text.endswith("...") or not sys.stderr.isatty():
            note(text)
            sys.stderr.flush()
            return
        self._done.clear()
        self._thread = threading.Thread(target=self._tick, args=(message(text), time.monotonic()), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the line that counts, and clear it."""
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _tick(self, text: str, start: float) -> None:
        while True:
            seconds = f" {time.monotonic() - start:.0f} s"
            room = max(terminal_width(sys.stderr) - len(seconds) - 1, 10)
            sys.stderr.write(f"{_CLEAR}{text[:room]}{seconds}")
            sys.stderr.flush()
            if self._done.wait(1):
                return


@contextmanager
def shown_installing(*, quiet: bool) -> Iterator[None]:
    """Show the installation of builds while a command runs."""
    if quiet:
        yield
        return
    progress = _Progress()
    try:
        with listening(progress):
            yield
    finally:
        progress.stop()
