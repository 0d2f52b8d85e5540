"""The history laid out: the list of runs, one run, and every series of runs with what changed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, group_digits
from boosters_eval.engine.plain import describe_cells, describe_kind, format_local_time
from boosters_eval.programs.history.chart import draw_line, list_values
from boosters_eval.reports import document as doc
from boosters_eval.reports.html.svg import holdable
from boosters_eval.reports.numbers import MISSING, number, p_value, percent_change, tell_apart
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.history.model import Change, HistoryListing, HistoryRun, RunEntry
    from boosters_eval.programs.history.report import HistoryLine, HistoryPoint, HistoryReport, HistoryStep

    _Found = tuple[HistoryLine, HistoryStep]

_ORDER = (
    "worse",
    "failed",
    "better",
    "equivalent",
    "identical",
    "inconclusive",
    "not comparable",
    "first",
)  # of verdicts
_SHOWN_AT_ONCE = ("train_time_s",)  # besides the primary metric; the charts of the others are folded
_MOST_ROWS = 50  # runs in the table of a line; the JSON has all
_MOST_STEPS = 1000  # in the table of steps
_COLUMNS = tuple(
    Column(label.lower().replace(" ", "_"), label, None)
    for label in ("Runs", "First", "Latest", "Version", "Latest change")
)


def lay_out_listing(found: HistoryListing) -> doc.Document:
    headings = ("run", "started", "suite", "commit", "versions", "machine", "cells", "against the run before")
    table = doc.PlainTable("Runs", headings, tuple(map(_summarize_run, found.runs)))
    runs = doc.Section("runs", "", (table,) if found.runs else (), search="Filter runs")
    return doc.Document("History", sections=(runs, _note(found.remarks)))


def _note(remarks: Sequence[str]) -> doc.Section:
    """What a terminal says behind "Note:"."""
    texts = tuple(f"{remark[0].upper()}{remark[1:]}" for remark in remarks)
    return doc.Section("notes", "Notes", (doc.Notes(texts),) if texts else ())


def lay_out_run(run: HistoryRun) -> doc.Document:
    entry = run.entry
    facts = {
        "run": entry.reference,
        "name": entry.name,
        "kind": describe_kind(entry.kind, entry.title),
        "data": run.data,
        "state": entry.state + (f": {entry.fault}" if entry.fault else ""),
        "started": format_local_time(entry.started_at),
        "cells": describe_cells(entry),
        "versions": _list_versions(entry),
        "commit": " on ".join(filter(None, [_mark_dirty(entry), entry.git_branch if entry.git_sha else ""])),
        "machine": " ".join(filter(None, [entry.machine_label, f"({entry.machine})" if entry.machine else ""])),
        "grown": "a later run added seeds to it" if entry.superseded else "",
        "extends": entry.extends,
        "imported" if entry.origin == "import" else "folder": entry.source,
    }
    headings = ("benchmark", "competitor", "metric", "mean", "splits", "before", "verdict")
    numbers = doc.PlainTable("Numbers", headings, tuple(map(_tell_change, run.changes)), keys=2)
    return doc.Document(
        f"Run {entry.reference}",
        sections=(
            doc.Section("run", "", (doc.PlainTable.of_facts("Run", facts),)),
            doc.Section("numbers", "", (numbers,) if run.changes else ()),
            _note(run.remarks),
        ),
    )


def _summarize_run(run: HistoryRun) -> tuple[doc.PlainCell, ...]:
    entry = run.entry
    return (
        entry.reference + (f" ({entry.name})" if entry.name else ""),
        format_local_time(entry.started_at),
        entry.title if entry.kind in ("benchmark", "", entry.title) else f"{entry.kind}: {entry.title}",
        _mark_dirty(entry) or "-",
        _list_versions(entry) or "-",
        " ".join(filter(None, [entry.machine_label, entry.machine[:6]])) or "-",
        describe_cells(entry),
        _sum_up(run),
    )


def _sum_up(run: HistoryRun) -> str:
    """What changed, in a few words, the worst first; a single one that is worse, better or failed is named."""
    if run.entry.superseded:
        return "continued by a later run"
    found: dict[str, list[Change]] = {}
    for change in run.changes:
        if change.verdict:
            found.setdefault(change.verdict, []).append(change)
    if set(found) <= {"first"}:
        return "no run before" if found else "-"
    parts = []
    for verdict in sorted(found, key=_ORDER.index):
        first = found[verdict][0]
        alone = len(found[verdict]) == 1 and verdict in ("worse", "failed", "better")
        where = " ".join(filter(None, [first.target, first.metric, "on", first.config]))
        parts.append(f"{len(found[verdict])} {verdict}{f' ({where})' if alone else ''}")
    return ", ".join(parts)


def _tell_change(change: Change) -> tuple[doc.PlainCell, ...]:
    failed = f" ({change.failed} failed)" if change.failed else ""
    before = change.before_mean
    return (
        change.config,
        " ".join(filter(None, [change.target, change.version])),
        change.metric or "-",
        "-" if change.mean is None else doc.MarkedCell(f"{change.mean:.6g}", value=change.mean),
        doc.MarkedCell(f"{change.n}{failed}", value=change.n),
        "-" if before is None else doc.MarkedCell(f"{before:.6g}", value=before),
        doc.MarkedCell(change.verdict or "-", change.verdict),
    )


def _mark_dirty(entry: RunEntry) -> str:
    return entry.git_sha + ("*" if entry.git_dirty else "") if entry.git_sha else ""


def _list_versions(entry: RunEntry) -> str:
    return ", ".join(f"{name} {version}".rstrip() for name, version in entry.versions.items())


def lay_out_report(report: HistoryReport) -> doc.Document:
    """What changed first, then every series with its chart and its runs; in text, where every series stands."""
    found = [(one, step) for one in report.lines for step in one.steps]
    found.sort(key=lambda pair: pair[1].started_at, reverse=True)
    dates = sorted(point.started_at[:10] for one in report.lines for point in (one.points[0], one.points[-1]))
    span = f" From {dates[0]} to {dates[-1]}." if len(set(dates)) > 1 else f" On {dates[0]}." if dates else ""
    lead = f"What {count_of(report.n_runs, 'run')} measured.{span}"
    by_config: dict[str, list[HistoryLine]] = {}
    for one in report.lines:
        by_config.setdefault(one.config, []).append(one)
    colors = {name: index for index, name in enumerate(dict.fromkeys(one.target for one in report.lines))}
    cards = tuple(doc.Group(config, tuple(_make_cards(members, colors))) for config, members in by_config.items())
    return doc.Document(
        "History",
        answer=tuple(_answer(report, found)),
        lead=lead,
        facts=_list_facts(report),
        sections=(
            doc.Section("lead", "", (doc.Paragraph(lead),), only="text"),
            doc.Section(
                "steps", "Changes", tuple(_lay_out_steps(found)), search="Filter changes" if len(found) > 1 else ""
            ),
            doc.Section("lines", "Series", cards, search="Filter series", only="page"),
            doc.Section("ends", "", tuple(_tabulate(*one) for one in by_config.items()), only="text"),
            doc.Section("notes", "Notes", (doc.Notes(report.notes),)),
        ),
    )


def _answer(report: HistoryReport, found: Sequence[_Found]) -> Iterator[str]:
    """How many series changed and which one last, or that none did, or none could be detected."""
    from boosters_eval.stats.changepoints import fewest_for_any_step  # noqa: PLC0415 (loads scipy)

    series = f"{group_digits(len(report.lines))} series"
    if found:
        latest, step = found[0]
        worse = sum(step.verdict == "worse" for _, step in found)
        changed = sum(bool(one.steps) for one in report.lines)
        yield f"{count_of(len(found), 'change')} in {changed} of {series}, {worse or 'none'} for the worse."
        yield (
            f"The latest: {latest.target} {latest.label} on {latest.config} is {step.verdict} since {step.name},"
            f" {step.levels}."
        )
        return
    least = fewest_for_any_step(alpha=report.alpha)
    longest = max((one.n_searched for one in report.lines), default=0)
    if longest < least:
        runs = f"{least} comparable runs, and there are {longest} at most" if longest else f"{least} comparable runs"
        yield f"No change can be detected yet: that takes {runs}."
        return
    few = sum(one.n_searched < least for one in report.lines)
    rest = f" In {few} of them none can be yet: that takes {least} comparable runs." if few else ""
    yield f"No change was detected in {series}.{rest}"


def _list_facts(report: HistoryReport) -> tuple[doc.Fact, ...]:
    steps = [step for one in report.lines for step in one.steps]
    lost = len({(failure.run, failure.started_at) for failure in report.failures})
    worse = sum(step.verdict == "worse" for step in steps)
    return (
        doc.Fact("Runs", group_digits(report.n_runs)),
        doc.Fact("Series", group_digits(len(report.lines))),
        doc.Fact("Changes", group_digits(len(steps))),
        doc.Fact("For the worse", group_digits(worse), alarm=worse > 0),
        *([doc.Fact("All cells failed", count_of(lost, "run"), alarm=True)] if lost else []),
        doc.Fact("Machines", group_digits(len({one.machine for one in report.lines}))),
    )


def _lay_out_steps(found: Sequence[_Found]) -> Iterator[doc.Block]:
    if found:
        headings = (
            "Since", "Date", "Benchmark", "Competitor", "Metric", "Change", "Before", "After", "%", "Runs", "p",
            "Version", "Machine",
        )  # fmt: skip
        yield doc.PlainTable(
            "Changes", headings, tuple(_tell_step(*pair) for pair in found[:_MOST_STEPS]), measured=True
        )
    if len(found) > _MOST_STEPS:
        hidden = group_digits(len(found) - _MOST_STEPS)
        yield doc.Paragraph(f"The latest {_MOST_STEPS}; {hidden} earlier ones are in the JSON.")


def _tell_step(one: HistoryLine, step: HistoryStep) -> tuple[doc.PlainCell, ...]:
    before, after = tell_apart(step.before, step.after)
    versions = dict.fromkeys((step.version_before, step.version_after))
    return (
        *(step.name, step.started_at[:10], one.config, one.target, one.label),
        doc.MarkedCell(step.verdict, step.verdict),
        doc.MarkedCell(before, value=step.before),
        doc.MarkedCell(after, value=step.after),
        doc.MarkedCell(percent_change(step.percent), value=step.percent),
        doc.MarkedCell(f"{step.n_before} + {step.n_after}", value=step.n_before + step.n_after),
        doc.MarkedCell(p_value(step.p_value), value=step.p_value),
        " → ".join(versions),
        one.machine_label,
    )


def _tabulate(config: str, lines: Sequence[HistoryLine]) -> doc.Results:
    """Where every series of a benchmark stands, with what is to be said of it."""
    rows = []
    for one in lines:
        known = [point.value for point in one.points if point.value is not None]
        ends = [(number(known[at], 5), known[at]) if known else (MISSING, None) for at in (0, -1)]
        count, version = len(one.points) + one.hidden, one.points[-1].version
        step = one.steps[-1] if one.steps else None
        latest = f"{step.verdict} since {step.name}: {step.levels}" if step else MISSING
        told = ((group_digits(count), count), *ends, (version, None), (latest, None))
        name = f"{one.label} ({one.variant})" if one.variant else one.label
        cells = tuple(TableCell(value, None, 0, shown) for shown, value in told)
        rows.append(Row((one.target, name, one.machine_label), cells))
    said: dict[str, dict[str, None]] = {}
    for one in lines:
        for note in one.notes:
            said.setdefault(note, {})[f"{one.target} {one.label}"] = None
    notes = (f"{', '.join(who)}: {note}" for note, who in said.items())
    names = ("Competitor", "Metric", "Machine")
    return doc.Results(ReportTable(config, names, _COLUMNS, tuple(rows), notes=tuple(notes)))


def _make_cards(lines: Sequence[HistoryLine], colors: dict[str, int]) -> Iterator[doc.Card]:
    """A card per competitor, machine and variant: the charts, what is to be said of them, and the runs."""
    cards: dict[tuple[str, str, str], list[HistoryLine]] = {}
    for one in lines:
        cards.setdefault((one.target, one.machine, one.variant), []).append(one)
    for members in cards.values():
        first = members[0]
        shown = [one for one in members if one.primary or one.metric in _SHOWN_AT_ONCE or one.steps] or members[:1]
        others = [one for one in members if one not in shown]
        series = colors[first.target]
        blocks: list[doc.Block] = [_draw(shown, series)]
        if others:
            blocks.append(doc.Details(count_of(len(others), "further metric"), (_draw(others, series),)))
        if notes := _gather_notes(members):
            blocks.append(doc.Notes(notes))
        yield doc.Card(
            first.target,
            (*blocks, _fold_runs(members)),
            aside="; ".join(filter(None, [f"on {first.machine_label or 'an unknown machine'}", first.variant])),
            words=" ".join([first.config, first.dataset, first.library, *(one.label for one in members)]),
        )


def _draw(lines: Sequence[HistoryLine], series: int) -> doc.Charts:
    return doc.Charts(lambda: [figure for one in lines if (figure := draw_line(one, series))])


def _gather_notes(lines: Sequence[HistoryLine]) -> tuple[str, ...]:
    """The notes of the lines; one that all of them have is said once."""
    said: dict[str, list[str]] = {}
    for one in lines:
        undrawn = () if holdable(list_values(one)) else ("No finite value to draw.",)
        for note in (*one.notes, *undrawn):
            said.setdefault(note, []).append(one.label)
    return tuple(note if len(who) == len(lines) else f"{', '.join(who)}: {note}" for note, who in said.items())


def _fold_runs(lines: Sequence[HistoryLine]) -> doc.Details:
    """The numbers behind the charts: one table per card, the latest run first."""
    rows: dict[str, tuple[HistoryPoint, dict[int, HistoryPoint]]] = {}
    for position, one in enumerate(lines):
        for point in one.points[-_MOST_ROWS:]:
            rows.setdefault(point.run + point.started_at, (point, {}))[1][position] = point
    latest = sorted(rows.values(), key=lambda row: row[0].started_at, reverse=True)[:_MOST_ROWS]
    cells = tuple(
        (
            *(point.commit or MISSING, point.started_at[:16].replace("T", " "), point.version),
            *(_tell_value(found.get(position)) for position in range(len(lines))),
            point.run,
        )
        for point, found in latest
    )
    total = max(len(one.points) + one.hidden for one in lines)
    what = f"The latest {len(latest)} of {group_digits(total)} runs" if total > len(latest) else count_of(total, "run")
    first = lines[0]
    name = ", ".join(filter(None, [f"Runs of {first.target} on {first.config}", first.machine_label, first.variant]))
    headings = ("Commit", "Date", "Version", *(one.label for one in lines), "Run")
    return doc.Details(what, (doc.PlainTable(name, headings, cells, measured=True),))


def _tell_value(point: HistoryPoint | None) -> doc.PlainCell:
    if point is None:
        return None
    failed = f" ({point.failed} failed)" if point.failed else ""
    return doc.MarkedCell(
        f"{'not finite' if point.value is None else number(point.value, 5)}{failed}", value=point.value
    )
