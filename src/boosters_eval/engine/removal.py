"""Removing a run: never one that is being executed, and never anything outside the folder of the runs."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from boosters_eval.core.errors import RunError
from boosters_eval.core.home import home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.engine.folder import RunFolder

_LEAVING = ".removed-"


def remove(folder: RunFolder) -> None:
    """Remove a run as a whole: it is renamed first, so that no half of it is ever found.

    A link is removed itself, not what it leads to.
    """
    path = folder.path
    try:
        if path.is_symlink():
            path.unlink()
            return
        with _locked(folder):
            away = path.with_name(f"{_LEAVING}{secrets.token_hex(4)}-{path.name}")
            path.rename(away)
            _remove_tree(away)
    except OSError as error:
        raise RunError(f"Cannot remove {path}: {error.strerror}.") from None


def clear_leftovers(where: Path | None = None) -> None:
    """Finish what a removal that was killed has begun."""
    root = home(where) / "runs"
    for path in root.glob(f"{_LEAVING}*") if root.is_dir() else ():
        with contextlib.suppress(OSError):
            _remove_tree(path)


def _remove_tree(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    else:
        shutil.rmtree(path)  # follows no links


@contextlib.contextmanager
def _locked(folder: RunFolder) -> Iterator[None]:
    """Hold the run's lock; a lock that is a link would be created where it leads."""
    file = folder.path / "lock"
    if not folder.path.is_dir() or file.is_symlink():
        yield
        return
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(f"Run {folder.run_id} is being executed, so it was not removed.") from None
    except OSError:
        if not os.access(folder.path, os.W_OK):
            raise
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.release()
