"""Temporary folders with an owner: one per program for all that is temporary; what a killed one left is cleared."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "boosters-eval-tmp-"


_kept = contextlib.ExitStack()  # by which the program's folder is removed
_own: Path | None = None


def temporary_folder() -> Path:
    """This program's folder for whatever is temporary, its workers', pip's and dask's too; made on first use."""
    global _own  # noqa: PLW0603 (one per process)
    if _own is None or not _own.is_dir():
        _own = _kept.enter_context(own_folder(find_temporary()))
        atexit.register(_kept.close)
    return _own


def find_temporary() -> Path:
    """The system's place for temporary files, for what this program leaves there on purpose."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        raise RunError("There is no folder for temporary files that can be written to. TMPDIR may name one.") from None


def temporary_environment() -> dict[str, str]:
    """What lets a process that is started keep its temporary files in this program's folder."""
    return {"TMPDIR": str(temporary_folder())}


@contextlib.contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """A new folder below the parent, held by a lock until it is removed; those that nobody holds are removed first."""
    clear_abandoned(parent)
    while True:
        path = Path(tempfile.mkdtemp(dir=parent, prefix=_PREFIX))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY)
            # Since it was made, another program may have taken it for abandoned, and removed it.
            if _hold(lock) is not False and path.is_dir():
                break
            os.close(lock)
    owner = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == owner:  # and not a fork, whose end is not its owner's
            shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def clear_abandoned(parent: Path) -> None:
    """Remove the folders of this user whose owners are gone: the system has released their locks."""
    for path in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else's, or no folder
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid() and _hold(lock):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _hold(lock: int) -> bool | None:
    """Whether the lock is ours now; None where the file system knows no locks, and nothing is ever cleared."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
