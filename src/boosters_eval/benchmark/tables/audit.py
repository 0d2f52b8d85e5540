"""What was found in the data before it was used, as a section of a report and as notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean
from boosters_eval.reports.document import Details, Listing, ListItem, PlainTable, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.benchmark.results import ResultCollection
    from boosters_eval.datasets.audit import DataAudit
    from boosters_eval.reports.document import Block

_NAMED = 30  # columns of a role; further ones are only counted


def audits_of(results: ResultCollection) -> dict[str, DataAudit]:
    """The audits of the data sets that a collection has outcomes of, or libraries without any."""
    there: set[str | None] = {item.dataset_name for item in (*results.results, *results.errors)}
    there |= {item.dataset_name for item in results.unsupported}
    return {name: audit for name, audit in results.audits.items() if name in there}


def data_section(results: ResultCollection) -> Section | None:
    """Each data set with its task and size, what is suspicious about it, and the columns that were used."""
    audits = audits_of(results)
    if not audits:
        return None
    headings = ("Data set", "Task", "Why", "Rows", "Classes", "Columns", "Looked at", "Findings")
    rows = tuple(
        (
            *(clean(name), audit.task.value, clean(audit.reason) or None, audit.rows, audit.n_classes),
            *(audit.n_columns, audit.sampled or "all rows", len(audit.findings)),
        )
        for name, audit in audits.items()
    )
    blocks: list[Block | Details] = [PlainTable(name="Data sets", headings=headings, rows=rows)]
    blocks += [Listing(items=tuple(map(_item, _findings(audits))))] if any(a.findings for a in audits.values()) else []
    blocks += [_columns(audit) for audit in audits.values()]
    return Section(
        anchor="data", title="Data", search="Filter data sets" if len(audits) > 10 else "", blocks=tuple(blocks)
    )


def severe_notes(results: ResultCollection) -> list[str]:
    """A sentence for each finding because of which scores cannot be trusted."""
    return [
        clean(f"{name}: {finding.text}{_advice(finding.option)}.")
        for name, audit in audits_of(results).items()
        for finding in audit.severe
    ]


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
        classes = ", ".join(f"{label} {count}" for label, count in list(audit.classes.items())[:_NAMED])
        more = (audit.n_classes or 0) - min(len(audit.classes), _NAMED)
        items.append(ListItem(text="rows per class: ", rest=clean(classes + (f" and {more} more" if more > 0 else ""))))
    if audit.reading:
        items.append(ListItem(text="read with ", rest=clean(audit.reading)))
    columns = f"{audit.n_columns} column" + ("" if audit.n_columns == 1 else "s")
    return Details(title=f"Columns of {clean(audit.dataset)}", aside=columns, blocks=(Listing(items=tuple(items)),))
