"""Which results are not better than a trivial rule, which takes no skill. Nothing scientific is imported here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.metrics import find
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.runners.result import BenchmarkResult

# What each rule is called in a sentence, and, in fewer letters, in a table.
RULES = {
    "mean": ("predicting the mean", "predict the mean"),
    "median": ("predicting the median", "predict the median"),
    "quantiles": ("predicting the training quantiles", "predict quantiles"),
    "priors": ("predicting the class priors", "predict the priors"),
    "order": ("keeping the query's order", "keep the order"),
}
_SAME = 1e-5  # of the rule's score: an advantage below it may be one of rounding, and is none to anybody


@dataclass(frozen=True)
class TrivialScore:
    """A trivial rule, and its mean in one metric."""

    rule: str
    mean: float

    @property
    def text(self) -> str:
        """The rule and its score, for a sentence."""
        return f"{RULES.get(self.rule, (self.rule,))[0]} ({number(self.mean)})"


def unbeaten(results: Iterable[BenchmarkResult], metric: str, *, higher_is_better: bool) -> TrivialScore | None:
    """The best trivial rule and its mean, if the results of one row are not better than it on the splits of both.

    None if they are better, or if nothing is known of a rule in this metric. What is not a metric has no rule.
    """
    worst: TrivialScore | None = None
    for rule, pairs in _paired(results, metric).items():
        ours, theirs = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
        if is_better(ours, theirs, metric, higher_is_better=higher_is_better):
            continue
        if worst is None or (theirs > worst.mean if higher_is_better else theirs < worst.mean):
            worst = TrivialScore(rule, theirs)
    return worst


def is_better(ours: float, rule: float, metric: str, *, higher_is_better: bool) -> bool:
    """Whether a mean is better than that of a trivial rule on the same splits, by more than rounding."""
    known = find(metric)
    scale = abs((known.high if known else None) or 0.0)  # of a score that may well be 0, such as R²
    gained = ours - rule if higher_is_better else rule - ours
    return gained > _SAME * max(abs(rule), scale)  # a mean that is not a number is not better than anything


def _paired(results: Iterable[BenchmarkResult], metric: str) -> Mapping[str, list[tuple[float, float]]]:
    """For each rule, the row's score and the rule's, on every split that has both."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        for rule, scores in (result.trivial or {}).items():
            if metric in scores and metric in result.metrics:
                pairs.setdefault(rule, []).append((result.metrics[metric], scores[metric]))
    return pairs
