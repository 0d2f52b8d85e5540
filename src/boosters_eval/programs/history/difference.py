"""Two runs of the history, number by number: `history diff`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.core.terms import the
from boosters_eval.core.text import clean
from boosters_eval.programs.history import query
from boosters_eval.programs.history.choosing import measured_names
from boosters_eval.programs.history.compare import ALPHA, NOT_COMPARABLE, HistoryComparison, against
from boosters_eval.programs.history.report import SHORT_MACHINE, commit_of, finite, is_usual, metric_label, run_name
from boosters_eval.programs.history.wording import kinds_of, level_texts, not_judged, percent_text
from boosters_eval.reports.document import Fact, ReportDocument
from boosters_eval.reports.html.page import render_page
from boosters_eval.reports.latex import render_latex
from boosters_eval.reports.model import Column, Report, ReportTable, Row, TableCell
from boosters_eval.reports.numbers import MISSING, number
from boosters_eval.reports.text import escape, render_csv, render_markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.history.model import MetricSeries, RunEntry
    from boosters_eval.programs.history.request import DiffRunsRequest

_OTHERS = 0.1  # of alpha, shared by all numbers but the primary ones

_Key = tuple[str, str, str]  # benchmark, competitor, metric
_Failures = Mapping[tuple[str, str], int]  # the failed cells of a benchmark and competitor without a number


class ComparedRun(Model):
    """One side of a difference."""

    run: str
    started_at: str
    commit: str
    machine: str
    machine_label: str
    failed: int


class NumberChange(Model):
    """One number in both runs. Changes are after minus before, or after over before."""

    config: str
    target: str
    metric: str
    label: str
    primary: bool
    version_before: str | None
    version_after: str | None
    before: float | None
    after: float | None
    difference: float | None
    percent: float | None
    ratio: float | None
    low: float | None  # the interval: of the ratio where there is one, else of the difference
    high: float | None
    low_percent: float | None
    high_percent: float | None
    alpha: float
    p_value: float | None
    verdict: str
    paired: bool
    n: int
    how: str
    note: str


class RunDifference(Findings, Model):
    """The later run against the earlier one."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval history difference"] = "boosters-eval history difference"
    before: ComparedRun
    after: ComparedRun
    changes: tuple[NumberChange, ...]
    notes: tuple[str, ...] = ()

    def show(self, screen: Screen) -> None:
        """Both runs, and a table per benchmark."""
        from boosters_eval.reports.terminal import print_report  # noqa: PLC0415 (loads rich)

        screen.say(f"before: {run_text(self.before)}\nafter:  {run_text(self.after)}\n")
        print_report(tables_of(self), screen.console())

    def render(self, form: str) -> str:
        """The difference in a format."""
        if form == "json":
            return self.model_dump_json(indent=1) + "\n"
        if form == "csv":
            return render_csv(tables_of(self))
        if form == "html":
            return render_page(document_of(self))
        if form == "latex":
            return render_latex(tables_of(self))
        head = f"# {escape(title_of(self))}\n\n"
        sides = f"- Before: {escape(run_text(self.before))}\n- After: {escape(run_text(self.after))}\n\n"
        return head + sides + render_markdown(tables_of(self))


def diff(request: DiffRunsRequest) -> RunDifference:
    """The second run against the first."""
    return compare_runs(request.before, request.after, metrics=measured_names(request.metrics), home=request.home)


def compare_runs(before: str, after: str, *, metrics: Sequence[str] = (), home: Path | None = None) -> RunDifference:
    """The second run against the first, each by its id, the beginning of its id, its name, or `last`."""
    first, second = (
        (entry, query.series_of(entry, home), query.failures_of(entry, home))
        for entry in (query.find(before, home, "before"), query.find(after, home, "after"))
    )
    return difference_of(first[:2], second[:2], metrics, failed=(first[2], second[2]))


