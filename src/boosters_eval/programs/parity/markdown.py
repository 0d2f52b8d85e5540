"""The parity report as Markdown: a header, totals, one table per method, and the reasons below it."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean_message, group_digits
from boosters_eval.programs.parity.findings import FAILED_MARK, GUARD_MARK, NOT_RUN_MARK
from boosters_eval.programs.parity.verdicts import ParityVerdict
from boosters_eval.reports.markdown import escape, markdown_table
from boosters_eval.reports.numbers import MISSING, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.programs.parity.findings import BackendScore, MethodAxes, ParityCell, ParityReport
    from boosters_eval.programs.parity.method import Size

_ISO = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00")
_LEGEND = (
    "Each cell: verdict against the oracle, time, and speed-up over the oracle at the same size and threads. "
    f"{GUARD_MARK} ran into the guard, {FAILED_MARK} failed, {NOT_RUN_MARK} was not run; "
    "the reasons are below each table."
)


def render_parity_markdown(report: ParityReport) -> str:
    """All parts that are not empty."""
    by_method: dict[str, list[ParityCell]] = {method.name: [] for method in report.methods}
    for cell in report.cells:
        by_method[cell.row.method].append(cell)
    parts = [
        "# Cross-binding parity\n",
        _header(report),
        "## Totals\n\n" + _totals(report) if report.totals else "No results.\n",
        "## Backends\n\n" + _scores(report.scores) if report.scores else "",
        f"## Methods\n\n{_LEGEND}\n" if report.methods else "",
        *(_method(method, by_method[method.name]) for method in report.methods),
    ]
    return "\n".join(part for part in parts if part)


def _header(report: ParityReport) -> str:
    hosts = [", ".join(f"{name} {value}" for name, value in host.items()) for host in report.hosts]
    versions = "; ".join(f"{name} {', '.join(found)}" for name, found in report.versions.items())
    lines = [
        *(("Host", host) for host in hosts or ["not recorded"]),
        ("Run date", run_dates(report)),
        ("Versions", versions or "not recorded"),
        *(("Note", note) for note in report.notes),
    ]
    return "".join(f"- **{name}**: {_text(value)}\n" for name, value in lines)


def _text(given: str) -> str:
    """Names and messages are foreign: one line, no control characters, no markup."""
    return escape(clean_message(given))


def run_dates(report: ParityReport) -> str:
    """When the cells were measured."""
    first, last = (_ISO.sub(r"\1 \2 UTC", at) for at in (report.first_measured, report.last_measured))
    return (first if first == last else f"{first} to {last}") or "not recorded"


def _totals(report: ParityReport) -> str:
    rows = [[_text(word), group_digits(n)] for word, n in report.totals.items()]
    return markdown_table(["Result", "Cells"], [*rows, ["all", group_digits(len(report.cells))]])


def _scores(scores: Iterable[BackendScore]) -> str:
    rows = []
    for score in scores:
        words = ", ".join(f"{n} {word}" for word, n in score.words.items())
        kind = f"{'own' if score.own else 'external'}{f', {score.language}' if score.language else ''}"
        speed = MISSING if score.median_speedup is None else times(score.median_speedup)
        rows.append([_text(score.backend), _text(kind), _text(words), str(score.n_failed), speed])
    return markdown_table(["Backend", "Kind", "Results", "Failed", "Median speed-up"], rows)


def times(ratio: float) -> str:
    """A speed-up, with the multiplication sign."""
    return f"{number(ratio, 2 if ratio < 100 else 3)}\u00d7"


def milliseconds(value: float | None) -> str:
    """A time to three digits; a long one in seconds."""
    if value is None:
        return MISSING
    return f"{_shown(value / 1000)} s" if value >= 10_000 else f"{_shown(value)} ms"


def _method(method: MethodAxes, cells: list[ParityCell]) -> str:
    columns = [(size, threads) for size in method.sizes for threads in method.threads]
    by_place = {(c.row.backend, c.row.n, c.row.p, c.row.threads): c for c in cells}
    rows = [
        [_text(backend), *(_cell(by_place[backend, *size, threads]) for size, threads in columns)]
        for backend in method.backends
    ]
    table = markdown_table(["Backend", *(_column(size, threads) for size, threads in columns)], rows)
    about = f"Oracle: {_text(method.oracle)}, within {method.tolerance} ({_text(method.metric)}).\n\n"
    heading = f"### {_text(method.name)}\n\n{about if method.oracle else ''}"
    reasons = _reasons(cells)
    return heading + table + (f"\n{reasons}" if reasons else "")


def _column(size: Size, threads: int) -> str:
    return f"{size}, {threads} thread{'s' if threads > 1 else ''}"


def _cell(cell: ParityCell) -> str:
    if cell.mark:
        return cell.mark
    binding = " (binding divergent)" if cell.row.binding_verdict is ParityVerdict.DIVERGENT else ""
    speed = "" if cell.speedup is None else f", {times(cell.speedup)}"
    return f"{_text(cell.word)}{binding} {milliseconds(cell.row.reported_ms)}{speed}"


def explanation(cell: ParityCell) -> str:
    """Why a cell is not simply in agreement, in one line; '' if it is."""
    row = cell.row
    if not cell.mark and not cell.notable:
        return ""
    if cell.mark:
        return f"{cell.mark} {cell.word}{f': {cell.reason}' if cell.reason else ''}"
    lines = []
    if row.verdict not in (None, ParityVerdict.BIT_EXACT, ParityVerdict.ROUNDING, ParityVerdict.NO_ORACLE):
        far = ""
        if row.divergence is not None:
            far = f" {_shown(row.divergence)} ({row.divergence_metric}), max abs {_shown(row.max_abs)}"
            far += f", {percent(row.rows_off or 0.0, sign=False)} of rows off"
        lines.append(f"{cell.word}{far}{f': {cell.reason}' if cell.reason else ''}")
    if row.binding_verdict is ParityVerdict.DIVERGENT:
        lines.append(f"{_shown(row.binding_max_abs)} (max abs) from the canonical binding")
    return "; ".join(lines)


def _shown(value: float | None) -> str:
    if value is None:
        return MISSING
    return number(value, 3) if isfinite(value) else str(value)


def _reasons(cells: Iterable[ParityCell]) -> str:
    """One line per backend and reason, with the cells that it holds for."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        told = explanation(cell)
        if told:
            where = f"{cell.row.n}x{cell.row.p} @{cell.row.threads}"
            found.setdefault((cell.row.backend, told), []).append(where)
    lines = []
    for (backend, told), places in found.items():
        shown = ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        lines.append(f"- {_text(backend)} ({shown}): {_text(told)}\n")
    return "".join(lines)
