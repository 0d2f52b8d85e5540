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
