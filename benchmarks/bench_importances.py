"""The cost of explaining models besides the libraries' own calls: per cell, and of the whole command.

10 000 rows x 50 columns, 100 trees, every library that is installed, one cell at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from boosters_eval.api import load_importances

ROWS, COLUMNS, TARGET = 10_000, 50, 1.10
PROGRAM = [sys.executable, "-m", "boosters_eval", "importances", "--seeds", "1", "--jobs", "1", "--quiet"]


def report(name: str, value: float, *, good: bool) -> bool:
    print(f"{'ok  ' if good else 'MISS'} {name}: {value:.3f} (target {TARGET:.2f})")
    return good


def write_data(path: Path) -> None:
    """Ten columns that matter, with an interaction, and noise."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(ROWS, COLUMNS))
    y = x[:, :10] @ np.linspace(3, 0.3, 10) + x[:, 0] * x[:, 1] + draw.normal(size=ROWS)
    names = ",".join([*(f"c{column}" for column in range(COLUMNS)), "y"])
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=names, comments="", fmt="%.6g")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home, data = Path(folder, "home"), Path(folder, "data.csv")
        write_data(data)
        began = time.perf_counter()
        subprocess.run(
            [*PROGRAM, "--dataset", f"{data}:y"],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "BOOSTERS_EVAL_HOME": str(home)},
        )
        took = time.perf_counter() - began
        found = load_importances("last", home)
    good = True
    for cell in found.results:
        parts = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in cell.seconds.items())
        ratio = cell.cell_seconds / cell.library_seconds
        good &= report(f"{cell.library}, cell over its library's calls ({parts})", ratio, good=ratio <= TARGET)
    calls = sum(cell.library_seconds for cell in found.results)
    good &= report(
        f"the whole command ({took:.1f} s) over the libraries' calls", took / calls, good=took / calls <= TARGET
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
