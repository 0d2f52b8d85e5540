"""Markdown, with the HTML and LaTeX tables that may stand in it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from boosters_eval.core.errors import FileFormatError, MissingLibraryError
from boosters_eval.programs.paper.documents import grid
from boosters_eval.programs.paper.documents.html import read_html
from boosters_eval.programs.paper.documents.latex import MAX_TEXT, read_latex

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_LINES = 100_000
MAX_PIPES = 100_000
MAX_LINE = 100_000  # characters of a row
_MARKUP = re.compile(r"[*_`<&!\[~]|\\[!-/:-@\[-`{-~\n]")  # a backslash before a letter is TeX, not Markdown
_MATH = re.compile(r"\$[^$]+\$")
_TAGS = {"sup": "^{", "/sup": "}", "sub": "_{", "/sub": "}", "br": " ", "br/": " "}
_STRONG = {"strong": "bold", "b": "bold", "em": "italic", "i": "italic", "u": "underline", "ins": "underline"}
_FOREIGN = re.compile(
    r"^(?P<fence> {0,3}(?:```+|~~~+))|(?P<html><table\b)|\\begin\{(?P<tex>(?:wide|side|long)?table\*?|tabular[*xy]?)\}",
    re.MULTILINE | re.IGNORECASE,
)


def read_markdown(text: str, budget: grid.Budget) -> list[grid.RawBlock]:
    pipes = sum(n for line in text.split("\n") if (n := line.count("|")) <= grid.MAX_COLUMNS)
    if text.count("\n") > MAX_LINES or pipes > MAX_PIPES:
        raise FileFormatError(
            f"The document has more than {MAX_LINES} lines or {MAX_PIPES} table cells. Cut out the tables of results."
        )
    text, foreign = _cut_foreign(text, budget)
    text = _drop_wide_lines(text, budget)
    return sorted([*_read_blocks(text, budget), *foreign], key=lambda block: block.line)


def _cut_foreign(text: str, budget: grid.Budget) -> tuple[str, list[grid.RawBlock]]:
    """The text with its HTML and LaTeX tables replaced by empty lines, and what is in them."""
    kept: list[str] = []
    found: list[grid.RawBlock] = []
    position = counted = 0
    line = 1
    while match := _FOREIGN.search(text, position):
        end = _find_end(text, match)
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        part = text[match.start() : end]
        kept += [text[position : match.start()], "\n" * part.count("\n")]
        if not match["fence"] and budget.tables >= 0:
            found += read_html(part, budget, line) if match["html"] else read_latex(part, budget, line)
        position = end
    return "".join([*kept, text[position:]]), found


def _find_end(text: str, match: re.Match[str]) -> int:
    """Where a foreign part ends; an unclosed one ends with the document."""
    if match["fence"]:
        mark = match["fence"].strip()
        close = re.compile(rf"^ {{0,3}}{re.escape(mark)}{re.escape(mark[0])}*[ \t]*$", re.MULTILINE)
        eol = text.find("\n", match.end())
        found = close.search(text, eol + 1) if eol >= 0 else None
        return found.end() if found else len(text)
    name = re.escape(match["tex"]) if match["tex"] else ""
    ends = rf"(?P<open>\\begin\{{{name}\}})|\\end\{{{name}\}}" if name else r"(?P<open><table\b)|</table\s*>"
    depth = 0
    for tag in re.compile(ends, re.IGNORECASE).finditer(text, match.start()):
        depth += 1 if tag["open"] else -1
        if depth == 0:
            return tag.end()
    return len(text)


def _drop_wide_lines(text: str, budget: grid.Budget) -> str:
    """A line of a million pipes is named and left out, before it becomes a million objects."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        pipes = line.count("|") if len(line) > grid.MAX_COLUMNS else 0
        if pipes > grid.MAX_COLUMNS or (pipes and len(line) > MAX_LINE):
            wide = pipes > grid.MAX_COLUMNS
            size = (
                f"{pipes} columns: at most {grid.MAX_COLUMNS}"
                if wide
                else f"{len(line)} characters: at most {MAX_LINE}"
            )
            budget.faults.append(grid.Unread(line=number + 1, why=f"a line of {size} are read"))
            lines[number] = ""
    return "\n".join(lines)


