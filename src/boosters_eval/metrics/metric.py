"""Metric: a name with its parameters, to and from a spec string such as 'ndcg@10,gain=linear'."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, MetricInputError, UnknownNameError, match, pick, require, suggest
from boosters_eval.metrics.catalog import (
    FAIRNESS,
    METRICS,
    PRIMARY,
    RESOURCES,
    SECONDARY,
    MetricInfo,
    as_task,
    resolve,
)
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boosters_eval.metrics.catalog import Direction, Param, Resolution, Value

_NAME = re.compile(r"[^\s@,=]+")


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric with its parameters; two are equal when they compute the same."""

    info: MetricInfo
    params: tuple[tuple[str, Value], ...] = ()
    target: str = ""  # of several, the one whose score it is: "rmse[height]"; empty: their mean, or there is one

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def tasks(self) -> frozenset[Task]:
        return self.info.tasks

    @property
    def higher_is_better(self) -> bool:
        """The direction, which a parameter may reverse (a fairness ratio is best at 1)."""
        return self.info.higher_is_better ^ (self.info.reversed_by in self.params)

    @property
    def direction(self) -> Direction:
        return "higher_better" if self.higher_is_better else "lower_better"

    @property
    def low(self) -> float | None:
        """What no value can be below; None where there is no such bound, or none is known."""
        return self.info.low

    @property
    def high(self) -> float | None:
        """What no value can be above; None where there is no such bound, or none is known."""
        return self.info.high

    @property
    def best(self) -> float | None:
        """The value without any error, from which errors are measured; None where it is unknown."""
        return self.high if self.higher_is_better else self.low

    @property
    def resolution(self) -> Resolution:
        return self.info.resolution

    @property
    def label(self) -> str:
        """The metric as a person reads it, with its parameters: "NDCG@10"."""
        of = f" of {self.target}" if self.target else ""
        return (self.info.label or self.name) + self._base.removeprefix(self.name) + of

    @property
    def spec(self) -> str:
        """The canonical string: parameters in declared order, defaults left out; `get` reads it back."""
        return of_target(self._base, self.target) if self.target else self._base

    @property
    def whole(self) -> Metric:
        """The metric of all targets."""
        return replace(self, target="")

    @property
    def _base(self) -> str:
        items = [
            _text(value) if index == 0 else f"{name}={_text(value)}"
            for index, (name, value) in enumerate(self.params)
            if value != self.info.params[index].default
        ]
        return f"{self.name}@{','.join(items)}" if items else self.name

    def __str__(self) -> str:
        return self.spec

    def __repr__(self) -> str:
        return f"get({self.spec!r})"

    def compute(
        self, predictions: Any, labels: Any, weights: Any = None, *, groups: Any = None, sensitive: Any = None
    ) -> float:
        values = self.per_output(predictions, labels, weights, groups=groups, sensitive=sensitive)
        return mean_over_outputs(values)

    def per_output(
        self, predictions: Any, labels: Any, weights: Any = None, *, groups: Any = None, sensitive: Any = None
    ) -> list[float]:
        """The score of each output, or of each quantile level; of one element for all other metrics."""
        if self.target:
            raise ConfigError(f"The metric '{self}' is a part of '{self._base}', which computes it for each target.")
        from boosters_eval.metrics.rows import evaluate  # noqa: PLC0415 (numpy is for computing, not for naming)

        return evaluate(self, predictions, labels, weights, groups, sensitive)


def mean_over_outputs(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)  # the sum alone might overflow


def get(name: str | Metric = "rmse", **params: Any) -> Metric:
    """A metric by its name and parameters, or by a spec: "f1" with threshold=0.3 is "f1@0.3"; RMSE by default."""
    if isinstance(name, Metric):
        if params:
            raise ConfigError(f"The parameters of the metric '{name}' are already given.")
        return name
    require("name", name, str, "the name of a metric, such as rmse or f1@0.3")
    base, opened, target = name.partition("[")
    if opened and target.endswith("]") and len(target) > 1 and resolve(name) is None:
        return replace(get(base, **params), target=target[:-1])
    bare, at, rest = name.strip().partition("@")
    info = resolve(bare)
    if info is None:
        names = [each for known in METRICS.values() for each in (known.name, *known.aliases)]
        raise UnknownNameError("metric", bare, names)
    given = _parse(info, rest.split(",")) if at else {}
    for key, value in params.items():
        _declared(info, key)
        if key in given:
            raise ConfigError(f"The '{key}' parameter of {info.name} is given twice: in '{name}' and by keyword.")
        given[key] = value
    values = {param.name: given.get(param.name, param.default) for param in info.params}
    return Metric(info, tuple((param.name, _checked(info, param, values[param.name])) for param in info.params))


def of_target(spec: str, target: str) -> str:
    """The spec of a metric of one target among several."""
    return f"{spec}[{target}]"


