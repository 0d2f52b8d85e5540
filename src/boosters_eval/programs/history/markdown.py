"""The history as Markdown: the steps, and where every line stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of
from boosters_eval.programs.history.wording import change_text, versions_text, without_steps
from boosters_eval.reports.markdown import escape, markdown_list, markdown_table
from boosters_eval.reports.numbers import MISSING, number, p_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.history.report import HistoryLine, HistoryReport

_STEPS = ("Since", "Date", "Benchmark", "Competitor", "Metric", "Change", "Levels", "Runs", "p", "Version", "Machine")
_LINES = ("Competitor", "Metric", "Machine", "Runs", "First", "Latest", "Version", "Latest step")


def render_history_markdown(report: HistoryReport) -> str:
    """The whole report."""
    runs = count_of(report.n_runs, "run")
    parts = [
        "# History\n",
        f"{runs}, {count_of(len(report.lines), 'line')}, {count_of(report.n_steps, 'step')}.\n",
        "## Steps\n",
        _steps(report),
    ]
    by_config: dict[str, list[HistoryLine]] = {}
    for line in report.lines:
        by_config.setdefault(line.config, []).append(line)
    for config, lines in by_config.items():
        parts += [f"## {escape(config)}\n", markdown_table(_LINES, [[*map(escape, _row(line))] for line in lines])]
        notes = dict.fromkeys(f"{line.target} {line.label}: {note}" for line in lines for note in line.notes)
        parts += [markdown_list(tuple(notes))] if notes else []
    parts.append(f"## Notes\n\n{markdown_list(report.notes)}")
    return "\n".join(parts)


def _steps(report: HistoryReport) -> str:
    found = [(line, step) for line in report.lines for step in line.steps]
    if not found:
        return f"{without_steps(report)}\n"
    found.sort(key=lambda pair: pair[1].started_at, reverse=True)
    rows = [
        (
            step.name,
            step.started_at[:10],
            line.config,
            line.target,
            line.label,
            step.verdict,
            change_text(step),
            f"{step.n_before} + {step.n_after}",
            p_value(step.p_value),
            versions_text(step),
            line.machine_label,
        )
        for line, step in found
    ]
    return markdown_table(_STEPS, [[*map(escape, row)] for row in rows])


def _row(line: HistoryLine) -> Iterator[str]:
    known = [point for point in line.points if point.value is not None]
    ends = [number(point.value or 0.0, 5) for point in (known[0], known[-1])] if known else [MISSING, MISSING]
    step = line.steps[-1] if line.steps else None
    yield from (line.target, f"{line.label} ({line.variant})" if line.variant else line.label, line.machine_label)
    yield from (str(len(line.points) + line.hidden), *ends, line.points[-1].version)
    yield f"{step.verdict} since {step.name}: {change_text(step)}" if step else MISSING
