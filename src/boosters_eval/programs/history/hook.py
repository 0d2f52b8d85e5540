"""When a run ends, it enters the index. That is a convenience: whatever fails here is done at the next question."""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError
from boosters_eval.engine.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boosters_eval.engine.observer import RunEnded, RunStarted
    from boosters_eval.engine.plan import Plan

_AT_MOST = 50  # runs: the others, of a home that was never indexed, wait until somebody asks
_WAIT_S = 2.0


class HistoryObserver(Observer):
    """Indexes the home of a run when it ends, also if it was interrupted."""

    _home: Path | None = None

    @classmethod
    def expected_seconds(cls, plan: Plan, home: Path | None) -> Mapping[str, float]:
        """What cells of this machine took before; empty unless it knows half of the plan's."""
        from boosters_eval.programs.benchmark.suites import costs_by_key, seconds_by_key  # noqa: PLC0415
        from boosters_eval.programs.history.query import seconds_by_cell  # noqa: PLC0415 (see _record)

        try:
            return seconds_by_key(plan.cells, costs_by_key(seconds_by_cell(home)))
        except Exception:  # noqa: BLE001 (an estimate must never harm a run)
            return {}

    def begin(self, event: RunStarted) -> None:
        """Take the home that holds the run's folder."""
        self._home = None if event.folder is None else event.folder.parent.parent

    def end(self, event: RunEnded) -> None:  # noqa: ARG002 (what it left on disk is read)
        """Index the run, if it is kept."""
        if self._home is not None:
            record_runs(self._home)


def record_runs(home: Path | None = None) -> None:
    """Index what has just been run. It never raises: a run must not fail because of the index."""
    try:
        _record(home)
    except Exception as error:  # noqa: BLE001 (whatever it is, the run itself is done and kept)
        message = f"The run is not in the index of the history yet ({error}); the next 'history' adds it."
        warnings.warn(message, BoostersEvalWarning, stacklevel=2)


def _record(home: Path | None) -> None:
    from boosters_eval.core.home import home as home_of  # noqa: PLC0415 (so that a failing import is caught too)
    from boosters_eval.programs.history import index, store  # noqa: PLC0415

    try:
        where = home_of(home)
    except ConfigError:  # nothing was run there, and whoever tried has been told
        return
    if not (where / "runs").is_dir():
        return
    try:
        with contextlib.closing(store.connect(where, wait_s=_WAIT_S)) as connection:
            index.update(connection, where, at_most=_AT_MOST)
    except sqlite3.OperationalError as error:
        if store.code_of(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):  # another program does it
            raise
