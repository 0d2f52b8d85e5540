"""The history as a page of one file: what changed first, then every line with its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, group_digits
from boosters_eval.programs.history.chart import history_chart
from boosters_eval.programs.history.wording import level_texts, percent_text, versions_text, without_steps
from boosters_eval.reports.document import Fact
from boosters_eval.reports.html import old
from boosters_eval.reports.html.markup import grid, list_notes, numeric, scroll, search_field, text
from boosters_eval.reports.html.old import asset, page, plain
from boosters_eval.reports.numbers import MISSING, number, p_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.programs.history.report import HistoryLine, HistoryPoint, HistoryReport, HistoryStep

_SHOWN_AT_ONCE = ("train_time_s",)  # besides the primary metric; the others are folded
_MOST_ROWS = 50  # runs in the table of a line; the JSON has all
_MOST_STEPS = 1000  # in the table of steps
STEP_HEADINGS = (
    "Since", "Date", "Benchmark", "Competitor", "Metric", "Change", "Before", "After", "%", "Runs", "p", "Version",
    "Machine",
)  # fmt: skip

_Card = tuple[str, str, str, str]


def render_history_page(report: HistoryReport) -> str:
    """The whole page."""
    series = {name: index for index, name in enumerate(dict.fromkeys(line.target for line in report.lines))}
    parts = [
        ("steps", "Steps", _steps(report)),
        ("lines", "Lines", _lines(report.lines, series)),
        ("notes", "Notes", f'<div class="card">{list_notes(report.notes[1:])}</div>' if report.notes[1:] else ""),
    ]
    return page(
        "History",
        f"What {count_of(report.n_runs, 'run')} measured. {_span(report)}".rstrip(),
        old.facts(_facts(report)),
        parts,
        style=asset(__package__, "history.css"),
    )


def _span(report: HistoryReport) -> str:
    dates = sorted(point.started_at[:10] for line in report.lines for point in (line.points[0], line.points[-1]))
    if not dates:
        return ""
    return f"From {dates[0]} to {dates[-1]}." if dates[0] != dates[-1] else f"On {dates[0]}."


def _facts(report: HistoryReport) -> tuple[Fact, ...]:
    steps = [step for line in report.lines for step in line.steps]
    lost = len({(failure.run, failure.started_at) for failure in report.failures})
    worse = sum(step.verdict == "worse" for step in steps)
    return (
        Fact(label="Runs", value=group_digits(report.n_runs)),
        Fact(label="Lines", value=group_digits(len(report.lines))),
        Fact(label="Steps", value=group_digits(len(steps))),
        Fact(label="For the worse", value=group_digits(worse), alarm=worse > 0),
        *([Fact(label="All cells failed", value=count_of(lost, "run"), alarm=True)] if lost else []),
        Fact(label="Machines", value=group_digits(len({line.machine for line in report.lines}))),
    )


def _steps(report: HistoryReport) -> str:
    found = [(line, step) for line in report.lines for step in line.steps]
    rule = "".join(f'<p class="rule">{text(note)}</p>' for note in report.notes[:1])
    if not found:
        return f"<p>{text(without_steps(report))}</p>{rule}"
    found.sort(key=lambda pair: pair[1].started_at, reverse=True)
    table = grid(STEP_HEADINGS, (_step_row(line, step) for line, step in found[:_MOST_STEPS]), kind="sortable")
    hidden = len(found) - _MOST_STEPS
    more = (
        f"<p>The latest {_MOST_STEPS}; {group_digits(hidden)} earlier ones are in the JSON.</p>" if hidden > 0 else ""
    )
    search = search_field("Filter steps", "#steps tbody tr") if len(found) > 1 else ""
    return f'{search}<div class="card">{scroll(table, "Steps")}</div>{more}{rule}'


def _step_row(line: HistoryLine, step: HistoryStep) -> list[str]:
    before, after = level_texts(step.before, step.after)
    return [
        f'<th scope="row">{text(step.name)}</th>',
        *map(plain, (step.started_at[:10], line.config, line.target, line.label)),
        f'<td><span class="verdict {step.verdict}">{step.verdict}</span></td>',
        numeric(before, step.before),
        numeric(after, step.after),
        numeric(percent_text(step.percent), step.percent),
        numeric(f"{step.n_before} + {step.n_after}", step.n_before + step.n_after),
        numeric(p_value(step.p_value), step.p_value),
        plain(versions_text(step)),
        plain(line.machine_label),
    ]


def _lines(lines: Sequence[HistoryLine], series: dict[str, int]) -> str:
    cards: dict[_Card, list[HistoryLine]] = {}
    for line in lines:
        cards.setdefault((line.config, line.target, line.machine, line.variant), []).append(line)
    groups: dict[str, list[str]] = {}
    for (config, target, _, _), members in cards.items():
        groups.setdefault(config, []).append(_card(members, series[target]))
    search = search_field("Filter lines", "#lines .card", groups="#lines .group") if len(cards) > 1 else ""
    body = "".join(
        f'<div class="group"><h3>{text(config)}</h3>{"".join(found)}</div>' for config, found in groups.items()
    )
    return search + body


def _card(lines: list[HistoryLine], series: int) -> str:
    first = lines[0]
    words = " ".join(
        [first.config, first.dataset, first.target, first.library, first.machine_label, *(line.label for line in lines)]
    )
    shown = [line for line in lines if line.primary or line.metric in _SHOWN_AT_ONCE or line.steps] or lines[:1]
    others = [line for line in lines if line not in shown]
    more = ""
    if others:
        title = count_of(len(others), "further metric")
        more = f'<details class="more"><summary>{title}</summary>{_drawn(others, series)}</details>'
    machine = f"on {first.machine_label}" if first.machine_label else "on an unknown machine"
    machine += f"; {first.variant}" if first.variant else ""
    return (
        f'<article class="card" data-search="{text(words)}"><h4>{text(first.target)}<small>{text(machine)}</small></h4>'
        f"{_drawn(shown, series)}{more}{list_notes(_notes(lines))}{_runs(lines)}</article>"
    )


def _notes(lines: Sequence[HistoryLine]) -> list[str]:
    """The notes of the lines; one that all of them have is said once."""
    said: dict[str, list[str]] = {}
    for line in lines:
        for note in line.notes:
            said.setdefault(note, []).append(line.label)
    return [note if len(labels) == len(lines) else f"{', '.join(labels)}: {note}" for note, labels in said.items()]


def _drawn(lines: Sequence[HistoryLine], series: int) -> str:
    figures = [(line, history_chart(line, series)) for line in lines]
    found = "".join(figure.html() for _, figure in figures if figure is not None)
    without = [line.label for line, figure in figures if figure is None]
    left = f"<p>No finite value to draw: {text(', '.join(without))}.</p>" if without else ""
    return (f'<div class="charts">{found}</div>' if found else "") + left


def _runs(lines: Sequence[HistoryLine]) -> str:
    """The numbers behind the charts, folded: one table per card, the latest run first."""
    rows: dict[str, tuple[HistoryPoint, dict[int, HistoryPoint]]] = {}
    for position, line in enumerate(lines):
        for point in line.points[-_MOST_ROWS:]:
            rows.setdefault(point.run + point.started_at, (point, {}))[1][position] = point
    latest = sorted(rows.values(), key=lambda row: row[0].started_at, reverse=True)[:_MOST_ROWS]
    headings = ["Commit", "Date", "Version", *(line.label for line in lines), "Run"]
    cells = (
        [*_named(point), *(_value(found.get(i)) for i in range(len(lines))), plain(point.run)]
        for point, found in latest
    )
    total = max(len(line.points) + line.hidden for line in lines)
    what = (
        f"The latest {len(latest)} of {group_digits(total)} runs"
        if total > len(latest)
        else count_of(len(latest), "run")
    )
    first = lines[0]
    name = ", ".join(filter(None, [f"Runs of {first.target} on {first.config}", first.machine_label, first.variant]))
    table = scroll(grid(headings, cells, kind="sortable"), name)
    return f'<details class="more"><summary>{what}</summary>{table}</details>'


def _named(point: HistoryPoint) -> list[str]:
    return [
        f'<th scope="row">{text(point.commit or MISSING)}</th>',
        plain(point.started_at[:16].replace("T", " ")),
        plain(point.version),
    ]


def _value(point: HistoryPoint | None) -> str:
    if point is None:
        return numeric(MISSING, None)
    failed = f" ({point.failed} failed)" if point.failed else ""
    shown = "not finite" if point.value is None else number(point.value, 5)
    return numeric(f"{shown}{failed}", point.value)
