"""The engine's own cost, measured in one run: start-up, lanes, overhead per cell, parallel speed, opening a journal."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = [sys.executable, "-m", "boosters_eval"]
LIBRARIES = ["boosters", "xgboost", "lightgbm", "catboost", "sklearn"]
MODULES = {"sklearn": "sklearn.ensemble"}
CELLS = [
    *PROGRAM, "compare", "-d", "breast_cancer", "iris", "synthetic_reg_small", "-l", *LIBRARIES,
    "-s", "4", "-p", "n_estimators=100", "-q", "-f", "json",
]  # fmt: skip


def seconds(command: list[str], home: str = "") -> tuple[float, str]:
    env = {**os.environ, "BOOSTERS_EVAL_HOME": home} if home else dict(os.environ)
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return time.perf_counter() - start, done.stdout


def report(name: str, value: float, target: str, *, good: bool) -> bool:
    print(f"{'ok  ' if good else 'MISS'} {name}: {value:.2f} (target {target})")
    return good


def help_ratio() -> bool:
    bare, helped = [], []
    for _ in range(9):
        bare.append(seconds([sys.executable, "-c", "import typer, rich"])[0])
        helped.append(seconds([*PROGRAM, "--help"])[0])
    ratio = statistics.median(helped) / statistics.median(bare)
    return report("--help over `import typer, rich`", ratio, "at most 2", good=ratio <= 2)


def lanes() -> bool:
    """All lanes ready, one after the other, over the same imports in processes of their own."""
    script = str(Path(__file__).with_name("_lanes.py"))
    ratios = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as home:
            alone = sum(seconds([sys.executable, "-c", f"import {MODULES.get(n, n)}"])[0] for n in LIBRARIES)
            ready = json.loads(seconds([sys.executable, script, "ready"], home)[1])
        print(f"     imports alone {alone:.2f} s, five lanes ready after {ready:.2f} s")
        ratios.append(ready / alone)
    ratio = statistics.median(ratios)
    return report("five lanes ready over their imports alone", ratio, "at most 0.5", good=ratio <= 0.5)


def small_cells() -> bool:
    """What the engine adds to a cell: from its start to its outcome, without what the workload does."""
    with tempfile.TemporaryDirectory() as home:
        script = str(Path(__file__).with_name("_lanes.py"))
        found = json.loads(seconds([sys.executable, script, "overhead"], home)[1])
    worst = max(found.values())
    print("     " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()) + " (median ms per cell)")
    return report("milliseconds per small cell", worst, "at most 15", good=worst <= 15)


def cells() -> bool:
    """60 small cells: what the run costs beyond the cells' own times and one import of each library."""
    with tempfile.TemporaryDirectory() as home:
        seconds([*CELLS, "--jobs", "2"], home)  # data into the cache, files into memory
        imports = sum(seconds([sys.executable, "-c", f"import {MODULES.get(name, name)}"])[0] for name in LIBRARIES)
        overheads, speedups = [], []
        for _ in range(3):
            one, output = seconds([*CELLS, "--jobs", "1"], home)
            two, _ = seconds([*CELLS, "--jobs", "2"], home)
            results = json.loads(output)["results"]
            own = sum(r["train_time_s"] + r["predict_time_s"] for r in results)
            overheads.append(one / (own + imports) - 1)
            speedups.append(one / two)
            print(
                f"     {len(results)} cells: {own:.1f} s, imports {imports:.1f} s; one job {one:.1f} s, two {two:.1f}"
            )
    overhead, speedup = statistics.median(overheads), statistics.median(speedups)
    good = report("overhead of 60 cells with one job", overhead, "at most 0.25", good=overhead <= 0.25)
    return report("two jobs over one", speedup, "at least 1.6", good=speedup >= 1.6) and good


def journal() -> bool:
    """Opening a journal of 100 000 outcomes, in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        script = Path(__file__).with_name("_journal.py")
        _, output = seconds([sys.executable, str(script), home])
        facts = json.loads(output)
    took = report("seconds to open 100 000 outcomes", facts["seconds"], "under 3", good=facts["seconds"] < 3)
    return report("megabytes at the peak", facts["megabytes"], "under 500", good=facts["megabytes"] < 500) and took


def main() -> int:
    results = [help_ratio(), lanes(), small_cells(), journal(), cells()]
    print(
        f"     peak of this script's children: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB"
    )
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
