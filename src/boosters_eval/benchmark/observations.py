"""From results to the input of the statistics: the values of one metric or measurement, by repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.stats.observations import Observation, Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.benchmark.results import BenchmarkResult
    from boosters_eval.stats.significance import TestName
    from boosters_eval.stats.tables import ComparisonTable

# Times and sizes are fields of a result, not metrics; they are compared by their ratio.
MEASUREMENTS = (
    "train_time_s",
    "build_time_s",
    "fit_time_s",
    "predict_time_s",
    "cpu_time_s",
    "peak_memory_mb",
    "model_size_mb",
)


def value_of(result: BenchmarkResult, metric: str) -> float | None:
    """A result's value of a metric or a measurement, or None."""
    if metric in MEASUREMENTS:
        measured: float | None = getattr(result, metric)
        return measured
    return result.metrics.get(metric)


def observe(results: Iterable[BenchmarkResult], metric: str) -> Side:
    """One side of a comparison: the results of one row of a table."""
    return Side((result.repeat, _observation(result, metric)) for result in results)


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
        as_ratio=metric in MEASUREMENTS,
        test=test,
        alpha=alpha,
        rope=DEFAULT_ROPE if rope is None else rope,
    )


def _observation(result: BenchmarkResult, metric: str) -> Observation | None:
    value = value_of(result, metric)
    if value is None:
        return None
    return Observation(value, result.split_digest, result.n_train, result.n_valid, result.data_digest)
