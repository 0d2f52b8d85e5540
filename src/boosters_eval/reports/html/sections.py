"""The sections of the page, each an HTML string, empty if there is nothing to show."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of
from boosters_eval.reports.document import Code, Details, Listing, ListItem, Paragraph, PlainTable, shown_verdicts
from boosters_eval.reports.full_markdown import plain_text, verdict_headings, verdict_texts
from boosters_eval.reports.html.figures import series_of
from boosters_eval.reports.html.forest import forest_chart
from boosters_eval.reports.html.ranks import rank_chart
from boosters_eval.reports.html.reference import reference_chart
from boosters_eval.reports.html.strips import metric_chart
from boosters_eval.reports.html.tables import grid, notes_list, numeric, plain, result_grid, sentence, text
from boosters_eval.reports.html.tradeoff import cost_chart, ratio_chart
from boosters_eval.reports.numbers import MISSING, p_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.reports.document import Block, Fact, Pairs, ReportDocument, Section
    from boosters_eval.reports.html.figures import Figure
    from boosters_eval.reports.model import RankingTable, ReportTable


def summary(document: ReportDocument) -> str:
    """The answer, the size of the evidence, and how the competitors stand."""
    parts = []
    if document.headline:
        first, *others = document.headline
        more = f"<ul>{''.join(f'<li>{sentence(one)}</li>' for one in others)}</ul>" if others else ""
        parts.append(f'<p class="headline">{sentence(first)}</p>{more}')
    parts.append(facts(document.facts))
    if board := document.leaderboard:
        parts.append(f'<div class="card"><h4>{text(board.name)}</h4>{_block(board, "sortable")}</div>')
    return f'<div id="summary">{"".join(parts)}</div>'


def facts(found: Sequence[Fact]) -> str:
    """The size of the evidence, at a glance."""
    if not found:
        return ""
    cells = "".join(
        f"<div{' class=alarm' if fact.alarm else ''}><dt>{text(fact.label)}</dt><dd>{text(fact.value)}</dd></div>"
        for fact in found
    )
    return f'<dl class="facts">{cells}</dl>'


def results(document: ReportDocument, series: Mapping[str, int]) -> str:
    """One card per table, in groups."""
    if not document.tables:
        return f"<p>{text(document.empty)}</p>"
    named = f"Filter {document.table_noun}s"
    parts = [search_field(named, "#results .card", groups="#results .group")] if len(document.tables) > 1 else []
    for name, tables in document.groups():
        heading = f"<h3>{text(name)}</h3>" if name else ""
        cards = "".join(_card(table, series, document) for table in tables)
        parts.append(f'<div class="group">{heading}{cards}</div>')
    return "".join(parts)


def _card(table: ReportTable, series: Mapping[str, int], document: ReportDocument) -> str:
    words = " ".join([table.name, *table.keys.values(), *(row.label for row in table.rows)])
    new = table.answer not in document.headline  # with a single table, the headline is its answer
    answer = f'<p class="answer">{sentence(table.answer)}</p>' if table.answer and new else ""
    return (
        f'<article class="card" data-search="{text(words)}">'
        f"<h4>{text(table.name)}<small>{text(table.title.removeprefix(table.name).strip())}</small></h4>"
        f"{answer}{scroll(result_grid(table, kind='sortable'), table.name)}"
        f"{_charts(table, series, document.alpha)}{notes_list(table.notes)}</article>"
    )


def document_figures(document: ReportDocument) -> list[Figure]:
    """Every chart of a page, table by table, then those across all of them."""
    series = series_of(document.tables, document.rankings)
    parts = (part for table in document.tables for part in table_figures(table, series, document.alpha))
    found = [figure for part in parts for figure in part]
    return [*found, *_across_figures(document, series)]


def table_figures(
    table: ReportTable, series: Mapping[str, int], alpha: float
) -> tuple[Sequence[Figure], Sequence[Figure]]:
    """Reference against measurement, or charts of the repeats, and those that are folded."""
    if pairs := reference_chart(table):
        return [pairs], ()
    if not table.columns or not any(row.points for row in table.rows):
        return (), ()
    primary = next((i for i, column in enumerate(table.columns) if column.primary), 0)
    first = [metric_chart(table, primary, series, alpha), forest_chart(table, primary), cost_chart(table, series)]
    others = [forest_chart(table, i) for i in range(len(table.columns)) if i != primary]
    return [figure for figure in first if figure], [figure for figure in others if figure]


def _charts(table: ReportTable, series: Mapping[str, int], alpha: float) -> str:
    first, others = table_figures(table, series, alpha)
    shown = _drawn(first)
    if not others:
        return shown
    title = f"Differences in {count_of(len(others), 'other column')}"
    return f'{shown}<details class="more"><summary>{title}</summary>{_drawn(others)}</details>'


def _drawn(figures: Iterable[Figure]) -> str:
    found = "".join(figure.html() for figure in figures)
    return f'<div class="charts">{found}</div>' if found else ""


def across(document: ReportDocument, series: Mapping[str, int]) -> str:
    """The results across all tables."""
    figures = _drawn(_across_figures(document, series))
    tables = "".join(map(_ranking, document.rankings))
    return (f'<div class="card">{figures}</div>' if figures else "") + tables


def _across_figures(document: ReportDocument, series: Mapping[str, int]) -> list[Figure]:
    found = [*(rank_chart(ranking, series) for ranking in document.rankings), ratio_chart(document, series)]
    return [figure for figure in found if figure is not None]


def _ranking(ranking: RankingTable) -> str:
    rows = [
        [
            plain(pair.a),
            plain(pair.b),
            *(numeric(str(value), value) for value in (pair.wins, pair.ties, pair.losses)),
            numeric(MISSING if pair.p is None else p_value(pair.p), pair.p),
        ]
        for pair in ranking.pairs
    ]
    table = grid(["A", "B", "A wins", "Ties", "A loses", "p (Wilcoxon, Holm)"], rows, kind="sortable")
    title = ranking.title
    return f'<div class="card"><h4>{text(title)}</h4>{scroll(table, title)}{notes_list(ranking.notes)}</div>'


def tests(document: ReportDocument) -> str:
    """The verdict on every pair, on the primary metric."""
    rows = []
    for item in shown_verdicts(document.tables):
        size, bounds, p = verdict_texts(item)
        value = item.percent if item.percent is not None else item.difference
        verdict = text(item.verdict)
        rows.append(
            [
                *map(plain, (item.table, item.label, item.a, item.b)),
                numeric(size, value),
                numeric(bounds, item.low),
                numeric(p, item.p),
                numeric(str(item.n), item.n),
                f'<td title="{text(item.text)}"><span class="verdict {verdict}">{verdict}</span></td>',
            ]
        )
    if not rows:
        return ""
    table = grid(verdict_headings(document), rows, kind="sortable")
    search = search_field("Filter pairs", "#tests tbody tr") if len(rows) > 1 else ""
    return f'{search}<div class="card">{scroll(table, "Statistical tests")}</div>'


def notes(document: ReportDocument) -> str:
    """Notes that apply to more than one table."""
    return f'<div class="card">{notes_list(document.notes)}</div>' if document.notes else ""


def further(section: Section) -> str:
    """An additional section of the document; adjacent folds share a card."""
    parts: list[str] = []
    for _, blocks in groupby(section.blocks, lambda block: isinstance(block, Details)):
        found = list(blocks)
        folds = [_details(block) for block in found if isinstance(block, Details)]
        parts += [f'<div class="card">{"".join(folds)}</div>'] if folds else []
        parts += [_carded(block) for block in found if not isinstance(block, Details)]
    targets, groups = f"#{section.anchor} tbody tr", f"#{section.anchor} details"
    search = search_field(section.search, targets, groups=groups) if section.search else ""
    return search + "".join(parts) if parts else ""


def _carded(block: Block) -> str:
    """A block in a card of its own; a paragraph needs none."""
    content = _block(block, "sortable wide")
    return content if isinstance(block, Paragraph) else f'<div class="card">{content}</div>'


def _details(details: Details) -> str:
    aside = f"<small>{text(details.aside)}</small>" if details.aside else ""
    body = "".join(_block(block, "sortable params") for block in details.blocks)
    return f"<details><summary>{text(details.title)}{aside}</summary><div>{body}</div></details>"


def _block(block: Block, table_kind: str) -> str:
    match block:
        case Paragraph():
            return f"<p class=lead>{text(block.text)}</p>"
        case Code():
            return f"<pre>{text(block.text)}</pre>"
        case PlainTable():
            rows = ([_plain_cell(cell) for cell in row] for row in block.rows)
            return scroll(grid(block.headings, rows, kind=table_kind), block.name)
        case Listing():
            return f'<ul class="notes">{"".join(map(_item, block.items))}</ul>'


def _plain_cell(cell: str | float | None) -> str:
    return plain(plain_text(cell)) if cell is None or isinstance(cell, str) else numeric(plain_text(cell), cell)


def _item(item: ListItem) -> str:
    mark = f'<span class="mark">{text(item.mark)}</span>' if item.mark else ""
    return f"<li>{sentence(item.text)}{mark}{sentence(item.rest)}</li>"


def environment(pairs: Pairs) -> str:
    """The environment: the only table that differs between two renderings of the same results."""
    if not pairs:
        return ""
    rows = [[f'<th scope="row">{text(name)}</th>', plain(value)] for name, value in pairs]
    return f'<div class="card">{scroll(grid(["Property", "Value"], rows), "Environment")}</div>'


def reproduce(document: ReportDocument) -> str:
    """The commands that reproduce the results."""
    if not document.reproduce:
        return ""
    return f'<div class="card"><pre>{text(chr(10).join(document.reproduce))}</pre></div>'


def scroll(table: str, name: str) -> str:
    """A wide table scrolls inside its card, also by keyboard."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(name)}">{table}</div>'


def search_field(name: str, targets: str, groups: str = "") -> str:
    """A search field, hidden until the script makes it work."""
    return (
        f'<div class="filter" hidden><input type="search" placeholder="{text(name)}" aria-label="{text(name)}" '
        f'data-targets="{text(targets)}" data-groups="{text(groups)}"><output aria-live="polite"></output></div>'
    )
