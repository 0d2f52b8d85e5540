"""Many trivial cells on a cluster: what each costs the program, and whether its memory grows."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from _trivial import Trivial, TrivialSpec

from boosters_eval import WORKLOADS, DaskExecutor, Plan, Repeat, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

MEGABYTE = 2**20


def measured(address: str, cells: int) -> Iterator[tuple[int, float, float]]:
    """How many cells are done, the seconds of CPU that the program has used, and its megabytes."""
    plan = Plan.grid("trivial", [TrivialSpec(name="x")], ["one"], [Repeat(seed) for seed in range(cells)])
    works = [Work(cell) for cell in plan.cells]
    process = psutil.Process()
    with DaskExecutor(address=address) as executor:
        for done, _ in enumerate(executor.run(works, lambda *_: None), 1):
            if done % (cells // 10) == 0:
                yield done, time.process_time(), process.memory_info().rss / MEGABYTE


def main() -> None:
    WORKLOADS.register("trivial", Trivial)
    address, cells = sys.argv[1], int(sys.argv[2])
    start = time.perf_counter()
    looks = list(measured(address, cells))
    (first, cpu_before, memory_before), (last, cpu, memory) = looks[1], looks[-1]
    found = {
        "milliseconds": 1000 * (cpu - cpu_before) / (last - first),
        "growth_mb": memory - memory_before,
        "memory_mb": memory,
        "seconds": time.perf_counter() - start,
    }
    Path(sys.argv[3]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
