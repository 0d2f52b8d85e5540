"""The commits of a folder as wheels: each is checked out apart from the user's files, built, and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from boosters_eval.core.errors import BuildError, ConfigError
from boosters_eval.core.files import compute_digest
from boosters_eval.core.files import home as home_of
from boosters_eval.core.terms import tell, the

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHORT = 10  # digits of a commit that are shown
_LAST = 5  # lines of a build's output that are shown
_CHECKOUT = "boosters-eval-commit-"  # how the folder of a checkout begins
_HELD = "lock"  # in that folder, as long as it is in use
WHEELS = "{wheels}"  # in a build command: the folder that the wheel belongs in
_WHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # set inside a git hook: they would win over the folder


@dataclass(frozen=True)
class Commit:
    """A commit, and the first line of its message."""

    sha: str
    subject: str

    @property
    def short(self) -> str:
        """As much of it as people read."""
        return self.sha[:_SHORT]


def commits_between(folder: Path, text: str) -> list[Commit]:
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


def build_commit(
    folder: Path,
    sha: str,
    command: str | None = None,
    *,
    home: Path | None = None,
) -> Path:
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
        """In bytes."""
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
    """Where the wheels of commits are kept."""
    return home_of(home) / "wheels"


def kept_wheels(home: Path | None = None) -> list[KeptWheel]:
    """All wheels of commits, the latest used first."""
    root = wheels_folder(home)
    found = [KeptWheel(path) for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    return sorted(found, key=lambda wheel: wheel.used, reverse=True)


@contextmanager
def _checkout(folder: Path, sha: str) -> Iterator[tuple[Path, Path]]:
    """The files of a commit in a worktree of its own, and a folder beside it; both go away afterwards."""
    _remove_abandoned(folder)
    with (
        tempfile.TemporaryDirectory(prefix=_CHECKOUT, ignore_cleanup_errors=True) as name,
        FileLock(Path(name) / _HELD),
    ):
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


def _remove_abandoned(folder: Path) -> None:
    """Remove the checkouts of this repository that a killed process has left; those in use are locked."""
    for line in _git(folder, "worktree", "list", "--porcelain").splitlines():
        where = Path(line.removeprefix("worktree ")).parent
        if line.startswith("worktree ") and where.name.startswith(_CHECKOUT) and where.is_dir():
            with suppress(Timeout, OSError), FileLock(where / _HELD, timeout=0):
                shutil.rmtree(where, ignore_errors=True)
    _succeeds(folder, "worktree", "prune")


def _build(tree: Path, command: str | None, scratch: Path, sha: str) -> Path:
    wheels = scratch / "wheels"
    wheels.mkdir()
    if not tree.is_dir():
        raise BuildError(f"Commit {sha[:_SHORT]} has no folder {tree.name}.")
    before = set(tree.rglob("*.whl"))
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "--wheel-dir", str(wheels)]
    words = [*pip, "."] if command is None else ["/bin/sh", "-c", command.replace(WHEELS, str(wheels))]
    done = subprocess.run(  # noqa: S603 (the user's own command)
        words,
        cwd=tree,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = [line.rstrip() for line in done.stdout.strip().splitlines()[-_LAST:]]
        raise BuildError(f"Commit {sha[:_SHORT]} cannot be built: exit code {done.returncode}.", said)
    found = [*wheels.glob("*.whl"), *(path for path in tree.rglob("*.whl") if path not in before)]
    if not found:
        raise BuildError(f"The build of commit {sha[:_SHORT]} left no wheel, neither in its folder nor in {WHEELS}.")
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def _commit(folder: Path, name: str) -> str:
    """The full id of a commit."""
    try:
        return _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
    except BuildError:
        known = f"The folder {folder} has no commit '{name}', or is not part of a git repository"
        raise ConfigError(f"{known}{_shallow(folder)}.") from None


def _shallow(folder: Path) -> str:
    """Where commits of a clone may be that it lacks."""
    found = _run_git(folder, ("rev-parse", "--is-shallow-repository"))
    return " (this clone is shallow: 'git fetch --unshallow' gets the rest)" if found.stdout.strip() == "true" else ""


def _git(folder: Path, *words: str) -> str:
    done = _run_git(folder, words)
    if done.returncode:
        raise BuildError(f"git {words[0]} failed in {folder}: {' '.join(done.stderr.split()) or 'no output'}.")
    return done.stdout


def _succeeds(folder: Path, *words: str) -> bool:
    return _run_git(folder, words).returncode == 0


def _run_git(folder: Path, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    git = shutil.which("git")
    if git is None:
        raise BuildError("Bisecting commits needs git, which is not installed.")
    return subprocess.run(  # noqa: S603 (no shell)
        [git, "-C", str(folder), *words], env=_environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _WHERE}
