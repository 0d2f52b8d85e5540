"""The lower bound against scipy's BCa bootstrap, both measured here and now; exits with 1 when a promise is broken."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

PROMISED = {10: 5.0, 10_000: 20.0}
MEMORY_MB = 60.0  # by which the peak may exceed that of N = 10


def ours(scores: np.ndarray) -> None:
    from boosters_eval.stats.bootstrap import compute_lower_bound_95  # noqa: PLC0415 (its memory is measured)

    compute_lower_bound_95(scores, run_id="deadbeef")  # type: ignore[arg-type]


def scipys(scores: np.ndarray) -> None:
    from scipy.stats import bootstrap  # noqa: PLC0415 (not part of our memory)

    bootstrap((scores,), np.mean, n_resamples=1000, method="BCa", rng=np.random.default_rng(1))


def best_time(work: Callable[[np.ndarray], None], scores: np.ndarray, repeats: int) -> float:
    work(scores)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work(scores)
        times.append(time.perf_counter() - start)
    return min(times)


def peak_mb(count: int) -> float:
    """In a process of its own: the peak never falls again."""
    command = [sys.executable, __file__, "--memory", str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    broken = 0
    peaks = {count: peak_mb(count) for count in PROMISED}  # first: a child inherits its parent's peak
    for count, promised in PROMISED.items():
        scores = np.random.default_rng(0).beta(8, 2, count)
        mine = best_time(ours, scores, 200 if count < 1000 else 5)
        theirs = best_time(scipys, scores, 50 if count < 1000 else 1)
        grown = peaks[count] - peaks[10]
        held = theirs / mine >= promised and grown <= MEMORY_MB
        broken += not held
        print(
            f"N = {count}: {mine * 1e3:.2f} ms, scipy {theirs * 1e3:.2f} ms, {theirs / mine:.1f} times as fast "
            f"(promised {promised:g}), {grown:+.1f} MB over N = 10{'' if held else ' BROKEN'}"
        )
    return int(broken > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        ours(np.random.default_rng(0).beta(8, 2, int(sys.argv[2])))
        scale = 1024 if sys.platform == "linux" else 1024 * 1024
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale)
        sys.exit(0)
    sys.exit(main())
