"""One number of one competitor in two runs: did it change? By the project's own tests, and never across what differs.

The verdicts against the run before are decided when a run enters the index, so that a listing only reads them. All
this loads scipy, so the index imports it when there is something to compare.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.request import Repeat, SplitKind
from boosters_eval.core.text import count_of
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.comparisons import resolution_of
from boosters_eval.programs.history import store
from boosters_eval.programs.history.model import (
    JOINED,
    NOT_COMPARABLE,
    OPEN,
    ROWS_AT_A_TIME,
    RUN,
    SERIES,
    SeriesRow,
    encode_verdicts,
    load_shared,
    read_entry,
)
from boosters_eval.stats.inference import StudentT, welch
from boosters_eval.stats.observations import ASSUMED_RATIO, Observation, by_split, coarsest_resolution, split_ratio
from boosters_eval.stats.significance import Criteria, conclude, judge_scores, judge_times, prepare
from boosters_eval.stats.tables import compare_sides

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from boosters_eval.programs.history.model import MetricSeries, RepeatValue, RunEntry
    from boosters_eval.stats.significance import Comparison, PendingComparison

    SeriesGetter = Callable[[SeriesRow, str], MetricSeries | None]

ALPHA = 0.05
_SHARE = 0.01  # by which shares may differ: more than rounding to whole rows, less than anybody would ask for
_DRIFT = "The two runs were not interleaved: a machine that changed in between looks the same."
_Pair = tuple[SeriesRow, SeriesRow]  # the later run, and the one before


@dataclass(frozen=True)
class HistoryComparison:
    """The later run against the earlier one. Every number is after minus before, or after over before."""

    verdict: str  # of the later run: better, worse, equivalent, inconclusive, or not comparable
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


def compare_series(before: MetricSeries, after: MetricSeries, *, alpha: float = ALPHA) -> HistoryComparison:
    """Compare two runs' values of one metric of one competitor on one benchmark."""
    reason = _find_refusal(before, after)
    if reason:
        return _refuse(NOT_COMPARABLE, reason, before, after, alpha)
    if not after.observations:
        lost = ("worse", _no_number(after)) if before.observations else ("inconclusive", "no number in either run")
        return _refuse(*lost, before, after, alpha)
    if not before.observations:
        return _refuse("inconclusive", f"{_no_number(before)} before", before, after, alpha)
    shared = _pair_repeats(before, after)
    if not shared and _have_other_shares(before, after):
        return _refuse(NOT_COMPARABLE, "the share of validation rows differs", before, after, alpha)
    found = _compare_paired(before, after, shared, alpha) if shared else _compare_unpaired(before, after, alpha)
    if after.failed <= before.failed:
        return found
    # What failed in the later run, and did not before, must not be passed over for the rest.
    cells = f"{count_of(after.failed, 'cell')} failed, {before.failed or 'none'} before."
    verdict = "inconclusive" if found.verdict in ("better", "equivalent") else found.verdict
    return replace(found, verdict=verdict, note=f"{cells} {found.note}".rstrip())


def _refuse(verdict: str, reason: str, before: MetricSeries, after: MetricSeries, alpha: float) -> HistoryComparison:
    means = [one.mean if one.observations else None for one in (before, after)]
    return HistoryComparison(verdict, reason, before=means[0], after=means[1], alpha=alpha)


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


def _have_other_shares(before: MetricSeries, after: MetricSeries) -> bool:
    """Whether random splits of the same data leave more rows for training in one run than in the other."""
    shares = []
    for side in (before, after):
        sizes = [(one.n_valid, one.n_train) for one in side.observations if one.split == "random"]
        known = [valid / (valid + train) for valid, train in sizes if valid and train]
        if not known or len(known) < len(side.observations):
            return False
        shares.append(math.fsum(known) / len(known))
    return abs(shares[0] - shares[1]) > _SHARE


def _compare_paired(
    before: MetricSeries, after: MetricSeries, shared: Sequence[tuple[RepeatValue, RepeatValue]], alpha: float
) -> HistoryComparison:
    metric = after.metric
    first, second = (observe_repeats(metric, [pair[index] for pair in shared]) for index in (0, 1))
    criteria = Criteria(bool(after.higher_is_better), alpha=alpha)
    found = compare_sides(second, first, metric=metric, criteria=criteria, as_ratio=metric in RESOURCES)
    how = f"paired over {count_of(len(by_split(second)), 'shared split')}"
    alone = len(before.observations) + len(after.observations) - 2 * len(shared)
    extra = f"{count_of(alone, 'result')} on other splits left out." if alone else ""
    return _tell(found, how, extra, metric, paired=True)


