"""One number of one competitor in two runs: did it change? By the project's own tests, and never across what differs.

This loads scipy, so a listing imports it only where there is something new to compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import find_home
from boosters_eval.core.request import Repeat, SplitKind
from boosters_eval.core.text import count_of
from boosters_eval.metrics import best_value
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.comparisons import resolution_of
from boosters_eval.programs.benchmark.margins import Margins
from boosters_eval.programs.benchmark.runs import load_run
from boosters_eval.programs.history.model import NOT_COMPARABLE
from boosters_eval.stats.inference import StudentT, welch
from boosters_eval.stats.observations import ASSUMED_RATIO, Observation, by_split, coarsest_resolution, split_ratio
from boosters_eval.stats.significance import Criteria, conclude, prepare
from boosters_eval.stats.tables import compare_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boosters_eval.programs.benchmark.evidence import RowEvidence
    from boosters_eval.programs.history.model import MetricSeries, RepeatValue, RunEntry
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.rows import RowScores
    from boosters_eval.stats.significance import Comparison, PendingComparison, TestName

    RowsOf = Callable[[MetricSeries, RepeatValue], RowScores | None]

ALPHA = 0.05
_SHARE = 0.01  # by which shares may differ: more than rounding to whole rows, less than anybody would ask for
_DRIFT = "The two runs were not interleaved: a machine that changed in between looks the same."


@dataclass(frozen=True)
class HistoryComparison:
    """The later run against the earlier one. Every number is after minus before, or after over before."""

    verdict: str  # of the later run: better, worse, equivalent, identical, inconclusive, or not comparable
    how: str  # "paired over 10 shared splits", or why not
    paired: bool = False
    n: int = 0  # shared splits, or the values of the smaller side
    before: float | None = None  # the means that are compared: of the shared splits where there are any
    after: float | None = None
    difference: float | None = None
    percent: float | None = None  # of before
    ratio: float | None = None  # after over before, of times and memory
    interval: tuple[float, float] | None = None  # of the ratio where there is one, else of the difference
    percent_interval: tuple[float, float] | None = None
    alpha: float = ALPHA
    p_value: float | None = None
    note: str = ""


def compare_series(
    before: MetricSeries, after: MetricSeries, *, alpha: float = ALPHA, rows: tuple[RowsOf, RowsOf] | None = None
) -> HistoryComparison:
    """Compare two runs' values of one metric of one competitor on one benchmark; `rows` reads what each run kept."""
    reason = _find_refusal(before, after)
    if reason:
        return _refuse(NOT_COMPARABLE, reason, before, after, alpha)
    if not after.observations:
        lost = ("worse", _no_number(after)) if before.observations else ("inconclusive", "no number in either run")
        return _refuse(*lost, before, after, alpha)
    if not before.observations:
        return _refuse("inconclusive", f"{_no_number(before)} before", before, after, alpha)
    shared = _pair_repeats(before, after)
    unlike = "" if shared else _tell_unlike_splits(before, after)
    if unlike:
        return _refuse(NOT_COMPARABLE, unlike, before, after, alpha)
    if shared:
        found = _compare_paired(before, after, shared, alpha, rows or (None, None))
    else:
        found = _compare_unpaired(before, after, alpha)
    if after.failed <= before.failed:
        same = bool(shared) and all(one.value == other.value for one, other in shared)  # one split can show it
        return replace(found, verdict="identical") if same and found.verdict != NOT_COMPARABLE else found
    # What failed in the later run, and did not before, must not be passed over for the rest.
    cells = f"{count_of(after.failed, 'cell')} failed, {before.failed or 'none'} before."
    verdict = "inconclusive" if found.verdict in ("better", "equivalent") else found.verdict
    return replace(found, verdict=verdict, note=f"{cells} {found.note}".rstrip())


