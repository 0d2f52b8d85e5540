"""Inputs on their way to nodes: each is known by the digest of its content, which is read once however many cells."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.cluster.messages import Item, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 8 * 2**20  # bytes of a file that are in memory at a time


@dataclass(frozen=True)
class Parcel:
    """A file or folder of this machine, and what it contains."""

    source: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        """By which nodes know it."""
        return hashlib.sha256(self.manifest.model_dump_json().encode()).hexdigest()[:32]

    def pieces(self) -> Iterator[tuple[str, int, bytes]]:
        """Its content: of each file the path within the parcel, and its pieces with their offsets."""
        for item in self.manifest.items:
            offset = 0
            with (self.source / item.path if self.manifest.folder else self.source).open("rb") as file:
                while (data := file.read(CHUNK)) or offset == 0:
                    yield item.path, offset, data
                    offset += len(data)
                    if not data:
                        break


class Parcels:
    """The parcels of a program, by path; a file is read again only if its time or size have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[object, ...], Parcel]] = {}

    def of(self, path: str) -> Parcel:
        """The parcel of a file or folder."""
        source = Path(path)
        files = sorted(file for file in source.rglob("*") if file.is_file()) if source.is_dir() else [source]
        stamp = tuple((str(file), found.st_mtime_ns, found.st_size) for file in files if (found := file.stat()))
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, Parcel(source, _manifest(source, files)))
        return known[1]


def _manifest(source: Path, files: list[Path]) -> Manifest:
    folder = source.is_dir()
    return Manifest(
        name=source.name,
        folder=folder,
        items=tuple(item_of(file, file.relative_to(source).as_posix() if folder else file.name) for file in files),
    )


def item_of(file: Path, path: str) -> Item:
    """A file with its digest."""
    return Item(path=path, size=file.stat().st_size, digest=digest_of(file))


def digest_of(file: Path) -> str:
    """The digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def inside(folder: Path, path: str) -> Path:
    """A path within a folder; one that leads out of it is refused, whoever sent it."""
    found = folder / path
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError(f"{path} is not inside of its folder.")
    return found
