"""The program's connection to a dask cluster: a client on an event loop of its own, whose news arrive in a queue."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import multiprocessing
import os
import queue
import re
import secrets
import signal
import threading
import warnings
from collections import Counter, defaultdict
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
from distributed import Client, LocalCluster, Security

from boosters_eval.cluster import messages, node
from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.core.files import compute_digest, read_text, write_atomically
from boosters_eval.core.temporary import temporary_environment
from boosters_eval.core.terms import get_options, the

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping


_LAST_PORT = 65535
ENCRYPTED = ("tls://", "wss://")
_CERTIFICATES = (
    "set distributed.comm.tls.ca-file, distributed.comm.tls.client.cert and distributed.comm.tls.client.key"
    " in dask's configuration"
)


def find_scheduler(address: str | None, scheduler_file: str | Path | None, client: Any) -> str | None:
    """Where the scheduler is, as the user or dask's own configuration names it; None: nowhere yet."""
    if client is not None:
        return str(client.scheduler.address)
    if scheduler_file is not None:
        path = Path(scheduler_file)
        try:
            found = json.loads(read_text(path))["address"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"The scheduler file {path} is not one that a dask scheduler writes.") from None
        address = str(found)
        if not _looks_right(address):
            raise ConfigError(f"The scheduler file {path} has no address of a dask scheduler, but '{address}'.")
    if address is not None:
        source, given = the("address"), address
    else:
        source, given = "The 'scheduler-address' of dask's configuration", dask.config.get("scheduler-address", None)
        if given is None:
            return None
    if not isinstance(given, str) or not _looks_right(given):
        raise ConfigError(f"{source} must be that of a dask scheduler, such as tcp://host:8786. Got {given!r} instead.")
    return given


def check_certificates(address: str, security: Any) -> None:
    """Refuse an address whose certificates are not there. `security` is dask's, or its configuration counts."""
    found = security or Security()
    if not isinstance(found, Security):  # whatever else dask accepts
        return
    try:
        context = found.get_connection_args("client").get("ssl_context")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"The certificates for {address} cannot be used ({reason}): {_CERTIFICATES}.") from None
    if context is None and address.startswith(ENCRYPTED):
        raise ConfigError(f"The address {address} needs certificates: {_CERTIFICATES}.")


def _looks_right(address: str) -> bool:
    scheme, found, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    known = not found or scheme in {"tcp", "tls", "ws", "wss", "ucx"}
    return known and bool(host) and port.isdecimal() and len(port) <= len(str(_LAST_PORT)) and int(port) <= _LAST_PORT


def silence_loggers() -> dict[logging.Logger, int]:
    """Dask's loggers say little that a user can act on; what matters we say in a sentence. Returns their levels."""
    every = [item for item in logging.Logger.manager.loggerDict.values() if isinstance(item, logging.Logger)]
    speaking = [item for item in every if item.name.startswith("distributed.") and item.level]
    levels = {item: item.level for item in (logging.getLogger("distributed"), *speaking)}
    for item in levels:
        item.setLevel(logging.CRITICAL + 1)
    return levels


CONNECT_S = 10.0  # seconds within which a scheduler must answer
_SENDERS = 8  # inputs on their way at a time
_GUARD = "A script that starts a cluster must do so under: if __name__ == '__main__'."
_NAMED = re.compile(r"(\w+)\((['\"])(.*)\2\)")
_CLOSE_S = 10.0  # seconds that the end may take
_SAFE_PATH = "PYTHONSAFEPATH"


