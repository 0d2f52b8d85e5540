"""What the program and its nodes send each other: JSON text in both directions, never objects of ours, and parcels.

A parcel is an input, known by the digest of its content, which is read once however many cells need it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from boosters_eval.core.files import compute_digest, compute_file_digest
from boosters_eval.core.model import Model
from boosters_eval.core.request import Part
from boosters_eval.datasets.fetch import cache_root
from boosters_eval.engine.cell import Lane
from boosters_eval.engine.lanes import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORGOTTEN = "it has forgotten this program"  # of a node that rested for long, and must be asked anew


class Question(Model):
    """What a node is asked before it gets cells: whether it has all that the plan needs.

    Each run asks anew: a file that a lane has loaded may have changed since the last one.
    """

    run: str
    version: str  # of boosters-eval
    lanes: tuple[tuple[Lane, Identity], ...]
    files: dict[str, str]  # of the user, by path, with the digest of their content
    timeout_s: float | None
    device: bool  # whether cells compute on a CUDA device


class Introduction(Model):
    """A node's answer."""

    machine: dict[str, Any]
    host: str  # equal for all workers on one machine
    cpus: tuple[int, ...]
    faults: tuple[str, ...] = ()  # why it cannot run the plan's cells


class Post(Model):
    """How many cells a node runs at a time, and on which CPUs; None: on any that it has."""

    jobs: int
    cpus: tuple[int, ...] | None


class Input(Model):
    """Where a cell finds one of its inputs on the node."""

    kind: Literal["text", "parcel", "written", "made"]
    text: str = ""  # the input itself, or the digest of a parcel


class Order(Model):
    """A cell to run."""

    lane: int  # its position in the question
    spec: dict[str, Any]
    repeat: tuple[int, int | None]
    part: Part | None
    inputs: dict[str, Input]
    timeout_s: float | None
    memory_mb: float | None


class Item(Model):
    """A file of a parcel, or one that a cell has written: its path in the folder, its size, and its digest."""

    path: str
    size: int
    digest: str


class Manifest(Model):
    """A parcel: a file or a folder, with all that it holds."""

    name: str
    folder: bool
    items: tuple[Item, ...]


class CellReply(Model):
    """What became of a cell: an outcome or a failure as text, or the reason why the node did not run it.

    A failure is "unloaded" if the node could not load the library.
    """

    kind: Literal["result", "failure", "unloaded", "unready"]
    text: str
    written: dict[str, tuple[Item, ...]] = Field(default_factory=dict)  # its files, by the name of the input


# The plug-in and the tasks of a program have its session in their names: another program on the cluster has its own.


def name_plugin(session: str) -> str:
    return f"boosters-eval-{session}"


def name_task(session: str, number: int | str) -> str:
    return f"boosters-eval-{session}-{number}"


def name_lease(session: str, address: str) -> str:
    """How the key of a task begins whose result the program holds for as long as it is there.

    The worker is part of it: dask copies the result of one that is retired to another, where it means nothing.
    """
    return f"boosters-eval-lease-{session}-{address}-"


# What the connection to a cluster tells the program


class Members(NamedTuple):
    """The workers of the cluster, with their threads, and those of them that dask holds back from starting tasks."""

    threads: Mapping[str, int]
    held: frozenset[str] | None = None  # None: it was not asked for


class Recalled(NamedTuple):
    """The cells that a worker had not begun, and has given back, by number."""

    address: str
    numbers: frozenset[int]


class Left(NamedTuple):
    """A worker is gone; one that was retired has not died."""

    address: str
    retired: bool = False


class Met(NamedTuple):
    """What a worker says of itself, or why it cannot say anything; None if it cannot be reached."""

    address: str
    question: str
    told: Introduction | str | None


class Posted(NamedTuple):
    """A node is ready (''), or what is wrong with it; None if it cannot be reached."""

    address: str
    question: str
    fault: str | None


class Sent(NamedTuple):
    """An input is on a node, or what is wrong: with the input or the node's store, or only with the call."""

    address: str
    digest: str
    fault: str = ""
    interrupted: str = ""


class Answered(NamedTuple):
    """What became of a cell."""

    number: int
    reply: CellReply


ClusterNews = Members | Recalled | Left | Met | Posted | Sent | Answered


CHUNK = 8 * 2**20  # bytes of a file that are in memory at a time


@dataclass(frozen=True)
class Parcel:
    """A file or folder of this machine, and what it contains."""

    source: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        return compute_digest(self.manifest.model_dump_json(), 32)

    def pieces(self) -> Iterator[tuple[str, int, bytes]]:
        """Its content: of each file the path within the parcel, and its pieces with their offsets."""
        for item in self.manifest.items:
            offset = 0
            with (self.source / item.path if self.manifest.folder else self.source).open("rb") as file:
                while (data := file.read(CHUNK)) or offset == 0:
                    yield item.path, offset, data
                    offset += len(data)
                    if not data:
                        break


class Parcels:
    """The parcels of a program, by path; a file is read again only if its time or size have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[object, ...], Parcel]] = {}

    def of(self, path: str) -> Parcel:
        source = Path(path)
        files = sorted(file for file in source.rglob("*") if file.is_file()) if source.is_dir() else [source]
        stamp = tuple((str(file), found.st_mtime_ns, found.st_size) for file in files if (found := file.stat()))
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            root = source if source.is_dir() else source.parent
            items = tuple(describe_file(file, root) for file in files)
            manifest = Manifest(name=source.name, folder=source.is_dir(), items=items)
            known = self._known[path] = (stamp, Parcel(source, manifest))
        return known[1]


def describe_file(file: Path, root: Path) -> Item:
    return Item(path=file.relative_to(root).as_posix(), size=file.stat().st_size, digest=compute_file_digest(file))


def resolve_inside(folder: Path, path: str) -> Path:
    """Refuse a path that leads out of its folder, whoever sent it."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError(f"{path} is not inside of its folder.")
    return folder / path


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
        while self._arriving:
            shutil.rmtree(self._arriving.popitem()[1], ignore_errors=True)

    def _begun(self) -> Path:
        self._root.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_ARRIVING, dir=self._root))

    def complete(self, digest: str, manifest: Manifest) -> str:
        """Verify a parcel and move it to its place. What is wrong with it, or ''."""
        arrived = self._arriving.pop(digest, None)
        try:
            arrived = arrived or self._begun()  # of a folder without files, nothing came
            for item in manifest.items:
                if compute_file_digest(resolve_inside(arrived, item.path)) != item.digest:
                    return f"{manifest.name} has changed on its way: the digest of {item.path} is another"
            self._place(arrived, self._root / digest, manifest)
        except OSError as error:
            return f"{manifest.name} cannot be stored: {error.strerror}"
        finally:
            if arrived is not None:
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
