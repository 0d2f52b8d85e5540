"""A whole report in Markdown, in the order of the RFC's template."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boosters_eval.core.text import group_digits
from boosters_eval.reports.document import Code, Details, Listing, ListItem, Paragraph, PlainTable, shown_verdicts
from boosters_eval.reports.numbers import MISSING, number, p_value, percent
from boosters_eval.reports.text import escape, markdown_list, markdown_section, markdown_table

if TYPE_CHECKING:
    from boosters_eval.reports.document import Block, Pairs, ReportDocument, Section
    from boosters_eval.reports.model import PairVerdict, RankingTable

RANK_PAIRS = ("A", "B", "A wins / ties / loses", "p (Wilcoxon, Holm)")


def render_report(document: ReportDocument) -> str:
    """All parts that are not empty."""
    parts = [
        f"# {escape(document.title)}\n",
        _environment(document.environment),
        _configuration(document.configuration),
        _headline(document),
        "## Results\n",
        *_results(document),
        *_rankings(document),
        _tests(document),
        "## Notes\n\n" + markdown_list(document.notes) if document.notes else "",
        *map(_section, document.sections),
        "## Reproducing\n\n" + _fenced("\n".join(document.reproduce), "bash") if document.reproduce else "",
    ]
    return "\n".join(part for part in parts if part)


def _headline(document: ReportDocument) -> str:
    if not document.headline:
        return ""
    parts = ["## Answer\n", *(f"{escape(sentence)}\n" for sentence in document.headline)]
    if board := document.leaderboard:
        parts += [f"**{escape(board.name)}**\n", _block(board)]
    return "\n".join(parts)


def _environment(rows: Pairs) -> str:
    if not rows:
        return ""
    return "## Environment\n\n" + markdown_table(["Property", "Value"], [[escape(k), escape(v)] for k, v in rows])


def _configuration(rows: Pairs) -> str:
    if not rows:
        return ""
    return "## Configuration\n\n" + "  \n".join(f"**{escape(k)}**: {escape(v)}" for k, v in rows) + "\n"


def _results(document: ReportDocument) -> list[str]:
    out = []
    for name, tables in document.groups():
        out += [f"### {escape(name.upper())}\n"] if name else []
        out += [markdown_section(table, level=4 if name else 3) for table in tables]
    return out or [f"{escape(document.empty)}\n"]


def verdict_texts(item: PairVerdict) -> tuple[str, str, str]:
    """Difference (or ratio), interval and p-value as text."""
    if item.ratio is not None:
        size = f"x {number(item.ratio, 3)}"
    elif item.difference is None:
        size = MISSING
    else:
        share = "" if item.percent is None else f" ({percent(item.percent / 100)})"
        size = f"{number(item.difference, 3)}{share}"
    bounds = MISSING if item.low is None or item.high is None else f"{number(item.low, 3)} to {number(item.high, 3)}"
    return size, bounds, MISSING if item.p is None else p_value(item.p)


def verdict_headings(document: ReportDocument) -> list[str]:
    """The columns of the verdicts."""
    level = f"{100 * (1 - document.alpha):g} % interval (all pairs)"
    return [document.table_noun.capitalize(), "Metric", "A", "B", "A - B", level, "p (all pairs)", "n", "A is"]


def verdict_rows(document: ReportDocument) -> list[list[str]]:
    """The verdicts that are shown, as text."""
    return [
        [item.table, item.label, item.a, item.b, *verdict_texts(item), str(item.n), item.verdict]
        for item in shown_verdicts(document.tables)
    ]


def _tests(document: ReportDocument) -> str:
    rows = [[*map(escape, row[:4]), *row[4:-1], escape(row[-1])] for row in verdict_rows(document)]
    return "## Statistical Tests\n\n" + markdown_table(verdict_headings(document), rows) if rows else ""


def _rankings(document: ReportDocument) -> list[str]:
    if not document.rankings:
        return []
    parts = [f"## Across {escape(document.rankings[0].over).title()}\n"]
    for ranking in document.rankings:
        parts += _ranking(ranking)
    return parts


def _ranking(ranking: RankingTable) -> list[str]:
    ranks = [[escape(name), rank] for name, rank in rank_rows(ranking)]
    pairs = [[*map(escape, row[:2]), *row[2:]] for row in rank_pairs(ranking)]
    return [
        f"### {escape(ranking.title)}\n\n" + markdown_table([escape(ranking.heading), "Rank"], ranks),
        markdown_table(RANK_PAIRS, pairs),
        *(f"{escape(note)}\n" for note in ranking.notes),
    ]


def rank_rows(ranking: RankingTable) -> list[tuple[str, str]]:
    """The competitors with their ranks, as text."""
    return [(name, f"{rank:.2f}") for name, rank in ranking.ranks]


def rank_pairs(ranking: RankingTable) -> list[list[str]]:
    """The comparisons of a ranking under RANK_PAIRS, as text."""
    return [
        [p.a, p.b, f"{p.wins} / {p.ties} / {p.losses}", MISSING if p.p is None else p_value(p.p)] for p in ranking.pairs
    ]


def _section(section: Section) -> str:
    parts = [f"## {escape(section.title)}\n"]
    parts += [_details(block) if isinstance(block, Details) else _block(block) for block in section.blocks]
    return "\n".join(parts)


def _details(details: Details) -> str:
    body = "\n".join(map(_block, details.blocks))
    if details.long:
        return f"<details><summary>{escape(details.title)}</summary>\n\n{body}\n</details>\n"
    return f"### {escape(details.title)}\n\n{body}"


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return f"{escape(block.text)}\n"
        case Code():
            return _fenced(block.text)
        case PlainTable():
            rows = [[escape(plain_text(cell)) for cell in row] for row in block.rows]
            return markdown_table([*map(escape, block.headings)], rows)
        case Listing():
            return "".join(map(_item, block.items))


def _item(item: ListItem) -> str:
    mark = f"**{escape(item.mark)}**" if item.mark else ""
    return f"- {escape(item.text)}{mark}{escape(item.rest)}\n"


def plain_text(cell: str | float | None) -> str:
    """A cell of a plain table as text."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    return group_digits(cell) if isinstance(cell, int) else number(cell)


def _fenced(text: str, kind: str = "text") -> str:
    """A code block that no content can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}\n"
