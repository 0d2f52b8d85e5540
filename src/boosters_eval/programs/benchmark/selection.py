"""Questions about a whole collection: the best of each config, whether two libraries differ, ranks over data sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.observations import compare_rows, value_of
from boosters_eval.programs.benchmark.unbeaten import unbeaten
from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.ranks import rank_splits

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.ranks import Ranking
    from boosters_eval.stats.significance import Comparison, TestName
    from boosters_eval.stats.tables import ComparisonTable

TIE = "tie"
TOO_FEW = "n too small"
NOT_COMPARABLE = "not comparable"
NO_BETTER = "none better than trivial"


def best_frame(
    results: Iterable[BenchmarkResult], metric: str, *, higher_is_better: bool, alpha: float, test: TestName
) -> pd.DataFrame:
    """One row per config: the library that may be called best, or `tie`, `n too small`, `not comparable`.

    A leader that is not better than a trivial rule is not called best, whatever the others are.
    """
    groups = _by_config(results, metric)
    rows = []
    for config, group in groups.items():
        table = compare_rows(_by_library(group), metric, higher_is_better=higher_is_better, alpha=alpha, test=test)
        leader = table.leader
        if leader is None:  # every mean is over values of several machines
            rows.append({**_identity(config, group, metric), **_nobody(table)})
            continue
        rule = unbeaten(_by_library(group)[leader], metric, higher_is_better=higher_is_better)
        rivals = [table.get(leader, name) for name in table.tied if name != leader]
        shared = table.shared
        rows.append(
            {
                **_identity(config, group, metric),
                "best": _label(leader, rivals) if rule is None else NO_BETTER,
                "leader": leader,
                "mean": shared.means.get(leader, table.summaries[leader].mean),
                "n": shared.n or table.summaries[leader].n,
                "tied": tuple(name for name in table.tied if name != leader),
                "note": " ".join(
                    [*_notes(table, rivals), *([f"{leader} is not better than {rule.text}."] if rule else [])]
                ),
            }
        )
    return pd.DataFrame(rows)


def _identity(config: str, group: Sequence[BenchmarkResult], metric: str) -> dict[str, Any]:
    return {"config": config, "dataset": group[0].dataset_name, "booster": group[0].booster_type, "metric": metric}


def _nobody(table: ComparisonTable) -> dict[str, Any]:
    notes = dict.fromkeys(pair.note for pair in table.pairs.values() if pair.note)
    return {"best": NOT_COMPARABLE, "leader": "", "mean": math.nan, "n": 0, "tied": (), "note": " ".join(notes)}


def significant(
    results: Iterable[BenchmarkResult],
    libraries: tuple[str, str],
    metric: str,
    *,
    higher_is_better: bool,
    alpha: float,
    test: TestName,
) -> tuple[bool, float]:
    """Whether two libraries differ in one config, and the p-value; 1.0 if the scores decide nothing.

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
            "The results must be those of one config in which two different libraries have the metric; choose it "
            f"with 'config' or 'dataset'. Got {found} instead."
        )
    (group,) = groups.values()
    table = compare_rows(_by_library(group), metric, higher_is_better=higher_is_better, alpha=alpha, test=test)
    pair = table.get(*libraries)
    if pair.n == 0:
        raise StatisticsInputError(pair.note)
    p_value = 1.0 if pair.p_value is None else pair.p_value
    return bool(p_value < alpha), p_value


def rank_results(
    results: Iterable[BenchmarkResult],
    *,
    direction: Callable[[str], bool],
    metric: str | None = None,
    alpha: float = 0.05,
) -> Ranking:
    """Rank by each config's primary metric, or by one metric; `direction` says whether more of it is better.

    Several configs of one data set are not independent evidence: filter by booster or variant first.
    """
    values: dict[str, dict[str, dict[Hashable, float]]] = {}
    better: dict[str, bool] = {}
    configs: dict[str, str] = {}
    for result in results:
        name = metric or result.primary_metric
        if name is None or name not in result.metrics:
            continue
        dataset = result.dataset_name
        if configs.setdefault(dataset, result.config_name) != result.config_name:
            raise StatisticsInputError(
                f"The 'results' parameter of a ranking must have one config for each data set. "
                f"Got {configs[dataset]} and {result.config_name} for {dataset} instead."
            )
        better[dataset] = direction(name)
        values.setdefault(dataset, {}).setdefault(result.library, {})[result.repeat] = result.metrics[name]
    return rank_splits(values, higher_is_better=better, alpha=alpha)


def _label(leader: str, rivals: list[Comparison]) -> str:
    if not rivals:
        return leader
    if any(pair.n == 0 for pair in rivals):
        return NOT_COMPARABLE
    undecided = [pair for pair in rivals if pair.verdict == "inconclusive"]
    return TIE if all(pair.could_reject for pair in undecided) else TOO_FEW


def _notes(table: ComparisonTable, rivals: list[Comparison]) -> list[str]:
    """The limitations of the answer, each sentence once."""
    if len(table.summaries) == 1:
        return ["The only library."]
    shared = table.shared
    partial = f"The mean is over the {shared.n} of {shared.total} splits that all libraries have."
    none = "There is no split that all libraries have: each mean is over the library's own splits."
    limits = [partial if shared.n else none] if shared.n < shared.total else []
    return [*limits, *dict.fromkeys(pair.note for pair in rivals if pair.note)]


def _by_config(results: Iterable[BenchmarkResult], metric: str) -> dict[str, list[BenchmarkResult]]:
    groups: dict[str, list[BenchmarkResult]] = {}
    seen: set[str] = set()
    for result in results:
        seen.update(result.metrics)
        if value_of(result, metric) is not None:
            groups.setdefault(result.config_name, []).append(result)
    if not groups:
        raise UnknownNameError("metric", metric, {*seen, *RESOURCES})
    return groups


def _by_library(results: Iterable[BenchmarkResult]) -> dict[str, list[BenchmarkResult]]:
    rows: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        rows.setdefault(result.library, []).append(result)
    return rows
