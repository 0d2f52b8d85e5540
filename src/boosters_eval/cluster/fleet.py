"""The nodes that a program knows: what each can take, what runs where, and who is suspected of killing nodes."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from boosters_eval.cluster.messages import Introduction, Post
from boosters_eval.core.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from boosters_eval.core.request import Repeat
    from boosters_eval.engine.cell import Lane
    from boosters_eval.engine.execute import Work

_SCANNED = 64  # cells among which one is sought whose inputs are on a node already
_SOON = 60.0  # seconds within which a node that was asked is expected to answer, and one that is held back to be free
TWICE = 2  # nodes that a cell may lose


@dataclass
class PlacedCell:
    """A cell that was given to a node: the first ones of a node run, the one behind them waits there."""

    number: int
    work: Work
    address: str
    started: bool = False


@dataclass
class KnownNode:
    """A worker of the cluster, from the moment that it is heard of."""

    address: str
    threads: int
    slots: int = 1
    host: str = ""
    machine: MachineInfo | None = None
    post: Post | None = None
    ready: bool = False
    refused: str = ""
    absent: bool = False  # when the members were last asked for
    held_since: float | None = None  # when dask began to let it start no task: it is paused, or about to be retired
    failed: int = 0  # how often in a row it could not run a cell
    lacking: set[Lane] = field(default_factory=set)  # lanes that it could not load, although it has the build
    asked: float = 0.0  # when it was last asked to introduce itself
    inputs: set[str] = field(default_factory=set)
    coming: set[str] = field(default_factory=set)
    cells: list[PlacedCell] = field(default_factory=list)
    paused: float = field(default_factory=time.monotonic)  # when it was last asked to get ready

    def pause(self) -> None:
        """It gets no cells until it has answered again."""
        self.ready, self.paused = False, time.monotonic()

    @property
    def usable(self) -> bool:
        return self.ready and self.held_since is None

    @property
    def is_lost(self) -> bool:
        """Whether others take over what only this node could run."""
        held = self.held_since is not None and time.monotonic() - self.held_since >= _SOON
        return held or bool(self.refused)

    def may_load(self, lane: Lane) -> bool:
        """Whether it loads a library, as far as is known; one that is just being asked has a while to answer."""
        soon = time.monotonic() - self.paused < _SOON
        return (self.ready or soon) and not self.is_lost and lane not in self.lacking


class Fleet:
    """Decides which cell goes to which node next."""

    def __init__(self) -> None:
        self.nodes: dict[str, KnownNode] = {}
        self.waiting: deque[Work] = deque()
        self._placed: dict[int, PlacedCell] = {}
        self._deaths: Counter[str] = Counter()  # nodes that died while a cell ran, by its key
        self._on_host: Counter[str] = Counter()  # cells, by machine
        self._alone: Counter[str] = Counter()  # those of them that must be alone there
        self._hosts: dict[Repeat, str] = {}  # where the cells of a repeat run that must run alone
        self._unplaced: Counter[Repeat] = Counter()  # such cells that wait, by repeat
        self._numbers = 0

    def begin(self, works: Iterable[Work]) -> None:
        self.waiting = deque(works)
        for known in (self._placed, self._deaths, self._on_host, self._alone, self._hosts):
            known.clear()
        self._unplaced = Counter(work.cell.repeat for work in self.waiting if work.cell.spec.alone)
        for node in self.nodes.values():
            node.cells.clear()
            node.lacking.clear()
            node.coming.clear()
            node.failed = 0
            node.held_since = None if node.held_since is None else time.monotonic()

    # Who is there

    def joined(self, members: Mapping[str, int]) -> list[KnownNode]:
        new = [KnownNode(address, threads) for address, threads in members.items() if address not in self.nodes]
        self.nodes.update({node.address: node for node in new})
        return new

    def absent(self, members: Mapping[str, int]) -> list[str]:
        """The nodes that are missing for the second time: the news that they left, and why, must have been lost."""
        found = [node.address for node in self.nodes.values() if node.absent and node.address not in members]
        for node in self.nodes.values():
            node.absent = node.address not in members
        return found

    def posted(self, node: KnownNode, told: Introduction, widest: int) -> Post:
        """Its place among the nodes of its machine: as many cells as its threads allow, on CPUs that no other has.

        One that is asked anew while it has cells keeps its place: they would be stopped.
        """
        if node.post is not None and node.cells:
            return node.post
        node.host, node.machine = told.host, MachineInfo.model_validate(told.machine)
        node.slots = max(1, node.threads // widest)
        taken = {
            cpu
            for other in self.nodes.values()
            if other is not node and other.host == node.host and other.post is not None
            for cpu in other.post.cpus or ()
        }
        free = [cpu for cpu in told.cpus if cpu not in taken]
        wanted = node.slots * widest
        node.post = Post(jobs=node.slots, cpus=tuple(free[:wanted]) if len(free) >= wanted else None)
        return node.post

    def usable(self) -> list[KnownNode]:
        return [node for node in self.nodes.values() if node.usable]

    def in_flight(self) -> int:
        return len(self._placed)

    # What goes where

    def place_next(self, wanted: Mapping[str, Iterable[str]]) -> PlacedCell | None:
        """The next cell that a node can take, which has it from now on; None if there is none.

        `wanted` has the digests of each cell's inputs by its key.
        """
        free = [node for node in self.usable() if len(node.cells) <= node.slots]
        for node in sorted(free, key=lambda node: len(node.cells) / node.slots):
            index = self._choice(node, wanted)
            if index is not None:
                work = self.waiting[index]
                del self.waiting[index]
                if work.cell.spec.alone:  # times are compared within one machine: those of a repeat stay together
                    self._hosts[work.cell.repeat] = node.host
                    self._unplaced[work.cell.repeat] -= 1
                return self._place(node, work)
        return None

    def _belongs(self, work: Work, node: KnownNode) -> bool:
        if work.cell.spec.alone:
            return self._hosts.get(work.cell.repeat, node.host) == node.host
        return work.cell.lane not in node.lacking or not self._loads_elsewhere(work)

    def _loads_elsewhere(self, work: Work) -> bool:
        return any(node.may_load(work.cell.lane) for node in self.nodes.values())

    def cannot_load(self, node: KnownNode, work: Work) -> bool:
        """A node could not load the library of a cell: whether another one runs it, which gets the next such cells too.

        A timed cell stays where the others of its repeat are, and what no node can load fails.
        """
        if work.cell.spec.alone:
            return False
        node.lacking.add(work.cell.lane)
        found = self._loads_elsewhere(work)
        if found:
            self.again([work])
        return found

    def _candidates(self, node: KnownNode) -> Iterator[tuple[int, Work]]:
        timed = +self._unplaced
        if sum(timed.values()) == len(self.waiting) and all(
            self._hosts.get(repeat, node.host) != node.host for repeat in timed
        ):
            return  # a long queue that others will run need not be looked through
        found = ((index, work) for index, work in enumerate(self.waiting) if self._belongs(work, node))
        yield from islice(found, _SCANNED)

    def moved(self, wanted: Mapping[str, Iterable[str]]) -> tuple[int, PlacedCell] | None:
        """A cell that waits behind another although some node has nothing to do: its old number, and its new place."""
        for node in self._idle():
            for placed in self._behind():
                if placed.address == node.address or not self._belongs(placed.work, node):
                    continue
                if node.inputs.issuperset(wanted[placed.work.cell.key]):
                    self.ended(placed.number)
                    return placed.number, self._place(node, placed.work)
        return None

    def _idle(self) -> list[KnownNode]:
        """The nodes with a free slot, once every cell was sent to some node."""
        if self.waiting:
            return []
        return [node for node in self.usable() if len(node.cells) < node.slots and not self._alone[node.host]]

    def _behind(self) -> Iterator[PlacedCell]:
        for node in self.nodes.values():
            yield from (placed for placed in node.cells[node.slots :] if not placed.started)

    def _place(self, node: KnownNode, work: Work) -> PlacedCell:
        self._numbers += 1
        placed = PlacedCell(self._numbers, work, node.address)
        node.cells.append(placed)
        self._placed[placed.number] = placed
        self._count(node, placed, 1)
        return placed

    def _count(self, node: KnownNode, placed: PlacedCell, step: int) -> None:
        self._on_host[node.host] += step
        self._alone[node.host] += step * placed.work.cell.spec.alone

    def missing(self, wanted: Mapping[str, Iterable[str]]) -> Iterator[tuple[KnownNode, str]]:
        """The inputs that nodes should get now: those of the next cell that each could take.

        None while a cell runs alone on the machine, which they would disturb.
        """
        for node in self.usable() if self.waiting else self._idle():
            if len(node.cells) > node.slots or node.coming or self._alone[node.host]:
                continue
            behind = ((0, placed.work) for placed in self._behind())
            _, work = next(self._candidates(node) if self.waiting else behind, (0, None))
            for digest in () if work is None else wanted[work.cell.key]:
                if digest not in node.inputs:
                    node.coming.add(digest)
                    yield node, digest

    def _choice(self, node: KnownNode, wanted: Mapping[str, Iterable[str]]) -> int | None:
        suspicious = any(self.suspect(placed.work) for placed in node.cells)
        behind = len(node.cells) >= node.slots
        if self._alone[node.host] or (behind and suspicious):
            return None
        for index, work in self._candidates(node):
            if work.cell.spec.alone and self._on_host[node.host]:
                return None  # whatever comes after it waits as well, or its turn would never come
            if self.suspect(work) and behind:
                return None  # it gets the next slot that is free, and waits behind no other cell
            if self.suspect(work) and suspicious:
                continue
            if node.inputs.issuperset(wanted[work.cell.key]):
                return index
        return None

    def to_start(self) -> Iterator[PlacedCell]:
        for node in self.nodes.values():
            for placed in node.cells[: node.slots]:
                if not placed.started:
                    placed.started = True
                    yield placed

    # What becomes of them

    def ended(self, number: int) -> PlacedCell | None:
        """The cell has an answer. One that was given up before has none any more."""
        placed = self._placed.pop(number, None)
        if placed is not None:
            node = self.nodes[placed.address]
            node.cells.remove(placed)
            self._count(node, placed, -1)
        return placed

    def node_of(self, number: int) -> KnownNode | None:
        placed = self._placed.get(number)
        return None if placed is None else self.nodes[placed.address]

    def again(self, works: Iterable[Work]) -> None:
        found = list(works)
        self.waiting.extendleft(reversed(found))
        self._unplaced.update(work.cell.repeat for work in found if work.cell.spec.alone)

    def suspect(self, work: Work) -> bool:
        """Whether a node died while it ran. Nothing waits behind such a cell, so that it is known if it did it."""
        return self._deaths[work.cell.key] > 0

    def lost(self, address: str, *, retired: bool = False) -> tuple[list[int], list[Work]]:
        """A node is gone: which cells it had, and which of them have lost their second node.

        All others run elsewhere. One that was retired was not killed by its cells.
        """
        node = self.nodes.pop(address, None)
        if node is None:
            return [], []
        self._release(node.host)
        for placed in node.cells:
            del self._placed[placed.number]
            self._count(node, placed, -1)
            self._deaths[placed.work.cell.key] += placed.started and not retired
        failed = [placed.work for placed in node.cells if self._deaths[placed.work.cell.key] >= TWICE]
        self.again(placed.work for placed in node.cells if placed.work not in failed)
        return [placed.number for placed in node.cells], failed

    def hold(self, held: Container[str]) -> list[KnownNode]:
        """Which nodes dask holds back from now on; those of them that have cells."""
        now = time.monotonic()
        for node in self.nodes.values():
            node.held_since = (node.held_since or now) if node.address in held else None
            if node.is_lost:
                self._release(node.host)
        return [node for node in self.nodes.values() if node.held_since is not None and node.cells]

    def recalled(self, address: str, numbers: Container[int]) -> list[int]:
        """The cells that a node has given back: they run elsewhere."""
        node = self.nodes.get(address)
        found = [placed for placed in node.cells if placed.number in numbers] if node is not None else []
        for placed in found:
            self.ended(placed.number)
        self.again(placed.work for placed in found)
        return [placed.number for placed in found]

    def refuse(self, node: KnownNode, why: str) -> None:
        node.ready, node.refused = False, why
        self._release(node.host)

    def _release(self, host: str) -> None:
        """Let other machines have the repeats of one whose last node is gone."""
        if all(node.is_lost for node in self.nodes.values() if node.host == host):
            self._hosts = {repeat: where for repeat, where in self._hosts.items() if where != host}