def read_rows(entry: RunEntry, home: Path | None) -> RowsOf:
    """What the rows of a run contributed to its numbers, as far as it kept its predictions."""

    @cache
    def load() -> tuple[RowEvidence | None, dict[tuple[str, str, int, int | None], BenchmarkResult]]:
        kept = find_home(home) / "runs" / Path(entry.source).name / "predictions"
        if entry.origin != "run" or entry.kind != "benchmark" or not kept.is_dir():
            return None, {}
        try:
            found = load_run(entry.reference, home)
        except BoostersEvalError:  # what cannot be read has no rows; its numbers are those of the index
            return None, {}
        return found.evidence, {(one.config_name, one.library, *one.repeat): one for one in found.results}

    def rows_of(series: MetricSeries, one: RepeatValue) -> RowScores | None:
        evidence, results = load()
        result = results.get((series.config, series.target, one.seed, one.fold))
        return None if evidence is None or result is None else evidence.score(result, series.metric)

    return rows_of


def _refuse(verdict: str, reason: str, before: MetricSeries, after: MetricSeries, alpha: float) -> HistoryComparison:
    return HistoryComparison(verdict, reason, before=before.mean, after=after.mean, alpha=alpha)


def _no_number(series: MetricSeries) -> str:
    return f"no number: {count_of(series.failed, 'cell')} failed" if series.failed else "no number"


