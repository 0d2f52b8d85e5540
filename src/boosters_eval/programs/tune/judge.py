"""From a request to what tuning is worth: trials run in rounds, chosen by inner scores and judged by outer ones."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.terms import tell
from boosters_eval.core.text import count_of
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.session import KnownOutcomes, PlannedRun, open_session
from boosters_eval.programs.benchmark.compare import announce
from boosters_eval.programs.benchmark.planning import check_devices
from boosters_eval.programs.benchmark.runs import collect_fits, run_once
from boosters_eval.programs.benchmark.seeds import parse_budget
from boosters_eval.programs.tune.findings import TuneFindings
from boosters_eval.programs.tune.plan import TUNE, Search
from boosters_eval.programs.tune.tasks import judge_tasks
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from boosters_eval.core.findings import Findings
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.session import Session
    from boosters_eval.programs.tune.request import TuneRequest


def tune(request: TuneRequest) -> Findings:
    """What the best of so many trials is worth to each library, and which library is best then."""
    budget_s = parse_budget(request.budget)
    search = Search.of(request)
    prepared = search.prepare(request.trials)
    announce(prepared)
    if request.dry_run:
        fewer = ("A budget may leave out the last trials.",) if budget_s or request.cpu_budget else ()
        return PlannedRun.of(prepared.plan, request, fewer)
    check_devices(prepared.plan)
    start = time.monotonic()
    with open_session(request, prepared.plan) as session:
        if budget_s is None and request.cpu_budget is None:
            ran = _Ran(run_once(session, prepared, kind=TUNE), request.trials)
        else:
            ran = _run_rounds(session, search, budget_s)
    return judge(search, ran.run, ran.trials, time.monotonic() - start, ran.note)


@dataclass(frozen=True)
class _Ran:
    run: Run
    trials: int
    note: str = ""


def _run_rounds(session: Session, search: Search, budget_s: float | None) -> _Ran:
    """As many trials as the budgets hold; a round is the same trial of all libraries on all splits."""
    request, start, trials = search.request, time.monotonic(), 1
    run: Run | None = None
    while True:
        known = KnownOutcomes() if run is None else KnownOutcomes(run.outcomes, run.machines, None, run.kept_in)
        extends = "" if run is None else run.plan.run_id
        run = run_once(session, search.prepare(trials), kind=TUNE, known=known, extends=extends)
        if trials == request.trials:
            return _Ran(run, trials)
        held = {f"{request.trials} trials": request.trials, f"{2 * trials} trials": 2 * trials}
        if budget_s is not None:
            held[f"{budget_s:g} s"] = _extrapolate(trials, time.monotonic() - start, budget_s)
        if request.cpu_budget is not None:
            held[f"{request.cpu_budget:g} CPU seconds"] = _extrapolate(trials, _find_most_used(run), request.cpu_budget)
        limit = min(held, key=lambda name: held[name])
        if held[limit] <= trials:
            note = f"only {trials} of {request.trials} trials fit into {limit}, the same for every library"
            return _Ran(run, trials, note)
        tell(f"{count_of(trials, 'trial')} of each library so far; going on to {held[limit]}.")
        trials = held[limit]


def _extrapolate(trials: int, spent: float, limit: float) -> int:
    """How many trials a budget holds, if the following take as long; the defaults took as long as one."""
    return int((trials + 1) * limit / spent) - 1 if spent > 0 else 2 * trials


def _find_most_used(run: Run) -> float:
    """The CPU seconds of the fits of the library that took the most."""
    used: dict[str, float] = {}
    for outcome in run.outcomes.values():
        if isinstance(outcome, BenchmarkResult):
            used[outcome.library] = used.get(outcome.library, 0.0) + (outcome.cpu_time_s or 0.0)
    return max(used.values(), default=0.0)


def judge(search: Search, run: Run, trials: int, seconds: float, note: str = "") -> TuneFindings:
    """What a run with so many trials shows."""
    request, results = search.request, collect_fits(run)
    axes = {name: {axis.name: (axis.low, axis.high, axis.scale) for axis in axes} for name, axes in search.axes.items()}
    return TuneFindings(
        run=run.plan.run_id,
        space=request.space,
        sampler=request.sampler,
        trials=trials,
        asked=request.trials,
        inner=request.inner,
        axes=axes,
        tasks=tuple(judge_tasks(search, results, trials)),
        failed=sum(isinstance(outcome, Failure) for outcome in run.outcomes.values()),
        cells=len(run.outcomes),
        seconds=seconds,
        excluded=tuple(dict.fromkeys(f"{one.target} on {one.spec}: {one.reason}" for one in run.plan.excluded)),
        notes=(note,) if note else (),
        accept_failures=request.continue_on_error,
    )
