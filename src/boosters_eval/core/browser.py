"""Opening what was written for a person to read."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def open_file(path: Path) -> None:
    """Open a file in the browser, where there is a display; without, Python would start one inside the terminal."""
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if not sys.platform.startswith("linux") or any(os.environ.get(name) for name in wanted):
        webbrowser.open(path.resolve().as_uri())
