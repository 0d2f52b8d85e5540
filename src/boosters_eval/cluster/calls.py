"""What the program calls on a worker.

All of it takes and gives text, and never raises: an error would travel pickled. Where the answer is what went wrong, ''
means that nothing did.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import get_worker

from boosters_eval.cluster.messages import (
    CHUNK,
    FORGOTTEN,
    CellReply,
    Introduction,
    Manifest,
    Order,
    Post,
    Question,
    name_plugin,
    name_task,
    resolve_inside,
)
from boosters_eval.cluster.node import Node
from boosters_eval.core import __version__
from boosters_eval.core.files import compute_digest, compute_file_digest
from boosters_eval.core.machine import MachineInfo, list_cpus
from boosters_eval.core.modules import load_address
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.cluster.messages import WantedLane
    from boosters_eval.engine.cell import Build


def introduce(question: str) -> Introduction:
    """Who this node is, and why it cannot run the plan, if it cannot."""
    version, python = str(json.loads(question).get("version")), platform.python_version()
    machine: dict[str, Any] = {}
    host, cpus = "", list[int]()
    if version != __version__:  # whose questions may be others
        faults = [f"the plan is of boosters-eval {version}, the node has {__version__}"]
    else:
        try:
            asked = Question.model_validate_json(question)
            checks = (*(_check_file(*file) for file in asked.files.items()), *map(_check_lane, asked.lanes))
            faults = [fault for fault in dict.fromkeys(checks) if fault]
            machine = MachineInfo.collect(device=asked.device).model_dump(mode="json")
            host, cpus = identify_host(), list_cpus()
        except Exception as error:  # noqa: BLE001 (told to the program as text)
            faults = [f"it cannot say what it has: {type(error).__name__}: {error}"]
    return Introduction(
        version=__version__, python=python, machine=machine, host=host, cpus=tuple(cpus), faults=tuple(faults)
    )


def _check_file(path: str, digest: str) -> str:
    try:
        same = compute_file_digest(Path(path)) == digest
    except OSError:
        return f"the plan uses {path}, which the node does not have"
    return "" if same else f"the node's {path} is not that of the plan"


def _check_lane(wanted: WantedLane) -> str:
    target, planned = wanted.target, _show_build(wanted.target.build)
    gone = next((folder for folder in wanted.first if not Path(folder).is_dir()), None)
    if gone is not None:
        return f"the plan has {target} {planned}, the node has none, because it has no folder {gone}"
    try:
        workload = load_address(wanted.workload_address)
        WORKLOADS.register(wanted.workload, workload, replace=True)
        if wanted.first or wanted.address.get("file"):
            return ""  # the lane itself compares what it has loaded
        found = workload.target(target.name).build
    except Exception as error:  # noqa: BLE001 (a package that is not there, or is broken)
        return f"the plan has {target} {planned}, the node has none: {type(error).__name__}: {error}"
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


def _node(worker: Any, session: str) -> Node | None:
    found: Node | None = worker.plugins.get(name_plugin(session))
    return found


async def meet(session: str, question: str, *, dask_worker: Any) -> str:
    """Introduce the node; if it fits, it becomes one."""
    answer = await asyncio.to_thread(introduce, question)
    if not answer.faults and _node(dask_worker, session) is None:
        try:
            node = await asyncio.to_thread(Node, session, dask_worker.local_directory)
        except OSError as error:
            fault = f"it cannot write to its folder {dask_worker.local_directory}: {error.strerror}"
            return answer.replace(faults=(fault,)).model_dump_json()
        if _node(dask_worker, session) is None:
            await dask_worker.plugin_add(node, node.name)
        else:  # it was asked twice
            await asyncio.to_thread(node.discard)
    return answer.model_dump_json()


async def take_post(session: str, question: str, post: str, *, dask_worker: Any) -> str:
    """Get ready for cells."""
    node = _node(dask_worker, session)
    if node is None:
        return FORGOTTEN
    return await _attempt(node.begin, Question.model_validate_json(question), Post.model_validate_json(post))


async def run_cell(session: str, number: int, order: str) -> str:
    """A task: one cell."""
    node = _node(get_worker(), session)
    if node is None or name_task(session, number) in _RECALLED:
        text = FORGOTTEN if node is None else "the cell was taken back"
        return CellReply(kind="unready", text=text).model_dump_json()
    return (await node.run(Order.model_validate_json(order))).model_dump_json()


async def recall(session: str, numbers: str, *, dask_worker: Any) -> str:
    """Take cells back: the numbers of those that have not begun, and now never will."""
    tasks = dask_worker.state.tasks
    found = {number: tasks.get(name_task(session, number)) for number in numbers.split()}
    waiting = [number for number, task in found.items() if task is None or task.state not in _BEGUN]
    _RECALLED.update(name_task(session, number) for number in waiting)
    return " ".join(waiting)


def lease() -> bool:
    """A task whose result the program holds."""
    return True


async def has_parcel(session: str, digest: str, *, dask_worker: Any) -> bool:
    node = _node(dask_worker, session)
    return node is not None and await asyncio.to_thread(node.store.find, digest) is not None


async def receive(session: str, digest: str, path: str, offset: int, data: bytes, *, dask_worker: Any) -> str:
    """A piece of an input."""
    node = _node(dask_worker, session)
    return FORGOTTEN if node is None else await _attempt(node.receive, digest, path, offset, data)


async def complete(session: str, digest: str, manifest: str, *, dask_worker: Any) -> str:
    """The end of an input."""
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
        with contextlib.suppress(OSError, ValueError), resolve_inside(node.scratch, path).open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK)
        return None

    return await asyncio.to_thread(read)


async def clear(session: str, path: str, *, dask_worker: Any) -> None:
    """Remove what a cell has written, once the program has it."""
    node = _node(dask_worker, session)
    if node is not None and path:
        await asyncio.to_thread(shutil.rmtree, resolve_inside(node.scratch, path), ignore_errors=True)


async def stop(session: str, *, dask_worker: Any) -> None:
    node = _node(dask_worker, session)
    if node is not None:
        await asyncio.to_thread(node.stop)


async def leave(session: str, *, dask_worker: Any) -> None:
    """The program ends: nothing of it remains on the node but what it has loaded, for a while."""
    node = _node(dask_worker, session)
    if node is not None:
        await node.part()


async def _attempt(act: Callable[..., None], *arguments: Any) -> str:
    try:
        await asyncio.to_thread(act, *arguments)
    except Exception as error:  # noqa: BLE001 (told to the program as text)
        return f"{type(error).__name__}: {error}"
    return ""
