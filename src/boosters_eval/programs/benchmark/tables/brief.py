"""What a terminal shows of a comparison unless everything is asked for: the answer, and the numbers on one screen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from boosters_eval.core.text import lower_initial
from boosters_eval.programs.benchmark.tables.headline import (
    BEHIND,
    BEST,
    LEVEL,
    LOST,
    OPEN,
    SUSPECT,
    find_standings,
    shorten_names,
)
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding
from boosters_eval.reports.document import Document, PlainTable, Results, Section
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from boosters_eval.reports.document import PlainCell
    from boosters_eval.reports.tables import Column, Report, ReportTable, Row, TableCell

FEW = 2  # tables that are shown with their numbers; of more, one table has a row for each


def shorten(report: Report) -> Document:
    """The answer with one short table per data set, or with a row for each if there are many."""
    document = report.document()
    notes = tuple(section for section in document.sections if section.anchor == "notes")
    if len(report.tables) > FEW:
        overview = Section("results", "By data set", (_overview(report),))
        return replace(document, sections=(overview, *notes))
    tables = tuple(Results(_shorten_table(table, report)) for table in report.tables if table.columns)
    results = (Section("results", "", tables),) if tables else ()
    return replace(document, leaderboard=None, sections=(*results, *notes))


def _shorten_table(table: ReportTable, report: Report) -> ReportTable:
    """How each row stands, and the means of what is judged: the answer tells the times that are not."""
    kept = [place for place, column in enumerate(table.columns) if column.kind == "metric" or not column.indicative]
    own = max((row.n or 0 for row in table.rows), default=0)
    deciding = find_deciding(table.columns)
    judged = [f"{deciding.error} against the best"] if deciding and any(row.standing for row in table.rows) else []

    def cut(row: Row) -> Row:
        cells = [_show_mean(row.cells[place], table.columns[place]) for place in kept]
        counted = f"{row.n} of {own} splits" if row.n not in (own, 0, None) else ""
        standing = row.standing
        if judged and cells and all(cell.status != "ok" for cell in cells):  # said once
            standing, cells = cells[0].status, [replace(cell, text="", status="ok") for cell in cells]
        facts = (*(row.facts or ("",) * len(table.row_facts)), *([_join(standing, counted)] if judged else []))
        counted_apart = None if judged or row.n in (own, 0) else row.n
        return replace(row, names=(row.label,), cells=tuple(cells), n=counted_apart, facts=facts)

    name = shorten_names(report.tables)[table.name]
    several = len(report.tables) > 1  # then only a rule that is not beaten is shown
    trivial = [] if several and not table.unbeaten else sorted(table.trivial, key=lambda row: _order(table, row))
    return replace(
        table,
        name=name,
        details=tuple(detail for detail in table.details if not name.endswith(f", {detail}")),
        row_names=(", ".join(table.row_names[:1] + tuple(map(lower_initial, table.row_names[1:]))),),
        row_facts=(*table.row_facts, *judged),
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(map(cut, table.rows)),
        trivial=tuple(map(cut, trivial[:1])),
        answer=(),
        notes=(),
        plain=True,
    )


def _join(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _show_mean(cell: TableCell, column: Column) -> TableCell:
    """The mean alone: how far to trust it is told by how its row stands."""
    if cell.mean is None or not cell.n:
        return cell
    counted = f" {cell.text[start:]}" if (start := cell.text.find("(n = ")) >= 0 else ""
    return replace(cell, text=number(cell.mean, 4 if column.kind == "metric" else 2) + counted)


def _order(table: ReportTable, row: Row) -> float:
    """The trivial rule that is hardest to beat comes first."""
    column = find_deciding(table.columns)
    mean = None if column is None else row.cells[table.columns.index(column)].mean
    if column is None or mean is None:
        return 0.0
    return -mean if column.higher_is_better else mean


def _overview(report: Report) -> PlainTable:
    short = shorten_names(report.tables)
    rows: list[tuple[PlainCell, ...]] = []
    for table in report.tables:
        column, standings = find_deciding(table.columns), find_standings(table)
        name = f"{short[table.name]}{f' ({SUSPECT})' if SUSPECT in table.details else ''}"
        if column is None:
            rows.append((name, None, "not judged", None))
            continue
        rows.append((name, column.heading, *_stand(table, column, standings)))
    kept = range(4 if any(row[3] for row in rows) else 3)
    headings = ("Data set", "Metric", "Answer", BEHIND.capitalize())
    return PlainTable("By data set", headings[: len(kept)], tuple(tuple(row[i] for i in kept) for row in rows))


def _stand(table: ReportTable, column: Column, standings: dict[str, str]) -> tuple[str, str | None]:
    """Who is best, as good or open there, and who is behind."""
    position = table.columns.index(column)
    means = {row.label: row.cells[position].mean for row in table.rows if row.cells[position].mean is not None}
    turn = -1 if column.higher_is_better else 1
    order = sorted((name for name in means if name in standings), key=lambda name: turn * (means[name] or 0.0))
    found = {word: [name for name in order if standings[name] == word] for word in (BEST, LEVEL, OPEN, BEHIND, LOST)}
    behind = ", ".join(found[BEHIND]) or None
    if found[BEST]:
        return f"best: {found[BEST][0]}", behind
    parts = [f"any of {', '.join(found[LEVEL])}"] if found[LEVEL] else []
    if found[OPEN]:
        open_ = f"cannot say (best mean: {found[OPEN][0]})"
        parts.append(f"cannot say about {', '.join(found[OPEN])}" if found[LEVEL] else open_)
    parts += [f"{LOST}: {', '.join(found[LOST])}"] if found[LOST] else []
    return "; ".join(parts) or "no result", behind
