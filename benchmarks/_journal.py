"""Write a run of 100 000 outcomes, open it in a fresh process, and print what that cost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

COUNT = 100_000


def write(home: Path) -> None:
    """A real run of one cell, its journal multiplied; written without waiting for the disk each time."""
    from boosters_eval import TrainingConfig, compare
    from boosters_eval.engine import journal
    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.engine.plan import CellRef
    from boosters_eval.engine.runs import RunFolder, find_run

    (result,) = compare("iris", "lightgbm", seeds=1, training=TrainingConfig(n_estimators=2), home=home).results
    plan = (
        find_run("last", home).plan().replace(refs=tuple(CellRef(0, "lightgbm", seed, None) for seed in range(COUNT)))
    )
    big = RunFolder.of(plan, home)
    book, attempt = big.open(new=True)
    journal.os.fsync = lambda _: None  # type: ignore[assignment]
    big.write_facts(attempt, RunFacts())
    book.begin({"run_id": plan.run_id, **big.digests(attempt)})
    for seed in range(COUNT):
        book.append(result.model_copy(update={"seed": seed}), "fit")
    book.seal(COUNT)
    book.close()


def read(home: Path) -> None:
    from boosters_eval import load_run
    from boosters_eval.programs.benchmark import runs  # noqa: F401 (imported before the clock starts)

    start = time.perf_counter()
    collection = load_run("last", home)
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": took, "megabytes": peak, "outcomes": len(collection.results)}))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(Path(sys.argv[1]))
        subprocess.run([sys.executable, __file__, sys.argv[1], "read"], check=True)
    else:
        read(Path(sys.argv[1]))
