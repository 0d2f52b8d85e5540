"""Installing a build on first use: into a folder of the store, and never into the user's environment."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import secrets
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.distributions import distributions_in, normalized
from boosters_eval.core.errors import BuildError
from boosters_eval.core.files import compute_digest
from boosters_eval.core.terms import tell
from boosters_eval.core.text import join_words
from boosters_eval.engine.processes import kill_group
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.importing import import_fault, surroundings
from boosters_eval.runners.builds.store import (
    BuildOrigin,
    BuildRecord,
    StoredBuild,
    builds_folder,
    content_of,
    locked,
    size_of,
    stamp_of,
    stored_build,
    write_record,
)
from boosters_eval.runners.installed import digest_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boosters_eval.runners.base import Runner
    from boosters_eval.runners.builds.reference import BuildReference


# What tools leave beside source code. Only where git does not say what belongs to the source, or does not ignore it.
_PRODUCTS = frozenset({"build", "dist", "target", "node_modules", "venv", "__pycache__"})
_PRODUCT_ENDS = (".egg-info", ".pyc", ".pyo")
# What git sets for its hooks, and by which it would look into another repository than that of the folder.
_OTHER_REPOSITORY = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"}
)


def wheel_digest(path: Path) -> str:
    """Of the file itself."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"Cannot read {path}: {error.strerror}.") from None


def source_files(folder: Path) -> dict[str, str]:
    """The digest of each file that a build of the folder may depend on.

    In a git repository it is the whole of it, because a folder may be built from its neighbors: what is tracked, and
    what is neither tracked nor ignored. Elsewhere it is every file in the folder but the products of builds; so it is
    in a repository that git refuses to read, as it does where another user owns it.
    """
    place = folder.resolve()
    root = next((parent for parent in (place, *place.parents) if (parent / ".git").exists()), None)
    if root is None:
        return _walked(folder)
    files = _walked(root) if _git(root, "rev-parse", "--is-inside-work-tree") is None else _repository(root)
    return {".": os.path.relpath(place, root), **files}


def source_digest(files: dict[str, str]) -> str:
    """Of all these files with their names."""
    lines = "\n".join(f"{name}\0{content}" for name, content in sorted(files.items()))
    return compute_digest(lines.encode("utf-8", "surrogateescape"))


def _repository(root: Path) -> dict[str, str]:
    tracked = _listed(root, "--cached")
    others = [name for name in _listed(root, "--others", "--exclude-standard") if not _is_product(name)]
    found: dict[str, str] = {}
    for name in dict.fromkeys([*tracked, *others]):
        if name in {"./", "."}:  # a submodule that is not there calls itself so
            continue
        path = root / name
        if path.is_dir() and not path.is_symlink():  # a submodule, or a repository inside this one
            found |= {f"{name.rstrip('/')}/{inner}": content for inner, content in _repository(path).items()}
        else:
            found |= _followed(name, path, (root.resolve(),))
    return found


def _listed(root: Path, *which: str) -> list[str]:
    return list(filter(None, (_git(root, "ls-files", "-z", *which) or "").split("\0")))


def _git(folder: Path, *words: str) -> str | None:
    """What git says; None where there is no repository, or no git."""
    try:
        done = subprocess.run(  # noqa: S603 (a fixed command on the user's own folder)
            ["git", "-C", str(folder), *words],  # noqa: S607 (git as the user has it)
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY},
        )
    except OSError:
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


def _walked(folder: Path, within: tuple[Path, ...] = ()) -> dict[str, str]:
    """All files of a folder that are no products, with what links lead to elsewhere."""
    found: dict[str, str] = {}
    within = (*within, folder.resolve())
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and not _is_product(f"{name}/")]
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in (*names, *links)):
            name = path.relative_to(folder).as_posix()
            found |= {} if _is_product(name) else _followed(name, path, within)
    return found


def _followed(name: str, path: Path, within: tuple[Path, ...]) -> dict[str, str]:
    """A file; of a link also what it leads to, unless that is in a folder that is looked at anyway, or around one."""
    found = {name: _content(path)}
    goal = Path(os.path.realpath(path))
    if not path.is_symlink() or any(goal.is_relative_to(one) or one.is_relative_to(goal) for one in within):
        return found
    if goal.is_dir():
        return found | {f"{name}/{inner}": content for inner, content in _walked(goal, within).items()}
    return found | ({f"{name}/": _content(goal)} if goal.is_file() else {})


