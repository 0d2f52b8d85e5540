"""What a run depends on besides its plan: recorded when it runs, never looked up later."""

from __future__ import annotations

import platform
import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Self

from annotated_types import Gt, Lt
from pydantic import ConfigDict, Field

from boosters_eval.core import __version__
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.machine import Disturbance, MachineInfo
from boosters_eval.core.model import FileModel
from boosters_eval.engine.cell import Build
from boosters_eval.engine.limits import WAIT_POLICY
from boosters_eval.engine.plan import Exclusion

if TYPE_CHECKING:
    from boosters_eval.engine.plan import Plan


_KINDS = {"fit": "benchmark", "evaluate": "paper", "binding": "parity"}  # of runs whose kind nobody says


class RunFacts(FileModel):
    """Machine, time, versions and commit of a run: the content of environment.json, and part of a results file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Format = FORMAT
    started_at: str = ""
    boosters_eval: str = ""
    program: str = ""  # a digest of the code that computes outcomes, where finished cells may be taken over
    python: str = ""
    git_sha: str | None = None  # None: not in a repository
    git_branch: str | None = None
    git_dirty: bool | None = None
    rust: str | None = None
    machine: dict[str, str | int | float | None] = Field(default_factory=dict)
    targets: dict[str, Build] = Field(default_factory=dict)
    jobs: int = 1
    executor: str = ""
    start_method: str = ""
    details: dict[str, str] = Field(default_factory=dict)  # what else the executor tells of itself
    wait_policy: str = ""
    unavailable: tuple[Exclusion, ...] = ()  # targets that were asked for but cannot be used here
    command: tuple[str, ...] = ()  # the arguments after `boosters-eval`; empty for a run from Python
    resumed: tuple[RunFacts, ...] = ()  # the same of each later session that continued it, in place or in a copy
    alpha: Annotated[float, Gt(0), Lt(1)] | None = None  # where the run was judged at a level other than the default
    seeds_rule: str = ""
    margin: tuple[str, ...] | None = None  # what counts as equivalent, where it is not the default
    name: str = ""  # what the user calls the run
    kind: str = ""  # what it is read as: benchmark, paper, parity; unless it was said, its workload
    disturbances: tuple[Disturbance, ...] = ()  # found before times were measured
    extends: str = ""  # the id of the run whose seeds it added to
    # What was found in the inputs, by their names; only the file of the attempt has it, results have it elsewhere.
    audits: dict[str, dict[str, Any]] = Field(default_factory=dict, exclude=True)

    @property
    def disturbed(self) -> tuple[Disturbance, ...]:
        """All that was found to disturb times, before any session of the run."""
        sessions = (self, *self.resumed)
        return tuple(dict.fromkeys(item for session in sessions for item in session.disturbances))

    @property
    def display_name(self) -> str:
        """The run's name: that of the last session that gave it one."""
        return next((session.name for session in reversed(self.resumed) if session.name), self.name)

    @classmethod
    def collect(cls, plan: Plan, *, kind: str = "", **known: Any) -> Self:
        """Inspect the machine, the tools and the repository now; `known` is supplied by the caller."""
        machine = MachineInfo.collect(device=any(spec.uses_device for spec in plan.specs))
        commit = _first_line("git", "rev-parse", "--short=7", "HEAD")
        return cls(
            started_at=format_now(),
            boosters_eval=__version__,
            python=platform.python_version(),
            git_sha=commit,
            git_branch=commit and _first_line("git", "rev-parse", "--abbrev-ref", "HEAD"),
            git_dirty=None if commit is None else bool(_first_line("git", "status", "--porcelain", "-uno")),
            rust=(_first_line("rustc", "--version") or "").removeprefix("rustc ") or None,
            machine=machine.recorded(),
            targets=_targets(plan),
            wait_policy=WAIT_POLICY,
            kind=kind or _KINDS.get(workload := plan.specs[0].workload, workload),
            **known,
        )

    def continued(self, session: RunFacts) -> Self:
        """These facts with those of a later session: what it ran may depend on them."""
        return self.model_copy(update={"resumed": (*self.resumed, session.without_audits())})

    def without_audits(self) -> Self:
        return self.model_copy(update={"audits": {}})

    def taken_over(self, session: RunFacts) -> Self:
        """The facts of an attempt that begins with outcomes of the run with these facts; it is judged its own way."""
        own = {
            name: getattr(session, name)
            for name in ("alpha", "seeds_rule", "margin", "extends", "kind")
            if getattr(session, name) != getattr(self, name)
        }
        return self.continued(session).model_copy(update=own)

    def recorded(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "audits": self.audits}


def format_now() -> str:
    """The time as runs record it; two of them can be compared as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _targets(plan: Plan) -> dict[str, Build]:
    """The build of each target; where two workloads know different ones by one name, with the workload's name too."""
    found: dict[str, Build] = {}
    for workload, builds in plan.builds.items():
        for name, build in builds.items():
            if found.setdefault(name, build) != build:
                found[f"{workload} {name}"] = build
    return found


def _first_line(program: str, *arguments: str) -> str | None:
    """The first line that a program prints, or None where it is missing, fails or prints nothing."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments)
            [path, *arguments], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().partition("\n")[0] or None if done.returncode == 0 else None
