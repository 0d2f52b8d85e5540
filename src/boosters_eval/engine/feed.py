"""Work that reaches a pool while it runs, from other threads."""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boosters_eval.engine.executor import Work


class Feed:
    """Any thread gives work; the pool, which waits for its lanes at the same time, is woken and takes it."""

    def __init__(self) -> None:
        self._given: deque[Work] = deque()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self.ended = False

    def fileno(self) -> int:
        """What becomes readable when there is something to take."""
        return self._reader.fileno()

    def put(self, work: Work) -> None:
        """Give a piece of work."""
        self._given.append(work)
        self._writer.send(b"x")

    def end(self) -> None:
        """Nothing more will come: the pool finishes what it has."""
        self.ended = True
        self._writer.send(b"x")

    def take(self) -> list[Work]:
        """All that was given since."""
        self._reader.recv(1 << 16)
        return [self._given.popleft() for _ in range(len(self._given))]

    def close(self) -> None:
        """Close the sockets, once nobody gives or takes."""
        self._reader.close()
        self._writer.close()