def _is_product(name: str) -> bool:
    folders = name.split("/")[:-1]
    return name.endswith(_PRODUCT_ENDS) or any(part in _PRODUCTS or part.endswith(".egg-info") for part in folders)


def _content(path: Path) -> str:
    """A file's digest, a link's goal, and whether it can be executed."""
    try:
        if path.is_symlink():
            return f"link {path.readlink()}"
        with path.open("rb") as file:
            executable = "x" if os.fstat(file.fileno()).st_mode & 0o100 else "-"
            return f"{executable} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        raise BuildError(f"Cannot read {path}: {error.strerror}.") from None


# Settings of the user that would install elsewhere, something else, or nothing. Those of a configuration file are
# overruled by variables and options. Whatever says where packages come from is the user's.
_DROPPED = frozenset(
    f"PIP_{name}"
    for name in (
        *("TARGET", "PREFIX", "ROOT", "USER", "REQUIRE_VIRTUALENV", "PYTHON"),  # elsewhere
        *("EDITABLE", "REQUIREMENT", "NO_DEPS", "PLATFORM", "PYTHON_VERSION", "ABI", "IMPLEMENTATION"),
        *("DRY_RUN", "REPORT", "QUIET", "VERBOSE"),
    )
)
_SET = {
    "PIP_USER": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_DRY_RUN": "0",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_COLOR": "1",
    "PYTHONIOENCODING": "utf-8",
}
_SAID = 5  # lines of pip that a user is shown
_LONGEST = 400  # characters of each


@dataclass(frozen=True)
class PipResult:
    """How pip ended, and what it printed."""

    code: int
    output: str

    @property
    def is_unknown(self) -> bool:
        """Whether there is no such distribution or version, rather than no way to look for it."""
        return self.code != 0 and "No matching distribution found" in self.output and not self.is_offline

    @property
    def is_offline(self) -> bool:
        """Whether an index that pip was told to look at did not answer."""
        return self.code != 0 and "Retrying (" in self.output

    @property
    def is_full(self) -> bool:
        """Whether the disk was."""
        return self.code != 0 and "No space left on device" in self.output

    @property
    def last_lines(self) -> list[str]:
        """What pip complained of, or the end of what it printed."""
        lines = [_shortened(line.rstrip()) for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"\s*(ERROR|error):", line)]
        return (errors if errors and len(lines) - lines.index(errors[-1]) <= _SAID else lines)[-_SAID:]


