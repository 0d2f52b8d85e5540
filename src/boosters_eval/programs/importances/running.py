"""From a prepared run to its explanations, and the explanations of earlier runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import RunError
from boosters_eval.core.home import home
from boosters_eval.core.text import with_article
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.kinds import kind_name
from boosters_eval.engine.pool import start_method
from boosters_eval.engine.runs import find_run
from boosters_eval.engine.summaries import kind_of
from boosters_eval.programs.benchmark.running import collected, opened, run_once
from boosters_eval.programs.importances.planning import IMPORTANCES
from boosters_eval.programs.importances.results import Explanations
from boosters_eval.programs.importances.workload import ImportancesSpec

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.engine.executor import Executor
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.observer import Observer
    from boosters_eval.programs.benchmark.planning import PreparedRun


def run_explained(
    prepared: PreparedRun, observer: Observer | None = None, *, executor: Executor | str | None = None
) -> Explanations:
    """Execute a prepared run."""
    start_method()  # refuses an unknown method before anything is written
    with opened(executor, prepared) as used:
        run = run_once(prepared, used, observer, kind=IMPORTANCES)
    return explanations_of(run, RunFolder(home(prepared.settings.home) / "runs" / run.plan.run_id).arrays)


def load_explanations(reference: str, where: Path | None = None) -> Explanations:
    """A run by its id, the beginning of its id, its name, or `last`; a changed one is refused."""
    folder = find_run(reference, where, kind=IMPORTANCES)
    shown, latest = folder.shown(), folder.attempts()[-1]
    unfinished = latest if folder.attempt is None and shown != latest else None
    return explanations_of(folder.load(shown), folder.arrays, unfinished=unfinished)


def is_explained(reference: str, where: Path | None = None) -> bool:
    """Whether a reference names a run of this kind; `last` does if the latest of all is one."""
    folder = find_run(reference, where)
    return kind_of(folder, folder.attempts()[-1]) == IMPORTANCES


def explanations_of(run: Run, arrays: Path, *, unfinished: int | None = None) -> Explanations:
    """The explanations of a run whose arrays are in this folder."""
    plan = run.plan
    if not all(isinstance(spec, ImportancesSpec) for spec in plan.specs):
        kind = kind_name(run.facts.kind, plan.specs[0].workload)
        raise RunError(f"Run {plan.run_id} explains no models: it is {with_article(kind)} run.")
    return Explanations(collected(run, unfinished=unfinished), arrays.absolute())
