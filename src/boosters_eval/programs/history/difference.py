"""Two runs of the history, number by number: `history diff`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.terms import the
from boosters_eval.core.text import clean, format_share
from boosters_eval.metrics import label
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.history import query
from boosters_eval.programs.history.compare import ALPHA, HistoryComparison, compare_series, read_rows
from boosters_eval.programs.history.model import NOT_COMPARABLE
from boosters_eval.reports.document import Document, Fact, Listing, Notes, Results, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.numbers import MISSING, number, percent_change, tell_apart
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from boosters_eval.programs.history.compare import RowsOf
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


class RunDifference(ReportedFindings, Model):
    """The later run against the earlier one."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval history difference"] = "boosters-eval history difference"
    before: ComparedRun
    after: ComparedRun
    changes: tuple[NumberChange, ...]
    notes: tuple[str, ...] = ()

    def document(self) -> Document:
        """Both runs, and a table per benchmark; the later run is judged against the earlier one, so it is first."""
        by_config: dict[str, list[NumberChange]] = {}
        for change in self.changes:
            by_config.setdefault(change.config, []).append(change)
        verdicts = [change.verdict for change in self.changes]
        sides = f"Before: {_tell_run(self.before)}", f"After: {_tell_run(self.after)}"
        return Document(
            f"{self.after.run} against {self.before.run}",
            lead=f"{sides[0]}. {sides[1]}.",
            facts=tuple(
                Fact(word.capitalize(), str(verdicts.count(word)), alarm=word == "worse" and word in verdicts)
                for word in ("better", "worse", "equivalent", "identical", "inconclusive", NOT_COMPARABLE)
            ),
            sections=(
                Section("runs", "", (Listing.of(*sides),), only="text"),
                Section("results", "", tuple(Results(_tabulate(*one)) for one in by_config.items()), short="Results"),
                Section("notes", "Notes", (Notes(self.notes),) if self.notes else ()),
            ),
        )

    def to_model(self) -> Model:
        return self


def diff_runs(request: DiffRunsRequest) -> RunDifference:
    metrics = query.resolve_metrics(request.metrics)
    return compare_runs(request.before, request.after, metrics=metrics, home=request.home)


def compare_runs(before: str, after: str, *, metrics: Sequence[str] = (), home: Path | None = None) -> RunDifference:
    """Compare the second run with the first, each by its id, the beginning of its id, its name, or `last`."""
    entries = query.find_run(before, home, "before"), query.find_run(after, home, "after")
    (first, lost_first), (second, lost_second) = (query.read_run(entry, home) for entry in entries)
    rows = read_rows(entries[0], home), read_rows(entries[1], home)
    sides = (entries[0], first), (entries[1], second)
    return compare_entries(*sides, metrics, failed=(lost_first, lost_second), rows=rows)


def compare_entries(
    before: tuple[RunEntry, Sequence[MetricSeries]],
    after: tuple[RunEntry, Sequence[MetricSeries]],
    metrics: Sequence[str] = (),
    *,
    failed: tuple[_Failures, _Failures] = ({}, {}),
    rows: tuple[RowsOf, RowsOf] | None = None,
) -> RunDifference:
    """Tell what changed from one run to the other; `metrics` chooses, by default all scores and the usual resources.

    `failed` tells of each run what has no number because all its cells failed.
    """
    first, second = (
        {(one.config, one.target, one.metric): one for one in series if _is_wanted(one.metric, metrics)}
        for _, series in (before, after)
    )
    sides = (
        {**_without_a_number(before[0], failed[0], second), **first},
        {**_without_a_number(after[0], failed[1], first), **second},
    )
    keys = list(dict.fromkeys([*second, *first]))
    if not {key[0] for key in sides[0]} & {key[0] for key in sides[1]}:
        raise ConfigError(_explain_nothing_shared((before, after), failed, metrics))
    levels = _share_alpha(sides, keys)
    changes = [_compare_number(sides[0].get(key), sides[1].get(key), levels[key], rows) for key in keys]
    order = {config: position for position, config in enumerate(dict.fromkeys(key[0] for key in keys))}
    return RunDifference(
        before=_describe(before[0]),
        after=_describe(after[0]),
        changes=tuple(sorted(changes, key=lambda one: order[one.config])),
        notes=tuple(_make_notes(before[0], after[0])),
    )


