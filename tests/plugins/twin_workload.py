"""A workload whose targets are builds of the package `twin`; its cells tell what they see of it."""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Literal

from boosters_eval import Build, CellOutcome, Outcome, Spec, Target, Workload

FOLDERS: dict[str, tuple[str, ...]] = {}  # by target, set by a test
ISOLATED: set[str] = set()
IMPORTS: list[str] = ["twin"]


class TwinSpec(Spec):
    workload: Literal["twin"] = "twin"
    kill: Literal["", "lane", "ancestor"] = ""  # by the first repeat of the first build


class Seen(CellOutcome):
    value: int
    build: dict[str, str]
    files: list[str]  # of modules
    code: list[str]  # shared objects mapped in the cell's process and in its lane
    ancestor_code: list[str]
    places: dict[str, str]  # of all that is mapped in the lane: its first address
    lane: int
    path: list[str]
    python_path: str
    site: bool


class Twin(Workload):
    name: ClassVar[str] = "twin"
    spec_type: ClassVar[type[Spec]] = TwinSpec
    outcome_type: ClassVar[type[Outcome]] = Seen

    @classmethod
    def target(cls, name):
        return Target(name=name, build=Build(version="1", digest=name))

    @classmethod
    def path(cls, target):
        return FOLDERS.get(target.name, ())

    @classmethod
    def isolated(cls, target):
        return target.name in ISOLATED

    @classmethod
    def imports(cls, target):
        return tuple(IMPORTS)

    @classmethod
    def load(cls, lane, address):
        import_module("twin.part")
        return address["build"]

    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        lane = os.getppid()
        ancestor = int(Path(f"/proc/{lane}/stat").read_text().rpartition(")")[2].split()[1])
        if cell.spec.kill and cell.target.name == "first" and cell.repeat.seed == 1:
            phase("killing")
            os.kill(lane if cell.spec.kill == "lane" else ancestor, signal.SIGKILL)
            signal.pause()
        twin = sys.modules["twin"]
        return Seen.of(
            cell,
            value=twin.VALUE,
            build=loaded,
            files=sorted(filter(None, (getattr(module, "__file__", None) for module in list(sys.modules.values())))),
            code=sorted(_mapped("self") | _mapped(lane)),
            ancestor_code=sorted(_mapped(ancestor)),
            places=dict(reversed(_mappings(lane))),
            lane=lane,
            path=sys.path,
            python_path=os.environ.get("PYTHONPATH", ""),
            site="site" in sys.modules,
        )


def _mapped(pid):
    return {path for path, _ in _mappings(pid) if ".so" in path}


def _mappings(pid):
    lines = [line.split(maxsplit=5) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return [(line[5], line[0].partition("-")[0]) for line in lines if len(line) > 5]