def _compare_unpaired(before: MetricSeries, after: MetricSeries, alpha: float) -> HistoryComparison:
    """Welch's test, widened for the rows that splits share, on splits that are not the same or not known to be."""
    known = all(one.split_digest for one in (*before.observations, *after.observations))
    how = f"not paired: {'no split is shared' if known else 'the splits are not recorded'}"
    values = [one.value for side in (after, before) for one in side.observations]
    least = 0.0 if after.metric in RESOURCES else -math.inf
    if not all(math.isfinite(value) and value > least for value in values):
        return _refuse("inconclusive", "a value is not a finite number", before, after, alpha)
    if min(len(before.observations), len(after.observations)) < 2:
        return replace(_refuse("inconclusive", how, before, after, alpha), n=1, note="One split only.")
    if any(one.split != "random" for one in (*before.observations, *after.observations)):
        note = "Welch's test takes splits for independent, which windows of time and groups are not."
        return replace(_refuse("inconclusive", how, before, after, alpha), note=note)
    criteria = Criteria(bool(after.higher_is_better), "welch", alpha)
    return _tell(conclude([_prepare_welch(before, after, criteria)])[0], how, "", after.metric, paired=False)


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
    overlap = split_ratio(observations) or ASSUMED_RATIO
    fitted = welch(np.asarray(left), np.asarray(right), resolution=resolution or 0.0, overlap=overlap)
    return replace(plain, fitted=fitted)


def observe_repeats(metric: str, values: Sequence[RepeatValue]) -> dict[Repeat, Observation]:
    """The values of one side of a comparison, with what a test must know of their splits."""
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
            n_train_groups=one.n_train_groups,
            n_valid_groups=one.n_valid_groups,
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


class _Splits(NamedTuple):
    """What the repeats of a row, which many rows share, mean for a test."""

    ratio: float
    n_valid: tuple[int | None, ...]


def judge_alike(pairs: Sequence[_Pair]) -> dict[tuple[int, int], dict[str, str]]:
    """Judge many rows against the rows before them at once: those with the same repeats, as most nightly runs have.

    `compare_series` judges everything unusual; the verdicts are the same, by line and run and then metric, a hundred
    times as fast.
    """
    groups: dict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for row, before in pairs:
        if row.names == before.names and row.repeats == before.repeats and row.failed <= before.failed:
            groups[row.names, row.repeats].append((row, before))
    found: dict[tuple[int, int], dict[str, str]] = {(row.line, row.run): {} for row, _ in pairs}
    for group in groups.values():
        splits = _read_splits(group[0][0].repeats)
        if splits is not None:
            _judge_group(group, splits, found)
    return found


def _judge_group(group: list[_Pair], splits: _Splits, found: dict[tuple[int, int], dict[str, str]]) -> None:
    names = group[0][0].measures()
    shape = (len(group), len(names), len(splits.n_valid))
    after, before = (
        np.frombuffer(b"".join(pair[side].numbers for pair in group), dtype="<f8").reshape(shape) for side in (0, 1)
    )
    identical = np.array([row.predictions() != "" and row.predictions() == old.predictions() for row, old in group])
    fair = np.array([row.is_fair() and old.is_fair() for row, old in group])
    for index, (name, higher, _, _) in enumerate(names):
        if higher is None:
            continue
        a, b = after[:, index], before[:, index]
        made: list[str | None]
        if name in RESOURCES:
            made = [*judge_times(a, b, Criteria(higher, "paired", ALPHA))]
        else:
            resolution, ratio = _find_resolution(name, splits), splits.ratio
            criteria = Criteria(higher, alpha=ALPHA)
            made = [*judge_scores(a, b, criteria, test_train_ratio=ratio, resolution=resolution, identical=identical)]
        if name.endswith("_time_s"):
            whole = ~(np.isnan(a) | np.isnan(b)).any(axis=1)
            for place in np.flatnonzero(~fair):
                made[place] = NOT_COMPARABLE if whole[place] else None
        for (row, _), verdict in zip(group, made, strict=True):
            if verdict is not None:
                found[row.line, row.run][name] = verdict


def _find_resolution(metric: str, splits: _Splits) -> float | None:
    steps = [resolution_of(metric, rows) for rows in set(splits.n_valid)]
    known = [step for step in steps if step is not None]
    return max(known) if len(known) == len(steps) else None


