"""HTML elements. Everything that comes from outside goes through `text`."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.reports.tables import ReportTable, Row, TableCell


def text(value: object) -> str:
    """A value, escaped so that the browser shows it unchanged, but for what hides or turns text around."""
    return html.escape(clean_output(str(value)), quote=True)


_OPTION = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*(?: (?:auto|\d+(?:x\d+)?)\b)?)")


def sentence(value: str) -> str:
    """A sentence in which a number stays with its sign, and an option, or what stands between backticks, is code."""
    kept = text(value).replace(" %", "\u00a0%")
    return _OPTION.sub(lambda found: f"<code>{found[1] or found[2]}</code>", kept)


def grid(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    below: Iterable[Sequence[str]] = (),
    caption: str = "",
    kind: str = "",
) -> str:
    """A table of finished cells (`<td>` or `<th>` elements) under escaped headings; the rows below are not sorted."""
    head = "".join(f'<th scope="col">{text(heading)}</th>' for heading in headings)
    body, last = ("".join(f"<tr>{''.join(row)}</tr>" for row in part) for part in (rows, below))
    foot = f"<tfoot>{last}</tfoot>" if last else ""
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    attribute = f' class="{kind}"' if kind else ""
    return f"<table{attribute}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>"


def numeric(shown: str, value: float | None) -> str:
    key = "" if value is None else f' data-value="{value!r}"'
    return f'<td class="num"{key}>{text(shown)}</td>'


def result_grid(table: ReportTable, *, caption: str = "", kind: str = "") -> str:
    rows, trivial = ((_row(table, row) for row in part) for part in (table.rows, table.trivial))
    return grid(table.headings, rows, below=trivial, caption=caption, kind=kind)


def _row(table: ReportTable, row: Row) -> list[str]:
    first, *others = table.beginning(row) or ("",)
    names = [f'<th scope="row">{text(first)}</th>', *(f"<td>{text(other)}</td>" for other in others)]
    return [*names, *map(_cell, row.cells), *([numeric(row.count, row.n)] if table.is_counted else [])]


def _cell(cell: TableCell) -> str:
    value = "" if cell.mean is None else f' data-value="{cell.mean!r}"'
    if cell.status != "ok":
        word = f'<span class="status {cell.status}">{cell.status}</span>'
        shown = word if cell.shown == cell.status else f"{text(cell.text)} {word}"
    else:
        shown = text(cell.shown)
        if cell.text in ("better", "worse"):  # a verdict on its own
            shown = f'<span class="verdict {cell.text}">{shown}</span>'
    if cell.best:
        return f'<td class="num best"{value}><strong>{shown}</strong></td>'
    return f'<td class="num"{value}>{shown}</td>'


def list_notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    return f'<ul class="notes">{"".join(f"<li>{sentence(note)}</li>" for note in notes)}</ul>'


def scroll(table: str, name: str) -> str:
    """A wide table scrolls inside its card, also by keyboard."""
    label = f'aria-label="Table: {text(name)}" data-title="{text(name)}"'
    return f'<div class="scroll" tabindex="0" role="region" {label}>{table}</div>'


def search_field(name: str, targets: str, groups: str = "") -> str:
    """A search field, hidden until the script makes it work."""
    return (
        f'<div class="filter" hidden><input type="search" placeholder="{text(name)}" aria-label="{text(name)}" '
        f'data-targets="{text(targets)}" data-groups="{text(groups)}"><output aria-live="polite"></output></div>'
    )
