"""All pairs of one table: results paired by seed and fold, splits checked, one correction over the table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.stats.inference import HUGE, StatisticsInputError, mean_and_spread, paired
from boosters_eval.stats.significance import (
    DEFAULT_ALPHA,
    DEFAULT_ROPE,
    Comparison,
    Method,
    Prepared,
    Settings,
    conclude,
    prepare,
    prepare_times,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from boosters_eval.benchmark.results import BenchmarkResult

    Cell = tuple[int, int | None]

# Compared by ratio; they are fields of a result, not metrics.
MEASUREMENTS = (
    "train_time_s",
    "build_time_s",
    "fit_time_s",
    "predict_time_s",
    "cpu_time_s",
    "peak_memory_mb",
    "model_size_mb",
)
ASSUMED_RATIO = 0.25  # n_test / n_train of the default split, for results that do not say


@dataclass(frozen=True, slots=True)
class Summary:
    """One library's scores over its splits."""

    mean: float  # NaN when a score is no finite number
    std: float | None  # ddof 1; nothing for one split
    n: int
    interval: tuple[float, float] | None  # of the mean, splits taken as independent: the RFC's


@dataclass(frozen=True, slots=True)
class Shared:
    """Means over the splits that every library has: a library that fails where it is hard must not gain by it."""

    means: Mapping[str, float]  # empty when no split is shared; NaN when a score is no finite number
    n: int
    total: int  # splits that any library has


def shared_means(scores: Mapping[str, Mapping[Hashable, float]]) -> Shared:
    """Means that can be compared, from {library: {split: score}}."""
    splits = list(dict.fromkeys(split for row in scores.values() for split in row))
    common = [split for split in splits if all(split in row for row in scores.values())]
    means = {name: _mean([row[split] for split in common]) for name, row in scores.items()} if common else {}
    return Shared(means, len(common), len(splits))


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if all(abs(value) < HUGE for value in values) else math.nan


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """All libraries of one config against each other in one metric."""

    metric: str
    higher_is_better: bool
    method: Method
    alpha: float
    summaries: Mapping[str, Summary]
    shared: Shared
    pairs: Mapping[tuple[str, str], Comparison]

    def get(self, a: str, b: str) -> Comparison:
        """The comparison as `a` sees it."""
        return self.pairs[a, b] if (a, b) in self.pairs else self.pairs[b, a].flipped()

    @property
    def leaders(self) -> list[str]:
        """Those with the best mean over the shared splits (over their own where none is), significant or not."""
        means = self.shared.means or {name: summary.mean for name, summary in self.summaries.items()}
        signed = {name: self._signed(mean) for name, mean in means.items()}
        best = min(signed.values(), default=0.0)
        return [name for name, value in signed.items() if value == best]

    @property
    def leader(self) -> str | None:
        """The first of the leaders."""
        return next(iter(self.leaders), None)

    @property
    def winner(self) -> str | None:
        """The library that may be highlighted as best, or none."""
        leader = self.leader
        others = [name for name in self.summaries if name != leader]
        if leader is None or not others:
            return None
        wins = self._rfc_wins if self.method == "welch" else self._wins
        return leader if all(wins(leader, other) for other in others) else None

    @property
    def tied(self) -> list[str]:
        """The libraries that are not worse than the leader as far as is known, the leader included."""
        leader = self.leader
        wins = self._rfc_wins if self.method == "welch" else self._wins
        return [name for name in self.summaries if leader and (name == leader or not wins(leader, name))]

    def _signed(self, mean: float) -> float:
        """The mean, less being better and NaN being worst."""
        if math.isnan(mean):
            return math.inf
        return -mean if self.higher_is_better else mean

    def _wins(self, leader: str, other: str) -> bool:
        return self.get(leader, other).verdict == "better"

    def _rfc_wins(self, leader: str, other: str) -> bool:
        """RFC-0015: best mean, intervals apart, Welch's p below alpha."""
        pair = self.get(leader, other)
        first, second = self.summaries[leader].interval, self.summaries[other].interval
        if first is None or second is None or pair.p_value is None:
            return False
        apart = first[1] < second[0] or second[1] < first[0]
        return apart and pair.p_value < self.alpha


