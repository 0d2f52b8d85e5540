"""A node of the cluster: a plug-in of a dask worker, which holds a pool that outlives its tasks."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import shutil
import tempfile
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dask
from distributed import WorkerPlugin

from boosters_eval.cluster.messages import (
    FORGOTTEN,
    CellReply,
    Order,
    Post,
    Question,
    describe_file,
    name_lease,
    name_plugin,
    resolve_inside,
)
from boosters_eval.core.files import compute_file_digest
from boosters_eval.core.request import Repeat
from boosters_eval.datasets.fetch import cache_root
from boosters_eval.engine.cell import Cell, Failure, ImportFailure
from boosters_eval.engine.execute import Limits, Work
from boosters_eval.engine.pool import Feed
from boosters_eval.engine.warm import borrow_pool
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from boosters_eval.cluster.messages import Item, Manifest
    from boosters_eval.engine.cell import Outcome
    from boosters_eval.engine.pool import LocalPool


KEPT_S = 28 * 24 * 3600.0  # seconds after which a parcel that nobody has used is removed
ARRIVING_S = 24 * 3600.0  # seconds after which one that has not arrived is removed
_ARRIVING = ".arriving-"


class Store:
    """Parcels are received beside their final place, verified, and then moved there at once."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or cache_root() / "nodes"
        self._arriving: dict[str, Path] = {}

    def find(self, digest: str) -> Path | None:
        """The file or folder of a parcel, if it is there; it then counts as used now."""
        folder = self._root / digest
        with contextlib.suppress(OSError):  # of a store that others own
            os.utime(folder)
        with contextlib.suppress(OSError):  # it is not there, or is just removed, or may not be read
            return next(folder.iterdir(), None)
        return None

    def clean(self) -> None:
        """Remove what no run has used for weeks, and what a worker that was killed left half received."""
        found: list[Path] = []
        with contextlib.suppress(OSError):  # there is no store yet
            found += self._root.iterdir()
        for folder in found:
            kept = ARRIVING_S if folder.name.startswith(_ARRIVING) else KEPT_S
            with contextlib.suppress(OSError):  # another worker cleans it too, or it is somebody else's
                if folder.is_dir() and folder.stat().st_mtime < time.time() - kept:
                    # Moved first: whoever looks for a parcel finds all of it, or nothing.
                    shutil.rmtree(folder.rename(self._root / f".removed-{secrets.token_hex(6)}"))

    def receive(self, digest: str, path: str, offset: int, data: bytes) -> None:
        """A piece of a file; the first one of a parcel begins it."""
        if digest not in self._arriving:
            self._arriving[digest] = self._begun()
        file = resolve_inside(self._arriving[digest], path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("r+b" if offset else "wb") as opened:
                opened.seek(offset)
                opened.write(data)
        except OSError:  # of a full disk, which must not stay full
            shutil.rmtree(self._arriving.pop(digest), ignore_errors=True)
            raise

    def forget(self) -> None:
        """Remove what has not arrived wholly."""
        while self._arriving:
            shutil.rmtree(self._arriving.popitem()[1], ignore_errors=True)

    def _begun(self) -> Path:
        self._root.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_ARRIVING, dir=self._root))

    def complete(self, digest: str, manifest: Manifest) -> str:
        """Verify a parcel and move it to its place. What is wrong with it, or ''."""
        try:
            return self._completed(digest, manifest)
        except OSError as error:
            return f"{manifest.name} cannot be stored: {error.strerror}"

    def _completed(self, digest: str, manifest: Manifest) -> str:
        arrived = self._arriving.pop(digest, None) or self._begun()  # of a folder without files, nothing came
        try:
            for item in manifest.items:
                if compute_file_digest(resolve_inside(arrived, item.path)) != item.digest:
                    return f"{manifest.name} has changed on its way: the digest of {item.path} is another"
            self._place(arrived, self._root / digest, manifest)
        finally:
            shutil.rmtree(arrived, ignore_errors=True)
        return ""

    def _place(self, arrived: Path, final: Path, manifest: Manifest) -> None:
        """What came keeps its name, in a folder that is named by the digest."""
        around = Path(tempfile.mkdtemp(prefix=".placing-", dir=self._root))
        (arrived if manifest.folder else arrived / manifest.items[0].path).rename(around / manifest.name)
        try:
            around.rename(final)
        except OSError:
            shutil.rmtree(around, ignore_errors=True)
            if not final.is_dir():  # otherwise another worker of this machine was faster
                raise


_IDLE = 300.0  # seconds without a cell after which the memory is given back
_FORGOTTEN = ("released", "forgotten", "cancelled")  # states of a task that nobody wants any more


