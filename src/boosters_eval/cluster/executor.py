"""The executor for a dask cluster. It gives each node the next cell itself, as the local pool does with its lanes."""

from __future__ import annotations

import json
import queue
import secrets
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.cluster import messages
from boosters_eval.cluster.fleet import Fleet
from boosters_eval.core import __version__
from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, MissingLibraryError, RunError, UnsupportedError
from boosters_eval.core.files import compute_file_digest
from boosters_eval.core.terms import the
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.execute import Executor
from boosters_eval.engine.lane import RESULT
from boosters_eval.engine.lanes import find_longest_timeout, identify_lanes
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from boosters_eval.cluster.fleet import KnownNode, PlacedCell
    from boosters_eval.cluster.link import Link
    from boosters_eval.core.machine import MachineInfo
    from boosters_eval.engine.cell import Cell, Lane, Outcome
    from boosters_eval.engine.execute import Work


class CellRequests:
    """The inputs of a run's cells, and what nodes are asked about."""

    def __init__(self, works: Sequence[Work], parcels: messages.Parcels) -> None:
        for work in works:
            reason = WORKLOADS[work.cell.spec.workload].bound_here(work.cell, work.inputs)
            if reason is not None:
                raise UnsupportedError(f"{work.cell} cannot run on the nodes of a cluster: {reason}.")
        wanted = identify_lanes(works)
        self._lanes: dict[Lane, int] = {lane: number for number, lane in enumerate(wanted)}
        self.widest = max((work.cell.spec.n_threads for work in works), default=1)
        self.alone = any(work.cell.spec.alone for work in works)
        self._of_path: dict[str, messages.Parcel] = {}
        self.parcels: dict[str, messages.Parcel] = {}  # by digest
        self.digests: dict[str, tuple[str, ...]] = {}  # of each cell's inputs, by its key
        for work in works:
            self._pack(work, parcels)
        texts = {text for work in works for text in (*work.cell.lane.preload, *work.inputs.values())}
        files = {file for text in texts for file in _files_in(_parse(text))}
        files |= {file for found in wanted.values() for file in _files_in([found.address, found.workload])}
        self.question = messages.Question(
            run=secrets.token_hex(8),
            version=__version__,
            lanes=tuple(wanted.items()),
            files={file: compute_file_digest(Path(file)) for file in sorted(files)},
            timeout_s=find_longest_timeout(works),
            device=any(work.cell.spec.uses_device for work in works),
        )

    def _pack(self, work: Work, parcels: messages.Parcels) -> None:
        found = []
        for name, value in work.inputs.items():
            if self._kind(work, name, value) == "parcel":
                parcel = self._of_path.get(value)
                if parcel is None:
                    parcel = self._of_path[value] = parcels.of(value)
                    self.parcels[parcel.digest] = parcel
                found.append(parcel.digest)
        self.digests[work.cell.key] = tuple(found)

    def _kind(self, work: Work, name: str, value: str) -> str:
        workload = WORKLOADS[work.cell.spec.workload]
        if name in workload.stores:
            return "written"
        if name in workload.makes:
            return "made"
        return "parcel" if value in self._of_path or (Path(value).is_absolute() and Path(value).exists()) else "text"

    def folders(self, work: Work) -> dict[str, str]:
        return {name: value for name, value in work.inputs.items() if self._kind(work, name, value) == "written"}

    def order(self, work: Work) -> str:
        cell, inputs = work.cell, {}
        for name, value in work.inputs.items():
            kind = self._kind(work, name, value)
            text = self._of_path[value].digest if kind == "parcel" else value if kind == "text" else ""
            inputs[name] = messages.Input(kind=kind, text=text)
        return messages.Order(
            lane=self._lanes[cell.lane],
            spec=cell.spec.model_dump(mode="json"),
            repeat=tuple(cell.repeat),
            part=cell.part,
            inputs=inputs,
            timeout_s=work.limits.timeout_s,
            memory_mb=work.limits.memory_mb,
        ).model_dump_json()


def _parse(text: str) -> Any:
    """What is written in JSON: the addresses of the user's metrics and steps are."""
    try:
        return json.loads(text) if text[:1] in "{[" else None
    except ValueError:
        return None


