"""What was found in the data before it was used, as a section of a report and as notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, count_of, join_words
from boosters_eval.reports.document import Details, Listing, ListItem, PlainTable, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.programs.benchmark.results import ResultCollection, ResultsDocument
    from boosters_eval.reports.document import Block

_NAMED = 30  # columns of a role; further ones are only counted


def audits_of(results: ResultCollection | ResultsDocument) -> dict[str, DataAudit]:
    """The audits of the data sets that a collection has outcomes of, or libraries without any."""
    there: set[str | None] = {item.dataset_name for item in (*results.results, *results.errors)}
    there |= {item.dataset_name for item in results.unsupported}
    return {name: audit for name, audit in results.metadata.audits.items() if name in there}


def data_section(results: ResultsDocument) -> Section | None:
    """Each data set with its task and size, what is suspicious about it, and the columns that were used."""
    audits = audits_of(results)
    if not audits:
        return None
    columns: dict[str, list[str | int | None]] = {
        "Data set": [clean(name) for name in audits],
        "Task": [audit.task.value for audit in audits.values()],
        "Why": [clean(audit.reason) or None for audit in audits.values()],
        "Rows": [audit.rows for audit in audits.values()],
        "Classes": [audit.n_classes for audit in audits.values()],
        "Columns": [audit.n_columns for audit in audits.values()],
        "Rows looked at": [audit.sampled or "all" for audit in audits.values()],
        "Findings": [len(audit.findings) for audit in audits.values()],
    }
    told = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    table = PlainTable(name="Data sets", headings=tuple(told), rows=tuple(zip(*told.values(), strict=True)))
    blocks: list[Block] = [table]
    blocks += [Listing(items=tuple(map(_item, _findings(audits))))] if any(a.findings for a in audits.values()) else []
    blocks += [_columns(audit) for audit in audits.values()]
    return Section(
        anchor="data",
        title="Data",
        detail=True,
        search="Filter data sets" if len(audits) > 10 else "",
        blocks=tuple(blocks),
    )


def severe_notes(results: ResultCollection) -> list[str]:
    """A sentence for each finding because of which scores cannot be trusted."""
    return [
        clean(f"{name}: {finding.text}{_advice(finding.option)}.")
        for name, audit in audits_of(results).items()
        for finding in audit.severe
    ]


def suspicions(results: ResultCollection) -> dict[str, str]:
    """For each data set whose scores cannot be trusted, why, in a few words for an answer."""
    return {
        name: "the data are suspect: " + join_words(clean(_short(finding.text)) for finding in audit.severe)
        for name, audit in audits_of(results).items()
        if audit.severe
    }


def _short(text: str) -> str:
    """What was found, without how it is known, which follows the last colon."""
    return text.rpartition(": ")[0] or text


def _findings(audits: dict[str, DataAudit]) -> Iterator[tuple[str, str, str, str]]:
    for name, audit in audits.items():
        for finding in audit.findings:
            yield name, finding.kind, finding.text, finding.option


def _item(found: tuple[str, str, str, str]) -> ListItem:
    name, kind, text, option = map(clean, found)
    return ListItem(text=f"{name}: ", mark=kind, rest=f": {text}{_advice(option)}.")


def _advice(option: str) -> str:
    return f" ({option})" if option else ""


def _columns(audit: DataAudit) -> Details:
    """The columns by what they were used as."""
    items = []
    for role, names in audit.by_role().items():
        shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        items.append(ListItem(text="", mark=role, rest=clean(f" ({len(names)}): {shown}")))
    if audit.classes:
        classes = ", ".join(f"{label} ({count})" for label, count in list(audit.classes.items())[:_NAMED])
        more = (audit.n_classes or 0) - min(len(audit.classes), _NAMED)
        items.append(ListItem(text="rows per class: ", rest=clean(classes + (f" and {more} more" if more > 0 else ""))))
    if audit.reading:
        items.append(ListItem(text="read with ", rest=clean(audit.reading)))
    columns = count_of(audit.n_columns, "column")
    return Details(title=f"Columns of {clean(audit.dataset)}", aside=columns, blocks=(Listing(items=tuple(items)),))
