"""Units of printed numbers: 87.4 % is 0.874, and 1.2 GB is 1200 MB. What is not known is never converted."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal, NamedTuple

from boosters_eval import metrics

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
    name: PrintedUnit(letter, "count", Decimal(10**power))
    for power, letter, names in (
        (0, "1", ("1",)),
        (3, "K", ("k", "thousand")),
        (6, "M", ("m", "million", "millions")),
        (9, "B", ("b", "billion", "billions")),
    )
    for name in names
}


def parse_unit(text: str, of: str | None = None) -> PrintedUnit:
    """A unit by its name. An M is a million in a `count`, a minute in a `time`, and elsewhere it may be a metre."""
    name = " ".join(text.split()).lower()
    if of == "count":
        return _COUNTS.get(name) or _NAMES.get(name) or PrintedUnit(text.strip())
    return _NAMES["min"] if of == "time" and name == "m" else _NAMES.get(name) or PrintedUnit(text.strip())


def unit_in_name(metric: str, of: str | None = None, *, suffix: bool = True) -> PrintedUnit | None:
    """The unit that a metric's name ends with: "Params (M)", "Latency [ms]" or, as a `suffix`, "train_time_s"."""
    match = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$|(%)$", metric)
    if match is None and suffix and not re.search(r"/|(?:^|[_\s])per[_\s]", metric):  # a rate is in no unit of time
        match = re.search(r"[_\s]([A-Za-zµ]+)$", metric)
    unit = match and parse_unit(next(part for part in match.groups() if part), of)
    return unit if unit and unit.dimension else None


def words(metric: str) -> tuple[str, ...]:
    """The words of a name in lower case: those of "trainTime_ms" are train, time and ms."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"(?i)(?<=top)[-_ ](?=\d)", "", metric))
    return tuple(re.findall(r"[a-z]+\d*", apart.lower()))


def known_metric(name: str) -> metrics.Metric | None:
    """The metric of this program that a paper calls "Log loss", "ROC-AUC" or "accuracy (%)"."""
    return metrics.find(_plain(re.sub(r"[(\[%].*$", "", name)))


def canonical(name: str) -> str:
    """A name without unit, case and punctuation. What is no unit stays: "F1 (macro)" is not "F1 (micro)"."""
    match = re.search(r"\s*(?:[(\[]([^()\[\]]*)[)\]]|%)\s*$", name)
    unit = " ".join((match[1] or "%").split()).lower() if match else ""
    plain = _plain(name[: match.start()] if match and unit in {*_NAMES, *_COUNTS} else name)
    found = metrics.find(plain)
    return plain if found is None else found.spec


def _plain(name: str) -> str:
    bare = name.strip().lower().replace("²", "2").replace("^2", "2")
    return re.sub(r"[^a-z0-9@.,=]+", "_", bare).strip("_")
