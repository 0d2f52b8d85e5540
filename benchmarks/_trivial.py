"""A workload that does nothing, for what a cell costs the program; workers import it from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boosters_eval import Build, CellOutcome, Outcome, Spec, Target, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval import Cell


class TrivialSpec(Spec):
    workload: Literal["trivial"] = "trivial"


class TrivialOutcome(CellOutcome):
    value: int


class Trivial(Workload):
    name: ClassVar[str] = "trivial"
    spec_type: ClassVar[type[Spec]] = TrivialSpec
    outcome_type: ClassVar[type[Outcome]] = TrivialOutcome

    @classmethod
    def target(cls, name: str) -> Target:
        return Target(name=name, build=Build(version=name, digest=name))

    @classmethod
    def run(cls, cell: Cell, loaded: Any, inputs: Mapping[str, str], phase: Callable[[str], None]) -> TrivialOutcome:
        del loaded, inputs
        phase("nothing")
        return TrivialOutcome.of(cell, value=cell.repeat.seed)
