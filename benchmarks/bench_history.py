"""The history of 10 000 runs of 30 cells: how long questions and reindexing take, and whether memory stays flat."""

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

RUNS, FEW = 10_000, 1_000
PROGRAM = [sys.executable, "-m", "boosters_eval", "history"]
QUESTIONS = {
    "the latest": [],
    "one data set": ["--dataset", "california"],
    "one library": ["--library", "lightgbm"],
    "a data set that no run has": ["--dataset", "none"],
    "one metric": ["--metric", "rmse"],
    "one machine since a day": ["--machine", "a", "--since", "2022-01-01"],
    "a suite, as JSON": ["--suite", "nightly", "--json"],
    "one run": ["show", "last"],
}
REINDEX = """
import json, resource, sys, time
from pathlib import Path
from boosters_eval.history.index import reindex
start, cpu = time.perf_counter(), time.process_time()
count = reindex(Path(sys.argv[1]))
took = {"runs": count, "seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
print(json.dumps({**took, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def run(command: list[str], home: Path) -> tuple[float, str]:
    start = time.perf_counter()
    env = {**os.environ, "BOOSTERS_EVAL_HOME": str(home)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return time.perf_counter() - start, done.stdout


def report(name: str, value: float, target: str, *, good: bool) -> bool:
    print(f"{'ok  ' if good else 'MISS'} {name}: {value:.2f} (target {target})")
    return good


def written(folder: Path, count: int) -> Path:
    home = folder / str(count)
    run([sys.executable, str(Path(__file__).with_name("_home.py")), str(home), str(count)], home)
    return home


def reindexed(home: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(run([sys.executable, "-c", REINDEX, str(home)], home)[1])
    took, cpu, size = found["seconds"], found["cpu"], found["megabytes"]
    print(f"     {found['runs']} runs: {took:.1f} s ({cpu:.1f} s of CPU), {size:.0f} MB")
    return found


def questions(home: Path) -> bool:
    good = True
    for name, options in QUESTIONS.items():
        run([*PROGRAM, *options], home)  # what is judged when it is first asked for, and files into memory
        took = statistics.median(run([*PROGRAM, *options], home)[0] for _ in range(3))
        good = report(f"seconds for {name}", took, "under 0.5", good=took < 0.5) and good
    return good


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        few = reindexed(written(Path(place), FEW))
        home = written(Path(place), RUNS)
        found = reindexed(home)
        size = (home / "history.sqlite").stat().st_size / 2**20
        more = found["megabytes"] / few["megabytes"]
        alone = run([*PROGRAM[:-1], "--version"], home)[0]
        print(f"     the index has {size:.0f} MB; starting the program takes {alone:.2f} s")
        good = report(f"seconds to reindex {RUNS} runs", found["seconds"], "under 60", good=found["seconds"] < 60)
        good = report(f"memory for {RUNS} over {FEW} runs", more, "at most 1.25", good=more <= 1.25) and good
        good = questions(home) and good
    print(f"     peak of the children: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
