"""The program in a process of its own, for what is about processes: exit codes, signals, streams, imports."""

import os
import sys
from pathlib import Path

PLUGINS = Path(__file__).parent / "plugins"
PROGRAM = (sys.executable, "-m", "boosters_eval")


def environment(*folders, **changes):
    """This process's environment with these folders first on Python's path; None takes a variable out."""
    path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    changed = {**os.environ, "PYTHONPATH": path, **changes}
    return {name: value for name, value in changed.items() if value is not None}
