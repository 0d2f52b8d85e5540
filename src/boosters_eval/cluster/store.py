"""A node's own store of inputs, by digest: workers on one machine share it, and the next run finds it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.cluster.parcels import digest_of, inside
from boosters_eval.datasets.cache import cache_root

if TYPE_CHECKING:
    from boosters_eval.cluster.messages import Manifest

KEPT_S = 28 * 24 * 3600.0  # seconds after which a parcel that nobody has used is removed
ARRIVING_S = 24 * 3600.0  # seconds after which one that has not arrived is removed
_ARRIVING = ".arriving-"


class Store:
    """Parcels are received beside their final place, verified, and then moved there at once."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or cache_root() / "nodes"
        self._arriving: dict[str, Path] = {}

    def find(self, digest: str) -> Path | None:
        """The file or folder of a parcel, if it is there; it then counts as used now."""
        folder = self._root / digest
        with contextlib.suppress(OSError):  # of a store that others own
            os.utime(folder)
        with contextlib.suppress(OSError):  # it is not there, or is just removed, or may not be read
            return next(folder.iterdir(), None)
        return None

    def clean(self) -> None:
        """Remove what no run has used for weeks, and what a worker that was killed left half received."""
        found: list[Path] = []
        with contextlib.suppress(OSError):  # there is no store yet
            found += self._root.iterdir()
        for folder in found:
            with contextlib.suppress(OSError):  # another worker cleans it too, or it is somebody else's
                if _is_old(folder):  # moved first: whoever looks for a parcel finds all of it, or nothing
                    shutil.rmtree(folder.rename(self._root / f".removed-{secrets.token_hex(6)}"))

    def receive(self, digest: str, path: str, offset: int, data: bytes) -> None:
        """A piece of a file; the first one of a parcel begins it."""
        if digest not in self._arriving:
            self._arriving[digest] = self._begun()
        file = inside(self._arriving[digest], path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("r+b" if offset else "wb") as opened:
                opened.seek(offset)
                opened.write(data)
        except OSError:  # of a full disk, which must not stay full
            shutil.rmtree(self._arriving.pop(digest), ignore_errors=True)
            raise

    def forget(self) -> None:
        """Remove what has not arrived wholly."""
        while self._arriving:
            shutil.rmtree(self._arriving.popitem()[1], ignore_errors=True)

    def _begun(self) -> Path:
        self._root.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_ARRIVING, dir=self._root))

    def complete(self, digest: str, manifest: Manifest) -> str:
        """Verify a parcel and move it to its place. What is wrong with it, or ''."""
        try:
            return self._completed(digest, manifest)
        except OSError as error:
            return f"{manifest.name} cannot be stored: {error.strerror}"

    def _completed(self, digest: str, manifest: Manifest) -> str:
        arrived = self._arriving.pop(digest, None) or self._begun()  # of a folder without files, nothing came
        try:
            for item in manifest.items:
                if digest_of(inside(arrived, item.path)) != item.digest:
                    return f"{manifest.name} has changed on its way: the digest of {item.path} is another"
            self._place(arrived, self._root / digest, manifest)
        finally:
            shutil.rmtree(arrived, ignore_errors=True)
        return ""

    def _place(self, arrived: Path, final: Path, manifest: Manifest) -> None:
        """What came keeps its name, in a folder that is named by the digest."""
        around = Path(tempfile.mkdtemp(prefix=".placing-", dir=self._root))
        (arrived if manifest.folder else arrived / manifest.items[0].path).rename(around / manifest.name)
        try:
            around.rename(final)
        except OSError:
            shutil.rmtree(around, ignore_errors=True)
            if not final.is_dir():  # otherwise another worker of this machine was faster
                raise


def _is_old(folder: Path) -> bool:
    kept = ARRIVING_S if folder.name.startswith(_ARRIVING) else KEPT_S
    return folder.is_dir() and folder.stat().st_mtime < time.time() - kept
