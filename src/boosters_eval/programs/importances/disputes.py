"""The rows on which libraries differ most, as a section of a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from boosters_eval.programs.importances.wording import marked
from boosters_eval.reports.document import Details, Paragraph, PlainTable, Section
from boosters_eval.reports.numbers import MISSING, as_given, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.importances.records import BenchmarkFindings, DisputedRow

_LONGEST = 60  # characters of a category's name; the JSON has it whole
_VALUES = 6  # features whose values are shown in one line; a fold has those of all that matter, and the JSON all


def disputed_section(
    findings: BenchmarkFindings, every: Sequence[BenchmarkFindings], *, folded: bool
) -> Section | None:
    """The rows by predictions and by attributions; `folded` has a fold for each row instead of long lines."""
    if not findings.disputed:
        return None
    place = [one.benchmark for one in every].index(findings.benchmark)
    where = f" on {findings.benchmark}" if len(every) > 1 else ""
    blocks: list[Paragraph | PlainTable | Details] = []
    for by, among in (("predictions", ""), ("attributions", ", among libraries that fail no check of them")):
        rows = [row for row in findings.disputed if row.by == by]
        if rows:
            about = " ".join([f"Where the {by} of two libraries differ most{among}.", *_definitions(findings, by)])
            blocks.append(Paragraph(text=about))
            blocks.append(_table(findings, rows, f"Rows by {by}{where}", folded=folded))
            blocks += [_fold(findings, row) for row in rows] if folded else []
    return Section(
        anchor=f"rows-{place}" if place else "rows",
        title=f"Rows of most disagreement{where}",
        short=f"Rows{where}",
        blocks=tuple(blocks),
        only="page" if folded else "text",
        detail=True,
    )


def _table(findings: BenchmarkFindings, rows: Sequence[DisputedRow], name: str, *, folded: bool) -> PlainTable:
    libraries = [library for library in findings.libraries if any(library in row.predictions for row in rows)]
    explained = any(row.attributions for row in rows)
    cells = [
        (
            str(row.row),
            str(row.seed),
            _value(row.target, whole=findings.classes),
            row.difference,
            *(() if row.output is None else (findings.outputs[row.output],)),
            *(_outputs(findings, row.predictions.get(library, ())) for library in libraries),
            *(() if folded else (_values(findings, row), *((_largest(row),) if explained else ()))),
        )
        for row in rows
    ]
    of = ("Of",) if findings.outputs else ()
    further = () if folded else ("Values", *(("Largest attributions",) if explained else ()))
    return PlainTable(
        name=name,
        headings=(
            "Row",
            "Seed",
            "Target",
            "Difference",
            *of,
            *(marked(findings, name) for name in libraries),
            *further,
        ),
        rows=tuple(cells),
    )


def _fold(findings: BenchmarkFindings, row: DisputedRow) -> Details:
    """A row's values and what each library attributes to them; of features that matter little, the values alone."""
    libraries = list(row.attributions)
    cells = [
        (name, _value_of(findings, row, name), *(row.attributions[library].get(name, "") for library in libraries))
        for name in _features(findings, row)
    ]
    title = f"Row {row.row}"
    table = PlainTable(name=f"{title} by {row.by}", headings=("Feature", "Value", *libraries), rows=tuple(cells))
    to = "" if row.output is None else f" to {findings.outputs[row.output]}"
    aside = f"values, and the largest attributions{to}" if libraries else "values"
    return Details(title=title, aside=aside, blocks=(table,), long=True)


def _features(findings: BenchmarkFindings, row: DisputedRow) -> list[str]:
    """Those that matter most in the row, then the others; a group stands for its columns."""
    named = dict.fromkeys(name for found in row.attributions.values() for name in found)
    grouped = {column for columns in findings.groups.values() for column in columns}
    alone = [name for name in row.values if name not in grouped]
    return [*named, *(name for name in (*alone, *findings.groups) if name not in named)]


def _definitions(findings: BenchmarkFindings, by: str) -> Iterator[str]:
    """What is shown, where that is not plain."""
    what = "one attribution to the raw score" if by == "attributions" else "one prediction"
    what = "the probability" if by == "predictions" and findings.classes else what
    if noun := findings.output_noun if findings.outputs else "":
        told = f"; attributions are to the same {noun}" if any(row.attributions for row in findings.disputed) else ""
        yield f"The difference is that of {what} of one {noun}, named beside it{told}."
    elif by == "attributions":
        yield f"The difference is that of {what}."
    if findings.classes:
        shown = "the class that it predicts, with its probability" if findings.outputs else "the probability of class 1"
        yield f"Shown of each library: {shown}."


def _outputs(findings: BenchmarkFindings, values: Sequence[float | None]) -> str | float | None:
    if len(values) == 1:
        return values[0]
    known = [-math.inf if value is None else value for value in values]
    if findings.classes and known:
        return f"{known.index(max(known))} ({max(known):.2f})"
    return " / ".join(MISSING if value is None else number(value, 2) for value in values) or None


def _values(findings: BenchmarkFindings, row: DisputedRow) -> str:
    members = [column for name in _features(findings, row)[:_VALUES] for column in findings.groups.get(name, (name,))]
    return ", ".join(f"{column} {_value(row.values[column])}" for column in members)


def _value_of(findings: BenchmarkFindings, row: DisputedRow, name: str) -> str:
    """The value of a column, or those of the columns of a group."""
    if name not in findings.groups:
        return _value(row.values[name])
    return ", ".join(f"{column} {_value(row.values[column])}" for column in findings.groups[name])


def _value(value: float | str | None, *, whole: bool = False) -> str:
    """A value as the data has it; a class is a whole number."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
        return f"'{shown}'" if "," in shown else shown  # values are listed with commas between them
    return str(round(value)) if whole else as_given(value)


def _largest(row: DisputedRow) -> str:
    """The two that matter most to each library, of all libraries."""
    top = {name for found in row.attributions.values() for name in sorted(found, key=lambda n: -abs(found[n]))[:2]}
    parts = []
    for library, found in row.attributions.items():
        shown = ", ".join(f"{name} {value:+.2g}" for name, value in found.items() if name in top)
        parts.append(f"{library}: {shown}")
    return "; ".join(parts)
