"""The history of many runs as data: a line per benchmark, competitor and metric, and the steps in it.

What the JSON file holds, and what the page and the Markdown are written from.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.errors import RunError
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.text import clean, format_share
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.history import query
from boosters_eval.programs.history.compare import observe_repeats
from boosters_eval.programs.history.difference import is_usual, label_metric
from boosters_eval.programs.history.model import EVERYTHING, HistoryFilter, MetricSeries, RepeatValue, RunEntry
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.numbers import percent_change, tell_apart
from boosters_eval.stats.changepoints import DEFAULT_STEP_ALPHA, fewest_for_any_step, find_steps
from boosters_eval.stats.inference import HUGE
from boosters_eval.stats.tables import mean_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from boosters_eval.programs.history.request import ReportHistoryRequest
    from boosters_eval.reports.document import Document

    Splits = frozenset[tuple[int, int | None, str | None]]  # seed, fold and digest of each

_Key = tuple[str, str, str, str, str, str]  # config, target, machine, metric, data, settings

_NAMED = 5  # runs without a number that a note names
MOST_POINTS = 500  # runs of a line that are searched and drawn
SHORT_MACHINE = 6


class _OfRun(Model):
    """What points, steps and failures tell of a run."""

    run: str  # its id and attempt
    started_at: str
    commit: str  # short, with * if files had changed; empty if there is none

    @property
    def name(self) -> str:
        """The commit, or the date of a run without one."""
        return self.commit or self.started_at[:10]


class HistoryPoint(_OfRun):
    """One run of a line."""

    version: str
    value: float | None  # the mean of the line's splits; None: not finite
    low: float | None = None  # its 95 % interval
    high: float | None = None
    n: int
    failed: int = 0
    searched: bool = True  # False: it lacks a split of the line, or its time was not fairly taken


class HistoryStep(_OfRun):
    """A change of level in a line, from the first run on the new level."""

    last_commit: str  # of the last run on the old level
    version_before: str
    version_after: str
    index: int  # of the first point on the new level
    first: int  # of the first point on the old level
    end: int  # after the last point on the new level
    before: float  # medians
    after: float
    percent: float | None
    verdict: Literal["better", "worse", "changed"]
    p_value: float
    n_before: int
    n_after: int

    @property
    def levels(self) -> str:
        return f"{' → '.join(tell_apart(self.before, self.after))} ({percent_change(self.percent)})"

    @property
    def sentence(self) -> str:
        """The change for a tooltip and for screen readers."""
        after = f", after {self.last_commit}" if self.last_commit and self.last_commit != self.commit else ""
        return f"{self.verdict.capitalize()} since {self.name}{after}: {self.levels}"


class HistoryFailure(_OfRun):
    """A run in which a competitor has no number on a benchmark, because every cell failed."""

    config: str
    target: str
    machine: str
    failed: int


class HistoryLine(Model):
    """One metric of one competitor on one benchmark and one machine, run after run."""

    config: str
    dataset: str
    target: str
    library: str
    metric: str
    label: str
    higher_is_better: bool | None
    primary: bool
    machine: str  # its digest
    machine_label: str
    variant: str = ""  # what tells it from another line of the same names: other data or settings
    n_splits: int  # that its values are means of
    points: tuple[HistoryPoint, ...]
    steps: tuple[HistoryStep, ...] = ()
    hidden: int = 0  # earlier runs, neither searched nor shown
    notes: tuple[str, ...] = ()

    @property
    def n_searched(self) -> int:
        """How many of its runs were searched for steps."""
        return sum(point.searched for point in self.points)


class HistoryReport(ReportedFindings, Model):
    """All lines."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval history report"] = "boosters-eval history report"
    alpha: float = DEFAULT_STEP_ALPHA  # of each line: the chance that one without a step gets one
    n_runs: int
    lines: tuple[HistoryLine, ...]
    failures: tuple[HistoryFailure, ...] = ()  # no point of any line tells of them
    notes: tuple[str, ...] = ()  # the first is the rule by which steps are found

    def document(self) -> Document:
        from boosters_eval.programs.history.document import lay_out_report  # noqa: PLC0415 (it reads this)

        return lay_out_report(self)


def report_history(request: ReportHistoryRequest) -> HistoryReport:
    """Every benchmark, competitor and metric over all runs; without any line there is nothing to report."""
    wanted, home = query.make_filter(request), request.home
    found = read_report(wanted, home)
    if found.lines:
        return found
    if found.failures:
        raise RunError("There is nothing to report: all cells failed in every run that is meant.")
    why = query.explain_kinds(query.list_runs(wanted, home)) or query.explain_nothing(wanted, home)
    raise RunError(f"There is nothing to report: {why}")


