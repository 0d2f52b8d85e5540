"""A library's source: a digest of its files, and its commits as wheels, built apart from the user's files and kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from boosters_eval.core.commands import make_pip_command, run_command
from boosters_eval.core.distributions import normalized
from boosters_eval.core.errors import BuildError, ConfigError
from boosters_eval.core.files import compute_digest
from boosters_eval.core.files import find_home as home_of
from boosters_eval.core.temporary import temporary_folder
from boosters_eval.core.terms import tell, the

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHORT = 10  # digits of a commit that are shown
_LAST = 5  # lines of a build's output that are shown
WHEELS = "{wheels}"  # in a build command: the folder that the wheel belongs in
# What tools leave beside source code. Only where git does not say what belongs to the source, or does not ignore it.
_PRODUCTS = frozenset({"build", "dist", "target", "node_modules", "venv", "__pycache__"})
_PRODUCT_ENDS = (".egg-info", ".pyc", ".pyo")
# What git sets for its hooks, and by which it would look into another repository than that of the folder.
_OTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)


@dataclass(frozen=True)
class Commit:
    """A commit, and the first line of its message."""

    sha: str
    subject: str

    @property
    def short(self) -> str:
        return self.sha[:_SHORT]


def find_project(folder: Path) -> str | None:
    """The normalized name of what pip would build there; None where nothing says it."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text()).get("project", {})
    except (OSError, ValueError):
        return None
    name = project.get("name") if isinstance(project, dict) else None
    return normalized(name) if isinstance(name, str) else None


def list_commits(folder: Path, text: str) -> list[Commit]:
    """The commits of `GOOD..BAD` in order, GOOD included; of merges only the line that they were merged into."""
    good, dots, bad = text.partition("..")
    if not dots or not good or not bad or bad.startswith("."):
        raise ConfigError(f"{the('commits')} must be GOOD..BAD, such as v1.2..main. Got '{text}' instead.")
    if not folder.is_dir():
        raise ConfigError(f"{the('folder')} must be a folder of a git repository. Got '{folder}' instead.")
    first, last = (_commit(folder, name) for name in (good, bad))
    if not _succeeds(folder, "merge-base", "--is-ancestor", first, last):
        cut = _shallow(folder)
        raise ConfigError(f"{the('commits')} must be in order: '{good}' is not an ancestor of '{bad}'{cut}.")
    # If GOOD was merged from a side branch, what is on the line before that merge does not contain it.
    line = ("--first-parent", "--ancestry-path", "--reverse", "--format=%H %s")
    lines = _git(folder, "log", *line, f"{first}..{last}").splitlines()
    found = [_git(folder, "log", "-1", "--format=%H %s", first).strip(), *lines]
    return [Commit(*line.partition(" ")[::2]) for line in found]


def build_commit(folder: Path, sha: str, command: str | None = None, *, home: Path | None = None) -> Path:
    """The wheel of a commit, built on first use and kept by commit and command. The user's files stay as they are.

    Without a command, pip builds it. A command runs in a shell, in the folder as it was at that commit.
    """
    sha = _commit(folder, sha)
    prefix = _git(folder, "rev-parse", "--show-prefix").strip()
    content = "\n".join([sha, prefix, command or "", sys.implementation.cache_tag or "", sys.platform])
    kept = wheels_folder(home).resolve() / compute_digest(content, 16)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        wheel = next(iter(sorted(kept.glob("*.whl"))), None)
        if wheel is not None:
            with suppress(OSError):  # a home that may only be read
                os.utime(kept)
            return wheel
        tell(f"Building commit {sha[:_SHORT]} ...")
        with _checkout(folder, sha) as (tree, scratch):
            built = _build(tree / prefix, command, scratch, sha)
            kept.mkdir(exist_ok=True)
            part = kept / f"{built.name}.part"
            shutil.copyfile(built, part)
            return part.rename(kept / built.name)


@dataclass(frozen=True)
class KeptWheel:
    """The wheel of a commit in the home; nothing of it is needed once its build is installed."""

    folder: Path

    @property
    def files(self) -> list[Path]:
        """The wheel, or what an interrupted build has left of it."""
        return sorted(self.folder.iterdir())

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files)

    @property
    def used(self) -> float:
        """When it was last asked for, as seconds since the epoch."""
        return self.folder.stat().st_mtime

    def remove(self) -> None:
        """Remove it, unless its commit is being built."""
        try:
            with FileLock(f"{self.folder}.lock", timeout=0):
                shutil.rmtree(self.folder)
        except Timeout:
            raise BuildError(f"The wheel {self.folder.name} is being built, so it was not removed.") from None
        except OSError as error:
            raise BuildError(f"Cannot remove {self.folder}: {error.strerror}.") from None


def wheels_folder(home: Path | None = None) -> Path:
    return home_of(home) / "wheels"


