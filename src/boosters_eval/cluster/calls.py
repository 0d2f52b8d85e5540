"""What the program calls on a worker. All take and give text, and never raise: an error would travel pickled."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from typing import TYPE_CHECKING, Any

from distributed import get_worker

from boosters_eval.cluster.introduction import introduce
from boosters_eval.cluster.messages import FORGOTTEN, CellReply, Manifest, Order, Post, Question
from boosters_eval.cluster.names import plugin_name, task_key
from boosters_eval.cluster.node import Node
from boosters_eval.cluster.parcels import CHUNK, inside

if TYPE_CHECKING:
    from collections.abc import Callable

_BEGUN = ("executing", "long-running", "memory", "error")  # states of a task that runs, or has run
_RECALLED: set[str] = set()  # the tasks that were taken back; they are few, and outlive a node that is met anew


def _node(worker: Any, session: str) -> Node | None:
    found: Node | None = worker.plugins.get(plugin_name(session))
    return found


async def meet(session: str, question: str, *, dask_worker: Any) -> str:
    """Introduce the node; if it fits, it becomes one."""
    answer = await asyncio.to_thread(introduce, question)
    if not answer.faults and _node(dask_worker, session) is None:
        try:
            node = await asyncio.to_thread(_made, session, dask_worker.local_directory)
        except OSError as error:
            fault = f"it cannot write to its folder {dask_worker.local_directory}: {error.strerror}"
            return answer.replace(faults=(fault,)).model_dump_json()
        if _node(dask_worker, session) is None:
            await dask_worker.plugin_add(node, node.name)
        else:  # it was asked twice
            await asyncio.to_thread(node.discard)
    return answer.model_dump_json()


def _made(session: str, folder: str) -> Node:
    node = Node(session, folder)
    node.store.clean()
    return node


async def take_post(session: str, question: str, post: str, *, dask_worker: Any) -> str:
    """Get ready for cells. What is wrong, or ''."""
    node = _node(dask_worker, session)
    if node is None:
        return FORGOTTEN
    return await _tried(node.begin, Question.model_validate_json(question), Post.model_validate_json(post))


async def run_cell(session: str, number: int, order: str) -> str:
    """A task: one cell."""
    node = _node(get_worker(), session)
    if node is None or task_key(session, number) in _RECALLED:
        text = FORGOTTEN if node is None else "the cell was taken back"
        return CellReply(kind="unready", text=text).model_dump_json()
    return (await node.run(Order.model_validate_json(order))).model_dump_json()


async def recall(session: str, numbers: str, *, dask_worker: Any) -> str:
    """Take cells back: the numbers of those that have not begun, and now never will."""
    tasks = dask_worker.state.tasks
    found = {number: tasks.get(task_key(session, number)) for number in numbers.split()}
    waiting = [number for number, task in found.items() if task is None or task.state not in _BEGUN]
    _RECALLED.update(task_key(session, number) for number in waiting)
    return " ".join(waiting)


def lease() -> bool:
    """A task whose result the program holds."""
    return True


async def has_parcel(session: str, digest: str, *, dask_worker: Any) -> bool:
    """Whether the node has an input."""
    node = _node(dask_worker, session)
    return node is not None and await asyncio.to_thread(node.store.find, digest) is not None


async def receive(session: str, digest: str, path: str, offset: int, data: bytes, *, dask_worker: Any) -> str:
    """A piece of an input. What is wrong, or ''."""
    node = _node(dask_worker, session)
    return FORGOTTEN if node is None else await _tried(node.receive, digest, path, offset, data)


async def complete(session: str, digest: str, manifest: str, *, dask_worker: Any) -> str:
    """The end of an input. What is wrong, or ''."""
    node = _node(dask_worker, session)
    if node is None:
        return FORGOTTEN
    return await asyncio.to_thread(node.store.complete, digest, Manifest.model_validate_json(manifest))


async def fetch(session: str, path: str, offset: int, *, dask_worker: Any) -> bytes | None:
    """A piece of what a cell has written; None if it is gone."""
    node = _node(dask_worker, session)
    if node is None:
        return None

    def read() -> bytes | None:
        with contextlib.suppress(OSError, ValueError), inside(node.scratch, path).open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK)
        return None

    return await asyncio.to_thread(read)


async def clear(session: str, path: str, *, dask_worker: Any) -> None:
    """Remove what a cell has written, once the program has it."""
    node = _node(dask_worker, session)
    if node is not None and path:
        await asyncio.to_thread(shutil.rmtree, inside(node.scratch, path), ignore_errors=True)


async def stop(session: str, *, dask_worker: Any) -> None:
    """Stop the running cells."""
    node = _node(dask_worker, session)
    if node is not None:
        await asyncio.to_thread(node.stop)


async def leave(session: str, *, dask_worker: Any) -> None:
    """The program ends: nothing of it remains on the node but what it has loaded, for a while."""
    node = _node(dask_worker, session)
    if node is not None:
        await node.part()


async def _tried(act: Callable[..., None], *arguments: Any) -> str:
    try:
        await asyncio.to_thread(act, *arguments)
    except Exception as error:  # noqa: BLE001 (told to the program as text)
        return f"{type(error).__name__}: {error}"
    return ""
