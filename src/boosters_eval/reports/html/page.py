"""A document as one HTML file with embedded style, script and charts; it never requests anything.

The content security policy allows only the style sheet and the script with the given digests, so that even
unescaped text could not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean_lines, group_digits
from boosters_eval.reports import document as doc
from boosters_eval.reports.html.markup import (
    grid,
    list_notes,
    result_grid,
    scroll,
    search_field,
    sentence,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.reports.document import Block, Document, Fact, ListItem, PlainCell, Section


def render_page(document: Document) -> str:
    sections = [(section, _render_section(section, document)) for section in document.shown("page")]
    links = "".join(f'<a href="#{one.anchor}">{text(one.short or one.title)}</a>' for one, body in sections if body)
    parts = (
        f'<section id="{one.anchor}" aria-labelledby="{one.anchor}-title">'
        f'<h2 id="{one.anchor}-title">{text(one.short or one.title)}</h2>{body}</section>'
        for one, body in sections
        if body
    )
    matrix = next((block for block in document.blocks() if isinstance(block, doc.Matrix)), None)
    style = "".join(map(asset, ("page.css", "charts.css", *(("matrix.css",) if matrix else ()))))
    script = "".join(map(asset, ("page.js", *(("matrix.js",) if matrix else ()))))
    data = f'<script type="application/json" id="matrix">{_json(_pack_matrix(matrix))}</script>\n' if matrix else ""
    return _PAGE.format(
        policy=_policy(style, script),
        title=text(document.title),
        style=style,
        lead=text(document.lead),
        links=links,
        summary=_summarize(document),
        body="".join(parts),
        data=data,
        script=script,
    )


def render_fragment(document: Document) -> str:
    """The answer, the tables and a chart for a notebook: no style sheet, no script."""
    from boosters_eval.reports.html.plots import Plot  # noqa: PLC0415 (draws with this module's assets)

    answers = "".join(f"<p>{_line(one)}</p>" for one in document.answer)
    parts = [_fragment_of(block, document) for section in document.shown("text") for block in section.blocks]
    figures = document.figures()[:1]
    return f"<div>{answers}{''.join(parts)}{Plot(tuple(figures))._repr_html_() if figures else ''}</div>"


def _fragment_of(block: Block, document: Document) -> str:
    match block:
        case doc.Results():
            table = block.table
            said = "".join(f"<p>{_line(one)}</p>" for one in table.answer if one not in document.answer)
            return said + result_grid(table, caption=table.title) + list_notes(table.notes)
        case doc.Card() | doc.Group():
            return "".join(_fragment_of(part, document) for part in block.blocks)
        case doc.PlainTable():
            return _table(block, caption=block.name)
        case doc.Notes():
            return list_notes(block.texts)
        case doc.Details():
            folded = "".join(_fragment_of(part, document) for part in block.blocks)
            return f"<details><summary>{text(block.title)}</summary>{folded}</details>" if folded else ""
        case _:
            return ""


def _line(line: str) -> str:
    """A line of an answer: what it tells is bold, and its command is code."""
    label, said, command = doc.split_line(line)
    strong = f"<strong>{text(label.strip())}</strong> " if label else ""
    words = " ".join(f"<span>{text(word)}</span>" for word in command.split())  # which no line break parts
    code = f'<code class="command">{words}</code>' if command else ""
    return f"{strong}{sentence(said)}{code}"


def _summarize(document: Document) -> str:
    """The answer, the size of the evidence, and how the competitors stand."""
    parts = []
    if document.answer:
        which = [one for one in document.answer if doc.split_line(one).label.startswith("Which")]
        first = which or document.answer[:1]
        others = [one for one in document.answer if one not in first]
        more = f"<ul>{''.join(f'<li>{_line(one)}</li>' for one in others)}</ul>" if others else ""
        parts.append("".join(f'<p class="headline">{_line(one)}</p>' for one in first) + more)
    if any(section.anchor == "notes" for section in document.shown("page")):
        parts.append('<p class="lead"><a href="#notes">How this was judged and measured</a></p>')
    if document.facts:
        parts.append(f'<dl class="facts">{"".join(map(_fact, document.facts))}</dl>')
    if board := document.leaderboard:
        table = scroll(_table(board, "sortable"), board.name)
        parts.append(f'<div class="card"><h2 class="title">{text(board.name)}</h2>{table}</div>')
    return f'<div id="summary">{"".join(parts)}</div>'


def _fact(fact: Fact) -> str:
    alarm = " class=alarm" if fact.alarm else ""
    return f"<div{alarm}><dt>{text(fact.label)}</dt><dd>{text(fact.value)}</dd></div>"


def _render_section(section: Section, document: Document) -> str:
    """The blocks; adjacent folds share a card."""
    parts: list[str] = []
    for folded, blocks in groupby(section.blocks, lambda block: isinstance(block, doc.Details)):
        shown = [_render(block, document) for block in blocks]
        parts += [f'<div class="card">{"".join(shown)}</div>'] if folded else shown
    body = "".join(parts)
    if not body or not section.search:
        return body
    here = f"#{section.anchor}"
    carded = any(isinstance(block, (doc.Card, doc.Group, doc.Results)) for block in section.blocks)
    targets, groups = (f"{here} .card", f"{here} .group") if carded else (f"{here} tbody tr", f"{here} details")
    return search_field(section.search, targets, groups=groups) + body


def _render(block: Block, document: Document, *, inside: bool = False) -> str:  # noqa: C901, PLR0911 (one case per block)
    """A block; one that is not inside another has a card of its own, unless it is a paragraph."""
    match block:
        case doc.Paragraph():
            return f"<p class=lead>{sentence(block.text)}</p>"
        case doc.Group():
            heading = f"<h3>{text(block.title)}</h3>" if block.title else ""
            return f'<div class="group">{heading}{"".join(_render(part, document) for part in block.blocks)}</div>'
        case doc.Card():
            return _card(block.title, block.aside, block.words, _inner(block.blocks, document))
        case doc.Results():
            return _results(block, document)
        case doc.Details():
            aside = f"<small>{text(block.aside)}</small>" if block.aside else ""
            body = _inner(block.blocks, document)
            return f"<details><summary>{text(block.title)}{aside}</summary><div>{body}</div></details>"
        case doc.Matrix():
            return _matrix(block)
        case doc.PlainTable():
            kind = "narrow" if block.measured else "params" if inside else "wide"
            content = scroll(_table(block, f"sortable {kind}"), block.name)
        case doc.Code():
            content = f'<pre tabindex="0">{text(block.text)}</pre>'
        case doc.Listing():
            content = f'<ul class="notes">{"".join(map(_item, block.items))}</ul>'
        case doc.Notes():
            content = list_notes(block.texts)
        case doc.Charts():
            content = _draw(block)
    return content if inside or not content else f'<div class="card">{content}</div>'


def _inner(blocks: Sequence[Block], document: Document) -> str:
    return "".join(_render(block, document, inside=True) for block in blocks)


def _card(title: str, aside: str, words: str, body: str) -> str:
    small = f"<small>{text(aside)}</small>" if aside else ""
    search = f' data-search="{text(f"{title} {aside} {words}")}"' if words else ""
    return f'<article class="card"{search}><h3 class="title">{text(title)}{small}</h3>{body}</article>'


def _results(block: doc.Results, document: Document) -> str:
    table = block.table
    words = " ".join([*table.keys.values(), *(row.label for row in table.rows)])
    new = (one for one in table.answer if one not in document.answer)  # a single table has the document's answer
    answer = "".join(f'<p class="answer">{_line(one)}</p>' for one in new)
    more = _draw(block.more) if block.more else ""
    fold = f'<details class="more"><summary>{text(block.more_title)}</summary>{more}</details>' if more else ""
    grid = scroll(result_grid(table, kind="sortable"), table.name)
    charts = _draw(block.charts) if block.charts else ""
    aside = table.title.removeprefix(table.name).strip()
    return _card(table.name, aside, words, f"{answer}{grid}{charts}{fold}{list_notes(table.notes)}")


def _draw(charts: doc.Charts) -> str:
    drawn = "".join(figure.html() for figure in charts.draw())
    return f'<div class="charts">{drawn}</div>' if drawn else ""


def _table(table: doc.PlainTable, kind: str = "", *, caption: str = "") -> str:
    """The first cell of a row is its name, for those who hear a table rather than see it."""
    rows = ([_cell(cell, name=not place) for place, cell in enumerate(row)] for row in table.rows)
    return grid(table.headings, rows, kind=kind, caption=caption)


def _cell(cell: PlainCell, *, name: bool) -> str:
    shown, mark, title = text(doc.show_cell(cell)), "", ""
    value = cell if isinstance(cell, (int, float)) else None
    if isinstance(cell, doc.MarkedCell):
        value = cell.value
        title = f' title="{text(cell.title)}"' if cell.title else ""
        if cell.kind or cell.title:
            shown = f'<span class="verdict {text(cell.kind)}">{shown}</span>'
        else:
            mark = ' class="num"'
    elif value is not None:
        mark = ' class="num"'
    key = "" if value is None else f' data-value="{value!r}"'
    return f'<th scope="row"{title}{key}>{shown}</th>' if name else f"<td{mark}{title}{key}>{shown}</td>"


def _item(item: ListItem) -> str:
    mark = f'<span class="mark">{text(item.mark)}</span>' if item.mark else ""
    return f"<li>{sentence(item.text)}{mark}{sentence(item.rest)}</li>"


def _matrix(block: doc.Matrix) -> str:
    """What the script fills: a search field, a button for each status, the drawings, and a panel for one cell."""
    chips = "".join(
        f'<li><button type="button" class="chip v-{text(one.tone)}" data-word="{text(one.word)}" aria-pressed="false" '
        f'title="{text(one.meaning)}">{text(one.word)} <b>{group_digits(one.n)}</b></button></li>'
        for one in block.statuses
        if one.n
    )
    return (
        "<noscript><p>The script of this page draws the matrices. Without scripts, all cells are in the Markdown and"
        " JSON renderings of the same results.</p></noscript>"
        f'<div id="controls" hidden><label class="find">{text(block.search)} <input type="search" id="find"></label>'
        f'<ul class="chips" aria-label="Highlight a result">{chips}</ul></div>'
        '<div id="drawn"></div><dialog id="panel" aria-labelledby="panel-title"></dialog>'
    )


def _pack_matrix(matrix: doc.Matrix) -> dict[str, object]:
    """The data of the script: each text is there once, and cells refer to it by number."""
    texts: dict[str, int] = {"": 0}
    words = {status.word: place for place, status in enumerate(matrix.statuses)}

    def number_of(found: str) -> int:
        return texts.setdefault(found, len(texts))

    def pack(cell: doc.MatrixCell) -> tuple[object, ...]:
        facts = [
            [number_of(heading), [(number_of(name), number_of(value)) for name, value in pairs]]
            for heading, pairs in cell.facts
        ]
        shown = map(number_of, (cell.shown, cell.aside, cell.warning, cell.sentence, cell.output))
        parts = list(map(number_of, cell.command))
        return (words[cell.status], *shown, facts, parts, [float(f"{one:.4g}") for one in cell.samples], cell.level)

    groups = [
        {
            "name": clean_lines(group.name),
            "items": list(map(clean_lines, group.items)),
            "choices": group.choices,
            "about": clean_lines(group.about),
            "reference": clean_lines(group.reference),
            "cells": list(map(pack, group.cells)),
        }
        for group in matrix.groups()
    ]
    statuses = [(one.word, one.mark, one.meaning, one.tone) for one in matrix.statuses]
    plain = {"nouns": matrix.nouns, "absent": words[matrix.absent], "axis": matrix.samples}
    shared = {"matrices": matrix.shared, "groups": groups, "texts": list(map(clean_lines, texts))}
    return {**plain, "statuses": statuses, **shared}


def _json(data: object) -> str:
    """Compact JSON that cannot end the element that it stands in."""
    content = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        content = content.replace(char, f"\\u{ord(char):04x}")
    return content


def _policy(style: str, script: str) -> str:
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><div><div><h1>{title}</h1><p class="lead">{lead}</p></div>
<button id="theme" type="button" hidden></button></div></header>
<nav aria-label="Sections"><div>{links}</div></nav>
<main>
{summary}
{body}
</main>
<footer>Made by boosters-eval. This file is complete: it loads nothing from anywhere.</footer>
{data}<script>{script}</script>
</body>
</html>
"""