def difference_of(
    before: tuple[RunEntry, Sequence[MetricSeries]],
    after: tuple[RunEntry, Sequence[MetricSeries]],
    metrics: Sequence[str] = (),
    *,
    failed: tuple[_Failures, _Failures] = ({}, {}),
) -> RunDifference:
    """What changed from one run to the other; `metrics` chooses, by default all scores and the usual resources.

    `failed` tells of each run what has no number because all its cells failed.
    """
    sides = [{_key(one): one for one in series if _is_wanted(one.metric, metrics)} for _, series in (before, after)]
    first, second = sides
    sides = [
        {**_without_a_number(before[0], failed[0], second), **first},
        {**_without_a_number(after[0], failed[1], first), **second},
    ]
    keys = list(dict.fromkeys([*second, *first]))
    runs = [run_name(entry) for entry, _ in (before, after)]
    if not {key[0] for key in sides[0]} & {key[0] for key in sides[1]}:
        if failed[0].keys() & failed[1].keys():
            raise ConfigError(f"Neither '{runs[0]}' nor '{runs[1]}' has a number: all cells failed.")
        raise ConfigError(_nothing_shared((before, after), runs, metrics))
    levels = _levels(sides, keys)
    changes = [_change(sides[0].get(key), sides[1].get(key), levels[key]) for key in keys]
    order = {config: position for position, config in enumerate(dict.fromkeys(key[0] for key in keys))}
    return RunDifference(
        before=_run(before[0]),
        after=_run(after[0]),
        changes=tuple(sorted(changes, key=lambda one: order[one.config])),
        notes=tuple(_notes(before[0], after[0])),
    )


def _nothing_shared(
    sides: Sequence[tuple[RunEntry, Sequence[MetricSeries]]], runs: Sequence[str], metrics: Sequence[str]
) -> str:
    known = [{(one.config, one.metric) for one in series} for _, series in sides]
    both = {config for config, _ in known[0]} & {config for config, _ in known[1]}
    if metrics and both:
        names = sorted({metric for config, metric in known[0] & known[1] if config in both})
        return f"{the('metrics')} must name what both runs measured: {', '.join(names)}. Got '{' '.join(metrics)}'."
    for (entry, _), run in zip(sides, runs, strict=True):
        if entry.state == "unreadable":
            return f"The run '{run}' cannot be compared, because it cannot be read: {entry.fault}."
    if others := kinds_of(entry for entry, _ in sides):
        return f"The runs '{runs[0]}' and '{runs[1]}' cannot be compared: {not_judged(others)}"
    return f"The runs '{runs[0]}' and '{runs[1]}' share no benchmark."


def _without_a_number(
    entry: RunEntry, failed: _Failures, other: Mapping[_Key, MetricSeries]
) -> dict[_Key, MetricSeries]:
    """What a run would have told, had not every cell failed, as far as the other run tells it."""
    return {
        key: replace(
            one,
            entry=entry,
            version=entry.versions.get(one.target, ""),
            failed=failed[one.config, one.target],
            mean=math.nan,
            n=0,
            observations=(),
        )
        for key, one in other.items()
        if (one.config, one.target) in failed
    }


def _is_wanted(metric: str, metrics: Sequence[str]) -> bool:
    if metrics:
        return metric in metrics or metric.partition("@")[0] in metrics
    return is_usual(metric)


def _key(one: MetricSeries) -> _Key:
    return one.config, one.target, one.metric


def _levels(sides: Sequence[dict[_Key, MetricSeries]], keys: Iterable[_Key]) -> dict[_Key, float]:
    """The primary numbers of a benchmark share alpha, and all others of it share a tenth, as in any table."""
    families: dict[tuple[str, bool], list[_Key]] = {}
    for key in keys:
        first, second = (side.get(key) for side in sides)
        if first and second:
            families.setdefault((key[0], second.primary), []).append(key)
    levels = dict.fromkeys(keys, ALPHA)
    for (_, primary), members in families.items():
        levels |= dict.fromkeys(members, (ALPHA if primary else _OTHERS * ALPHA) / len(members))
    return levels


def _notes(before: RunEntry, after: RunEntry) -> Iterable[str]:
    if after.started_at < before.started_at:
        yield "The second run is older than the first."
    for which, entry in (("first", before), ("second", after)):
        if entry.failed or entry.missing:
            parts = [f"{n} {word}" for n, word in ((entry.failed, "failed"), (entry.missing, "missing")) if n]
            yield f"Cells of the {which} run without a result: {', '.join(parts)}."
    yield (
        f"Per benchmark, the verdicts on the primary metric hold together at {100 * ALPHA:g} %; those on all other"
        " numbers share a tenth of it."
    )


def _run(entry: RunEntry) -> ComparedRun:
    return ComparedRun(
        run=run_name(entry),
        started_at=entry.started_at,
        commit=commit_of(entry),
        machine=entry.machine,
        machine_label=entry.machine_label,
        failed=entry.failed,
    )


