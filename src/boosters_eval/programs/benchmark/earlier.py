"""Earlier runs of a home: what they say of the cells of a run that is being looked at."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.engine import summaries
from boosters_eval.engine.runs import list_run_folders, load_verified
from boosters_eval.programs.benchmark.fit import Fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.plan import Plan

RECENT = 40  # runs that are looked at


def read_earlier(
    home: Path | None, wanted: Callable[[Plan], bool], *, before: str = "", kind: str | None = "benchmark"
) -> Iterator[Run]:
    """The latest attempts of recent runs whose plan is wanted, the latest first; what cannot be verified is left out.

    `before` is the run that is looked at itself, as ID/ATTEMPT. Without a `kind`, runs of all programs are read.
    """
    for folder in list_run_folders(home)[:RECENT]:
        for attempt in reversed(folder.attempts()):
            if f"{folder.run_id}/{attempt}" == before or not summaries.is_sealed(folder.journal_path(attempt)):
                continue
            with contextlib.suppress(BoostersEvalError, OSError):
                if kind is not None and summaries.find_kind(folder, attempt) not in (kind, ""):
                    continue
                plan = folder.plan(attempt)
                if all(spec.workload == Fit.name for spec in plan.specs) and wanted(plan):
                    yield load_verified(folder, attempt)
