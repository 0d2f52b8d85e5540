"""The history of 10 000 runs of 30 cells: what questions and reindexing take, and whether memory stays flat.

The targets are for an idle machine. Times of the clock are shown, and the CPU time (user and system) is judged: it is
the same there, and less disturbed by other programs. A folder as argument keeps the homes for the next time.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RUNS, FEW = 10_000, 1_000
PROGRAM = [sys.executable, "-m", "boosters_eval"]
QUESTIONS = {
    "the latest": [],
    "one run": ["show", "last"],
    "a metric that no list shows": ["--metric", "mae"],
    "one data set": ["--dataset", "california"],
    "one library": ["--library", "lightgbm"],
    "a data set that no run has": ["--dataset", "none"],
    "one machine since a day": ["--machine", "A", "--since", "2022-01-01"],
    "a suite, as JSON": ["--suite", "nightly", "--json"],
}
REINDEX = """
import resource, sys
from pathlib import Path
from boosters_eval.programs.history.index import reindex
assert reindex(Path(sys.argv[1])) == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


class Took(NamedTuple):
    """What one command took."""

    seconds: float
    cpu: float
    output: str


def run(command: list[str], home: Path) -> Took:
    env = {**os.environ, "BOOSTERS_EVAL_HOME": str(home)}
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Took(time.perf_counter() - start, cpu, done.stdout)


def report(name: str, took: Took, limit: float) -> bool:
    good = took.cpu < limit
    print(
        f"{'ok  ' if good else 'MISS'} {name}: {took.cpu:.2f} s of CPU, {took.seconds:.2f} s (target {limit:g})",
        flush=True,
    )
    return good


def written(folder: Path, count: int) -> Path:
    home = folder / str(count)
    if not home.exists():
        run([sys.executable, str(Path(__file__).with_name("_home.py")), str(home), str(count)], home)
    return home


def reindexed(home: Path, count: int) -> tuple[Took, float]:
    took = run([sys.executable, "-c", REINDEX, str(home), str(count)], home)
    return took, float(took.output)


def questions(home: Path) -> bool:
    good = True
    for name, options in QUESTIONS.items():
        command = [*PROGRAM, "history", *options]
        good = report(f"{name}, for the first time", run(command, home), 0.5) and good
        again = sorted((run(command, home) for _ in range(3)), key=lambda took: took.cpu)[1]
        good = report(f"{name}, again", again, 0.5) and good
    return good


def bench(folder: Path) -> bool:
    _, few = reindexed(written(folder, FEW), FEW)
    home = written(folder, RUNS)
    took, many = reindexed(home, RUNS)
    good = report(f"reindexing {RUNS} runs", took, 60)
    flat = many <= 1.25 * few
    print(f"{'ok  ' if flat else 'MISS'} memory: {few:.0f} MB for {FEW} runs, {many:.0f} MB for {RUNS} (target: flat)")
    good = questions(home) and good and flat
    alone = statistics.median(run([*PROGRAM, "--version"], home).cpu for _ in range(5))
    empty = statistics.median(run([sys.executable, "-c", "pass"], home).cpu for _ in range(5))
    size = (home / "history.sqlite").stat().st_size / 2**20
    print(f"     the index has {size:.0f} MB; --version takes {alone:.2f} s of CPU, an empty program {empty:.3f} s")
    return good


def main() -> int:
    if len(sys.argv) > 1:
        return 0 if bench(Path(sys.argv[1])) else 1
    with tempfile.TemporaryDirectory() as place:
        return 0 if bench(Path(place)) else 1


if __name__ == "__main__":
    sys.exit(main())