def read_report(wanted: HistoryFilter = EVERYTHING, home: Path | None = None) -> HistoryReport:
    """The lines of the runs of a home; unless metrics are asked for, of all scores and the usual resources."""
    lost = [
        HistoryFailure(**_tell_run(entry), config=config, target=target, machine=entry.machine, failed=failed)
        for entry, config, target, failed in query.list_failures(wanted, home)
    ]
    found = query.read_series(wanted, home)
    return build_report((one for one in found if wanted.metrics or is_usual(one.metric)), lost)


def build_report(
    series: Iterable[MetricSeries], failures: Iterable[HistoryFailure] = (), *, alpha: float = DEFAULT_STEP_ALPHA
) -> HistoryReport:
    """The lines of what the runs measured, given in the order of time, and what has no number."""
    kept: dict[_Key, deque[MetricSeries]] = {}
    totals: Counter[_Key] = Counter()
    runs: set[str] = set()
    for one in series:
        key = (one.config, one.target, one.entry.machine, one.metric, one.data_digest, one.settings)
        kept.setdefault(key, deque(maxlen=MOST_POINTS)).append(one)
        totals[key] += 1
        runs.add(one.entry.key)
    lost = tuple(failures)
    failed: dict[tuple[str, ...], list[HistoryFailure]] = {}
    for failure in lost:
        failed.setdefault((failure.config, failure.target, failure.machine), []).append(failure)
    alike: dict[tuple[str, ...], list[_Key]] = {}
    for key in kept:
        alike.setdefault(key[:4], []).append(key)
    lines = []
    for key, found in kept.items():
        variant = _name_variant(key, alike[key[:4]])
        lines.append(_make_line(list(found), totals[key] - len(found), variant, alpha, failed.get(key[:3], ())))
    lines = _tell_machines_apart(lines)
    ordered = sorted(
        lines, key=lambda line: (line.config, line.target, line.machine_label, line.variant, not line.primary)
    )
    drawn = {(key[0], key[1], key[2]) for key in kept}
    alone = [told for key, told in failed.items() if key not in drawn]
    notes = (
        *_explain_steps(lines, alpha),
        *(f"{told[0].target} on {told[0].config}: {_tell_failures(told)}" for told in alone),
    )
    return HistoryReport(alpha=alpha, n_runs=len(runs), lines=tuple(ordered), failures=lost, notes=notes)


def _tell_machines_apart(lines: list[HistoryLine]) -> list[HistoryLine]:
    """Machines of the same make are named by the beginning of their digests too, as in the list of runs."""
    alike = Counter(name for name, _ in {(line.machine_label, line.machine) for line in lines})
    return [
        line.replace(machine_label=f"{line.machine_label} {line.machine[:SHORT_MACHINE]}".lstrip())
        if alike[line.machine_label] > 1
        else line
        for line in lines
    ]


def _name_variant(key: _Key, alike: list[_Key]) -> str:
    """What tells a line from others of the same names, in the order of their first runs; empty if there is none."""
    parts = []
    for name, at in (("data", 4), ("settings", 5)):
        values = list(dict.fromkeys(one[at] for one in alike))
        parts += [f"{name} {values.index(key[at]) + 1} of {len(values)}"] if len(values) > 1 else []
    return ", ".join(parts)


def _explain_steps(lines: Sequence[HistoryLine], alpha: float) -> tuple[str, ...]:
    least = fewest_for_any_step(alpha=alpha)
    searched = sum(line.n_searched >= least for line in lines)
    rule = (
        f"A change means that a number settled at a new level, which at least {least} comparable runs must show. Where"
        f" nothing changed, one is reported in at most {format_share(alpha)} of cases, if the runs scatter"
        " independently. A slow drift, or a machine that is slower for a few runs, looks like a change too."
    )
    if searched > 1:
        chance = f"of the {searched} series that were searched, {alpha * searched:.2g} may show a change by chance"
        rule += f" Each series is tested on its own: {chance}."
    mixed = (
        "A series is one metric of one competitor on one benchmark and machine, with the same data and settings, run"
        " after run."
    )
    return (rule, mixed)


def _tell_run(entry: RunEntry) -> dict[str, str]:
    return {"run": entry.reference, "started_at": entry.started_at, "commit": entry.commit}


def _tell_failures(failures: Sequence[HistoryFailure]) -> str:
    """The latest runs without a number, and how many there are."""
    latest = ", ".join(failure.name for failure in reversed(failures[-_NAMED:]))
    if len(failures) == 1:
        return f"All cells failed in one run, which has no point: {latest}."
    more = ", ..." if len(failures) > _NAMED else ""
    return f"All cells failed in {len(failures)} runs, which have no point: {latest}{more}."


