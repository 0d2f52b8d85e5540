"""Outcomes as flat rows: the basis of every tabular export."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import csv_cell
from boosters_eval.programs.benchmark.records import Absence, BenchmarkError, Unsupported
from boosters_eval.programs.benchmark.unbeaten import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.core.repeat import Repeat
    from boosters_eval.runners.result import BenchmarkResult

ROW_FIELDS = ("config", "dataset", "booster", "task", "library", "variant", "seed", "fold")
_ROW_END = ("status", "reason")


def row_of(result: BenchmarkResult) -> dict[str, Any]:
    """The flat row of a result: what it is of, each metric, and what was measured besides."""
    return {
        "config": result.config_name,
        "dataset": result.dataset_name,
        "booster": result.booster_type,
        "task": result.task.value,
        "library": result.library,
        "variant": result.variant,
        "seed": result.seed,
        "fold": result.fold,
        **result.metrics,
        "train_time_s": result.train_time_s,
        "predict_time_s": result.predict_time_s,
        "peak_memory_mb": result.peak_memory_mb,
        "first_use_mb": result.first_use_mb,
        "model_size_mb": result.model_size_mb,
        "n_trees_trained": result.n_trees_trained,
        "n_leaves_total": result.n_leaves_total,
        "n_threads": result.n_threads,
        "library_version": result.library_version,
        "split_digest": result.split_digest,
        **_machine(result),
    }


def csv_of(results: Sequence[BenchmarkResult], others: Sequence[BenchmarkError | Absence]) -> str:
    """CSV with a line per result, per trivial rule of a split, and per outcome without numbers, in this order."""
    rows = [{**row_of(result), **_status(result)} for result in results]
    rows += [*_trivial_rows(results), *map(_row_without_numbers, others)]
    named = dict.fromkeys([*ROW_FIELDS, *(name for row in rows for name in row)])
    columns = [*(name for name in named if name not in _ROW_END), *_ROW_END]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writerow({name: csv_cell(name) for name in columns})
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _status(result: BenchmarkResult) -> dict[str, str]:
    if not result.failed_before:
        return {"status": "ok"}
    times = "once" if result.failed_before == 1 else f"{result.failed_before} times"
    return {"status": "flaky", "reason": f"it failed {times} before it finished"}


def _row_without_numbers(item: BenchmarkError | Absence) -> dict[str, Any]:
    seed: int | None = None
    fold: int | None = None
    if isinstance(item, BenchmarkError):
        (seed, fold), status, reason = item.repeat, "error", f"{item.error_type}: {item.error_message}"
    else:
        status, reason = "unsupported" if isinstance(item, Unsupported) else "unavailable", item.reason
    return {
        "config": item.config_name,
        "dataset": item.dataset_name,
        "booster": item.booster_type,
        "task": item.task and item.task.value,
        "library": item.library,
        "variant": item.variant,
        "seed": seed,
        "fold": fold,
        **_machine(item),
        "status": status,
        "reason": reason,
    }


def _trivial_rows(results: Iterable[BenchmarkResult]) -> list[dict[str, Any]]:
    """What the trivial rules score on each split, once, although each library's result of the split has it."""
    rows: dict[tuple[str, Repeat, str], dict[str, Any]] = {}
    for result in results:
        for rule, scores in (result.trivial or {}).items():
            same = {name: value for name, value in row_of(result).items() if name in ROW_FIELDS}
            named = {**same, "library": RULES.get(rule, (rule,))[-1], "split_digest": result.split_digest}
            rows.setdefault((result.config_name, result.repeat, rule), {**named, **scores, "status": "trivial"})
    return list(rows.values())


def _machine(outcome: BenchmarkResult | BenchmarkError | Absence) -> dict[str, str]:
    """Where a cell ran, in runs that name it."""
    machine = None if isinstance(outcome, Absence) else outcome.machine
    return {} if machine is None else {"machine": machine}
