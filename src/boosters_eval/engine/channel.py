"""Messages between the program and its worker processes: JSON over local sockets, with open files attached."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = 8  # bytes that hold the length of a message
_MOST_FILES = 4


class LaneEvent(BaseModel):
    """What a lane tells the program: of its own import, or of a cell by its number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    importing: bool = False  # it has begun
    ready: float | None = None  # the import has ended, after so many seconds
    files: dict[str, tuple[int, int]] = Field(default_factory=dict)  # that were loaded, for a pool that is kept
    failed: str | None = None  # the import has failed with this exception
    message: str = ""
    traceback: str | None = None

    number: int | None = None
    phase: str = "start"
    exit: int | None = None  # the cell has ended
    answer: str | None = None
    ended: str | None = None  # why the lane killed it
    threads: int | None = None
    stderr: str = ""


def send(channel: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message, with open files of which the receiver gets copies."""
    body = json.dumps(message).encode()
    socket.send_fds(channel, [len(body).to_bytes(_HEADER)], list(files))
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its files, or None when the other side has closed."""
    try:
        header, files, _, _ = socket.recv_fds(channel, _HEADER, _MOST_FILES)
        for file in files:
            os.set_inheritable(file, False)
        while header and len(header) < _HEADER:
            header += _some(channel, _HEADER - len(header))
        if not header:
            return None
        body = b""
        while len(body) < (size := int.from_bytes(header)):
            body += _some(channel, size - len(body))
    except (ConnectionError, EOFError):
        return None
    return json.loads(body), files


def _some(channel: socket.socket, most: int) -> bytes:
    data = channel.recv(most)
    if not data:
        raise EOFError
    return data


class Lines:
    """Lines out of a stream of bytes that arrives in pieces."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # pieces of a line that has not ended yet; joined once, when it has

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now."""
        first, *others = data.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        *whole, rest = [b"".join(self._rest), *others]
        self._rest = [rest]
        return whole