def _files_in(value: Any) -> Iterator[str]:
    """The files that addresses name; one that has a module is imported by its name instead."""
    if isinstance(value, dict):
        file = value.get("file")
        if isinstance(file, str) and file and (value.get("module") is None or "name" in value) and Path(file).is_file():
            yield file
        for part in value.values():
            yield from _files_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _files_in(part)


_WAKE = 1.0  # seconds after which the connection is looked at, if nothing happens
_LOOK = 10.0  # seconds after which the workers are asked for, in case that news were lost
_SILENT = 30.0  # seconds after which a worker is asked again
_GIVEN_UP = 3  # times in a row that a node may fail to run a cell before it is left out
_RESUME = "Finished cells are kept; --resume runs the others, here or on another cluster."


class DaskExecutor(Executor):
    """Runs cells on the workers of a dask cluster. Each holds a pool, and has the next cell behind those that it runs.

    The scheduler is that of `address`, `scheduler_file` or `client`, else that of dask's configuration; without any, a
    cluster of `workers` processes (by default `jobs`) is started on this machine. `security` is dask's, for TLS; by
    default it is that of dask's configuration. Without any worker for `patience` seconds a run ends with an error.
    """

    local = False

    def __init__(
        self,
        jobs: int = 1,
        *,
        address: str | None = None,
        scheduler_file: str | Path | None = None,
        workers: int | None = None,
        client: Any = None,
        security: Any = None,
        patience: float = 60.0,
    ) -> None:
        super().__init__(jobs)
        places = {"address": address, "scheduler_file": scheduler_file, "workers": workers, "client": client}
        named = [name for name, value in places.items() if value is not None]
        if len(named) > 1:
            raise ConfigError(f"The '{named[0]}' and '{named[1]}' parameters exclude each other: name one cluster.")
        if workers is not None and (not isinstance(workers, int) or workers < 1):
            raise ConfigError(f"{the('workers')} must be at least 1. Got {workers!r} instead.")
        self._patience = patience
        self._busy = False
        self._parcels = messages.Parcels()
        self._fleet = Fleet()
        self._machines: dict[str, MachineInfo] = {}
        link = _connect(**places, jobs=jobs, security=security)
        self._link: Link | None = link
        self.jobs = max(1, link.threads)
        self.local = link.is_of_this_machine

    def machines(self) -> dict[str, MachineInfo]:
        return dict(self._machines)

    @property
    def sent(self) -> dict[tuple[str, str], int]:
        """How often each input, by its digest, went to each machine."""
        return {} if self._link is None else dict(self._link.sent)

    def close(self) -> None:
        """Leave the cluster. What runs there for this program is stopped; a cluster that was started here is ended."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        """Yield outcomes in the order in which they arrive."""
        if self._link is None:
            raise RunError("This executor is closed.")
        if self._busy:
            raise RunError("This executor is running something already: use another one, or wait.")
        self._busy = True
        try:
            run = _Run(self._link, self._fleet, list(works), self._parcels, self._machines, self._patience)
            yield from run.outcomes(started)
        finally:
            self._busy = False
            if self._fleet.in_flight() and self._link is not None:  # the iterator was closed, or the run interrupted
                self._link.stop_cells()
                self._fleet.begin(())


def _connect(**where: Any) -> Link:
    try:
        from boosters_eval.cluster.link import Link  # noqa: PLC0415 (an extra, and slow to import)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"dask", "distributed"}:
            raise
        raise MissingLibraryError(
            "The executor 'dask' needs dask.distributed, which is not installed: pip install 'boosters-eval[cluster]'."
        ) from None
    return Link(**where)


class _Run:
    """One run on the cluster: what is heard, and what is done about it."""

    def __init__(
        self,
        link: Link,
        fleet: Fleet,
        works: list[Work],
        parcels: messages.Parcels,
        machines: dict[str, MachineInfo],
        patience: float,
    ) -> None:
        self._link, self._fleet, self._machines, self._patience = link, fleet, machines, patience
        self._requests = CellRequests(works, parcels)
        self._question = self._requests.question.model_dump_json()
        self._warned = False
        self._first_hosts: dict[str, str] = {}  # of the outcomes, by the digest of their machine
        self._last_look = self._last_node = time.monotonic()
        fleet.begin(works)
        for node in fleet.nodes.values():
            node.pause()
            node.refused = ""
        self._meet(list(fleet.nodes.values()))
        link.look()

    def outcomes(self, started: Callable[[Cell, str], None]) -> Iterator[Outcome | Failure]:
        while self._fleet.waiting or self._fleet.in_flight():
            self._dispatch(started)
            try:
                news = self._link.news.get(timeout=_WAKE)
            except queue.Empty:
                news = None
            yield from self._hear(news)
            self._check()

    def _dispatch(self, started: Callable[[Cell, str], None]) -> None:
        while (placed := self._fleet.place_next(self._requests.digests)) is not None:
            self._send_cell(placed)
        while (moved := self._fleet.moved(self._requests.digests)) is not None:
            self._link.give_up([moved[0]])
            self._send_cell(moved[1])
        for node, digest in self._fleet.missing(self._requests.digests):
            self._link.begin(self._link.send(node.address, node.host, self._requests.parcels[digest]))
        for placed in self._fleet.to_start():
            started(placed.work.cell, "start")

    def _send_cell(self, placed: PlacedCell) -> None:
        order, folders = self._requests.order(placed.work), self._requests.folders(placed.work)
        self._link.begin(self._link.carry(placed.number, placed.address, order, folders), placed.number)

    def _hear(self, news: messages.ClusterNews | None) -> Iterator[Outcome | Failure]:
        match news:
            case messages.Members(threads, held):
                self._meet(self._fleet.joined(threads))
                for address in self._fleet.absent(threads):
                    yield from self._lost(address)
                for node in [] if held is None else self._fleet.hold(held):  # take back what has not begun
                    self._link.begin(self._link.recall(node.address, [placed.number for placed in node.cells]))
                unheard = [node for node in self._fleet.nodes.values() if not node.ready and not node.refused]
                self._meet([node for node in unheard if time.monotonic() - node.asked > _SILENT])
            case messages.Recalled(address, numbers):
                self._link.give_up(self._fleet.recalled(address, numbers))
            case messages.Left(address, retired):
                yield from self._lost(address, retired=retired)
            case messages.Met(address, question, told) if question == self._question:
                self._judge(address, told)
            case messages.Posted(address, question, fault) if question == self._question:
                self._take_up(address, fault)
            case messages.Sent():
                self._arrived(news)
            case messages.Answered(number, reply):
                yield from self._ended(number, reply)

    # Nodes

    def _meet(self, nodes: list[KnownNode]) -> None:
        for node in nodes:  # each for itself: one that hangs must not keep the others waiting
            node.asked = time.monotonic()
            self._link.begin(self._link.meet(node.address, self._question))

    def _judge(self, address: str, told: messages.Introduction | str | None) -> None:
        node = self._fleet.nodes.get(address)
        if node is None or told is None:  # it has left, or is leaving
            return
        if isinstance(told, str) or told.faults:
            self._refuse(node, told if isinstance(told, str) else "; ".join(told.faults))
            return
        wide = self._requests.widest
        post = self._fleet.posted(node, told, wide)
        self._link.begin(self._link.post(address, self._question, post))
        if node.threads < wide and not self._requests.alone and not self._warned:
            self._warned = True
            text = f"Cells use {wide} threads, but the worker {node.address} has {node.threads}: they share its CPUs."
            warnings.warn(f"{text} Start workers with --nthreads {wide}.", BoostersEvalWarning, stacklevel=2)

    def _refuse(self, node: KnownNode, why: str) -> None:
        self._fleet.refuse(node, why)
        text = f"The worker {node.address} is not used: {why.rstrip('.')}."
        if all(other.refused for other in self._fleet.nodes.values()):
            raise RunError(f"No worker of the cluster can run this plan. {text}")
        warnings.warn(text, BoostersEvalWarning, stacklevel=2)

    def _take_up(self, address: str, fault: str | None) -> None:
        node = self._fleet.nodes.get(address)
        if node is None or fault is None:  # it has left, or is leaving
            return
        if fault.endswith(messages.FORGOTTEN):
            self._meet([node])
        elif fault:
            self._refuse(node, fault)
        else:
            node.ready = True

    def _arrived(self, news: messages.Sent) -> None:
        node = self._fleet.nodes.get(news.address)
        if node is None:
            return
        node.coming.discard(news.digest)
        if news.interrupted or news.fault == messages.FORGOTTEN:
            self._unready(node, f"an input could not be sent to it: {news.interrupted or news.fault}")
        elif news.fault:
            self._refuse(node, f"an input could not be sent to it: {news.fault}")
        else:
            node.inputs.add(news.digest)

    def _lost(self, address: str, *, retired: bool = False) -> Iterator[Failure]:
        node = self._fleet.nodes.get(address)
        numbers, failed = self._fleet.lost(address, retired=retired)
        self._link.give_up(numbers)
        for work in failed:
            yield Failure.of(
                work.cell,
                error_type="NodeDied",
                error_message="the cell was running on a node that died, and so was it on the next one: it is not run"
                " on a third",
                machine=self._machine(node) if node is not None else None,
            )

    def _check(self) -> None:
        now = time.monotonic()
        if not self._link.alive:
            raise RunError(f"The dask scheduler at {self._link.address} is gone. {_RESUME}")
        nodes = self._fleet.nodes.values()
        if any(node.usable or node.cells for node in nodes):
            self._last_node = now
        elif now - self._last_node > self._patience:
            held = [node.address for node in nodes if node.held_since is not None]
            why = f", because dask holds back {', '.join(held)}: see its log" if held else ""
            raise RunError(f"The cluster has had no worker for {self._patience:g} s{why}. {_RESUME}")
        if now - self._last_look > _LOOK:
            self._last_look = now
            self._link.look()

    # Cells

    def _ended(self, number: int, reply: messages.CellReply) -> Iterator[Outcome | Failure]:
        node = self._fleet.node_of(number)
        placed = self._fleet.ended(number)
        if placed is None or node is None:  # it was given up: the cell runs elsewhere, or has an outcome already
            return
        if reply.kind == "unready":
            self._fleet.again([placed.work])
            self._unready(node, reply.text)
            return
        node.failed = 0
        if reply.kind != "unloaded" or not self._is_left_to_others(placed.work, reply, node):
            yield self._outcome(placed.work.cell, reply, node)

    def _is_left_to_others(self, work: Work, reply: messages.CellReply, node: KnownNode) -> bool:
        """A node could not load a library: whether others can, which is said once."""
        known = work.cell.lane in node.lacking
        left = self._fleet.cannot_load(node, work)
        if left and not known:
            failure = _checked(work.cell, reply)
            why = failure.error_message.rstrip(".") if isinstance(failure, Failure) else "it could not be imported"
            text = f"The worker {node.address} gets no more cells of {work.cell.target}: {why}."
            warnings.warn(text, BoostersEvalWarning, stacklevel=2)
        return left

    def _unready(self, node: KnownNode, why: str) -> None:
        """A node that did not run its cell gets ready anew; one that fails again and again is left out."""
        if node.refused:
            return
        node.failed += node.ready  # what it had in flight failed for the same reason
        node.pause()
        node.inputs.clear()
        if node.failed >= _GIVEN_UP:
            self._refuse(node, why)
        elif self._link.alive:
            self._meet([node])

    def _outcome(self, cell: Cell, reply: messages.CellReply, node: KnownNode) -> Outcome | Failure:
        found = _checked(cell, reply)
        if found is not None:
            return found.model_copy(update={"machine": self._machine(node)})
        message = f"the node {node.address} sent something that is not an outcome of the cell"
        return Failure.of(cell, error_type="InvalidAnswer", error_message=message, machine=self._machine(node))

    def _machine(self, node: KnownNode) -> str | None:
        """The digest of an outcome's machine. Nodes of equal hardware are several: all but the first are named."""
        machine = node.machine
        if machine is None:
            return None
        if self._first_hosts.setdefault(machine.digest, node.host) != node.host:
            machine = machine.replace(node=node.host)
        self._machines[machine.digest] = machine
        return machine.digest


def _checked(cell: Cell, reply: messages.CellReply) -> Outcome | Failure | None:
    """What a node answered, checked as the answer of a local process is; None if it is no outcome of the cell."""
    try:
        kind = WORKLOADS[cell.spec.workload].outcome_type if reply.kind == RESULT else Failure
        found = kind.model_validate_json(reply.text)
    except ValueError:  # pydantic's errors are ValueErrors
        return None
    return found if found.key == cell.key else None
