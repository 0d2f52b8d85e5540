"""The metrics of a task, in one call: what every library's predictions are scored by."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics.catalog import FAIRNESS, METRICS, PRIMARY, SECONDARY, as_task
from boosters_eval.metrics.metric import for_task, get
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.metrics.metric import Metric


def primary_metric(task: Task | str, override: str | None = None) -> str:
    """The spec of the metric that decides; a data set may override the task's."""
    return PRIMARY[as_task(task)] if override is None else for_task(override, task).spec


def task_metrics(task: Task | str, extra: Iterable[str | Metric] = (), *, sensitive: bool = False) -> list[Metric]:
    """What a task is scored by: its primary and secondary metrics, fairness where it can be, and the extra ones."""
    task = as_task(task)
    specs = [PRIMARY[task], *SECONDARY[task], *(FAIRNESS if sensitive and task is Task.BINARY else ())]
    return list(dict.fromkeys([*map(get, specs), *(for_task(spec, task) for spec in extra)]))


def load_implementations() -> None:
    """Import all that scoring may need, so that nothing is imported while a score is computed."""
    import_module("boosters_eval.metrics.evaluate")
    declared = (info.implementation for info in METRICS.values())
    for module in {name.partition(":")[0] for name in declared if isinstance(name, str)}:
        import_module(f"boosters_eval.metrics.{module}")


def compute_metrics(
    task: Task | str,
    y_true: Any,
    y_pred: Any,
    n_classes: int | None = None,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    sensitive: Any = None,
    quantiles: Iterable[float] = (),
    metrics: Iterable[str | Metric] = (),
    skip_undefined: bool = False,
) -> dict[str, float]:
    """All scores of a task by spec.

    For quantile predictions, pinball and crps score the levels of `quantiles` (or those that they name), point
    metrics score the median. `mae` is left out there when the median was not predicted and nobody asked for it.
    `skip_undefined` leaves out whatever has no score here, instead of refusing it.
    """
    task, extra = as_task(task), tuple(metrics)
    wanted = task_metrics(task, extra, sensitive=sensitive is not None)
    prepare = import_module("boosters_eval.metrics.evaluate")
    y_pred = prepare.as_array("y_pred", y_pred)
    if task is Task.MULTICLASS:
        prepare.check_classes(y_pred, n_classes)
    pick = prepare.quantile_columns(y_pred, tuple(quantiles)) if task is Task.QUANTILE else None
    optional = set(SECONDARY[task]) - {get(spec).spec for spec in extra}
    scores = {}
    for metric in wanted:
        chosen = (metric, y_pred) if pick is None else pick(metric, optional=metric.spec in optional)
        if chosen is not None:
            scored, columns = chosen
            with suppress(*((MetricInputError,) if skip_undefined else ())):
                scores[metric.spec] = scored.compute(columns, y_true, sample_weight, groups=groups, sensitive=sensitive)
    return scores
