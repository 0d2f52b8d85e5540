"""Documents as Markdown, and what GitHub shows of a job."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, clean_lines
from boosters_eval.reports import document as doc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.reports.document import Block, Document, ListItem, Section
    from boosters_eval.reports.tables import ReportTable

# A "<" before a space begins no tag, and reads better as it is.
_SPECIAL = re.compile(r"([\\`*\[\]|>&]|<(?! ))|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")
_ANNOTATIONS = 10  # GitHub shows at most this many per level and step


def render_markdown(document: Document) -> str:
    sections = sorted(document.shown("text"), key=lambda section: not section.preface)
    said = frozenset(document.answer)  # at the top, so no table says it again
    parts = [_head(document), *(part for section in sections for part in _render_section(section, said))]
    return "\n".join(part for part in parts if part) or "No results.\n"


def _head(document: Document) -> str:
    parts = [f"# {escape(document.title)}\n"] if document.title else []
    if document.answer:
        parts += ["## Answer\n"] if document.title else []
        parts += _answer(document.answer)
    if board := document.leaderboard:
        parts += [f"**{escape(board.name)}**\n", _plain_table(board)]
    return "\n".join(parts)


def _answer(lines: Iterable[str]) -> Iterator[str]:
    """Lines that are labeled, or belong to the one before, are a list; others are paragraphs."""
    for listed, members in groupby(lines, key=lambda one: one.startswith(" ") or bool(doc.split_line(one).label)):
        texts = [_line(*doc.split_line(one.strip())) for one in members]
        yield from ["".join(f"- {text}\n" for text in texts)] if listed else [f"{text}\n" for text in texts]


def _line(label: str, text: str, command: str) -> str:
    fence = "``" if "`" in command else "`"
    code = f"{fence}{clean(command)}{fence}" if command else ""
    return f"{f'**{escape(label.strip())}** ' if label else ''}{escape(text)}{code}"


def _render_section(section: Section, said: frozenset[str]) -> Iterator[str]:
    if section.title:
        yield f"## {escape(section.title)}\n"
    level = 3 if section.title else 2
    yield from (_render(block, level, said) for block in section.blocks)


def _render(block: Block, level: int, said: frozenset[str]) -> str:  # noqa: C901, PLR0911 (one case per block)
    match block:
        case doc.Paragraph():
            return f"{escape(block.text)}\n"
        case doc.Code():
            return _fence(block.text, block.language)
        case doc.PlainTable():
            return _plain_table(block)
        case doc.Listing():
            return "".join(map(_item, block.items))
        case doc.Notes():
            return markdown_list(block.texts)
        case doc.Results():
            return _results(block.table, level, said)
        case doc.Matrix():
            return _join(block.cards(), level, said)
        case doc.Details() if block.long:
            return (
                f"<details><summary>{escape(block.title)}</summary>\n\n{_join(block.blocks, level, said)}\n</details>\n"
            )
        case doc.Details() | doc.Card():
            return f"{_heading(block.title, level)}{_join(block.blocks, level + 1, said)}"
        case doc.Group():
            below = level + bool(block.title)
            return f"{_heading(block.title, level) if block.title else ''}{_join(block.blocks, below, said)}"
        case doc.Charts():
            return ""


def _join(blocks: Iterable[Block], level: int, said: frozenset[str]) -> str:
    return "\n".join(part for part in (_render(block, level, said) for block in blocks) if part)


def _heading(title: str, level: int) -> str:
    return f"{'#' * level} {escape(title)}\n\n"


def escape(text: str) -> str:
    """Text escaped for Markdown: no markup, no HTML, no broken table rows, nothing that hides."""
    html = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _SPECIAL.sub(lambda match: html.get(match[0], f"\\{match[0]}"), clean(" ".join(text.splitlines())))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table with a readable source; cells are already escaped."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(headings))]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * width for width in widths])
    return "".join(f"| {' | '.join(line)} |\n" for line in padded)


def _plain_table(table: doc.PlainTable) -> str:
    rows = [[escape(doc.show_cell(cell)) for cell in row] for row in table.rows]
    return markdown_table([*map(escape, table.headings)], rows)


def _results(table: ReportTable, level: int, said: frozenset[str]) -> str:
    rows = []
    for row in table.rows:
        cells = [f"**{escape(cell.shown)}**" if cell.best else escape(cell.shown) for cell in row.cells]
        rows.append([*map(escape, table.beginning(row)), *cells, *([row.count] if table.is_counted else [])])
    for row in table.trivial:
        cells = [*map(escape, table.beginning(row)), *(escape(cell.shown) for cell in row.cells)]
        rows.append([f"*{cells[0]}*", *cells[1:], *([row.count] if table.is_counted else [])])
    parts = [f"{'#' * level} {escape(table.title)}\n", *_answer(one for one in table.answer if one not in said)]
    parts.append(markdown_table([*map(escape, table.headings)], rows))
    if table.notes:
        parts.append("**Notes:**\n\n" + markdown_list(table.notes))
    return "\n".join(parts)


def markdown_list(notes: Sequence[str]) -> str:
    return "".join(f"- {escape(note)}\n" for note in notes)


def _item(item: ListItem) -> str:
    mark = f"**{escape(item.mark)}**" if item.mark else ""
    return f"- {escape(item.text)}{mark}{escape(item.rest)}\n"


def _fence(text: str, language: str) -> str:
    """A code block that no content can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{clean_lines(text)}\n{fence}\n"


def annotate(found: Sequence[tuple[str, str, str]]) -> list[str]:
    """GitHub's workflow commands from (error or warning, title, message); what GitHub would not show is counted."""
    out: list[str] = []
    for level in ("error", "warning"):
        mine = [(title, message) for each, title, message in found if each == level]
        room = _ANNOTATIONS if len(mine) <= _ANNOTATIONS else _ANNOTATIONS - 1
        if len(mine) > room:
            mine = [*mine[:room], ("More", f"{len(mine) - room} further findings are in the job summary")]
        out += [annotation(level, title, message) for title, message in mine]
    return out


def annotation(level: str, title: str, message: str) -> str:
    data = clean(message).replace("%", "%25")
    return f"::{level} title=boosters-eval {title}::{data}"
