"""Finished cells of earlier runs, taken over by content: the same spec, build, data, split and program give the same.

Never a failure or what failed before, a time or a memory measured, a paper's protocol, a device, a splitter of the
user's own, or a build of a library whose predictions were once seen to differ, which its home remembers. What is taken
over names its run and has no times.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import compute_digest, dump_canonical, find_home, write_atomically
from boosters_eval.core.machine import MachineInfo
from boosters_eval.engine.artifacts import load_array
from boosters_eval.metrics.catalog import OF_MACHINE
from boosters_eval.programs.benchmark.earlier import read_earlier
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.engine.cell import Cell, Target
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.plan import Plan

_COMPUTING = ("numpy", "scipy", "pandas", "scikit-learn")  # what scores and splits are computed with
_OWN = ("core", "metrics", "datasets", "engine", "runners", "programs/benchmark")
_UNSTEADY = "unsteady"  # the folder of a home with a mark for each build that once predicted something else
_ENOUGH = 2  # runs that have a cell: with two that agree, no further one is read


@cache
def digest_program() -> str:
    """A digest of all that decides an outcome besides its cell: this program's code, and what it computes with."""
    root = Path(__file__).parents[2]
    files = sorted(path for room in _OWN for path in (root / room).rglob("*.py"))
    code = [f"{path.relative_to(root).as_posix()} {compute_digest(path.read_bytes())}" for path in files]
    versions = [f"python {sys.version_info[:3]}"]
    for name in _COMPUTING:
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    return compute_digest("\n".join([*code, *versions]), 32)


@dataclass
class FoundCells:
    """Outcomes that can be taken over, by key, and where their predictions are."""

    outcomes: dict[str, BenchmarkResult] = field(default_factory=dict)
    kept_in: tuple[Path, ...] = ()


def find_finished(
    plan: Plan, home: Path | None, *, predictions: bool, apart: frozenset[str] = frozenset()
) -> FoundCells:
    """What earlier runs of this home have of a plan; `apart` are data sets that are split in a way of their own."""
    builds = {cell.target.name: _digest_build(cell.target) for cell in plan.cells}
    marks = find_home(home) / _UNSTEADY
    known = {build for build in builds.values() if (marks / build).exists()}
    wanted = {
        content: cell.key
        for content, cell in _contents(plan).items()
        if _may_be_taken(cell, apart) and builds[cell.target.name] not in known
    }
    found, seen = FoundCells(), _Seen()
    folders: dict[Path, None] = {}
    if not wanted:
        return found
    for run in read_earlier(home, lambda other: not wanted.keys().isdisjoint(_contents(other)), kind=None):
        if run.facts.program != digest_program() or run.facts.machine.get("digest") != _here():
            continue
        for content, key, outcome in _matching(run, wanted):
            if not seen.add(content, builds[outcome.library], outcome.predictions_digest):
                continue
            taken = key not in found.outcomes and _is_sound(outcome, run, predictions=predictions)
            if taken and run.folder is not None:
                found.outcomes[key] = _marked(outcome, f"{run.plan.run_id}/{run.attempt}")
                folders[run.folder.predictions] = None
        if all(seen.count(content) >= _ENOUGH for content in wanted):
            break
    for build in seen.unsteady:
        write_atomically(marks / build, "", own=True)
    found.outcomes = {key: one for key, one in found.outcomes.items() if builds[one.library] not in seen.unsteady}
    found.kept_in = tuple(folders)
    return found


@dataclass
class _Seen:
    """What was predicted for each content, and the builds that once predicted something else."""

    digests: dict[str, list[str]] = field(default_factory=dict)
    unsteady: set[str] = field(default_factory=set)

    def add(self, content: str, build: str, digest: str | None) -> bool:
        known = self.digests.setdefault(content, [])
        known += [] if digest is None else [digest]
        if len(set(known)) > 1:
            self.unsteady.add(build)
        return digest is not None and build not in self.unsteady

    def count(self, content: str) -> int:
        return len(self.digests.get(content, ()))


def _digest_build(target: Target) -> str:
    return compute_digest(dump_canonical((target.library, target.build.model_dump())), 32)


def _matching(run: Run, wanted: Mapping[str, str]) -> list[tuple[str, str, BenchmarkResult]]:
    """The results of a run that belong to wanted cells; what it took over itself says nothing new."""
    out = []
    for content, cell in _contents(run.plan).items():
        outcome = run.outcomes.get(cell.key) if content in wanted else None
        if isinstance(outcome, BenchmarkResult) and outcome.taken_from is None and outcome.machine is None:
            out.append((content, wanted[content], outcome))
    return out


def _may_be_taken(cell: Cell, apart: frozenset[str]) -> bool:
    spec = cell.spec
    if not isinstance(spec, FitSpec) or spec.protocol is not None or spec.dataset in apart:
        return False
    return not (spec.timing.timed or spec.timing.memory or spec.alone or spec.uses_device)


def _is_sound(outcome: BenchmarkResult, run: Run, *, predictions: bool) -> bool:
    """Whether it finished at once, is deterministic, and has what it predicted, unchanged, where that is wanted."""
    if outcome.failed_before or outcome.killed_before or outcome.nondeterministic is not None:
        return False
    if not predictions:
        return True
    if outcome.kept is None or run.folder is None:
        return False
    try:
        for digest in outcome.kept_digests:
            load_array(run.folder.predictions, digest)
    except BoostersEvalError:
        return False
    return True


def _marked(outcome: BenchmarkResult, run: str) -> BenchmarkResult:
    """The outcome without what only the machine of that moment can tell."""
    blank: dict[str, object] = dict.fromkeys(name for name in OF_MACHINE if name in BenchmarkResult.model_fields)
    return outcome.model_copy(update={**blank, "samples_ns": {}, "threads_observed": None, "taken_from": run})


def _contents(plan: Plan) -> dict[str, Cell]:
    """The cells by a digest of all that an outcome depends on, the program apart."""
    specs = {spec.name: dump_canonical(spec.identity()) for spec in plan.specs}
    found = {}
    for cell in plan.cells:
        what = specs[cell.spec.name], cell.target.name, cell.target.build.model_dump(), cell.repeat, cell.part
        found[compute_digest(dump_canonical(what), 32)] = cell
    return found


@cache
def _here() -> str:
    return MachineInfo.collect().digest
