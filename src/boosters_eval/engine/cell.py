"""What the engine runs: cells, each a spec, a target and a repeat. What they mean is known to their workload alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from annotated_types import Ge, MinLen
from pydantic import StringConstraints

from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from boosters_eval.core.repeat import Repeat


class Spec(Model):
    """What is to be done, whoever does it. A workload's own spec adds what its cells depend on."""

    workload: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$")]
    name: Annotated[str, MinLen(1)]
    n_threads: Annotated[int, Ge(1)] = 1
    alone: bool = False  # nothing else may run beside its cells

    @property
    def preload(self) -> tuple[str, ...]:
        """What a lane must load beside its target, in the workload's own words."""
        return ()

    def identity(self) -> dict[str, Any]:
        """What an outcome depends on, as plain data: the part of a run's id that this spec contributes."""
        return self.model_dump(mode="json")


class Lane(NamedTuple):
    """The cells that share an interpreter with everything imported: one process, from which each cell is forked."""

    workload: str
    target: str
    n_threads: int
    preload: tuple[str, ...] = ()


class Cell(NamedTuple):
    """One unit of work: a spec, the target that does it, and the repeat."""

    spec: Spec
    target: str
    repeat: Repeat

    @property
    def key(self) -> str:
        """The cell's name within its plan."""
        return cell_key(self.spec.name, self.target, *self.repeat)

    @property
    def lane(self) -> Lane:
        """Where the cell runs."""
        return Lane(self.spec.workload, self.target, self.spec.n_threads, self.spec.preload)

    def __str__(self) -> str:
        return f"{self.spec.name} {self.target} {self.repeat}"


def cell_key(spec: str, target: str, seed: int, fold: int | None) -> str:
    """A cell's name within its plan; the same in plan, journal and results."""
    return f"{spec}|{target}|{seed}" if fold is None else f"{spec}|{target}|{seed}|{fold}"


class Build(Model):
    """A target as it is installed: its version, and a digest that a rebuild under the same version changes."""

    version: str
    digest: str
