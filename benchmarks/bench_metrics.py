"""Metrics against scikit-learn on one million rows: ratios of times measured in turn, and the peak of extra memory.

Exits with 1 if a target is missed.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import metrics as sk

from boosters_eval.metrics import get

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_000_000
GROUPS = 10_000
CLASSES = 5
REPEATS = 9
MEMORY_LIMIT_MB = 100.0


@dataclass(frozen=True)
class Case:
    """One metric, its reference, and how much faster it has to be."""

    name: str
    target: float
    ours: Callable[[], Any]
    reference: Callable[[], Any]
    same: bool = True  # whether both must give the same value


def _cases() -> list[Case]:
    rng = np.random.default_rng(42)
    truth = rng.normal(size=ROWS)
    value = truth + rng.normal(size=ROWS)
    label = rng.integers(0, 2, ROWS)
    score = np.clip(0.3 * label + 0.7 * rng.random(ROWS), 1e-9, 1 - 1e-9)
    weight = rng.random(ROWS) + 0.5
    classes = rng.integers(0, CLASSES, ROWS)
    share = rng.dirichlet(np.ones(CLASSES), ROWS)
    grade = rng.integers(0, 5, ROWS).astype(np.float64)
    query = np.repeat(np.arange(GROUPS), ROWS // GROUPS)
    wide = (GROUPS, ROWS // GROUPS)
    ndcg = get("ndcg@10,gain=linear")
    return [
        Case("rmse", 2, lambda: get("rmse").compute(value, truth), lambda: sk.root_mean_squared_error(truth, value)),
        Case("logloss", 8, lambda: get("logloss").compute(score, label), lambda: sk.log_loss(label, score)),
        Case("auc_roc", 5, lambda: get("auc_roc").compute(score, label), lambda: sk.roc_auc_score(label, score)),
        Case("f1", 40, lambda: get("f1").compute(score, label), lambda: sk.f1_score(label, score >= 0.5)),
        Case("mlogloss", 10, lambda: get("mlogloss").compute(share, classes), lambda: sk.log_loss(classes, share)),
        Case(
            "ndcg@10",
            5,
            lambda: get("ndcg@10").compute(value, grade, groups=query),
            lambda: sk.ndcg_score(grade.reshape(wide), value.reshape(wide), k=10),
            same=False,  # the gains differ; the next case has the same
        ),
        Case(
            str(ndcg),
            5,
            lambda: ndcg.compute(value, grade, groups=query),
            lambda: sk.ndcg_score(grade.reshape(wide), value.reshape(wide), k=10),
        ),
        Case(
            "auc_roc, weighted",
            1,
            lambda: get("auc_roc").compute(score, label, weight),
            lambda: sk.roc_auc_score(label, score, sample_weight=weight),
        ),
    ]


def _seconds(call: Callable[[], Any], times: int = 1) -> float:
    """The median of some calls, so that one interruption does not decide a short measurement."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _extra_memory_mb(call: Callable[[], Any]) -> float:
    """NumPy reports its buffers to tracemalloc, so the peak is exact."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        return (tracemalloc.get_traced_memory()[1] - before) / 2**20
    finally:
        tracemalloc.stop()


def _measure(case: Case) -> bool:
    """Print one line; true if the case meets its target."""
    ours, reference = float(case.ours()), float(case.reference())  # also the warm-up
    if case.same and not np.isclose(ours, reference, rtol=1e-12, atol=0):
        print(f"{case.name}: {ours!r} is not scikit-learn's {reference!r}")
        return False
    short = 1 if _seconds(case.reference) > 0.05 else 5
    pairs = [(_seconds(case.ours, 5), _seconds(case.reference, short)) for _ in range(REPEATS)]
    ratio = statistics.median(theirs / mine for mine, theirs in pairs)
    mine, theirs = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
    memory = _extra_memory_mb(case.ours)
    met = ratio >= case.target and memory < MEMORY_LIMIT_MB
    print(
        f"{case.name:<22}{mine:>10.2f}{theirs:>14.2f}{ratio:>9.1f}x{case.target:>8.0f}x{memory:>12.1f}"
        f"   {'ok' if met else 'MISSED'}"
    )
    return met


def main() -> int:
    """Run all cases."""
    warnings.simplefilter("ignore")
    print(f"{ROWS} rows, medians of {REPEATS} runs in turn")
    print(f"{'metric':<22}{'ours, ms':>10}{'sklearn, ms':>14}{'ratio':>10}{'target':>9}{'extra, MB':>12}")
    met = [_measure(case) for case in _cases()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
