"""A workload whose cells tell which of three modules their process contains; only the target 'few' needs just one."""

import sys
from importlib import import_module
from typing import ClassVar

from boosters_eval import Build, CellOutcome, Outcome, Spec, Workload

MODULES = ("csv", "xml.dom.minidom", "sqlite3")


class Contained(CellOutcome):
    modules: tuple[str, ...]


class Sharing(Workload):
    name: ClassVar[str] = "sharing"
    spec_type: ClassVar[type[Spec]] = Spec
    outcome_type: ClassVar[type[Outcome]] = Contained

    @classmethod
    def build(cls, target):
        return Build(version="1", digest="0" * 16)

    @classmethod
    def imports(cls, target):
        return MODULES[:1] if target == "few" else MODULES

    @classmethod
    def load(cls, lane, address):
        for name in cls.imports(lane.target):
            import_module(name)

    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        return Contained.of(cell, modules=tuple(name for name in MODULES if name in sys.modules))
