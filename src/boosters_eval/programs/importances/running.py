"""From a prepared run to its explanations, and the explanations of earlier runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ExitCode, RunError
from boosters_eval.core.files import home
from boosters_eval.core.findings import Findings
from boosters_eval.core.text import with_article
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import find_run
from boosters_eval.engine.session import PlannedRun, check_names, opened
from boosters_eval.engine.summaries import kind_of
from boosters_eval.programs.benchmark.benchmarks import make_comparison
from boosters_eval.programs.benchmark.compare import (
    announce,
    collect_arguments,
    describe_run,
    explain_failure,
    is_success,
)
from boosters_eval.programs.benchmark.planning import prepare
from boosters_eval.programs.benchmark.runs import collect_fits, run_once
from boosters_eval.programs.importances.planning import IMPORTANCES, explained
from boosters_eval.programs.importances.results import Explanations
from boosters_eval.programs.importances.workload import ImportancesSpec

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.folder import Run
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.importances.request import ImportancesRequest


def explain(request: ImportancesRequest) -> Findings:
    """What the model of each library relies on."""
    prepared = prepare_importances(request)
    announce(prepared)
    if request.dry_run:
        return PlannedRun.of(prepared.plan, request)
    return ImportancesFindings(run_explained(prepared), request)


def prepare_importances(request: ImportancesRequest) -> PreparedRun:
    """The plan of the same comparison, whose models are asked what they rely on."""
    check_names(request)
    prepared = prepare(make_comparison(**collect_arguments(request)), request.seeds, request)
    return explained(
        prepared,
        kinds=request.kinds,
        permutations=request.permutations,
        max_rows=request.max_rows,
        groups=request.units,
    )


def run_explained(prepared: PreparedRun) -> Explanations:
    """Carry out a prepared run."""
    with opened(prepared.settings, prepared.plan) as session:
        run = run_once(session, prepared, kind=IMPORTANCES)
    return explanations_of(run, RunFolder(home(prepared.settings.home) / "runs" / run.plan.run_id).arrays)


@dataclass(frozen=True)
class ImportancesFindings(Findings):
    """The explanations, as the request wants them shown."""

    explanations: Explanations
    request: ImportancesRequest

    @property
    def exit_code(self) -> int:
        """A run with errors is no success unless the user accepts errors."""
        found = self.explanations.collection
        good = is_success(found, continue_on_error=self.request.continue_on_error)
        return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        """Tables on a terminal, Markdown elsewhere."""
        if not screen.is_terminal and self.request.format != "table":
            super().show(screen)
            return
        from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

        print_document(self._document().document(), screen.console(), whole=screen.verbose)

    def render(self, form: str) -> str:
        """The document in a format."""
        from boosters_eval.programs.importances.rendering import render  # noqa: PLC0415 (loads what renders)

        return render(self._document(), form)

    def conclude(self, screen: Screen) -> None:
        """The run, and why it is no success, even if quiet."""
        found = self.explanations
        if not screen.quiet and found.run_id:
            screen.note(describe_run(found.collection))
        if self.exit_code:
            screen.note(explain_failure(found.collection))

    def _document(self) -> Any:
        return self.explanations.document(self.request.top)


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
        kind = run.facts.kind
        raise RunError(f"Run {plan.run_id} explains no models: it is {with_article(kind)} run.")
    return Explanations(collect_fits(run, unfinished=unfinished), arrays.absolute())
