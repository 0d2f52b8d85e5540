"""Which build of a library is installed: its version, and a digest that a rebuild under the same version changes."""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.engine.cell import Build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution, PackagePath

    from boosters_eval.runners.base import Runner

_NO_ADAPTER = frozenset({"conformance.py", "document.py", "installed.py"})  # no result depends on these
_CODE = frozenset({".py", ".so", ".pyd", ".dylib", ".dll"})


def installed_build(runner: type[Runner]) -> Build:
    """Version and digest of the installed files, read from the installer's record where it still tells the truth."""
    entries = sorted([*_entries(runner), *_adapter(runner)])
    digest = hashlib.sha256("\n".join(f"{name} {content}" for name, content in entries).encode()).hexdigest()
    return Build(version=runner.version() or "unknown", digest=digest[:16])


def _entries(runner: type[Runner]) -> Iterator[tuple[str, str]]:
    package = runner.module.partition(".")[0]
    files = next((found.files for found in map(_find, runner.distributions) if found and found.files), [])
    code = (file for file in files if file.suffix in _CODE and "tests" not in file.parts)
    own = [file for file in code if file.parts[0].startswith(package)]
    if not own:
        yield from _hashed_tree(package)
        return
    installed = max((_modified(file) for file in files if file.name == "RECORD"), default=0.0)
    for file in own:
        # A file newer than the record was rebuilt in place: the recorded hash is no longer its own.
        rebuilt = file.hash is None or _modified(file) > installed + 60
        yield (
            file.as_posix(),
            _hash(Path(str(file.locate()))) if rebuilt or file.hash is None else file.hash.value,
        )


def _adapter(runner: type[Runner]) -> Iterator[tuple[str, str]]:
    """The adapter's own source decides a result as much as the library does; ours reads the mapping tables too."""
    if runner.__module__.startswith("boosters_eval.runners."):
        root = Path(__file__).parent
        source = (path for path in root.rglob("*.py") if path.name not in _NO_ADAPTER)
        yield from ((f"adapter/{path.relative_to(root).as_posix()}", _hash(path)) for path in source)
    else:
        file = getattr(sys.modules.get(runner.__module__), "__file__", None)
        yield "adapter", _hash(Path(file)) if file else "unknown"


def _find(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _modified(file: PackagePath) -> float:
    path = Path(str(file.locate()))
    return path.stat().st_mtime if path.exists() else float("inf")


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
