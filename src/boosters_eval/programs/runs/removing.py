"""Removing runs: which are meant is known before any of them goes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from boosters_eval.core.errors import ExitCode, RunError
from boosters_eval.core.findings import Removal
from boosters_eval.core.text import sized
from boosters_eval.engine import removal
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import all_folders
from boosters_eval.engine.summaries import summarise
from boosters_eval.engine.telling import cells_text
from boosters_eval.programs.runs.showing import any_run, name_of, started

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.summaries import RunSummary
    from boosters_eval.programs.runs.request import RemoveRunsRequest


def choose(request: RemoveRunsRequest) -> RunRemoval:
    """The runs that are meant; none is removed yet."""
    if request.older_than is not None:
        limit = time.time() - request.older_than.total_seconds()
        every = map(summarise, all_folders(request.home))
        chosen = [run for run in every if run.written < limit and run.state != "running"]
    else:
        folders = {folder.run_id: folder for folder in (any_run(one, request.home) for one in request.references)}
        chosen = list(map(summarise, folders.values()))
    return RunRemoval(tuple(sorted(chosen, key=lambda run: run.written, reverse=True)), request.home)


@dataclass(frozen=True)
class RunRemoval(Removal):
    """Runs, and what came of their removal."""

    noun: ClassVar = "run"

    runs: tuple[RunSummary, ...]
    home: Path | None = None
    removed: tuple[str, ...] = ()  # their ids
    faults: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many are to be removed."""
        return len(self.runs)

    @property
    def exit_code(self) -> int:
        """A run that stays, although it was to go, is an error."""
        return ExitCode.EXECUTION_ERROR if self.faults else ExitCode.SUCCESS

    def carry_out(self) -> RunRemoval:
        """Remove them. One that is being executed stays."""
        removal.clear_leftovers(self.home)
        removed, faults = [], []
        for run in self.runs:
            try:
                removal.remove(RunFolder(run.path))
                removed.append(run.run_id)
            except RunError as error:
                faults.append(str(error))
        return replace(self, removed=tuple(removed), faults=tuple(faults))

    def show(self, screen: Screen) -> None:
        """A line per run."""
        for run in self.runs:
            name = name_of(run) or run.title or "-"
            screen.say(f"{run.run_id}  {started(run)}  {name}  {cells_text(run)}  {sized(run.size)}")
        if not self.runs:
            screen.note("Note: there is nothing to remove.")

    def conclude(self, screen: Screen) -> None:
        """What was removed."""
        for fault in self.faults:
            screen.note(f"Error: {fault}")
        if self.removed or self.faults:
            screen.note(f"Removed: {len(self.removed)} of {len(self.runs)} runs.")
