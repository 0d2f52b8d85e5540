"""HTML tables, in a page of their own or inside Markdown."""

from __future__ import annotations

import re
from typing import Any

from boosters_eval.core.errors import MissingLibraryError
from boosters_eval.programs.paper.documents import grid
from boosters_eval.programs.paper.documents.latex import MAX_TEXT

MAX_ELEMENTS = 300_000
NEAR = 25  # blocks before a table that may be about it
MAX_PARTS = 5_000  # pieces of text in one cell or paragraph
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_TEXTS = frozenset({"p", "figcaption", "div", "li", "dt", "dd", "blockquote"})
_STRONG = {"b": "bold", "strong": "bold", "u": "underline", "ins": "underline", "em": "italic", "i": "italic"}
_STRONG_CLASS = re.compile(r"\bltx_font_bold\b|\bbold\b|font-weight:\s*(?:bold|[6-9]00)")
_SILENT = frozenset({"script", "style", "head", "template", "noscript", "svg", "annotation", "annotation-xml"})


def read_html(text: str, budget: grid.Budget, line: int = 1) -> list[grid.RawBlock]:
    """The headings, paragraphs and tables, in their order. `line` is that of the text in the whole document.

    Only what stands near a table is read, and the first heading.
    """
    root = _parse(text)
    if root is None:
        return []
    elements = _find_blocks(root, budget, line)
    tables = [i for i, element in enumerate(elements) if element.tag == "table"]
    near = {j for i in tables for j in range(i - NEAR, i + 3)}
    near |= {i for i, each in enumerate(elements[:1000]) if each.tag == "h1"}
    found: list[grid.RawBlock] = []
    for i in sorted(near & set(range(len(elements)))):
        element = elements[i]
        here = line - 1 + (element.sourceline or 1)
        if element.tag == "table":
            table = _read_table(element, here, line, budget)
            found += [table] if table else []
            continue
        text, _ = _read_text(element, budget)
        level = _HEADINGS.get(element.tag)
        found.append(grid.RawHeading(text, level, here) if level else grid.RawParagraph(text, here))
    return found


def _find_blocks(root: Any, budget: grid.Budget, line: int) -> list[Any]:
    """The blocks of a page: headings, tables, and what holds text of its own outside of them."""
    found: list[Any] = []
    inside: set[Any] = set()
    for count, element in enumerate(root.iter("table", *_HEADINGS, *_TEXTS)):
        if count > MAX_ELEMENTS:
            what = f"more than {MAX_ELEMENTS} elements: the rest of the document is not read"
            budget.faults.append(grid.Unread(line=line, why=what))
            break
        if element.tag == "table":
            if element not in inside:
                inside.update(element.iterdescendants(*_HEADINGS, *_TEXTS))
            found.append(element)
        elif element not in inside and _is_paragraph(element):
            found.append(element)
    return found


def read_html_title(text: str) -> str:
    match = re.search(r"<title[^>]*>([^<]{1,400})</title", text[:100_000], re.IGNORECASE)
    root = _parse(f"<p>{match[1]}</p>") if match else None
    return " ".join(root.itertext()).strip() if root is not None else ""


def _parse(text: str) -> Any:
    try:
        import lxml.html  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingLibraryError("Reading HTML tables needs lxml: pip install 'boosters-eval[paper]'.") from None
    # The HTML parser knows no entities but those of HTML, reads nothing from elsewhere, and gives up at 255 levels.
    parser = lxml.html.HTMLParser(
        recover=True, no_network=True, huge_tree=False, encoding="utf-8", remove_comments=True
    )
    try:
        return lxml.html.document_fromstring(text.encode(), parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        return None


def _is_paragraph(element: Any) -> bool:
    """Whether it holds text of its own: a container of other blocks would repeat them."""
    if element.tag in {"p", "figcaption"} or element.tag in _HEADINGS:
        return True
    return bool((element.text or "").strip()) and not any(child.tag in _TEXTS for child in element)


def _read_table(element: Any, here: int, line: int, budget: grid.Budget) -> grid.RawTable | None:
    if "ltx_eq" in str(element.get("class")):  # a formula that a conversion laid out as a table
        return None
    if next(element.iterdescendants("table"), None) is not None:
        budget.faults.append(grid.Unread(line=here, why="a table that contains tables: only the inner ones are read"))
        return None
    rows: list[list[grid.RawCell]] = []
    lines: list[int] = []
    headers = count = 0
    faults = []
    for row in element.iterdescendants("tr"):
        cells = [_read_cell(cell, budget) for cell in row if cell.tag in {"td", "th"}]
        if not cells:
            continue
        count += len(cells)
        if len(rows) >= grid.MAX_ROWS or count > grid.MAX_CELLS:
            faults.append(
                grid.Unread(
                    line=here, why=f"more than {grid.MAX_ROWS} rows or {grid.MAX_CELLS} cells: the rest is not read"
                )
            )
            break
        headers += headers == len(rows) and (row.getparent().tag == "thead" or all(cell.header for cell in cells))
        rows.append(cells)
        lines.append(line - 1 + (row.sourceline or 1))
    caption = next(element.iterdescendants("caption"), None)
    text = _read_text(caption, budget)[0] if caption is not None else ""
    return grid.make_table(rows, lines, budget, headers=headers or None, caption=text, faults=faults)


def _read_cell(element: Any, budget: grid.Budget) -> grid.RawCell:
    text, strong = _read_text(element, budget)
    columns, rows = (_span(element.get(name)) for name in ("colspan", "rowspan"))
    columns, rows = min(columns, grid.MAX_COLUMNS + 1), min(rows, grid.MAX_ROWS)
    return grid.RawCell(text, strong, element.tag == "th", columns, rows, indent=_measure_indent(element))


def _measure_indent(element: Any) -> int:
    """By white space, or by the style that moves the text."""
    style = re.search(r"(?:padding-left|text-indent|margin-left):\s*([\d.]+)", str(element.get("style")))
    return grid.measure_indent("".join(element.itertext())[:MAX_TEXT]) + (int(float(style[1])) if style else 0)


def _span(given: str | None) -> int:
    return int(given) if given and re.fullmatch(r"[1-9]\d{0,5}", given.strip()) else 1


def _read_text(element: Any, budget: grid.Budget) -> tuple[str, str]:
    """The text with scripts marked, formulas as TeX where the page has it, and how a part is emphasized."""
    from lxml import etree  # noqa: PLC0415 (an extra)

    parts: list[str] = []
    strong = ""
    skip = 0
    for event, node in etree.iterwalk(element, events=("start", "end"), tag="*"):
        budget.nodes -= 1
        if budget.nodes < 0 or len(parts) > MAX_PARTS:
            break
        if event == "end":
            if skip:
                skip -= 1
            elif node.tag in {"sup", "sub"}:
                parts.append("}")
            elif node.tag in _TEXTS or node.tag == "tr":
                parts.append(" ")
            if node is not element and node.tail and not skip:
                parts.append(node.tail)
            continue
        if skip or node.tag in _SILENT:
            skip += 1
            continue
        style = f"{node.get('class')} {node.get('style')}"
        strong = strong or _STRONG.get(node.tag, "bold" if _STRONG_CLASS.search(style) else "")
        tex = node.get("alttext") if node.tag == "math" else None
        if tex:
            parts.append(f"${tex}$")
            skip += 1
            continue
        parts.append({"sup": "^{", "sub": "_{", "br": " "}.get(node.tag, ""))
        parts.append(node.text or "")
    return " ".join("".join(parts)[: 4 * MAX_TEXT].split())[:MAX_TEXT], strong
