"""Is it still as good as it was? The RFC's rule pair by pair, and nothing passes by absence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Gt, Lt
from pydantic import Field

from boosters_eval.baseline.evidence import Evidence, paired_evidence
from boosters_eval.baseline.model import HOME_LIBRARY
from boosters_eval.core.errors import ConfigError, ExitCode, UnknownNameError
from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.baseline.model import BaselineResult, MetricStats
    from boosters_eval.baseline.snapshot import FaultyCell, Snapshot

DEFAULT_TOLERANCE = 0.02
Share = Annotated[float, Ge(0), Lt(1)]


class Status(Enum):
    """The verdict on a (config, library) pair."""

    REGRESSION = "regression"
    CRASHED = "crashed"
    NOT_FINITE = "not a number"
    SKIPPED = "skipped"
    UNLIKE = "not comparable"
    UNCONFIRMED = "not significant"  # beyond tolerance, but the test does not confirm it
    DRIFT = "drift"  # within tolerance, but significant
    IMPROVED = "improved"
    WITHIN = "within tolerance"
    SAME = "same"
    NEW = "new"


_REGRESSIONS = frozenset({Status.REGRESSION, Status.CRASHED})
_ERRORS = frozenset({Status.NOT_FINITE, Status.SKIPPED, Status.UNLIKE})
_FAULTY = {
    "crashed": Status.CRASHED,
    "not finite": Status.NOT_FINITE,
    "repeated": Status.UNLIKE,
    "missing": Status.SKIPPED,
}


class CheckRules(Model):
    """What is allowed, and what was asked for."""

    tolerance: Share = DEFAULT_TOLERANCE
    tolerance_for: dict[str, Share] = Field(default_factory=dict)  # by config or by metric; a config comes first
    statistical: bool = False
    alpha: Annotated[float, Gt(0), Lt(1)] = 0.05
    under_test: tuple[str, ...] | None = None  # None: boosters, and every library whose version is the recorded one
    only_libraries: tuple[str, ...] | None = None  # the run was restricted to these
    only_pairs: frozenset[tuple[str, str]] | None = None  # another suite was asked for, which has only these
    fewer_cells: bool = False  # fewer seeds than the recorded ones were asked for

    def tolerance_of(self, config: str, metric: str) -> float:
        """The tolerance of a pair."""
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
    counts: bool = True  # under test, and not left out on purpose
    upgrade: tuple[str, str] | None = None  # the library's version then and now, where it changed
    failed_cells: int = 0  # without a usable score, whether it counts or not

    @property
    def is_regression(self) -> bool:
        """Whether it fails the check as a regression."""
        return self.counts and self.status in _REGRESSIONS

    @property
    def is_error(self) -> bool:
        """Whether it fails the check for want of an answer."""
        return self.counts and self.status in _ERRORS

    @property
    def fails(self) -> bool:
        """Whether it fails the check at all."""
        return self.is_regression or self.is_error


@dataclass(frozen=True)
class Check:
    """All findings, and the remarks that go with them."""

    findings: tuple[Finding, ...]
    rules: CheckRules
    upgrades: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    not_run: int = 0  # cells of the run's plan about which nothing is known

    @property
    def regressions(self) -> list[Finding]:
        """What got worse, crashes included."""
        return [finding for finding in self.findings if finding.is_regression]

    @property
    def unanswered(self) -> list[Finding]:
        """What should have been compared and could not be."""
        return [finding for finding in self.findings if finding.is_error]

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
    def passed(self) -> bool:
        """Whether every pair that counts was compared and held, and every cell ran."""
        return self.exit_code() is ExitCode.SUCCESS

    def exit_code(self, *, fail_on_regression: bool = True, continue_on_error: bool = False) -> ExitCode:
        """A regression outranks a missing answer; failures of libraries that do not count are still errors."""
        if not self.counted:
            return ExitCode.CONFIGURATION_ERROR
        if self.regressions and fail_on_regression:
            return ExitCode.REGRESSION
        if self.unanswered or (self.errors and not continue_on_error):
            return ExitCode.EXECUTION_ERROR
        return ExitCode.SUCCESS


def is_regression(baseline_mean: float, current_mean: float, tolerance: float, *, lower_is_better: bool) -> bool:
    """The RFC's rule. For a negative mean the tolerance is a share of its size, so that "unchanged" always passes."""
    allowed = math.copysign(tolerance, baseline_mean)
    if lower_is_better:
        return current_mean > baseline_mean * (1 + allowed)
    return current_mean < baseline_mean * (1 - allowed)


