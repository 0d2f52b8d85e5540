"""The nodes that a program knows: what each can take, what runs where, and who is suspected of killing nodes."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boosters_eval.cluster.messages import Post

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boosters_eval.cluster.messages import Introduction
    from boosters_eval.engine.executor import Work

_SCANNED = 64  # cells among which one is sought whose inputs are on a node already
TWICE = 2  # nodes that a cell may lose


@dataclass
class Flight:
    """A cell on its way: the first ones of a node run, the one behind them waits there."""

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
    machine: str = ""  # the digest
    cpus: tuple[int, ...] | None = None
    ready: bool = False
    refused: str = ""
    failed: int = 0  # how often in a row it could not run a cell
    asked: float = 0.0  # when it was last asked to introduce itself
    inputs: set[str] = field(default_factory=set)
    coming: set[str] = field(default_factory=set)
    flights: list[Flight] = field(default_factory=list)


class Fleet:
    """Decides which cell goes to which node next."""

    def __init__(self) -> None:
        self.nodes: dict[str, KnownNode] = {}
        self.waiting: deque[Work] = deque()
        self._flights: dict[int, Flight] = {}
        self._deaths: Counter[str] = Counter()  # nodes that died while a cell ran, by its key
        self._on_host: Counter[str] = Counter()  # cells, by machine
        self._alone: Counter[str] = Counter()  # those of them that must be alone there
        self._numbers = 0

    def begin(self, works: Iterable[Work]) -> None:
        """New cells."""
        self.waiting = deque(works)
        for counted in (self._flights, self._deaths, self._on_host, self._alone):
            counted.clear()
        for node in self.nodes.values():
            node.flights.clear()
            node.failed = 0

    # Who is there

    def joined(self, members: Mapping[str, int]) -> list[KnownNode]:
        """The nodes that were not known before."""
        new = [KnownNode(address, threads) for address, threads in members.items() if address not in self.nodes]
        self.nodes.update({node.address: node for node in new})
        return new

    def posted(self, node: KnownNode, told: Introduction, widest: int) -> Post:
        """Its place among the nodes of its machine: as many cells as its threads allow, on CPUs that no other has."""
        node.host, node.machine = told.host, told.machine_info().digest
        node.slots = max(1, node.threads // widest)
        taken = {
            cpu
            for other in self.nodes.values()
            if other is not node and other.host == node.host
            for cpu in other.cpus or ()
        }
        free = [cpu for cpu in told.cpus if cpu not in taken]
        wanted = node.slots * widest
        node.cpus = tuple(free[:wanted]) if len(free) >= wanted else None
        return Post(jobs=node.slots, cpus=node.cpus)

    def usable(self) -> list[KnownNode]:
        """The nodes that run cells."""
        return [node for node in self.nodes.values() if node.ready]

    def slots(self) -> int:
        """How many cells run at a time."""
        return sum(node.slots for node in self.usable())

    def flying(self) -> int:
        """How many cells are on their way."""
        return len(self._flights)

    # What goes where

    def next_flight(self, wanted: Mapping[str, Iterable[str]]) -> Flight | None:
        """The next cell that a node can take, on its way from now on; None if there is none.

        `wanted` has the digests of each cell's inputs by its key.
        """
        free = [node for node in self.nodes.values() if node.ready and len(node.flights) <= node.slots]
        for node in sorted(free, key=lambda node: len(node.flights) / node.slots):
            index = self._choice(node, wanted)
            if index is not None:
                work = self.waiting[index]
                del self.waiting[index]
                return self._fly(node, work)
        return None

    def moved(self, wanted: Mapping[str, Iterable[str]]) -> tuple[int, Flight] | None:
        """A cell that waits behind another although some node has nothing to do: its old number, and its new flight."""
        for node in self._idle():
            for flight in self._behind():
                if flight.address != node.address and node.inputs.issuperset(wanted[flight.work.cell.key]):
                    self.landed(flight.number)
                    return flight.number, self._fly(node, flight.work)
        return None

    def _idle(self) -> list[KnownNode]:
        """The nodes with a free slot when no cell is left that was not sent to some node."""
        if self.waiting:
            return []
        return [node for node in self.usable() if len(node.flights) < node.slots and not self._alone[node.host]]

    def _behind(self) -> Iterator[Flight]:
        for node in self.nodes.values():
            yield from (flight for flight in node.flights[node.slots :] if not flight.started)

    def _fly(self, node: KnownNode, work: Work) -> Flight:
        self._numbers += 1
        flight = Flight(self._numbers, work, node.address)
        node.flights.append(flight)
        self._flights[flight.number] = flight
        self._count(node, flight, 1)
        return flight

    def _count(self, node: KnownNode, flight: Flight, step: int) -> None:
        self._on_host[node.host] += step
        self._alone[node.host] += step * flight.work.cell.spec.alone

    def missing(self, wanted: Mapping[str, Iterable[str]]) -> Iterator[tuple[KnownNode, str]]:
        """The inputs that nodes should get now: those of the next cell that each could take."""
        following = self.waiting[0] if self.waiting else None
        for node in self.usable() if following else self._idle():
            work = following or next((flight.work for flight in self._behind()), None)
            if work is not None and len(node.flights) <= node.slots and not node.coming:
                for digest in wanted[work.cell.key]:
                    if digest not in node.inputs:
                        node.coming.add(digest)
                        yield node, digest

    def _choice(self, node: KnownNode, wanted: Mapping[str, Iterable[str]]) -> int | None:
        suspicious = any(self.suspect(flight.work) for flight in node.flights)
        behind = len(node.flights) >= node.slots
        if self._alone[node.host] or (behind and suspicious):
            return None
        for index, work in enumerate(self.waiting):
            if index == _SCANNED:
                return None
            if work.cell.spec.alone and self._on_host[node.host]:
                return None  # whatever comes after it waits as well, or its turn would never come
            if self.suspect(work) and behind:
                return None  # it gets the next slot that is free, and waits behind no other cell
            if self.suspect(work) and suspicious:
                continue
            if node.inputs.issuperset(wanted[work.cell.key]):
                return index
        return None

    def to_start(self) -> Iterator[Flight]:
        """The cells that run by now and were not told of."""
        for node in self.nodes.values():
            for flight in node.flights[: node.slots]:
                if not flight.started:
                    flight.started = True
                    yield flight

    # What becomes of them

    def landed(self, number: int) -> Flight | None:
        """The cell has an answer. One that was given up before has none any more."""
        flight = self._flights.pop(number, None)
        if flight is not None:
            node = self.nodes[flight.address]
            node.flights.remove(flight)
            self._count(node, flight, -1)
        return flight

    def node_of(self, number: int) -> KnownNode | None:
        """The node of a cell on its way."""
        flight = self._flights.get(number)
        return None if flight is None else self.nodes[flight.address]

    def again(self, works: Iterable[Work]) -> None:
        """These cells run before all others."""
        self.waiting.extendleft(reversed(list(works)))

    def suspect(self, work: Work) -> bool:
        """Whether a node died while it ran. Nothing waits behind such a cell, so that it is known if it did it."""
        return self._deaths[work.cell.key] > 0

    def lost(self, address: str) -> tuple[list[int], list[Work]]:
        """A node is gone: which cells were on their way there, and which of them have lost their second node.

        All others run elsewhere.
        """
        node = self.nodes.pop(address, None)
        if node is None:
            return [], []
        for flight in node.flights:
            del self._flights[flight.number]
            self._count(node, flight, -1)
            self._deaths[flight.work.cell.key] += flight.started
        guilty = [flight.work for flight in node.flights if self._deaths[flight.work.cell.key] >= TWICE]
        self.again(flight.work for flight in node.flights if flight.work not in guilty)
        return [flight.number for flight in node.flights], guilty
