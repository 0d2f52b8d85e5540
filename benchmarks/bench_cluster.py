"""What a cluster costs: two single-thread workers against two local jobs, and the program's own part of each cell."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench_engine import LIBRARIES, PROGRAM, report, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CELLS = [
    *PROGRAM, "compare", "-d", "breast_cancer", "iris", "synthetic_reg_small", "-l", *LIBRARIES,
    "-s", "10", "-p", "n_estimators=100", "-q", "-f", "json",
]  # fmt: skip
TRIVIAL = 5_000
PAIRS = 5
HERE = Path(__file__).parent


@contextlib.contextmanager
def cluster(workers: int = 2) -> Iterator[str]:
    """The address of a scheduler with single-thread workers, each a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        env = {**os.environ, "PYTHONPATH": str(HERE), "BOOSTERS_EVAL_CACHE": folder}
        shared = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
        worker = ["--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--local-directory", folder]
        commands = [
            [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *shared],
            *[[sys.executable, "-m", "distributed.cli.dask_worker", *shared, *worker] for _ in range(workers)],
        ]
        with contextlib.ExitStack() as stack:
            for command in commands:
                process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                stack.callback(process.wait)
                stack.callback(process.terminate)
            yield _ready(file, workers)


def _ready(file: Path, workers: int) -> str:
    from distributed import Client

    while not file.exists() or not file.read_text().endswith("}"):
        time.sleep(0.05)
    address = str(json.loads(file.read_text())["address"])
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers)
    return address


def standing() -> Iterator[str]:
    """One cluster for all pairs: from its second run on, the libraries are loaded there."""
    with tempfile.TemporaryDirectory() as home, cluster() as address:
        seconds(_there(address), home)
        yield from [address] * PAIRS


def new() -> Iterator[str]:
    """A cluster for each pair: the run is its first, and each worker imports the libraries."""
    for _ in range(PAIRS):
        with cluster() as address:
            yield address


def ratio(clusters: Callable[[], Iterator[str]]) -> bool:
    """The same plan on two workers and with two jobs, in turns; the cluster is there in both, the imports count."""
    ratios, equal = [], 0
    with tempfile.TemporaryDirectory() as home:
        here = [*CELLS, "--jobs", "2"]
        seconds(here, home)  # data into the cache, files into memory
        for number, address in enumerate(clusters()):
            if number % 2:  # each goes first in every other pair
                (local, one), (took, other) = seconds(here, home), seconds(_there(address), home)
            else:
                (took, other), (local, one) = seconds(_there(address), home), seconds(here, home)
            ratios.append(took / local)
            equal += _same(one, other)
            print(f"     two jobs {local:.1f} s, two workers {took:.1f} s: {took / local:.2f}", flush=True)
    found = statistics.median(ratios)
    same = report("pairs with equal metrics", equal, str(PAIRS), good=equal == PAIRS)
    name = f"two workers of a {clusters.__name__} cluster over two jobs"
    return report(name, found, "at most 1.15", good=found <= 1.15) and same


def _there(address: str) -> list[str]:
    return [*CELLS, "--executor", "dask", "--address", address]


def _same(*outputs: str) -> bool:
    found = [
        {(r["config_name"], r["library"], r["seed"]): (r["metrics"], r["predictions_digest"]) for r in results}
        for results in (json.loads(output)["results"] for output in outputs)
    ]
    return found[0] == found[1]


def trivial() -> bool:
    """Cells that do nothing. Memory is flat if it grows by less than a kilobyte per cell after the first thousand."""
    with tempfile.TemporaryDirectory() as folder, cluster() as address:
        file = Path(folder, "found.json")
        seconds([sys.executable, str(HERE / "_cluster.py"), address, str(TRIVIAL), str(file)], folder)
        found = json.loads(file.read_text())
    print(f"     {TRIVIAL} cells in {found['seconds']:.0f} s, {found['memory_mb']:.0f} MB in the end")
    good = report(
        "the program's ms of CPU per cell", found["milliseconds"], "at most 5", good=found["milliseconds"] <= 5
    )
    growth = found["growth_mb"] * 1024 / (0.8 * TRIVIAL)
    return report("kilobytes that each cell leaves", growth, "less than 1", good=growth < 1) and good


def main() -> int:
    results = [trivial(), ratio(standing), ratio(new)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
