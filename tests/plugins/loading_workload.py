"""A workload whose cells tell what their lane has loaded: one module for each lane, and one that lanes share."""

import sys
from importlib import import_module
from typing import ClassVar, Literal

from boosters_eval import Build, CellOutcome, Outcome, Spec, Target, Workload


class LoadingSpec(Spec):
    workload: Literal["loading"] = "loading"
    modules: tuple[str, ...]
    digest: str = ""  # of the modules, as that of a user's metric

    @property
    def preload(self):
        return (*self.modules, self.digest)


class Loaded(CellOutcome):
    values: list[float]


class Loading(Workload):
    name: ClassVar[str] = "loading"
    spec_type: ClassVar[type[Spec]] = LoadingSpec
    outcome_type: ClassVar[type[Outcome]] = Loaded

    @classmethod
    def target(cls, name):
        return Target(name=name, build=Build(version="1", digest="0" * 16))

    @classmethod
    def imports(cls, target):
        return ("shared_by_lanes",)

    @classmethod
    def load(cls, lane, address):
        for name in (*lane.preload[:-1], "shared_by_lanes"):
            import_module(name)

    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        return Loaded.of(cell, values=[sys.modules[name].VALUE for name in (*cell.spec.modules, "shared_by_lanes")])
