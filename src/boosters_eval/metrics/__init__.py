"""Metrics: one implementation that scores every library. NumPy is imported when something is computed."""

from boosters_eval.metrics.catalog import (
    METRICS,
    PRIMARY,
    RESOURCES,
    SECONDARY,
    Direction,
    MetricInfo,
    MetricWarning,
    Param,
)
from boosters_eval.metrics.compute import compute_metrics, primary_metric, task_metrics
from boosters_eval.metrics.metric import (
    METRIC_DIRECTION,
    Metric,
    declare_metric,
    direction,
    find,
    for_task,
    get,
    higher_is_better,
    label,
    metric_from_callable,
    register_metric,
)

__all__ = [
    "METRICS",
    "METRIC_DIRECTION",
    "PRIMARY",
    "RESOURCES",
    "SECONDARY",
    "Direction",
    "Metric",
    "MetricInfo",
    "MetricWarning",
    "Param",
    "compute_metrics",
    "declare_metric",
    "direction",
    "find",
    "for_task",
    "get",
    "higher_is_better",
    "label",
    "metric_from_callable",
    "primary_metric",
    "register_metric",
    "task_metrics",
]
