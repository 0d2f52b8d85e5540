"""Prepared runs are executed and watched: with an observer, an executor and trackers, given by name or as objects."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, require
from boosters_eval.core.home import given_home

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from boosters_eval.engine.executor import Executor
    from boosters_eval.engine.observer import Observer
    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.tracking import Tracker

    Trackers = str | type[Tracker] | Sequence[str | type[Tracker]] | None


def run_prepared(
    prepared: PreparedRun,
    *,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    verbose: bool = False,
    executor: Executor | str | None = None,
    say: Callable[[str], None] = lambda _: None,
    track: Trackers = None,
) -> ResultCollection:
    """Execute a prepared run. Finished cells are kept, whatever happens; failed ones are in `errors`, even if all."""
    from boosters_eval.programs.benchmark import running  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.benchmark.planning import PreparedRun  # noqa: PLC0415 (keeps start-up fast)

    require("prepared", prepared, PreparedRun, "what prepare_comparison() or prepare_suite() gives")
    check_names(executor, observer, track)
    with _watched(prepared, observer, verbose=verbose, say=say, track=track) as watchers:
        return running.run_prepared(prepared, watchers, executor=executor, say=say)


def run_importances(
    prepared: PreparedRun,
    *,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    verbose: bool = False,
    executor: Executor | str | None = None,
    say: Callable[[str], None] = lambda _: None,
    track: Trackers = None,
) -> Explanations:
    """Execute what `prepare_importances` gives. Finished cells are kept, whatever happens; failed ones are `errors`."""
    from boosters_eval.programs.benchmark.planning import PreparedRun  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.importances.running import run_explained  # noqa: PLC0415

    require("prepared", prepared, PreparedRun, "what prepare_importances() gives")
    check_names(executor, observer, track)
    with _watched(prepared, observer, verbose=verbose, say=say, track=track) as watchers:
        return run_explained(prepared, watchers, executor=executor)


def _watched(
    prepared: PreparedRun, given: Any, *, verbose: bool, say: Callable[[str], None], track: Trackers
) -> AbstractContextManager[Observer]:
    """What was asked for, or the progress of a verbose run, with all that watches any run."""
    from boosters_eval.engine.observer import ObserverSettings, watching  # noqa: PLC0415 (keeps start-up fast)

    wanted = several(given) or ([progress(prepared=prepared)] if verbose else [])
    return watching(wanted, ObserverSettings(prepared.settings.home, say, track))


def check_names(executor: Any = None, observer: Any = None, track: Any = None) -> None:
    """Refuse an executor, an observer or a tracker that does not exist or cannot be used, before any work is done."""
    from boosters_eval.engine.executor import EXECUTORS, Executor  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.engine.observer import OBSERVERS, Observer  # noqa: PLC0415

    if isinstance(executor, str):
        EXECUTORS[executor]
    elif executor is not None and not isinstance(executor, Executor):
        raise ConfigError(f"The 'executor' parameter must be a name or an Executor. Got {executor!r} instead.")
    for item in several(observer):
        if isinstance(item, str):
            OBSERVERS[item]
        elif not isinstance(item, Observer):
            raise ConfigError(f"The 'observer' parameter must be names or Observers. Got {item!r} instead.")
    if track:
        from boosters_eval.tracking import chosen_trackers  # noqa: PLC0415

        chosen_trackers(track)


def is_elsewhere(executor: Executor | str | None) -> bool:
    """Whether an executor runs cells on other machines, so that this one need not have what they need."""
    from boosters_eval.engine.executor import EXECUTORS  # noqa: PLC0415 (keeps start-up fast)

    check_names(executor)
    known = EXECUTORS[executor] if isinstance(executor, str) else executor
    return known is not None and not known.local


def observer_of(given: Any, *, verbose: bool = False) -> Observer:
    """One observer, whatever was asked for: objects, names, several of them, or none."""
    from boosters_eval.engine.observer import OBSERVERS, Observers, ObserverSettings  # noqa: PLC0415 (keeps start-up fast)

    wanted = several(given) or ([progress()] if verbose else [])
    return Observers(
        *(OBSERVERS[item].for_run(ObserverSettings()) if isinstance(item, str) else item for item in wanted)
    )


def several(given: Any) -> list[Any]:
    """What was given as one, as several, or not at all."""
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def progress(*, every_cell: bool = False, prepared: PreparedRun | None = None) -> Observer:
    """A bar on a terminal or in a notebook, plain lines elsewhere: one every few seconds, or one per cell.

    Of a prepared run whose cells the history knows, it shows how long it takes from the start.
    """
    from boosters_eval.engine.progress import Expectation, progress_for  # noqa: PLC0415 (keeps start-up fast)

    if prepared is None:
        return progress_for(sys.stderr, every_cell=every_cell)
    from boosters_eval.programs.benchmark.running import jobs_of  # noqa: PLC0415 (keeps start-up fast)

    home = prepared.settings.home
    expected = Expectation(lambda plan: expected_seconds(plan, home), jobs_of(prepared))
    return progress_for(sys.stderr, every_cell=every_cell, expected=expected)


def expected_seconds(plan: Plan, home: str | Path | None = None) -> dict[str, float]:
    """The seconds that each cell of a plan will take, by its key, as the history of this machine has it.

    Empty unless it knows half of the cells.
    """
    from boosters_eval.programs.benchmark.estimates import costs_by_key, seconds_by_key  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.history.query import seconds_by_cell  # noqa: PLC0415

    try:
        return seconds_by_key(plan.cells, costs_by_key(seconds_by_cell(given_home(home))))
    except Exception:  # noqa: BLE001 (an estimate must never harm a run)
        return {}
