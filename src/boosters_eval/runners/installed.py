"""Which build of a library is installed: its version, and a digest that a rebuild under the same version changes."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.distributions import distributions_in, find_distribution, normalized
from boosters_eval.core.files import compute_digest
from boosters_eval.engine.cell import Build, Target
from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import Distribution

    from boosters_eval.runners.base import Runner


# They describe, measure and check a fit, or find the library: none of it is what an adapter does.
_NO_ADAPTER = ("config.py", "conformance.py", "installed.py", "measure.py", "result.py")
# What finds the code of an editable installation: it contains the path of the checkout.
_LOADER = re.compile(r"__editable__.*|_.*_editable(_loader)?\.py")
_CODE = (".py", ".so", ".pyd", ".dylib", ".dll")


def installed_build(runner: type[Runner]) -> Build:
    """Version and digest of the library's files, and what a label of its own is a build of."""
    installation = runner.installation
    return Build(
        version=runner.version() or "unknown",
        digest=_digest([("library", library_digest(runner)), *_adapter(runner)]),
        library=None if installation is None and not runner.labeled else runner.library(),
        packages=None if installation is None else installation.packages or None,
    )


def library_digest(runner: type[Runner]) -> str:
    """A digest of the library's own code, by the same formula wherever it is installed."""
    return _digest(_entries(runner)) if runner.installation is None else runner.installation.digest


def digest_in(runner: type[Runner], folder: str) -> str:
    """The digest that the library in this folder has; its installer's record names the files, their content counts."""
    found = distributions_in([folder])
    mine = next((found[name] for name in map(normalized, runner.distributions) if name in found), None)
    root, files = _recorded(mine)
    return _digest((name, _hash(Path(root, name))) for name in files if _counts(name))


def _digest(entries: Iterable[tuple[str, str]]) -> str:
    lines = sorted(f"{name} {content}" for name, content in entries)
    return compute_digest("\n".join(lines), 16)


def _counts(name: str) -> bool:
    """Whether a file of a distribution decides what it computes: its code, and the shared objects that came with it."""
    top = name.partition("/")[0]
    code = (name.endswith(_CODE) and not _LOADER.fullmatch(top)) or top.endswith(".libs")
    return code and top not in {"..", "bin"} and "/tests/" not in name


def _entries(runner: type[Runner]) -> Iterator[tuple[str, str]]:
    known = (_recorded(find_distribution(name)) for name in runner.distributions)
    root, files = next((found for found in known if found[1]), ("", {}))
    changed = {name: time for name in filter(_counts, files) if (time := _modified(f"{root}/{name}")) is not None}
    package = runner.module.partition(".")[0]
    if not changed or _is_shadowed(package, root):
        yield from _hashed_tree(package)
    records = (_modified(f"{root}/{name}") for name in files if name.endswith("/RECORD"))
    installed = max(filter(None, records), default=0.0)
    for name, time in changed.items():
        # A file newer than the record was rebuilt in place: the recorded hash is no longer its own.
        recorded = files[name] if time <= installed + 60 else ""
        yield name, recorded or _hash(Path(root, name))


def _recorded(found: Distribution | None) -> tuple[str, dict[str, str]]:
    """The files of a distribution with their hashes, as its installer wrote them down, and the folder they lie in.

    `Distribution.files` looks for each of them on disk, which takes 0.2 s for scikit-learn.
    """
    if found is None:
        return "", {}
    rows = csv.reader((found.read_text("RECORD") or "").splitlines())
    files = {row[0]: row[1].partition("=")[2] for row in rows if len(row) > 1}
    return str(found.locate_file("")), files


def _adapter(runner: type[Runner]) -> Iterator[tuple[str, str]]:
    """The adapter's own source decides a result as much as the library does; ours reads the mapping tables too."""
    if runner.__module__.startswith("boosters_eval.runners."):
        root = Path(__file__).parent
        source = (path for path in root.rglob("*.py") if path.name not in _NO_ADAPTER and path.parent.name != "builds")
        yield from ((f"adapter/{path.relative_to(root).as_posix()}", _hash(path)) for path in source)
    else:
        file = getattr(sys.modules.get(runner.__module__), "__file__", None)
        # A file may have several: one that takes the name of another is not continued as if it were that.
        yield f"adapter/{runner.__qualname__}", _hash(Path(file)) if file else "unknown"


def _modified(file: str) -> float | None:
    """When it was written here: a copy may keep the time of what it was copied from, but not that of its own entry."""
    try:
        found = os.stat(file)  # noqa: PTH116 (of a thousand files)
    except OSError:
        return None
    return max(found.st_mtime, found.st_ctime)


def _is_shadowed(package: str, root: str) -> bool:
    """Whether an import finds the package elsewhere than where it was installed, as PYTHONPATH can have it."""
    try:
        spec = find_spec(package)
    except ValueError:  # of a module that was put together by hand
        return False
    if spec is None or spec.origin is None:
        return False
    folder = Path(spec.origin).parent
    try:
        return not (folder.parent if spec.submodule_search_locations else folder).samefile(root)
    except OSError:
        return True


def _hashed_tree(package: str) -> Iterator[tuple[str, str]]:
    """An editable, hand-made or shadowing installation: its code itself is the record."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return
    root = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    archive = next((path for path in root.parents if path.is_file()), None)
    if archive is not None:
        yield archive.name, _hash(archive)
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        name = path.relative_to(root.parent).as_posix()
        if _counts(name):
            yield name, _hash(path)


def _hash(path: Path) -> str:
    """The content's digest, spelt as in an installer's record."""
    if not path.exists():
        return "missing"
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").digest()
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode()


def target_of(runner: type[Runner]) -> Target:
    return Target(name=runner.name, build=installed_build(runner), installation=runner.installation)


def runner_for(target: Target) -> type[Runner]:
    runner = RUNNERS[target.library]
    return runner if target.installation is None else runner.at(target.name, target.installation)
