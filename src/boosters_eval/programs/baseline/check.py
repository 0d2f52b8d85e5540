"""Is it still as good as it was? The RFC's rule pair by pair, and nothing passes by absence."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, find_doubled, pick, require
from boosters_eval.core.terms import named, the
from boosters_eval.core.text import count_of, join_words
from boosters_eval.metrics import pick_metric
from boosters_eval.programs.baseline.document import CheckFindings
from boosters_eval.programs.baseline.evidence import PairOfSides, RecordedSide, count_seeds_needed, weigh_pair
from boosters_eval.programs.baseline.findings import UNNAMED, Check, CheckRules, Finding, Status
from boosters_eval.programs.baseline.model import HOME_LIBRARY
from boosters_eval.programs.baseline.snapshot import Snapshot, describe_changed_parameters, take_baseline
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.programs.baseline.evidence import Evidence
    from boosters_eval.programs.baseline.model import MetricStats
    from boosters_eval.programs.baseline.request import DiffRequest, Judging
    from boosters_eval.programs.baseline.snapshot import FaultyCell


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
    rules = match_rules(before, after.pairs, rules)
    upgrades = {
        name: (then.version, after.libraries[name].version)
        for name, then in before.libraries.items()
        if name in after.libraries and then.version != after.libraries[name].version
    }
    faulty: dict[tuple[str, str], list[FaultyCell]] = {}
    for cell in after.faulty:
        faulty.setdefault((cell.config, cell.library), []).append(cell)
    if before.results and not any(key in before.results for key in after.pairs):
        raise ConfigError("Nothing was compared: no (config, library) pair of the baseline is in the run.")
    pairs = {
        key: PairOfSides(RecordedSide(recorded, before.store), RecordedSide(after.results[key], after.store))
        for key, recorded in before.results.items()
        if key in after.results
    }
    moved = {library for (_, library), sides in pairs.items() if not sides.identical and sides.weighted is False}
    findings = []
    for key in dict.fromkeys([*before.results, *after.pairs]):
        recorded, result = before.results.get(key), after.results.get(key)
        finding = Finding(
            *key, Status.NEW, note="no baseline", counts=False, flaky=result.failed_before if result else {}
        )
        if recorded:
            usual = key[1] == HOME_LIBRARY or key[1] not in upgrades
            counts = usual if rules.under_test is None else key[1] in rules.under_test
            finding = replace(
                finding,
                status=Status.SKIPPED,
                metric=recorded.primary_metric,
                tolerance=rules.tolerance_of(recorded.config, recorded.primary_metric),
                baseline=recorded.primary,
                note="",
                counts=counts,
                upgrade=upgrades.get(key[1]),
            )
        elif result:
            finding = replace(finding, metric=result.primary_metric, current=result.primary)
        if key in faulty:
            finding = _failed(finding, faulty[key])
        elif key in pairs:
            finding = _compare(finding, pairs[key], rules, only_weighted=key[1] not in moved)
        elif recorded:
            excused = rules.excused(*key)
            finding = replace(finding, note=_absent(key, after, excused=excused), counts=counts and not excused)
        findings.append(finding)
    notes, without = tuple(_notes(before, after, upgrades)), _find_without(before, after)
    return Check(tuple(findings), rules, upgrades, notes, after.not_run, before.suite, without=without, name=name)


def _find_without(before: Snapshot, after: Snapshot) -> str:
    """Which side has no predictions, so that rows cannot be tested; empty if both have some."""
    sides = {"the baseline": before, "the run": after}
    lacking = [name for name, side in sides.items() if not side.has_rows]
    return join_words(lacking)


def match_rules(before: Snapshot, pairs: Iterable[tuple[str, str]], rules: CheckRules) -> CheckRules:
    """The rules by the names of the baseline, and of the run or its plan, whose pairs are given."""
    libraries = {library for _, library in before.results}
    under_test = tuple(pick("library of the baseline under test", name, libraries) for name in rules.under_test or ())
    configs = {config for config, _ in [*before.results, *pairs]}
    known = configs | {result.primary_metric for result in before.results.values()}
    meant = {name: pick_metric("config or primary metric", name, known) for name in rules.tolerance_for}
    for name in find_doubled(meant.values()):
        raise ConfigError(f"{the('tolerance_for')} of {name} is given twice.")
    tolerances = {meant[name]: tolerance for name, tolerance in rules.tolerance_for.items()}
    return rules.replace(under_test=under_test or None, tolerance_for=tolerances)


def _failed(base: Finding, cells: list[FaultyCell]) -> Finding:
    """The worst of what happened to its cells: a crash, a score that is not a number, a cell that did not run."""
    worst = min(cells, key=lambda cell: list(Status).index(cell.status))
    several = f" ({len(cells)} cells)" if len(cells) > 1 else ""
    note = f"cell {worst.cell}: {worst.text}{several}"
    return replace(base, status=worst.status, note=note, failed_cells=len(cells))


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


def _compare(base: Finding, sides: PairOfSides, rules: CheckRules, *, only_weighted: bool) -> Finding:
    then, now = sides.then.record, sides.now.record
    metric = then.primary_metric
    if metric not in now.metrics:
        return replace(base, note=f"the run has no {metric}")
    evidence = weigh_pair(sides, metric, statistical=rules.statistical, alpha=rules.alpha)
    before, after = evidence.before.mean, evidence.after.mean
    from_zero = math.copysign(math.inf, after) if after else 0.0
    finding = replace(
        base,
        baseline=evidence.before,
        current=evidence.after,
        change=(after - before) / abs(before) if before else from_zero,
        p_value=evidence.p_value,
        by_rows=evidence.by_rows,
        identical=evidence.identical,
        lenient=rules.statistical and evidence.by_rows,
    )
    if evidence.obstacle:
        return _noted(replace(finding, status=Status.UNLIKE), sides, evidence)
    seeds, recorded_seeds = _seeds(evidence.before), _seeds(then.metrics[metric])
    finding = _verdict(replace(finding, n_seeds=seeds, n_recorded=recorded_seeds), evidence, looks=rules.looks)
    finding = _noted(finding, sides, evidence, only_weighted=only_weighted)
    compared, recorded = min(evidence.before.n, evidence.after.n), then.metrics[metric].n
    needed = recorded if rules.seeds is None else min(rules.seeds, recorded_seeds) * recorded // recorded_seeds
    if compared >= needed or finding.status in (Status.REGRESSION, Status.UNDECIDED):
        return finding
    note = f"only {compared} of the {recorded} recorded cells were run"
    if needed < recorded:
        note += f"; {rules.seeds} seeds were asked for"
    return replace(finding, status=Status.SKIPPED, note=note, cause=())


def _noted(finding: Finding, sides: PairOfSides, evidence: Evidence, *, only_weighted: bool = True) -> Finding:
    """The finding with what moved, where it got worse, and with remarks on how it was judged."""
    changed = describe_changed_parameters(sides.then.record.parameters, sides.now.record.parameters)
    cause: tuple[str, ...] = ()
    if finding.status in (Status.REGRESSION, Status.UNDECIDED, Status.DRIFT):
        from boosters_eval.programs.baseline.causes import explain_change  # noqa: PLC0415 (loads numpy)

        cause, changed = explain_change(sides, finding.metric, only_weighted=only_weighted), ""
    remarks = (evidence.obstacle, evidence.remark, finding.note, changed)
    return replace(finding, cause=cause, note="; ".join(filter(None, remarks)))


def _seeds(stats: MetricStats) -> int:
    return len({cell.partition("/")[0] for cell in stats.per_seed}) or stats.n


def _verdict(finding: Finding, evidence: Evidence, *, looks: bool) -> Finding:
    """The tolerance decides; a test can only call what is beyond it undecided, or a change within it drift."""
    before, after = evidence.before.mean, evidence.after.mean
    lower = not evidence.higher_is_better
    if is_regression(before, after, finding.tolerance, lower_is_better=lower):
        if evidence.worse is False:
            return _leave_undecided(finding, evidence, count_seeds_needed(evidence, looks=looks))
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


def _leave_undecided(finding: Finding, evidence: Evidence, needed: int | None) -> Finding:
    text = f"{needed} seeds would decide if the change stays as it is"
    if evidence.by_time:
        text = "more seeds would not decide, as they add no windows of time"
    elif needed is None:
        rows = "its rows are too few" if evidence.by_rows else "splits share rows"
        text = f"no number of seeds would make such a change significant, as {rows}"
    return replace(finding, status=Status.UNDECIDED, note=text, seeds_needed=needed, decided=False)


def _notes(before: Snapshot, after: Snapshot, upgrades: dict[str, tuple[str, str]]) -> list[str]:
    notes = []
    rebuilt = [
        f"{name} {build.version}"
        for name, build in before.libraries.items()
        if name in after.libraries
        and name not in upgrades
        and build.digest
        and after.libraries[name].digest not in ("", build.digest)
    ]
    if len(rebuilt) == 1:
        told = "has the recorded version, but the library or its adapter is not the recorded build."
        notes.append(f"{rebuilt[0]} {told}")
    elif rebuilt:
        told = "have the recorded versions, but the libraries or their adapters are not the recorded builds."
        notes.append(f"{join_words(rebuilt)} {told}")
    lacking = Counter((item.library, item.reason) for item in before.absent)
    notes += [
        f"The baseline has no values of {library} in {count_of(count, 'config')}: {reason}."
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
    told = []
    for key in timed:
        then, now = before.results[key].times, after.results[key].times
        parts = [
            f"{name.removesuffix('_time_s')} time x {now[name].mean / stats.mean:.2f}"
            for name, stats in then.items()
            if name in now and stats.mean > 0
        ]
        told.append(f"{key[0]} {key[1]} {', '.join(parts)}")
    return [f"Times on this machine against the baseline's, which never fail: {'; '.join(told)}."]


def diff_baselines(request: DiffRequest) -> CheckFindings:
    before, after = take_baseline(request.before, "before"), take_baseline(request.after, "after")
    return CheckFindings(check(before.snapshot, after.snapshot, make_rules(request), before.name), request)


def make_rules(request: Judging, **more: Any) -> CheckRules:
    """The rules that a request asks for; a build under test may be named by what it was installed from."""
    names = ("tolerance", "statistical", "allow_flaky", "fail_on_regression")
    return CheckRules(
        **{name: getattr(request, name) for name in names},
        tolerance_for=dict(request.tolerance_for or {}),
        under_test=tuple(map(label_of, request.libraries_under_test)) or None,
        continue_on_error=getattr(request, "continue_on_error", False),
        **more,
    )
