"""A verdict as it is told: to people, to programs and to CI systems. And the verdict on two files, without any run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from annotated_types import Ge
from pydantic import Field

from boosters_eval.core.files import FORMAT, Format, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.core.text import escape_json
from boosters_eval.programs.baseline import render
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.findings import CheckRules, Status
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.programs.baseline.sources import given_baseline
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.baseline.findings import Check, Finding
    from boosters_eval.programs.baseline.request import Checking, DiffRequest, Judging
    from boosters_eval.programs.benchmark.compare import ComparisonFindings
    from boosters_eval.programs.benchmark.results import ResultCollection


class CheckedPair(Model):
    """One (config, library) pair."""

    config: str
    library: str
    status: Status
    fails: bool
    under_test: bool
    metric: str
    tolerance: float
    baseline: float | None  # means over the cells that both sides have
    current: float | None
    n: Annotated[int, Ge(0)]  # of these cells
    change: float | None  # relative; None from a mean of 0
    p_value: float | None
    seeds_needed: int | None  # to decide what is suspected; None: no number would
    failed_cells: int
    flaky: dict[str, int] = Field(default_factory=dict)  # by cell, how often it failed before it finished
    note: str

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """A finding as plain data."""
        change = finding.change
        return cls(
            config=finding.config,
            library=finding.library,
            status=finding.status,
            fails=finding.fails,
            under_test=finding.counts,
            metric=finding.metric,
            tolerance=finding.tolerance,
            baseline=finding.baseline.mean if finding.baseline else None,
            current=finding.current.mean if finding.current else None,
            n=finding.current.n if finding.current else 0,
            change=change if change is not None and math.isfinite(change) else None,
            p_value=finding.p_value,
            seeds_needed=finding.seeds_needed,
            failed_cells=finding.failed_cells,
            flaky=dict(finding.flaky),
            note=finding.note,
        )


class CheckDocument(Model):
    """A whole check."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval check"] = "boosters-eval check"
    baseline: str  # the file as it was named
    exit_code: int
    statistical: bool
    alpha: float
    allow_flaky: int
    n_flaky: int
    n_not_run: int
    upgrades: dict[str, tuple[str, str]]
    notes: tuple[str, ...]
    pairs: tuple[CheckedPair, ...]

    @classmethod
    def of(cls, check: Check) -> Self:
        """A check as plain data."""
        return cls(
            baseline=check.name,
            exit_code=int(check.exit_code),
            statistical=check.rules.statistical,
            alpha=check.rules.alpha,
            allow_flaky=check.rules.allow_flaky,
            n_flaky=check.n_flaky,
            n_not_run=check.not_run,
            upgrades=check.upgrades,
            notes=check.notes,
            pairs=tuple(CheckedPair.of(finding) for finding in check.findings),
        )

    def to_json(self) -> str:
        """The content of the file."""
        return escape_json(self.model_dump_json(indent=1)) + "\n"


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
        if self.results is None or screen.quiet:
            return
        from boosters_eval.programs.benchmark.compare import run_line  # noqa: PLC0415 (loads what runs)

        _as_run(self.results).show(screen)
        if self.results.run_id:
            screen.note(run_line(self.results))

    def render(self, form: str) -> str:
        """The results: the verdict has files of its own."""
        return _as_run(self.results).render(form)

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


def _as_run(results: ResultCollection | None) -> ComparisonFindings:
    """Results as a run of their suite shows them."""
    from boosters_eval.programs.benchmark.compare import ComparisonFindings  # noqa: PLC0415 (loads what runs)
    from boosters_eval.programs.benchmark.request import SuiteRequest  # noqa: PLC0415

    assert results is not None  # noqa: S101 (for the type checker: two baselines are not rendered)
    return ComparisonFindings(results, SuiteRequest.of("run_suite", {}))
