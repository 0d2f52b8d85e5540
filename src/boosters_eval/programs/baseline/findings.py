"""The verdict on each pair of a check, and what they mean together: what fails, and with which exit code."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Ge, Gt, Lt
from pydantic import Field

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.programs.baseline.request import DEFAULT_TOLERANCE
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.programs.baseline.model import MetricStats
    from boosters_eval.reports.document import Document


UNNAMED = "the baseline"  # that has no file
Share = Annotated[float, Ge(0), Lt(1)]


class Status(Enum):
    """The verdict on a (config, library) pair; of several faults in its cells, the first of these."""

    REGRESSION = "regression"
    CRASHED = "crashed"
    NOT_FINITE = "not a number"
    UNLIKE = "not comparable"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"  # beyond tolerance, but not to be told from noise
    DRIFT = "drift"  # within tolerance, but significantly worse
    IMPROVED = "improved"
    WITHIN = "within tolerance"
    SAME = "same"
    NEW = "new"


CheckFailure = Literal["regression", "undecided", "unanswered"]  # undecided: a regression could not be ruled out
_FAILURES: dict[Status, CheckFailure] = {
    **dict.fromkeys((Status.REGRESSION, Status.CRASHED), "regression"),
    Status.UNDECIDED: "undecided",
    **dict.fromkeys((Status.NOT_FINITE, Status.UNLIKE, Status.SKIPPED), "unanswered"),
}


class CheckRules(Model):
    """What is allowed, and what was asked for."""

    tolerance: Share = DEFAULT_TOLERANCE
    tolerance_for: dict[str, Share] = Field(default_factory=dict)  # by config or by metric; a config comes first
    statistical: bool = False
    alpha: Annotated[float, Gt(0), Lt(1)] = 0.05
    looks: bool = False  # the run added seeds as it looked, and alpha is the level of each look
    under_test: tuple[str, ...] | None = None  # None: boosters, and every library whose version is the recorded one
    only_libraries: tuple[str, ...] | None = None  # the run was restricted to these
    only_pairs: frozenset[tuple[str, str]] | None = None  # another suite was asked for, which has only these
    seeds: Annotated[int, Ge(1)] | None = None  # asked for, and needed of each pair; None: all the recorded ones
    allow_flaky: Annotated[int, Ge(0)] = 0  # cells that may have finished only after failing
    fail_on_regression: bool = True  # False: it is only reported
    continue_on_error: bool = False  # failures of what is not under test are accepted

    def tolerance_of(self, config: str, metric: str) -> float:
        return self.tolerance_for.get(config, self.tolerance_for.get(metric, self.tolerance))

    def excused(self, config: str, library: str) -> bool:
        """Whether the user left this pair out on purpose."""
        return (self.only_libraries is not None and library not in self.only_libraries) or (
            self.only_pairs is not None and (config, library) not in self.only_pairs
        )


@dataclass(frozen=True)
class Finding:
    """One pair, its two values and the verdict."""

    config: str
    library: str
    status: Status
    metric: str = ""
    tolerance: float = DEFAULT_TOLERANCE
    baseline: MetricStats | None = None
    current: MetricStats | None = None
    change: float | None = None  # relative to the baseline, in the metric's own direction
    p_value: float | None = None
    note: str = ""
    cause: tuple[str, ...] = ()  # what moved, where it got worse
    since: str = ""  # the run from which on it is so, as far as this home knows
    identical: bool = False  # every prediction is, to the last bit
    by_rows: bool = False  # whether rows were tested, or only splits
    lenient: bool = False  # only what is shown fails
    counts: bool = True  # under test, and not left out on purpose
    upgrade: tuple[str, str] | None = None  # the library's version then and now, where it changed
    failed_cells: int = 0  # without a usable score, whether it counts or not
    flaky: Mapping[str, int] = field(default_factory=dict)  # how often the cells that finished late failed before
    n_seeds: int = 0  # that were compared
    n_recorded: int = 0  # seeds in the baseline
    seeds_needed: int | None = None  # to decide an undecided pair, if its change stays as it is; None: no number would
    decided: bool = True  # False: more seeds could change the answer of the statistical rule

    @property
    def failure(self) -> CheckFailure | None:
        """As what it fails the check; None if it does not."""
        if not self.counts or (self.lenient and self.status is Status.UNDECIDED):
            return None
        return _FAILURES.get(self.status)

    @property
    def fails(self) -> bool:
        return self.failure is not None


@dataclass(frozen=True)
class Check(ReportedFindings):
    """All findings, and the remarks that go with them."""

    findings: tuple[Finding, ...]
    rules: CheckRules
    upgrades: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    not_run: int = 0  # cells of the run's plan about which nothing is known
    suite: str | None = None  # the baseline's
    next: tuple[str, ...] = ()  # commands that are of use now
    without: str = ""  # which side has no predictions, so that no rows could be tested
    name: str = UNNAMED  # what the baseline is called; "" if the run was only checked for failures

    def __str__(self) -> str:
        """The verdict in words, as the command line prints it."""
        from boosters_eval.programs.baseline.document import describe_check  # noqa: PLC0415 (it reads this)

        return "\n".join(describe_check(self))

    def document(self) -> Document:
        """What fails and why, every pair, and what is worth knowing."""
        from boosters_eval.programs.baseline.document import lay_out_check  # noqa: PLC0415 (it reads this)

        return lay_out_check(self)

    def to_model(self) -> CheckDocument:
        return CheckDocument.of(self)

    def outcome(self, config: str, library: str) -> tuple[Literal["passed", "failed", "skipped"], str]:
        """What became of a pair, and the sentence that says it."""
        from boosters_eval.programs.baseline.document import judge_pair  # noqa: PLC0415 (it reads this)

        return judge_pair(self, config, library)

    @property
    def regressions(self) -> list[Finding]:
        """What got worse, crashes included."""
        return [finding for finding in self.findings if finding.failure == "regression"]

    @property
    def undecided(self) -> list[Finding]:
        """What is beyond tolerance, could be noise, and fails all the same."""
        return [finding for finding in self.findings if finding.failure == "undecided"]

    @property
    def identical(self) -> list[Finding]:
        """What predicts the same as it did, to the last bit."""
        return [finding for finding in self.findings if finding.identical]

    @property
    def unanswered(self) -> list[Finding]:
        """What should have been compared and could not be."""
        return [finding for finding in self.findings if finding.failure == "unanswered"]

    @property
    def counted(self) -> list[Finding]:
        """What can fail; without any there is nothing to pass."""
        return [finding for finding in self.findings if finding.counts]

    @property
    def broken(self) -> list[Finding]:
        """What does not count and has failed cells."""
        return [finding for finding in self.findings if finding.failed_cells and not finding.fails]

    @property
    def errors(self) -> int:
        """Cells of the run without a usable score, under test or not."""
        return sum(finding.failed_cells for finding in self.findings) + self.not_run

    @property
    def flaky(self) -> list[Finding]:
        """Pairs with cells that finished only after failing, under test or not."""
        return [finding for finding in self.findings if finding.flaky]

    @property
    def n_flaky(self) -> int:
        return _flaky_cells(self.findings)

    @property
    def too_flaky(self) -> bool:
        return self.n_flaky > self.rules.allow_flaky

    @property
    def passed(self) -> bool:
        """Whether every pair that counts was compared and held, and every cell ran."""
        return self.exit_code is ExitCode.SUCCESS

    @property
    def exit_code(self) -> ExitCode:
        """A regression outranks a missing answer; failures of libraries that do not count are still errors."""
        if not self.counted:
            return ExitCode.CONFIGURATION_ERROR
        if (self.regressions or self.undecided) and self.rules.fail_on_regression:
            return ExitCode.REGRESSION
        if self.unanswered or _flaky_cells(self.counted) > self.rules.allow_flaky:
            return ExitCode.EXECUTION_ERROR
        if (self.errors or self.too_flaky) and not self.rules.continue_on_error:
            return ExitCode.EXECUTION_ERROR
        return ExitCode.SUCCESS


def _flaky_cells(findings: Iterable[Finding]) -> int:
    return sum(len(finding.flaky) for finding in findings)


class CheckedPair(Model):
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
    by_rows: bool  # whether the p-value is of rows, or of splits
    identical: bool  # every prediction is, to the last bit
    cause: tuple[str, ...]  # what moved, where it got worse
    seeds_needed: int | None  # to decide what is undecided; None: no number would
    failed_cells: int
    flaky: dict[str, int] = Field(default_factory=dict)  # by cell, how often it failed before it finished
    note: str

    @classmethod
    def of(cls, finding: Finding) -> Self:
        same = ("config", "library", "status", "fails", "metric", "tolerance", "p_value", "seeds_needed", "by_rows")
        change = finding.change
        return cls(
            **{name: getattr(finding, name) for name in (*same, "identical", "cause", "failed_cells", "flaky", "note")},
            under_test=finding.counts,
            baseline=finding.baseline.mean if finding.baseline else None,
            current=finding.current.mean if finding.current else None,
            n=finding.current.n if finding.current else 0,
            change=change if change is not None and math.isfinite(change) else None,
        )


class CheckDocument(Model):
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
