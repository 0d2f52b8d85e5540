"""From what a user names to a competitor: a build is installed on first use, and never into the user's environment."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import secrets
import shutil
import sys
import sysconfig
import time
import zipfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.core.commands import has_pip, make_pip_command, run_command, without_current_folder
from boosters_eval.core.distributions import distributions_in, normalized
from boosters_eval.core.errors import BuildError, BuildImportError, ConfigError
from boosters_eval.core.files import check_regular, compute_digest, make_home
from boosters_eval.core.terms import tell
from boosters_eval.core.text import format_size, join_words
from boosters_eval.runners import RUNNERS, Runner
from boosters_eval.runners.builds import store
from boosters_eval.runners.builds.reference import BuildReference, is_reference, library_name, parse_reference
from boosters_eval.runners.builds.sources import digest_files, digest_source
from boosters_eval.runners.installed import digest_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


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
# What pip and uv say of a distribution that no index has, and of an index that does not answer.
_UNKNOWN = ("No matching distribution found", "there is no version of", "was not found in the package registry")
_OFFLINE = ("Retrying (", "Failed to fetch", "error sending request", "network was disabled")
_NEEDS_NUMPY_1 = re.compile(r"numpy\.dtype size changed.*Expected 96|compiled using NumPy 1\.x|_ARRAY_API not found")
_TRACEBACK = re.compile(
    r"^ERROR: Exception:\nTraceback \(most recent call last\):\n(?:[ \t].*\n|\n)+", re.MULTILINE
)  # its own
_READ_WHOLE = ("METADATA", "WHEEL", "RECORD", "entry_points.txt")  # by pip
_METADATA = 2**24  # bytes of one of them; the longest lists of files have a tenth
_SAID = 5  # lines of pip that a user is shown
_LONGEST = 400  # characters of each


@dataclass(frozen=True)
class PipResult:
    """How pip or uv ended, and what it printed."""

    code: int
    output: str
    by: str = "pip"

    @property
    def is_unknown(self) -> bool:
        """Whether there is no such distribution or version, rather than no way to look for it."""
        return self.code != 0 and any(words in self.output for words in _UNKNOWN) and not self.is_offline

    @property
    def is_offline(self) -> bool:
        """Whether an index that was to be looked at did not answer."""
        return self.code != 0 and any(words in self.output for words in _OFFLINE)

    @property
    def is_full(self) -> bool:
        return self.code != 0 and "No space left on device" in self.output

    @property
    def last_lines(self) -> list[str]:
        """What pip complained of, or the end of what it printed."""
        said = _TRACEBACK.sub("", self.output)
        lines = [_shortened(line.rstrip()) for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"\s*(ERROR|error|cause):", line)]
        return (errors if errors and len(lines) - lines.index(errors[-1]) <= _SAID else lines)[-_SAID:]


def _shortened(line: str) -> str:
    """Pip lists every version that there is, or every file that it could not write; some will do."""
    line = re.sub(r"\(from versions: (?:[^()]*, )?((?:[^,()]+, ){5}[^,()]+)\)", r"(from versions: ..., \1)", line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


def run_pip(*words: str) -> PipResult:
    """Run pip and wait for it. It is stopped with whoever waits."""
    command = make_pip_command(*words)
    if not has_pip() and "-m" in command:
        raise BuildError(f"Builds are installed by pip or uv, and {sys.executable} has neither: install one of them.")
    given = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    return PipResult(*run_command(command, env={**without_current_folder(given), **_SET}))


def _run_uv(uv: str, *words: str, cwd: Path) -> PipResult:
    """Run uv for this interpreter, away from the current folder, whose settings are anybody's."""
    command = (uv, "pip", "install", "--no-progress", "--python", sys.executable, *words)
    given = without_current_folder(dict(os.environ))
    return PipResult(*run_command(command, env={**given, "NO_COLOR": "1"}, cwd=cwd), by="uv")


@dataclass(frozen=True)
class BuildOrder:
    """What is to be installed: one of the alternatives that pip is told, the first that there is."""

    runner: type[Runner]
    origin: store.BuildOrigin
    source: str  # what identifies it
    reference: str  # as a user would name it
    requirements: Sequence[str]
    isolated: bool = False
    digest_again: Callable[[], str] | None = None  # the source after it was built, if that may have changed it
    beside: tuple[str, ...] = ()  # what an isolated build needs further, which its own requirements do not say

    @property
    def build_id(self) -> str:
        """The folder's name: equal orders for the same interpreter are one build."""
        parts = [self.runner.name, self.origin, self.source, python_tag(), "isolated" if self.isolated else ""]
        return compute_digest("\0".join(parts), 16)


def python_tag() -> str:
    return f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"


def install_reference(
    reference: BuildReference, *, home: Path | None = None, isolated: bool = False
) -> store.StoredBuild:
    """The build, installed on first use. One that was once added as isolated stays so until it is removed."""
    return install_order(_order(reference, isolated=isolated), home=home)


