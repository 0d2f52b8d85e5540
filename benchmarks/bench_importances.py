"""The cost of explaining models besides the libraries' own calls: per cell, and of the whole command.

10 000 rows x 50 columns, 100 trees, one split, every library that is installed, one cell at a time. Times are those of
a clock on the wall: on a busy machine they tell little.

The command is run twice: once with its cells, and once again with `--resume`, when all of them are done and it only
starts, reads and audits the data, and writes the report. That gives four parts of the whole, all of which are printed:

- the cells, of which the libraries' own calls are the measure of everything;
- this program besides: the second run, without the imports of numpy, pandas, scipy, pydantic, typer and rich;
- those imports, measured in a process of their own;
- the rest: processes that are started, and libraries that are imported in them, for each library once.

The target holds for the first two parts together. The others do not grow with the data, the seeds or the trees.
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
IMPORTS = "import numpy, pandas, scipy.special, scipy.linalg, pydantic, typer, rich.console"


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


def seconds_of(command: list[str], home: Path) -> float:
    began = time.perf_counter()
    environment = {**os.environ, "BOOSTERS_EVAL_HOME": str(home)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - began


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home, data = Path(folder, "home"), Path(folder, "data.csv")
        write_data(data)
        command = [*PROGRAM, "--dataset", f"{data}:y"]
        whole = seconds_of(command, home)
        again = seconds_of([*command, "--resume"], home)
        imports = seconds_of([sys.executable, "-c", IMPORTS], home)
        found = load_importances("last", home)
    good = True
    for cell in found.results:
        parts = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in cell.seconds.items())
        ratio = cell.cell_seconds / cell.library_seconds
        good &= report(f"{cell.library}, cell over its library's calls ({parts})", ratio, good=ratio <= TARGET)
    calls = sum(cell.library_seconds for cell in found.results)
    cells = sum(cell.cell_seconds for cell in found.results)
    own, lanes = again - imports, whole - cells - again
    print(f"     the whole command: {whole:.1f} s, {whole / calls:.2f} times the libraries' calls ({calls:.1f} s)")
    print(
        f"     cells {cells:.1f} s, this program {own:.1f} s, imports {imports:.1f} s,"
        f" libraries' processes {lanes:.1f} s"
    )
    ratio = (cells + own) / calls
    return 0 if report("cells and this program over the libraries' calls", ratio, good=ratio <= TARGET) and good else 1


if __name__ == "__main__":
    sys.exit(main())
