"""From results to the input of the statistics: the values of one metric or measurement, by repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.metrics import find
from boosters_eval.metrics.catalog import OF_MACHINE, RESOURCES
from boosters_eval.stats.observations import Observation, Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.metrics.catalog import Resolution
    from boosters_eval.runners.result import BenchmarkResult, SplitFacts
    from boosters_eval.stats.significance import TestName
    from boosters_eval.stats.tables import ComparisonTable


def value_of(result: BenchmarkResult, metric: str) -> float | None:
    """A result's value of a metric or a measurement, or None."""
    if metric in RESOURCES:  # times and sizes are fields of a result, and are compared by their ratio
        measured: float | None = getattr(result, metric)
        return measured
    return result.metrics.get(metric)


def observe(results: Iterable[BenchmarkResult], metric: str) -> Side:
    """One side of a comparison: the results of one row of a table."""
    kind = _kind(metric)
    return Side((result.repeat, _observation(result, metric, kind)) for result in results)


def compare_rows(
    rows: Mapping[str, Iterable[BenchmarkResult]],
    metric: str,
    *,
    higher_is_better: bool,
    test: TestName = "corrected",
    alpha: float,
    rope: float | None = None,
) -> ComparisonTable:
    """Compare each pair of rows of one table, given as {name: results}."""
    from boosters_eval.stats.significance import DEFAULT_ROPE  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.tables import compare_table  # noqa: PLC0415 (loads scipy)

    return compare_table(
        {name: observe(results, metric) for name, results in rows.items()},
        metric=metric,
        higher_is_better=higher_is_better,
        as_ratio=metric in RESOURCES,
        test=test,
        alpha=alpha,
        rope=DEFAULT_ROPE if rope is None else rope,
    )


def resolution_of(metric: str, n_valid: int | None) -> float | None:
    """The smallest step between two values on that many rows; 0 for a continuous metric, None if it is not known."""
    return _step(_kind(metric), n_valid)


def _step(kind: Resolution, n_valid: int | None) -> float | None:
    if kind == "continuous":
        return 0.0
    return 1 / n_valid if kind == "rows" and n_valid else None


def _observation(result: BenchmarkResult, metric: str, kind: Resolution) -> Observation | None:
    value = value_of(result, metric)
    if value is None:
        return None
    return Observation(
        value,
        result.split_digest,
        result.n_train,
        result.n_valid,
        result.data_digest,
        predictions_digest=None if metric in RESOURCES else result.predictions_digest,
        resolution=_step(kind, result.n_valid),
        machine=result.machine if metric in OF_MACHINE else None,
        **split_fields(result.split),
    )


def split_fields(split: SplitFacts | None) -> dict[str, Any]:
    """What an observation says of a split that is not random."""
    return {} if split is None else split.model_dump(include={"kind", "n_train_groups", "n_valid_groups"})


def _kind(metric: str) -> Resolution:
    """What the values can resolve; unknown of a user's own metric."""
    if metric in RESOURCES:
        return "continuous"
    known = find(metric)
    return "unknown" if known is None else known.resolution