def check(before: Snapshot, after: Snapshot, rules: CheckRules | None = None) -> Check:
    """Compare a run, or a later baseline, with a baseline."""
    rules = rules or CheckRules()
    check_names(before, after.pairs, rules)
    upgrades = _upgrades(before, after)
    faulty: dict[tuple[str, str], list[FaultyCell]] = {}
    for cell in after.faulty:
        faulty.setdefault((cell.config, cell.library), []).append(cell)
    findings = []
    for key, recorded in before.results.items():
        counts = _counts(recorded.library, rules, upgrades)
        base = Finding(
            *key,
            status=Status.SKIPPED,
            metric=recorded.primary_metric,
            tolerance=rules.tolerance_of(recorded.config, recorded.primary_metric),
            baseline=recorded.primary,
            counts=counts,
            upgrade=upgrades.get(recorded.library),
        )
        if key in faulty:
            findings.append(_failed(base, faulty[key]))
        elif key in after.results:
            findings.append(_compare(base, recorded, after.results[key], rules))
        else:
            excused = rules.excused(*key)
            findings.append(replace(base, note=_absent(key, after, excused=excused), counts=counts and not excused))
    if before.results and not any(key in before.results for key in after.pairs):
        raise ConfigError("Nothing was compared: no (config, library) pair of the baseline is in the run.")
    for key in after.pairs:
        if key not in before.results:
            new = _new(after, key)
            findings.append(_failed(new, faulty[key]) if key in faulty else new)
    return Check(tuple(findings), rules, upgrades, tuple(_notes(before, after, upgrades)), after.not_run)


def check_names(before: Snapshot, pairs: Iterable[tuple[str, str]], rules: CheckRules) -> None:
    """A misspelt name in the rules would silently have no effect; `pairs` are those of the run or its plan."""
    libraries = {library for _, library in before.results}
    for name in rules.under_test or ():
        if name not in libraries:
            raise UnknownNameError("library of the baseline under test", name, libraries)
    configs = {config for config, _ in [*before.results, *pairs]}
    metrics = {result.primary_metric for result in before.results.values()}
    for name in rules.tolerance_for:
        if name not in metrics | configs:
            raise UnknownNameError("config or primary metric", name, metrics | configs)


def _upgrades(before: Snapshot, after: Snapshot) -> dict[str, tuple[str, str]]:
    return {
        name: (then.version, after.libraries[name].version)
        for name, then in before.libraries.items()
        if name in after.libraries and then.version != after.libraries[name].version
    }


def _counts(library: str, rules: CheckRules, upgrades: dict[str, tuple[str, str]]) -> bool:
    if rules.under_test is not None:
        return library in rules.under_test
    return library == HOME_LIBRARY or library not in upgrades


def _failed(base: Finding, cells: list[FaultyCell]) -> Finding:
    """The worst of what happened to its cells: a crash, a score that is not a number, a cell that did not run."""
    worst = min(cells, key=lambda cell: list(_FAULTY).index(cell.kind))
    several = f" ({len(cells)} cells)" if len(cells) > 1 else ""
    note = f"cell {worst.cell}: {worst.text}{several}"
    return replace(base, status=_FAULTY[worst.kind], note=note, failed_cells=len(cells))


def _absent(key: tuple[str, str], after: Snapshot, *, excused: bool) -> str:
    if excused:
        return "left out on request"
    reason = next((reason for config, library, reason in after.unsupported if (config, library) == key), None)
    if reason:
        return f"in the baseline, but not supported now: {reason}"
    if key[1] not in after.libraries:
        return f"in the baseline, but {key[1]} was not run at all"
    return "in the baseline, but not in the run"


