"""What the connection to a cluster tells the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.cluster.messages import CellReply, Introduction


@dataclass(frozen=True)
class Members:
    """The workers of the cluster, with their threads, and those of them that dask holds back from starting tasks."""

    threads: Mapping[str, int]
    held: frozenset[str] | None = None  # None: it was not asked for


@dataclass(frozen=True)
class Recalled:
    """The cells that a worker had not begun, and has given back, by number."""

    address: str
    numbers: frozenset[int]


@dataclass(frozen=True)
class Left:
    """A worker is gone; one that was retired has not died."""

    address: str
    retired: bool = False


@dataclass(frozen=True)
class Met:
    """What a worker says of itself, or why it cannot say anything; None if it cannot be reached."""

    address: str
    question: str
    told: Introduction | str | None


@dataclass(frozen=True)
class Posted:
    """A node is ready (''), or what is wrong with it; None if it cannot be reached."""

    address: str
    question: str
    fault: str | None


@dataclass(frozen=True)
class Sent:
    """An input is on a node, or what is wrong: with the input or the node's store, or only with the call."""

    address: str
    digest: str
    fault: str = ""
    interrupted: str = ""


@dataclass(frozen=True)
class Answered:
    """What became of a cell."""

    number: int
    reply: CellReply


ClusterNews = Members | Recalled | Left | Met | Posted | Sent | Answered
