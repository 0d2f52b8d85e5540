"""From results to the table model: what is a row, what is a column, and what stands in a cell."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from boosters_eval.benchmark.observations import MEASUREMENTS, observe
from boosters_eval.benchmark.tables import notes
from boosters_eval.benchmark.tables.contenders import clean, group
from boosters_eval.benchmark.tables.verdicts import judge
from boosters_eval.core.errors import UnknownNameError
from boosters_eval.reports.model import Cell, Column, Report, Row, Table
from boosters_eval.reports.numbers import estimate, mean_and_std

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.benchmark.results import BenchmarkResult, ResultCollection
    from boosters_eval.benchmark.tables.contenders import Contender
    from boosters_eval.reports.model import Comparison
    from boosters_eval.stats.significance import TestName

# What is measured beside the metrics; less is better in all of them.
MEASURES = {
    "train_time_s": ("Train time (s)", "time"),
    "predict_time_s": ("Predict time (s)", "time"),
    "peak_memory_mb": ("Peak memory (MB)", "memory"),
    "model_size_mb": ("Model size (MB)", "memory"),
}
_LABELS = {
    "rmse": "RMSE",
    "rmsle": "RMSLE",
    "mae": "MAE",
    "mape": "MAPE",
    "r2": "R²",
    "crps": "CRPS",
    "logloss": "Log loss",
    "mlogloss": "Log loss",
    "accuracy": "Accuracy",
    "auc_roc": "AUC",
    "f1": "F1",
    "macro_f1": "Macro F1",
    "brier": "Brier",
    "ece": "ECE",
    "ndcg": "NDCG",
    "map": "MAP",
    "mrr": "MRR",
}
_SIGNED = ("r2", "matthews")  # the built-in metrics that may be negative


@dataclass(frozen=True)
class Wanted:
    """What the caller of `build_tables` asked for."""

    metrics: Sequence[str] | None
    times: bool
    test: str
    alpha: float
    highlight: bool
    require_significance: bool


def build_tables(
    collection: ResultCollection,
    *,
    metrics: Sequence[str] | None = None,
    times: bool = True,
    test: str = "corrected",
    alpha: float | None = None,
    highlight: bool = True,
    require_significance: bool = True,
) -> Report:
    """One table a benchmark. `metrics` chooses and orders the columns; an empty one leaves only measures.

    Without `alpha` the level is the run's own (--seeds auto), else 5 %.
    """
    from boosters_eval.metrics import declare_metric  # noqa: PLC0415 (metrics load when they are needed)

    for name, better in collection.metadata.user_metrics.items():
        declare_metric(name, higher_is_better=better)
    level = collection.metadata.level(alpha)
    wanted = Wanted(metrics, times, test, level, highlight, require_significance)
    tables = [_table(name, list(rows.values()), wanted) for name, rows in group(collection).items()]
    return Report(tuple(tables), notes.of_report(collection, times=times), test, level)


def label(metric: str) -> str:
    """A metric as a person reads it: "ndcg@10" is "NDCG@10"."""
    base, at, parameters = metric.partition("@")
    return clean(_LABELS.get(base, base) + at + parameters)


def _table(name: str, contenders: list[Contender], wanted: Wanted) -> Table:
    results = [result for contender in contenders for result in contender.results]
    first = results[0] if results else contenders[0].errors[0]
    columns = _columns(results, wanted)
    grid = [[_cell(contender, column, wanted) for column in columns] for contender in contenders]
    comparisons: list[Comparison] = []
    for position, column in enumerate(columns):
        found = judge(clean(name), column, contenders, test=wanted.test, alpha=wanted.alpha)
        comparisons += found.comparisons
        best = found.winners if wanted.require_significance else found.leaders
        for index in best if wanted.highlight else ():
            grid[index][position] = dataclasses.replace(grid[index][position], best=True)
    rows = tuple(_row(contender, tuple(cells)) for contender, cells in zip(contenders, grid, strict=True))
    return Table(
        name=clean(name),
        task=first.task.value,
        dataset=clean(first.dataset_name),
        booster=clean(first.booster_type),
        splits=_splits(results),
        profile=first.profile,
        columns=columns,
        rows=rows,
        notes=notes.of_table(contenders, columns, comparisons),
        comparisons=tuple(comparisons),
    )


def _columns(results: list[BenchmarkResult], wanted: Wanted) -> tuple[Column, ...]:
    present = list(dict.fromkeys(name for result in results for name in result.metrics))
    primary = next((result.primary_metric for result in results if result.primary_metric), None)
    present.sort(key=lambda name: name != primary)
    chosen = present if wanted.metrics is None else [name for name in wanted.metrics if name in present]
    found = [
        Column(name, label(name), _direction(name), primary=name == (primary or present[0]), floor=_floor(name))
        for name in chosen
    ]
    untimed = not all(result.timing_mode for result in results)
    memory = any(result.peak_memory_mb is not None for result in results)
    for name, (text, kind) in MEASURES.items() if wanted.times else ():
        # A model's size is known anyway, but only told where memory was asked for.
        if (kind == "time" or memory) and any(getattr(result, name) is not None for result in results):
            found.append(Column(name, text, higher_is_better=False, kind=kind, floor=0.0, indicative=untimed))
    return tuple(found)


def _direction(metric: str) -> bool | None:
    """Whether more is better; a metric that is not registered here (a user's own) has no known direction."""
    from boosters_eval.metrics import higher_is_better  # noqa: PLC0415 (metrics load when they are needed)

    try:
        return higher_is_better(metric)
    except UnknownNameError:
        return None


def _floor(metric: str) -> float | None:
    """The built-in metrics cannot be below 0, but for two; of a user's own nothing is known."""
    from boosters_eval.metrics import get  # noqa: PLC0415 (metrics load when they are needed)

    try:
        info = get(metric).info
    except UnknownNameError:
        return None
    return 0.0 if isinstance(info.implementation, str) and info.name not in _SIGNED else None


def _cell(contender: Contender, column: Column, wanted: Wanted) -> Cell:
    """A row's mean, with the interval that the test of the table gives it."""
    from boosters_eval.stats.tables import mean_interval  # noqa: PLC0415 (loads scipy)

    values = contender.values(column)
    mean, std = mean_and_std(values)
    text = estimate(mean, std)
    if values and len(values) != len(contender.results):
        text += f" (n = {len(values)})"
    low, high = mean_interval(
        observe(contender.results, column.name),
        test=cast("TestName", wanted.test),
        alpha=wanted.alpha,
        as_ratio=column.name in MEASUREMENTS,
    ) or (None, None)
    return Cell(
        mean=mean if mean is not None and math.isfinite(mean) else None,
        std=std,
        n=len(values),
        text=text,
        low=low if low is None or column.floor is None else max(low, column.floor),
        high=high,
        values=tuple(v if v is not None and math.isfinite(v) else None for v in contender.aligned(column)),
    )


def _row(contender: Contender, cells: tuple[Cell, ...]) -> Row:
    return Row(
        library=clean(contender.library),
        variant=None if contender.variant is None else clean(contender.variant),
        n=len(contender.results),
        failed=len(contender.errors),
        cells=cells,
        points=tuple(str(result.repeat) for result in contender.results),
    )


def _splits(results: list[BenchmarkResult]) -> str:
    seeds = len({result.seed for result in results})
    folds = len({result.fold for result in results if result.fold is not None})
    text = f"{seeds} seed{'' if seeds == 1 else 's'}"
    return f"{text} x {folds} folds" if folds else text
