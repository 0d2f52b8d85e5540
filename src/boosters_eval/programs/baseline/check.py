"""Is it still as good as it was? The RFC's rule pair by pair, and nothing passes by absence."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, UnknownNameError, require
from boosters_eval.core.terms import named
from boosters_eval.programs.baseline.evidence import Evidence, paired_evidence, seeds_needed
from boosters_eval.programs.baseline.findings import UNNAMED, Check, CheckRules, Finding, Status
from boosters_eval.programs.baseline.model import HOME_LIBRARY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.programs.baseline.model import BaselineResult, MetricStats
    from boosters_eval.programs.baseline.snapshot import FaultyCell, Snapshot

_FAULTY = {
    "crashed": Status.CRASHED,
    "not finite": Status.NOT_FINITE,
    "other data": Status.UNLIKE,
    "repeated": Status.UNLIKE,
    "missing": Status.SKIPPED,
}


def is_regression(baseline_mean: float, current_mean: float, tolerance: float, lower_is_better: bool) -> bool:
    """The RFC's rule, but what is not a number never passes.

    For a negative mean the tolerance is a share of its size, so that "unchanged" always passes.
    """
    for name, value in (("baseline_mean", baseline_mean), ("current_mean", current_mean), ("tolerance", tolerance)):
        require(name, value, Real, "a number")
    allowed = math.copysign(tolerance, baseline_mean)
    if lower_is_better:
        return not current_mean <= baseline_mean * (1 + allowed)
    return not current_mean >= baseline_mean * (1 - allowed)


def check(before: Snapshot, after: Snapshot, rules: CheckRules | None = None, name: str = UNNAMED) -> Check:
    """Compare a run, or a later baseline, with a baseline, which is called by its name."""
    rules = rules or CheckRules()
    rules = rules if after.alpha is None else rules.replace(alpha=after.alpha, looks=True)
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
    findings = [_with_flaky_cells(finding, after) for finding in findings]
    notes = tuple(_notes(before, after, upgrades))
    return Check(tuple(findings), rules, upgrades, notes, after.not_run, before.suite, name)


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


def _with_flaky_cells(finding: Finding, after: Snapshot) -> Finding:
    result = after.results.get((finding.config, finding.library))
    return replace(finding, flaky=result.failed_before) if result and result.failed_before else finding


def _absent(key: tuple[str, str], after: Snapshot, *, excused: bool) -> str:
    if excused:
        return "left out on request"
    reason = next((reason for name, library, reason in after.unsupported if (name, library) == key), None)
    if reason:
        return f"in the baseline, but not supported now: {reason}"
    library = key[1]
    if library in after.unavailable:
        return (
            f"in the baseline, but {library} is unavailable ({after.unavailable[library]});"
            f" to check only other libraries, name them with {named('libraries')}"
        )
    if library not in after.libraries:
        return f"in the baseline, but {library} was not run at all"
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
    seeds, recorded_seeds = _seeds(evidence.before), _seeds(then.metrics[metric])
    finding = _verdict(replace(finding, n_seeds=seeds, n_recorded=recorded_seeds), evidence, looks=rules.looks)
    compared, recorded = min(evidence.before.n, evidence.after.n), then.metrics[metric].n
    needed = recorded if rules.seeds is None else min(rules.seeds, recorded_seeds) * recorded // recorded_seeds
    if compared >= needed or finding.status in (Status.REGRESSION, Status.SUSPECTED):
        return finding
    note = f"only {compared} of the {recorded} recorded cells were run"
    if needed < recorded:
        note += f"; {rules.seeds} seeds were asked for"
    return replace(finding, status=Status.SKIPPED, note=note)


def _seeds(stats: MetricStats) -> int:
    return len({cell.partition("/")[0] for cell in stats.per_seed}) or stats.n


def _verdict(finding: Finding, evidence: Evidence, *, looks: bool) -> Finding:
    """The tolerance decides; a test can only call a regression suspected, or a change within tolerance drift."""
    before, after = evidence.before.mean, evidence.after.mean
    lower = not evidence.higher_is_better
    if is_regression(before, after, finding.tolerance, lower_is_better=lower):
        if evidence.worse is False:
            windows = evidence.design is not None and evidence.design.ordered
            return _suspected(finding, seeds_needed(evidence, looks=looks), windows=windows)
        status = Status.REGRESSION
    elif after == before:
        status = Status.SAME
    elif is_regression(before, after, finding.tolerance, lower_is_better=not lower):
        status = Status.IMPROVED  # by more than the tolerance in the other direction
    else:
        status = Status.DRIFT if evidence.worse else Status.WITHIN
    worst = evidence.worst
    safe = worst is None or not is_regression(before, worst, finding.tolerance, lower_is_better=lower)
    return replace(finding, status=status, decided=safe or status is Status.REGRESSION)


def _suspected(finding: Finding, needed: int | None, *, windows: bool) -> Finding:
    text = f"{needed} seeds would decide if the change stays as it is"
    if windows:
        text = "more seeds would not decide, as they add no windows of time"
    elif needed is None:
        text = "no number of seeds would make such a change significant, as splits share rows"
    note = f"{finding.note}, {text}" if finding.note else text
    return replace(finding, status=Status.SUSPECTED, note=note, seeds_needed=needed, decided=False)


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
    lacking = Counter((item.library, item.reason) for item in before.absent)
    notes += [
        f"The baseline has no values of {library} in {count} config{'' if count == 1 else 's'}: {reason}."
        for (library, reason), count in lacking.items()
    ]
    flaky = sum(len(result.failed_before) for result in before.results.values())
    if flaky:
        notes.append(f"Cells of the baseline that finished only after failing, as was allowed: {flaky}.")
    return [*notes, *_times(before, after)]


def _times(before: Snapshot, after: Snapshot) -> list[str]:
    """Times never decide, and mean something only on one and the same machine."""
    timed = [key for key, result in before.results.items() if result.times and key in after.results]
    if timed and after.several_machines:
        return ["Times are not compared: the run was made on several machines."]
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
