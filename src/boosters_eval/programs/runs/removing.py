"""Removing runs: which are meant is known before any of them goes."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from boosters_eval.core.findings import Removable, Removal
from boosters_eval.core.text import sized
from boosters_eval.engine import removal
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import all_folders
from boosters_eval.engine.summaries import summarize
from boosters_eval.engine.telling import cells_text
from boosters_eval.programs.runs.showing import any_run, name_of, started

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.engine.summaries import RunSummary
    from boosters_eval.programs.runs.request import RemoveRunsRequest


def choose(request: RemoveRunsRequest) -> Removal:
    """The runs that are meant; none is removed yet."""
    if request.older_than is not None:
        limit = time.time() - request.older_than.total_seconds()
        every = map(summarize, all_folders(request.home))
        chosen = [run for run in every if run.written < limit and run.state != "running"]
    else:
        folders = {folder.run_id: folder for folder in (any_run(one, request.home) for one in request.references)}
        chosen = list(map(summarize, folders.values()))
    latest_first = sorted(chosen, key=lambda run: run.written, reverse=True)
    return Removal("run", tuple(_removable(run, request.home) for run in latest_first))


def _removable(run: RunSummary, home: Path | None) -> Removable:
    name = name_of(run) or run.title or "-"
    line = f"{run.run_id}  {started(run)}  {name}  {cells_text(run)}  {sized(run.size)}"
    return Removable(run.run_id, line, partial(_remove, run, home))


def _remove(run: RunSummary, home: Path | None) -> None:
    """Remove a run, and what earlier removals left. One that is being executed stays."""
    removal.clear_leftovers(home)
    removal.remove(RunFolder(run.path))
