"""Tables for papers: LaTeX with booktabs, each with its answer as the caption."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boosters_eval.reports.document import Document, Notes, PlainTable, Results, show_cell, split_line, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.reports.tables import ReportTable, Row, TableCell

_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{char: f"${char}$" for char in "<>|"},
    "±": r"$\pm$", "\u00d7": r"$\times$", "\u2212": "$-$", "\u2013": "--", "\u2014": "---", "…": r"\ldots{}",
    "²": "$^2$", "³": "$^3$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "←": r"$\leftarrow$", "→": r"$\rightarrow$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "✓": r"$\surd$", "✗": r"$\times$", "▲": r"$\uparrow$", "⚠": "!",
    "δ": r"$\delta$", "\u03b1": r"$\alpha$", "µ": r"$\mu$",
    "\u2018": "`", "\u2019": "'", "\u201c": "``", "\u201d": "''",
    "\n": " ",
}  # fmt: skip
_LATIN = 0xFF  # the last character that pdfLaTeX knows
_COSTS = ("time", "memory")
_ABREAST = 4  # columns of values side by side


def render_latex(document: Document) -> str:
    """The tables of measurements, or the plain ones if there are none, with the notes, to be included in a paper."""
    blocks = [block for section in document.shown("text") if not section.detail for block in walk(section.blocks)]
    parts = [_results(block.table) for block in blocks if isinstance(block, Results)]
    parts = parts or [_plain(block) for block in blocks if isinstance(block, PlainTable) and block.rows]
    if not parts:
        return "% No results.\n"
    parts += [_notes("\\paragraph{Notes}", block.texts) for block in blocks if isinstance(block, Notes)]
    body = "\n".join(parts)
    return f"{_needs(body)}\n{body}"


def _needs(body: str) -> str:
    lines = ["% \\usepackage{booktabs}"]
    foreign = sorted({char for char in body if ord(char) > _LATIN})
    if foreign:
        lines.append(f"% XeLaTeX or LuaLaTeX, and a font with {' '.join(foreign)}")
    return "".join(f"{line}\n" for line in lines)


def _results(table: ReportTable) -> str:
    said = split_line(table.answer[0]).text if table.answer else ""
    caption = ". ".join(part.rstrip(".") for part in (table.title, f"{said[:1].upper()}{said[1:]}") if part)
    parts = "  \\medskip\n\n".join(_measured(table, positions) for positions in _parts(table))
    notes = _notes(f"\\paragraph{{{escape_latex(table.name)}}}", table.notes) if table.notes else ""
    return _float(caption, table.name, parts) + notes


def _plain(table: PlainTable) -> str:
    rows = [_line(escape_latex(show_cell(cell)) for cell in row) for row in table.rows]
    return _float(table.name, table.name, _tabular("l" * len(table.headings), table.headings, rows))


def _float(caption: str, name: str, body: str) -> str:
    head = f"  \\caption{{{escape_latex(caption)}.}}\n  \\label{{tab:{_label(name)}}}\n"
    return f"\\begin{{table}}\n  \\centering\n{head}{body}\\end{{table}}\n"


def _parts(table: ReportTable) -> list[list[int]]:
    """The columns that stand side by side: what is measured first, then what it costs, no more than fit a page."""
    every = range(len(table.columns))
    kinds = [[i for i in every if (table.columns[i].kind in _COSTS) is costs] for costs in (False, True)]
    return [kind[start : start + _ABREAST] for kind in kinds for start in range(0, len(kind), _ABREAST)] or [[]]


def _measured(table: ReportTable, positions: Sequence[int]) -> str:
    first = (*table.row_names, *table.row_facts)
    counted = table.is_counted and positions[-1:] == _parts(table)[-1][-1:]
    headings = [*first, *(table.columns[i].heading for i in positions), *(["n"] if counted else [])]

    def line(row: Row) -> str:
        cells = (_cell(row.cells[i]) for i in positions)
        return _line([*map(escape_latex, table.beginning(row)), *cells, *([row.count] if counted else [])])

    rule = [r"    \midrule"] if table.trivial else []
    lines = [*map(line, table.rows), *rule, *map(line, table.trivial)]
    return _tabular("l" * len(first) + "r" * (len(headings) - len(first)), headings, lines)


def _tabular(columns: str, headings: Iterable[str], rows: Sequence[str]) -> str:
    lines = [
        f"  \\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        _line(map(escape_latex, headings)),
        r"    \midrule",
        *rows,
        r"    \bottomrule",
        r"  \end{tabular}",
    ]
    return "".join(f"{text}\n" for text in lines)


def _cell(cell: TableCell) -> str:
    shown = escape_latex(cell.shown)
    return f"\\textbf{{{shown}}}" if cell.best else shown


def _line(cells: Iterable[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _notes(heading: str, notes: Sequence[str]) -> str:
    items = "".join(f"  \\item {escape_latex(note)}\n" for note in notes)
    return f"{heading}\n\\begin{{itemize}}\n{items}\\end{{itemize}}\n"


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "results"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is: no command, no comment, no column."""
    plain = "".join(char for char in text if char.isprintable() or char == "\n")
    parts = ("".join(_CHARACTERS.get(char, char) for char in part) for part in plain.split("--"))
    return "-{}-".join(parts)  # two hyphens would become a dash