@cache
def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingLibraryError(
            "Reading Markdown tables needs markdown-it-py: pip install 'boosters-eval[paper]'."
        ) from None

    parser = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table")
    # Tables inside lists and quotations are found without these, and no document can nest them deeply.
    return parser.disable(["code", "reference", "list", "blockquote"])


def _read_blocks(text: str, budget: grid.Budget) -> list[grid.RawBlock]:
    """The blocks alone: what is inside paragraphs is looked at only where it could be a caption."""
    parser = _parser()
    from markdown_it.rules_block import StateBlock  # noqa: PLC0415 (an extra)

    found: list[grid.RawBlock] = []
    tokens: list[Token] = []
    state = StateBlock(text, parser, {}, tokens)
    parser.block.tokenize(state, state.line, state.lineMax)
    lines = text.split("\n")
    i = 0
    while i < len(tokens):
        token = tokens[i]
        line = (token.map or [0])[0] + 1
        if token.type == "table_open":
            end = next(j for j in range(i, len(tokens)) if tokens[j].type == "table_close")
            table = _read_table(tokens[i:end], lines, budget)
            found += [table] if table else []
            i = end
        elif token.type == "heading_open":
            found.append(grid.RawHeading(tokens[i + 1].content, int(token.tag[1]), line))
        elif token.type == "paragraph_open":
            found.append(grid.RawParagraph(tokens[i + 1].content[:MAX_TEXT], line))
        i += 1
    return found


def _read_table(tokens: list[Token], lines: list[str], budget: grid.Budget) -> grid.RawTable | None:
    from markdown_it.rules_block.table import escapedSplit  # noqa: PLC0415 (an extra)

    rows: list[list[grid.RawCell]] = []
    numbers: list[int] = []
    faults: list[grid.Unread] = []
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
            numbers.append((token.map or [0])[0] + 1)
        elif token.type == "inline":
            text, emphasis = read_inline(token.content[:MAX_TEXT])
            indent = grid.measure_indent(token.content[:MAX_TEXT])
            rows[-1].append(grid.RawCell(text, emphasis, tokens[i - 1].type == "th_open", indent=indent))
        elif token.type == "tr_close":
            row = lines[numbers[-1] - 1].strip()
            if row.count("|") + 1 - row.startswith("|") - row.endswith("|") > len(rows[0]):
                cells = escapedSplit(row.removeprefix("|").removesuffix("|"))[len(rows[0]) :]
                lost = ", ".join(cell.strip() for cell in cells if cell.strip())
                faults += [grid.Unread(line=numbers[-1], why=f"more cells than columns: {lost[:80]}")] if lost else []
    return grid.make_table(rows, numbers, budget, headers=1, faults=faults)


def read_inline(content: str) -> tuple[str, str]:
    """A cell or a caption without Markdown's marks, and how it is emphasized. Formulas stay as they are."""
    content = content.strip()
    if not _MARKUP.search(content):
        return content, ""
    formulas = _MATH.findall(content)
    places = iter(range(len(formulas)))
    text, strong = _strip_marks(_MATH.sub(lambda _: f"\ue001{next(places)}\ue002", content))
    return re.sub("\ue001(\\d+)\ue002", lambda match: formulas[int(match[1])], text), strong


def _strip_marks(content: str) -> tuple[str, str]:
    parts: list[str] = []
    strong = ""
    for token in _parser().parseInline(content[:MAX_TEXT])[0].children or []:
        if token.type in {"softbreak", "hardbreak"}:
            parts.append(" ")
        elif token.type == "html_inline":
            tag = token.content.strip("<> ").split(" ")[0].lower()
            parts.append(_TAGS.get(tag, ""))
            strong = strong or _STRONG.get(tag, "")
        elif token.type in {"strong_open", "em_open"}:
            strong = "bold" if "strong" in {token.tag, strong} or strong == "bold" else _STRONG[token.tag]
        else:
            parts.append(token.content)
    return "".join(parts), strong
