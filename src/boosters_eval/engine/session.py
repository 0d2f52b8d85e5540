"""The one way to run plans, or to show what would run: the settings mean the same in every program with cells."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, ExitCode, InterruptedRunError
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import is_heard, tell, the
from boosters_eval.core.text import count_of
from boosters_eval.engine.execute import (
    EXECUTORS,
    Executor,
    Limits,
    Mode,
    choose_cells,
    choose_jobs,
    execute,
    locate_nothing,
)
from boosters_eval.engine.folder import read_to_continue
from boosters_eval.engine.observer import (
    HISTORY,
    OBSERVERS,
    TRACKING,
    Expectation,
    Observer,
    Observers,
    ObserverSettings,
    format_duration,
    is_in_notebook,
    make_progress,
    watch,
)
from boosters_eval.engine.pool import LocalPool, choose_start_method
from boosters_eval.engine.predictions import make_room, read_limit
from boosters_eval.engine.runs import find_folder, list_folders, list_run_folders
from boosters_eval.engine.summaries import find_name
from boosters_eval.engine.warm import borrow_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.core.machine import MachineInfo
    from boosters_eval.engine.cell import Cell, Failure, Outcome
    from boosters_eval.engine.execute import Locator
    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.plan import Plan
    from boosters_eval.engine.settings import RunSettings


S = TypeVar("S", bound="RunSettings")

_SHOWN = frozenset({"bar", "lines"})  # observers that show progress
_RECENT = 20  # how many runs are searched for one with the same cells


@dataclass(frozen=True)
class KnownOutcomes:
    """Outcomes of another run with the same inputs and builds, which are copied instead of run again."""

    outcomes: Mapping[str, Outcome | Failure] = field(default_factory=dict)
    machines: Mapping[str, MachineInfo] = field(default_factory=dict)  # that they name
    origin: RunFacts | None = None  # what was recorded when they ran, if that was in another session
    kept_in: tuple[Path, ...] = ()  # the folders of the predictions that they name


@dataclass(frozen=True)
class Session:
    """An executor and observers, open for all runs that one request needs."""

    settings: RunSettings
    executor: Executor
    observer: Observer

    def run(
        self,
        plan: Plan,
        kind: str,
        inputs: Locator = locate_nothing,
        *,
        known: KnownOutcomes | None = None,
        facts: Mapping[str, Any] | None = None,
        new: bool = False,
        observer: Observer | None = None,
        predictions: bool = False,
    ) -> Run:
        """Carry out a plan, and record it as a run of this kind; `new` begins an attempt, whatever the settings say.

        With `predictions`, they are kept, and those of older runs make room.
        """
        settings, given = self.settings, known or KnownOutcomes()
        try:
            run = execute(
                plan,
                self.executor,
                locate=inputs,
                mode=Mode.NEW if new else choose_mode(settings),
                limits=Limits(timeout_s=settings.timeout, memory_mb=settings.memory_limit),
                home=settings.home,
                observer=self.observer if observer is None else Observers(observer, self.observer),
                known=given.outcomes,
                machines=given.machines,
                origin=given.origin,
                facts={
                    "command": tuple(settings.command_line),
                    "kind": kind,
                    **({"name": settings.name} if settings.name else {}),
                    **(facts or {}),
                },
                predictions=predictions,
                kept_in=given.kept_in,
            )
        except KeyboardInterrupt:
            raise InterruptedRunError from None
        if predictions and run.folder is not None and (room := make_room(run.folder, list_folders(settings.home))):
            warnings.warn(str(room), BoostersEvalWarning, stacklevel=3)  # also where nobody listens
        return run


@contextlib.contextmanager
def open_session(settings: RunSettings, plan: Plan) -> Iterator[Session]:
    """A session whose executor and observers are those of the settings; what it created is closed with it."""
    choose_start_method()  # refuses an unknown method before anything is written
    read_limit()  # and what is no size
    tell_of_earlier(plan, settings)
    jobs = choose_jobs(plan, settings.jobs)
    with contextlib.ExitStack() as stack:
        watching = stack.enter_context(_watching(settings, jobs))
        yield Session(settings, stack.enter_context(_executor(settings, jobs)), watching)


def choose_mode(settings: RunSettings) -> Mode:
    return Mode.RERUN_FAILED if settings.rerun_failed else Mode.RESUME if settings.resume else Mode.NEW


def continue_settings(settings: S, plan: Plan) -> S:
    """The settings of a part of the work: where it has no attempt yet, that is no news, and nothing is continued."""
    if find_folder(plan, settings.home) is None:
        return settings.replace(resume=False, rerun_failed=False)
    return settings


def is_elsewhere(settings: RunSettings) -> bool:
    """Whether cells run on other machines, so that this one need not have what they need."""
    given = settings.executor
    known = EXECUTORS[given] if isinstance(given, str) else given
    return known is not None and not known.local and settings.workers is None  # workers that are asked for start here


def check_names(settings: RunSettings) -> None:
    """Refuse executors and observers that do not exist or cannot be used, before any work is done."""
    executor = settings.executor
    if isinstance(executor, str):
        EXECUTORS[executor]
    elif executor is not None and not isinstance(executor, Executor):
        raise ConfigError(f"{the('executor')} must be a name or an Executor. Got {executor!r} instead.")
    for item in settings.observer:
        if isinstance(item, str):
            OBSERVERS[item]
        elif not isinstance(item, Observer):
            raise ConfigError(f"{the('observer')} must be names or Observers. Got {item!r} instead.")
    if settings.track:
        OBSERVERS[TRACKING].for_run(_observed(settings))  # refuses trackers that do not exist


def expect_seconds(plan: Plan, settings: RunSettings) -> Mapping[str, float]:
    """The seconds that each cell of a plan will take, by its key, as the history of this machine has it."""
    return OBSERVERS[HISTORY].expected_seconds(plan, settings.home)


@contextlib.contextmanager
def _executor(settings: RunSettings, jobs: int) -> Iterator[Executor]:
    """The one that was passed, one created by its name and closed, or the pool of this process, which stays open."""
    given = settings.executor
    if isinstance(given, Executor):
        yield given
    elif given is None and EXECUTORS["local"] is LocalPool:
        with borrow_pool(jobs) as pool:
            yield pool
    else:
        places = settings.places
        with EXECUTORS[given or "local"](**(places or {"jobs": jobs})) as created:
            yield created


@contextlib.contextmanager
def _watching(settings: RunSettings, jobs: int) -> Iterator[Observer]:
    """The observers that were named, progress if anybody listens or looks, and those of every run."""
    check_names(settings)
    named: list[Observer | str] = list(settings.observer)
    if (is_heard() or is_in_notebook()) and not settings.quiet and not _SHOWN.intersection(map(str, named)):
        expected = Expectation(lambda plan: expect_seconds(plan, settings), jobs)
        named.insert(0, make_progress(sys.stderr, every_cell=settings.verbose, expected=expected))
    with watch(named, _observed(settings)) as observers:
        yield observers


def _observed(settings: RunSettings) -> ObserverSettings:
    return ObserverSettings(settings.home, tell, settings.track)


def tell_of_earlier(plan: Plan, settings: RunSettings) -> None:
    """Say if the name is taken, or there is no attempt to continue but perhaps a run with the same cells."""
    for folder in list_run_folders(settings.home) if settings.name else ():
        latest = folder.attempts()[-1]
        others = folder.run_id != plan.run_id and find_name(folder, latest) == settings.name
        if others and not folder.facts(latest).extends:  # the looks of one run with seeds="auto" share its name
            tell(f"Note: run {folder.run_id} is named '{settings.name}' too; from now on, that means the new run.")
            break
    if choose_mode(settings) is Mode.NEW or find_folder(plan, settings.home) is not None:
        return
    tell("Note: there is no earlier attempt at this plan, so everything runs.")
    other = _similar_run(plan, settings)
    if other is not None:
        tell(
            f"Note: run {other} has the same cells, but it was made by another version of this program, with other"
            " builds, or on other data, so it cannot be continued."
        )


def _similar_run(plan: Plan, settings: RunSettings) -> str | None:
    """A recent run of the same cells under another plan: made by another version, or with other builds or data."""
    keys = set(plan.keys)
    for folder in list_run_folders(settings.home)[:_RECENT]:
        with contextlib.suppress(Exception):  # a plan that cannot be read cannot be continued
            found = folder.plan()
            if found.run_id != plan.run_id and set(found.keys) == keys:
                return folder.run_id
    return None


@dataclass(frozen=True)
class PlannedRun(Findings):
    """A plan that nothing was run of."""

    plan: Plan
    cells: tuple[Cell, ...]  # that would run: what an earlier attempt has done is not done again
    jobs: int
    seconds: float  # that the history expects; 0: it does not know
    notes: tuple[str, ...] = ()
    refusal: str = ""  # why it would not run as it is

    @classmethod
    def of(cls, plan: Plan, settings: RunSettings, notes: tuple[str, ...] = (), refusal: str = "") -> Self:
        tell_of_earlier(plan, settings)
        cells, expected = _cells_left(plan, settings), expect_seconds(plan, settings)
        seconds = sum(expected.get(cell.key, 0.0) for cell in cells)
        return cls(plan, tuple(cells), choose_jobs(plan, settings.jobs), seconds, notes, refusal)

    @property
    def exit_code(self) -> int:
        return ExitCode.SUCCESS if self.plan.cells and not self.refusal else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        plan = self.plan
        for sentence in self.notes:
            screen.note(f"Note: {sentence}")
        about = f", about {format_duration(self.seconds / min(self.jobs, len(self.cells)))}" if self.seconds else ""
        done = len(plan.cells) - len(self.cells)
        kept = f"; {done} of {len(plan.cells)} kept" if done else ""
        screen.say(f"run {plan.run_id}: {count_of(len(self.cells), 'cell')}, {self.jobs} at a time{about}{kept}")
        lines = Counter(f"{cell.spec.name} {cell.target} ({cell.target.build.version})" for cell in self.cells)
        for line, count in lines.items():
            screen.say(f"  {line} x {count}")
        for entry in plan.excluded:
            screen.say(f"  {entry.spec} {entry.target}: unsupported: {entry.reason}")

    def conclude(self, screen: Screen) -> None:
        if self.refusal:
            screen.note(f"Error: {self.refusal}")


def _cells_left(plan: Plan, settings: RunSettings) -> list[Cell]:
    folder = None if choose_mode(settings) is Mode.NEW else find_folder(plan, settings.home)
    if folder is None:
        return list(plan.cells)
    earlier = read_to_continue(folder.journal_path(folder.attempts()[-1]))
    left = {cell.key for cell in choose_cells(plan, earlier.outcomes, choose_mode(settings))}
    return [cell for cell in plan.cells if cell.key in left]