def _make_line(
    series: list[MetricSeries], hidden: int, variant: str, alpha: float, failures: Sequence[HistoryFailure]
) -> HistoryLine:
    last = series[-1]
    splits = _find_common_splits(series)
    points = tuple(_make_point(one, splits) for one in series)
    steps = _find_steps(points, last.higher_is_better, alpha)
    same = ("config", "dataset", "target", "library", "metric", "higher_is_better", "primary")
    return HistoryLine(
        **{name: getattr(last, name) for name in same},
        label=label_metric(last.metric),
        machine=last.entry.machine,
        machine_label=last.entry.machine_label,
        variant=variant,
        n_splits=len(splits),
        points=points,
        steps=steps,
        hidden=hidden,
        notes=tuple(_note_line(series, points, splits, hidden, failures)),
    )


def _note_line(
    series: list[MetricSeries],
    points: Sequence[HistoryPoint],
    splits: Splits,
    hidden: int,
    failures: Sequence[HistoryFailure],
) -> Iterable[str]:
    if failures:
        yield _tell_failures(failures)
    if hidden:
        yield f"Only the latest {len(points)} runs are searched and shown; {hidden} earlier ones are left out."
    if series[-1].metric in RESOURCES and not any(point.searched for point in points):
        yield "Not searched for changes: the times were not measured in timing mode on a quiet machine."
        return
    short = sum(len(_select_used(run, splits)) < len(splits) for run in series)
    others = sum(not point.searched for point in points) - short
    most = "the split" if len(splits) == 1 else f"some of the {len(splits)} splits"
    for left, why in (
        (short, f"{'it lacks' if short == 1 else 'they lack'} {most} that most runs have"),
        (others, "a value is not finite, or a time was not measured in timing mode on a quiet machine"),
    ):
        if left:
            yield f"{left} {'run is' if left == 1 else 'runs are'} shown but not searched: {why}."


def _find_common_splits(series: Sequence[MetricSeries]) -> Splits:
    """The splits that most runs have exactly, the latest if in doubt: a mean of others is another number."""
    sets = [frozenset((one.seed, one.fold, one.split_digest) for one in run.observations) for run in reversed(series)]
    return Counter(sets).most_common(1)[0][0]  # of equal counts, the first one seen


def _select_used(run: MetricSeries, splits: Splits) -> list[RepeatValue]:
    return [one for one in run.observations if (one.seed, one.fold, one.split_digest) in splits]


def _make_point(run: MetricSeries, splits: Splits) -> HistoryPoint:
    used = _select_used(run, splits)
    complete = len(used) == len(splits)
    used = used if complete else list(run.observations)
    values = [one.value for one in used]
    usable = bool(values) and all(map(math.isfinite, values))
    resource = run.metric in RESOURCES
    fair = all(one.fair for one in used)
    interval = mean_interval(observe_repeats(run.metric, used), as_ratio=resource) if usable else None
    return HistoryPoint(
        **_tell_run(run.entry),
        version=clean(run.version),
        value=math.fsum(values) / len(values) if usable else None,
        low=(max(interval[0], 0.0) if resource else interval[0]) if interval else None,
        high=interval[1] if interval else None,
        n=len(used),
        failed=run.failed,
        searched=complete and usable and max(map(abs, values)) < HUGE and not (resource and not fair),
    )


def _find_steps(points: Sequence[HistoryPoint], higher_is_better: bool | None, alpha: float) -> tuple[HistoryStep, ...]:
    searched = [(index, point) for index, point in enumerate(points) if point.searched]
    found = find_steps([point.value or 0.0 for _, point in searched], alpha=alpha)
    edges = [0, *(step.index for step in found), len(searched)]
    out = []
    for step, (first, end) in zip(found, zip(edges, edges[2:], strict=False), strict=True):
        (_, last), (at, begun) = searched[step.index - 1], searched[step.index]
        same = ("before", "after", "p_value", "n_before", "n_after")
        verdict: Literal["better", "worse", "changed"] = "changed"
        if higher_is_better is not None and step.after != step.before:
            verdict = "better" if (step.after > step.before) == higher_is_better else "worse"
        out.append(
            HistoryStep(
                **{name: getattr(begun, name) for name in ("run", "started_at", "commit")},
                **{name: getattr(step, name) for name in same},
                last_commit=last.commit,
                version_before=last.version,
                version_after=begun.version,
                index=at,
                first=searched[first][0],
                end=searched[end - 1][0] + 1,
                percent=100 * (step.after - step.before) / abs(step.before) if step.before else None,
                verdict=verdict,
            )
        )
    return tuple(out)
