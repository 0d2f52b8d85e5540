"""Where builds are kept: a folder each below the home, with a record of what it is and how its files looked."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout
from pydantic import Field

from boosters_eval.core.errors import BoostersEvalError, BuildError, ConfigError, suggest
from boosters_eval.core.files import home, read_text, resolved, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.engine.cell import Installation
from boosters_eval.runners.builds.reference import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BuildOrigin = Literal["version", "wheel", "source", "commit"]
_LEAVING = ".removed-"
_LOCKS = ".locks"


class BuildRecord(Model):
    """What is known of a build, written when it was complete: a folder without it does not count."""

    schema_version: Literal[1] = 1
    build_id: str  # a digest of what was asked for
    library: str
    origin: BuildOrigin
    reference: str  # as a user would name it
    source: str  # what identifies it: the version, or a digest of the wheel or the source
    distribution: str
    version: str
    digest: str  # of the library's code; of an isolated build also of the versions beside it
    content: str  # of all files
    stamp: str  # of their names, sizes and times, as long as which are the same nothing is read again
    isolated: bool = False
    packages: dict[str, str] = Field(default_factory=dict)  # what else an isolated build holds, by version
    python: str
    size: int  # bytes
    seconds: float
    installed_at: str


@dataclass(frozen=True)
class StoredBuild:
    """A build in the store."""

    folder: Path
    record: BuildRecord

    @property
    def site(self) -> Path:
        """The folder that is imported from."""
        return self.folder / "site"

    @property
    def installation(self) -> Installation:
        """What other processes are told of it."""
        record = self.record
        return Installation(
            library=record.library,
            version=record.version,
            digest=record.digest,
            path=(str(self.site.absolute()),),
            isolated=record.isolated,
            packages=", ".join(f"{name} {version}" for name, version in record.packages.items()),
            stamp=stamp_of(self.site),
        )

    @property
    def used(self) -> float:
        """When it was last used, as seconds since the epoch."""
        return _modified(self.folder / "used") or _modified(self.folder / "build.json")

    def touch(self) -> None:
        """Note that it is used. A store that may only be read does not mind."""
        with contextlib.suppress(OSError):
            (self.folder / "used").touch()

    def is_whole(self) -> bool:
        """Whether its files are those that were installed; they are read only if they look different."""
        if not self.site.is_dir():
            return False
        return stamp_of(self.site) == self.record.stamp or content_of(self.site) == self.record.content


def builds_folder(where: Path | None = None) -> Path:
    """The folder of all builds."""
    return home(where) / "builds"


def stored_build(build_id: str, where: Path | None = None) -> StoredBuild | None:
    """The build of this id, or None if there is none that is complete."""
    folder = builds_folder(where) / build_id
    try:
        record = BuildRecord.model_validate_json(read_text(folder / "build.json"))
    except (OSError, BoostersEvalError):
        return None
    return StoredBuild(folder, record) if record.build_id == build_id else None


def all_builds(where: Path | None = None) -> list[StoredBuild]:
    """Every build, the latest used first."""
    root = builds_folder(where)
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    found = (stored_build(name, where) for name in names if not name.startswith("."))
    return sorted(filter(None, found), key=lambda build: build.used, reverse=True)


def damaged_folders(where: Path | None = None) -> list[Path]:
    """Folders in the store that hold no readable build: what an interrupted installation left, or a lost record."""
    root = builds_folder(where)
    known = {build.folder for build in all_builds(where)}
    return (
        [path for path in sorted(root.iterdir()) if path.is_dir() and path not in known and path.name != _LOCKS]
        if root.is_dir()
        else []
    )


def find_build(text: str, where: Path | None = None) -> StoredBuild:
    """A build by its id, the beginning of it, or what it was installed from, such as xgboost==3.0.5."""
    builds = all_builds(where)
    named = [build for build in builds if text in (build.record.build_id, build.record.reference)]
    named = named or [build for build in builds if _is_of(build.record, text)]
    begun = [build for build in builds if len(text) >= 4 and build.record.build_id.startswith(text)]
    found = named or begun
    if len(found) > 1:
        ids = ", ".join(f"{one.record.build_id}{' (isolated)' if one.record.isolated else ''}" for one in found)
        raise ConfigError(
            f"There are {len(found)} builds '{text}': name one of {ids}; see 'boosters-eval builds list'."
        )
    if not found:
        known = [build.record.reference for build in builds]
        raise ConfigError(f"There is no build '{text}' in {builds_folder(where)}.{suggest(text, known)}")
    return found[0]


def _is_of(record: BuildRecord, text: str) -> bool:
    """Whether a text names what was installed, however it spells the paths and whatever it calls the build."""
    given, known = parts_of(text), parts_of(record.reference)
    if given is None or known is None or given[1] != known[1]:
        return False
    if given[0] != record.library and Path(given[0]).name != Path(known[0]).name:  # both may be files
        return False
    return given[2] == known[2] or (given[1] == "@" and resolved(Path(given[2]).expanduser()) == Path(known[2]))


@contextlib.contextmanager
def locked(build_id: str, where: Path | None = None, *, busy: Callable[[], None] | None = None) -> Iterator[None]:
    """Only one process at a time installs or removes a build.

    Who finds it locked calls `busy` and waits; without `busy`, that is an error.
    """
    root = builds_folder(where)
    (root / _LOCKS).mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / _LOCKS / f"{build_id}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if busy is None:
            raise BuildError(f"The build {build_id} is being installed, so it was not removed.") from None
        busy()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def remove_build(folder: Path) -> None:
    """Remove a build as a whole, or what is left of one: it is renamed first, so that no half of it is ever found."""
    build_id = folder.name.lstrip(".").partition("-")[0]
    with locked(build_id, folder.parent.parent):
        try:
            if folder.is_symlink():
                folder.unlink()
            else:
                away = folder.with_name(f"{_LEAVING}{secrets.token_hex(4)}")
                folder.rename(away)
                shutil.rmtree(away)
        except OSError as error:
            raise BuildError(f"Cannot remove {folder}: {error.strerror}.") from None


def write_record(folder: Path, record: BuildRecord) -> None:
    """Make a folder a build."""
    write_atomically(folder / "build.json", record.model_dump_json(indent=2) + "\n", own=True)


def content_of(site: Path) -> str:
    """A digest of all files but bytecode, which Python writes as it imports."""
    digest = hashlib.sha256()
    for name, path in _files(site):
        with open(path, "rb") as file:  # noqa: PTH123 (a thousand files)
            digest.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def changed_since(installation: Installation) -> str:
    """How the files of a build are not those that it was named with; '' if they are."""
    if not installation.stamp or all(stamp_of(Path(folder)) == installation.stamp for folder in installation.path):
        return ""
    return f"the files of its build in {', '.join(installation.path)} have changed since it was named"


def stamp_of(site: Path) -> str:
    """What changes when any of the files does, found without reading them."""
    digest = hashlib.sha256()
    for name, path in _files(site):
        found = os.stat(path)  # noqa: PTH116 (a thousand files)
        digest.update(f"{name} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}\n".encode())
    return digest.hexdigest()


def size_of(site: Path) -> int:
    """The bytes of all files."""
    return sum(os.stat(path).st_size for _, path in _files(site))  # noqa: PTH116 (see above)


def _files(site: Path) -> list[tuple[str, str]]:
    root = str(site)
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.join(folder, name) for name in names if not name.endswith(".pyc")]  # noqa: PTH118 (many)
    return sorted((os.path.relpath(path, root), path) for path in found)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
