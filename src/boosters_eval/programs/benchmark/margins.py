"""How large a difference must be to matter, as people write it: `1%` of the error, or `auc_roc=0.002`."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

from boosters_eval.core.errors import ConfigError, UnknownNameError, match
from boosters_eval.core.request import Accepted
from boosters_eval.core.terms import the

_NUMBER = re.compile(r"([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)?", re.IGNORECASE)
_WORDS = "a share of the error such as 1%, or a metric's own such as auc_roc=0.002 or rmse=2%"


class Margin(NamedTuple):
    """What two models may differ by and still be equivalent."""

    size: float
    is_share: bool = True  # of the error; else in the metric's unit

    @property
    def in_words(self) -> str:
        return f"{100 * self.size:g} %" if self.is_share else f"{self.size:g}"


USUAL = Margin(0.01)


@dataclass(frozen=True)
class Margins:
    """The margin of every metric."""

    words: tuple[str, ...] = ()  # as they were given
    usual: Margin = USUAL
    named: Mapping[str, Margin] = field(default_factory=dict)

    @classmethod
    def of(cls, words: tuple[str, ...] | None) -> Margins:
        """The margins that the words say; metrics that nobody knows are refused."""
        from boosters_eval.metrics import canonical, find  # noqa: PLC0415 (a request only reads the words)
        from boosters_eval.metrics.catalog import METRICS, RESOURCES  # noqa: PLC0415

        usual, named = USUAL, {}
        for word in words or ():
            metric, margin = _parse(word)
            if not metric:
                usual = margin
                continue
            resource = match(metric, RESOURCES)
            if resource is None and find(metric) is None:
                raise UnknownNameError("metric", metric, {*METRICS, *RESOURCES})
            if resource is not None and not margin.is_share:
                raise ConfigError(f"{the('margin')} of {resource} must be a share such as 5%. Got {word!r} instead.")
            named[resource or canonical(metric)] = margin
        return cls(tuple(words or ()), usual, named)

    @property
    def spelled(self) -> tuple[str, ...]:
        """The words that ask for these margins."""
        said = any("=" not in word for word in self.words)
        return self.words if said else (f"{100 * self.usual.size:g}%", *self.words)

    def tell(self, metrics: Collection[str] = ()) -> str:
        """The margins in words; of these metrics, also what a share means that is one of a root."""
        from boosters_eval.metrics import best_value, find, label  # noqa: PLC0415 (as above)
        from boosters_eval.reports.numbers import name_error  # noqa: PLC0415

        own = [f"{label(metric)} within {margin.in_words}" for metric, margin in self.named.items()]
        shares = {metric: self.find(metric) for metric in metrics if (known := find(metric)) and known.info.squared}
        roots = [
            f"of {name_error(label(metric), best_value(metric))}, a squared error, {margin.in_words}"
            for metric, margin in shares.items()
            if margin.is_share
        ]
        return "; ".join([f"within {self.usual.in_words} of the error", *own, *roots])

    def find(self, metric: str) -> Margin:
        """The margin of a metric: its own, that of the metric it is a form of (ndcg of ndcg@10), or the usual one.

        A share of a squared error is meant of its root: 1 % of RMSE is 2.01 % of 1 - R², which says the same of models.
        """
        from boosters_eval.metrics import find  # noqa: PLC0415 (as above)

        known = find(metric)
        names = (metric,) if known is None else (metric, known.whole.spec, known.name)
        margin = next((self.named[name] for name in names if name in self.named), self.usual)
        squared = known is not None and known.info.squared and margin.is_share
        return Margin((1 + margin.size) ** 2 - 1) if squared else margin


def _read_word(word: Any) -> str:
    if not isinstance(word, str):
        raise ValueError(f"not {_WORDS}")  # noqa: TRY004 (the request makes the sentence)
    _parse(word)
    return word.replace(" ", "")


def read_margins(given: Any) -> tuple[str, ...]:
    """The words of what Python gives: a share, a word or several, or a dict of metrics."""
    if isinstance(given, Mapping):
        return tuple(_read_word(f"{name}={size}") for name, size in given.items())
    if isinstance(given, Real) and not isinstance(given, bool):
        return (_read_word(str(given)),)
    return tuple(map(_read_word, given if isinstance(given, (list, tuple)) else [given]))


def check_margins(given: Any) -> tuple[str, ...]:
    """The same where no request asks for them."""
    try:
        return read_margins(given)
    except ValueError:
        raise ConfigError(f"{the('margin')} must be {_WORDS}. Got {given!r} instead.") from None


def _parse(word: str) -> tuple[str, Margin]:
    """The metric, or nothing, and its margin. Without a metric, 0.01 is a share too; 1 would be ambiguous."""
    metric, _, text = word.replace(" ", "").rpartition("=")
    size = float(text.removesuffix("%")) if _NUMBER.fullmatch(text.removesuffix("%")) else math.nan
    is_share = not metric or text.endswith("%")
    size /= 100 if text.endswith("%") else 1
    if not 0 <= size < (1 if is_share else math.inf) or word.startswith("="):
        raise ValueError(f"not {_WORDS}")
    return metric, Margin(size, is_share)


MARGIN = Accepted(_WORDS, read_margins, _read_word, "SHARE|METRIC=SHARE|METRIC=VALUE")
