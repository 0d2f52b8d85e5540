"""reStructuredText: grid and simple tables, and the directives `table`, `list-table` and `csv-table`."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, NamedTuple

from boosters_eval.core.errors import FileFormatError
from boosters_eval.programs.paper.documents import grid
from boosters_eval.programs.paper.documents.latex import MAX_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_LINES = 100_000
_ADORNED = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_GRID = re.compile(r"\s*\+(?:[-=]{2,}\+)+\s*$")
_SIMPLE = re.compile(r"\s*={2,}(?:\s+={2,})+\s*$")
_SPANS = re.compile(r"\s*-{2,}(?:\s+-{2,})*\s*$")
_DIRECTIVE = re.compile(r"(\s*)\.\. (table|list-table|csv-table|math|code-block|figure|image|note|\w[\w-]*):: *(.*)$")
_OPTION = re.compile(r"\s*:([\w-]+):\s*(.*)$")
_ROLE = re.compile(r":[\w:.+-]+:`([^`]*)`")
_LINK = re.compile(r"`([^`<]*?)\s*<[^`>]*>`__?|`([^`]+)`__?|``([^`]*)``|`([^`]+)`")
_NOTE = re.compile(r"\s?\[(?:#?[\w-]*|\*)\]_|\\ ")
_STRONG = re.compile(r"\*\*(.+?)\*\*|\*(.+?)\*")


class _Span(NamedTuple):
    start: int
    end: int


def read_rst(text: str, budget: grid.Budget) -> list[grid.RawBlock]:
    """The headings, paragraphs and tables, in their order."""
    lines = text.expandtabs(8).split("\n")
    if len(lines) > MAX_LINES:
        raise FileFormatError(f"The document has more than {MAX_LINES} lines. Cut out the tables of results.")
    return list(_Source(lines, budget).blocks())


def strip_marks(source: str) -> tuple[str, str]:
    """A cell without its marks, and how it is emphasized."""
    text = " ".join(source.split())[:MAX_TEXT]
    found = _STRONG.search(text)
    emphasis = "" if found is None else "bold" if found[1] else "italic"
    text = _NOTE.sub("", _ROLE.sub(r"\1", text))
    text = _LINK.sub(lambda match: next(part for part in match.groups() if part is not None), text)
    text = _STRONG.sub(lambda match: match[1] or match[2], text)
    return re.sub(r"\\(.)", r"\1", re.sub(r"\|([^|]+)\|", r"\1", text)).strip(), emphasis


def _make_cell(source: str, *, columns: int = 1, rows: int = 1, header: bool = False) -> grid.RawCell:
    text, emphasis = strip_marks(source)
    return grid.RawCell(
        text, emphasis, header, columns=columns, rows=rows, indent=grid.measure_indent(source.strip("\n"))
    )


class _Source:
    def __init__(self, lines: Sequence[str], budget: grid.Budget) -> None:
        self.lines, self.budget = lines, budget
        self.levels: list[str] = []  # the adornments of headings, from the top

    def blocks(self) -> Iterator[grid.RawBlock]:
        at, first, caption = 0, 0, ""
        paragraph: list[str] = []
        while at <= len(self.lines):
            line = self.lines[at] if at < len(self.lines) else ""
            directive = _DIRECTIVE.match(line)
            is_table = _GRID.match(line) or _SIMPLE.match(line)
            heading = self._find_heading(at) if not paragraph and not is_table else None
            if (directive or is_table or heading or not line.strip()) and paragraph:
                yield grid.RawParagraph(strip_marks(" ".join(paragraph))[0], first + 1)
                paragraph = []
            if heading:
                block, at = heading
                yield block
            elif directive and directive[2] in ("list-table", "csv-table"):
                table, at = self._read_directive(at, directive)
                yield from table
            elif directive:
                caption = directive[3] if directive[2] == "table" else ""
                at += 1
                while at < len(self.lines) and _OPTION.match(self.lines[at]):
                    at += 1
            elif is_table:
                table, at = (self._read_grid if _GRID.match(line) else self._read_simple)(at, caption)
                yield from table
                caption = ""
            else:
                if line.strip() and not line.lstrip().startswith(".. "):
                    first = at if not paragraph else first
                    paragraph.append(line.strip())
                at += 1

    def _find_heading(self, at: int) -> tuple[grid.RawHeading, int] | None:
        """A line with a line of signs below it, and perhaps above it."""
        over = bool(at < len(self.lines) and _ADORNED.match(self.lines[at]) and at + 2 < len(self.lines))
        text = at + over
        if text + 1 >= len(self.lines) or not self.lines[text].strip() or _ADORNED.match(self.lines[text]):
            return None
        below = _ADORNED.match(self.lines[text + 1])
        if below is None or len(self.lines[text + 1].rstrip()) < len(self.lines[text].rstrip()) - 2:
            return None
        style = below[1] * (1 + over)
        if style not in self.levels:
            self.levels.append(style)
        level = min(6, self.levels.index(style) + 1)
        return grid.RawHeading(strip_marks(self.lines[text])[0], level, text + 1), text + 2

    # ---- Directives

    def _read_directive(self, at: int, directive: re.Match[str]) -> tuple[list[grid.RawTable], int]:
        indent, end = len(directive[1]), at + 1
        options: dict[str, str] = {}
        while end < len(self.lines) and (option := _OPTION.match(self.lines[end])):
            options[option[1]] = option[2]
            end += 1
        body = end
        while end < len(self.lines) and (
            not self.lines[end].strip() or len(self.lines[end]) - len(self.lines[end].lstrip()) > indent
        ):
            end += 1
        read = self._read_list if directive[2] == "list-table" else self._read_csv
        if "file" in options or "url" in options:
            where = options.get("file") or options.get("url")
            self.budget.faults.append(grid.Unread(line=at + 1, why=f"a table in another file, {where}: it is not read"))
            return [], end
        rows, lines = read(body, end, options)
        told = options.get("header-rows", "")
        headers = (int(told) if told.isdigit() else 0) + bool(options.get("header"))
        table = grid.make_table(rows, lines, self.budget, headers=headers or None, caption=strip_marks(directive[3])[0])
        return ([table] if table else []), end

    def _read_list(self, at: int, end: int, _: dict[str, str]) -> tuple[list[list[grid.RawCell]], list[int]]:
        texts: list[list[list[str]]] = []
        lines: list[int] = []
        for place in range(at, end):
            match = re.match(r"\s*(\* )?\s*-(?: (.*)|$)", self.lines[place])
            if match and (match[1] or texts):
                if match[1]:
                    texts.append([])
                    lines.append(place + 1)
                texts[-1].append([match[2] or ""])
            elif texts and texts[-1]:
                texts[-1][-1].append(self.lines[place])
        return [[_make_cell(" ".join(cell)) for cell in row] for row in texts], lines

    def _read_csv(self, at: int, end: int, options: dict[str, str]) -> tuple[list[list[grid.RawCell]], list[int]]:
        sign = {"tab": "\t", "space": " "}.get(options.get("delim", ","), options.get("delim", ",")) or ","
        lines, rows = [], []
        header = options.get("header", "")
        for place, line in ((at - 1, header), *((place, self.lines[place]) for place in range(at, end))):
            if line.strip():
                (cells,) = csv.reader([line.strip()], delimiter=sign[0], skipinitialspace=True)
                rows.append([_make_cell(cell) for cell in cells])
                lines.append(place + 1)
        return rows, lines

    # ---- Tables that are drawn

    def _read_simple(self, at: int, caption: str) -> tuple[list[grid.RawTable], int]:
        """Columns are where the signs of the border are; a row without a first cell continues the one above."""
        spans = [_Span(*match.span()) for match in re.finditer("=+", self.lines[at])]
        borders = self._find_borders(at)
        last = borders[-1]
        headers_end = borders[1] if len(borders) > 2 else at
        rows: list[list[grid.RawCell]] = []
        lines: list[int] = []
        parts: list[list[str]] = []
        headers = 0

        def close(line: int, across: Sequence[_Span]) -> None:
            if parts:
                texts = (" ".join(part) for part in zip(*parts, strict=True))
                widths = [sum(span.start <= one.start < span.end for one in spans) or 1 for span in across]
                pairs = zip(texts, widths, strict=True)
                rows.append([_make_cell(text, columns=width, header=line <= headers_end) for text, width in pairs])
                lines.append(line)
                parts.clear()

        begun = at + 1
        for place in range(at + 1, last + 1):
            line = self.lines[place]
            is_border = bool(_SIMPLE.match(line))
            if is_border or _SPANS.match(line):
                ruled = spans if is_border else [_Span(*match.span()) for match in re.finditer("-+", line)]
                if not is_border and parts:  # the signs below a row tell which columns its cells take
                    parts[:] = [_slice(self.lines[begun], ruled)]
                close(begun + 1, ruled)
                headers = len(rows) if place == headers_end else headers
                continue
            cells = _slice(line, spans)
            if not line.strip():
                close(begun + 1, spans)
            elif not cells[0].strip() and parts:
                parts.append(cells)
            else:
                close(begun + 1, spans)
                parts.append(cells)
                begun = place
        table = grid.make_table(rows, lines, self.budget, headers=headers or None, caption=strip_marks(caption)[0])
        return ([table] if table else []), last + 1

    def _find_borders(self, at: int) -> list[int]:
        """Of a simple table: at the top, below the header if it has one, and the last, which nothing follows."""
        borders = [at]
        for place in range(at + 1, len(self.lines)):
            if _SIMPLE.match(self.lines[place]):
                borders.append(place)
                if place + 1 >= len(self.lines) or not self.lines[place + 1].strip():
                    break
        return borders

    def _read_grid(self, at: int, caption: str) -> tuple[list[grid.RawTable], int]:
        """Cells are the boxes that the lines draw."""
        end = at
        while end < len(self.lines) and self.lines[end].lstrip()[:1] in ("+", "|"):
            end += 1
        indent = len(self.lines[at]) - len(self.lines[at].lstrip())
        block = [line[indent:].rstrip() for line in self.lines[at:end]]
        width = max(map(len, block))
        if width * len(block) > 40 * grid.MAX_CELLS:
            self.budget.faults.append(grid.Unread(line=at + 1, why="a drawn table that is too large: it is not read"))
            return [], end
        block = [line.ljust(width) for line in block]
        boxes = list(_find_boxes(block))
        tops, lefts = sorted({box[0] for box in boxes}), sorted({box[1] for box in boxes})
        rule = next((place for place, line in enumerate(block) if re.match(r"\+=", line)), 0)
        rows: list[list[grid.RawCell]] = [[] for _ in tops]
        for top, left, bottom, right in sorted(boxes):
            text = " ".join(block[place][left + 1 : right] for place in range(top + 1, bottom))
            cell = _make_cell(
                text,
                columns=sum(left <= one < right for one in lefts),
                rows=sum(top <= one < bottom for one in tops),
                header=top < rule,
            )
            rows[tops.index(top)].append(cell)
        headers = sum(top < rule for top in tops)
        lines = [at + top + 2 for top in tops]
        table = grid.make_table(rows, lines, self.budget, headers=headers or None, caption=strip_marks(caption)[0])
        return ([table] if table else []), end


def _slice(line: str, spans: Sequence[_Span]) -> list[str]:
    """The cells of a line; the last one takes what is left of it."""
    ends = [*(span.start for span in spans[1:]), len(line)]
    return [line[span.start : end] for span, end in zip(spans, ends, strict=True)]


def _find_boxes(block: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Top, left, bottom and right of each box: from a corner right, down, and back along drawn lines."""
    for top, line in enumerate(block[:-1]):
        for left, sign in enumerate(line):
            if sign == "+" and block[top + 1][left] in "|+":
                box = _close_box(block, top, left)
                if box:
                    yield (top, left, *box)


def _close_box(block: Sequence[str], top: int, left: int) -> tuple[int, int] | None:
    for right in range(left + 1, len(block[top])):
        if block[top][right] not in "-=+":
            return None
        if block[top][right] != "+":
            continue
        for bottom in range(top + 1, len(block)):
            if block[bottom][right] not in "|+" or block[bottom][left] not in "|+":
                break
            edge = block[bottom][left : right + 1]
            if edge[0] == edge[-1] == "+" and not edge.strip("-=+"):
                return bottom, right
    return None