def _shortened(line: str) -> str:
    """Pip lists every version that there is, or every file that it could not write; some will do."""
    line = re.sub(r"\(from versions: (?:[^()]*, )?((?:[^,()]+, ){5}[^,()]+)\)", r"(from versions: ..., \1)", line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


def run_pip(*words: str) -> PipResult:
    """Run pip and wait for it. It is stopped with whoever waits."""
    if find_spec("pip") is None:
        raise BuildError(
            f"Builds are installed by pip, which {sys.executable} does not have: run '{sys.executable} -m ensurepip'."
        )
    given = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    with subprocess.Popen(  # noqa: S603 (this interpreter's own pip)
        [sys.executable, "-P", "-m", "pip", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**given, **_SET},
        start_new_session=True,  # so that a compiler which it started can be stopped with it
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            kill_group(process.pid)
            raise
    return PipResult(process.returncode, output.decode(errors="replace"))


def install_into(folder: Path, requirements: Sequence[str], *, dependencies: bool = False) -> PipResult:
    """Install into a folder and nowhere else; without dependencies, only what is named."""
    alone = [] if dependencies else ["--no-deps"]
    return run_pip("install", "--no-user", "--prefix=", *alone, "--target", str(folder), "--", *requirements)


@dataclass(frozen=True)
class BuildOrder:
    """What is to be installed: `make` gives what pip is told, the alternatives in order, from an empty folder."""

    runner: type[Runner]
    origin: BuildOrigin
    source: str  # what identifies it
    reference: str  # as a user would name it
    make: Callable[[Path], Sequence[str]]
    isolated: bool = False
    settled: Callable[[], str] | None = None  # the source after it was built, if that may have changed it

    @property
    def build_id(self) -> str:
        """The folder's name: equal orders for the same interpreter are one build."""
        parts = [self.runner.name, self.origin, self.source, python_tag(), "isolated" if self.isolated else ""]
        return compute_digest("\0".join(parts), 16)


def python_tag() -> str:
    """The interpreter and platform that a build is for."""
    return f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"


def install_reference(reference: BuildReference, *, home: Path | None = None, isolated: bool = False) -> StoredBuild:
    """The build, installed on first use. One that was once added as isolated stays so until it is removed."""
    return install_order(_order(reference, isolated=isolated), home=home)


def install_order(order: BuildOrder, *, home: Path | None = None) -> StoredBuild:
    """The build that was ordered, from the store or installed now; what cannot be used is a BuildError."""
    alone = replace(order, isolated=True)
    order = alone if stored_build(alone.build_id, home) else order
    known = _usable(order, home)
    if known is not None:
        return known
    waiting = f"Waiting for another process, which is installing {order.reference} ..."
    with locked(order.build_id, home, busy=lambda: tell(waiting)):
        return _usable(order, home) or _installed(order, home)


def _usable(order: BuildOrder, home: Path | None) -> StoredBuild | None:
    """The build in the store, if it is as it was installed and can be imported here."""
    build = stored_build(order.build_id, home)
    if build is None:
        return None
    if not build.is_whole():
        tell(f"The files of {order.reference} have changed since it was installed: installing it again.")
        return None
    _check_import(order, build)
    build.touch()
    return build


def _check_import(order: BuildOrder, build: StoredBuild) -> None:
    """Try the import, unless it worked before in the same surroundings."""
    now, file = surroundings(build.installation), build.folder / "imported"
    with contextlib.suppress(OSError):
        if file.read_text() == now:
            return
    fault = import_fault(order.runner, build.installation)
    if fault:
        raise BuildError(_import_sentence(order, fault))
    with contextlib.suppress(OSError):
        file.write_text(now)


def _import_sentence(order: BuildOrder, fault: str) -> str:
    sentence = f"{order.reference} cannot be imported: {fault.rstrip('.')}."
    if order.isolated:
        return sentence
    return (
        f"{sentence} If it needs other versions of what is installed here, give it an environment of its own:"
        f" boosters-eval builds add '{order.reference}' --isolated"
    )


def _installed(order: BuildOrder, home: Path | None) -> StoredBuild:
    """Install beside the place where it belongs, and move it there when it is complete."""
    root = builds_folder(home)
    for left in root.glob(f".{order.build_id}-*"):  # of an installation that was killed
        shutil.rmtree(left, ignore_errors=True)
    partial = root / f".{order.build_id}-{secrets.token_hex(4)}"
    start = time.monotonic()
    tell(f"Installing {order.reference}{' in an environment of its own' if order.isolated else ''} ...")
    try:
        (partial / "site").mkdir(parents=True)
        _fill(order, partial)
        order = order if order.settled is None else replace(order, source=order.settled())
        record = _record(order, partial / "site", time.monotonic() - start)
        write_record(partial, record)
        built = StoredBuild(partial, record)
        _check_import(order, built)
        # Bytecode was written just now, and is no part of it; anything else would be.
        if not built.is_whole():
            raise BuildError(f"{order.reference} cannot be used: importing it changes its own files.")
        target = root / order.build_id
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    except OSError as error:
        raise BuildError(f"{order.reference} cannot be installed into {root}: {error.strerror}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    found = StoredBuild(root / order.build_id, record)
    found.touch()
    tell(f"Installed {order.reference}: {record.distribution} {record.version}, {record.seconds:.0f} s.")
    return found


def _fill(order: BuildOrder, partial: Path) -> None:
    """Try what pip may be told in turn, as long as there is no such distribution."""
    scratch = partial / "scratch"
    scratch.mkdir()
    beside = base_requirements() if order.isolated else []
    done = None
    for requirement in order.make(scratch):
        done = install_into(partial / "site", [requirement, *beside], dependencies=order.isolated)
        if not done.is_unknown:
            break
    shutil.rmtree(scratch, ignore_errors=True)
    if done is None or done.code != 0:
        said = done.last_lines if done else []
        if done and done.is_full:
            raise BuildError(f"{order.reference} cannot be installed into {partial.parent}: No space left on device.")
        why = " because an index that pip looks at cannot be reached" if done and done.is_offline else ""
        raise BuildError(f"{order.reference} cannot be installed{why}; pip says:", said)


def base_requirements() -> list[str]:
    """What this program itself needs to run a cell, in versions as they are here."""
    try:
        needed = importlib.metadata.requires("boosters-eval") or []
    except importlib.metadata.PackageNotFoundError:
        raise BuildError("An isolated build needs this program to be installed as a package, and it is not.") from None
    return [text for text in needed if not re.search(r";.*\bextra\b", text)]


def _record(order: BuildOrder, site: Path, seconds: float) -> BuildRecord:
    found = distributions_in([str(site)])
    names = [name for name in map(normalized, order.runner.distributions) if name in found]
    if not names:
        there = ", ".join(item.name for item in found.values()) or "nothing"
        wanted = join_words(order.runner.distributions, "or")
        raise BuildError(f"{order.reference} is not a build of {order.runner.name} ({wanted}): it installs {there}.")
    mine = found.pop(names[0])
    beside = {item.name: item.version for item in sorted(found.values(), key=lambda item: item.name)}
    if beside and not order.isolated:
        raise BuildError(
            f"{order.reference} cannot be used: pip has installed {', '.join(beside)} as well, which its configuration"
            " asks for ('pip config list' shows it). Only the library itself may differ."
        )
    digest = digest_in(order.runner, str(site))
    if order.isolated:  # it computes with all of them
        digest = compute_digest(f"{digest} {sorted(beside.items())}", 16)
    return BuildRecord(
        build_id=order.build_id,
        library=order.runner.name,
        origin=order.origin,
        reference=order.reference,
        source=order.source,
        distribution=mine.name,
        version=mine.version,
        digest=digest,
        content=content_of(site),
        stamp=stamp_of(site),
        isolated=order.isolated,
        packages=beside if order.isolated else {},
        python=python_tag(),
        size=size_of(site),
        seconds=round(seconds, 3),
        installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _order(reference: BuildReference, *, isolated: bool) -> BuildOrder:
    if reference.path is not None and not reference.is_wheel:
        return _folder_order(reference, reference.path, isolated=isolated)
    if reference.path is None:
        wanted = [f"{name}=={reference.version}" for name in reference.runner.distributions]
        return BuildOrder(
            reference.runner, "version", str(reference.version), str(reference), lambda _: wanted, isolated=isolated
        )
    wheel = [str(reference.path)]
    digest = wheel_digest(reference.path)
    return BuildOrder(reference.runner, "wheel", digest, str(reference), lambda _: wheel, isolated=isolated)


def _folder_order(reference: BuildReference, folder: Path, *, isolated: bool) -> BuildOrder:
    """The order for a source folder as it is now; one that is edited meanwhile is not what was built."""
    before = source_files(folder)

    def settled() -> str:
        after = source_files(folder)
        edited = next((name for name, content in before.items() if after.get(name) != content), None)
        if edited is not None:
            raise BuildError(f"{reference} was changed while it was being built ({edited}): try again.")
        return source_digest(after)  # with what the build itself has left there, so that it is found again

    source = source_digest(before)
    return BuildOrder(
        reference.runner, "source", source, str(reference), lambda _: [str(folder)], isolated=isolated, settled=settled
    )


def released_versions(library: str) -> list[str]:
    """The released versions that pip finds for this interpreter, ascending; pre-releases are left out.

    Of all its distributions, since a version is installed from whichever has it: xgboost-cpu began with 2.1.
    """
    answers = [run_pip("index", "versions", distribution) for distribution in RUNNERS[library].distributions]
    lists = [re.search(r"^Available versions: (.+)$", done.output, re.MULTILINE) for done in answers]
    if not any(lists) or any(done.is_offline for done in answers):  # half of a list would look like all of it
        raise BuildError(f"pip finds no versions of {library}; it says:", answers[-1].last_lines)
    versions = {version.strip() for found in lists if found for version in found[1].split(",")}
    return sorted(filter(_RELEASE.fullmatch, versions), key=_numbers)


_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
