"""Standard streams that can fail without changing the outcome of a command.

A reader that goes away, a full disk or an encoding without a character is no reason to lose a verdict: results are on
disk before anything is printed, and the exit code belongs to the command.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TextIO


class SteadyStream(io.TextIOWrapper):
    """A stream whose failure is reported once; whatever is written to it afterwards is dropped."""

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        try:
            return super().write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        """Flush, or drop what was to be written."""
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """From now on, write to nowhere. A closed pipe needs no words: its reader has had enough."""
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (a device)
            os.dup2(nowhere.fileno(), self.fileno())
        if error.errno != errno.EPIPE and self is sys.stdout:
            sys.stderr.write(f"Error: Cannot write to standard output: {error.strerror}.\n")


def steady(stream: TextIO) -> SteadyStream:
    """The same stream, made steady; what cannot be encoded is replaced."""
    assert isinstance(stream, io.TextIOWrapper)  # noqa: S101 (what a program starts with)
    encoding, lines = stream.encoding, stream.line_buffering
    return SteadyStream(stream.detach(), encoding=encoding, errors="replace", line_buffering=lines)