def compare_table(
    results: Iterable[BenchmarkResult],
    metric: str,
    *,
    higher_is_better: bool,
    method: Method = "corrected",
    alpha: float = DEFAULT_ALPHA,
    rope: float = DEFAULT_ROPE,
) -> ComparisonTable:
    """Compare every two libraries of one config. What cannot be compared says why and gets no p-value.

    Times and memory are compared by their ratio whatever the method, except for Welch's, the RFC's.
    """
    settings = Settings(higher_is_better, method, alpha, rope)
    rows: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        rows.setdefault(result.library, []).append(result)
    configs = {result.config_name for group in rows.values() for result in group}
    if len(configs) > 1:
        raise StatisticsInputError(
            f"The 'results' parameter of compare_table must be of one config. Got {', '.join(sorted(configs))} instead."
        )
    having = {name: group for name, group in rows.items() if any(_value(r, metric) is not None for r in group)}
    if rows and not having:
        known = {name for group in rows.values() for result in group for name in result.metrics}
        raise UnknownNameError("metric", metric, {*known, *MEASUREMENTS})
    names = list(combinations(having, 2))
    sides = {name: _Side(_by_cell(group, metric), _fault(group, metric)) for name, group in having.items()}
    ready = [_prepare_pair(sides[a], sides[b], metric, settings) for a, b in names]
    scores: dict[str, dict[Hashable, float]] = {
        name: {cell: _number(result, metric) for cell, result in side.cells.items()} for name, side in sides.items()
    }
    return ComparisonTable(
        metric=metric,
        higher_is_better=higher_is_better,
        method=method,
        alpha=alpha,
        summaries={name: _summary(group, metric, alpha) for name, group in having.items()},
        shared=shared_means(scores),
        pairs=dict(zip(names, conclude(ready), strict=True)),
    )


def winner(
    results: Iterable[BenchmarkResult],
    metric: str,
    *,
    higher_is_better: bool,
    method: Method = "corrected",
    alpha: float = DEFAULT_ALPHA,
    rope: float = DEFAULT_ROPE,
) -> str | None:
    """The library that may be highlighted as best in one table, or none."""
    table = compare_table(results, metric, higher_is_better=higher_is_better, method=method, alpha=alpha, rope=rope)
    return table.winner


@dataclass(frozen=True, slots=True)
class _Side:
    """One library of a table: its results by seed and fold, and why they cannot be compared at all."""

    cells: dict[Cell, BenchmarkResult]
    fault: str


def _prepare_pair(first: _Side, second: _Side, metric: str, settings: Settings) -> Prepared:
    method = settings.method
    a, b = first.cells, second.cells
    common = [cell for cell in a if cell in b]
    reason = first.fault or second.fault or _mismatch(a, b, common)
    if not reason and not common and method != "welch":
        reason = "Unmatched seeds: the two libraries share no split."
    if reason:
        return settings.refusal(reason)
    alone = len(a) + len(b) - 2 * len(common)
    notes = [f"{alone} result(s) without a partner on the same split are left out."] if alone else []
    if method == "welch":
        left, right = [_number(r, metric) for r in a.values()], [_number(r, metric) for r in b.values()]
        return prepare(left, right, settings, test_train_ratio=None)
    pairs = [(a[cell], b[cell]) for cell in common]
    if metric in MEASUREMENTS:
        ready = prepare_times(*_columns(pairs, metric), replace(settings, method="paired"))
        return ready.noted(*notes)
    ratio = _test_train_ratio([first for first, _ in pairs])
    if ratio is None and method == "corrected":
        notes.append("The sizes of the splits are unknown: 80 % training and 20 % test rows are assumed.")
    left, right = _distinct_splits(pairs, metric) if method == "corrected" else _columns(pairs, metric)
    if len(left) < len(pairs):
        notes.append(f"{len(pairs)} seeds share {len(left)} distinct split(s): scores on the same split are averaged.")
    ready = prepare(left, right, settings, test_train_ratio=ratio or ASSUMED_RATIO)
    return ready.noted(*notes)