def _explain_nothing_shared(
    sides: Sequence[tuple[RunEntry, Sequence[MetricSeries]]],
    failed: tuple[_Failures, _Failures],
    metrics: Sequence[str],
) -> str:
    first, second = (f"'{entry.reference}'" for entry, _ in sides)
    if failed[0].keys() & failed[1].keys():
        return f"Neither {first} nor {second} has a number: all cells failed."
    known = [{(one.config, one.metric) for one in series} for _, series in sides]
    if metrics and {config for config, _ in known[0]} & {config for config, _ in known[1]}:
        names = sorted({metric for _, metric in known[0] & known[1]})
        return f"{the('metrics')} must name what both runs measured: {', '.join(names)}. Got '{' '.join(metrics)}'."
    for entry, _ in sides:
        if entry.state == "unreadable":
            return f"The run '{entry.reference}' cannot be compared, because it cannot be read: {entry.fault}."
    if others := query.explain_kinds(entry for entry, _ in sides):
        return f"The runs {first} and {second} cannot be compared: {others}"
    return f"The runs {first} and {second} share no benchmark."


def _without_a_number(
    entry: RunEntry, failed: _Failures, other: Mapping[_Key, MetricSeries]
) -> dict[_Key, MetricSeries]:
    """What a run would have told, had not every cell failed, as far as the other run tells it."""
    lost: dict[str, Any] = {"entry": entry, "observations": ()}
    return {
        key: replace(one, **lost, version=entry.versions.get(one.target, ""), failed=failed[one.config, one.target])
        for key, one in other.items()
        if (one.config, one.target) in failed
    }


def _is_wanted(metric: str, metrics: Sequence[str]) -> bool:
    if metrics:
        return metric in metrics or metric.partition("@")[0] in metrics
    return is_usual(metric)


def _share_alpha(sides: Sequence[dict[_Key, MetricSeries]], keys: Iterable[_Key]) -> dict[_Key, float]:
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


def _make_notes(before: RunEntry, after: RunEntry) -> Iterable[str]:
    if after.key == before.key:
        yield "Both are the same run."
    if after.started_at < before.started_at:
        yield "The second run is older than the first."
    for which, entry in (("first", before), ("second", after)):
        if entry.failed or entry.missing:
            parts = [f"{n} {word}" for n, word in ((entry.failed, "failed"), (entry.missing, "missing")) if n]
            yield f"Cells of the {which} run without a result: {', '.join(parts)}."
    yield (
        f"Per benchmark, the chance of a false alarm is at most {format_share(ALPHA)} on the primary metric, and"
        f" at most {format_share(_OTHERS * ALPHA)} on all other numbers together."
    )


def _describe(entry: RunEntry) -> ComparedRun:
    same = {name: getattr(entry, name) for name in ("started_at", "machine", "machine_label", "failed")}
    return ComparedRun(run=entry.reference, commit=entry.commit, **same)


def _compare_number(
    before: MetricSeries | None, after: MetricSeries | None, alpha: float, rows: tuple[RowsOf, RowsOf] | None
) -> NumberChange:
    known = cast("MetricSeries", after or before)
    if before and after:
        found = compare_series(before, after, alpha=alpha, rows=rows)
    else:
        found = HistoryComparison(
            NOT_COMPARABLE,
            f"only in the {'first' if before else 'second'} run",
            before=before.mean if before else None,
            after=after.mean if after else None,
            alpha=alpha,
        )
    told = asdict(found)
    told["low"], told["high"] = told.pop("interval") or (None, None)
    told["low_percent"], told["high_percent"] = told.pop("percent_interval") or (None, None)
    unfit = {name: None for name, value in told.items() if isinstance(value, float) and not math.isfinite(value)}
    return NumberChange(
        config=known.config,
        target=known.target,
        metric=known.metric,
        label=label_metric(known.metric),
        primary=known.primary,
        version_before=before and clean(before.version),
        version_after=after and clean(after.version),
        **{**told, **unfit},
    )


@cache
def _measures() -> dict[str, str]:
    """The resources that tables have a column for, with their labels."""
    from boosters_eval.programs.benchmark.tables.build import MEASURES  # noqa: PLC0415 (for a report only)

    return {column.name: column.label for column in MEASURES}


