"""What the exports of a model do otherwise, laid out: an answer, a line per export, and what each difference is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, join_words
from boosters_eval.programs.export.findings import COMPARED
from boosters_eval.reports.document import Document, MarkedCell, Notes, PlainTable, Section
from boosters_eval.reports.numbers import MISSING, as_given, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.export.findings import CheckedExport, ExportFindings

_TONES = {
    "identical": "better",
    "agrees": "better",
    "differs": "changed",
    "changes decisions": "worse",
    "failed": "worse",
}


def lay_out(found: ExportFindings) -> Document:
    compared = [one for one in found.exports if one.state in COMPARED]
    differing = [one for one in compared if one.state in ("differs", "changes decisions")]
    headings: tuple[str, ...] = (
        "Export",
        "Version",
        "Outcome",
        "Rows off",
        "Other classes",
        "Largest difference",
        "What it is",
    )
    if found.task == "regression":
        headings = tuple(each for each in headings if each != "Other classes")
    rows = tuple(_tell(one, found) for one in found.exports)
    parts = tuple(
        (one.name, part.name, part.rows, part.off, part.decisions)
        for one in differing
        for part in one.parts
        if part.off or part.decisions
    )
    places = tuple((one.name, at.column, as_given(at.threshold), at.rows) for one in differing for at in one.places)
    return Document(
        f"Exports of {found.model} ({found.library} {found.version})",
        tuple(_answer(found)),
        sections=(
            Section("exports", "Exports", (PlainTable("Exports", headings, rows),)),
            Section(
                "parts",
                "Which rows",
                (PlainTable("Rows", ("Export", "Rows", "Asked", "Off", "Other classes"), parts, keys=2),)
                if parts
                else (),
            ),
            Section(
                "places",
                "Which thresholds",
                (PlainTable("Thresholds", ("Export", "Column", "Threshold", "Rows off"), places, keys=2),)
                if places
                else (),
            ),
            Section("notes", "Notes", (Notes(tuple(_notes(found))),)),
        ),
    )


def _answer(found: ExportFindings) -> Iterator[str]:
    compared = [one for one in found.exports if one.state in COMPARED]
    if not compared:
        yield f"No export of {found.model} could be compared."
        return
    for one in found.failing[:3]:
        if one.decisions:
            yield f"{one.name} decides otherwise in {one.decisions} of {one.rows} rows: {one.diagnosis}."
        else:
            yield f"{one.name} is off in {one.off} of {one.rows} rows, {_tell_far(one)}: {one.diagnosis}."
    if len(found.failing) > 3:
        yield f"So do {join_words(one.name for one in found.failing[3:])}."
    if not found.failing:
        what = "predict the same" if found.judges_values else "decide the same"
        told = count_of(len(compared), "export") if len(compared) > 1 else compared[0].name
        yield f"{told} {what if len(compared) > 1 else what.replace(' ', 's ', 1)} in {count_of(found.rows, 'row')}."
        apart = [one.name for one in compared if one.state == "differs"]
        if apart:
            yield f"Their values are apart in {join_words(apart)}."
    lost = [one.name for one in found.exports if one.judged and one.state not in COMPARED]
    if lost:
        yield f"There is no answer for {join_words(lost)}."
    partly = [one.name for one in found.exports if one.refused]
    if partly:
        yield f"{join_words(partly)} {'refuse' if len(partly) > 1 else 'refuses'} values that the model takes."


def _tell_far(one: CheckedExport) -> str:
    return "where one of the two gives no number" if one.largest is None else f"by up to {_far(one)}"


def _far(one: CheckedExport) -> str:
    if one.largest is None:
        return "no number"
    return f"{number(one.largest, 2)} ({number(one.deviations or 0.0, 2)} standard deviations)"


def _tell(one: CheckedExport, found: ExportFindings) -> tuple[str | int | MarkedCell | None, ...]:
    compared = one.state in COMPARED
    what = one.diagnosis or one.reason
    if one.reference:
        what += f" (known: {one.reference})"
    cells: tuple[str | int | MarkedCell | None, ...] = (
        one.name,
        one.version or MISSING,
        MarkedCell(one.state, _TONES.get(one.state, "")),
        one.off if compared else None,
        *((one.decisions if compared else None,) if found.task != "regression" else ()),
        _far(one) if compared else None,
        "; ".join(filter(None, (what, *one.refused))),
    )
    return cells


def _notes(found: ExportFindings) -> Iterator[str]:
    yield (
        f"{found.rows} rows: the sample, three for each of {count_of(found.thresholds, 'threshold')} (on it, and one"
        " step to each side), and missing, infinite and unseen values column by column."
    )
    allowed = f"{number(found.allowed, 2)}, which is {found.tolerance:g} standard deviations of the predictions"
    if found.judges_values:
        yield f"A value may be off by {allowed}."
    else:
        yield f"Decisions are judged, values only told: a row is off by more than {allowed}."
    yield from found.notes
