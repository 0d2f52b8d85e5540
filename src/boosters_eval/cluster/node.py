"""A node of the cluster: a plug-in of a dask worker, with a pool that outlives its tasks, and how it is called.

What the program calls takes and gives text, and never raises: an error would travel pickled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import shutil
import tempfile
import threading
import time
from concurrent.futures import Future
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
from distributed import WorkerPlugin, get_worker

from boosters_eval.cluster import messages
from boosters_eval.core import __version__
from boosters_eval.core.errors import describe_error
from boosters_eval.core.files import compute_digest, compute_file_digest
from boosters_eval.core.machine import MachineInfo, list_cpus
from boosters_eval.core.modules import load_address
from boosters_eval.core.request import Repeat
from boosters_eval.engine.cell import Build, Cell, Failure, ImportFailure, Lane, Outcome
from boosters_eval.engine.execute import Limits, Work
from boosters_eval.engine.pool import Feed, LocalPool
from boosters_eval.engine.warm import borrow_pool
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from boosters_eval.engine.lanes import Identity

_IDLE = 300.0  # seconds without a cell after which the memory is given back
_FORGOTTEN = ("released", "forgotten", "cancelled")  # states of a task that nobody wants any more


class Node(WorkerPlugin):  # type: ignore[misc]  # dask has no types
    """The pool of a worker for one program, its store of inputs, and what its cells write."""

    def __init__(self, session: str, folder: str) -> None:
        """In a folder of the worker, where it makes one of its own: without, nothing is here to be removed."""
        self.name = messages.name_plugin(session)
        self._session = session
        self.store = messages.Store()
        self.store.clean()
        self.scratch = Path(tempfile.mkdtemp(prefix="boosters-eval-", dir=folder))
        self._question: messages.Question | None = None
        self._post: messages.Post | None = None
        self._pool: LocalPool | None = None
        self._kept = contextlib.ExitStack()  # by which the pool is given back
        self._feed: Feed | None = None
        self._thread: threading.Thread | None = None
        # By the key of the cell. One that was given to another node may come back while it runs here.
        self._running: dict[str, list[Future[Outcome | Failure]]] = {}
        self._turn = threading.RLock()  # held by whoever begins, leaves or stops
        self._lock = threading.Lock()
        self._numbers = 0
        self._gone = False
        self._leased = False  # whether the program holds a result here
        self._used = time.monotonic()  # when a cell, or a piece of an input, was last here
        self._timer: threading.Timer | None = None

    def setup(self, worker: Any) -> None:
        """Wait for the first cell, which a program that has ended by now will not send."""
        self._worker = worker
        self._leased = any(map(self._is_lease, worker.state.tasks))  # of one that was here before
        self._watch(_IDLE)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 (the signature of a plug-in)
        self._gone = True
        self.stop()
        self.leave()
        self.discard()

    def discard(self) -> None:
        self.store.forget()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:  # noqa: ARG002 (dask's signature)
        """Leave once dask forgets the result that the program holds here: it is gone, killed perhaps."""
        if not self._is_lease(key):
            return
        if finish in _FORGOTTEN:
            self._worker.loop.add_callback(self.part)
        self._leased = self._leased or finish == "memory"

    def _is_lease(self, key: Any) -> bool:
        return str(key).startswith(messages.name_lease(self._session, self._worker.address))

    async def part(self) -> None:
        """Leave, and be a plug-in no more."""
        await asyncio.to_thread(self.leave)
        if self._worker.plugins.get(self.name) is self:  # dask tells twice that a result is gone
            await self._worker.plugin_remove(self.name)

    # What the program calls, by name; where text tells what is wrong, '' means that nothing is.

    def take_post(self, question: str, post: str) -> str:
        self.begin(messages.Question.model_validate_json(question), messages.Post.model_validate_json(post))
        return ""

    def has_parcel(self, digest: str) -> bool:
        return self.store.find(digest) is not None

    def receive(self, digest: str, path: str, offset: int, data: bytes) -> str:
        self.store.receive(digest, path, offset, data)
        self._used = time.monotonic()
        return ""

    def complete(self, digest: str, manifest: str) -> str:
        return self.store.complete(digest, messages.Manifest.model_validate_json(manifest))

    def fetch(self, path: str, offset: int) -> bytes | None:
        """A piece of what a cell has written; None if it is gone."""
        with contextlib.suppress(OSError, ValueError), messages.resolve_inside(self.scratch, path).open("rb") as file:
            file.seek(offset)
            return file.read(messages.CHUNK)
        return None

    def clear(self, path: str) -> None:
        if path:
            shutil.rmtree(messages.resolve_inside(self.scratch, path), ignore_errors=True)

    # Taking up its post

    def begin(self, question: messages.Question, post: messages.Post) -> None:
        """Get ready for the cells of a plan. Lanes that it needs too are kept, those of an earlier program as well."""
        with self._turn:
            if self._gone:
                raise RuntimeError(messages.FORGOTTEN)
            feed = self._feed
            if feed is not None and not feed.ended and (question, post) == (self._question, self._post):
                return
            if self._running:
                self.stop()  # nobody waits for them: they ended elsewhere
            self._finish()
            cpus = None if post.cpus is None else list(post.cpus)
            if self._pool is None:
                self._pool = self._kept.enter_context(borrow_pool(post.jobs, cpus, _of_dask()))
            self._pool.resize(post.jobs, cpus)
            self._question, self._post = question, post
            feed = self._feed = Feed()
            self._thread = threading.Thread(target=self._serve, args=(self._pool, feed, question), daemon=True)
            self._thread.start()
            self._used = time.monotonic()
            self._watch(_IDLE)

    def _serve(self, pool: LocalPool, feed: Feed, question: messages.Question) -> None:
        try:
            for outcome in pool.serve(feed, dict(question.lanes), question.timeout_s, lambda *_: None):
                with self._lock:
                    waiting = self._running[outcome.key].pop(0)
                    if not self._running[outcome.key]:
                        del self._running[outcome.key]
                waiting.set_result(outcome)
            error: Exception = RuntimeError("the node was stopped")
        except Exception as caught:  # noqa: BLE001 (whatever it was, the cells must not wait for ever)
            error = caught
        with self._lock:
            feed.ended = True
            lost, self._running = self._running, {}
        for waiting in chain(*lost.values()):
            waiting.set_exception(error)

    def _finish(self) -> None:
        feed, thread, self._feed, self._thread = self._feed, self._thread, None, None
        if feed is not None and thread is not None:
            feed.end()
            thread.join()
            feed.close()

    def leave(self) -> None:
        """The program ends: its cells are stopped. If there is none, the next program finds the lanes as they are."""
        with self._turn:
            if self._running:
                self.stop()
            self._watch(None)
            self._finish()
            self._pool = None
            self._kept.close()

    def stop(self) -> None:
        with self._turn:
            self._watch(None)
            pool = self._pool
            if pool is not None:
                pool.close()  # its thread is woken by the end of its processes
            self._finish()
            if pool is not None:
                pool.close()

    def _watch(self, seconds: float | None) -> None:
        """Look in so many seconds whether a cell has come meanwhile, or no more; without one for a while, stop."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if seconds is not None:
                self._timer = threading.Timer(seconds, self._look)
                self._timer.daemon = True
                self._timer.start()

    def _look(self) -> None:
        with self._lock:
            rested = 0.0 if self._running else time.monotonic() - self._used
        if rested < _IDLE:
            self._watch(_IDLE - rested)
        else:
            self.stop()
            self.leave()
            if not self._leased:  # its program was gone before it could say so
                self._worker.loop.add_callback(self.part)

    # Running cells

    async def run(self, order: messages.Order) -> messages.CellReply:
        """Run a cell, and wait for what becomes of it: not in a thread, whose stack dask would look at all the time."""
        with self._lock:
            self._numbers += 1
            folder = self.scratch / f"cell-{self._numbers}"
        try:
            inputs = await asyncio.to_thread(self._locate, order, folder) if order.inputs else {}
            # Shielded: a worker that closes cancels its tasks, but the pool must still be able to answer.
            waiting = asyncio.wrap_future(self._start(order, inputs))
            # Nobody asks for the error of a cell whose task was cancelled, of which the worker's log would complain.
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            outcome = await asyncio.shield(waiting)
            written = await asyncio.to_thread(_list_written, folder, order) if folder.exists() else {}
            kind: Any = "failure" if isinstance(outcome, Failure) else "result"
            kind = "unloaded" if isinstance(outcome, ImportFailure) else kind
            return messages.CellReply(kind=kind, text=outcome.model_dump_json(), written=written)
        except Exception as error:  # noqa: BLE001 (the program decides what to do with a node that cannot)
            return messages.CellReply(kind="unready", text=describe_error(error))
        finally:
            self._used = time.monotonic()

    def _start(self, order: messages.Order, inputs: dict[str, str]) -> Future[Outcome | Failure]:
        with self._lock:
            question, feed = self._question, self._feed
            if question is None or feed is None or feed.ended:
                raise RuntimeError("the node has no pool")
            lane, _ = question.lanes[order.lane]
            spec = WORKLOADS[lane.workload].spec_type.model_validate(order.spec)
            cell = Cell(spec, lane.target, Repeat(*order.repeat), order.part)
            waiting: Future[Outcome | Failure] = Future()
            self._running.setdefault(cell.key, []).append(waiting)
            feed.put(Work(cell, inputs, Limits(order.timeout_s, order.memory_mb)))
        return waiting

    def _locate(self, order: messages.Order, folder: Path) -> dict[str, str]:
        found = {}
        for name, given in order.inputs.items():
            place: Path | str | None = given.text
            if given.kind == "parcel":
                place = self.store.find(given.text)
                if place is None:
                    raise RuntimeError(f"the input {name} is not there")
            elif given.kind != "text":
                place = (folder if given.kind == "written" else self.scratch) / name
                place.mkdir(parents=True, exist_ok=True)
            found[name] = str(place)
        return found