class Node(WorkerPlugin):  # type: ignore[misc]  # dask has no types
    """The pool of a worker for one program, its store of inputs, and what its cells write."""

    def __init__(self, session: str, folder: str) -> None:
        """In a folder of the worker, where it makes one of its own: without, nothing is here to be removed."""
        self.name = name_plugin(session)
        self._session = session
        self.store = Store()
        self.store.clean()
        self.scratch = Path(tempfile.mkdtemp(prefix="boosters-eval-", dir=folder))
        self._question: Question | None = None
        self._post: Post | None = None
        self._pool: LocalPool | None = None
        self._kept = contextlib.ExitStack()  # by which the pool is given back
        self._feed: Feed | None = None
        self._thread: threading.Thread | None = None
        # By the key of the cell. One that was given to another node may come back while it runs here.
        self._running: dict[str, list[Future[Outcome | Failure]]] = {}
        self._turn = threading.Lock()  # held by whoever begins, leaves or stops
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
        """Leave no process and no file behind."""
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
        return str(key).startswith(name_lease(self._session, self._worker.address))

    def receive(self, digest: str, path: str, offset: int, data: bytes) -> None:
        """A piece of an input."""
        self.store.receive(digest, path, offset, data)
        self._used = time.monotonic()

    async def part(self) -> None:
        """Leave, and be a plug-in no more."""
        await asyncio.to_thread(self.leave)
        if self._worker.plugins.get(self.name) is self:  # dask tells twice that a result is gone
            await self._worker.plugin_remove(self.name)

    # Taking up its post

    def begin(self, question: Question, post: Post) -> None:
        """Get ready for the cells of a plan. Lanes that it needs too are kept, those of an earlier program as well."""
        with self._turn:
            if self._gone:
                raise RuntimeError(FORGOTTEN)
            self._begin(question, post)

    def _begin(self, question: Question, post: Post) -> None:
        feed = self._feed
        if feed is not None and not feed.ended and (question, post) == (self._question, self._post):
            return
        if self._running:
            self._stop()  # nobody waits for them: they ended elsewhere
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

    def _serve(self, pool: LocalPool, feed: Feed, question: Question) -> None:
        wanted = {lane.lane: lane.identity for lane in question.lanes}
        try:
            for outcome in pool.serve(feed, wanted, question.timeout_s, lambda *_: None):
                self._done(outcome)
            error: Exception = RuntimeError("the node was stopped")
        except Exception as caught:  # noqa: BLE001 (whatever it was, the cells must not wait for ever)
            error = caught
        with self._lock:
            feed.ended = True
            lost, self._running = self._running, {}
        for waiting in itertools.chain(*lost.values()):
            waiting.set_exception(error)

    def _done(self, outcome: Outcome | Failure) -> None:
        with self._lock:
            waiting = self._running[outcome.key].pop(0)
            if not self._running[outcome.key]:
                del self._running[outcome.key]
        waiting.set_result(outcome)

    def _finish(self) -> None:
        """Let the pool finish what it has."""
        feed, thread, self._feed, self._thread = self._feed, self._thread, None, None
        if feed is not None and thread is not None:
            feed.end()
            thread.join()
            feed.close()

    def leave(self) -> None:
        """The program ends: its cells are stopped. If there is none, the next program finds the lanes as they are."""
        with self._turn:
            if self._running:
                self._stop()
            self._rest()
            self._finish()
            self._pool = None
            self._kept.close()

    def stop(self) -> None:
        """Stop the running cells and all processes, at once."""
        with self._turn:
            self._stop()

    def _stop(self) -> None:
        self._rest()
        pool = self._pool
        if pool is not None:
            pool.close()  # its thread is woken by the end of its processes
        self._finish()
        if pool is not None:
            pool.close()

    def _watch(self, seconds: float) -> None:
        """Look in so many seconds whether a cell has come meanwhile; without one for a while, stop."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(seconds, self._look)
            self._timer.daemon = True
            self._timer.start()

    def _rest(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

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

    async def run(self, order: Order) -> CellReply:
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
            return CellReply(kind=_kind(outcome), text=outcome.model_dump_json(), written=written)
        except Exception as error:  # noqa: BLE001 (the program decides what to do with a node that cannot)
            return CellReply(kind="unready", text=f"{type(error).__name__}: {error}")
        finally:
            self._used = time.monotonic()

    def _start(self, order: Order, inputs: dict[str, str]) -> Future[Outcome | Failure]:
        with self._lock:
            question, feed = self._question, self._feed
            if question is None or feed is None or feed.ended:
                raise RuntimeError("the node has no pool")
            lane = question.lanes[order.lane]
            spec = WORKLOADS[lane.workload].spec_type.model_validate(order.spec)
            cell = Cell(spec, lane.target, Repeat(*order.repeat))
            waiting: Future[Outcome | Failure] = Future()
            self._running.setdefault(cell.key, []).append(waiting)
            feed.put(Work(cell, inputs, Limits(order.timeout_s, order.memory_mb)))
        return waiting

    def _locate(self, order: Order, folder: Path) -> dict[str, str]:
        """Where the cell finds each of its inputs here."""
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


def _kind(outcome: Outcome | Failure) -> Literal["result", "failure", "unloaded"]:
    if isinstance(outcome, ImportFailure):
        return "unloaded"
    return "failure" if isinstance(outcome, Failure) else "result"


def _list_written(folder: Path, order: Order) -> dict[str, tuple[Item, ...]]:
    """What a cell wrote, by the name of the input; a folder in which there is nothing goes away."""
    found = {}
    for name, given in order.inputs.items():
        if given.kind == "written":
            files = sorted(file for file in (folder / name).rglob("*") if file.is_file())
            found[name] = tuple(describe_file(file, folder.parent) for file in files)
    if not any(found.values()):
        shutil.rmtree(folder, ignore_errors=True)
    return found
