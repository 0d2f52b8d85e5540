"""Where runs are kept. Nothing heavy is imported here: `list` reads it too."""

from __future__ import annotations

import os
from pathlib import Path

from boosters_eval.core.errors import ConfigError, require


def home(given: Path | None = None) -> Path:
    """BOOSTERS_EVAL_HOME, or .boosters-eval in the current directory."""
    path = given or Path(os.environ.get("BOOSTERS_EVAL_HOME") or ".boosters-eval")
    if path.exists() and not path.is_dir():
        raise ConfigError(f"The home {path} must be a directory. Got a file instead; set BOOSTERS_EVAL_HOME.")
    return path


def given_home(given: str | Path | None) -> Path | None:
    """The home that a caller names, as a path."""
    require("home", given, (str, Path, type(None)), "a path")
    return None if given is None else Path(given)
