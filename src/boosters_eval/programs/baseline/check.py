"""Is it still as good as it was? The RFC's rule pair by pair, and nothing passes by absence."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, UnknownNameError, require
from boosters_eval.core.request import Repeat
from boosters_eval.core.terms import named
from boosters_eval.core.text import count_of
from boosters_eval.metrics import higher_is_better
from boosters_eval.programs.baseline.document import CheckFindings
from boosters_eval.programs.baseline.findings import UNNAMED, Check, CheckRules, Finding, Status
from boosters_eval.programs.baseline.model import HOME_LIBRARY, MetricStats
from boosters_eval.programs.baseline.snapshot import Snapshot, take_baseline
from boosters_eval.reports.numbers import p_value
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.programs.baseline.model import BaselineResult
    from boosters_eval.programs.baseline.request import DiffRequest, Judging
    from boosters_eval.programs.baseline.snapshot import FaultyCell
    from boosters_eval.stats.observations import AnySide, Side
    from boosters_eval.stats.significance import Comparison


@dataclass(frozen=True)
class Evidence:
    """Both values over the cells that both have, and why they may not be comparable."""

    before: MetricStats
    after: MetricStats
    higher_is_better: bool
    obstacle: str = ""  # why it would not be comparing like with like
    remark: str = ""
    tested: Comparison | None = None  # now against then; None: not asked, or so few cells that no test can reject
    tested_on: AnySide = field(default_factory=dict)  # the recorded values of these cells

    @property
    def p_value(self) -> float | None:
        """Of "nothing has changed"."""
        return None if self.tested is None else self.tested.p_value

    @property
    def by_time(self) -> bool:
        """Whether the splits are windows of time, which more seeds do not add to."""
        return any(one.kind == "time" for one in self.tested_on.values())

    @property
    def worse(self) -> bool | None:
        """Whether it is significantly worse; None where nothing was tested."""
        if self.tested is None or self.tested.p_value is None or self.tested.difference is None:
            return None
        wrong_way = (self.tested.difference < 0) == self.higher_is_better
        return wrong_way and self.tested.p_value <= self.tested.alpha

    @property
    def worst(self) -> float | None:
        """The worst mean that is compatible with the run: the end of the interval; None where nothing was tested."""
        if self.tested is None or self.tested.interval is None:
            return None
        low, high = self.tested.interval
        return self.before.mean + (low if self.higher_is_better else high)


def pair_evidence(
    then: BaselineResult, now: BaselineResult, metric: str, *, statistical: bool, alpha: float
) -> Evidence:
    """The means over the common cells; with `statistical` also the corrected paired test."""
    before, after = then.metrics[metric], now.metrics[metric]
    stated = [side.higher_is_better for side in (then, now) if side.primary_metric == metric]
    known = [direction for direction in stated if direction is not None]  # of a user's metric, only they know
    higher = known[0] if known else higher_is_better(metric)
    if len(set(known)) > 1:
        say = ("more", "less") if higher else ("less", "more")
        obstacle = f"the baseline says that {say[0]} {metric} is better, the run that {say[1]} is"
        return Evidence(before, after, higher, obstacle=obstacle)
    if not before.per_seed or not after.per_seed:
        remark = "no values per seed were recorded, so the means are compared"
        remark += f" though n is {before.n} and {after.n}" if before.n != after.n else ""
        remark += " and nothing can be tested: the tolerance alone decides" if statistical else ""
        return Evidence(before, after, higher, remark=remark if before.n != after.n or statistical else "")
    common = [cell for cell in before.per_seed if cell in after.per_seed]
    obstacle = _obstacle(then, now, common)
    if obstacle:
        return Evidence(before, after, higher, obstacle=obstacle)
    remark = "" if len(common) == before.n else f"over {len(common)} of the {before.n} recorded seeds"
    before, after = (MetricStats.of({cell: side.per_seed[cell] for cell in common}) for side in (before, after))
    found = Evidence(before, after, higher, remark=remark)
    return _test(then, now, found, metric, alpha) if statistical else found


def _obstacle(then: BaselineResult, now: BaselineResult, common: list[str]) -> str:
    if then.data_digest and now.data_digest and then.data_digest != now.data_digest:
        return "the data is not the recorded data; record a new baseline"
    if not common:
        return "no seed is in both"
    for cell in common:
        first, second = then.split_digests.get(cell), now.split_digests.get(cell)
        if first and second and first != second:
            return f"the split of cell {cell} is not the recorded split; record a new baseline"
    return ""


def _test(then: BaselineResult, now: BaselineResult, evidence: Evidence, metric: str, alpha: float) -> Evidence:
    """The same test as between two libraries: paired by split, corrected for the rows that splits share."""
    from boosters_eval.programs.benchmark.comparisons import resolution_of  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.significance import DEFAULT_ALPHA  # noqa: PLC0415
    from boosters_eval.stats.tables import compare_table  # noqa: PLC0415

    same = evidence.before.per_seed == evidence.after.per_seed
    if same and not resolution_of(metric, now.n_valid):
        return evidence  # identical scores prove it, unless one row is all that a score can resolve
    sides = {"then": _observe(then, evidence.before, metric), "now": _observe(now, evidence.after, metric)}
    table = compare_table(sides, metric=metric, higher_is_better=evidence.higher_is_better, alpha=alpha)
    found = table.get("now", "then")
    p = found.p_value
    if p is None or (p > alpha and found.interval is None):
        # Too few cells for any change to be significant: what is beyond tolerance is not merely suspected.
        remark = "too few cells for a test: the tolerance alone decides"
    else:
        evidence = replace(evidence, tested=found, tested_on=sides["then"])
        text = p_value(p)
        remark = f"p {text}" if text.startswith("<") else f"p = {text}"
        remark += "" if alpha == DEFAULT_ALPHA else f" with {alpha:.3g} or less needed"
    return evidence if same else replace(evidence, remark=", ".join(filter(None, (evidence.remark, remark))))


def count_seeds_needed(evidence: Evidence, *, looks: bool = False) -> int | None:
    """How many seeds make the change significant if it stays as it is; None if no number does.

    With `looks`, they are added by the sequential rule, whose level falls with its number of looks.
    """
    from boosters_eval.stats.observations import ASSUMED_RATIO, find_design, split_ratio  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.sequential import SequentialRule, splits_to_decide  # noqa: PLC0415

    if evidence.tested is None or evidence.by_time:
        return None
    level = (lambda seeds: SequentialRule(max_seeds=seeds).level) if looks else None
    overlap = split_ratio(evidence.tested_on.values()) or ASSUMED_RATIO
    splits = splits_to_decide(evidence.tested, overlap, level, find_design(evidence.tested_on, "corrected"))
    cells = [Repeat.parse(cell) for cell in evidence.before.per_seed]
    per_seed = len(cells) / len({repeat.seed for repeat in cells})  # more than one where there are folds
    return None if splits is None else math.ceil(splits / per_seed)


def _observe(record: BaselineResult, stats: MetricStats, metric: str) -> Side:
    from boosters_eval.programs.benchmark.comparisons import resolution_of, split_fields  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.observations import Observation, Side  # noqa: PLC0415

    resolution = resolution_of(metric, record.n_valid)
    return Side(
        (
            Repeat.parse(cell),
            Observation(
                value,
                record.split_digests.get(cell),
                record.n_train,
                record.n_valid,
                record.data_digest,
                resolution=resolution,
                **split_fields(record.split),
            ),
        )
        for cell, value in stats.per_seed.items()
    )


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
    check_rules(before, after.pairs, rules)
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
        elif recorded and result:
            finding = _compare(finding, recorded, result, rules)
        elif recorded:
            excused = rules.excused(*key)
            finding = replace(finding, note=_absent(key, after, excused=excused), counts=counts and not excused)
        findings.append(finding)
    notes = tuple(_notes(before, after, upgrades))
    return Check(tuple(findings), rules, upgrades, notes, after.not_run, before.suite, name)


def check_rules(before: Snapshot, pairs: Iterable[tuple[str, str]], rules: CheckRules) -> None:
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


def _compare(base: Finding, then: BaselineResult, now: BaselineResult, rules: CheckRules) -> Finding:
    metric = then.primary_metric
    if metric not in now.metrics:
        return replace(base, note=f"the run has no {metric}")
    evidence = pair_evidence(then, now, metric, statistical=rules.statistical, alpha=rules.alpha)
    changed = describe_changed_parameters(then.parameters, now.parameters)
    remarks = (evidence.obstacle, evidence.remark, changed)
    before, after = evidence.before.mean, evidence.after.mean
    from_zero = math.copysign(math.inf, after) if after else 0.0
    finding = replace(
        base,
        baseline=evidence.before,
        current=evidence.after,
        change=(after - before) / abs(before) if before else from_zero,
        p_value=evidence.p_value,
        note="; ".join(filter(None, remarks)),
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
            return _suspect(finding, evidence, count_seeds_needed(evidence, looks=looks))
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


def _suspect(finding: Finding, evidence: Evidence, needed: int | None) -> Finding:
    text = f"{needed} seeds would decide if the change stays as it is"
    if evidence.by_time:
        text = "more seeds would not decide, as they add no windows of time"
    elif needed is None:
        text = "no number of seeds would make such a change significant, as splits share rows"
    note = f"{finding.note}, {text}" if finding.note else text
    return replace(finding, status=Status.SUSPECTED, note=note, seeds_needed=needed, decided=False)


def describe_changed_parameters(then: dict[str, Any], now: dict[str, Any]) -> str:
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


def diff_baselines(request: DiffRequest) -> CheckFindings:
    (before, name), (after, _) = take_baseline(request.before, "before"), take_baseline(request.after, "after")
    sides = Snapshot.of_baseline(before), Snapshot.of_baseline(after)
    return CheckFindings(check(*sides, make_rules(request), name), request)


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