def _change(before: MetricSeries | None, after: MetricSeries | None, alpha: float) -> NumberChange:
    known = cast("MetricSeries", after or before)
    if before and after:
        found = against(before, after, alpha=alpha)
    else:
        found = HistoryComparison(
            NOT_COMPARABLE,
            f"only in the {'first' if before else 'second'} run",
            before=before.mean if before else None,
            after=after.mean if after else None,
            alpha=alpha,
        )
    interval, percents = found.interval or (None, None), found.percent_interval or (None, None)
    return NumberChange(
        config=known.config,
        target=known.target,
        metric=known.metric,
        label=metric_label(known.metric),
        primary=known.primary,
        version_before=before and clean(before.version),
        version_after=after and clean(after.version),
        before=finite(found.before),
        after=finite(found.after),
        difference=finite(found.difference),
        percent=finite(found.percent),
        ratio=finite(found.ratio),
        low=finite(interval[0]),
        high=finite(interval[1]),
        low_percent=finite(percents[0]),
        high_percent=finite(percents[1]),
        alpha=found.alpha,
        p_value=finite(found.p_value),
        verdict=found.verdict,
        paired=found.paired,
        n=found.n,
        how=found.how,
        note=found.note,
    )


def tables_of(found: RunDifference) -> Report:
    """The difference in the table model, one table per benchmark."""
    by_config: dict[str, list[NumberChange]] = {}
    for change in found.changes:
        by_config.setdefault(change.config, []).append(change)
    return Report(tuple(_table(config, changes) for config, changes in by_config.items()), found.notes)


def title_of(found: RunDifference) -> str:
    """The later run is judged against the earlier one, so it is named first."""
    return f"{found.after.run} against {found.before.run}"


def document_of(found: RunDifference) -> ReportDocument:
    """The difference for the page."""
    report = tables_of(found)
    words = [change.verdict for change in found.changes]
    return ReportDocument(
        title=title_of(found),
        lead=f"Before: {run_text(found.before)}. After: {run_text(found.after)}.",
        facts=tuple(
            Fact(label=word.capitalize(), value=str(words.count(word)), alarm=word == "worse" and word in words)
            for word in ("better", "worse", "equivalent", "inconclusive", NOT_COMPARABLE)
        ),
        tables=report.tables,
        table_noun="benchmark",
        notes=report.notes,
    )


def run_text(run: ComparedRun) -> str:
    """A run in a few words."""
    commit = f", commit {run.commit}" if run.commit else ""
    when = run.started_at[:16].replace("T", " ")
    machine = " ".join(filter(None, [run.machine_label, run.machine[:SHORT_MACHINE]]))
    return f"run {run.run} of {when}{commit} on {machine or 'an unknown machine'}"


_COLUMNS = (
    Column("version", "Version", None),
    Column("before", "Before", None),
    Column("after", "After", None),
    Column("change", "Change", None),
    Column("interval", "Interval", None),
    Column("verdict", "Verdict", None),
    Column("how", "How", None),
)


def _table(config: str, changes: Sequence[NumberChange]) -> ReportTable:
    notes: dict[str, list[str]] = {}
    for change in changes:
        if change.note:
            notes.setdefault(change.note, []).append(f"{change.target} {change.label}")
    return ReportTable(
        name=config,
        row_names=("Competitor", "Metric"),
        answer=_answer(changes),
        columns=_COLUMNS,
        rows=tuple(Row((change.target, change.label), tuple(_cells(change))) for change in changes),
        notes=tuple(f"{', '.join(who)}: {note}" for note, who in notes.items()),
    )


def _answer(changes: Sequence[NumberChange]) -> str:
    """What is worse and what is better, in one sentence."""
    named = {
        word: ", ".join(f"{one.target} {one.label}" for one in changes if one.verdict == word)
        for word in ("worse", "better")
    }
    said = "; ".join(f"{word}: {names}" for word, names in named.items() if names)
    return f"{said[0].upper()}{said[1:]}." if said else "Nothing was found to be better or worse."


def _cells(change: NumberChange) -> Iterable[TableCell]:
    versions = list(dict.fromkeys(v or MISSING for v in (change.version_before, change.version_after)))
    yield _text(" → ".join(versions))
    shown = [MISSING if value is None else number(value, 5) for value in (change.before, change.after)]
    if change.before is not None and change.after is not None and change.before != change.after:
        shown = list(level_texts(change.before, change.after))
    yield _text(shown[0], change.before)
    yield _text(shown[1], change.after)
    yield _text(percent_text(change.percent), change.percent)
    bounds = MISSING
    if change.low_percent is not None and change.high_percent is not None:
        bounds = f"{percent_text(change.low_percent)} to {percent_text(change.high_percent)}"
    elif change.low is not None and change.high is not None:
        bounds = f"{number(change.low)} to {number(change.high)}"
    yield _text(bounds, change.low)
    yield _text(change.verdict)
    yield _text(change.how)


def _text(shown: str, value: float | None = None) -> TableCell:
    return TableCell(mean=value, std=None, n=0, text=shown)
