"""Metrics: one implementation that scores every library. NumPy is imported when something is computed."""

from boosters_eval.metrics.catalog import METRICS as METRICS
from boosters_eval.metrics.catalog import PRIMARY as PRIMARY
from boosters_eval.metrics.catalog import RESOURCES as RESOURCES
from boosters_eval.metrics.catalog import SECONDARY as SECONDARY
from boosters_eval.metrics.catalog import MetricWarning as MetricWarning
from boosters_eval.metrics.metric import METRIC_DIRECTION as METRIC_DIRECTION
from boosters_eval.metrics.metric import Metric as Metric
from boosters_eval.metrics.metric import best_value as best_value
from boosters_eval.metrics.metric import canonical as canonical
from boosters_eval.metrics.metric import compute_metrics as compute_metrics
from boosters_eval.metrics.metric import declare_metric as declare_metric
from boosters_eval.metrics.metric import direction as direction
from boosters_eval.metrics.metric import find as find
from boosters_eval.metrics.metric import for_task as for_task
from boosters_eval.metrics.metric import get as get
from boosters_eval.metrics.metric import higher_is_better as higher_is_better
from boosters_eval.metrics.metric import is_declared as is_declared
from boosters_eval.metrics.metric import label as label
from boosters_eval.metrics.metric import metric_from_callable as metric_from_callable
from boosters_eval.metrics.metric import pick_metric as pick_metric
from boosters_eval.metrics.metric import primary_metric as primary_metric
from boosters_eval.metrics.metric import register_metric as register_metric
from boosters_eval.metrics.metric import task_metrics as task_metrics
