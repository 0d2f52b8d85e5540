"""What the test by rows promises, simulated: `python tests/row_simulations.py -j 2` (or `make simulations`).

Fits and counts are kept below `.simulations`, so an interrupted run goes on where it was. `--share 0.1` runs a tenth
of the repetitions. The table is printed, and written to `.simulations/rows.json` for programs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import batched, combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import row_worlds
from boosters_eval import metrics, stats
from boosters_eval.core.request import Part
from boosters_eval.metrics import get
from boosters_eval.metrics.linear import linearize
from boosters_eval.stats.rows import RowScores, find_overlap, prepare_rows
from boosters_eval.stats.sequential import SequentialRule
from boosters_eval.stats.significance import Criteria, conclude, prepare
from row_worlds import FOLDS, World, repetitions

REAL = 300  # repetitions with libraries
TWO, FIVE = (0.3,) * 2, (0.3,) * 5
WORLDS = {
    world.name: world
    for world in (
        World("ridge 300", "regression", "ridge", 300, noise=FIVE),
        World("ridge 1000, heavy tails", "regression", "ridge", 1000, twist="tails"),
        World("ridge 1000, weights", "regression", "ridge", 1000, twist="weights"),
        World("ridge 1000, groups", "regression", "ridge", 1000, twist="groups"),
        World("ridge 5000", "regression", "ridge", 5000, 300),
        World("logistic 300", "binary", "ridge", 300),
        World("logistic 1000, rare class", "binary", "ridge", 1000, twist="rare"),
        World("softmax 300", "multiclass", "ridge", 300),
        World("ranking 1000", "ranking", "ridge", 1000),
        World("tree 300", "regression", "tree", 300),
        World("tree 1000, classes", "binary", "tree", 1000, REAL),
        World("tree 1000, groups", "regression", "tree", 1000, REAL, twist="groups"),
        World("bagged trees 300", "regression", "bagged trees", 300, REAL),
        World("LightGBM 300", "regression", "LightGBM", 300, REAL, noise=FIVE),
        World("LightGBM 1000", "regression", "LightGBM", 1000, REAL, noise=TWO),
        World("LightGBM 1000, heavy tails", "regression", "LightGBM", 1000, REAL, noise=TWO, twist="tails", blocks=1),
        World("LightGBM 1000, california", "regression", "LightGBM", 1000, REAL, noise=TWO, twist="california"),
        World("LightGBM 5000", "regression", "LightGBM", 5000, REAL, noise=TWO, blocks=1),
        World("LightGBM 300, classes", "binary", "LightGBM", 300, REAL, noise=TWO),
        World("bagged LightGBM 1000, classes", "binary", "bagged LightGBM", 1000, REAL, noise=TWO),
        World("LightGBM 1000, rare class", "binary", "LightGBM", 1000, REAL, noise=TWO, twist="rare", blocks=1),
        World("LightGBM 1000, three classes", "multiclass", "LightGBM", 1000, REAL, noise=TWO, blocks=1),
        World("LightGBM 1000, ranking", "ranking", "LightGBM", 1000, REAL, noise=TWO, blocks=1),
        World("XGBoost 1000", "regression", "XGBoost", 1000, REAL, noise=TWO),
        World("XGBoost 5000", "regression", "XGBoost", 5000, REAL, noise=TWO, blocks=1),
        World("looks, ridge 300", "regression", "ridge", 300, 300, noise=(0.3,) * 3, blocks=10),
        World("looks, tree 300", "regression", "tree", 300, 300, noise=(0.3,) * 3, blocks=10),
        World("power", "regression", "LightGBM", 1000, REAL, noise=(0.1, 0.271, 0.1, 0.213), blocks=1),
        # What no rule for all learners can hold, shown beside the others: see stats/rows.py.
        World("LightGBM 1000, hidden", "regression", "LightGBM", 1000, REAL, noise=TWO, twist="hidden", blocks=1),
        World("LightGBM 5000, hidden", "regression", "LightGBM", 5000, 200, noise=TWO, twist="hidden", blocks=1),
    )
}
NULLS: tuple[tuple[str, str, int], ...] = (  # world, metric, seeds; five seeds are 5-fold, ten are twice
    ("ridge 300", "rmse", 3),
    ("ridge 300", "rmse", 5),
    ("ridge 300", "rmse", 10),
    ("ridge 300", "mae", 5),
    ("ridge 1000, heavy tails", "rmse", 5),
    ("ridge 1000, weights", "rmse", 5),
    ("ridge 1000, groups", "rmse", 5),
    ("ridge 5000", "rmse", 5),
    ("logistic 300", "logloss", 5),
    ("logistic 300", "auc_roc", 10),
    ("logistic 1000, rare class", "f1", 5),
    ("logistic 1000, rare class", "auc_roc", 5),
    ("softmax 300", "mlogloss", 5),
    ("ranking 1000", "ndcg@10", 5),
    ("tree 300", "rmse", 5),
    ("tree 300", "mae", 10),
    ("tree 1000, classes", "accuracy", 5),
    ("tree 1000, groups", "rmse", 5),
    ("bagged trees 300", "rmse", 5),
    ("bagged trees 300", "rmse", 10),
    ("LightGBM 300", "rmse", 5),
    ("LightGBM 300", "rmse", 10),
    ("LightGBM 1000", "rmse", 3),
    ("LightGBM 1000", "rmse", 5),
    ("LightGBM 1000", "mae", 10),
    ("LightGBM 1000, heavy tails", "rmse", 5),
    ("LightGBM 1000, california", "rmse", 5),
    ("LightGBM 1000, california", "mae", 10),
    ("LightGBM 5000", "rmse", 5),
    ("LightGBM 300, classes", "logloss", 5),
    ("LightGBM 300, classes", "accuracy", 10),
    ("bagged LightGBM 1000, classes", "logloss", 5),
    ("bagged LightGBM 1000, classes", "logloss", 10),
    ("bagged LightGBM 1000, classes", "auc_roc", 5),
    ("LightGBM 1000, rare class", "f1", 5),
    ("LightGBM 1000, rare class", "auc_roc", 3),
    ("LightGBM 1000, three classes", "mlogloss", 5),
    ("LightGBM 1000, ranking", "ndcg@10", 5),
    ("XGBoost 1000", "rmse", 5),
    ("XGBoost 1000", "rmse", 10),
    ("XGBoost 5000", "rmse", 5),
)
LIMITS: tuple[tuple[str, str, int], ...] = (
    ("LightGBM 1000, hidden", "rmse", 5),
    ("LightGBM 5000, hidden", "rmse", 5),
)
ANY_PAIR = ("ridge 300", "LightGBM 300")
LOOKS = ("looks, ridge 300", "looks, tree 300")
LARGE, SMALL = 0.055, 0.035  # true differences of the world "power", in RMSE


@dataclass(frozen=True)
class Count:
    """How often something happened."""

    count: int
    n: int

    @property
    def rate(self) -> float:
        return self.count / self.n

    @property
    def error(self) -> float:
        inside = min(max(self.rate, 0.5 / self.n), 1 - 0.5 / self.n)
        return math.sqrt(inside * (1 - inside) / self.n)


def score_side(world, drawn, metric, side, seeds):
    """What the program would know of one side after so many seeds."""
    found = []
    for position in range(seeds):
        block, place = divmod(position, FOLDS)
        rows = np.flatnonzero(drawn.fold[block] == place)
        about = [None if each is None else each[rows] for each in (drawn.weights, drawn.units)]
        made = linearize(
            world.task,
            metric,
            drawn.labels[rows],
            drawn.predictions[side, block][rows].astype(np.float64),
            about[0],
            groups=about[1],
        )
        units = None if about[1] is None else about[1][made.at]
        found.append(RowScores(block, place, FOLDS, rows[made.at], made.value, made.contributions, units, made.weights))
    return found


def judge(a, b, metric, **options):
    """The verdict on two sides, and on as many equal pairs as there are others in the table."""
    criteria = Criteria(metric.higher_is_better, "rows", best=metric.best, **options)
    return prepare_rows(a, b, criteria)


def judge_splits(a, b, metric):
    """The same for a metric that rows do not make, or without predictions: one value per split."""
    criteria = Criteria(metric.higher_is_better, "corrected", best=metric.best)
    overlap = find_overlap([Part(one.block, one.fold) for one in a], FOLDS)
    return prepare([one.value for one in a], [one.value for one in b], criteria, test_train_ratio=overlap)


def _told(pair):
    return pair.p_value is not None and pair.p_value < pair.alpha


def _simulate_nulls(world, drawn, counts):
    for name, spec, seeds in NULLS + LIMITS:
        if name != world.name:
            continue
        metric = get(spec)
        sides = [score_side(world, drawn, metric, side, seeds) for side in range(len(world.noise))]
        for a, b in batched(sides[: len(sides) // 2 * 2], 2):  # no side is in two pairs
            pairs = {"null": judge(a, b, metric), "splits": judge_splits(a, b, metric)}
            for section, pair in pairs.items():
                key = f"{section}|{name}|{spec}|{seeds}"
                counts[f"{key}|n"] += 1
                counts[f"{key}|count"] += _told(conclude([pair])[0])
        if name in ANY_PAIR and spec == "rmse" and seeds == 5:
            pairs = conclude([judge(a, b, metric, rope=0.0) for a, b in combinations(sides, 2)])
            counts[f"any|{name}|n"] += 1
            counts[f"any|{name}|count"] += any(pair.verdict in ("better", "worse") for pair in pairs)


def _simulate_looks(world, drawn, counts):
    """Whether any look of `--seeds auto` calls any of three equal sides better than another."""
    rule, metric = SequentialRule(max_seeds=FOLDS * world.blocks, rope=0.0), get("rmse")
    sides = [score_side(world, drawn, metric, side, rule.max_seeds) for side in range(len(world.noise))]
    looks = [
        conclude([judge(a[:seeds], b[:seeds], metric, alpha=rule.level, rope=0.0) for a, b in combinations(sides, 2)])
        for seeds in rule.schedule
    ]
    counts[f"any|{world.name}|n"] += 1
    counts[f"any|{world.name}|count"] += any(pair.verdict in ("better", "worse") for look in looks for pair in look)


def _simulate_power(world, drawn, cases):
    """[percent, low, high, whether it was found, and by splits] of each repetition, by the size of the difference."""
    metric = get("rmse")
    sides = [score_side(world, drawn, metric, side, FOLDS) for side in range(4)]
    for size, (better, worse) in ((LARGE, (0, 1)), (SMALL, (2, 3))):
        pair = conclude([judge(sides[worse], sides[better], metric)])[0]
        split = conclude([judge_splits(sides[worse], sides[better], metric)])[0]
        told = [pair.percent, *pair.percent_interval, pair.verdict == "worse", split.verdict == "worse"]
        cases.setdefault(f"power|{size:.1%}", []).append(told)


_ROOMS = (Path(metrics.__file__).parent, Path(stats.__file__).parent)
_CODE = (__file__, row_worlds.__file__, *(path for room in _ROOMS for path in sorted(room.glob("*.py"))))


def simulate(name, share=1.0):
    """The counts of one world, from its file where they are known."""
    world = WORLDS[name]
    count = max(1, round(world.repetitions * share))
    path = row_worlds.CACHE / "counts" / row_worlds.digest_of(*_CODE) / f"{name}-{count}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    began, counts = time.perf_counter(), Counter()
    judged = _simulate_power if name == "power" else _simulate_looks if name in LOOKS else _simulate_nulls
    for drawn in repetitions(world, count):
        judged(world, drawn, counts)
    counts[f"seconds|{name}"] = time.perf_counter() - began
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(counts), encoding="utf-8")
    return counts


def simulate_all(share=1.0, processes=1, only=None):
    """The counts of all worlds together; the longest first."""
    names = [name for name in reversed(WORLDS) if only is None or name in only]
    total = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for name, counts in zip(names, pool.map(simulate, names, [share] * len(names)), strict=True):
            total |= counts
            sys.stderr.write(f"{name}: {counts[f'seconds|{name}']:.0f} s\n")
    return summarize(total)


def summarize(total):
    """{section: {claim: Count}}."""
    found = {"null": {}, "splits": {}, "limit": {}, "any": {}, "power": {}, "pooled": {}}
    kept = [("null", "null", NULLS), ("splits", "splits", NULLS), ("limit", "null", LIMITS)]
    for section, counted, name, spec, seeds in ((*kind, *one) for *kind, settings in kept for one in settings):
        key = f"{counted}|{name}|{spec}|{seeds}"
        if f"{key}|n" in total:
            claim = f"{name}, {get(spec).label}, {seeds} seeds"
            found[section][claim] = Count(int(total[f"{key}|count"]), int(total[f"{key}|n"]))
    for name in (*ANY_PAIR, *LOOKS):
        if f"any|{name}|n" in total:
            found["any"][name] = Count(int(total[f"any|{name}|count"]), int(total[f"any|{name}|n"]))
    for size in (LARGE, SMALL):
        cases = np.array(total.get(f"power|{size:.1%}", []), dtype=float)
        if len(cases):
            percent, low, high, by_rows, by_splits = cases.T
            true = percent.mean()
            claims = {
                "found": by_rows > 0,
                "found by splits": by_splits > 0,
                "interval covers": (low <= true) & (true <= high),
                "equivalent at a margin as large as the difference": (-true <= low) & (high <= true),
            }
            for claim, happened in claims.items():
                found["power"][f"{true:.2f} %: {claim}"] = Count(int(happened.sum()), len(cases))
    # Each setting counts alike, however cheap its repetitions are.
    for section in ("null", "splits"):
        rates = [each.rate for each in found[section].values()]
        if rates:
            found["pooled"][f"{section}, each setting alike"] = Count(round(10_000 * float(np.mean(rates))), 10_000)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", "--processes", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--only", nargs="*", help="names of worlds")
    options = parser.parse_args()
    found = simulate_all(options.share, options.processes, options.only)
    for section, claims in found.items():
        for claim, each in claims.items():
            sys.stdout.write(f"{section:7} {claim:60} {each.rate:7.3f} +- {each.error:.3f}  n = {each.n}\n")
    told = {
        section: {claim: {"count": each.count, "n": each.n, "rate": each.rate} for claim, each in claims.items()}
        for section, claims in found.items()
    }
    (row_worlds.CACHE / "rows.json").write_text(json.dumps(told, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