def _find_refusal(before: MetricSeries, after: MetricSeries) -> str:
    """Why two numbers must not be compared; empty if they may."""
    measured = after.metric in RESOURCES
    directions = {before.higher_is_better, after.higher_is_better}
    reasons = {
        "the data differ": before.data_digest != after.data_digest,
        "which direction is better is not known": None in directions or len(directions) > 1,
        "measured on different machines": measured and before.entry.machine != after.entry.machine,
        "not measured in timing mode on a quiet machine": measured
        and not all(one.fair for one in (*before.observations, *after.observations)),
        "the settings differ": before.settings != after.settings,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _pair_repeats(before: MetricSeries, after: MetricSeries) -> list[tuple[RepeatValue, RepeatValue]]:
    """The repeats of both runs that are known to have the same split, in the order of the later run."""
    known = {(one.seed, one.fold): one for one in before.observations if one.split_digest}
    pairs = ((known.get((one.seed, one.fold)), one) for one in after.observations)
    return [(first, second) for first, second in pairs if first and first.split_digest == second.split_digest]


def _tell_unlike_splits(before: MetricSeries, after: MetricSeries) -> str:
    """How the runs split the rows differently; empty if only by their seeds."""
    dealt, shares = [], []
    for side in (before, after):
        dealt.append({one.part is not None for one in side.observations})
        sizes = [(one.n_valid, one.n_train) for one in side.observations if one.split == "random"]
        known = [valid / (valid + train) for valid, train in sizes if valid and train]
        if len(known) == len(side.observations):
            shares.append(math.fsum(known) / len(known))
    if dealt[0].isdisjoint(dealt[1]):
        return "one run has balanced splits, the other one random ones"
    differ = len(shares) == 2 and abs(shares[0] - shares[1]) > _SHARE
    return "the share of validation rows differs" if differ else ""


def _compare_paired(
    before: MetricSeries,
    after: MetricSeries,
    shared: Sequence[tuple[RepeatValue, RepeatValue]],
    alpha: float,
    rows: tuple[RowsOf | None, RowsOf | None],
) -> HistoryComparison:
    metric = after.metric
    sides = zip((before, after), zip(*shared, strict=True), rows, strict=True)
    first, second = (
        observe_repeats(metric, values, None if kept is None else partial(kept, series))
        for series, values, kept in sides
    )
    criteria = _make_criteria(after, "rows", alpha)
    found = compare_sides(second, first, metric=metric, criteria=criteria, as_ratio=metric in RESOURCES)
    n_splits = len(by_split(second))
    how = "on the same split" if n_splits == 1 else f"on the same {n_splits} splits"
    alone = len(before.observations) + len(after.observations) - 2 * len(shared)
    extra = f"{count_of(alone, 'result')} on other splits left out." if alone else ""
    return _tell(found, how, extra, metric, paired=True)


def _compare_unpaired(before: MetricSeries, after: MetricSeries, alpha: float) -> HistoryComparison:
    """Welch's test, widened for the rows that splits share, on splits that are not the same or not known to be."""
    known = all(one.split_digest for one in (*before.observations, *after.observations))
    how = f"on different splits: {'none is shared' if known else 'they are not recorded'}"
    values = [one.value for side in (after, before) for one in side.observations]
    least = 0.0 if after.metric in RESOURCES else -math.inf
    if not all(math.isfinite(value) and value > least for value in values):
        return _refuse("inconclusive", "a value is not a finite number", before, after, alpha)
    if min(len(before.observations), len(after.observations)) < 2:
        return replace(_refuse("inconclusive", how, before, after, alpha), n=1, note="One split only.")
    if any(one.split != "random" for one in (*before.observations, *after.observations)):
        note = "Welch's test takes splits for independent, which windows of time and groups are not."
        return replace(_refuse("inconclusive", how, before, after, alpha), note=note)
    criteria = _make_criteria(after, "welch", alpha)
    return _tell(conclude([_prepare_welch(before, after, criteria)])[0], how, "", after.metric, paired=False)


def _make_criteria(series: MetricSeries, test: TestName, alpha: float) -> Criteria:
    rope = Margins().find(series.metric).size
    return Criteria(bool(series.higher_is_better), test, alpha, rope, best=best_value(series.metric))


def _prepare_welch(before: MetricSeries, after: MetricSeries, criteria: Criteria) -> PendingComparison:
    sides = [observe_repeats(after.metric, one.observations) for one in (after, before)]
    left, right = ([one.value for one in side.values()] for side in sides)
    if after.metric in RESOURCES:
        logs = prepare(list(map(math.log, left)), list(map(math.log, right)), criteria, test_train_ratio=None)
        ratio = math.exp(logs.blank.difference or 0.0)
        mean_a, mean_b = math.fsum(left) / len(left), math.fsum(right) / len(right)
        blank = replace(logs.blank, mean_a=mean_a, mean_b=mean_b, difference=mean_a - mean_b)
        blank = replace(blank, ratio=ratio, percent=100 * (ratio - 1))
        return replace(logs, blank=blank, margin=math.log1p(criteria.rope))
    observations = [one for side in sides for one in side.values()]
    resolution = coarsest_resolution(observations)
    plain = prepare(left, right, criteria, test_train_ratio=None, resolution=resolution)
    if not isinstance(plain.fitted, StudentT):
        return plain
    overlap = split_ratio(one._replace(part=None) for one in observations) or ASSUMED_RATIO
    fitted = welch(np.asarray(left), np.asarray(right), resolution=resolution or 0.0, overlap=overlap)
    return replace(plain, fitted=fitted)


def observe_repeats(
    metric: str, values: Sequence[RepeatValue], rows: Callable[[RepeatValue], RowScores | None] | None = None
) -> dict[Repeat, Observation]:
    """The values of one side of a comparison, with what a test must know of their splits, and rows where they are."""
    predicted = metric not in RESOURCES
    resolutions = {rows: resolution_of(metric, rows) for rows in {one.n_valid for one in values}}
    return {
        Repeat(one.seed, one.fold): Observation(
            one.value,
            one.split_digest,
            one.n_train,
            one.n_valid,
            predictions_digest=one.predictions_digest if predicted else None,
            resolution=resolutions[one.n_valid],
            kind=cast("SplitKind", one.split),
            part=one.part,
            n_train_groups=one.n_train_groups,
            n_valid_groups=one.n_valid_groups,
            rows=rows(one) if rows is not None and predicted else None,
        )
        for one in values
    }


def _tell(found: Comparison, how: str, extra: str, metric: str, *, paired: bool) -> HistoryComparison:
    drift = _DRIFT if metric in RESOURCES and found.verdict in ("better", "worse") else ""
    same = ("verdict", "n", "difference", "percent", "ratio", "interval", "percent_interval", "alpha", "p_value")
    return HistoryComparison(
        **{name: getattr(found, name) for name in same},
        how=how,
        paired=paired,
        before=found.mean_b,
        after=found.mean_a,
        note=" ".join(filter(None, (found.note, extra, drift))),
    )
