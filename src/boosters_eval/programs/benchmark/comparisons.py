"""Results as the statistics see them: the values of one metric by repeat, the best of each config, trivial rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnknownNameError, pick
from boosters_eval.metrics import best_value, find
from boosters_eval.metrics.catalog import OF_MACHINE, RESOURCES
from boosters_eval.programs.benchmark.margins import Margins
from boosters_eval.programs.benchmark.records import RULES
from boosters_eval.reports.numbers import number
from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.observations import Observation, Side
from boosters_eval.stats.rows import find_overlap
from boosters_eval.stats.tables import compare_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from boosters_eval.metrics.catalog import Resolution
    from boosters_eval.programs.benchmark.evidence import RowEvidence
    from boosters_eval.reports.tables import PairVerdict
    from boosters_eval.runners.result import BenchmarkResult, SplitFacts
    from boosters_eval.stats.significance import Comparison, TestName
    from boosters_eval.stats.tables import ComparisonTable

TIE = "tie"
TOO_FEW = "n too small"
NOT_COMPARABLE = "not comparable"
NO_BETTER = "none better than trivial"
_SAME = 1e-5  # of the rule's score: a smaller advantage may be rounding, and helps nobody


def value_of(result: BenchmarkResult, metric: str) -> float | None:
    if metric in RESOURCES:  # times and sizes are fields of a result, and are compared by their ratio
        measured: float | None = getattr(result, metric)
        return measured
    return result.metrics.get(metric)


def observe(results: Iterable[BenchmarkResult], metric: str, evidence: RowEvidence | None = None) -> Side:
    """One side of a comparison: the results of one row of a table."""
    kind, resource = _resolution_kind(metric), metric in RESOURCES

    def observation(result: BenchmarkResult) -> Observation | None:
        value = value_of(result, metric)
        if value is None:
            return None
        return Observation(
            value,
            result.split_digest,
            result.n_train,
            result.n_valid,
            result.data_digest,
            predictions_digest=None if resource else result.predictions_digest,
            resolution=_step(kind, result.n_valid),
            machine=result.machine if metric in OF_MACHINE else None,
            part=result.dealt,
            rows=None if evidence is None or resource else evidence.score(result, metric),
            **split_fields(result.split),
        )

    return Side((result.repeat, observation(result)) for result in results)


def are_disjoint(results: Iterable[BenchmarkResult]) -> bool:
    """Whether the test sets of one benchmark are parts of one deal, or of whole ones, which only luck joins."""
    parts = [(one.dealt, one.n_train, one.n_valid) for one in results]
    known = [part for part, train, valid in parts if part is not None and train and valid]
    if not known or len(known) < len(parts):
        return False
    folds = math.fsum(1 + (train or 0) / (valid or 1) for _, train, valid in parts) / len(parts)
    return find_overlap(known, folds) is not None


def resolution_of(metric: str, n_valid: int | None) -> float | None:
    """The smallest step between two values on that many rows; 0 for a continuous metric, None if it is not known."""
    return _step(_resolution_kind(metric), n_valid)


def _resolution_kind(metric: str) -> Resolution:
    if metric in RESOURCES:
        return "continuous"
    known = find(metric)
    return "unknown" if known is None else known.resolution


def _step(kind: Resolution, n_valid: int | None) -> float | None:
    if kind == "continuous":
        return 0.0
    return 1 / n_valid if kind == "rows" and n_valid else None


def split_fields(split: SplitFacts | None) -> dict[str, Any]:
    return {} if split is None else split.model_dump(include={"kind", "n_train_groups", "n_valid_groups"})


def compare_rows(
    rows: Mapping[str, Iterable[BenchmarkResult]] | Mapping[str, Side],
    metric: str,
    *,
    higher_is_better: bool,
    test: TestName = "rows",
    alpha: float,
    margins: Margins | None = None,
    evidence: RowEvidence | None = None,
) -> ComparisonTable:
    """All pairs of one table, given as {name: results} or as observed; the test by rows needs the evidence."""
    margin = (margins or Margins()).find(metric)
    by_rows = evidence if test == "rows" else None
    return compare_table(
        {name: row if isinstance(row, Side) else observe(row, metric, by_rows) for name, row in rows.items()},
        metric=metric,
        higher_is_better=higher_is_better,
        as_ratio=metric in RESOURCES,
        test=test,
        alpha=alpha,
        best=best_value(metric),
        **({"rope": margin.size} if margin.is_share else {"margin": margin.size}),
    )


def name_test(asked: TestName, pairs: Iterable[Comparison | PairVerdict]) -> TestName:
    """The test that decided on scores: the one that was asked for, or that of splits where no rows could be tested."""
    used = {pair.test for pair in pairs if pair.n and pair.ratio is None}
    return "corrected" if used == {"corrected"} else asked


@dataclass(frozen=True)
class TrivialScore:
    """A trivial rule, and its mean in one metric."""

    rule: str
    mean: float

    @property
    def text(self) -> str:
        return f"{RULES.get(self.rule, (self.rule,))[0]} ({number(self.mean)})"


def find_unbeaten(results: Iterable[BenchmarkResult], metric: str, *, higher_is_better: bool) -> TrivialScore | None:
    """The best trivial rule and its mean, if the results of one row are not better than it on the splits of both.

    None if they are better, or if nothing is known of a rule in this metric. What is not a metric has no rule.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        for rule, scores in (result.trivial or {}).items():
            if metric in scores and metric in result.metrics:
                pairs.setdefault(rule, []).append((result.metrics[metric], scores[metric]))
    best: TrivialScore | None = None
    for rule, both in pairs.items():
        ours, theirs = (math.fsum(values) / len(both) for values in zip(*both, strict=True))
        if is_better(ours, theirs, metric, higher_is_better=higher_is_better):
            continue
        if best is None or (theirs > best.mean if higher_is_better else theirs < best.mean):
            best = TrivialScore(rule, theirs)
    return best


