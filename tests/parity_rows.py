"""Rows of parity results for tests of renderings: nothing here was measured."""

from __future__ import annotations

import json
from typing import Any

from boosters_eval.programs.parity.rows import ParityRow

HOST = json.dumps({"system": "Linux 6.1", "processor": "Test CPU", "BLAS": "openblas 0.3.30", "Python": "3.12.1"})
AT = "2026-01-02T03:04:05+00:00"
_SPREAD = (2.2, 1.0, 0.97, 1.05, 1.01, 0.99, 1.3, 0.98)


def parity_row(backend: str = "sklearn", **changes: Any) -> ParityRow:
    """A cell that agrees with its oracle."""
    ms = changes.pop("ms", 10.0)
    given: dict[str, Any] = {
        "method": "pls",
        "backend": backend,
        "n": 200,
        "p": 50,
        "threads": 1,
        "parameters_digest": "8a5d75fcb2115611",
        "data_digest": "4d53e10060cf4553",
        "language": "python",
        "status": "ok",
        "verdict": "rounding",
        "oracle": "sklearn 1.9.1",
        "divergence_metric": "relative_rmse",
        "divergence": 3.1e-16,
        "tolerance": 1e-12,
        "max_abs": 2.5e-14,
        "relative_rmse": 3.1e-16,
        "rows_off": 0.0,
        "reported_ms": ms,
        "median_ms": ms,
        "timing_statistic": "median",
        "timing_schema": "adaptive-v1",
        "n_runs": 7,
        "total_runs": 8,
        "stop_reason": "max_runs",
        "load_ms": 30.0,
        "prepare_ms": 0.1,
        "fit_ms": 0.8 * ms,
        "predict_ms": 0.2 * ms,
        "samples_ns": tuple(round(ms * 1e6 * factor) for factor in _SPREAD),
        "threads_observed": 1,
        "repeatable": True,
        "versions_json": json.dumps({backend: "1.3.8", "numpy": "2.5.4"}),
        "host_json": HOST,
        "run_id": "03a917b8ff5f3da5",
        "measured_at": AT,
    }
    return ParityRow(**{**given, **changes})


def failed_row(backend: str, status: str, **changes: Any) -> ParityRow:
    """A cell without a result."""
    place = {"method": "pls", "n": 200, "p": 50, "threads": 1, "language": "python", **changes}
    digests = {"parameters_digest": "8a5d75fcb2115611", "data_digest": "4d53e10060cf4553"}
    return ParityRow(**{"backend": backend, "status": status, **digests, **place})


def story() -> list[ParityRow]:
    """Every verdict and every status, at two sizes and two thread counts, in two families."""
    rows = []
    for n, factor in ((200, 1.0), (2000, 8.0)):
        for threads in (1, 2):
            at = {"n": n, "threads": threads}
            rows += [
                parity_row(
                    "sklearn", ms=22.7 * factor / threads, verdict="bit_exact", max_abs=0.0, divergence=0.0, **at
                ),
                parity_row(
                    "pls4all", ms=0.526 * factor, own=True, binding_verdict="bit_exact", binding_max_abs=0.0, **at
                ),
                parity_row(
                    "pls4all.sklearn",
                    ms=2.08 * factor,
                    own=True,
                    verdict="convention",
                    divergence=0.066,
                    max_abs=2.13,
                    rows_off=1.0,
                    binding_verdict="divergent",
                    binding_max_abs=2.13,
                    convention="It scales its columns to unit variance.",
                    **at,
                ),
                parity_row("ikpls", ms=0.83 * factor, **at),
                parity_row("other", ms=3.0, verdict="divergent", divergence=0.2, max_abs=1.2, rows_off=0.31, **at),
                failed_row("R.simpls", "not_available", language="R", message="Rscript is not installed", **at),
                failed_row("hang", "timeout", message="Timeout: 86400 s (in fit)", measured_at=AT, **at),
                failed_row("segfault", "crashed", signal="SIGSEGV", message="died (in fit)", measured_at=AT, **at),
                failed_row(
                    "frozen", "stale", message="3 unlike data sets got 1 unlike predictions.", measured_at=AT, **at
                ),
                failed_row("refuses", "refused", message="It needs n > p.", measured_at=AT, **at),
            ]
    forest = {"method": "trees", "n": 500, "p": 10, "oracle": "native 4.7.0", "tolerance": 1e-6}
    rows += [
        parity_row("native", verdict="bit_exact", divergence=0.0, max_abs=0.0, **forest),
        parity_row(
            "onnx",
            verdict="known_defect",
            divergence=0.02,
            max_abs=6.07,
            rows_off=0.004,
            ms=4.0,
            convention="It compares in single precision.",
            diagnosis='agrees with thresholds="float32"',
            **forest,
        ),
        parity_row("random", verdict="cross_check", divergence=0.5, max_abs=1.0, rows_off=0.9, ms=6.0, **forest),
        parity_row("lone", verdict="no_oracle", **{**forest, "method": "lonely", "oracle": ""}),
        parity_row(
            "lost",
            verdict="oracle_missing",
            divergence=None,
            rows_off=None,
            **{**forest, "method": "lonely", "oracle": ""},
        ),
        failed_row(
            "late", "deferred", message="The budget was used up.", **{**forest, "oracle": "", "tolerance": None}
        ),
        failed_row(
            "nan", "failed", message="A prediction must be finite. 3 values are not.", method="trees", n=500, p=10
        ),
    ]
    return rows


HOSTILE = '<img src=x onerror=alert(1)></script><script>alert("x")</script>|`a`\u202e&amp;'


def hostile() -> list[ParityRow]:
    """Foreign text wherever there is text."""
    texts = dict.fromkeys(("message", "convention", "language", "run_id", "stop_reason"), HOSTILE)
    return [
        parity_row("oracle", verdict="bit_exact", oracle="oracle 1", method=f"m {HOSTILE}"),
        parity_row(
            f"b {HOSTILE}",
            method=f"m {HOSTILE}",
            verdict="convention",
            oracle="oracle 1",
            versions_json=json.dumps({HOSTILE: HOSTILE}),
            host_json=HOSTILE,
            measured_at=f"2026 {HOSTILE}",
            divergence=float("inf"),
            **texts,
        ),
        failed_row(f"f {HOSTILE}", "crashed", method=f"m {HOSTILE}", signal=HOSTILE, message=HOSTILE),
    ]
