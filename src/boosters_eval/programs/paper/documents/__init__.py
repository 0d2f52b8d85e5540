"""A document from outside: its title and its tables as they stand there, whatever they are written in."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.files import read_text
from boosters_eval.core.reader import ReaderAnswer, read_apart
from boosters_eval.programs.paper.documents.bundle import (
    ARCHIVES,
    follow_inputs,
    look_in_archive,
    look_in_folder,
    open_archive,
)
from boosters_eval.programs.paper.documents.grid import Budget, RawBlock, RawHeading, RawParagraph, RawTable, Unread
from boosters_eval.programs.paper.documents.html import read_html, read_html_title
from boosters_eval.programs.paper.documents.latex import MAX_TEXT, read_latex, read_latex_title, strip_tex
from boosters_eval.programs.paper.documents.markdown import read_inline, read_markdown
from boosters_eval.programs.paper.documents.rst import read_rst

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_DOCUMENT = 8 * 2**20
MAX_DISTANCE = 20  # blocks between a heading and the table that it is the caption of
_HTML = (".html", ".htm", ".xhtml")
_LATEX = (".tex", ".latex", ".ltx")
_RST = (".rst", ".rest")
_BINARY = {b"%PDF": "a PDF", b"PK\x03\x04": "a Word or ZIP file", b"\xd0\xcf\x11\xe0": "a Word file"}

_NUMBER = r"(?:[A-Z]{1,2}[.\-]?)?\d{1,4}(?:\.\d{1,3})*[a-z]?|[IVXL]{1,6}|[A-Z]\d{0,3}"
_START = rf"\W{{0,6}}(?:table|tab\.)\s*(?P<number>(?-i:{_NUMBER}))\b(?:\s*\(cont[a-z.']*\))?"
_CAPTION = re.compile(rf"{_START}\W{{0,4}}?(?:[:.|–—-]|$)", re.IGNORECASE | re.DOTALL)
_NUMBERED = re.compile(rf"{_START}[\s:.|–—*-]*(?P<title>.*)", re.IGNORECASE | re.DOTALL)
_BOLD = re.compile(rf"\s*(\*\*|__)\s*(?:table|tab\.)\s*(?:{_NUMBER})\s*[:.]?\s*(\*\*|__)", re.IGNORECASE)
_ABOUT = re.compile(
    r"\W*(?:metrics?|notes?|notation|legend|results?|all|values?|numbers?|lower|higher|mean|std)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class FoundTable:
    id: str
    title: str
    description: str
    table: RawTable
    nearby: tuple[str, ...] = ()  # the text above the table and its headings, the nearest first, then the text below


@dataclass(frozen=True, slots=True)
class PaperDocument:
    """What was found in a document, and what could not be read."""

    title: str
    arxiv_id: str | None
    tables: tuple[FoundTable, ...]
    faults: tuple[Unread, ...]


def read_document(path: Path) -> PaperDocument:
    """Read Markdown, HTML, LaTeX, RST or an archive, told by the suffix; any other text is taken for Markdown."""
    _refuse(path)
    answer = read_apart(f"{__name__}:answer_document", {"path": str(path)}, source=str(path), refuse=FileFormatError)
    return TypeAdapter(PaperDocument).validate_json(answer.text)


def answer_document(path: str) -> ReaderAnswer:
    """Read a document, in the process that does nothing else."""
    return ReaderAnswer(TypeAdapter(PaperDocument).dump_json(_read(Path(path))).decode())


def _read(path: Path) -> PaperDocument:
    budget, suffix = Budget(), path.suffix.lower()
    if suffix in ARCHIVES:
        main, files = open_archive(path, MAX_DOCUMENT)
        text, fetch, suffix = files[main], look_in_archive(files, main), PurePosixPath(main).suffix.lower()
    else:
        text = read_text(path, limit=MAX_DOCUMENT)
        fetch = look_in_folder(path.parent, lambda file: read_text(file, limit=MAX_DOCUMENT))
    if suffix in _LATEX:
        text = follow_inputs(text, fetch, budget, MAX_DOCUMENT)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    readers = {**dict.fromkeys(_HTML, read_html), **dict.fromkeys(_LATEX, read_latex), **dict.fromkeys(_RST, read_rst)}
    blocks = readers.get(suffix, read_markdown)(text, budget)
    arxiv = dict.fromkeys(re.findall(r"arxiv(?:\.org/abs/|[:.\s]\s?)(\d{4}\.\d{4,5})", text[:20_000], re.IGNORECASE))
    title = read_html_title(text) if suffix in _HTML else ""
    title = title or (read_latex_title(text) if "\\title" in text else "")
    first = next((block.text for block in blocks if isinstance(block, RawHeading) and block.level == 1), "")
    title = " ".join(strip_tex(title or read_inline(first[:MAX_TEXT])[0]).split())[:300] or path.stem
    one = next(iter(arxiv)) if len(arxiv) == 1 else None
    return PaperDocument(title, one, tuple(find_tables(blocks)), tuple(budget.faults))


def _refuse(path: Path) -> None:
    """What is no text, or far too long, with what to do about it."""
    if not path.is_file():
        return  # told by whoever opens it
    if path.stat().st_size > MAX_DOCUMENT:
        raise FileFormatError(
            f"{path} is larger than {MAX_DOCUMENT // 2**20} MB. Cut out the pages with the tables of results."
        )
    with path.open("rb") as file:
        kind = _BINARY.get(file.read(4))
    if kind and path.suffix.lower() not in ARCHIVES:
        raise FileFormatError(f"{path} is {kind}. Convert it to Markdown, HTML or LaTeX first.")


def find_tables(blocks: Sequence[RawBlock]) -> list[FoundTable]:
    """All tables, in the order of the document. A caption is before or after its table, and belongs to one only."""
    captions = _find_captions(blocks)
    found: list[FoundTable] = []
    seen: Counter[str] = Counter()
    for i, block in enumerate(blocks):
        if isinstance(block, RawTable):
            table = replace(_describe(blocks, i, block, captions.get(i)), nearby=_find_nearby(blocks, i))
            seen[table.id] += 1  # parts of one table, and continued ones, are told apart
            number = seen[table.id]
            found.append(table if number == 1 else replace(table, id=f"{table.id}, part {number}"))
    return found


def _describe(blocks: Sequence[RawBlock], i: int, table: RawTable, caption: int | None) -> FoundTable:
    own = _NUMBERED.match(table.caption)
    if own or (table.caption and caption is None):
        number = own["number"] if own else table.number
        title, description = _split(own["title"] if own else table.caption)
        return FoundTable(f"Table {number}" if number else f"Table at line {table.line}", title, description, table)
    if caption is not None:
        text = _text(blocks[caption])
        match = _NUMBERED.match(text)
        assert match is not None  # noqa: S101 (for the type checker)
        title, description = _split(match["title"] or table.caption)
        inside = blocks[min(i, caption) + 1 : max(i, caption)]
        between = [_text(each) for each in inside if isinstance(each, RawParagraph)]
        return FoundTable(f"Table {match['number']}", title, " ".join([description, *between]).strip(), table)
    heading = next((_text(each) for each in reversed(blocks[:i][-50:]) if isinstance(each, RawHeading)), "")
    around = [
        _text(each)
        for each in (*blocks[max(0, i - 1) : i], *blocks[i + 1 : i + 2])
        if isinstance(each, RawParagraph) and _ABOUT.match(each.text)
    ]
    return FoundTable(f"Table at line {table.line}", heading, " ".join(around), table)


def _find_nearby(blocks: Sequence[RawBlock], i: int) -> tuple[str, ...]:
    """The paragraph above a table, its headings from the nearest to the topmost, and the paragraphs below it."""
    above: list[str] = []
    level = 7
    for block in reversed(blocks[max(0, i - 200) : i]):
        if isinstance(block, RawHeading) and block.level < level:
            level = block.level
            above += [_text(block)] if level > 1 else []
        elif isinstance(block, RawParagraph) and not above and level == 7:
            above.append(_text(block))
    below = []
    for block in blocks[i + 1 : i + 5]:
        if not isinstance(block, RawParagraph):
            break
        below.append(_text(block))
    return (*above, *below)


def _find_captions(blocks: Sequence[RawBlock]) -> dict[int, int]:
    """By table, the block that is its caption.

    Where a caption stands between two tables, it goes the way that most captions of the document go.
    """
    tables = [i for i, block in enumerate(blocks) if isinstance(block, RawTable)]
    near = sorted({j for i in tables for j in range(max(0, i - MAX_DISTANCE), min(len(blocks), i + 2))})
    captions = [i for i in near if _is_caption(blocks[i])]
    before = {i: _find_table_after(blocks, i) for i in captions}  # the table that the caption would be before
    after = {i: i - 1 if i and isinstance(blocks[i - 1], RawTable) else None for i in captions}
    only_before = sum(before[i] is not None and after[i] is None for i in captions)
    only_after = sum(after[i] is not None and before[i] is None for i in captions)
    owners: dict[int, int] = {}
    for i in captions:
        first, second = (after[i], before[i]) if only_after > only_before else (before[i], after[i])
        if isinstance(blocks[i], RawHeading):
            first, second = before[i], None
        for table in (first, second):
            if table is not None and table not in owners:
                owners[table] = i
                break
    return owners


def _is_caption(block: RawBlock) -> bool:
    if isinstance(block, RawTable) or "tab" not in block.text[:30].lower():
        return False
    if isinstance(block, RawHeading):
        return _NUMBERED.match(_text(block)) is not None
    return _BOLD.match(block.text) is not None or _CAPTION.match(_text(block)) is not None


def _find_table_after(blocks: Sequence[RawBlock], i: int) -> int | None:
    """The next table, with at most one paragraph between; after a heading, the first one of its section."""
    limit = MAX_DISTANCE if isinstance(blocks[i], RawHeading) else 2
    for j in range(i + 1, min(len(blocks), i + 1 + limit)):
        if isinstance(blocks[j], RawTable):
            return j
        if isinstance(blocks[j], RawHeading) or _is_caption(blocks[j]):
            return None
    return None


def _text(block: RawBlock) -> str:
    return "" if isinstance(block, RawTable) else " ".join(strip_tex(read_inline(block.text[:MAX_TEXT])[0]).split())


def _split(caption: str) -> tuple[str, str]:
    """The first sentence is the title, the rest describes."""
    caption = caption.strip(" *_")
    match = re.match(r"(.{8,300}?[^.][.:;])(?:\s+(?=\S)|$)", caption, re.DOTALL)
    if match is None:
        return caption, ""
    return match[1].rstrip(".:; "), caption[match.end() :].strip()