def find(spec: str) -> Metric | None:
    """The metric of a spec, or None where this process does not know it: the name may come from anyone's file."""
    bare = spec.strip().partition("@")[0].partition("[")[0]
    if resolve(bare) is None and resolve(spec) is None:  # an error would look for a name that is meant
        return None
    try:
        return get(spec)
    except ConfigError:
        return None


def canonical(name: str) -> str:
    """The name under which results have a metric: "log_loss" is "logloss"; what is not known here stays as it is."""
    metric = None if name in RESOURCES else find(name)
    return name if metric is None else metric.spec


def pick_metric(kind: str, name: str, known: Iterable[str]) -> str:
    """The name of a metric, or of something else among these, that is meant; any other is refused."""
    names = list(known)
    return match(name, names) or match(canonical(name), names) or pick(kind, name, names)


def label(spec: str) -> str:
    """A metric as a person reads it; a name that is not known here stays as it is."""
    metric = find(spec)
    return spec if metric is None else metric.label


def for_task(spec: str | Metric, task: Task | str) -> Metric:
    """The metric, refused when it cannot score this task."""
    metric, task = get(spec), as_task(task)
    if metric.target:
        raise ConfigError(f"The metric '{metric}' cannot be asked for: '{metric.name}' comes with that of each target.")
    if task not in metric.tasks:
        fitting = ", ".join(info.name for info in METRICS.values() if task in info.tasks)
        raise ConfigError(f"The metric '{metric}' does not fit the task '{task.value}'. Those that do: {fitting}.")
    return metric


def direction(name: str) -> Direction:
    """The direction of any number in a result: a metric's spec, a time or a size."""
    return "lower_better" if name in RESOURCES else get(name).direction


def higher_is_better(name: str) -> bool:
    """Whether more is better for a metric's spec, a time or a size."""
    return direction(name) == "higher_better"


def best_value(name: str) -> float:
    """The value without any error, from which errors are measured; 0 for what has no bound, a time or a size."""
    known = find(name)
    return (known.best or 0.0) if known else 0.0


def metric_from_callable(
    fn: Callable[..., Any],
    *,
    higher_is_better: bool,
    name: str | None = None,
    tasks: Iterable[Task | str] = tuple(Task),
    summary: str = "",
) -> Metric:
    """A user's metric: fn(predictions, labels, weights), or with fewer of these arguments.

    Parameters named groups and sensitive are passed too. The value must be a finite number. With `fn.by_rows = True`
    it must be one for each row, and the metric is their weighted mean: then rows can show which differences are real.
    """
    if not callable(fn):
        raise ConfigError(f"The 'fn' parameter of a metric must be callable. Got {fn!r} instead.")
    name = getattr(fn, "__name__", type(fn).__name__) if name is None else name
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"The 'name' parameter of a metric must be free of spaces, '@', ',' and '='. Got {name!r} instead."
        )
    if type(higher_is_better) is not bool:
        raise ConfigError(
            f"The 'higher_is_better' parameter of {name} must be True or False. Got {higher_is_better!r} instead."
        )
    lines = (summary or getattr(fn, "__doc__", None) or "a user's metric").strip().splitlines()
    made = MetricInfo(
        name,
        lines[0],
        higher_is_better,
        frozenset(map(as_task, tasks)),
        implementation=fn,
        by_rows="mean" if getattr(fn, "by_rows", False) else None,
    )
    return Metric(made)


def register_metric(
    name: str,
    fn: Callable[..., Any],
    *,
    higher_is_better: bool,
    tasks: Iterable[Task | str] = tuple(Task),
    summary: str = "",
    replace: bool = False,
) -> Metric:
    """Make a user's metric known by name; what is built in is never replaced."""
    metric = metric_from_callable(fn, higher_is_better=higher_is_better, name=name, tasks=tasks, summary=summary)
    known = resolve(name)
    if name in RESOURCES or (known is not None and known.built_in):  # built in, or its alias
        raise ConfigError(f"The metric '{name}' cannot be registered: the name already means something else.")
    METRICS.register(name, metric.info, replace=replace)
    return metric


def declare_metric(name: str, *, higher_is_better: bool) -> None:
    """Make the direction of a user's metric known where only its values are, such as a file of results."""
    if resolve(name) is None:
        register_metric(name, _elsewhere, higher_is_better=higher_is_better, summary="a user's metric, from a file")


def is_declared(metric: Metric) -> bool:
    """Whether only its direction is known here, so that it cannot be computed."""
    return metric.info.implementation is _elsewhere


def _elsewhere() -> float:
    raise ConfigError("This metric is only known by its values: its function is not here.")


