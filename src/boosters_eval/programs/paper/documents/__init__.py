"""A document from outside: its title and its tables as they stand there, whatever they are written in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.files import read_text
from boosters_eval.programs.paper.documents.captions import FoundTable, with_captions
from boosters_eval.programs.paper.documents.grid import Budget, Fault, RawHeading
from boosters_eval.programs.paper.documents.html import read_html
from boosters_eval.programs.paper.documents.html import title_of as html_title
from boosters_eval.programs.paper.documents.latex import read_latex
from boosters_eval.programs.paper.documents.latex import title_of as latex_title
from boosters_eval.programs.paper.documents.markdown import inline, read_markdown
from boosters_eval.programs.paper.documents.tex import MAX_TEXT, plain

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.programs.paper.documents.grid import RawBlock

MAX_DOCUMENT = 8 * 2**20
_READERS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    **dict.fromkeys((".tex", ".latex", ".ltx"), read_latex),
}
_BINARY = {b"%PDF": "a PDF", b"PK\x03\x04": "a Word or ZIP file", b"\xd0\xcf\x11\xe0": "a Word file"}


@dataclass(frozen=True, slots=True)
class Document:
    """What was found in a document, and what could not be read."""

    title: str
    arxiv_id: str | None
    tables: tuple[FoundTable, ...]
    faults: tuple[Fault, ...]


def read_document(path: Path) -> Document:
    """Read Markdown, HTML or LaTeX, told by the suffix; any other text is taken for Markdown."""
    _refuse(path)
    text = read_text(path, limit=MAX_DOCUMENT).removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    budget = Budget()
    reader = _READERS.get(path.suffix.lower(), read_markdown)
    blocks = reader(text, budget)
    tables = with_captions(blocks)
    arxiv = dict.fromkeys(re.findall(r"arxiv(?:\.org/abs/|[:.\s]\s?)(\d{4}\.\d{4,5})", text[:20_000], re.IGNORECASE))
    title = _title(path, text, blocks)
    return Document(title, next(iter(arxiv)) if len(arxiv) == 1 else None, tuple(tables), tuple(budget.faults))


def _refuse(path: Path) -> None:
    """What is no text, or far too long, with what to do about it."""
    if not path.is_file():
        return  # told by whoever opens it
    if path.stat().st_size > MAX_DOCUMENT:
        raise FileFormatError(
            f"{path} is larger than {MAX_DOCUMENT // 2**20} MB. Cut out the pages with the tables of results."
        )
    with path.open("rb") as file:
        start = file.read(4)
    for mark, kind in _BINARY.items():
        if start == mark:
            raise FileFormatError(f"{path} is {kind}. Convert it to Markdown, HTML or LaTeX first.")


def _title(path: Path, text: str, blocks: list[RawBlock]) -> str:
    suffix = path.suffix.lower()
    title = html_title(text) if suffix in {".html", ".htm", ".xhtml"} else ""
    title = title or (latex_title(text) if "\\title" in text else "")
    first = next((block.text for block in blocks if isinstance(block, RawHeading) and block.level == 1), "")
    return " ".join(plain(title or inline(first[:MAX_TEXT])[0]).split())[:300] or path.stem
