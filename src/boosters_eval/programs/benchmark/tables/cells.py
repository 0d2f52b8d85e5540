"""Every cell of a run, for the page: folded by config and library, with what all cells of a fold share said once."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import clean, clean_lines, count_of, group_digits
from boosters_eval.reports.document import Block, Code, Details, Paragraph, PlainTable, Section
from boosters_eval.reports.numbers import number
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.programs.benchmark.records import BenchmarkError
    from boosters_eval.programs.benchmark.results import ResultsDocument

    _Cell = BenchmarkResult | BenchmarkError

MAX_CELLS = 3_000  # on the page; with more, the first folds that fit are shown
_DIGITS = 12  # of a digest

# What is shown of a result besides its metrics, by heading.
_FIELDS = {
    "Train (s)": "train_time_s",
    "Build (s)": "build_time_s",
    "Fit (s)": "fit_time_s",
    "Predict (s)": "predict_time_s",
    "CPU (s)": "cpu_time_s",
    "CPU taken by others": "cpu_taken",
    "Peak memory (MB)": "peak_memory_mb",
    "First use (MB)": "first_use_mb",
    "Model (MB)": "model_size_mb",
    "Trees": "n_trees_trained",
    "Leaves": "n_leaves_total",
    "Train rows": "n_train",
    "Test rows": "n_valid",
    "Split": "split_digest",
    "Data": "data_digest",
    "Predictions": "predictions_digest",
    "Model seed": "model_seed",
    "Threads": "n_threads",
    "Threads seen": "threads_observed",
    "Version": "library_version",
    "Machine": "machine",
    "Failed before": "failed_before",
}
_OWN = ("Seed", "Fold")  # never said only once


def cells(results: ResultsDocument) -> Section | None:
    """A section that can be searched; None if there is no cell."""
    folds: dict[tuple[str, str, str], list[_Cell]] = {}
    outcomes: list[_Cell] = [*results.results, *results.errors]
    for outcome in outcomes:
        key = (outcome.config_name, outcome.library, outcome.variant or "")
        folds.setdefault(key, []).append(outcome)
    total, shown, blocks = len(outcomes), 0, list[Block]()
    for key, members in folds.items():
        if shown + len(members) > MAX_CELLS:
            continue
        shown += len(members)
        blocks.append(_fold(" ".join(filter(None, key)), members))
    if shown < total:
        some = f"{group_digits(shown)} of {group_digits(total)} cells"
        blocks.insert(0, Paragraph(f"{some} are shown here, to keep the page light; the JSON report has all."))
    return Section("cells", "Cells", tuple(blocks), search="Filter cells", only="page") if blocks else None


def _fold(title: str, outcomes: list[_Cell]) -> Details:
    results = [outcome for outcome in outcomes if isinstance(outcome, BenchmarkResult)]
    rows = [_row(outcome) for outcome in outcomes]
    names = list(dict.fromkeys(name for row in rows for name in row))
    order = sorted(names, key=_place(names).__getitem__)
    finished = [row for row in rows if "Failure" not in row]
    common = {
        name: finished[0][name]
        for name in order
        if name not in _OWN and len(finished) > 1 and len({row.get(name) for row in finished}) == 1
        if name in finished[0]
    }
    kept = {name: [row.get(name) for row in rows] for name in order if name not in common}
    table = PlainTable(name=f"Cells of {title}", headings=tuple(kept), rows=tuple(zip(*kept.values(), strict=True)))
    said = ", ".join(f"{name} {_text(value)}" for name, value in common.items())
    that = "" if len(finished) == len(rows) else " that finished"
    blocks: list[Block] = [Paragraph(text=f"In all cells{that}: {said}.")] if said else []
    blocks.append(table)
    if given := _parameters(results):
        blocks.append(Code(text=given))
    return Details(title=clean(title), aside=_aside(outcomes, results), blocks=tuple(blocks))


def _place(names: Sequence[str]) -> dict[str, int]:
    """Identity first, then scores, then the declared fields, and last what went wrong."""
    declared = [*_OWN, *(name for name in names if name not in (*_OWN, *_FIELDS, "Warnings", "Failure")), *_FIELDS]
    return {name: index for index, name in enumerate([*declared, "Warnings", "Failure"])}


def _row(outcome: _Cell) -> dict[str, str | int | float | None]:
    """What is known of a cell."""
    row: dict[str, str | int | float | None] = {"Seed": str(outcome.seed)}
    if outcome.fold is not None:
        row["Fold"] = outcome.fold
    if not isinstance(outcome, BenchmarkResult):
        if outcome.machine is not None:
            row["Machine"] = _known(outcome.machine)
        row["Failure"] = clean(f"{outcome.error_type} in {outcome.phase}: {outcome.error_message}")
        return row
    row |= {clean(name): _known(value) for name, value in outcome.metrics.items()}
    for heading, field in _FIELDS.items():
        value = getattr(outcome, field)
        if value is not None and not (field == "failed_before" and value == 0):
            row[heading] = (
                str(value) if field == "model_seed" else _known(value)
            )  # a name, whose digits are not grouped
    if outcome.warnings:
        row["Warnings"] = clean("; ".join(outcome.warnings))
    return row


def _known(value: str | float) -> str | int | float:
    """A value for a cell: a number that is none is said in words, and a digest is shortened."""
    if not isinstance(value, str):
        return value if math.isfinite(value) else "not finite"
    return clean(value[:_DIGITS] if len(value) >= 2 * _DIGITS else value)


def _text(value: str | float | None) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _parameters(results: Sequence[BenchmarkResult]) -> str:
    """The native parameters, each on a line; those that hold the model's own seed differ by cell."""
    given: list[dict[str, Any]] = [result.native_params or {} for result in results]
    lines = []
    for name in sorted({name for params in given for name in params}):
        values = {json.dumps(params.get(name), sort_keys=True, default=str) for params in given}
        lines.append(f"{name} = {values.pop() if len(values) == 1 else '(differs by seed)'}")
    return clean_lines("\n".join(lines))


def _aside(outcomes: Sequence[_Cell], results: Sequence[BenchmarkResult]) -> str:
    failed, warned = len(outcomes) - len(results), sum(bool(result.warnings) for result in results)
    parts = [count_of(len(outcomes), "cell")]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{warned} with warnings"] if warned else []
    return ", ".join(parts)