@lru_cache(maxsize=256)
def _read_splits(text: str) -> _Splits | None:
    """None if the splits are not random, not recorded, or the same for several seeds."""
    _, repeats = load_shared(text)
    observations = [
        Observation(0.0, split, n_train, n_valid)
        for _, _, split, n_train, n_valid, kind, *_ in repeats
        if split and kind == "random"
    ]
    distinct = {one.split_digest for one in observations}, {(seed, fold) for seed, fold, *_ in repeats}
    if len(repeats) < 2 or any(len(one) < len(repeats) for one in distinct):
        return None
    return _Splits(split_ratio(observations) or ASSUMED_RATIO, tuple(one.n_valid for one in observations))


def judge_some(connection: sqlite3.Connection) -> bool:
    """Judge some of what is not judged yet, line by line; False if there is no more.

    What thousands of rows have in common is judged at once. Of the others, only what a listing shows is judged now.
    """
    with store.transaction(connection):  # nobody may drop in between what is compared
        found = connection.execute(OPEN, (ROWS_AT_A_TIME,)).fetchall()
        rows = [SeriesRow(*row[:-1]) for row in found]
        here = {(row.line, row.run): row for row in rows}
        pairs: dict[SeriesRow, SeriesRow] = {}
        for row, (*_, before) in zip(rows, found, strict=True):
            if before:
                earlier = here.get((row.line, before)) or _get_row(connection, row.line, before)
                if earlier is None:
                    raise store.DamagedIndexError("a row of the index belongs to nothing")
                pairs[row] = earlier
        known = judge_alike(list(pairs.items()))
        get_series = _make_getter(connection)
        made = [(row, 0, "") for row in rows if row not in pairs]
        for row, earlier in pairs.items():
            verdicts = known[row.line, row.run]
            verdicts |= _judge(row, earlier, get_series, [name for name in row.usual() if name not in verdicts])
            made.append((row, earlier.run, encode_verdicts(row.measures(), verdicts)))
        store.write_verdicts(connection, made)
    return len(rows) == ROWS_AT_A_TIME


def judge_metrics(connection: sqlite3.Connection, rows: Iterable[SeriesRow], metrics: Iterable[str] | None) -> None:
    """Judge these metrics, or all, where that has not been done yet."""
    get_series = _make_getter(connection)
    wanted = None if metrics is None else set(metrics)
    with store.transaction(connection):
        for stale in rows:
            row = _get_row(connection, stale.line, stale.run)
            if row is None:  # another program dropped it
                continue
            known = row.judged()
            names = [name for name, *_ in row.measures() if name not in known and (wanted is None or name in wanted)]
            before = _get_row(connection, row.line, row.before) if row.before and names else None
            if before is not None:
                verdicts = known | _judge(row, before, get_series, names)
                store.write_verdicts(connection, [(row, before.run, encode_verdicts(row.measures(), verdicts))])


def _make_getter(connection: sqlite3.Connection) -> SeriesGetter:
    """Look up series with a small cache: a row is judged once itself, and once as the run before."""

    @lru_cache(maxsize=ROWS_AT_A_TIME)
    def entry(number: int) -> RunEntry:
        query = f"SELECT {RUN} FROM runs r WHERE r.id = ?"  # noqa: S608 (our names)
        found = connection.execute(query, (number,)).fetchone()
        if found is None:
            raise store.DamagedIndexError(f"there is no run {number}")
        return read_entry(found)

    return lru_cache(maxsize=8)(lambda row, metric: row.series(entry(row.run), metric))


def _get_row(connection: sqlite3.Connection, line: int, run: int) -> SeriesRow | None:
    query = f"SELECT {SERIES} FROM {JOINED} WHERE s.line = ? AND s.run = ?"  # noqa: S608 (our names)
    found = connection.execute(query, (line, run)).fetchone()
    return None if found is None else SeriesRow(*found)


def _judge(row: SeriesRow, before: SeriesRow, get_series: SeriesGetter, metrics: Iterable[str]) -> dict[str, str]:
    found = {}
    for metric in metrics:
        new, old = get_series(row, metric), get_series(before, metric)
        if new is not None and old is not None:
            try:
                found[metric] = compare_series(old, new).verdict
            except BoostersEvalError:  # values that no test is made for
                found[metric] = NOT_COMPARABLE
    return found
