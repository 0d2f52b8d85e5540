"""Parity's own cost: rendering 50 000 cells, and what the harness adds to a cell of a backend that does nothing."""

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

from boosters_eval.programs.parity.rows import ParityRow, write_rows

CELLS = 50_000
PROGRAM = [sys.executable, "-m", "boosters_eval"]
VERDICTS = ("bit_exact", "rounding", "rounding", "boundary", "convention", "divergent")


def report(name: str, value: float, target: str, *, good: bool) -> bool:
    print(f"{'ok  ' if good else 'MISS'} {name}: {value:.2f} (target {target})")
    return good


def synthetic_rows() -> list[ParityRow]:
    """50 methods on 20 backends at 10 sizes and 5 thread counts, each with as many samples as the protocol takes."""
    rows = []
    for at in range(CELLS):
        method, rest = divmod(at, 1000)
        backend, rest = divmod(rest, 50)
        size, threads = divmod(rest, 5)
        ms = 0.5 + (at * 7919 % 10_007) / 1000
        far = 10.0 ** -(at % 14)
        rows.append(
            ParityRow(
                method=f"method-{method}",
                backend=f"backend-{backend}",
                n=100 * (size + 1),
                p=50,
                threads=threads + 1,
                parameters_digest=f"{method:016x}",
                data_digest=f"{1000 * method + size:032x}",
                language="python",
                own=backend < 4,
                status="ok",
                verdict="bit_exact" if backend == 0 else VERDICTS[at % len(VERDICTS)],
                oracle="backend-0 1.0",
                divergence_metric="relative_rmse",
                divergence=far,
                tolerance=1e-9,
                max_abs=3 * far,
                relative_rmse=far,
                rows_off=far / 2,
                convention="It scales its columns." if at % len(VERDICTS) == 4 else "",
                reported_ms=ms,
                median_ms=ms,
                timing_statistic="median",
                timing_schema="adaptive-v1",
                n_runs=39,
                total_runs=40,
                stop_reason="complete",
                fit_ms=ms,
                samples_ns=tuple(round(ms * 1e6 * (1 + (at + 31 * k) % 97 / 500)) for k in range(40)),
                threads_observed=threads + 1,
                repeatable=True,
                prediction=f"{at:032x}",
                versions_json=json.dumps({f"backend-{backend}": "1.0", "numpy": "2.5.4"}),
                host_json='{"system": "Linux"}',
                run_id=f"{method:016x}",
                measured_at="2026-01-02T03:04:05+00:00",
            )
        )
    return rows


def cpu_seconds() -> float:
    """The processor time of this script's children: what is left of the time when the machine is busy."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def rendering() -> bool:
    """The whole command, from the CSV file to the file that is written."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "parity.csv"
        write_rows(source, synthetic_rows())
        print(f"     {CELLS} cells, {source.stat().st_size / 1e6:.0f} MB of CSV")
        for suffix in ("md", "html", "json"):
            out = Path(folder) / f"parity.{suffix}"
            start, used = time.perf_counter(), cpu_seconds()
            subprocess.run([*PROGRAM, "parity", "render", "-q", "--csv", str(source), "--out", str(out)], check=True)
            took, used = time.perf_counter() - start, cpu_seconds() - used
            print(f"     {out.stat().st_size / 1e6:.0f} MB of {suffix}, {used:.2f} s of processor time")
            good = report(f"seconds to render {CELLS} cells as {suffix}", took, "under 10", good=took < 10) and good
    return good


def harness() -> bool:
    """From a cell's start to its outcome, without loading, preparing, fitting and predicting."""
    script = str(Path(__file__).with_name("_binding.py"))
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "BOOSTERS_EVAL_HOME": home}
        done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True, env=env)
    found = json.loads(done.stdout)
    cost = {runs: statistics.median(values) for runs, values in found.items()}
    print("     " + ", ".join(f"{runs} runs {value:.1f}" for runs, value in cost.items()) + " (median ms per cell)")
    worst = max(cost.values())
    return report("milliseconds that the harness adds to a cell", worst, "under 50", good=worst < 50)


def main() -> int:
    results = [rendering(), harness()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
