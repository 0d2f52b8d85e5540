"""A workload that reads a file, makes another, and stores an array: what its cells write must be brought home."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from boosters_eval import Build, CellOutcome, Outcome, Spec, Target, Workload
from boosters_eval.engine.artifacts import save_array


class StoringSpec(Spec):
    workload: Literal["storing"] = "storing"
    bound: bool = False


class StoringOutcome(CellOutcome):
    array: str
    read: str
    told: str
    made_before: bool


class Storing(Workload):
    name: ClassVar[str] = "storing"
    spec_type: ClassVar[type[Spec]] = StoringSpec
    outcome_type: ClassVar[type[Outcome]] = StoringOutcome
    makes: ClassVar[frozenset[str]] = frozenset({"made"})

    @classmethod
    def target(cls, name):
        return Target(name=name, build=Build(version="1", digest="1"))

    @classmethod
    def bound_here(cls, cell, inputs):
        return "it reads a file that only this machine has" if cell.spec.bound else None

    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        made = Path(inputs["made"], "file")
        before = made.exists()
        made.write_text("made")
        return StoringOutcome.of(
            cell,
            array=save_array(Path(inputs["artifacts"]), np.arange(cell.repeat.seed * 1000)),
            read=Path(inputs["data"], "folder", "file.txt").read_text(),
            told=inputs["told"],
            made_before=before,
        )