def is_usual(metric: str) -> bool:
    """Whether a metric is shown without being asked for: all but the resources that no table has a column for."""
    return metric not in RESOURCES or metric in _measures()


def label_metric(name: str) -> str:
    """A metric or a measurement as a person reads it."""
    others = {"build_time_s": "Build time (s)", "fit_time_s": "Fit time (s)", "cpu_time_s": "CPU time (s)"}
    return _measures().get(name) or others.get(name) or clean(label(name))


def _tell_run(run: ComparedRun) -> str:
    """A run in a few words."""
    commit = f", commit {run.commit}" if run.commit else ""
    when = run.started_at[:16].replace("T", " ")
    machine = " ".join(filter(None, [run.machine_label, run.machine[:6]]))
    return f"run {run.run} of {when}{commit} on {machine or 'an unknown machine'}"


_COLUMNS = tuple(
    Column(label.lower(), label, None)
    for label in ("Version", "Before", "After", "Change", "Interval", "Verdict", "How")
)


def _tabulate(config: str, changes: Sequence[NumberChange]) -> ReportTable:
    notes: dict[str, list[str]] = {}
    for change in changes:
        if change.note and not _says_how(change):
            notes.setdefault(change.note, []).append(f"{change.target} {change.label}")
    return ReportTable(
        name=config,
        row_names=("Competitor", "Metric"),
        answer=(_answer(changes),),
        columns=_COLUMNS,
        rows=tuple(Row((change.target, change.label), tuple(_cells(change))) for change in changes),
        notes=tuple(f"{', '.join(who)}: {note}" for note, who in notes.items()),
    )


def _answer(changes: Sequence[NumberChange]) -> str:
    """What is worse and what is better, or that nothing is, in one sentence; silence is no agreement."""
    compared = [one for one in changes if one.verdict not in (NOT_COMPARABLE, "")]
    if not compared:
        reasons = dict.fromkeys(one.how or one.note for one in changes if one.how or one.note)
        return f"Nothing could be compared: {next(iter(reasons), 'one of the runs has no number').rstrip('.')}."
    named = {
        word: ", ".join(f"{one.target} {one.label}" for one in changes if one.verdict == word)
        for word in ("worse", "better")
    }
    said = [f"{word.capitalize()}: {names}." for word, names in named.items() if names]
    scores = [one for one in compared if one.metric not in RESOURCES]
    whole = all(one.verdict == "identical" for one in compared)
    what, same = ("number", compared) if whole else ("score", scores)
    if same and all(one.verdict == "identical" for one in same):
        said.append(f"All {len(same)} {what}s are identical." if len(same) > 1 else f"The {what} is identical.")
    if not whole and not any(named.values()):
        other = "other " if said else ""
        said.append(f"No {other}number is clearly better or worse, of {len(compared)} that could be compared.")
    return " ".join(said)


def _cells(change: NumberChange) -> Iterable[TableCell]:
    versions = list(dict.fromkeys(v or MISSING for v in (change.version_before, change.version_after)))
    yield _cell(" → ".join(versions))
    shown = [MISSING if value is None else number(value, 5) for value in (change.before, change.after)]
    if change.before is not None and change.after is not None and change.before != change.after:
        shown = list(tell_apart(change.before, change.after))
    yield _cell(shown[0], change.before)
    yield _cell(shown[1], change.after)
    yield _cell(percent_change(change.percent), change.percent)
    bounds = MISSING
    if change.low_percent is not None and change.high_percent is not None:
        bounds = f"{percent_change(change.low_percent)} to {percent_change(change.high_percent)}"
    elif change.low is not None and change.high is not None:
        bounds = f"{number(change.low)} to {number(change.high)}"
    yield _cell(bounds, change.low)
    yield _cell(change.verdict)
    yield _cell(f"{change.note[:1].lower()}{change.note[1:]}".rstrip(".") if _says_how(change) else change.how)


def _says_how(change: NumberChange) -> bool:
    """Whether the note tells how two numbers are identical: in their predictions, or only in their scores."""
    return change.verdict == "identical" and change.note.startswith("Identical")


def _cell(shown: str, value: float | None = None) -> TableCell:
    return TableCell(mean=value, std=None, n=0, text=shown)
