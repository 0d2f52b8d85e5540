"""Where data is kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "BOOSTERS_EVAL_CACHE"


def cache_root() -> Path:
    """The platform's cache directory, or the one that the environment names."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path  # noqa: PLC0415 (not needed where the environment names one)

    return user_cache_path("boosters-eval", appauthor=False)
