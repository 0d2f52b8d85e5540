"""From a plan to its results: what is still to do is run, what is done is kept."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from boosters_eval import __version__
from boosters_eval.benchmark.results import BenchmarkError, RunEnvironment
from boosters_eval.core.errors import ConfigError, UnsupportedError
from boosters_eval.core.machine import MachineInfo, available_cpus, physical_cores
from boosters_eval.engine import threads
from boosters_eval.engine.journal import RunFolder, collect, metadata_of
from boosters_eval.engine.pool import Executor, Limits, LocalPool, Work, start_method
from boosters_eval.engine.worker import IN_WORKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.benchmark.results import BenchmarkResult, Outcome, ResultCollection
    from boosters_eval.datasets import Stored
    from boosters_eval.engine.plan import Cell, Plan


class Mode(Enum):
    """What to do with an earlier attempt of the same plan."""

    NEW = "new"
    RESUME = "resume"
    RERUN_FAILED = "rerun-failed"


class Observer(Protocol):
    """Whoever watches: a progress bar, plain lines, or nobody."""

    def begin(self, plan: Plan, todo: int) -> None:
        """The run starts, with so many cells to do."""

    def phase(self, cell: Cell, phase: str) -> None:
        """A cell entered a phase."""

    def outcome(self, outcome: Outcome) -> None:
        """A cell ended, and that is on disk."""

    def end(self) -> None:
        """Nothing more will come."""


class Nobody:
    """The observer that says nothing."""

    def begin(self, plan: Plan, todo: int) -> None:
        """Nothing."""

    def phase(self, cell: Cell, phase: str) -> None:
        """Nothing."""

    def outcome(self, outcome: Outcome) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


def jobs_for(plan: Plan, wish: int | None = None) -> int:
    """As many cells at a time as asked for, or as there are cores for; one when times are what is measured."""
    if any(config.timing.timed for config in plan.configs):
        return 1
    if wish is not None:
        return min(wish, len(plan.cells))
    widest = max((config.n_threads for config in plan.configs), default=1)
    cores = min(physical_cores(), len(available_cpus()))
    return max(1, min(cores // widest, len(plan.cells)))


def execute(
    plan: Plan,
    stored: dict[str, Stored],
    *,
    mode: Mode = Mode.NEW,
    jobs: int | None = None,
    limits: Limits | None = None,
    home: Path | None = None,
    observer: Observer | None = None,
    splitters: dict[str, Callable[..., Any]] | None = None,
    known: ResultCollection | None = None,
    command: tuple[str, ...] = (),
    executor: Executor | None = None,
) -> ResultCollection:
    """Run what is to be run; each outcome is on disk before the next cell starts.

    `known` are results of a smaller plan on the same data and builds: its cells are taken over, not repeated.
    """
    if not plan.cells:
        reasons = "; ".join(f"{u.library} on {u.config_name}: {u.reason}" for u in plan.unsupported[:3])
        raise UnsupportedError(f"Nothing can run: {reasons or 'no library is left'}.")
    if os.environ.get(IN_WORKER):
        raise ConfigError("A script with a runner must start its comparison under: if __name__ == '__main__'.")
    start_method()  # refuse a wrong one before anything is written
    observer = observer or Nobody()
    jobs = jobs_for(plan, jobs)
    folder = RunFolder.of(plan, home)
    journal, attempt = folder.open(new=mode is Mode.NEW)
    try:
        if not journal.found.begin:
            facts = _environment(plan, jobs, command)
            folder.write_environment(attempt, facts)
            journal.begin({"run_id": plan.run_id, "attempt": attempt, "at": facts.started_at})
        outcomes = dict(journal.found.outcomes)
        for result in _carried_over(plan, known, outcomes):
            journal.append(result)
            outcomes[result.key] = result
        todo = plan.in_running_order(cell for cell in plan.cells if _open(outcomes.get(cell.key), mode))
        observer.begin(plan, len(todo))
        with tempfile.TemporaryDirectory(prefix="boosters-eval-") as scratch:
            works = [_work(cell, stored, splitters or {}, Path(scratch)) for cell in todo]
            pool = executor or LocalPool(jobs, limits, plan.user_metrics)
            try:
                for outcome in pool.run(works, observer.phase):
                    journal.append(outcome)
                    outcomes[outcome.key] = outcome
                    observer.outcome(outcome)
                if todo or not journal.found.sealed:
                    journal.seal(len(outcomes))
            finally:
                pool.close()
                observer.end()
    finally:
        journal.close()
    return collect(plan, outcomes, metadata_of(folder, attempt, journal.found))


def _carried_over(plan: Plan, known: ResultCollection | None, have: dict[str, Outcome]) -> list[BenchmarkResult]:
    if known is None:
        return []
    wanted = {cell.key for cell in plan.cells} - have.keys()
    return [result for result in known.results if result.key in wanted]


def _open(outcome: Outcome | None, mode: Mode) -> bool:
    """Whether a cell is still to do. A failure is never an answer: it is repeated on request."""
    return outcome is None or (mode is Mode.RERUN_FAILED and isinstance(outcome, BenchmarkError))


def _work(cell: Cell, stored: dict[str, Stored], splitters: dict[str, Callable[..., Any]], scratch: Path) -> Work:
    """A data set's own splitter may be a lambda, so it is called here and its rows are handed over in a file."""
    data = stored[cell.config.dataset]
    splitter = splitters.get(cell.config.dataset)
    if splitter is None:
        return Work(cell, str(data.path))
    import numpy as np  # noqa: PLC0415 (only for such data sets)

    from boosters_eval.datasets import open_stored, split_rows  # noqa: PLC0415

    name = f"{list(stored).index(cell.config.dataset)}-{cell.seed}-{cell.fold}.npz"
    if not (scratch / name).exists():
        table = open_stored(data.path)
        split = split_rows(table, cell.config.task, cell.config.split, cell.seed, cell.fold, splitter=splitter)
        np.savez(scratch / name, train=split.train, valid=split.valid, digest=np.array(split.digest))
    return Work(cell, str(data.path), str(scratch / name))


def _environment(plan: Plan, jobs: int, command: tuple[str, ...]) -> RunEnvironment:
    import platform  # noqa: PLC0415 (slow, once a run)

    machine = MachineInfo.collect()
    return RunEnvironment(
        schema_version=1,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        boosters_eval=__version__,
        python=platform.python_version(),
        machine={**machine.model_dump(), "digest": machine.digest},
        libraries={name: build.model_dump() for name, build in plan.libraries.items()},
        jobs=jobs,
        start_method=start_method(),
        wait_policy=threads.WAIT_POLICY,
        command=command,
    )
