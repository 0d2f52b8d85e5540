"""Whole runs: `quick` over a plain joblib script, `full` over the time of its fits alone, and what predictions cost."""

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

import numpy as np

PROGRAM = [sys.executable, "-m", "boosters_eval"]
SCRIPT = Path(__file__).with_name("_joblib_quick.py")
PAIRS = 5
COSTS = 9  # pairs of runs with and without predictions


def seconds(command: list[str], home: str) -> float:
    # As the program does for its cells: a library's own threads would fight over two cores.
    env = {**os.environ, "BOOSTERS_EVAL_HOME": home, "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=env)
    return time.perf_counter() - start


def write_cells(folder: Path) -> None:
    """What the script needs: tables, splits, and native parameters, as the program makes them."""
    from boosters_eval import RUNNERS, prepare_suite
    from boosters_eval.datasets import open_stored, split_rows
    from boosters_eval.programs.benchmark.spec import model_seed

    prepared = prepare_suite("quick", home=folder)
    cells = []
    for name, stored in prepared.inputs.stored.items():
        table = open_stored(stored.path)
        np.savez(folder / f"{name}.npz", x=table.x, y=table.y)
    for cell in prepared.plan.cells:
        spec, (seed, fold) = cell.spec, cell.repeat
        split = split_rows(open_stored(prepared.inputs.stored[spec.dataset].path), spec.task, spec.split, seed, fold)
        place = f"{spec.dataset}-{seed}.npz"
        np.savez(folder / place, train=split.train, valid=split.valid)
        library = getattr(cell.target, "name", cell.target)
        native = RUNNERS[library].translate(spec.request(model_seed(cell))).native
        cells.append(
            {"dataset": spec.dataset, "split": place, "library": library, "task": spec.task.value, "native": native}
        )
    (folder / "cells.json").write_text(json.dumps(cells))


def check_scores(folder: Path, results: list[dict]) -> None:
    """The script does the same work: its scores are those of the program."""
    cells, found = (json.loads((folder / name).read_text()) for name in ("cells.json", "found.json"))
    ours = {(r["dataset_name"], r["library"], r["seed"]): r["metrics"] for r in results}
    for cell, scores in zip(cells, found, strict=True):
        seed = int(cell["split"].removesuffix(".npz").rpartition("-")[2])
        metric = "rmse" if cell["task"] == "regression" else "logloss"
        mine = ours[cell["dataset"], cell["library"], seed][metric]
        assert abs(scores[metric] - mine) <= 1e-6 * abs(mine), (cell["dataset"], cell["library"], scores[metric], mine)


def quick() -> bool:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_cells(folder)
        command = [*PROGRAM, "run", "--suite", "quick", "--jobs", "2", "-q", "-o", str(folder / "quick.json")]
        script = [sys.executable, str(SCRIPT), place]
        for each in (command, script):
            seconds(each, place)  # data into the cache, files into memory
        check_scores(folder, json.loads((folder / "quick.json").read_text())["results"])
        ratios = []
        for number in range(PAIRS):
            first, second = (command, script) if number % 2 else (script, command)
            took = {first[1]: seconds(first, place), second[1]: seconds(second, place)}
            ratios.append(took[command[1]] / took[script[1]])
            print(f"     quick {took[command[1]]:.2f} s, script {took[script[1]]:.2f} s: {ratios[-1]:.2f}")
    ratio = statistics.median(ratios)
    print(f"{'ok  ' if ratio <= 1 else 'MISS'} quick over a joblib script: {ratio:.2f} (target at most 1.0)")
    return ratio <= 1


def full() -> bool:
    ratios = []
    with tempfile.TemporaryDirectory() as home:
        out = Path(home) / "full.json"
        command = [*PROGRAM, "run", "--suite", "full", "--jobs", "2", "-q", "-o", str(out)]
        subprocess.run([*command, "--dry-run"], check=True, capture_output=True)
        for _ in range(2):
            took = seconds(command, home)
            results = json.loads(out.read_text())["results"]
            own = sum(r["train_time_s"] + r["predict_time_s"] for r in results) / 2
            ratios.append(took / own)
            print(f"     full {took:.1f} s, fit and predict by two {own:.1f} s: {ratios[-1]:.2f}")
    ratio = statistics.median(ratios)
    print(f"{'ok  ' if ratio <= 1.12 else 'MISS'} full over its fits by two: {ratio:.2f} (target at most 1.12)")
    return ratio <= 1.12


def predictions() -> bool:
    """What keeping predictions adds to a run of short fits on many rows; both are judged by splits, as one must be."""
    kept = [*PROGRAM, "compare", "-d", "california", "--jobs", "2", "--test", "corrected", "-q"]
    wall, told = _compare_pairs(kept, [*kept, "--no-predictions"])
    print(f"     with over without predictions: {told}")
    print(f"{'ok  ' if wall <= 1.02 else 'MISS'} predictions kept: wall {wall:.3f} (target at most 1.02)")
    _, told = _compare_pairs([*PROGRAM, "compare", "-d", "california", "--jobs", "2", "-q"], kept)
    print(f"     judged by rows over judged by splits: {told}")
    return wall <= 1.02


def _compare_pairs(one: list[str], other: list[str]) -> tuple[float, str]:
    """The ratio of the walls of two commands, in turn, and of their CPU times, which are steadier."""
    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as home:
        seconds(one, home)
        for number in range(COSTS):
            pair = (one, other) if number % 2 else (other, one)
            took = {tuple(command): _measure(command, home) for command in pair}
            wall, cpu = (a / b for a, b in zip(took[tuple(one)], took[tuple(other)], strict=True))
            walls.append(wall)
            cpus.append(cpu)
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    return wall, f"wall {wall:.3f} ({min(walls):.2f} to {max(walls):.2f}), CPU time {cpu:.3f}"


def _measure(command: list[str], home: str) -> tuple[float, float]:
    """Seconds of wall and of CPU, the children's included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(command, home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


PARTS = {"quick": quick, "full": full, "predictions": predictions}

if __name__ == "__main__":
    held = [PARTS[name]() for name in sys.argv[1:] or PARTS]
    sys.exit(0 if all(held) else 1)
