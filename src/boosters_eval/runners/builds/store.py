"""Where builds are kept: a folder each below the home, with a record of what it is and how its files looked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from filelock import FileLock, Timeout
from pydantic import Field

from boosters_eval.core.errors import BoostersEvalError, BuildError, ConfigError, describe_error, suggest
from boosters_eval.core.files import compute_digest, find_home, read_text, refuse_wide, resolved, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.core.modules import address_of, load_address
from boosters_eval.core.text import escape_json, make_encodable
from boosters_eval.engine.cell import Installation
from boosters_eval.engine.processes import ImportPath, make_command, name_end, prefer
from boosters_eval.runners.builds.reference import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boosters_eval.runners.base import Runner


BuildOrigin = Literal["version", "wheel", "source", "commit"]
_LEAVING = ".removed-"
_LOCKS = ".locks"


class BuildRecord(Model):
    """What is known of a build, written when it was complete: a folder without it does not count."""

    schema_version: Literal[2] = 2
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
    seal: str = ""  # of all of this

    def sealed(self) -> Self:
        """It says of itself what it says: a record that was edited is none."""
        return self.replace(seal=compute_digest(self.replace(seal="").model_dump_json(), 32))


@dataclass(frozen=True)
class StoredBuild:
    """A build in the store."""

    folder: Path
    record: BuildRecord

    @property
    def site(self) -> Path:
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
    return find_home(where) / "builds"


def find_stored(build_id: str, where: Path | None = None) -> StoredBuild | None:
    """The build of this id, or None if there is none that is complete."""
    folder = builds_folder(where) / build_id
    try:
        text = read_text(folder / "build.json")
        refuse_wide(text, "build.json")
        record = BuildRecord.model_validate_json(text)
    except (OSError, BoostersEvalError):
        return None
    return StoredBuild(folder, record) if record.build_id == build_id and record == record.sealed() else None


def scan_builds(where: Path | None = None) -> list[StoredBuild]:
    root = builds_folder(where)
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    found = (find_stored(name, where) for name in names if not name.startswith("."))
    return sorted(filter(None, found), key=lambda build: build.used, reverse=True)


def find_damaged(where: Path | None = None) -> list[Path]:
    """Folders in the store that hold no readable build: what an interrupted installation left, or a lost record."""
    root = builds_folder(where)
    known = {build.folder for build in scan_builds(where)}
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [path for path in folders if path not in known and path.name != _LOCKS]


def find_build(text: str, where: Path | None = None) -> StoredBuild:
    """A build by its id, the beginning of it, or what it was installed from, such as xgboost==3.0.5."""
    builds = scan_builds(where)
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
def lock_build(build_id: str, where: Path | None = None, *, busy: Callable[[], None] | None = None) -> Iterator[None]:
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
    with lock_build(build_id, folder.parent.parent):
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
    write_atomically(folder / "build.json", escape_json(record.model_dump_json(indent=2)) + "\n", own=True)


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


_SECONDS = 300
_ANSWER = "boosters-eval-import: "


def find_import_fault(runner: type[Runner], installation: Installation) -> str:
    """Why the build cannot be imported; '' if it can."""
    path = ImportPath(installation.path, installation.isolated)
    setup = {**path.setup(), "main": __name__, "address": address_of(runner, "runner"), "module": runner.module}
    command, file = make_command(setup)
    with file:
        try:
            done = subprocess.run(  # noqa: S603 (this interpreter)
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                pass_fds=[file.fileno()],
                env={**os.environ, **path.environment()},
            )
        except subprocess.TimeoutExpired:
            return f"importing it took more than {_SECONDS} s"
    text = done.stdout.decode(errors="replace")
    answer = next((line for line in reversed(text.splitlines()) if line.startswith(_ANSWER)), None)
    if answer is None:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return ": ".join([f"the process that imported it ended by {name_end(done.returncode)}", *said])
    return str(json.loads(answer.removeprefix(_ANSWER)))


def main(setup: dict[str, Any]) -> None:
    """In the other process: import the library, and see that it is this build of it."""
    prefer(setup["first"])
    fault = ""
    try:
        load_address(setup["address"]).load()
        fault = find_foreign(setup["module"], setup["first"])
    except BaseException as error:  # noqa: BLE001 (an import may fail in any way)
        fault = " ".join(make_encodable(describe_error(error)).split())[:600]
    sys.stdout.write(f"\n{_ANSWER}{json.dumps(fault)}\n")
    sys.stdout.flush()


def find_foreign(module: str, folders: tuple[str, ...] | list[str]) -> str:
    """How a module that was imported in this process is not one of these folders; '' if it is."""
    package = sys.modules.get(module.partition(".")[0])
    places = [getattr(package, "__file__", None), *getattr(package, "__path__", ())]
    place = next((Path(place) for place in places if place), None)
    if place is None or not any(place.resolve().is_relative_to(Path(folder).resolve()) for folder in folders):
        return f"{module} was imported from {place} and not from the build's folder"
    return ""


def describe_surroundings(installation: Installation) -> str:
    """What else decides whether it can be imported: this interpreter and the packages of the environment."""
    found = [sys.version, sys.prefix]
    for entry in [] if installation.isolated else sys.path:
        with contextlib.suppress(OSError):  # an archive, or a folder that is not there
            names = sorted(os.listdir(entry or "."))  # noqa: PTH208 (names alone)
            found += [name for name in names if name.endswith((".dist-info", ".egg-info"))]
    return compute_digest("\n".join(found).encode("utf-8", "surrogateescape"))