def list_wheels(home: Path | None = None) -> list[KeptWheel]:
    root = wheels_folder(home)
    found = [KeptWheel(path) for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    return sorted(found, key=lambda wheel: wheel.used, reverse=True)


@contextmanager
def _checkout(folder: Path, sha: str) -> Iterator[tuple[Path, Path]]:
    """The files of a commit in a worktree of its own, and a folder beside it; both go away afterwards."""
    place = temporary_folder()  # with which those that killed programs had left are cleared
    _succeeds(folder, "worktree", "prune")
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as name:
        tree = Path(name) / "tree"
        _git(folder, "worktree", "add", "--detach", "--force", str(tree), sha)
        try:
            if (tree / ".gitmodules").is_file():
                _git(tree, "submodule", "update", "--init", "--recursive")
            yield tree, Path(name)
        finally:
            # Twice forced: a worktree with submodules, or files that the build left, goes as well.
            _succeeds(folder, "worktree", "remove", "--force", "--force", str(tree))
            _succeeds(folder, "worktree", "prune")


def _build(tree: Path, command: str | None, scratch: Path, sha: str) -> Path:
    wheels = scratch / "wheels"
    wheels.mkdir()
    if not tree.is_dir():
        raise BuildError(f"Commit {sha[:_SHORT]} has no folder {tree.name}.")
    before = set(tree.rglob("*.whl"))
    pip = make_pip_command("wheel", "--no-deps", "--disable-pip-version-check", "--wheel-dir", str(wheels))
    words = [*pip, "."] if command is None else ["/bin/sh", "-c", command.replace(WHEELS, str(wheels))]
    done = run_command(words, env=_environment(), cwd=tree)
    if done.code:
        said = [line.rstrip() for line in done.output.strip().splitlines()[-_LAST:]]
        raise BuildError(f"Commit {sha[:_SHORT]} cannot be built: exit code {done.code}.", said)
    found = [*wheels.glob("*.whl"), *(path for path in tree.rglob("*.whl") if path not in before)]
    if not found:
        raise BuildError(f"The build of commit {sha[:_SHORT]} left no wheel, neither in its folder nor in {WHEELS}.")
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def _commit(folder: Path, name: str) -> str:
    try:
        return _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
    except BuildError:
        known = f"The folder {folder} has no commit '{name}', or is not part of a git repository"
        raise ConfigError(f"{known}{_shallow(folder)}.") from None


def _shallow(folder: Path) -> str:
    """Where commits of a clone may be that it lacks."""
    found = _run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip()
    return " (this clone is shallow: 'git fetch --unshallow' gets the rest)" if found == b"true" else ""


def _git(folder: Path, *words: str) -> str:
    done = _run_git(folder, *words)
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise BuildError(f"git {words[0]} failed in {folder}: {said or 'no output'}.")
    return done.stdout.decode(errors="replace")


def _succeeds(folder: Path, *words: str) -> bool:
    return _run_git(folder, *words).returncode == 0


def _run_git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", str(folder), *words]
    try:
        return subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 (no shell)
    except OSError:
        raise BuildError("Bisecting commits needs git, which is not installed.") from None


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}


def digest_files(folder: Path) -> dict[str, str]:
    """The digest of each file that a build of the folder may depend on.

    In a git repository it is the whole of it, because a folder may be built from its neighbors: what is tracked, and
    what is neither tracked nor ignored. Elsewhere it is every file in the folder but the products of builds; so it is
    in a repository that git refuses to read, as it does where another user owns it.
    """
    place = folder.resolve()
    root = next((parent for parent in (place, *place.parents) if (parent / ".git").exists()), None)
    if root is None:
        return _walk(folder)
    files = _walk(root) if _ask_git(root, "rev-parse", "--is-inside-work-tree") is None else _walk_repository(root)
    return {".": os.path.relpath(place, root), **files}


def digest_source(files: dict[str, str]) -> str:
    lines = "\n".join(f"{name}\0{content}" for name, content in sorted(files.items()))
    return compute_digest(lines.encode("utf-8", "surrogateescape"))


def _walk_repository(root: Path) -> dict[str, str]:
    tracked = _list_files(root, "--cached")
    others = [name for name in _list_files(root, "--others", "--exclude-standard") if not _is_product(name)]
    found: dict[str, str] = {}
    for name in dict.fromkeys([*tracked, *others]):
        if name in {"./", "."}:  # a submodule that is not there calls itself so
            continue
        path = root / name
        if path.is_dir() and not path.is_symlink():  # a submodule, or a repository inside this one
            found |= {f"{name.rstrip('/')}/{inner}": content for inner, content in _walk_repository(path).items()}
        else:
            found |= _follow(name, path, (root.resolve(),))
    return found


def _list_files(root: Path, *which: str) -> list[str]:
    return list(filter(None, (_ask_git(root, "ls-files", "-z", *which) or "").split("\0")))


def _ask_git(folder: Path, *words: str) -> str | None:
    """What git says; None where there is no repository, or no git."""
    try:
        done = _run_git(folder, *words)
    except BuildError:
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


def _walk(folder: Path, within: tuple[Path, ...] = ()) -> dict[str, str]:
    """All files of a folder that are no products, with what links lead to elsewhere."""
    found: dict[str, str] = {}
    within = (*within, folder.resolve())
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and not _is_product(f"{name}/")]
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in (*names, *links)):
            name = path.relative_to(folder).as_posix()
            found |= {} if _is_product(name) else _follow(name, path, within)
    return found


def _follow(name: str, path: Path, within: tuple[Path, ...]) -> dict[str, str]:
    """A file; of a link also what it leads to, unless that is in a folder that is looked at anyway, or around one."""
    found = {name: _digest_file(path)}
    goal = Path(os.path.realpath(path))
    if not path.is_symlink() or any(goal.is_relative_to(one) or one.is_relative_to(goal) for one in within):
        return found
    if goal.is_dir():
        return found | {f"{name}/{inner}": content for inner, content in _walk(goal, within).items()}
    return found | ({f"{name}/": _digest_file(goal)} if goal.is_file() else {})


def _is_product(name: str) -> bool:
    folders = name.split("/")[:-1]
    return name.endswith(_PRODUCT_ENDS) or any(part in _PRODUCTS or part.endswith(".egg-info") for part in folders)


def _digest_file(path: Path) -> str:
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
