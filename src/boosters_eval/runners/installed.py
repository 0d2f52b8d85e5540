"""Which build of a library is installed: its version, and a digest that a rebuild under the same version changes."""

from __future__ import annotations

import csv
import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.distributions import find_distribution
from boosters_eval.engine.cell import Build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.runners.base import Runner

_NO_ADAPTER = frozenset({"conformance.py", "document.py", "installed.py"})  # no result depends on these
_CODE = (".py", ".so", ".pyd", ".dylib", ".dll")


def installed_build(runner: type[Runner]) -> Build:
    """Version and digest of the installed files, read from the installer's record where it still tells the truth."""
    entries = sorted([*_entries(runner), *_adapter(runner)])
    digest = hashlib.sha256("\n".join(f"{name} {content}" for name, content in entries).encode()).hexdigest()
    return Build(version=runner.version() or "unknown", digest=digest[:16])


def _entries(runner: type[Runner]) -> Iterator[tuple[str, str]]:
    package = runner.module.partition(".")[0]
    root, files = next((found for found in map(_recorded, runner.distributions) if found[1]), ("", {}))
    code = (name for name in files if name.startswith(package) and name.endswith(_CODE) and "/tests/" not in name)
    changed = {name: time for name in code if (time := _modified(f"{root}/{name}")) is not None}
    if not changed:
        yield from _hashed_tree(package)
        return
    records = (_modified(f"{root}/{name}") for name in files if name.endswith("/RECORD"))
    installed = max(filter(None, records), default=0.0)
    for name, time in changed.items():
        # A file newer than the record was rebuilt in place: the recorded hash is no longer its own.
        recorded = files[name] if time <= installed + 60 else ""
        yield name, recorded or _hash(Path(root, name))


def _recorded(name: str) -> tuple[str, dict[str, str]]:
    """The files of a distribution with their hashes, as its installer wrote them down, and the folder they lie in.

    `Distribution.files` looks for each of them on disk, which takes 0.2 s for scikit-learn.
    """
    found = find_distribution(name)
    if found is None:
        return "", {}
    rows = csv.reader((found.read_text("RECORD") or "").splitlines())
    files = {row[0]: row[1].partition("=")[2] for row in rows if len(row) > 1}
    return str(found.locate_file("")), files


def _adapter(runner: type[Runner]) -> Iterator[tuple[str, str]]:
    """The adapter's own source decides a result as much as the library does; ours reads the mapping tables too."""
    if runner.__module__.startswith("boosters_eval.runners."):
        root = Path(__file__).parent
        source = (path for path in root.rglob("*.py") if path.name not in _NO_ADAPTER)
        yield from ((f"adapter/{path.relative_to(root).as_posix()}", _hash(path)) for path in source)
    else:
        file = getattr(sys.modules.get(runner.__module__), "__file__", None)
        # A file may have several: one that takes the name of another is not continued as if it were that.
        yield f"adapter/{runner.__qualname__}", _hash(Path(file)) if file else "unknown"


def _modified(file: str) -> float | None:
    try:
        return os.stat(file).st_mtime  # noqa: PTH116 (of a thousand files)
    except OSError:
        return None


def _hashed_tree(package: str) -> Iterator[tuple[str, str]]:
    """An editable or hand-made installation: its code itself is the record."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return
    root = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        if path.suffix in _CODE:
            yield path.relative_to(root.parent).as_posix(), _hash(path)


def _hash(path: Path) -> str:
    if not path.exists():
        return "missing"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