def _fault(group: list[BenchmarkResult], metric: str) -> str:
    """Why a library cannot be compared with any other, in a sentence; empty when it can."""
    cells = [(result.seed, result.fold) for result in group]
    if len(set(cells)) < len(cells):
        return f"{group[0].library} has more than one result for the same seed and fold."
    for result in group:
        value = _value(result, metric)
        if value is not None and not abs(value) < HUGE:
            return f"{metric} of {result.library} is not a finite number for seed {result.seed}."
        if value is not None and value <= 0 and metric in MEASUREMENTS:
            return f"{metric} of {result.library} is not positive for seed {result.seed}."
    return ""


def _mismatch(a: dict[Cell, BenchmarkResult], b: dict[Cell, BenchmarkResult], common: list[Cell]) -> str:
    """Why two libraries cannot be compared with each other, in a sentence; empty when they can."""
    if len({result.data_digest for result in (*a.values(), *b.values()) if result.data_digest}) > 1:
        return "The results were made on different data."
    for cell in common:
        first, second = a[cell].split_digest, b[cell].split_digest
        if first and second and first != second:
            return f"The splits differ for seed {cell[0]}: the results cannot be compared."
    return ""


def _by_cell(group: list[BenchmarkResult], metric: str) -> dict[Cell, BenchmarkResult]:
    return {(result.seed, result.fold): result for result in group if _value(result, metric) is not None}


def _columns(pairs: list[tuple[BenchmarkResult, BenchmarkResult]], metric: str) -> tuple[list[float], list[float]]:
    return [_number(first, metric) for first, _ in pairs], [_number(second, metric) for _, second in pairs]


def _distinct_splits(
    pairs: list[tuple[BenchmarkResult, BenchmarkResult]], metric: str
) -> tuple[list[float], list[float]]:
    """Seeds that fall on the same split (an official one, say) are one observation of it, not several."""
    groups: dict[object, list[tuple[BenchmarkResult, BenchmarkResult]]] = {}
    for pair in pairs:
        groups.setdefault(pair[0].split_digest or (pair[0].seed, pair[0].fold), []).append(pair)
    if len(groups) == len(pairs):
        return _columns(pairs, metric)
    averaged = [tuple(float(np.mean(side)) for side in _columns(group, metric)) for group in groups.values()]
    return [a for a, _ in averaged], [b for _, b in averaged]


def _test_train_ratio(results: list[BenchmarkResult]) -> float | None:
    ratios = [r.n_valid / r.n_train for r in results if r.n_valid and r.n_train]
    return math.fsum(ratios) / len(ratios) if ratios and len(ratios) == len(results) else None


def _value(result: BenchmarkResult, metric: str) -> float | None:
    if metric in MEASUREMENTS:
        measured: float | None = getattr(result, metric)
        return measured
    return result.metrics.get(metric)


def _number(result: BenchmarkResult, metric: str) -> float:
    value = _value(result, metric)
    if value is None:
        raise AssertionError("results without the metric were taken out before")
    return value


def _summary(group: list[BenchmarkResult], metric: str, alpha: float) -> Summary:
    values = np.asarray([_number(result, metric) for result in _by_cell(group, metric).values()])
    if not (np.abs(values) < HUGE).all():
        return Summary(math.nan, None, len(values), None)
    if len(values) < 2:
        return Summary(float(values.mean()), None, 1, None)
    mean, std = mean_and_spread(values)
    interval = paired(values).interval(alpha) if std > 0 else (mean, mean)
    return Summary(mean, std, len(values), interval)
