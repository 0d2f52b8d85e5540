"""A document of several files: what LaTeX takes in, from a folder or from an archive as arXiv hands them out."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from boosters_eval.core.errors import FileFormatError
from boosters_eval.programs.paper.documents.grid import Unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.programs.paper.documents.grid import Budget

MAX_FILES, MAX_DEPTH = 500, 8
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2")
_TEXTS = (".tex", ".ltx", ".latex", ".md", ".markdown", ".rst", ".html", ".htm", ".bbl", ".txt")
_TAKEN = re.compile(
    r"(?<!\\)(?P<comment>%[^\n]*)|\\(?P<kind>input|include|subfile|subimport|import)\b\s*(?:\{(?P<folder>[^{}]*)\}\s*(?=\{))?"
    r"(?:\{(?P<name>[^{}]{1,300})\}|(?P<bare>[\w./-]{1,300}))"
)


def follow_inputs(
    text: str, fetch: Callable[[str], str | None], budget: Budget, limit: int, above: tuple[str, ...] = ()
) -> str:
    """The text with each file that it takes in put where it stands; what cannot be followed is said by name."""

    def put(match: re.Match[str]) -> str:
        if match["comment"]:
            return match[0]
        name = str(PurePosixPath(match["folder"] or "") / (match["name"] or match["bare"]).strip().strip('"'))
        line = text.count("\n", 0, match.start()) + 1
        where = f" (in {above[-1]})" if above else ""
        if "\\" in name or "#" in name:  # the argument of a macro
            return match[0]
        if name in above or len(above) >= MAX_DEPTH:
            budget.faults.append(Unread(line=line, why=f"{name} takes in itself{where}: it is not read again"))
            return ""
        found = fetch(name)
        if found is None:
            budget.faults.append(
                Unread(line=line, why=f"\\{match['kind']}{{{name}}}{where}: there is no such file here")
            )
            return ""
        if len(found) > limit:
            budget.faults.append(Unread(line=line, why=f"{name}{where} is too large: it is not read"))
            return ""
        return follow_inputs(found, fetch, budget, limit, (*above, name))

    whole = _TAKEN.sub(put, text)
    if len(whole) > limit:
        raise FileFormatError(f"The document with all that it takes in is larger than {limit // 2**20} MB.")
    return whole


def look_in_folder(folder: Path, read: Callable[[Path], str]) -> Callable[[str], str | None]:
    """What reads the files beside a document, and none outside of its folder."""
    root = folder.resolve()

    def fetch(name: str) -> str | None:
        for candidate in (name, f"{name}.tex"):
            path = (root / candidate).resolve()
            if path.is_relative_to(root) and path.is_file():
                return read(path)
        return None

    return fetch


def look_in_archive(files: dict[str, str], main: str) -> Callable[[str], str | None]:
    folder = PurePosixPath(main).parent

    def fetch(name: str) -> str | None:
        places = (str(folder / name), str(folder / f"{name}.tex"), name, f"{name}.tex")
        return next((files[place] for place in places if place in files), None)

    return fetch


def open_archive(path: Path, limit: int) -> tuple[str, dict[str, str]]:
    """The main document of an archive, and all its texts by their names."""
    try:
        files = _list_files(path.read_bytes(), limit)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{path} cannot be read as an archive: {error}") from None
    mains = [name for name, text in files.items() if "\\begin{document}" in text]
    mains = mains or [name for name in files if not name.endswith((".bbl", ".txt"))] or list(files)
    if not mains:
        raise FileFormatError(f"{path} has no document: no file in it ends in {', '.join(_TEXTS)}.")
    return min(mains, key=lambda name: (name.count("/"), -len(files[name]))), files


def _list_files(content: bytes, limit: int) -> dict[str, str]:
    found: dict[str, str] = {}
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [each for each in archive.infolist() if _is_text(each.filename) and each.file_size <= limit]
            for member in members[:MAX_FILES]:
                with archive.open(member) as file:
                    found[member.filename] = _decode(file.read(limit + 1), limit - sum(map(len, found.values())))
        return found
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            for each in tar:
                text = tar.extractfile(each) if each.isfile() and _is_text(each.name) else None
                if text is not None and each.size <= limit and len(found) < MAX_FILES:
                    name = each.name.removeprefix("./")
                    found[name] = _decode(text.read(limit + 1), limit - sum(map(len, found.values())))
    except tarfile.ReadError:
        if content[:2] != b"\x1f\x8b":
            raise
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as single:  # one file alone, as arXiv packs it
            found["main.tex"] = _decode(single.read(limit + 1), limit)
    return found


def _is_text(name: str) -> bool:
    return name.lower().endswith(_TEXTS) and not PurePosixPath(name).name.startswith(".")


def _decode(content: bytes, room: int) -> str:
    if len(content) > room:
        raise FileFormatError("The documents of the archive are too large together.")
    return content.decode("utf-8", errors="replace")
