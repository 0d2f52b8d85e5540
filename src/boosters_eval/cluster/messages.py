"""What the program and its nodes tell each other: JSON text in both directions, never objects of ours."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.model import Model
from boosters_eval.engine.cell import Lane, Target
from boosters_eval.engine.handles import Identity
from boosters_eval.engine.importpath import ImportPath

FORGOTTEN = "it has forgotten this program"  # of a node that rested for long, and must be asked anew


class WantedLane(Model):
    """A lane that the plan's cells need, and what it must have loaded."""

    workload: str
    target: Target
    n_threads: int
    preload: tuple[str, ...]
    address: dict[str, Any]
    workload_address: dict[str, Any]
    first: tuple[str, ...]
    isolated: bool
    imports: tuple[str, ...]

    @classmethod
    def of(cls, lane: Lane, identity: Identity) -> WantedLane:
        """As the program has it."""
        return cls(
            **lane._asdict(),
            address=identity.address,
            workload_address=identity.workload,
            first=identity.path.first,
            isolated=identity.path.isolated,
            imports=identity.imports,
        )

    @property
    def lane(self) -> Lane:
        """The lane itself."""
        return Lane(self.workload, self.target, self.n_threads, self.preload)

    @property
    def identity(self) -> Identity:
        """What the lane must have loaded."""
        path = ImportPath(self.first, self.isolated)
        return Identity(self.target.build, self.address, self.workload_address, path, self.imports)


class Question(Model):
    """What a node is asked before it gets cells: whether it has all that the plan needs.

    Each run asks anew: a file that a lane has loaded may have changed since the last one.
    """

    run: str
    version: str  # of boosters-eval
    lanes: tuple[WantedLane, ...]
    files: dict[str, str]  # of the user, by path, with the digest of their content
    timeout_s: float | None
    device: bool  # whether cells compute on a CUDA device


class Introduction(Model):
    """A node's answer."""

    version: str
    python: str
    machine: dict[str, Any]
    host: str  # equal for all workers on one machine
    cpus: tuple[int, ...]
    faults: tuple[str, ...] = ()  # why it cannot run the plan's cells

    def machine_info(self) -> MachineInfo:
        """Its machine."""
        return MachineInfo.model_validate(self.machine)


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
    written: dict[str, tuple[Item, ...]] = Field(
        default_factory=dict
    )  # the files that it wrote, by the name of the input
