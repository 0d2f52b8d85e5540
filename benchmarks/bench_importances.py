"""The cost of explaining models: each cell over the calls into its library, and the command over a script by hand.

10 000 rows x 50 columns, 100 trees, one split, every library that is installed. Times are those of a clock on the
wall: on a busy machine they tell little; the CPU time is printed beside.

The script by hand is what somebody would write without this program, and has all that the libraries need: one process
that reads the file, imports each library, trains, predicts the shuffled copies, and asks for importances and
attributions. The command, as it is typed, must do the same, with its audit, its processes, its journal and its report,
in 10 % more; it uses all cores for that. With one cell at a time, where nothing hides what it adds, its time is printed
without a target: starting, a process per library, and the report are some five seconds, whatever the data.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest, TrainData
from boosters_eval.runners.explanations import (
    compute_attributions,
    compute_importances,
    compute_raw_scores,
    load_explaining,
)
from boosters_eval.runners.parameters import TrainingConfig

ROWS, COLUMNS, REPEATS, ROUNDS, TARGET = 10_000, 50, 5, 3, 1.10
PROGRAM = [sys.executable, "-m", "boosters_eval", "importances", "--seeds", "1", "--quiet"]
BY_HAND = "--by-hand"


def write_data(path: Path) -> None:
    """Ten columns that matter, with an interaction, and noise."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(ROWS, COLUMNS))
    y = x[:, :10] @ np.linspace(3, 0.3, 10) + x[:, 0] * x[:, 1] + draw.normal(size=ROWS)
    names = ",".join([*(f"c{column}" for column in range(COLUMNS)), "y"])
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=names, comments="", fmt="%.6g")


def explain_by_hand(path: str) -> None:
    """The calls into the libraries, and nothing else."""
    import pandas as pd

    draw = np.random.default_rng(0)
    data = draw.permutation(pd.read_csv(path).to_numpy(dtype=np.float64))
    x, y, n_train = np.ascontiguousarray(data[:, :-1], dtype=np.float32), data[:, -1], len(data) * 8 // 10
    train, valid = TrainData(x[:n_train], y[:n_train]), x[n_train:]
    for runner in (RUNNERS[name] for name in RUNNERS if RUNNERS[name].missing() is None):
        runner.load()
        load_explaining(runner)
        translation = runner.translate(FitRequest(task=Task.REGRESSION, training=TrainingConfig()))
        model = runner.fit(translation, runner.build(translation, train))
        runner.predict(translation, model, valid)
        for column in range(COLUMNS):
            copies = np.tile(valid, (REPEATS, 1))
            copies[:, column] = np.concatenate([draw.permutation(valid[:, column]) for _ in range(REPEATS)])
            runner.predict(translation, model, copies)
        for kind in ("gain", "split"):
            with suppress(UnsupportedError):
                compute_importances(runner, translation, model, COLUMNS, kind)
        with suppress(UnsupportedError):
            compute_attributions(runner, translation, model, valid)
            compute_raw_scores(runner, translation, model, valid)


def seconds_of(command: list[str], home: Path) -> tuple[float, float]:
    """By the clock on the wall, and of the CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "BOOSTERS_EVAL_HOME": str(home), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(name: str, value: float) -> bool:
    good = value <= TARGET
    print(f"{'ok  ' if good else 'MISS'} {name}: {value:.3f} (target {TARGET:.2f})", flush=True)
    return good


def main() -> int:
    from boosters_eval.api import load_importances

    with tempfile.TemporaryDirectory() as folder:
        home, data = Path(folder, "home"), Path(folder, "data.csv")
        write_data(data)
        alone = seconds_of([*PROGRAM, "--jobs", "1", "--dataset", f"{data}:y"], home / "alone")
        found = load_importances("last", home / "alone")
        ratios = []
        for turn in range(ROUNDS):
            whole = seconds_of([*PROGRAM, "--dataset", f"{data}:y"], home / str(turn))
            by_hand = seconds_of([sys.executable, __file__, BY_HAND, str(data)], home)
            ratios.append(whole[0] / by_hand[0])
            print(f"     the command {_told(whole)}, the script by hand {_told(by_hand)}", flush=True)
    good = True
    for cell in found.results:
        parts = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in cell.seconds.items())
        ratio = cell.cell_seconds / cell.library_seconds
        good &= report(f"{cell.library}, cell over its library's calls ({parts})", ratio)
    print(f"     one cell at a time: {_told(alone)}, {alone[0] / by_hand[0]:.2f} times the last script by hand")
    name = f"the command over the script by hand, the median of {ROUNDS} rounds"
    return 0 if report(name, statistics.median(ratios)) and good else 1


def _told(seconds: tuple[float, float]) -> str:
    return "{:.1f} s ({:.1f} s of CPU)".format(*seconds)


if __name__ == "__main__":
    if sys.argv[1:2] == [BY_HAND]:
        explain_by_hand(sys.argv[2])
    else:
        sys.exit(main())
