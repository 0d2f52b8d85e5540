"""What a metric's name says of its unit, and how far from the paper's value is still a reproduction."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple

from boosters_eval import metrics
from boosters_eval.core.errors import ConfigError

if TYPE_CHECKING:
    from boosters_eval.programs.paper.specification import PaperTable

Dimension = Literal["share", "time", "bytes", "count"]


class PrintedUnit(NamedTuple):
    """A unit of a dimension, as a multiple of its base: 1, second, byte."""

    name: str
    dimension: Dimension | None = None  # None: a unit that this program does not know, which is only equal to itself
    factor: Decimal = Decimal(1)


PERCENT = PrintedUnit("%", "share", Decimal("0.01"))
FRACTION = PrintedUnit("fraction", "share")
MEGABYTE = PrintedUnit("MB", "bytes", Decimal(10**6))
ONE = PrintedUnit("1", "count")

_NAMES: dict[str, PrintedUnit] = {
    **dict.fromkeys(("%", "percent", "pct", "points", "percentage points", "pp"), PERCENT),
    **dict.fromkeys(("fraction", "share"), FRACTION),
}
_TIMES = {
    "ns": ("ns", "nanoseconds", "1e-9"),
    "us": ("µs", "microseconds", "1e-6"),
    "ms": ("millisecond", "milliseconds", "0.001"),
    "s": ("sec", "second", "seconds", "secs", "1"),
    "min": ("mins", "minute", "minutes", "60"),
    "h": ("hr", "hrs", "hour", "hours", "3600"),
}
for _unit, (*_aliases, _size) in _TIMES.items():
    _NAMES |= dict.fromkeys((_unit, *_aliases), PrintedUnit(_unit, "time", Decimal(_size)))
for _power, _prefix in enumerate("KMGT", start=1):
    _NAMES[f"{_prefix}B".lower()] = PrintedUnit(f"{_prefix}B", "bytes", Decimal(1000**_power))
    _NAMES[f"{_prefix}iB".lower()] = PrintedUnit(f"{_prefix}iB", "bytes", Decimal(1024**_power))
_COUNTS = {
    "1": ONE,
    **dict.fromkeys(("k", "thousand"), PrintedUnit("K", "count", Decimal(10**3))),
    **dict.fromkeys(("m", "million", "millions"), PrintedUnit("M", "count", Decimal(10**6))),
    **dict.fromkeys(("b", "billion", "billions"), PrintedUnit("B", "count", Decimal(10**9))),
}


def parse_unit(text: str, of: str | None = None) -> PrintedUnit:
    """A unit by its name. An M is a million in a `count`, a minute in a `time`, and elsewhere it may be a metre."""
    name = " ".join(text.split()).lower()
    if of == "count":
        return _COUNTS.get(name) or _NAMES.get(name) or PrintedUnit(text.strip())
    return _NAMES["min"] if of == "time" and name == "m" else _NAMES.get(name) or PrintedUnit(text.strip())


def _find_unit(metric: str, of: str | None = None, *, suffix: bool = True) -> PrintedUnit | None:
    """The unit that a metric's name ends with: "Params (M)", "Latency [ms]" or, as a `suffix`, "train_time_s"."""
    match = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$|(%)$", metric)
    if match is None and suffix and not re.search(r"/|(?:^|[_\s])per[_\s]", metric):  # a rate is in no unit of time
        match = re.search(r"[_\s]([A-Za-zµ]+)$", metric)
    unit = match and parse_unit(next(part for part in match.groups() if part), of)
    return unit if unit and unit.dimension else None


