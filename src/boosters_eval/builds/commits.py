"""The commits of a folder as wheels: each is checked out apart from the user's files, built, and kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from boosters_eval.builds.saying import tell
from boosters_eval.core.errors import BuildError, ConfigError
from boosters_eval.core.home import home as home_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHORT = 10  # digits of a commit that are shown
_LAST = 5  # lines of a build's output that are shown
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
        raise ConfigError(f"The 'commits' parameter must be GOOD..BAD, such as v1.2..main. Got '{text}' instead.")
    if not folder.is_dir():
        raise ConfigError(f"The 'folder' parameter must be a folder of a git repository. Got '{folder}' instead.")
    first, last = (_commit(folder, name) for name in (good, bad))
    if not _succeeds(folder, "merge-base", "--is-ancestor", first, last):
        raise ConfigError(f"The 'commits' parameter must be in order: '{good}' is not an ancestor of '{bad}'.")
    lines = _git(folder, "log", "--first-parent", "--reverse", "--format=%H %s", f"{first}..{last}").splitlines()
    found = [_git(folder, "log", "-1", "--format=%H %s", first).strip(), *lines]
    return [Commit(*line.partition(" ")[::2]) for line in found]


def build_commit(
    folder: Path,
    sha: str,
    command: str | None = None,
    *,
    home: Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """The wheel of a commit, built on first use and kept by commit and command. The user's files stay as they are.

    Without a command, pip builds it. A command runs in a shell, in the folder as it was at that commit.
    """
    sha = _commit(folder, sha)
    prefix = _git(folder, "rev-parse", "--show-prefix").strip()
    content = "\n".join([sha, prefix, command or "", sys.implementation.cache_tag or "", sys.platform])
    kept = home_of(home).resolve() / "wheels" / hashlib.sha256(content.encode()).hexdigest()[:16]
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        wheel = next(iter(sorted(kept.glob("*.whl"))), None)
        if wheel is not None:
            return wheel
        tell(say, f"Building commit {sha[:_SHORT]} ...")
        with _checkout(folder, sha) as (tree, scratch):
            built = _build(tree / prefix, command, scratch, sha)
            kept.mkdir(exist_ok=True)
            part = kept / f"{built.name}.part"
            shutil.copyfile(built, part)
            return part.rename(kept / built.name)


@contextmanager
def _checkout(folder: Path, sha: str) -> Iterator[tuple[Path, Path]]:
    """The files of a commit in a worktree of its own, and a folder beside it; both go away afterwards."""
    with tempfile.TemporaryDirectory(prefix="boosters-eval-commit-", ignore_cleanup_errors=True) as name:
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
        raise ConfigError(f"The folder {folder} has no commit '{name}', or is not part of a git repository.") from None


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
