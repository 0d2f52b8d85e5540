"""The questions of the RFC to a whole collection: the best of each config, and whether two libraries differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.tables import MEASUREMENTS, compare_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.benchmark.results import BenchmarkResult
    from boosters_eval.stats.significance import Comparison, Method
    from boosters_eval.stats.tables import ComparisonTable

TIE = "tie"
TOO_FEW = "n too small"
NOT_COMPARABLE = "not comparable"


def best_frame(
    results: Iterable[BenchmarkResult], metric: str, *, higher_is_better: bool, alpha: float, method: Method
) -> pd.DataFrame:
    """One row a config: the library that may be called best, or `tie`, `n too small`, `not comparable`."""
    groups = _by_config(results, metric)
    rows = []
    for config, group in groups.items():
        table = compare_table(group, metric, higher_is_better=higher_is_better, alpha=alpha, method=method)
        leader = table.leader
        if leader is None:
            raise AssertionError("only configs with the metric are grouped")
        rivals = [table.get(leader, name) for name in table.tied if name != leader]
        shared = table.shared
        rows.append(
            {
                "config": config,
                "dataset": group[0].dataset_name,
                "booster": group[0].booster_type,
                "metric": metric,
                "best": _label(leader, rivals),
                "leader": leader,
                "mean": shared.means.get(leader, table.summaries[leader].mean),
                "n": shared.n or table.summaries[leader].n,
                "tied": tuple(name for name in table.tied if name != leader),
                "note": " ".join(_notes(table, rivals)),
            }
        )
    return pd.DataFrame(rows)


def significant(
    results: Iterable[BenchmarkResult],
    libraries: tuple[str, str],
    metric: str,
    *,
    higher_is_better: bool,
    alpha: float,
    method: Method,
) -> tuple[bool, float]:
    """Whether two libraries differ in one config, and the p-value; 1.0 where the scores can tell nothing.

    Scores of several configs must not be pooled: twelve data sets with five seeds each taken as sixty
    independent points reject a true null hypothesis in a third of all cases.
    """
    rows = list(results)
    known = {result.library for result in rows}
    for library in libraries:
        if library not in known:
            raise UnknownNameError("library", library, known)
    groups = {
        config: group
        for config, group in _by_config([r for r in rows if r.library in libraries], metric).items()
        if len({result.library for result in group}) == len(set(libraries)) == 2
    }
    if len(groups) != 1:
        found = f"{len(groups)} configs ({', '.join(groups)})" if groups else "none"
        raise StatisticsInputError(
            "The results must be of one config in which two different libraries have the metric; choose it with "
            f"'config' or 'dataset'. Got {found} instead."
        )
    (group,) = groups.values()
    table = compare_table(group, metric, higher_is_better=higher_is_better, alpha=alpha, method=method)
    pair = table.get(*libraries)
    if pair.n == 0:
        raise StatisticsInputError(pair.note)
    p_value = 1.0 if pair.p_value is None else pair.p_value
    return bool(p_value < alpha), p_value


def _label(leader: str, rivals: list[Comparison]) -> str:
    if not rivals:
        return leader
    if any(pair.n == 0 for pair in rivals):
        return NOT_COMPARABLE
    undecided = [pair for pair in rivals if pair.verdict == "inconclusive"]
    return TIE if all(pair.could_reject for pair in undecided) else TOO_FEW


def _notes(table: ComparisonTable, rivals: list[Comparison]) -> list[str]:
    """What limits the answer, each sentence once."""
    if len(table.summaries) == 1:
        return ["The only library."]
    shared = table.shared
    partial = f"Led by the mean over {shared.n} of {shared.total} splits: those that all libraries have."
    none = "No split that all libraries have: each one's mean is over its own."
    limits = [partial if shared.n else none] if shared.n < shared.total else []
    return [*limits, *dict.fromkeys(pair.note for pair in rivals if pair.note)]


def _by_config(results: Iterable[BenchmarkResult], metric: str) -> dict[str, list[BenchmarkResult]]:
    groups: dict[str, list[BenchmarkResult]] = {}
    seen: set[str] = set()
    for result in results:
        seen.update(result.metrics)
        if metric in result.metrics or (metric in MEASUREMENTS and getattr(result, metric) is not None):
            groups.setdefault(result.config_name, []).append(result)
    if not groups:
        raise UnknownNameError("metric", metric, {*seen, *MEASUREMENTS})
    return groups
