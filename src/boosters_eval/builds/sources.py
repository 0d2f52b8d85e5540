"""What identifies that which a build is made from: the content of a wheel, or of a folder with source code."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from boosters_eval.core.errors import BuildError

# What tools leave beside source code. Only where git does not say what belongs to the source, or does not ignore it.
_PRODUCTS = frozenset({"build", "dist", "target", "node_modules", "venv", "__pycache__"})
_PRODUCT_ENDS = (".egg-info", ".pyc", ".pyo")


def wheel_digest(path: Path) -> str:
    """Of the file itself."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"Cannot read {path}: {error.strerror}.") from None


def source_files(folder: Path) -> dict[str, str]:
    """The digest of each file that a build of the folder may depend on.

    In a git repository it is the whole of it, because a folder may be built from its neighbours: what is tracked, and
    what is neither tracked nor ignored. Elsewhere it is every file in the folder but the products of builds.
    """
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return {name: _content(folder / name) for name in _walked(folder)}
    root = Path(top.rstrip("\n"))
    where = os.path.relpath(folder.resolve(), root.resolve())
    return {".": where, **_repository(root)}


def source_digest(files: dict[str, str]) -> str:
    """Of all these files with their names."""
    lines = "\n".join(f"{name}\0{content}" for name, content in sorted(files.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


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
            found[name] = _content(path)
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
        )
    except OSError:
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


def _walked(folder: Path) -> list[str]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and not _is_product(f"{name}/")]
        found += [os.path.relpath(os.path.join(place, name), folder) for name in names]  # noqa: PTH118 (many)
    return [name for name in found if not _is_product(name)]


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
