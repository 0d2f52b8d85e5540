"""A verdict as it is told: to people, to programs and to CI systems. And the verdict on two files, without any run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.programs.baseline import render
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.document import CheckDocument
from boosters_eval.programs.baseline.findings import CheckRules
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.programs.baseline.sources import given_baseline
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.baseline.findings import Check
    from boosters_eval.programs.baseline.request import Checking, DiffRequest, Judging
    from boosters_eval.programs.benchmark.compare import ComparisonFindings
    from boosters_eval.programs.benchmark.results import ResultCollection

_SHOWN = 40  # pairs up to which all are listed, even if nothing changed


def diff_baselines(request: DiffRequest) -> CheckFindings:
    """Compare two baselines without running anything."""
    (before, name), (after, _) = given_baseline(request.before, "before"), given_baseline(request.after, "after")
    sides = Snapshot.of_baseline(before), Snapshot.of_baseline(after)
    return CheckFindings(check(*sides, rules_of(request), name), request)


def rules_of(request: Judging, **more: Any) -> CheckRules:
    """The rules that a request asks for; a build under test may be named by what it was installed from."""
    names = ("tolerance", "statistical", "allow_flaky", "fail_on_regression")
    return CheckRules(
        **{name: getattr(request, name) for name in names},
        tolerance_for=dict(request.tolerance_for or {}),
        under_test=tuple(map(label_of, request.libraries_under_test)) or None,
        continue_on_error=getattr(request, "continue_on_error", False),
        **more,
    )


@dataclass(frozen=True)
class CheckFindings(Findings):
    """A check, as its request wants it shown, with the results that were checked."""

    check: Check
    request: Checking | DiffRequest
    results: ResultCollection | None = None  # None: two baselines were compared

    @property
    def exit_code(self) -> int:
        """That of the check."""
        return self.check.exit_code

    def show(self, screen: Screen) -> None:
        """The results, unless only the verdict is wanted."""
        if self.results is not None and not screen.quiet:
            show_results(self.results, screen)

    def render(self, form: str) -> str:
        """The results: the verdict has files of its own."""
        return as_compared(self.results).render(form)

    def conclude(self, screen: Screen) -> None:
        """The verdict: a table, the RFC's lines, and what CI systems read."""
        found, request, dry = self.check, self.request, getattr(self.request, "dry_run", False)
        if getattr(request, "output", None) is not None and not dry:
            self.show(screen)  # the results are in a file, and are shown all the same
        rows = render.rows(found, everything=screen.verbose or len(found.findings) <= _SHOWN)
        if rows and not screen.quiet:
            if screen.is_terminal:
                screen.rows(render.HEADINGS, rows, keys=2)
            else:
                screen.say(render.table(rows))
        screen.say(str(found))
        if request.junit is not None and not dry:
            write_atomically(request.junit, render.junit(found))
        if request.verdict is not None and not dry:
            write_atomically(request.verdict, CheckDocument.of(found).to_json())
        screen.annotate(render.workflow_commands(found), "" if dry else render.markdown(found))


def show_results(results: ResultCollection, screen: Screen) -> None:
    """Results as a run of their suite shows them."""
    from boosters_eval.programs.benchmark.compare import run_line  # noqa: PLC0415 (loads the scientific packages)

    as_compared(results).show(screen)
    if results.run_id and not screen.quiet:
        screen.note(run_line(results))


def as_compared(results: ResultCollection | None) -> ComparisonFindings:
    """Results as findings of a run of their suite."""
    from boosters_eval.programs.benchmark.compare import ComparisonFindings  # noqa: PLC0415 (as above)
    from boosters_eval.programs.benchmark.request import SuiteRequest  # noqa: PLC0415

    assert results is not None  # noqa: S101 (for the type checker: two baselines have no format)
    return ComparisonFindings(results, SuiteRequest.of("run_suite", {}))