def is_better(ours: float, rule: float, metric: str, *, higher_is_better: bool) -> bool:
    """Whether a mean is better than that of a trivial rule on the same splits, by more than rounding."""
    known = find(metric)
    scale = abs((known.high if known else None) or 0.0)  # of a score that may well be 0, such as R²
    gained = ours - rule if higher_is_better else rule - ours
    return gained > _SAME * max(abs(rule), scale)  # a mean that is not a number is not better than anything


def choose_best(
    results: Iterable[BenchmarkResult],
    metric: str,
    *,
    higher_is_better: bool,
    alpha: float,
    test: TestName,
    evidence: RowEvidence | None = None,
    margins: Margins | None = None,
) -> pd.DataFrame:
    """One row per config: the library that may be called best, or `tie`, `n too small`, `not comparable`.

    A leader that is not better than a trivial rule is not called best, whatever the others are.
    """
    import pandas as pd  # noqa: PLC0415 (slow to import)

    rows = []
    for config, group in _group_by_config(results, metric).items():
        libraries = _group_by_library(group)
        how: Any = {
            "higher_is_better": higher_is_better,
            "alpha": alpha,
            "test": test,
            "evidence": evidence,
            "margins": margins,
        }
        table = compare_rows(libraries, metric, **how)
        first = group[0]
        row: dict[str, Any] = {"config": config, "dataset": first.dataset_name}
        row |= {"booster": first.booster_type, "metric": metric}
        leader = table.leader
        if leader is None:  # every mean is over values of several machines
            notes = dict.fromkeys(pair.note for pair in table.pairs.values() if pair.note)
            row |= {"best": NOT_COMPARABLE, "leader": "", "mean": math.nan, "n": 0, "tied": ()}
        else:
            rule = find_unbeaten(libraries[leader], metric, higher_is_better=higher_is_better)
            tied = tuple(name for name in table.tied if name != leader)
            rivals = [table.get(leader, name) for name in tied]
            notes = dict.fromkeys(_limits(table, rivals))
            if rule is not None:
                notes[f"{leader} is not better than {rule.text}."] = None
            row |= {
                "best": _label(leader, rivals) if rule is None else NO_BETTER,
                "leader": leader,
                "mean": table.shared.means.get(leader, table.summaries[leader].mean),
                "n": table.shared.n or table.summaries[leader].n,
                "tied": tied,
            }
        rows.append({**row, "note": " ".join(notes)})
    return pd.DataFrame(rows)


def _label(leader: str, rivals: list[Comparison]) -> str:
    if not rivals:
        return leader
    if any(pair.n == 0 for pair in rivals):
        return NOT_COMPARABLE
    undecided = [pair for pair in rivals if pair.verdict == "inconclusive"]
    return TIE if all(pair.could_reject for pair in undecided) else TOO_FEW


def _limits(table: ComparisonTable, rivals: list[Comparison]) -> list[str]:
    if len(table.summaries) == 1:
        return ["The only library."]
    shared = table.shared
    partial = f"The mean is over the {shared.n} of {shared.total} splits that all libraries have."
    none = "There is no split that all libraries have: each mean is over the library's own splits."
    limits = [partial if shared.n else none] if shared.n < shared.total else []
    return [*limits, *(pair.note for pair in rivals if pair.note)]


def decide_difference(
    results: Iterable[BenchmarkResult],
    libraries: tuple[str, str],
    metric: str,
    *,
    higher_is_better: bool,
    alpha: float,
    test: TestName,
    evidence: RowEvidence | None = None,
) -> tuple[bool, float]:
    """Whether two libraries differ in one config, and the p-value; 1.0 if the scores decide nothing.

    Scores of several configs must not be pooled: twelve data sets with five seeds each taken as sixty
    independent points reject a true null hypothesis in a third of all cases.
    """
    rows = list(results)
    known = {result.library for result in rows}
    libraries = a, b = (pick("library", libraries[0], known), pick("library", libraries[1], known))
    groups = {
        config: group
        for config, group in _group_by_config([r for r in rows if r.library in libraries], metric).items()
        if len({result.library for result in group}) == len(set(libraries)) == 2
    }
    if len(groups) != 1:
        found = f"{len(groups)} configs ({', '.join(groups)})" if groups else "none"
        raise StatisticsInputError(
            "The results must be those of one config in which two different libraries have the metric; choose it "
            f"with 'config' or 'dataset'. Got {found} instead."
        )
    (group,) = groups.values()
    how: Any = {"higher_is_better": higher_is_better, "alpha": alpha, "test": test, "evidence": evidence}
    table = compare_rows(_group_by_library(group), metric, **how)
    pair = table.get(a, b)
    if pair.n == 0:
        raise StatisticsInputError(pair.note)
    p_value = 1.0 if pair.p_value is None else pair.p_value
    return bool(p_value < alpha), p_value


def _group_by_config(results: Iterable[BenchmarkResult], metric: str) -> dict[str, list[BenchmarkResult]]:
    groups: dict[str, list[BenchmarkResult]] = {}
    seen: set[str] = set()
    for result in results:
        seen.update(result.metrics)
        if value_of(result, metric) is not None:
            groups.setdefault(result.config_name, []).append(result)
    if not groups:
        raise UnknownNameError("metric", metric, {*seen, *RESOURCES})
    return groups


def _group_by_library(results: Iterable[BenchmarkResult]) -> dict[str, list[BenchmarkResult]]:
    rows: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        rows.setdefault(result.library, []).append(result)
    return rows
