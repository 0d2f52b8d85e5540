"""What the engine runs, and how it ends: cells with a spec, a target and a repeat; outcomes and failures."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

from annotated_types import Ge, MinLen
from pydantic import ConfigDict, StringConstraints

from boosters_eval.core.model import FileModel, Model

if TYPE_CHECKING:
    from boosters_eval.core.request import Part, Repeat


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

    @property
    def work(self) -> float:
        """How much there is to do, to scale within a plan: what is long starts first, so that no core waits for it."""
        return 0.0

    def identity(self) -> dict[str, Any]:
        """What an outcome depends on, as plain data: the part of a run's id that this spec contributes."""
        return self.model_dump(mode="json")


class Build(Model):
    """A target as installed: its version, and a digest that changes when the same version is rebuilt."""

    version: str
    digest: str
    library: str | None = None  # of a build that is not the one installed: what it is a build of
    packages: str | None = None  # of one with an environment of its own: what that contains besides


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
    part: Part | None = None  # where the repeats share the rows out among themselves

    @property
    def key(self) -> str:
        return make_key(self.spec.name, self.target.name, *self.repeat)

    @property
    def lane(self) -> Lane:
        return Lane(self.spec.workload, self.target, self.spec.n_threads, self.spec.preload)

    def __str__(self) -> str:
        return f"{self.spec.name} {self.target} {self.repeat}"


def make_key(spec: str, target: str, seed: int, fold: int | None) -> str:
    """A cell's name within its plan, the same in plan, journal and results."""
    return f"{spec}|{target}|{seed}" if fold is None else f"{spec}|{target}|{seed}|{fold}"


class Sighting(NamedTuple):
    """What was observed of a cell's process from outside."""

    threads: int | None
    start_method: str


class Common(FileModel):
    """What the outcomes of one spec and target have in common: stored once, on disk and in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        return cls(**{name: getattr(outcome, name) for name in cls.taken()})

    def give_to(self, outcome: Outcome) -> None:
        """Put the common part back into an outcome that was read without it."""
        vars(outcome).update({name: getattr(self, name) for name in self.taken()})

    @classmethod
    def taken(cls) -> frozenset[str]:
        """The fields of the outcome that are stored here instead of in its own line."""
        return frozenset(cls.model_fields)


class Outcome(FileModel):
    """A cell that finished. A workload's own outcome identifies its cell and holds the results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    common_type: ClassVar[type[Common] | None] = None

    failed_before: int = 0  # how many earlier tries of the same cell failed: more than 0 means that it is flaky
    killed_before: int = 0  # how many tries were ended from outside, which says nothing of the target
    machine: str | None = None  # the digest of the machine that it ran on; None: that of the run's own facts

    @property
    @abstractmethod
    def key(self) -> str:
        """The key of its cell."""

    @property
    def digests(self) -> tuple[str, ...]:
        """Of the arrays that belong to it, in the folder `arrays` of its run."""
        return ()

    @property
    def kept_digests(self) -> tuple[str, ...]:
        """Of the arrays in the folder `predictions` of its run, which may be removed to make room."""
        return ()

    def summary(self) -> str:
        """What `--verbose` prints of it, in a few words."""
        return "done"

    def with_sighting(self, sighting: Sighting) -> Self:  # noqa: ARG002 (an outcome may have no use for it)
        """The same outcome, with what was observed of its process."""
        return self


class CellRecord(FileModel):
    """Identifies a cell by the engine's own field names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str
    target: str
    seed: int
    fold: int | None = None

    @classmethod
    def of(cls, cell: Cell, **facts: Any) -> Self:
        seed, fold = cell.repeat
        return cls(spec=cell.spec.name, target=cell.target.name, seed=seed, fold=fold, **facts)

    @property
    def key(self) -> str:
        return make_key(self.spec, self.target, self.seed, self.fold)


class CellOutcome(CellRecord, Outcome):
    """The base of outcomes that need no field names of their own to identify their cell."""


class Failure(CellRecord):
    """A cell that failed: what happened, where, and everything needed to find out why."""

    error_type: str
    error_message: str
    traceback: str | None = None
    phase: str = "start"
    signal: str | None = None
    stderr_tail: str = ""
    failed_before: int = 0  # not counting this one
    killed_before: int = 0  # as of an outcome; more than one such end is a failure, but does not make a cell flaky
    machine: str | None = None

    def summary(self) -> str:
        return "failed"


class ImportFailure(Failure):
    """The failure of a cell whose lane could not load its target; another machine may have a better one."""
