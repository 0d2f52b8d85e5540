"""A workload whose targets are no Python libraries: shells that run a script. The engine knows nothing of it."""

import gc
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar, Literal

from boosters_eval import Build, CellOutcome, Outcome, Spec, Target, Workload


class ShellSpec(Spec):
    """A script that prints a number; SEED is in its environment."""

    workload: Literal["shell"] = "shell"
    script: str
    note: str = ""


class ShellOutcome(CellOutcome):
    """The number, how many threads were seen, and whether the process of the cell collects garbage."""

    value: float
    collects: bool = False
    threads: int | None = None

    def with_sighting(self, sighting):
        return self.model_copy(update={"threads": sighting.threads})


class ShellError(Exception):
    """A shell that did not answer."""


class Shell(Workload):
    name: ClassVar[str] = "shell"
    spec_type: ClassVar[type[Spec]] = ShellSpec
    outcome_type: ClassVar[type[Outcome]] = ShellOutcome

    @classmethod
    def target(cls, name):
        path = Path(shutil.which(name) or "missing")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        return Target(name=name, build=Build(version=path.name, digest=digest))

    @classmethod
    def load(cls, lane, address):
        if os.environ.get("BROKEN_SHELL") == lane.target.name:
            raise ImportError("libshell.so is missing")

    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        phase("answer")
        env = {**os.environ, "SEED": str(cell.repeat.seed), **inputs}
        done = subprocess.run(
            [cell.target.name, "-c", cell.spec.script], env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ShellError(f"{cell.target} ended with {done.returncode}: {done.stderr.strip()}")
        return ShellOutcome.of(cell, collects=gc.isenabled(), value=float(done.stdout))