def install_order(order: BuildOrder, *, home: Path | None = None) -> store.StoredBuild:
    """The build that was ordered, from the store or installed now; what cannot be used is a BuildError."""
    alone = replace(order, isolated=True)
    order = alone if store.find_stored(alone.build_id, home) else order
    known = _find_usable(order, home)
    if known is not None:
        return known
    waiting = f"Waiting for another process, which is installing {order.reference} ..."
    with store.lock_build(order.build_id, home, busy=lambda: tell(waiting)):
        return _find_usable(order, home) or _install(order, home)


def _find_usable(order: BuildOrder, home: Path | None) -> store.StoredBuild | None:
    """The build in the store, if it is as it was installed and can be imported here."""
    build = store.find_stored(order.build_id, home)
    if build is None:
        return None
    if not build.is_whole():
        tell(f"The files of {order.reference} have changed since it was installed: installing it again.")
        return None
    _check_import(order, build)
    build.touch()
    return build


def _check_import(order: BuildOrder, build: store.StoredBuild) -> None:
    """Try the import, unless it worked before in the same surroundings."""
    now, file = store.describe_surroundings(build.installation), build.folder / "imported"
    with contextlib.suppress(OSError):
        if file.read_text() == now:
            return
    fault = store.find_import_fault(order.runner, build.installation)
    if fault:
        sentence = f"{order.reference} cannot be imported: {fault.rstrip('.')}."
        remedy = (
            " If it needs other versions of what is installed here, give it an environment of its own:"
            f" boosters-eval builds add '{order.reference}' --isolated"
        )
        raise BuildImportError(sentence if order.isolated else sentence + remedy)
    with contextlib.suppress(OSError):
        file.write_text(now)


def _install(order: BuildOrder, home: Path | None) -> store.StoredBuild:
    """Install; an isolated build of numpy's first major version that does not say so is installed again with that."""
    try:
        return _install_once(order, home)
    except BuildImportError as error:
        if not order.isolated or order.beside or not _NEEDS_NUMPY_1.search(str(error)):
            raise
    tell(f"{order.reference} was built for numpy 1, which it does not require: installing it again with that ...")
    return _install_once(replace(order, beside=("numpy<2",)), home)


def _install_once(order: BuildOrder, home: Path | None) -> store.StoredBuild:
    """Install beside the place where it belongs, and move it there when it is complete."""
    root = store.builds_folder(home)
    make_home(root.parent)
    for left in root.glob(f".{order.build_id}-*"):  # of an installation that was killed
        shutil.rmtree(left, ignore_errors=True)
    partial = root / f".{order.build_id}-{secrets.token_hex(4)}"
    start = time.monotonic()
    tell(f"Installing {order.reference}{' in an environment of its own' if order.isolated else ''} ...")
    try:
        (partial / "site").mkdir(parents=True)
        _fill(order, partial)
        order = order if order.digest_again is None else replace(order, source=order.digest_again())
        record = _record(order, partial / "site", time.monotonic() - start).sealed()
        store.write_record(partial, record)
        built = store.StoredBuild(partial, record)
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
    found = store.StoredBuild(root / order.build_id, record)
    found.touch()
    tell(f"Installed {order.reference}: {record.distribution} {record.version}, {record.seconds:.0f} s.")
    return found


def _fill(order: BuildOrder, partial: Path) -> None:
    """Try what pip may be told in turn, as long as there is no such distribution."""
    beside, alone = ([*list_requirements(), *order.beside], ()) if order.isolated else ([], ("--no-deps",))
    uv = None if has_pip() else shutil.which("uv")
    done = None
    for requirement in order.requirements:
        into = (*alone, "--target", str(partial / "site"))  # and nowhere else
        if uv is None:
            done = run_pip("install", "--no-user", "--prefix=", *into, "--", requirement, *beside)
        else:
            done = _run_uv(uv, *into, "--", requirement, *beside, cwd=partial)
        if not done.is_unknown:
            break
    if done is None or done.code != 0:
        said = done.last_lines if done else []
        if done and done.is_full:
            raise BuildError(f"{order.reference} cannot be installed into {partial.parent}: No space left on device.")
        by = done.by if done else "pip"
        why = f" because an index that {by} looks at cannot be reached" if done and done.is_offline else ""
        raise BuildError(f"{order.reference} cannot be installed{why}; {by} says:", said)


def list_requirements() -> list[str]:
    """What this program itself needs to run a cell, in versions as they are here."""
    try:
        needed = importlib.metadata.requires("boosters-eval") or []
    except importlib.metadata.PackageNotFoundError:
        raise BuildError("An isolated build needs this program to be installed as a package, and it is not.") from None
    return [text for text in needed if not re.search(r";.*\bextra\b", text)]