def _split_words(metric: str) -> tuple[str, ...]:
    """The words of a name in lower case: those of "trainTime_ms" are train, time and ms."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"(?i)(?<=top)[-_ ](?=\d)", "", metric))
    return tuple(re.findall(r"[a-z]+\d*", apart.lower()))


def find_metric(name: str) -> metrics.Metric | None:
    """The metric of this program that a paper calls "Log loss", "ROC-AUC" or "accuracy (%)"."""
    return metrics.find(_plain(re.sub(r"[(\[%].*$", "", name)))


def canonicalize(name: str) -> str:
    """A name without unit, case and punctuation. What is no unit stays: "F1 (macro)" is not "F1 (micro)"."""
    match = re.search(r"\s*(?:[(\[]([^()\[\]]*)[)\]]|%)\s*$", name)
    unit = " ".join((match[1] or "%").split()).lower() if match else ""
    plain = _plain(name[: match.start()] if match and unit in {*_NAMES, *_COUNTS} else name)
    found = metrics.find(plain)
    return plain if found is None else found.spec


def _plain(name: str) -> str:
    bare = name.strip().lower().replace("²", "2").replace("^2", "2")
    return re.sub(r"[^a-z0-9@.,=]+", "_", bare).strip("_")


MetricKind = Literal["accuracy", "perplexity", "speed", "memory", "parameters", "other"]


class Guideline(NamedTuple):
    """The default of a kind. Its absolute tolerance means nothing without its unit."""

    relative: Decimal
    absolute: Decimal | None = None
    unit: PrintedUnit | None = None


GUIDELINES: dict[MetricKind, Guideline] = {
    "accuracy": Guideline(Decimal("0.01"), Decimal("0.5"), PERCENT),  # percentage points
    "perplexity": Guideline(Decimal("0.03"), Decimal("0.5")),
    "speed": Guideline(Decimal("0.10")),
    "memory": Guideline(Decimal("0.05"), Decimal(100), MEGABYTE),
    "parameters": Guideline(Decimal("0.001"), Decimal(1000), ONE),
    "other": Guideline(Decimal("0.05")),
}
_WORDS: dict[MetricKind, str] = {
    "perplexity": "perplexity ppl",
    "parameters": "params param parameters",
    "memory": "memory mem vram ram rss",
    "speed": "time latency throughput speed speedup runtime duration fps qps sec second seconds hours minutes",
    "accuracy": "accuracy acc auc auroc auprc f1 precision recall sensitivity specificity em map ap mrr ndcg bleu "
    "rouge iou dice retrieval top1 top5",
}
_SUFFIXED = ("speed", "memory", "parameters")  # whose names end in units: train_time_s, peak_memory_mb
_ERRORS = frozenset({"error", "loss", "logloss", "mse", "rmse", "mae", "mape", "smape", "nll", "regret"})
# What begins an attribute, which follows the noun.
_ATTRIBUTE = re.compile(r"[(\[@]|[\s_](?:after|at|for|in|of|on|per|to|with)[\s_]", re.IGNORECASE)
_BY_UNIT: dict[str | None, MetricKind] = {"share": "accuracy", "time": "speed", "bytes": "memory"}
_LARGEST_SHARE = Decimal("0.1")  # as an absolute tolerance of fractions; beyond it, percentage points were meant


class Tolerance(NamedTuple):
    """Within either of the two is within tolerance."""

    absolute: Decimal | None  # in the unit of the paper's value
    relative: Decimal | None  # of the paper's value, as a fraction
    source: str


def classify_metric(metric: str, stated: str | None = None) -> tuple[MetricKind, PrintedUnit | None]:
    """What a metric measures and in which unit, by the words of its name and the unit that is stated."""
    kind = _classify_words(metric)
    of = {"parameters": "count", "speed": "time"}.get(kind or "")
    unit = parse_unit(stated, of) if stated else _find_unit(metric, of, suffix=kind in _SUFFIXED)
    if kind is not None:
        return kind, unit
    known = find_metric(metric)
    if known is not None:
        return ("accuracy" if known.higher_is_better and is_share(metric) else "other"), unit
    return _BY_UNIT.get(unit.dimension if unit else None, "other"), unit


def _classify_words(metric: str) -> MetricKind | None:
    """By the last telling word: "memory recall" is an accuracy, "recall time" a speed, "Time-series MSE" neither."""
    head, rest = (*_ATTRIBUTE.split(metric, maxsplit=1), "")[:2]
    cost = True  # whether it may be what something costs: not if it is an error
    for word in (*reversed(_split_words(head)), *reversed(_split_words(rest))):
        cost = cost and word not in _ERRORS
        kind = next((kind for kind, names in _WORDS.items() if word in names.split()), None)
        if kind is not None and (cost or kind not in _SUFFIXED):
            return kind
    return None


def is_share(metric: str) -> bool:
    """Whether the metric's values are at most 1 by definition, so that one beyond 1 can only be in percent.

    Brier's score reaches 2 over several classes, but only where a model is worse than knowing nothing.
    """
    known = find_metric(metric)
    if known is not None:
        return known.high in (1, 2) and known.low is not None and known.low >= -1
    return _classify_words(metric) == "accuracy"


def find_tolerance(table: PaperTable, metric: str, kind: MetricKind, unit: PrintedUnit | None) -> Tolerance:
    """The table's own tolerance of a metric, else that of its kind. Stating either one replaces both."""
    own, relative = table.tolerance.get(metric), table.tolerance.get(f"{metric}_relative")
    if own is None and relative is None:
        return _guideline(kind, unit)
    if relative is not None and relative > 1:
        raise ConfigError(
            f"The tolerance '{metric}_relative' of '{table.id}' must be a fraction, such as 0.02 for 2 %. "
            f"Got {relative:g} instead."
        )
    absolute = None if own is None else Decimal(repr(own))
    if absolute is not None and unit == FRACTION and absolute > _LARGEST_SHARE:
        raise ConfigError(
            f"The tolerance '{metric}' of '{table.id}' must be in the unit of its values, which are fractions: "
            f"half a percentage point is 0.005. Got {own:g} instead."
        )
    return Tolerance(absolute, None if relative is None else Decimal(repr(relative)), "of the table")


def _guideline(kind: MetricKind, unit: PrintedUnit | None) -> Tolerance:
    given = GUIDELINES[kind]
    source = {"other": "default", "parameters": "default of parameter counts"}.get(kind, f"default of {kind} metrics")
    absolute = given.absolute
    if absolute is not None and given.unit is not None:
        same = unit is not None and unit.dimension == given.unit.dimension
        absolute = absolute * given.unit.factor / unit.factor if unit is not None and same else None
    return Tolerance(absolute, given.relative, source)
