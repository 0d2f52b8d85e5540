"""The lower bound against scipy's BCa bootstrap, both measured here and now; exits with 1 when a promise is broken.

Every number comes from a fresh process: the first call on data of a size is what a user waits for, and a process's
peak of memory never falls again. Processor time is used, so that other work on the machine does not matter.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

PROMISED = {10: 5.0, 10_000: 20.0}
MEMORY_MB = 20.0  # by which the peak may exceed that of N = 10
ROUNDS = 3


def ours(scores: np.ndarray) -> None:
    from boosters_eval.stats.bootstrap import compute_lower_bound_95

    compute_lower_bound_95(scores, run_id="deadbeef")  # type: ignore[arg-type]


def scipys(scores: np.ndarray) -> None:
    from scipy.stats import bootstrap

    bootstrap((scores,), np.mean, n_resamples=1000, method="BCa", rng=np.random.default_rng(1))


WORK = {"ours": ours, "scipy": scipys}


def measure(name: str, count: int) -> None:
    """Imports first, then the work; small sizes are repeated, because one call is shorter than the clock's noise."""
    rng = np.random.default_rng(0)
    WORK[name](rng.beta(8, 2, 10))
    scores = rng.beta(8, 2, count)
    times = []
    for _ in range(200 if count < 1000 else 1):
        start = time.process_time()
        WORK[name](scores)
        times.append(time.process_time() - start)
    scale = 1024 if sys.platform == "linux" else 1024 * 1024
    print(json.dumps([min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale]))


def fresh(name: str, count: int) -> tuple[float, float]:
    """Seconds and megabytes, the medians over a few processes."""
    command = [sys.executable, __file__, name, str(count)]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(ROUNDS)
    ]
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def main() -> int:
    broken = 0
    base = fresh("ours", 10)[1]
    for count, promised in PROMISED.items():
        mine, memory = fresh("ours", count)
        theirs, theirs_memory = fresh("scipy", count)
        held = theirs / mine >= promised and memory - base <= MEMORY_MB
        broken += not held
        print(
            f"N = {count}: {mine * 1e3:.2f} ms and {memory:.0f} MB, scipy {theirs * 1e3:.2f} ms and "
            f"{theirs_memory:.0f} MB: {theirs / mine:.1f} times as fast (promised {promised:g})"
            + ("" if held else "  BROKEN")
        )
    return int(broken > 0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
