"""The tables as HTML. Everything that comes from outside goes through `text`."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.reports.model import Cell, Report, Row, Table


def text(value: object) -> str:
    """A value that the browser shows as it is."""
    return html.escape(str(value), quote=True)


def grid(headings: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "", kind: str = "") -> str:
    """A table of finished cells (`<td>` or `<th>` elements) under escaped headings."""
    head = "".join(f'<th scope="col">{text(heading)}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    attribute = f' class="{kind}"' if kind else ""
    return f"<table{attribute}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plain(value: object) -> str:
    """A cell of text."""
    return f"<td>{text(value)}</td>"


def numeric(shown: str, value: float | None) -> str:
    """A cell that is sorted by its number, not by its text."""
    key = "" if value is None else f' data-value="{value!r}"'
    return f'<td class="num"{key}>{text(shown)}</td>'


def result_grid(table: Table, *, caption: str = "", kind: str = "") -> str:
    """One benchmark's table."""
    headings = ["Library", *(["Variant"] if table.has_variants else [])]
    headings += [*(column.heading for column in table.columns), "n"]
    return grid(headings, (_row(table, row) for row in table.rows), caption=caption, kind=kind)


def render_fragment(report: Report) -> str:
    """Tables and notes for a notebook: no style sheet, no script."""
    parts = [result_grid(table, caption=table.title) + notes_list(table.notes) for table in report.tables]
    return f"<div>{''.join(parts)}{notes_list(report.notes)}</div>"


def notes_list(notes: Sequence[str]) -> str:
    """Notes as a list, or nothing."""
    if not notes:
        return ""
    return f'<ul class="notes">{"".join(f"<li>{text(note)}</li>" for note in notes)}</ul>'


def _row(table: Table, row: Row) -> list[str]:
    names = [f'<th scope="row">{text(row.library)}</th>']
    if table.has_variants:
        names.append(plain(row.variant or ""))
    shown = f"{row.n} ({row.failed} failed)" if row.failed else str(row.n)
    return [*names, *map(_cell, row.cells), numeric(shown, row.n)]


def _cell(cell: Cell) -> str:
    if not cell.best:
        return numeric(cell.text, cell.mean)
    return f'<td class="num best" data-value="{cell.mean!r}"><strong>{text(cell.text)}</strong></td>'
