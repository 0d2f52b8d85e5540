"""LaTeX tables: in a source of their own, or left over in Markdown by a conversion."""

from __future__ import annotations

import bisect
import itertools
import re
from dataclasses import replace
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import MissingLibraryError
from boosters_eval.programs.paper.documents import grid

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT = 4_000  # characters of one cell or caption; nothing printed on a page is longer
_EMPHASIS = {
    "bold": re.compile(r"\\(?:textbf|mathbf|boldsymbol|bm|bfseries|bf|best)\b"),
    "underline": re.compile(r"\\(?:underline|uline|second)\b"),
    "italic": re.compile(r"\\(?:emph|textit|mathit)\b"),
}
_WRAPPERS = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|sl|md|up|normal)?|math(?:bf|it|rm|sf|tt|cal|bb|normal)|boldsymbol|bm|underline|uline"
    r"|emph|mbox|hbox|makebox|ensuremath|operatorname\*?|makecell(?:\[[^\]]*\])?|shortstack(?:\[[^\]]*\])?|thead|num"
    r"|resizebox\{[^}]*\}\{[^}]*\}|rotatebox(?:\[[^\]]*\])?\{[^}]*\}|textcolor(?:\[[^\]]*\])?\{[^}]*\})(?![A-Za-z])\s*"
)
_QUANTITY = re.compile(r"\\(?:SI|qty)\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_SILENT = re.compile(
    r"\\(?:definecolor(?:\[[^\]]*\])?\{[^}]*\}\{[^}]*\}\{[^}]*\}"
    r"|(?:color|cellcolor|rowcolor)(?:\[[^\]]*\])?\{[^}]*\}|(?:hspace|vspace)\*?\{[^}]*\}|[hv]?phantom\{[^{}]*\}"
    r"|(?:cite[a-z]*|footnotemark|footnote|label|ref)\*?(?:\[[^\]]*\])*\{[^{}]*\}"
    r"|(?:bf|bfseries|it|itshape|em|rm|sf|tt|sc|tiny|scriptsize|scriptstyle|scriptscriptstyle|displaystyle|textstyle"
    r"|footnotesize|small|normalsize|large|Large|centering|raggedright|raggedleft|hfill|hfil|relax|protect|strut|noindent"
    r"|left|right|big|Big|limits|hline|toprule|midrule|bottomrule|leavevmode|unskip|xspace|boldmath)(?![A-Za-z]))\s*"
)
_SYMBOLS = {
    "pm": "±", "textpm": "±", "times": "×", "cdot": "·", "uparrow": "↑", "downarrow": "↓", "dagger": "†", "dag": "†",
    "ddagger": "‡", "ddag": "‡", "ast": "*", "star": "*", "S": "§", "sim": "~", "approx": "≈", "le": "≤", "leq": "≤",
    "ge": "≥", "geq": "≥", "lt": "<", "gt": ">", "infty": "∞", "checkmark": "✓", "textendash": "–", "textemdash": "—",
    "mu": "µ", "quad": " ", "qquad": " ", "newline": " ", "tabularnewline": " ", "textasciitilde": "~",
}  # fmt: skip
_NAMED = re.compile(r"\\(" + "|".join(sorted(_SYMBOLS, key=len, reverse=True)) + r")(?![A-Za-z])\s*")
_SCRIPTS = re.compile(r"\\text(super|sub)script\s*(?=\{)")
_ESCAPED = re.compile(r"\\([%&#_$])")
_THIN = re.compile(r"\\[,!;:>]|\\thinspace(?![A-Za-z])")
_MACRO = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])\s*(?:\{[^{}\\]{0,40}\}|(?<=[\"'`^~=.])\s*\\?[A-Za-z])?")

_COMMENT = re.compile(r"(\\.)|%[^\n]*", re.DOTALL)
_FLOATS = r"(?:wide|side|sideways)?table\*?"
_TABULARS = r"tabular[*xy]?|longtable|NiceTabular\*?|tabu|tblr|array"
_PART = re.compile(
    rf"\\begin\{{(?P<float>{_FLOATS})\}}|\\(?P<end>end)\{{(?:{_FLOATS})\}}"
    rf"|\\begin\{{(?P<tabular>{_TABULARS})\}}|\\caption\*?(?:\[[^\]]*\])?\s*(?P<caption>\{{)"
    r"|\\(?P<section>(?:sub)*section|chapter|paragraph)\*?\s*(?P<title>\{)|(?P<gap>\n[ \t]*\n)"
)
_TOKEN = re.compile(
    r"\\begin\{[A-Za-z*]+\}|\\end\{[A-Za-z*]+\}|\\(?:\\|tabularnewline(?![A-Za-z])|cr(?![A-Za-z]))\*?(?:\[[^\]\n]*\])?"
    r"|\\[&{}]|[{}&]"
)
_RULE = re.compile(
    r"\\(?:toprule|midrule|bottomrule|hline|Xhline\{[^}]*\}|cmidrule\s*(?:\[[^\]]*\])?\s*(?:\([^)]*\))?\s*\{[^}]*\}|cline\s*\{[^}]*\}"
    r"|specialrule\{[^}]*\}\{[^}]*\}\{[^}]*\}|addlinespace(?:\[[^\]]*\])?|noalign\{[^}]*\}|arrayrulecolor(?:\[[^\]]*\])?\{[^}]*\}"
    r"|rowcolors?(?:\[[^\]]*\])?\{[^}]*\}|endfirsthead|endhead|endfoot|endlastfoot|hdashline|morecmidrules|heavyrulewidth"
    r"|midrule\[[^\]]*\])(?![A-Za-z])"
)
_RULES = re.compile(rf"^(?:\s|{_RULE.pattern})+")
_BREAK = re.compile(r"\\(?:midrule|hline|endfirsthead|endhead)(?![A-Za-z])")
_DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand)\*?\s*\{?\\([A-Za-z]+)\}?\s*(?:\[(\d)\])?\s*(?=\{)"
    r"|\\def\s*\\([A-Za-z]+)\s*((?:#\d)*)\s*(?=\{)"
)
_INNER = re.compile(r"\\begin\{tabular\}(?:\[[^\]]*\])?\{(?:[^{}]|\{[^{}]*\})*\}|\\end\{tabular\}")
_LABEL = re.compile(r"\\label\{[^}]*\}")
_SPECIFIED = re.compile(r"\s*(?:\[[^\]]*\]\s*)?")
MAX_MACROS = 300
MAX_BODY = 400  # characters of a macro
MAX_EXPANSIONS = 20_000  # in one document
Macros = dict[str, tuple[int, str]]


def find_emphasis(text: str) -> str:
    """Whether a text is bold, underlined or in italics."""
    return next((kind for kind, marks in _EMPHASIS.items() if marks.search(text)), "")


@lru_cache(maxsize=20_000)
def strip_tex(text: str) -> str:
    """The text that TeX would print. A macro that is not known stays as ⟨name⟩, so that no number can hide it."""
    if not set(text) & set("\\$^{"):
        return text
    text = text[:MAX_TEXT].replace("~", " ").replace("\\\\", " ")
    text = _QUANTITY.sub(r"\1 \2", text)
    text = _SCRIPTS.sub(lambda match: "^" if match[1] == "super" else "_", text)
    text = _SILENT.sub(" ", _WRAPPERS.sub("", text))
    text = _THIN.sub("\u2009", _NAMED.sub(lambda match: _SYMBOLS[match[1]], text))
    if text.count("$") - text.count("\\$") != 1:  # a single one is a currency
        text = re.sub(r"(?<!\\)\$", "", text)
    text = _ESCAPED.sub(lambda match: "\ue000" if match[1] == "_" else match[1], text.replace("\\ ", " "))
    # What is left for the library: accents, letters, symbols. Without it they stay, and are no numbers.
    # It would drop the braces of scripts and groups, which are handled here.
    if "\\" in text and find_spec("pylatexenc") is not None:
        text = _MACRO.sub(_convert, text)
    return _drop_braces(text).replace("\ue000", "_").strip()


def _convert(match: re.Match[str]) -> str:
    name = re.match(r"\\([A-Za-z]+|.)", match[0], re.DOTALL)
    assert name is not None  # noqa: S101 (for the type checker)
    if name[1] in "{}":
        return " "
    library, known = _load_library()
    if name[1] not in known:
        return f"⟨{name[1]}⟩{match[0][name.end() :]}"
    try:
        return str(library.latex_to_text(match[0]))
    except Exception:  # noqa: BLE001 (whatever a library makes of text from outside, the cell is simply not read)
        return f"⟨{name[1]}⟩"


@cache
def _load_library() -> tuple[Any, frozenset[str]]:
    """What converts macros, and those that it knows."""
    from pylatexenc.latex2text import LatexNodes2Text, get_default_latex_context_db  # noqa: PLC0415 (an extra)

    known = frozenset(spec.macroname for spec in get_default_latex_context_db().iter_macro_specs())
    return LatexNodes2Text(math_mode="text", strict_latex_spaces=False), known


def _drop_braces(text: str) -> str:
    """Groups print nothing of their own; those of scripts are kept, and a script without braces gets them."""
    if not set(text) & {"{", "}", "^", "_"}:
        return text
    found: list[str] = []
    kinds: list[bool] = []  # of the open groups: whether it is a script
    script = False
    for char in text:
        if char == "{":
            kinds.append(script)
            found.append("{" if script else "")
        elif char == "}":
            found.append("}" if kinds and kinds.pop() else "")
        else:
            bare = script and char not in "^_" and not char.isspace()
            found.append(f"{{{char}}}" if bare else char)
        script = char in "^_" or (script and char.isspace())
    return "".join(found) + "}" * sum(kinds)


def read_latex(text: str, budget: grid.Budget, line: int = 1) -> list[grid.RawBlock]:
    """The headings, paragraphs and tables, in their order. Floats with a caption are numbered as LaTeX numbers them."""
    if find_spec("pylatexenc") is None:
        raise MissingLibraryError("Reading LaTeX tables needs pylatexenc: pip install 'boosters-eval[paper]'.")
    return _Source(_COMMENT.sub(r"\1", text), budget, line).blocks()


def read_latex_title(text: str) -> str:
    match = re.search(r"\\title\s*(?:\[[^\]]*\])?\s*\{", text)
    return " ".join(strip_tex(text[match.end() : _find_closing(text, match.end() - 1)]).split()) if match else ""


class _Source:
    def __init__(self, text: str, budget: grid.Budget, line: int) -> None:
        self.text = text
        self.budget = budget
        self.first = line
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        before, begin, _ = text.partition("\\begin{document}")
        self.start = len(before + begin) if begin else 0
        self.numbered = bool(begin)  # a fragment does not know its numbers
        self.macros = _find_macros(text)
        self.count = 0
        self.expansions = 0
        self.caption = ""  # that of a longtable, which stands in its first row

    def line(self, position: int) -> int:
        return self.first + bisect.bisect_left(self.newlines, position)

    def blocks(self) -> list[grid.RawBlock]:
        found: list[grid.RawBlock] = []
        pending: list[grid.RawTable] = []  # of the float that is open
        caption = ""
        is_open = False
        position = last = self.start
        while match := _PART.search(self.text, position):
            position = match.end()
            if not is_open:
                found += self._read_paragraph(last, match.start())
            if match["float"]:
                is_open, pending, caption = True, [], ""
            elif match["end"]:
                found += self._add_caption(pending, caption)
                is_open, pending, caption = False, [], ""
            elif match["tabular"]:
                table, position = self._read_tabular(match)
                (pending if is_open else found).extend(table)
            elif match["caption"]:
                end = _find_closing(self.text, match.end() - 1)
                caption, position = self.text[match.end() : end], end + 1
            elif match["section"]:
                end = _find_closing(self.text, match.end() - 1)
                level = 2 + match["section"].count("sub")
                title = self.text[match.end() : min(end, match.end() + 300)]
                found.append(grid.RawHeading(title, level, self.line(match.start())))
                position = end + 1
            last = position
        if not is_open:
            found += self._read_paragraph(last, len(self.text))
        return [*found, *self._add_caption(pending, caption)]

    def _read_paragraph(self, start: int, end: int) -> Iterator[grid.RawBlock]:
        if self.text[start : min(end, start + 200)].strip():
            yield grid.RawParagraph(self.text[start : min(end, start + MAX_TEXT)].strip(), self.line(start))

    def _add_caption(self, tables: list[grid.RawTable], caption: str) -> list[grid.RawTable]:
        """The tables of a float share its caption and its number."""
        text = " ".join(strip_tex(self._expand(caption[:MAX_TEXT])).split())
        self.count += bool(caption)
        number = str(self.count) if self.numbered and caption else ""
        return [replace(table, caption=table.caption or text, number=number) for table in tables]

    def _read_tabular(self, match: re.Match[str]) -> tuple[list[grid.RawTable], int]:
        name = match["tabular"]
        has_width = name in {"tabular*", "tabularx", "tabulary", "NiceTabular*"}
        start = _skip_arguments(self.text, match.end(), 2 if has_width else 1)
        rows, lines, headers, end = self._read_rows(start)
        if name == "array":  # a formula, not a table
            return [], end
        table = grid.make_table(rows, lines, self.budget, headers=headers)
        caption, self.caption = self.caption, ""
        found = [table] if table else []
        return self._add_caption(found, caption) if caption else found, end

    def _read_rows(self, start: int) -> tuple[list[list[grid.RawCell]], list[int], int | None, int]:
        r"""Cells are parted by & and rows by \\, where no group or environment is open."""
        rows: list[list[grid.RawCell]] = [[]]
        lines = [self.line(start)]
        headers: int | None = None
        depth = opened = 0
        cell = start
        end = len(self.text)
        for token in _TOKEN.finditer(self.text, start):
            what = token[0]
            if what.startswith("\\end") and not opened:
                end = token.end()
                break
            opened += what.startswith("\\begin") - what.startswith("\\end")
            depth = max(0, depth + (what == "{") - (what == "}"))
            is_row = what.startswith(("\\\\", "\\tabularnewline", "\\cr"))
            if depth or opened or not (is_row or what == "&"):
                continue
            source = self.text[cell : token.start()]
            if not rows[-1]:
                lines[-1] = self.line(cell + len(source) - len(_RULES.sub("", source, count=1)))
                if headers is None and len(rows) > 1 and _BREAK.search(source):
                    headers = len(rows) - 1
            rows[-1].append(self._read_cell(source))
            cell = token.end()
            if is_row:
                rows.append([])
                lines.append(self.line(cell))
            if len(rows) > grid.MAX_ROWS or len(rows[-1]) > grid.MAX_COLUMNS:
                return self._give_up(
                    lines, f"more than {grid.MAX_ROWS} rows or {grid.MAX_COLUMNS} columns: the rest is not read"
                )
        else:
            return self._give_up(lines, "a table that does not end: nothing behind its beginning is read")
        last = self._read_cell(self.text[cell : token.start()])
        if rows[-1] or last.text:
            rows[-1].append(last)
        kept = [(row, line) for row, line in zip(rows, lines, strict=True) if any(each.text for each in row)]
        dropped = sum(not any(each.text for each in row) for row in rows[:headers]) if headers else 0
        spanned = _repeat_below([row for row, _ in kept])
        return spanned, [line for _, line in kept], (headers - dropped or None) if headers else None, end

    def _give_up(self, lines: list[int], why: str) -> tuple[list[list[grid.RawCell]], list[int], None, int]:
        self.budget.faults.append(grid.Unread(line=lines[0], why=why))
        return [], lines, None, len(self.text)

    def _read_cell(self, source: str) -> grid.RawCell:
        text = source[: 2 * MAX_TEXT]
        caption = re.search(r"\\caption\*?(?:\[[^\]]*\])?\s*\{", text)
        if caption:
            end = _find_closing(text, caption.end() - 1)
            self.caption, text = text[caption.end() : end], text[: caption.start()] + text[end + 1 :]
        text = _LABEL.sub("", _INNER.sub("", _RULE.sub("", self._expand(text)))).strip()
        columns, rows = 1, 1
        for _ in range(2):  # one may be inside the other
            match = re.match(r"\\(multicolumn|multirow)\s*(?:\[[^\]]*\])?\s*\{\s*(-?\d{1,6}|[^}]*)\s*\}", text)
            if match is None:
                break
            number = int(match[2]) if re.fullmatch(r"-?\d+", match[2]) else 1
            if match[1] == "multicolumn":
                columns = abs(number)
            else:
                rows = number  # a negative one reaches up, over cells that are read already
            opening = _skip_arguments(text, match.end(), 1)
            closing = _find_closing(text, opening)
            text = (text[opening + 1 : closing] + text[closing + 1 :]).strip()
        columns, rows = min(max(columns, 1), grid.MAX_COLUMNS + 1), min(max(rows, 1), grid.MAX_ROWS)
        return grid.RawCell(text, find_emphasis(text), columns=columns, rows=rows, indent=grid.measure_indent(text))

    def _expand(self, text: str) -> str:
        """The text with the document's own macros replaced, a few levels deep and never very long."""
        if not self.macros or "\\" not in text:
            return text
        for _ in range(5):
            expanded = self._expand_once(text)
            if expanded == text or len(expanded) > MAX_TEXT or self.expansions > MAX_EXPANSIONS:
                break
            text = expanded
        return text

    def _expand_once(self, text: str) -> str:
        parts: list[str] = []
        position = 0
        for match in re.finditer(r"\\([A-Za-z]+)", text):
            if match[1] not in self.macros or match.start() < position:
                continue
            count, body = self.macros[match[1]]
            self.expansions += 1
            parts.append(text[position : match.start()])
            position = match.end()
            for number in range(1, count + 1):
                opening = position + len(text[position:]) - len(text[position:].lstrip())
                if text[opening : opening + 1] != "{":
                    return text
                closing = _find_closing(text, opening)
                body = body.replace(f"#{number}", text[opening + 1 : closing])
                position = closing + 1
                if len(body) > MAX_TEXT:
                    return text
            parts.append(body)
        return "".join([*parts, text[position:]])


def _repeat_below(rows: list[list[grid.RawCell]]) -> list[list[grid.RawCell]]:
    r"""LaTeX leaves the cells below a \multirow empty; they say the same as it."""
    above: dict[int, tuple[int, grid.RawCell]] = {}  # by column: for how many more rows, and what
    found = []
    for row in rows:
        column = 0
        line = []
        for cell in row:
            left, upper = above.pop(column, (0, cell))
            if left and not cell.text:
                above[column] = (left - 1, upper)
                line.append(replace(upper, columns=cell.columns, rows=1, spread=True))
            else:
                above[column] = (cell.rows - 1, cell)
                line.append(replace(cell, rows=1))
            column += cell.columns
        found.append(line)
    return found


def _find_macros(text: str) -> Macros:
    """The macros that a document defines with a fixed number of arguments."""
    found: Macros = {}
    for match in itertools.islice(_DEFINITION.finditer(text), MAX_MACROS):
        closing = _find_closing(text, match.end(), MAX_BODY)
        name = match[1] or match[3]
        count = int(match[2] or 0) if match[1] else len(match[4] or "") // 2
        if closing - match.end() < MAX_BODY:
            found[name] = (count, text[match.end() + 1 : closing])
    return found


def _find_closing(text: str, opening: int, limit: int = 4 * MAX_TEXT) -> int:
    """The position of the brace that closes the group; where none does, the end of what is looked at."""
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, opening, min(len(text), opening + limit)):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0 and match[0] == "}":
            return match.start()
    return min(len(text), opening + limit)


def _skip_arguments(text: str, position: int, count: int) -> int:
    """Behind this many arguments in braces, and optional ones before and between them."""
    for _ in range(count):
        match = _SPECIFIED.match(text, position)
        position = match.end() if match else position
        if text[position : position + 1] == "{":
            position = _find_closing(text, position) + 1
    match = _SPECIFIED.match(text, position)
    return match.end() if match else position
