"""The history laid out: the list of runs, one run, and every line of runs with its steps and its chart."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, group_digits
from boosters_eval.engine.plain import describe_cells, describe_kind, format_local_time
from boosters_eval.reports.document import (
    Card,
    Charts,
    Details,
    Document,
    Fact,
    Group,
    MarkedCell,
    Notes,
    Paragraph,
    PlainTable,
    Results,
    Section,
)
from boosters_eval.reports.html.markup import text
from boosters_eval.reports.html.svg import (
    RIGHT,
    WIDTH,
    Figure,
    Scale,
    color,
    fit,
    holdable,
    label,
    line,
    px,
    short,
    text_width,
    verdict_mark,
    y_axis,
    y_room,
)
from boosters_eval.reports.numbers import MISSING, number, p_value, percent_change, tell_apart
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.history.model import Change, HistoryListing, HistoryRun, RunEntry
    from boosters_eval.programs.history.report import HistoryLine, HistoryPoint, HistoryReport, HistoryStep
    from boosters_eval.reports.document import Block, PlainCell

    _Found = tuple[HistoryLine, HistoryStep]

_ORDER = ("worse", "failed", "better", "equivalent", "inconclusive", "not comparable", "first")  # of verdicts
_SHOWN_AT_ONCE = ("train_time_s",)  # besides the primary metric; the charts of the others are folded
_MOST_ROWS = 50  # runs in the table of a line; the JSON has all
_MOST_STEPS = 1000  # in the table of steps
_COLUMNS = tuple(
    Column(label.lower().replace(" ", "_"), label, None)
    for label in ("Runs", "First", "Latest", "Version", "Latest step")
)
_PLOT = 118  # the height of the plot
_MARKS = 14  # the height of a row of marks above it
_TICK = 10.5
_GAP = 6.0  # between two labels of runs
_ROOM = 2.0  # spans of the values that intervals may take on either side of them
_FEW = 60  # runs that are drawn one by one; more of them are a trace with a band
_VERSION = 14  # characters of a version


def lay_out_listing(found: HistoryListing) -> Document:
    headings = ("run", "started", "suite", "commit", "versions", "machine", "cells", "against the run before")
    table = PlainTable("Runs", headings, tuple(map(_summarize_run, found.runs)))
    runs = Section("runs", "Runs", (table,) if found.runs else (), search="Filter runs")
    return Document("History", sections=(runs, _note(found.remark)))


def _note(remark: str) -> Section:
    """What a terminal says behind "Note:"."""
    return Section("notes", "Notes", (Notes((remark[0].upper() + remark[1:],)),) if remark else ())


def lay_out_run(run: HistoryRun) -> Document:
    entry = run.entry
    facts = {
        "run": f"{entry.run_id}, attempt {entry.attempt}",
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
    known = tuple((name, value) for name, value in facts.items() if value)
    headings = ("benchmark", "competitor", "metric", "mean", "n", "before", "verdict")
    numbers = PlainTable("Numbers", headings, tuple(map(_tell_change, run.changes)), keys=2)
    return Document(
        f"Run {entry.reference}",
        sections=(
            Section("run", "Run", (PlainTable("Run", ("Property", "Value"), known),)),
            Section("numbers", "Numbers", (numbers,) if run.changes else ()),
            _note(run.remark),
        ),
    )


def _summarize_run(run: HistoryRun) -> tuple[PlainCell, ...]:
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
        return "first" if found else "-"
    parts = []
    for verdict in sorted(found, key=_ORDER.index):
        first = found[verdict][0]
        alone = len(found[verdict]) == 1 and verdict in ("worse", "failed", "better")
        where = " ".join(filter(None, [first.target, first.metric, "on", first.config]))
        parts.append(f"{len(found[verdict])} {verdict}{f' ({where})' if alone else ''}")
    return ", ".join(parts)


def _tell_change(change: Change) -> tuple[PlainCell, ...]:
    failed = f" ({change.failed} failed)" if change.failed else ""
    before = change.before_mean
    return (
        change.config,
        " ".join(filter(None, [change.target, change.version])),
        change.metric or "-",
        "-" if change.mean is None else MarkedCell(f"{change.mean:.6g}", value=change.mean),
        MarkedCell(f"{change.n}{failed}", value=change.n),
        "-" if before is None else MarkedCell(f"{before:.6g}", value=before),
        MarkedCell(change.verdict or "-", change.verdict),
    )


def _mark_dirty(entry: RunEntry) -> str:
    return entry.git_sha + ("*" if entry.git_dirty else "") if entry.git_sha else ""


def _list_versions(entry: RunEntry) -> str:
    return ", ".join(f"{name} {version}".rstrip() for name, version in entry.versions.items())


def lay_out_report(report: HistoryReport) -> Document:
    """What changed first, then every line with its chart and its runs; in text, where every line stands."""
    found = [(one, step) for one in report.lines for step in one.steps]
    found.sort(key=lambda pair: pair[1].started_at, reverse=True)
    dates = sorted(point.started_at[:10] for one in report.lines for point in (one.points[0], one.points[-1]))
    span = f" From {dates[0]} to {dates[-1]}." if len(set(dates)) > 1 else f" On {dates[0]}." if dates else ""
    lead = f"What {count_of(report.n_runs, 'run')} measured.{span}"
    by_config: dict[str, list[HistoryLine]] = {}
    for one in report.lines:
        by_config.setdefault(one.config, []).append(one)
    colors = {name: index for index, name in enumerate(dict.fromkeys(one.target for one in report.lines))}
    cards = tuple(Group(config, tuple(_make_cards(members, colors))) for config, members in by_config.items())
    return Document(
        "History",
        answer=tuple(_answer(report, found)),
        lead=lead,
        facts=_list_facts(report),
        sections=(
            Section("lead", "", (Paragraph(lead),), only="text"),
            Section("steps", "Steps", tuple(_lay_out_steps(found)), search="Filter steps" if len(found) > 1 else ""),
            Section("lines", "Lines", cards, search="Filter lines", only="page"),
            Section("ends", "", tuple(_tabulate(*one) for one in by_config.items()), only="text"),
            Section("notes", "Notes", (Notes(report.notes),)),
        ),
    )


def _answer(report: HistoryReport, found: Sequence[_Found]) -> Iterator[str]:
    """How many lines changed and which one last, or why there is no step: none was found, or none could be."""
    from boosters_eval.stats.changepoints import fewest_for_any_step  # noqa: PLC0415 (loads scipy)

    lines = count_of(len(report.lines), "line")
    if found:
        latest, step = found[0]
        worse = sum(step.verdict == "worse" for _, step in found)
        changed = sum(bool(one.steps) for one in report.lines)
        yield f"{count_of(len(found), 'step')} in {changed} of {lines}, {worse or 'none'} for the worse."
        yield (
            f"The latest: {latest.target} {latest.label} on {latest.config} is {step.verdict} since {step.name},"
            f" {_tell_levels(step)}."
        )
        return
    least = fewest_for_any_step(alpha=report.alpha)
    longest = max((one.n_searched for one in report.lines), default=0)
    if longest < least:
        yield f"Nothing could be found yet: a step takes {least} comparable runs, and no line has more than {longest}."
        return
    few = sum(one.n_searched < least for one in report.lines)
    rest = f" {count_of(few, 'line')} with fewer than {least} comparable runs could not have any." if few else ""
    yield f"No step was found in any line.{rest}"


def _list_facts(report: HistoryReport) -> tuple[Fact, ...]:
    steps = [step for one in report.lines for step in one.steps]
    lost = len({(failure.run, failure.started_at) for failure in report.failures})
    worse = sum(step.verdict == "worse" for step in steps)
    return (
        Fact("Runs", group_digits(report.n_runs)),
        Fact("Lines", group_digits(len(report.lines))),
        Fact("Steps", group_digits(len(steps))),
        Fact("For the worse", group_digits(worse), alarm=worse > 0),
        *([Fact("All cells failed", count_of(lost, "run"), alarm=True)] if lost else []),
        Fact("Machines", group_digits(len({one.machine for one in report.lines}))),
    )


def _lay_out_steps(found: Sequence[_Found]) -> Iterator[Block]:
    if found:
        headings = (
            "Since", "Date", "Benchmark", "Competitor", "Metric", "Change", "Before", "After", "%", "Runs", "p",
            "Version", "Machine",
        )  # fmt: skip
        yield PlainTable("Steps", headings, tuple(_tell_step(*pair) for pair in found[:_MOST_STEPS]), measured=True)
    if len(found) > _MOST_STEPS:
        hidden = group_digits(len(found) - _MOST_STEPS)
        yield Paragraph(f"The latest {_MOST_STEPS}; {hidden} earlier ones are in the JSON.")


def _tell_step(one: HistoryLine, step: HistoryStep) -> tuple[PlainCell, ...]:
    before, after = tell_apart(step.before, step.after)
    versions = dict.fromkeys((step.version_before, step.version_after))
    return (
        *(step.name, step.started_at[:10], one.config, one.target, one.label),
        MarkedCell(step.verdict, step.verdict),
        MarkedCell(before, value=step.before),
        MarkedCell(after, value=step.after),
        MarkedCell(percent_change(step.percent), value=step.percent),
        MarkedCell(f"{step.n_before} + {step.n_after}", value=step.n_before + step.n_after),
        MarkedCell(p_value(step.p_value), value=step.p_value),
        " → ".join(versions),
        one.machine_label,
    )


def _tabulate(config: str, lines: Sequence[HistoryLine]) -> Results:
    """Where every line of a benchmark stands, with what is to be said of it."""
    rows = []
    for one in lines:
        known = [point.value for point in one.points if point.value is not None]
        ends = [(number(known[at], 5), known[at]) if known else (MISSING, None) for at in (0, -1)]
        count, version = len(one.points) + one.hidden, one.points[-1].version
        step = one.steps[-1] if one.steps else None
        latest = f"{step.verdict} since {step.name}: {_tell_levels(step)}" if step else MISSING
        told = ((group_digits(count), count), *ends, (version, None), (latest, None))
        name = f"{one.label} ({one.variant})" if one.variant else one.label
        cells = tuple(TableCell(value, None, 0, shown) for shown, value in told)
        rows.append(Row((one.target, name, one.machine_label), cells))
    notes = dict.fromkeys(f"{one.target} {one.label}: {note}" for one in lines for note in one.notes)
    names = ("Competitor", "Metric", "Machine")
    return Results(ReportTable(config, names, _COLUMNS, tuple(rows), notes=tuple(notes)))


def _make_cards(lines: Sequence[HistoryLine], colors: dict[str, int]) -> Iterator[Card]:
    """A card per competitor, machine and variant: the charts, what is to be said of them, and the runs."""
    cards: dict[tuple[str, str, str], list[HistoryLine]] = {}
    for one in lines:
        cards.setdefault((one.target, one.machine, one.variant), []).append(one)
    for members in cards.values():
        first = members[0]
        shown = [one for one in members if one.primary or one.metric in _SHOWN_AT_ONCE or one.steps] or members[:1]
        others = [one for one in members if one not in shown]
        series = colors[first.target]
        blocks: list[Block] = [_draw(shown, series)]
        if others:
            blocks.append(Details(count_of(len(others), "further metric"), (_draw(others, series),)))
        if notes := _gather_notes(members):
            blocks.append(Notes(notes))
        yield Card(
            first.target,
            (*blocks, _fold_runs(members)),
            aside="; ".join(filter(None, [f"on {first.machine_label or 'an unknown machine'}", first.variant])),
            words=" ".join([first.config, first.dataset, first.library, *(one.label for one in members)]),
        )


def _draw(lines: Sequence[HistoryLine], series: int) -> Charts:
    return Charts(lambda: [figure for one in lines if (figure := draw_line(one, series))])


def _gather_notes(lines: Sequence[HistoryLine]) -> tuple[str, ...]:
    """The notes of the lines; one that all of them have is said once."""
    said: dict[str, list[str]] = {}
    for one in lines:
        undrawn = () if holdable(_list_values(one)) else ("No finite value to draw.",)
        for note in (*one.notes, *undrawn):
            said.setdefault(note, []).append(one.label)
    return tuple(note if len(who) == len(lines) else f"{', '.join(who)}: {note}" for note, who in said.items())


def _fold_runs(lines: Sequence[HistoryLine]) -> Details:
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
    return Details(what, (PlainTable(name, headings, cells, measured=True),))


def _tell_value(point: HistoryPoint | None) -> PlainCell:
    if point is None:
        return None
    failed = f" ({point.failed} failed)" if point.failed else ""
    return MarkedCell(f"{'not finite' if point.value is None else number(point.value, 5)}{failed}", value=point.value)


def _tell_levels(step: HistoryStep) -> str:
    return f"{' → '.join(tell_apart(step.before, step.after))} ({percent_change(step.percent)})"


def _tell_step_in_words(step: HistoryStep) -> str:
    """The step for a tooltip and for screen readers."""
    commits = f", after {step.last_commit}" if step.last_commit and step.last_commit != step.commit else ""
    return f"{step.verdict.capitalize()} since {step.name}{commits}: {_tell_levels(step)}"


def draw_line(drawn: HistoryLine, series: int) -> Figure | None:
    """The chart, or None if there is nothing that an axis can hold."""
    every = _list_values(drawn)
    if not holdable(every):
        return None
    found = [(index, point) for index, point in enumerate(drawn.points) if point.value is not None]
    top = 6.0 + _MARKS * (bool(drawn.steps) + bool(_find_version_changes(drawn.points)))
    bottom = top + _PLOT
    vertical, clipped = _fit_vertical(found, every, top, bottom)
    column = Column(drawn.metric, drawn.label, drawn.higher_is_better)
    left = y_room(vertical)
    last = len(drawn.points) - 1
    across = Scale(0, last, left + 8, WIDTH - RIGHT) if last else Scale(-1, 1, left + 8, WIDTH - RIGHT)
    runs = _draw_runs(found, across, vertical, banded=clipped or len(found) > _FEW)
    parts = [
        *y_axis(vertical, left, column),
        line(left, bottom, WIDTH - 6, bottom, "axis"),
        *_draw_ticks(drawn.points, across, bottom),
        *_draw_versions(drawn.points, across, top, bottom),
        f'<g class="{color(series)}">{"".join(runs)}</g>',
        *_draw_steps(drawn, across, vertical, bottom),
    ]
    return Figure(
        name=f"{drawn.config} {drawn.target} {drawn.metric} {drawn.variant} history",
        title=f"{drawn.config}: {drawn.target}",
        height=bottom + 46,
        parts=parts,
        description=_describe_line(drawn),
        caption=_caption_line(drawn, clipped=clipped),
    )


def _list_values(drawn: HistoryLine) -> list[float]:
    found = [point for point in drawn.points if point.value is not None]
    return [v for point in found for v in (point.value, point.low, point.high) if v is not None]


def _fit_vertical(
    found: Sequence[tuple[int, HistoryPoint]], every: list[float], top: float, bottom: float
) -> tuple[Scale, bool]:
    """An axis that shows the changes: it holds the intervals only if they do not squeeze the values into a line."""
    values = [point.value for _, point in found if point.value is not None]
    span = max(values) - min(values)
    room = _ROOM * span
    kept = [min(max(value, min(values) - room), max(values) + room) for value in every] if span else every
    return fit(kept, bottom - 4, top + 4), kept != every


def _draw_runs(
    found: Sequence[tuple[int, HistoryPoint]], across: Scale, vertical: Scale, *, banded: bool
) -> Iterator[str]:
    """Each run with its interval; a band if bars would hide the values, and a trace alone if there are many."""
    bounded = [
        (across(index), _within(vertical, point.low), _within(vertical, point.high))
        for index, point in found
        if point.low is not None and point.high is not None
    ]
    few = len(found) <= _FEW
    if not banded or len(bounded) == 1:
        for x, low, high in bounded:
            yield line(x, low, x, high, "whisker")
    elif bounded:
        upper, lower = [(x, high) for x, _, high in bounded], [(x, low) for x, low, _ in reversed(bounded)]
        yield f'<polygon class="area" points="{_path([*upper, *lower])}"/>'
    yield f'<polyline class="trace" points="{_path([(across(i), vertical(p.value or 0.0)) for i, p in found])}"/>'
    for index, point in found:
        if few or not point.searched:
            kind = "mean" if point.searched else "open"
            title = f"<title>{text(_describe_point(point))}</title>"
            at = f'cx="{px(across(index))}" cy="{px(vertical(point.value or 0.0))}"'
            yield f'<circle class="{kind}" {at} r="{"3" if few else "2"}">{title}</circle>'


def _within(scale: Scale, value: float) -> float:
    return scale(min(max(value, scale.low), scale.high))


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{px(x)},{px(y)}" for x, y in places)


def _describe_point(point: HistoryPoint) -> str:
    bounds = "" if point.low is None or point.high is None else f" ({number(point.low)} to {number(point.high)})"
    failed = f", {count_of(point.failed, 'cell')} failed" if point.failed else ""
    reserve = failed + ("" if point.searched else ", not searched")
    when = f"{point.started_at[:10]}, version {point.version}, run {point.run}"
    return f"{point.name}: {number(point.value or 0.0, 5)}{bounds}{reserve}; {when}"


def _draw_ticks(points: Sequence[HistoryPoint], across: Scale, bottom: float) -> Iterator[str]:
    """The commit and the date of some runs: the latest, and as many before it as there is room for."""
    free = WIDTH + _GAP
    for index in range(len(points) - 1, -1, -1):
        names = (short(points[index].commit, 11), points[index].started_at[:10])
        half = max(text_width(name, _TICK) for name in names) / 2
        middle = min(max(across(index), half + 1), WIDTH - half - 1)
        if middle + half + _GAP > free or middle - half < 0:
            continue
        free = middle - half
        yield line(across(index), bottom, across(index), bottom + 4, "axis")
        for row, name in enumerate(filter(None, names)):
            yield label(middle, bottom + 15 + 12 * row, name, "tick", "middle")
    yield label((across.start + across.end) / 2, bottom + 42, "runs, the latest on the right", "title", "middle")


def _draw_versions(points: Sequence[HistoryPoint], across: Scale, top: float, bottom: float) -> Iterator[str]:
    """A mark where the version changes; its name where there is room."""
    free = 0.0
    for index in _find_version_changes(points):
        x = (across(index - 1) + across(index)) / 2
        yield line(x, top - 2, x, bottom, "version")
        name = short(points[index].version, _VERSION)
        half = text_width(name, _TICK) / 2
        middle = min(max(x, half + 1), WIDTH - half - 1)
        if middle - half > free:
            free = middle + half + 4
            yield label(middle, top - 6, name, "tick", "middle")


def _draw_steps(drawn: HistoryLine, across: Scale, vertical: Scale, bottom: float) -> Iterator[str]:
    """The levels before and after each step, and a mark above it."""
    for step in drawn.steps:
        x = (across(step.index - 1) + across(step.index)) / 2
        yield f'<g class="{step.verdict}">{line(x, 8, x, bottom, "step")}</g>'
    for step in drawn.steps:
        x = (across(step.index - 1) + across(step.index)) / 2
        levels = ((step.first, step.index - 1, step.before), (step.index, step.end - 1, step.after))
        drawn_levels = "".join(line(across(a), vertical(at), across(b), vertical(at), "level") for a, b, at in levels)
        yield f'<g class="{step.verdict}">{drawn_levels}</g>'
        yield verdict_mark(x, 8, step.verdict, _tell_step_in_words(step))


def _describe_line(drawn: HistoryLine) -> str:
    values = [point for point in drawn.points if point.value is not None]
    first, last = values[0], values[-1]
    said = (
        f"{drawn.label} of {drawn.target} on {drawn.config}, {len(drawn.points)} runs on {drawn.machine_label}:"
        f" {number(first.value or 0.0)} in {first.name}, {number(last.value or 0.0)} in {last.name}."
    )
    return " ".join([said, *(f"{_tell_step_in_words(step)}." for step in drawn.steps[-5:])])


def _caption_line(drawn: HistoryLine, *, clipped: bool) -> str:
    """What is drawn, and the latest steps in words."""
    many = "mean" if drawn.n_splits > 1 else "value"
    over = f" of {drawn.n_splits} splits" if drawn.n_splits > 1 else ""
    bounds = ", with its 95 % interval" if any(point.low is not None for point in drawn.points) else ""
    bounds += ", which is wider than the axis" if clipped else ""
    parts = [f"{drawn.label}: the {many}{over} per run{bounds}"]
    shown = drawn.steps[-3:]
    if len(drawn.steps) > len(shown):
        parts.append(f"{len(drawn.steps)} steps, the latest {len(shown)}")
    parts += [f"{step.verdict} since {step.name}: {_tell_levels(step)}" for step in shown]
    if not drawn.steps and drawn.n_searched:
        from boosters_eval.stats.changepoints import fewest_for_any_step  # noqa: PLC0415 (loads scipy)

        few = drawn.n_searched < fewest_for_any_step()
        parts.append("too few runs for a step" if few else "no step found")
    return "; ".join(parts)


def _find_version_changes(points: Sequence[HistoryPoint]) -> list[int]:
    """The indices of the runs whose version is not that of the run before."""
    return [index for index, (a, b) in enumerate(pairwise(points), 1) if a.version != b.version]
