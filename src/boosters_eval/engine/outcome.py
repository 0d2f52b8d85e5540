"""How a cell ends: with an outcome of the type that its workload names, or with a failure. Both are recorded."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import ConfigDict, Field

from boosters_eval.core.model import FileModel
from boosters_eval.engine.cell import cell_key

if TYPE_CHECKING:
    from boosters_eval.engine.cell import Cell


# The digest of the machine that a cell ran on; None, which is not written: that of the run's own facts.
NodeMachine = Annotated[str | None, Field(exclude_if=lambda digest: digest is None)]


class Sighting(NamedTuple):
    """What was observed of a cell's process from outside."""

    threads: int | None
    start_method: str


class Common(FileModel):
    """What the outcomes of one spec and target have in common: stored once, on disk and in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The common part of an outcome."""
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
    machine: NodeMachine = None

    @property
    @abstractmethod
    def key(self) -> str:
        """The key of its cell."""

    @property
    def digests(self) -> tuple[str, ...]:
        """Of the arrays that belong to it, in the folder `arrays` of its run."""
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
        """The record of a cell."""
        seed, fold = cell.repeat
        return cls(spec=cell.spec.name, target=cell.target.name, seed=seed, fold=fold, **facts)

    @property
    def key(self) -> str:
        """The key of its cell."""
        return cell_key(self.spec, self.target, self.seed, self.fold)


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
    machine: NodeMachine = None


class ImportFailure(Failure):
    """The failure of a cell whose lane could not load its target; another machine may have a better one."""