def _of_dask() -> tuple[str, ...]:
    """The variables that dask sets for its own workers.

    One of them changes how memory is allocated: with it, CatBoost takes a sixth longer to train.
    """
    found = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    return tuple(name for name, value in found.items() if os.environ.get(name) == str(value))


def _list_written(folder: Path, order: messages.Order) -> dict[str, tuple[messages.Item, ...]]:
    """What a cell wrote, by the name of the input; a folder in which there is nothing goes away."""
    found = {}
    for name, given in order.inputs.items():
        if given.kind == "written":
            files = sorted(file for file in (folder / name).rglob("*") if file.is_file())
            found[name] = tuple(messages.describe_file(file, folder.parent) for file in files)
    if not any(found.values()):
        shutil.rmtree(folder, ignore_errors=True)
    return found


def introduce(question: str) -> messages.Introduction:
    """Who this node is, and why it cannot run the plan, if it cannot."""
    version = str(json.loads(question).get("version"))
    machine: dict[str, Any] = {}
    host, cpus = "", list[int]()
    if version != __version__:  # whose questions may be others
        faults = [f"the plan is of boosters-eval {version}, the node has {__version__}"]
    else:
        try:
            asked = messages.Question.model_validate_json(question)
            checks = (*starmap(_check_file, asked.files.items()), *starmap(_check_lane, asked.lanes))
            faults = [fault for fault in dict.fromkeys(checks) if fault]
            machine = MachineInfo.collect(device=asked.device).model_dump(mode="json")
            host, cpus = identify_host(), list_cpus()
        except Exception as error:  # noqa: BLE001 (told to the program as text)
            faults = [f"it cannot say what it has: {describe_error(error)}"]
    return messages.Introduction(machine=machine, host=host, cpus=tuple(cpus), faults=tuple(faults))


