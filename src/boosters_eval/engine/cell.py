"""What the engine runs: cells, each with a spec, a target and a repeat. Only their workload knows what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from annotated_types import Ge, MinLen
from pydantic import SerializerFunctionWrapHandler, StringConstraints, model_serializer

from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from boosters_eval.core.repeat import Repeat


class Spec(Model):
    """What is to be done, independent of the target. A workload's own spec adds what its cells depend on."""

    workload: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$")]
    name: Annotated[str, MinLen(1)]
    n_threads: Annotated[int, Ge(1)] = 1
    alone: bool = False  # no other cell may run at the same time

    @property
    def preload(self) -> tuple[str, ...]:
        """What a lane must load besides its target; only the workload interprets it."""
        return ()

    @property
    def uses_device(self) -> bool:
        """Whether its cells compute on a CUDA device, which is then recorded with the machine."""
        return False

    @property
    def is_paired(self) -> bool:
        """Whether the targets of a repeat are compared by times, so that all of them belong to one session of a run."""
        return False

    def identity(self) -> dict[str, Any]:
        """What an outcome depends on, as plain data: the part of a run's id that this spec contributes."""
        return self.model_dump(mode="json")


class Build(Model):
    """A target as installed: its version, and a digest that changes when the same version is rebuilt."""

    version: str
    digest: str
    library: str | None = None  # of a build that is not the one installed: what it is a build of
    packages: str | None = None  # of one with an environment of its own: what that contains besides

    @model_serializer(mode="wrap")
    def _without_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A target that is installed is written as before there were builds: its plan, its run."""
        content: dict[str, Any] = handler(self)
        for name in ("library", "packages"):
            if content.get(name) is None:
                content.pop(name, None)
        return content


class Installation(Model):
    """A build as plain data, so that another process can use it: what it is a build of, and what to import it from."""

    library: str
    version: str
    digest: str  # of the library's own files; of an isolated build also of the versions beside it
    path: tuple[str, ...]  # folders that come first on the import path
    isolated: bool = False  # nothing of this environment is importable besides
    packages: str = ""  # then: what there is besides, with versions
    stamp: str = ""  # of the files as they were when it was named; they must still be so when they are imported


class Target(Model):
    """Who does the work of a cell: a library, a build of one, a binding; its name stands in plans and tables."""

    name: str
    build: Build
    installation: Installation | None = None  # where a build lies; None: it is what this environment has

    @property
    def library(self) -> str:
        """What it is a target of: a build has a name of its own."""
        return self.build.library or self.name

    def __str__(self) -> str:
        return self.name


class Lane(NamedTuple):
    """The cells that share one process in which everything is imported, and from which each of them is forked."""

    workload: str
    target: Target
    n_threads: int
    preload: tuple[str, ...] = ()


class Cell(NamedTuple):
    """One unit of work: a spec, the target that carries it out, and the repeat."""

    spec: Spec
    target: Target
    repeat: Repeat

    @property
    def key(self) -> str:
        """The cell's name within its plan."""
        return cell_key(self.spec.name, self.target.name, *self.repeat)

    @property
    def lane(self) -> Lane:
        """Where the cell runs."""
        return Lane(self.spec.workload, self.target, self.spec.n_threads, self.spec.preload)

    def __str__(self) -> str:
        return f"{self.spec.name} {self.target} {self.repeat}"


def cell_key(spec: str, target: str, seed: int, fold: int | None) -> str:
    """A cell's name within its plan, the same in plan, journal and results."""
    return f"{spec}|{target}|{seed}" if fold is None else f"{spec}|{target}|{seed}|{fold}"