def _record(order: BuildOrder, site: Path, seconds: float) -> store.BuildRecord:
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
    return store.BuildRecord(
        build_id=order.build_id,
        library=order.runner.name,
        origin=order.origin,
        reference=order.reference,
        source=order.source,
        distribution=mine.name,
        version=mine.version,
        digest=digest,
        content=store.content_of(site),
        stamp=store.stamp_of(site),
        isolated=order.isolated,
        packages=beside if order.isolated else {},
        python=python_tag(),
        size=store.size_of(site),
        seconds=round(seconds, 3),
        installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _order(reference: BuildReference, *, isolated: bool) -> BuildOrder:
    runner, path, text = reference.runner, reference.path, str(reference)
    if path is None:
        wanted = [f"{name}=={reference.version}" for name in runner.distributions]
        return BuildOrder(runner, "version", str(reference.version), text, wanted, isolated)
    if reference.is_wheel:
        try:
            check_regular(path)
            _refuse_inflating(path)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BuildError(f"Cannot read {path}: {error.strerror}.") from None
        return BuildOrder(runner, "wheel", digest, text, [str(path)], isolated)
    before = digest_files(path)

    def digest_again() -> str:
        after = digest_files(path)
        edited = next((name for name, content in before.items() if after.get(name) != content), None)
        if edited is not None:  # what was built is not what there is now
            raise BuildError(f"{reference} was changed while it was being built ({edited}): try again.")
        return digest_source(after)  # with what the build itself has left there, so that it is found again

    return BuildOrder(runner, "source", digest_source(before), text, [str(path)], isolated, digest_again)


def _refuse_inflating(path: Path) -> None:
    """Refuse a wheel whose metadata would take all memory; what is no wheel at all, pip says."""
    with contextlib.suppress(zipfile.BadZipFile, NotImplementedError, UnicodeError), zipfile.ZipFile(path) as wheel:
        for each in wheel.infolist():
            folder, _, name = each.filename.rpartition("/")
            if folder.endswith(".dist-info") and name in _READ_WHOLE and each.file_size > _METADATA:
                size = format_size(each.file_size)
                raise BuildError(f"{path} has {size} in {each.filename}, more than any wheel needs.")


def list_versions(library: str) -> list[str]:
    """The released versions that pip finds for this interpreter, ascending; pre-releases are left out.

    Of all its distributions, since a version is installed from whichever has it: xgboost-cpu began with 2.1.
    """
    answers = [run_pip("index", "versions", distribution) for distribution in RUNNERS[library].distributions]
    lists = [re.search(r"^Available versions: (.+)$", done.output, re.MULTILINE) for done in answers]
    if not any(lists) or any(done.is_offline for done in answers):  # half of a list would look like all of it
        raise BuildError(f"pip finds no versions of {library}; it says:", answers[-1].last_lines)
    versions = {version.strip() for found in lists if found for version in found[1].split(",")}
    released = (version for version in versions if re.fullmatch(r"\d+(\.\d+)*(\.post\d+)?", version))
    return sorted(released, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])


def resolve_build(text: str, *, home: Path | None = None, isolated: bool = False) -> type[Runner]:
    """The adapter of the build that a text names, installed if it is not yet."""
    reference = parse_reference(text)
    build = install_reference(reference, home=home, isolated=isolated)
    return reference.runner.at(reference.label, build.installation)


def resolve_competitors(items: Iterable[Any], home: Path | None = None) -> dict[Any, type[Runner]]:
    """The adapter of each competitor: a library, or a build, which is installed on first use.

    Two that have one name are refused, before anything is installed where texts tell. The same build under two names
    is a test of the comparison itself.
    """
    every = list(items)
    for item in every:
        if not isinstance(item, (str, type)):
            library_name(item)  # refuses it
    builds = {item: parse_reference(item) for item in every if isinstance(item, str) and is_reference(item)}
    _refuse_namesakes((item, build.label, str(build)) for item, build in builds.items())
    found = {item: _find_competitor(item, home) for item in dict.fromkeys(every)}
    _refuse_namesakes((item, runner.name, runner.installation) for item, runner in found.items())
    return found


def _refuse_namesakes(competitors: Iterable[tuple[Any, str, Any]]) -> None:
    """Each is what the user gave, its name, and what it is."""
    names: dict[str, tuple[Any, Any]] = {}
    for item, name, what in competitors:
        other, known = names.setdefault(name, (item, what))
        if known != what:
            build = other if what is None else item
            raise ConfigError(
                f"Two competitors are named '{name}' ({_shown(other)} and {_shown(item)}): give one of"
                f" them another name, as in NAME={_shown(build).removeprefix(f'{name}=') or build}."
            )


def _find_competitor(item: Any, home: Path | None) -> type[Runner]:
    if isinstance(item, type) and issubclass(item, Runner) and item.installation is not None:
        fault = store.changed_since(item.installation)  # nobody has looked at it since it was named
        if fault:
            raise BuildError(
                f"{item.name}: {fault}; name it again by its version or its path, and it is installed again."
            )
        return item
    if isinstance(item, str) and is_reference(item):
        return resolve_build(item, home=home)
    return RUNNERS[library_name(item)]


def _shown(item: Any) -> str:
    return str(getattr(item, "__name__", item))