def _parse(info: MetricInfo, items: list[str]) -> dict[str, Any]:
    """The text after the '@': bare values belong to the first parameter, others are key=value."""
    given: dict[str, Any] = {}
    for item in (each.strip() for each in items):
        key, equals, text = item.partition("=")
        if not equals:
            if not info.params:
                raise ConfigError(f"The metric '{info.name}' takes no parameters. Got '@{item}' instead.")
            key, text = info.params[0].name, item
        param = _declared(info, key.strip())
        if param.kind == "levels":
            given[param.name] = (*given.get(param.name, ()), _number(text))
        elif param.name in given:
            raise ConfigError(f"The '{param.name}' parameter of {info.name} is given twice.")
        else:
            given[param.name] = text.strip() if param.kind == "choice" else _number(text)
    return given


def _declared(info: MetricInfo, key: str) -> Param:
    params = {param.name: param for param in info.params}
    if key in params:
        return params[key]
    known = f" It takes {', '.join(params) or 'none'}."
    raise ConfigError(f"The metric '{info.name}' has no parameter '{key}'.{suggest(key, params)}{known}")


def _number(text: str) -> float | int | str:
    """A number if it is one; `_checked` refuses the rest by name."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def _checked(info: MetricInfo, param: Param, value: Any) -> Value:
    if value is None and param.default is None:
        return None
    checked: Value = None
    if param.kind == "choice":
        checked, must = (value if value in param.choices else None), f"one of {', '.join(param.choices)}"
    elif param.kind == "levels":
        checked, must = _levels(value), "one or more different numbers between 0 and 1"
    elif param.kind == "int":
        must = f"an integer of at least {param.low}" + (f" and at most {param.high}" if param.high else "")
        number = _real(value)
        low, high = param.low or 0, param.high or math.inf
        if number is not None and number == math.floor(number) and low <= number <= high:
            checked = int(number)
    else:
        must = "a finite number" if param.low is None else "a finite number greater than 0"
        number = _real(value)
        checked = number if number is not None and (param.low is None or number > param.low) else None
    if checked is None:
        raise ConfigError(f"The '{param.name}' parameter of {info.name} must be {must}. Got {value!r} instead.")
    return checked


def _real(value: Any) -> float | None:
    """A finite float of any numeric type, NumPy's included; neither text nor a truth value."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _levels(value: Any) -> tuple[float, ...] | None:
    try:
        levels = tuple(_real(each) for each in (value if hasattr(value, "__iter__") else (value,)))
    except TypeError:
        return None
    valid = tuple(each for each in levels if each is not None and 0 < each < 1)
    return valid if len(valid) == len(levels) == len(set(valid)) else None


def _text(value: Value) -> str:
    """The shortest text that reads back as the same value."""
    if isinstance(value, tuple):
        return ",".join(_text(each) for each in value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


class _Directions(dict[str, "Direction"]):
    """The RFC's table; a key that is not in it (a spec with parameters, a user's metric) is looked up."""

    def __missing__(self, key: str) -> Direction:
        return direction(key)


METRIC_DIRECTION = _Directions(
    {info.name: info.direction for info in METRICS.values()} | {name: direction(name) for name in RESOURCES}
)


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
    import_module("boosters_eval.metrics.rows")
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
    targets: Sequence[str] = (),
    skip_undefined: bool = False,
) -> dict[str, float]:
    """All scores of a task by spec.

    For quantile predictions, pinball and crps score the levels of `quantiles` (or those that they name), point
    metrics score the median. `mae` is left out there when the median was not predicted and nobody asked for it.
    The score of several `targets` is the mean of theirs, and each has one of its own too, such as "rmse[height]".
    `skip_undefined` leaves out whatever has no score here, instead of refusing it.
    """
    task, extra = as_task(task), tuple(metrics)
    wanted = task_metrics(task, extra, sensitive=sensitive is not None)
    from boosters_eval.metrics.rows import as_array, check_classes, quantile_columns  # noqa: PLC0415 (as above)

    y_pred = as_array("y_pred", y_pred)
    if task is Task.MULTICLASS:
        check_classes(y_pred, n_classes)
    pick = quantile_columns(y_pred, tuple(quantiles)) if task is Task.QUANTILE else None
    optional = set(SECONDARY[task]) - {get(spec).spec for spec in extra}
    scores: dict[str, float] = {}
    parts: dict[str, float] = {}
    for metric in wanted:
        chosen = (metric, y_pred) if pick is None else pick(metric, optional=metric.spec in optional)
        if chosen is not None:
            scored, columns = chosen
            with suppress(*((MetricInputError,) if skip_undefined else ())):
                found = scored.per_output(columns, y_true, sample_weight, groups=groups, sensitive=sensitive)
                scores[metric.spec] = mean_over_outputs(found)
                if len(targets) == len(found) > 1:
                    parts |= {of_target(metric.spec, one): value for one, value in zip(targets, found, strict=True)}
    return scores | parts
