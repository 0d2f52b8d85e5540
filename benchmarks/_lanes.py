"""How long lanes take to be ready, or what the engine adds to each cell: printed as JSON."""

from __future__ import annotations

import json
import statistics
import sys
import time

from boosters_eval import LocalPool, Observer, TrainingConfig, prepare_comparison, run_prepared

LIBRARIES = ["boosters", "xgboost", "lightgbm", "catboost", "sklearn"]


class Stopwatch(Observer):
    """When each cell started, entered its first phase, left its last one, and ended."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.first = 0.0
        self.times: dict[str, dict[str, float]] = {}

    def begin(self, event) -> None:  # noqa: ARG002 (the observer's signature)
        self.begun = time.perf_counter()

    def phase(self, event) -> None:
        now = time.perf_counter()
        self.first = self.first or now
        self.times.setdefault(event.cell.key, {})[event.phase] = now

    def outcome(self, event) -> None:
        self.times[event.cell.key]["end"] = time.perf_counter()


def run(seeds: int) -> Stopwatch:
    """Cells of all libraries, one at a time; no cell starts before all lanes are ready."""
    watch = Stopwatch()
    few = TrainingConfig(n_estimators=2, max_depth=2)
    with LocalPool(1) as pool:
        run_prepared(prepare_comparison("iris", LIBRARIES, seeds=seeds, training=few), observer=watch, executor=pool)
    return watch


def overhead(watch: Stopwatch) -> dict[str, float]:
    """Milliseconds per library: start to load, and done to outcome."""
    found: dict[str, list[float]] = {}
    for key, t in watch.times.items():
        found.setdefault(key.split("|")[1], []).append(t["load"] - t["start"] + t["end"] - t["done"])
    return {name: 1000 * statistics.median(values) for name, values in found.items()}


if __name__ == "__main__":
    if sys.argv[1] == "ready":
        done = run(1)
        print(json.dumps(done.first - done.begun))
    else:
        print(json.dumps(overhead(run(12))))
