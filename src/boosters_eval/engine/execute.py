"""From a plan to its outcomes: finished cells are kept, the others are run by an executor."""

from __future__ import annotations

import contextlib
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self

from boosters_eval.core.errors import ConfigError, RunError, UnsupportedError
from boosters_eval.core.machine import MachineInfo, count_cores, list_cpus
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.core.temporary import own_folder, temporary_folder
from boosters_eval.engine.cell import Failure, Outcome
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.folder import Run, RunFolder
from boosters_eval.engine.observer import CellEnded, Observers, PhaseStarted, RunEnded, RunStarted
from boosters_eval.engine.predictions import KEPT, adopt_array, record_kept
from boosters_eval.engine.processes import IN_WORKER
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.journal import Journal
    from boosters_eval.engine.observer import Observer
    from boosters_eval.engine.plan import Plan

    Locator = Callable[[Cell, Path], Mapping[str, str]]
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True)
class Limits:
    """The resources that a cell may use."""

    timeout_s: float | None = None
    memory_mb: float | None = None


_TIMEOUT = re.compile(r"not finished after (\S+) s")  # as the pool writes it


@dataclass(frozen=True)
class Work:
    """A cell, the location of its inputs, and its limits."""

    cell: Cell
    inputs: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()


class Executor(ABC):
    """Runs work and yields the outcomes. It may serve several runs, and whoever created it closes it."""

    local: bool = True  # whether cells run on this machine, so that it must have what they need

    def __init__(self, jobs: int = 1) -> None:
        if not isinstance(jobs, int) or jobs < 1:
            raise ConfigError(f"The 'jobs' parameter of an executor must be at least 1. Got {jobs!r} instead.")
        self.jobs = jobs

    def facts(self) -> dict[str, Any]:
        """What the record of a run says about its executor: `executor`, `start_method`, and further details as text."""
        return {"executor": type(self).__name__}

    def machines(self) -> Mapping[str, MachineInfo]:
        """The machines that its outcomes name, by digest. One that runs cells here alone names none."""
        return {}

    @abstractmethod
    def run(
        self, works: Iterable[Work], started: Callable[[Cell, str], None]
    ) -> Generator[Outcome | Failure, None, None]:
        """Yield one outcome or failure per cell as it arrives; the next cell starts only when the caller asks for more.

        `started` is called with each cell and phase as it begins. Closing the iterator stops the running cells.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop everything that is still running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


EXECUTORS: Registry[type[Executor]] = Registry("executor", group="boosters_eval.executors", fault=must_extend(Executor))


class Mode(Enum):
    """What to do with an earlier attempt at the same plan."""

    NEW = "new"
    RESUME = "resume"
    RERUN_FAILED = "rerun-failed"


def locate_nothing(cell: Cell, scratch: Path) -> Mapping[str, str]:  # noqa: ARG001 (the signature of a locator)
    """The locator for cells that need nothing but their spec."""
    return {}


def choose_jobs(plan: Plan, wish: int | None = None) -> int:
    """How many cells run at a time: as requested, or as many as the cores allow; one if cells must run alone."""
    if any(spec.alone for spec in plan.specs):
        return 1
    if wish is not None:
        return max(1, min(wish, len(plan.cells)))
    widest = max((spec.n_threads for spec in plan.specs), default=1)
    cores = min(count_cores(), len(list_cpus()))
    return max(1, min(cores // widest, len(plan.cells)))


def execute(
    plan: Plan,
    executor: Executor,
    *,
    locate: Locator = locate_nothing,
    mode: Mode = Mode.NEW,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    home: Path | None = None,
    observer: Observer | None = None,
    known: Mapping[str, Outcome | Failure] | None = None,
    machines: Mapping[str, MachineInfo] | None = None,
    origin: RunFacts | None = None,
    facts: Mapping[str, Any] | None = None,
    predictions: bool = False,
    kept_in: Iterable[Path] = (),
) -> Run:
    """Run the cells that have no outcome yet. Each outcome is on disk before the next cell starts.

    `known` holds outcomes of a smaller plan with the same inputs and builds; they are copied instead of run again.
    `machines` are those that they name, `origin` is what was recorded when they ran, if that was in another session.
    `kept_in` are the folders of the predictions that they name. `facts` are added to what is recorded. With
    `predictions`, a workload that can keep what it predicted does so.
    """
    _check(plan)
    mode = Mode(mode)  # a name would otherwise be taken for RESUME
    observer = Observers(*([observer] if observer else []))
    given = known or {}
    earlier = given
    folder = RunFolder.of(plan, home)
    journal, attempt = folder.open(new=mode is Mode.NEW)
    any_failed = any(isinstance(outcome, Failure) for outcome in journal.found.outcomes.values())
    again = mode is Mode.RERUN_FAILED and journal.found.sealed and any_failed
    if again or (journal.found.begin and not folder.holds(plan, attempt)):
        # Neither a sealed attempt nor its plan is ever changed: a new one takes over what finished, and runs the rest.
        earlier, origin = {**journal.found.outcomes, **given}, folder.facts(attempt)
        machines = {**journal.found.machines, **(machines or {})}
        journal.close()
        journal, attempt = folder.open(new=True)
    run = here = None
    began = False
    try:
        if not journal.found.begin:
            folder.keep_plan(plan, attempt)
        if not journal.found.sealed:
            record = RunFacts.collect(plan, jobs=choose_jobs(plan, executor.jobs), **_told(executor), **(facts or {}))
            _record(record, origin, folder, attempt, journal, len(plan.refs))
            here = _elsewhere(record, folder.facts(attempt))
        outcomes = journal.found.outcomes
        failed = _failed(limits, *folder.outcomes_before(attempt), earlier, outcomes)
        _bring_predictions(earlier, plan, folder, tuple(kept_in))
        _take_over(plan, earlier, machines or {}, journal)
        todo = choose_cells(plan, outcomes, mode, given)
        began = True
        observer.begin(RunStarted(plan, len(todo), len(plan.cells) - len(todo), folder.path, attempt))
        with own_folder(temporary_folder()) as scratch:
            kept = folder.predictions if predictions else None
            works = [Work(cell, {**locate(cell, scratch), **_name_store(cell, kept)}, limits) for cell in todo]
            with contextlib.closing(_outcomes(executor, works, observer)) as arriving:
                for cell, found in arriving:
                    outcome = _placed(found, here, executor, journal)
                    if count := failed.get(outcome.key, 0):
                        outcome = outcome.model_copy(update={"failed_before": count})
                    journal.append(outcome, cell.spec.workload)
                    outcomes[outcome.key] = outcome
                    observer.outcome(CellEnded(cell, outcome))
        if todo or not journal.found.sealed:
            record_kept(folder)
            journal.seal(len(outcomes))
        run = folder.run(plan, attempt, journal.found)
    finally:
        journal.close()
        if began:
            observer.end(RunEnded(run))
    return run


def _check(plan: Plan) -> None:
    if not plan.cells:
        reasons = "; ".join(f"{item.target} on {item.spec}: {item.reason}" for item in plan.excluded[:3])
        raise UnsupportedError(f"Nothing can run: {reasons or 'no target is left'}.")
    if os.environ.get(IN_WORKER):
        raise ConfigError("A script that its workers import must start its run under: if __name__ == '__main__'.")


def _told(executor: Executor) -> dict[str, Any]:
    """What an executor tells of itself; whatever a run has no field for is kept as text."""
    known: dict[str, str] = {}
    details: dict[str, str] = {}
    for name, value in executor.facts().items():
        (known if name in ("executor", "start_method") else details)[name] = str(value)
    return {**known, **({"details": details} if details else {})}


def _outcomes(
    executor: Executor, works: list[Work], observer: Observer
) -> Generator[tuple[Cell, Outcome | Failure], None, None]:
    """Each cell with its outcome, exactly once, whoever wrote the executor."""
    name = f"The executor {type(executor).__name__}"
    cells = {work.cell.key: work.cell for work in works}
    running = executor.run(works, lambda cell, phase: observer.phase(PhaseStarted(cell, phase)))
    with contextlib.closing(running):  # an interruption stops the running cells at once
        for outcome in running:
            cell = cells.pop(getattr(outcome, "key", ""), None)
            if cell is None:
                raise RunError(f"{name} yielded something that is not an outcome of an open cell.")
            yield cell, outcome
    if cells:
        raise RunError(f"{name} yielded no outcome for {len(cells)} of {len(works)} cells.")


def _record(
    facts: RunFacts, origin: RunFacts | None, folder: RunFolder, attempt: int, journal: Journal, cells: int
) -> None:
    """Record this session, as the beginning of the attempt or as one that continues it."""
    if journal.found.begin:
        folder.write_facts(attempt, folder.facts(attempt).continued(facts))
        return
    folder.write_facts(attempt, facts if origin is None else origin.taken_over(facts))
    journal.begin(
        {"run_id": folder.run_id, "attempt": attempt, "at": facts.started_at, "cells": cells, **folder.digests(attempt)}
    )


def _failed(limits: Limits, *earlier: Mapping[str, Outcome | Failure]) -> dict[str, int]:
    """How often each cell has failed so far. Whoever tries again until it works must not be able to hide it."""
    failed: dict[str, int] = {}
    for outcomes in earlier:
        for key, outcome in outcomes.items():
            own = isinstance(outcome, Failure) and not (outcome.killed_before or _was_cut_short(outcome, limits))
            count = outcome.failed_before + own
            failed[key] = max(count, failed.get(key, 0))
    return failed


def _was_cut_short(failure: Failure, limits: Limits) -> bool:
    """Whether a cell had less time than it has now: one that needs longer is not flaky."""
    told = _TIMEOUT.search(failure.error_message) if failure.error_type == "Timeout" else None
    return told is not None and (limits.timeout_s is None or float(told[1]) < limits.timeout_s)


def _elsewhere(session: RunFacts, whole: RunFacts) -> MachineInfo | None:
    """The machine of a session, if the run began on another: its outcomes must name it like those of a node."""
    began, continues = whole.machine.get("digest"), session.machine.get("digest")
    return MachineInfo.of_record(session.machine) if began and continues and began != continues else None


def _placed(
    outcome: Outcome | Failure, here: MachineInfo | None, executor: Executor, journal: Journal
) -> Outcome | Failure:
    """An outcome whose machine, if it names one, is on disk before it."""
    if outcome.machine is None and here is not None:
        journal.introduce({here.digest: here})
        return outcome.model_copy(update={"machine": here.digest})
    if outcome.machine is not None and outcome.machine not in journal.found.machines:
        told = executor.machines().get(outcome.machine)
        if told is None or told.digest != outcome.machine:
            name = f"The executor {type(executor).__name__}"
            raise RunError(f"{name} yielded an outcome of the machine {outcome.machine}, which it does not tell of.")
        journal.introduce({outcome.machine: told})
    return outcome


def _name_store(cell: Cell, folder: Path | None) -> dict[str, str]:
    """The input that tells a cell where to keep what it predicted, if it is asked to and can."""
    can_keep = KEPT in WORKLOADS[cell.spec.workload].stores
    return {KEPT: str(folder.absolute())} if folder is not None and can_keep else {}


def _bring_predictions(
    known: Mapping[str, Outcome | Failure], plan: Plan, folder: RunFolder, kept_in: Iterable[Path]
) -> None:
    """Have what known outcomes predicted in this run's folder too; what their own run has no more is recorded here."""
    wanted = [outcome for key in plan.keys if isinstance(outcome := known.get(key), Outcome)]
    digests = dict.fromkeys(digest for outcome in wanted for digest in outcome.kept_digests)
    gone = [digest for digest in digests if not adopt_array(digest, folder.predictions, kept_in)]
    if gone:
        record_kept(folder, gone)