def _new(after: Snapshot, key: tuple[str, str]) -> Finding:
    result = after.results.get(key)
    metric = result.primary_metric if result else ""
    current = result.primary if result else None
    return Finding(*key, status=Status.NEW, metric=metric, current=current, note="no baseline", counts=False)


def _compare(base: Finding, then: BaselineResult, now: BaselineResult, rules: CheckRules) -> Finding:
    metric = then.primary_metric
    if metric not in now.metrics:
        return replace(base, note=f"the run has no {metric}")
    evidence = paired_evidence(then, now, metric, statistical=rules.statistical, alpha=rules.alpha)
    finding = replace(
        base,
        baseline=evidence.before,
        current=evidence.after,
        change=_change(evidence.before.mean, evidence.after.mean),
        p_value=evidence.p_value,
        note="; ".join(
            filter(None, (evidence.obstacle, evidence.remark, changed_parameters(then.parameters, now.parameters)))
        ),
    )
    if evidence.obstacle:
        return replace(finding, status=Status.UNLIKE)
    finding = _verdict(finding, evidence, higher=evidence.higher_is_better)
    compared, recorded = min(evidence.before.n, evidence.after.n), then.metrics[metric].n
    if compared == recorded or rules.fewer_cells or finding.status is Status.REGRESSION:
        return finding
    return replace(finding, status=Status.SKIPPED, note=f"only {compared} of the {recorded} recorded cells were run")


def _verdict(finding: Finding, evidence: Evidence, *, higher: bool) -> Finding:
    before, after = evidence.before.mean, evidence.after.mean
    if is_regression(before, after, finding.tolerance, lower_is_better=not higher):
        status = Status.REGRESSION if evidence.significant is not False else Status.UNCONFIRMED
    elif after == before:
        status = Status.SAME
    elif is_regression(before, after, finding.tolerance, lower_is_better=higher):
        status = Status.IMPROVED  # by more than the tolerance in the other direction
    else:
        status = Status.DRIFT if evidence.significant else Status.WITHIN
    return replace(finding, status=status)


def _change(before: float, after: float) -> float:
    if before == 0:
        return 0.0 if after == 0 else math.copysign(math.inf, after)
    return (after - before) / abs(before)


def changed_parameters(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Which effective parameters are not what they were: the usual cause of a regression."""
    if not then or not now:
        return ""
    absent = object()
    changed = [
        f"{name} {then.get(name, 'unset')} → {now.get(name, 'unset')}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name, absent) != now.get(name, absent)
    ]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"parameters changed: {', '.join(changed[:3])}{more}" if changed else ""


def _notes(before: Snapshot, after: Snapshot, upgrades: dict[str, tuple[str, str]]) -> list[str]:
    notes = [
        f"{name} {build.version} has the recorded version, but the library or its adapter is not the recorded build."
        for name, build in before.libraries.items()
        if name in after.libraries
        and name not in upgrades
        and build.digest
        and after.libraries[name].digest not in ("", build.digest)
    ]
    return [*notes, *_times(before, after)]


def _times(before: Snapshot, after: Snapshot) -> list[str]:
    """Times never decide, and mean something only on one and the same machine."""
    timed = [key for key, result in before.results.items() if result.times and key in after.results]
    timed = [key for key in timed if after.results[key].times]
    if not timed:
        return []
    if before.machine_digest is None or before.machine_digest != after.machine_digest:
        return ["Times are not compared: the baseline was recorded on another machine."]
    notes = []
    for key in timed:
        then, now = before.results[key].times, after.results[key].times
        parts = [
            f"{name.removesuffix('_time_s')} time x {now[name].mean / stats.mean:.2f}"
            for name, stats in then.items()
            if name in now and stats.mean > 0
        ]
        notes.append(f"{key[0]} {key[1]}: {', '.join(parts)} of the baseline's on this machine; times never fail.")
    return notes