def _check_file(path: str, digest: str) -> str:
    try:
        same = compute_file_digest(Path(path)) == digest
    except OSError:
        return f"the plan uses {path}, which the node does not have"
    return "" if same else f"the node's {path} is not that of the plan"


def _check_lane(lane: Lane, wanted: Identity) -> str:
    target, planned = lane.target, _show_build(lane.target.build)
    gone = next((folder for folder in wanted.path.first if not Path(folder).is_dir()), None)
    if gone is not None:
        return f"the plan has {target} {planned}, the node has none, because it has no folder {gone}"
    try:
        workload = load_address(wanted.workload)
        WORKLOADS.register(lane.workload, workload, replace=True)
        if wanted.path.first or wanted.address.get("file"):
            return ""  # the lane itself compares what it has loaded
        found = workload.target(target.name).build
    except Exception as error:  # noqa: BLE001 (a package that is not there, or is broken)
        return f"the plan has {target} {planned}, the node has none: {describe_error(error)}"
    return "" if found == target.build else f"the plan has {target} {planned}, the node {_show_build(found)}"


def _show_build(build: Build) -> str:
    return f"{build.version} ({build.digest})"


def identify_host() -> str:
    """Equal for all processes on one machine, in containers too."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return compute_digest(boot, 12)
    return platform.node()


_BEGUN = ("executing", "long-running", "memory", "error")  # states of a task that runs, or has run
_RECALLED: set[str] = set()  # the tasks that were taken back; they are few, and outlive a node that is met anew


def _find(worker: Any, session: str) -> Node | None:
    found: Node | None = worker.plugins.get(messages.name_plugin(session))
    return found


async def meet(session: str, question: str, *, dask_worker: Any) -> str:
    """Introduce the node; if it fits, it becomes one."""
    answer = await asyncio.to_thread(introduce, question)
    if not answer.faults and _find(dask_worker, session) is None:
        try:
            node = await asyncio.to_thread(Node, session, dask_worker.local_directory)
        except OSError as error:
            fault = f"it cannot write to its folder {dask_worker.local_directory}: {error.strerror}"
            return answer.replace(faults=(fault,)).model_dump_json()
        if _find(dask_worker, session) is None:
            await dask_worker.plugin_add(node, node.name)
        else:  # it was asked twice
            await asyncio.to_thread(node.discard)
    return answer.model_dump_json()


async def ask(session: str, act: str, *arguments: Any, dask_worker: Any) -> Any:
    """What a method of the node answers, or as text what is wrong."""
    node = _find(dask_worker, session)
    if node is None:
        return messages.FORGOTTEN
    try:
        return await asyncio.to_thread(getattr(node, act), *arguments)
    except Exception as error:  # noqa: BLE001 (told to the program as text)
        return describe_error(error)


async def run_cell(session: str, number: int, order: str) -> str:
    node = _find(get_worker(), session)
    if node is None or messages.name_task(session, number) in _RECALLED:
        text = messages.FORGOTTEN if node is None else "the cell was taken back"
        return messages.CellReply(kind="unready", text=text).model_dump_json()
    return (await node.run(messages.Order.model_validate_json(order))).model_dump_json()


async def recall(session: str, numbers: str, *, dask_worker: Any) -> str:
    """Take cells back: the numbers of those that have not begun, and now never will."""
    tasks = dask_worker.state.tasks
    found = {number: tasks.get(messages.name_task(session, number)) for number in numbers.split()}
    waiting = [number for number, task in found.items() if task is None or task.state not in _BEGUN]
    _RECALLED.update(messages.name_task(session, number) for number in waiting)
    return " ".join(waiting)


def lease() -> bool:
    """A task whose result the program holds."""
    return True


async def leave(session: str, *, dask_worker: Any) -> None:
    """The program ends: nothing of it remains on the node but what it has loaded, for a while."""
    node = _find(dask_worker, session)
    if node is not None:
        await node.part()