def _take_over(
    plan: Plan, known: Mapping[str, Outcome | Failure], machines: Mapping[str, MachineInfo], journal: Journal
) -> None:
    """Copy the outcomes of another run. Failures are not copied: a failure is never a final answer."""
    for cell in plan.cells:
        outcome = known.get(cell.key)
        if outcome is not None and not isinstance(outcome, Failure) and cell.key not in journal.found.outcomes:
            if outcome.machine is not None:
                journal.introduce({outcome.machine: machines[outcome.machine]})
            journal.append(outcome, cell.spec.workload)
            journal.found.outcomes[cell.key] = outcome


def choose_cells(
    plan: Plan,
    outcomes: Mapping[str, Outcome | Failure],
    mode: Mode,
    given: Mapping[str, Outcome | Failure] = {},
) -> list[Cell]:
    """The cells that must run, in their order.

    Where times are compared, an interruption must not lie between the two sides of a pair: a repeat of which something
    is missing is measured anew, but for what the caller gave. Its last cell is a missing one, so that a further
    interruption finds the repeat as it was.
    """
    failed_too = mode is Mode.RERUN_FAILED  # a failure is never a final answer: its cell runs again on request
    missing = {
        cell.key
        for cell in plan.cells
        if (outcome := outcomes.get(cell.key)) is None or (failed_too and isinstance(outcome, Failure))
    }
    torn = {(cell.spec.name, cell.repeat) for cell in plan.cells if cell.spec.is_paired and cell.key in missing}
    again = {cell.key for cell in plan.cells if (cell.spec.name, cell.repeat) in torn} - given.keys()
    todo = plan.in_running_order(cell for cell in plan.cells if cell.key in missing | again)
    last = {(cell.spec.name, cell.repeat): cell.key for cell in todo if cell.key in missing}
    blocks = groupby(todo, key=lambda cell: (cell.spec.name, cell.repeat))
    return [cell for block, cells in blocks for cell in sorted(cells, key=lambda cell: cell.key == last[block])]