class Link:
    """Everything that waits for the network happens on the loop; the program reads the news."""

    def __init__(
        self,
        *,
        address: str | None = None,
        scheduler_file: str | Path | None = None,
        client: Any = None,
        workers: int | None = None,
        jobs: int = 1,
        security: Any = None,
    ) -> None:
        self.session = secrets.token_hex(6)
        self.news: queue.SimpleQueue[messages.ClusterNews] = queue.SimpleQueue()
        self.threads = 0  # of all workers, at the beginning
        self.sent: Counter[tuple[str, str]] = Counter()  # how often each input went to each machine
        self._cluster: Any = None
        self._client: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._carried: dict[int, asyncio.Task[Any]] = {}  # by the number of the cell
        self._leases: dict[str, Any] = {}  # by the address of the node
        self._levels = silence_loggers()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # of dask's own tasks; what matters is news
        self._thread = threading.Thread(target=self._turn, name="boosters-eval-dask", daemon=True)
        self._thread.start()
        try:
            where = None if workers is not None else find_scheduler(address, scheduler_file, client)
            self._call(self._connect(where, workers or jobs, security or getattr(client, "security", None)))
        except BaseException:
            self.close()
            raise

    async def _connect(self, address: str | None, workers: int, security: Any) -> None:
        self._sending = asyncio.Semaphore(_SENDERS)
        self._locks: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        if address is None:
            self._cluster = await _started_here(workers)
        else:
            check_certificates(address, security)
        target = self._cluster or address
        client = Client(
            target, asynchronous=True, timeout=CONNECT_S, set_as_default=False, security=security, name="boosters-eval"
        )
        try:
            await client
        except (ImportError, TypeError, ValueError, OSError) as error:
            with contextlib.suppress(Exception):
                await client.close(timeout=1)
            if not isinstance(error, OSError):  # a protocol that dask cannot use here
                raise ConfigError(f"The address {address} cannot be used: {_first_line(error)}.") from None
            also = ", with certificates that fit yours" if str(address).startswith(ENCRYPTED) else ""
            raise RunError(
                f"No dask scheduler answers at {address} within {CONNECT_S:g} s: check the address, and that it runs"
                f"{also}."
            ) from None
        self._client = client
        client.subscribe_topic("all", self._heard)
        self.threads = sum((await client.nthreads()).values())

    @property
    def alive(self) -> bool:
        return self._client is not None and self._client.status == "running"

    @property
    def is_of_this_machine(self) -> bool:
        return self._cluster is not None

    @property
    def address(self) -> str:
        return str(self._client.scheduler.address)

    # Between the program and the loop

    def _turn(self) -> None:
        """Run the loop. Workers that it starts inherit the mask: Ctrl-C reaches only the program, which stops them."""
        with _safe_path():
            resource_tracker.ensure_running()  # now: its start would take the mask away again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def begin(self, work: Coroutine[Any, Any, None], number: int | None = None) -> None:
        """Do something on the loop, for the cell of this number; what comes of it is news."""

        async def survive() -> None:
            with contextlib.suppress(Exception):  # a lost worker or scheduler, which is news by itself
                await work

        def start() -> None:
            task = self._loop.create_task(survive())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _: work.close())  # of one that was given up before it began
            if number is not None:
                self._carried[number] = task
                task.add_done_callback(lambda _: self._carried.pop(number))

        self._loop.call_soon_threadsafe(start)

    def close(self) -> None:
        """Leave the cluster as it was, and end the one that was started here."""
        with contextlib.suppress(Exception):
            self._call(self._leave(), _CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()
        for logger, level in self._levels.items():
            logger.setLevel(level)

    async def _leave(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        if self._client is not None:
            if self.alive:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(self._everywhere(node.leave), _CLOSE_S / 2)
            await self._client.close(timeout=2)
        if self._cluster is not None:
            await self._cluster.close(timeout=3)

    def stop_cells(self) -> None:
        with contextlib.suppress(Exception):
            if self.alive:
                self._call(self._everywhere(node.ask, "stop"), _CLOSE_S)

    async def _everywhere(self, act: Callable[..., Any], *arguments: Any) -> None:
        await self._client.run(act, self.session, *arguments, on_error="ignore")

    # Who is there

    async def _heard(self, event: tuple[float, Any]) -> None:
        message = event[1]
        action = message.get("action") if isinstance(message, dict) else None
        if action == "remove-worker":
            self._leases.pop(message["worker"], None)
            self.news.put(messages.Left(message["worker"], retired=bool(message.get("expected", False))))
        elif action == "add-worker":
            self.news.put(messages.Members(await self._client.nthreads()))

    async def _look_closely(self) -> None:
        """What a scheduler tells of a worker is long: it is asked for now and then, not whenever one joins."""
        found = (await self._client.scheduler.identity())["workers"]
        threads = {address: worker["nthreads"] for address, worker in found.items()}
        held = frozenset(address for address, worker in found.items() if worker["status"] != "running")
        self.news.put(messages.Members(threads, held))

    def look(self) -> None:
        self.begin(self._look_closely())

    async def recall(self, address: str, numbers: Iterable[int]) -> None:
        """Take cells back from a worker, unless they have begun."""
        text = await self._answer_in_text(address, node.recall, " ".join(map(str, numbers)))
        self.news.put(messages.Recalled(address, frozenset(map(int, text.split()))))

    async def _answer(self, address: str, act: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of a worker answers, or the error that it met; None of a worker that is gone."""
        found = await self._client.run(act, self.session, *arguments, workers=[address], on_error="return")
        return found.get(address)

    async def _answer_in_text(self, address: str, act: Callable[..., Any], *arguments: Any) -> str:
        """The same, of a function that answers in text; anything else is an error."""
        answer = await self._answer(address, act, *arguments)
        if not isinstance(answer, str):
            raise _CallError(_first_line(answer) if isinstance(answer, BaseException) else "the worker did not answer")
        return answer

    async def meet(self, address: str, question: str) -> None:
        answer = await self._answer(address, node.meet, question)
        told = messages.Introduction.model_validate_json(answer) if isinstance(answer, str) else _told(answer)
        if isinstance(told, str) and told.startswith("ModuleNotFoundError"):
            told = f"it lacks a package ({told})"
        if isinstance(told, messages.Introduction) and not told.faults:
            self._lease(address)  # before it has anything to give back
        self.news.put(messages.Met(address, question, told))

    async def post(self, address: str, question: str, post: messages.Post) -> None:
        answer = await self._answer(address, node.ask, "take_post", question, post.model_dump_json())
        self.news.put(messages.Posted(address, question, _told(answer)))

    def _lease(self, address: str) -> None:
        """Hold a result on the node: if this program is killed, dask forgets it there, by which the node knows."""
        if address not in self._leases:
            self._leases[address] = self._client.submit(
                node.lease,
                key=messages.name_lease(self.session, address) + secrets.token_hex(6),
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )

    # What goes there and comes back

    async def send(self, address: str, host: str, parcel: messages.Parcel) -> None:
        try:
            async with self._sending, self._locks[host, parcel.digest]:
                fault = await self._sent(address, host, parcel)
        except Exception as error:  # noqa: BLE001 (the program asks the node again, whatever it was)
            self.news.put(messages.Sent(address, parcel.digest, interrupted=_first_line(error)))
        else:
            self.news.put(messages.Sent(address, parcel.digest, fault))

    async def _sent(self, address: str, host: str, parcel: messages.Parcel) -> str:
        digest = parcel.digest
        if (known := await self._answer(address, node.ask, "has_parcel", digest)) is True:
            return ""
        if isinstance(known, BaseException):
            raise known
        self.sent[host, digest] += 1
        pieces = parcel.pieces()
        while True:
            try:
                piece = await asyncio.to_thread(next, pieces, None)
            except OSError as error:
                return f"{parcel.source} cannot be read: {error.strerror}"
            if piece is None:
                break
            fault = await self._answer_in_text(address, node.ask, "receive", digest, *piece)
            if fault:
                return fault
        manifest = parcel.manifest.model_dump_json()
        return await self._answer_in_text(address, node.ask, "complete", digest, manifest)

    def give_up(self, numbers: Iterable[int]) -> None:
        """Wait no more for these cells: their node is gone, or another one is idle."""

        def cancel() -> None:
            for number in numbers:
                if number in self._carried:
                    self._carried[number].cancel()

        self._loop.call_soon_threadsafe(cancel)

    async def carry(self, number: int, address: str, order: str, folders: Mapping[str, str]) -> None:
        """Have a cell run on a node, and bring home what it wrote."""
        future = self._client.submit(
            node.run_cell,
            self.session,
            number,
            order,
            key=messages.name_task(self.session, number),
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        try:
            reply = messages.CellReply.model_validate_json(await future)
            await self._bring_home(address, reply, folders)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (the worker is lost, or the scheduler)
            reply = messages.CellReply(kind="unready", text=_first_line(error))
        finally:
            future.release()
        self.news.put(messages.Answered(number, reply))

    async def _bring_home(self, address: str, reply: messages.CellReply, folders: Mapping[str, str]) -> None:
        """Store what a cell wrote where it would have written it here, before its outcome counts."""
        places = set()
        for name, items in reply.written.items():
            for item in items:
                content = bytearray()
                while len(content) < item.size:
                    data = await self._answer(address, node.ask, "fetch", item.path, len(content))
                    if not isinstance(data, bytes) or not data:
                        raise RuntimeError(f"{item.path} is gone")
                    content += data
                if compute_digest(content) != item.digest:
                    raise RuntimeError(f"{item.path} has changed on its way")
                cell, _, *parts = Path(item.path).parts
                path = messages.resolve_inside(Path(folders[name]), str(Path(*parts)))
                await asyncio.to_thread(_store, path, bytes(content))
                places.add(cell)
        for place in places:
            await self._answer(address, node.ask, "clear", place)


class _CallError(Exception):
    """A call of a node that has no answer."""


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Let no Python that is started meanwhile run a folder multiprocessing/ in the current folder."""
    known = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if known is None:
            os.environ.pop(_SAFE_PATH, None)
        else:
            os.environ[_SAFE_PATH] = known


_forget = resource_tracker.unregister


def _register_and_forget(name: Any, rtype: str) -> None:
    """The tracker that replaces one that was killed knows no names, and prints a traceback for each it is to forget."""
    with _safe_path():
        resource_tracker.register(name, rtype)
    _forget(name, rtype)


async def _started_here(workers: int) -> Any:
    """A local cluster, whose processes end with this one."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker of one imports the script
        raise ConfigError(_GUARD)
    resource_tracker.unregister = _register_and_forget
    warnings.filterwarnings("ignore", "resource_tracker: process died", UserWarning)  # another one does its work
    place = temporary_environment()
    # Of the scheduler too, and of its workers, one that is started again as well.
    settings = {"temporary-directory": place["TMPDIR"], f"distributed.nanny.pre-spawn-environ.{_SAFE_PATH}": "1"}
    try:
        with dask.config.set(settings), _safe_path():
            return await LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
                memory_limit=0,  # the memory of cells has a limit of its own
                env=place,
                asynchronous=True,
            )
    except RuntimeError as error:
        hint = _GUARD if get_options() is None else "A worker may have been killed: try again."
        why = _find_refusal(error) or f"{str(error).rstrip('.')}. {hint}"
        raise RunError(f"The cluster could not be started here: {why}") from None


def _find_refusal(error: BaseException | None) -> str:
    """What the system refused, however deep in the error of a library."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            full = ", /dev/shm or the folder of TMPDIR" if error.errno == errno.ENOSPC else ""
            return f"{error.strerror}{full}."
        error = error.__cause__ or error.__context__
    return ""


def _store(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        write_atomically(path, content, own=True)


def _told(answer: Any) -> str | None:
    if answer is None or isinstance(answer, (OSError, TimeoutError)):  # it is just leaving
        return None
    return answer if isinstance(answer, str) else _first_line(answer)


def _first_line(error: object) -> str:
    text = str(error).partition("\n")[0]
    if isinstance(error, _CallError):
        return text
    if type(error) is Exception and (named := _NAMED.fullmatch(text)):  # dask tells of an error of its worker so
        return f"{named[1]}: {named[3]}"
    return f"{type(error).__name__}: {text}".rstrip(": .")
