"""Reading a user's file apart: what the process costs a small file and one of 200 MB, in one run with and without it.

With `--large`, a CSV file of 1.3 GB is read by the program (with the audit, and kept in its cache) and by pandas alone,
which takes 4 GB of memory and minutes: at most 1.2 times the time by the clock, on an idle machine, and 1.2 times the
memory, the most of their own that the program and its reader hold at the same time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

COLUMNS, ROWS = 30, 100_000  # of a part
SIZES = {"200 MB": 8, "1.3 GB": 50}  # parts
PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1])"
OURS = """
import sys
from boosters_eval.datasets import materialize, resolve_dataset
materialize(resolve_dataset(sys.argv[1] + ":y"))
"""
EITHER = """
import resource, sys, time
from boosters_eval.datasets import files
import boosters_eval.datasets.examine, boosters_eval.datasets.reading
if sys.argv[2] == "within":
    files.read_apart = lambda function, given, source: files.read_table(**given)
def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
start, before = time.perf_counter(), cpu()
files.config_from_file(sys.argv[1], "y")
print(time.perf_counter() - start, cpu() - before)
"""


class Took(NamedTuple):
    """What one program took: seconds of the clock, of all its processors, and megabytes."""

    seconds: float
    cpu: float
    memory: float


def write(path: Path, parts: int) -> Path:
    """A file of random numbers with five decimals, as pandas would write it."""
    draw = np.random.default_rng(0)
    with path.open("w", encoding="ascii") as file:
        file.write(",".join([*(f"x{i}" for i in range(COLUMNS - 1)), "y"]) + "\n")
        for _ in range(parts):
            np.savetxt(file, draw.normal(size=(ROWS, COLUMNS)), fmt="%.5f", delimiter=",")
    return path


def run(code: str, path: Path, cache: Path) -> Took:
    env = {**os.environ, "BOOSTERS_EVAL_CACHE": str(cache)}
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code, str(path)], env=env) as process:
        peak = Peak(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Took(time.perf_counter() - start, used.ru_utime + used.ru_stime, peak.stop())


class Peak:
    """The most memory of its own that a process and those that it started hold at the same time."""

    def __init__(self, pid: int) -> None:
        self._pid, self._most, self._done = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            try:
                process = psutil.Process(self._pid)
                held = [each.memory_full_info().uss for each in (process, *process.children(recursive=True))]
            except psutil.Error:
                continue
            self._most = max(self._most, sum(held))

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self._most / 1e6


def report(name: str, ratio: float, target: float, shown: str) -> bool:
    good = ratio <= target
    print(f"{'ok  ' if good else 'MISS'} {name}: {ratio:.2f} x ({shown}; target {target:g})", flush=True)
    return good


def compare(name: str, path: Path, cache: Path, repeats: int) -> bool:
    """Each in turn, so that both meet the same disturbance; the least of each is compared."""
    pairs = [(run(OURS, path, cache / str(i)), run(PANDAS, path, cache)) for i in range(repeats)]
    good = True
    for what, unit, at in (("time", "s", 0), ("CPU time", "s", 1), ("memory", "MB", 2)):
        ours, theirs = (min(float(pair[side][at]) for pair in pairs) for side in (0, 1))
        shown = f"{ours:.2f} {unit}, pandas {theirs:.2f} {unit}"
        if what == "CPU time":
            print(f"     {name}, {what}: {shown}")
        else:
            good = report(f"{name}, {what}", ours / theirs, 1.2, shown) and good
    return good


def both_ways(path: Path, repeats: int) -> tuple[list[float], list[float]]:
    """What a file takes in a process of its own and within the program, where all is imported already: least of each.

    The seconds of the clock, and those of all processors, which other programs disturb less.
    """
    took: dict[str, list[list[float]]] = {"apart": [], "within": []}
    for _ in range(repeats):
        for way, times in took.items():
            command = [sys.executable, "-c", EITHER, str(path), way]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            times.append([float(word) for word in done.stdout.split()])
    apart, within = ([min(column) for column in zip(*times, strict=True)] for times in took.values())
    return apart, within


def cost(path: Path) -> bool:
    apart, within = both_ways(path, 7)
    more = apart[1] - within[1]
    shown = f"{apart[0] - within[0]:+.3f} s by the clock, {more:+.3f} s of CPU"
    print(f"{'ok  ' if more <= 0.15 else 'MISS'} a small file, apart: {shown} (target 0.15 s of CPU)", flush=True)
    return more <= 0.15


def share(path: Path) -> bool:
    apart, within = both_ways(path, 3)
    shown = f"{apart[1]:.2f} s of CPU, within the program {within[1]:.2f} s"
    return report("200 MB, apart", apart[1] / within[1], 1.1, shown)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        small = place / "small.csv"
        small.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 5},{i % 3}.5\n" for i in range(500)))
        good = cost(small)
        good = share(write(place / "middle.csv", SIZES["200 MB"])) and good
        if "--large" in sys.argv:
            good = compare("1.3 GB", write(place / "large.csv", SIZES["1.3 GB"]), place / "cache", 3) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
