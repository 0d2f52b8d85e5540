"""The difference of two runs, as it is shown and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.programs.history.model import NOT_COMPARABLE
from boosters_eval.programs.history.report import SHORT_MACHINE
from boosters_eval.programs.history.wording import level_texts, percent_text
from boosters_eval.reports.document import Document, Fact, Listing, Notes, Results, Section
from boosters_eval.reports.numbers import MISSING, number
from boosters_eval.reports.tables import Column, Report, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.programs.history.difference import ComparedRun, NumberChange, RunDifference


def tables_of(found: RunDifference) -> Report:
    """The difference in the table model, one table per benchmark."""
    by_config: dict[str, list[NumberChange]] = {}
    for change in found.changes:
        by_config.setdefault(change.config, []).append(change)
    return Report(tuple(_table(config, changes) for config, changes in by_config.items()), found.notes)


def title_of(found: RunDifference) -> str:
    """The later run is judged against the earlier one, so it is named first."""
    return f"{found.after.run} against {found.before.run}"


def lay_out_difference(found: RunDifference) -> Document:
    """Both runs, and a table per benchmark."""
    report = tables_of(found)
    words = [change.verdict for change in found.changes]
    sides = f"Before: {run_text(found.before)}", f"After: {run_text(found.after)}"
    return Document(
        title_of(found),
        lead=f"{sides[0]}. {sides[1]}.",
        facts=tuple(
            Fact(word.capitalize(), str(words.count(word)), alarm=word == "worse" and word in words)
            for word in ("better", "worse", "equivalent", "inconclusive", NOT_COMPARABLE)
        ),
        sections=(
            Section("runs", "", (Listing.of(*sides),), only="text"),
            Section("results", "", tuple(map(Results, report.tables)), short="Results"),
            Section("notes", "Notes", (Notes(report.notes),) if report.notes else ()),
        ),
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
