"""Reading and writing files so that nothing is half there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from boosters_eval.errors import ConfigError, FileFormatError, RunError

# JSON of nonsense takes a hundred times its size in memory, so a file is refused by its size before it is read.
MAX_TEXT = 32 * 2**20
MAX_RESULTS = 512 * 2**20


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write beside the target, then rename over it: a reader sees the old file or the new one."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise RunError(f"Cannot write {path}: {error.strerror}.") from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Fail before the work, not after it, when the output cannot be written."""
    if path.is_dir():
        raise ConfigError(f"Cannot write {path}: it is a directory.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None


def read_text(path: Path, *, limit: int = MAX_TEXT) -> str:
    """A file from outside as text, with every way it can fail told in one sentence."""
    try:
        if path.stat().st_size > limit:
            raise FileFormatError(f"{path} is larger than {limit // 2**20} MB: not such a file of this program.")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist.") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not a text file.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
