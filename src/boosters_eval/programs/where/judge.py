"""From the kept predictions of two libraries to the rows on which the first one loses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from boosters_eval.core.errors import ConfigError, RunError, pick
from boosters_eval.core.terms import given, tell, the
from boosters_eval.core.text import clean, join_words
from boosters_eval.datasets.store import open_recorded
from boosters_eval.metrics import find
from boosters_eval.metrics.catalog import gather_warnings
from boosters_eval.metrics.linear import find_errors
from boosters_eval.metrics.metric import for_task
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.compare import several
from boosters_eval.programs.benchmark.evidence import NoEvidence
from boosters_eval.programs.benchmark.rescore import declare_metrics
from boosters_eval.programs.benchmark.runs import load_run
from boosters_eval.programs.benchmark.spec import metric_names
from boosters_eval.programs.benchmark.tables.contenders import group_by_name, group_results
from boosters_eval.programs.where.findings import ConditionFound, ErrorGap, FoundSlices, LosingSlice, LostRow
from boosters_eval.stats.slices import LEAST_UNITS, Features, PairedErrors, find_slices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets.config import Table
    from boosters_eval.metrics import Metric
    from boosters_eval.metrics.linear import RowErrors
    from boosters_eval.programs.benchmark.evidence import FitEvidence
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.where.request import WhereRequest
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.slices import Condition, SearchedSlices, Slice

_MOST_ROWS = 10  # of the worst
_LONG = 2_000_000  # values that are looked through for more than a moment
_PER_ROW = "logloss, mlogloss, rmse, mae or accuracy"

_Rows = dict[str, list["BenchmarkResult"]]  # the results of a table, by competitor


@dataclass(frozen=True)
class _Pair:
    """Two competitors on one data set: the results of either, by repeat."""

    table: str
    a: str
    b: str
    results: tuple[tuple[BenchmarkResult, BenchmarkResult], ...]

    @property
    def first(self) -> BenchmarkResult:
        return self.results[0][0]


@dataclass(frozen=True)
class _Evidence:
    """What both said of each row that was tested, or of each query; the mean where it was tested several times."""

    rows: NDArray[np.int64]  # numbers in the data set; of a query, its first one
    errors: PairedErrors
    target: NDArray[np.float64] | None
    said: tuple[NDArray[np.float64], NDArray[np.float64]]


def find_where(request: WhereRequest) -> FoundSlices:
    """The parts of a data set on which one library loses to another, and the rows on which it loses most."""
    results = load_run(request.run, request.home)
    pair, remarks = _choose_pair(request, results)
    metric = _choose_metric(request, pair.first)
    fits = _read_fits(pair, results)
    table = open_recorded(str(pair.first.data_digest), pair.first.dataset_name, pair.first.task)
    evidence = _gather(fits, metric, table)
    columns = _Columns.of(table, evidence.rows, pair.first.task)
    alpha, n_units = results.metadata.level(), int(evidence.errors.unit.max()) + 1
    searched = None
    if n_units >= LEAST_UNITS:
        if columns.features.values.size > _LONG:
            tell(f"Looking for parts of {pair.table} on which {pair.a} loses to {pair.b}...")
        searched = find_slices(columns.features, evidence.errors, alpha=alpha)
    if len(fits) == 1:
        remarks.append("The run has one split: what is told is true of these two models, and may be luck of training.")
    judge = _Told(evidence, columns, metric, searched)
    a, b = map(evidence.errors.value, (evidence.errors.a, evidence.errors.b))
    return FoundSlices(
        run=str(results.reference),
        dataset=pair.first.dataset_name,
        config=clean(pair.table),
        task=pair.first.task,
        metric=metric.spec,
        label=metric.label,
        best=metric.best,
        higher_is_better=metric.higher_is_better,
        a=pair.a,
        b=pair.b,
        noun="query" if pair.first.task is Task.RANKING else "row",
        rows=len(evidence.rows),
        units=n_units,
        splits=len(fits),
        alpha=alpha,
        tested=None if searched is None else searched.tested,
        overall=judge.compare(a, b, None if searched is None else searched.overall.interval(alpha)),
        detectable=None if searched is None else _percent(searched.detectable, b),
        slices=tuple(map(judge.tell_slice, () if searched is None else searched.slices)),
        worst=tuple(judge.list_worst()),
        remarks=tuple(remarks),
    )


def _choose_pair(request: WhereRequest, results: ResultCollection) -> tuple[_Pair, list[str]]:
    """Who is compared on which data set; what was not said is chosen, and told."""
    tables = {name: group_by_name(rows.values()) for name, rows in group_results(results).items()}
    tables = {name: {who: found for who, found in rows.items() if found} for name, rows in tables.items()}
    if not any(tables.values()):
        raise RunError(f"Run {results.run_id} has no results: no cell has finished.")
    chosen = _match_tables(request.dataset, tables)
    asked = metric_names(several(request.libraries)) if request.libraries is not None else []
    known = [name for rows in chosen.values() for name in rows]
    names = [pick("library", name, known) for name in asked]
    if len(names) > 2 or len(set(names)) < len(names):
        raise ConfigError(f"{the('libraries')} must name two different libraries. Got {join_words(names)} instead.")
    pairs = [pair for name, rows in chosen.items() if (pair := _pair_up(name, rows, names)) is not None]
    if not pairs:
        who = join_words(names) if names else "two libraries"
        raise RunError(f"Run {results.run_id} has no split that {who} both finished.")
    pair = max(pairs, key=_disadvantage)
    remarks = []
    if len(pairs) > 1:
        others = join_words([one.table for one in pairs if one is not pair], "or", most=3)
        remarks.append(f"{pair.a} loses most on {pair.table}; {given('dataset', 'NAME')} chooses {others} instead.")
    return pair, remarks


def _match_tables(dataset: str | None, tables: Mapping[str, _Rows]) -> dict[str, _Rows]:
    if dataset is None:
        return dict(tables)
    of = {name: next(iter(rows.values()))[0].dataset_name for name, rows in tables.items() if rows}
    meant = pick("data set", dataset, [*of.values(), *tables])
    return {name: tables[name] for name in tables if meant in ((name,) if meant in tables else (of.get(name),))}


def _pair_up(table: str, rows: _Rows, names: Sequence[str]) -> _Pair | None:
    """The two that are meant in one table; those that are not named are the best of the others."""
    if any(name not in rows for name in names):
        return None
    ranked = sorted((name for name in rows if name not in names), key=lambda name: _mean_error(rows[name]))
    chosen = [*names, *ranked][:2] if names else ranked[1::-1]
    if len(chosen) < 2:
        return None
    one, two = ({result.repeat: result for result in rows[name]} for name in chosen)
    shared = tuple((one[repeat], two[repeat]) for repeat in sorted(one.keys() & two.keys(), key=str))
    return _Pair(table, chosen[0], chosen[1], shared) if shared else None


def _mean_error(results: Sequence[BenchmarkResult]) -> float:
    name = str(results[0].primary_metric)
    metric = find(name)
    mean = math.fsum(result.metrics[name] for result in results) / len(results)
    best = (metric.best if metric else None) or 0.0
    return best - mean if metric is not None and metric.higher_is_better else mean - best


def _disadvantage(pair: _Pair) -> float:
    a, b = (_mean_error([both[side] for both in pair.results]) for side in (0, 1))
    return a / b if b > 0 else math.inf if a > 0 else 1.0


def _choose_metric(request: WhereRequest, result: BenchmarkResult) -> Metric:
    asked = None if request.metric is None else declare_metrics(metric_names([request.metric]))[0]
    return for_task(asked or str(result.primary_metric), result.task)


def _read_fits(pair: _Pair, results: ResultCollection) -> list[tuple[FitEvidence, FitEvidence]]:
    if pair.first.split is not None and pair.first.split.kind == "time":
        raise RunError(f"{pair.table} was split by time, and neighboring rows may be alike: no slice can be tested.")
    found, lacking = [], []
    for both in pair.results:
        one, two = map(results.evidence.of, both)
        missing = [each for each in (one, two) if isinstance(each, NoEvidence)]
        lacking += missing
        if not missing:
            found.append(cast("tuple[FitEvidence, FitEvidence]", (one, two)))
    if not found:
        raise RunError(f"Run {results.run_id} cannot say where {pair.a} loses: {lacking[0].reason}.")
    if any(not np.array_equal(one.split.rows, two.split.rows) for one, two in found):
        raise RunError(f"{pair.a} and {pair.b} were tested on different rows of {pair.table}.")
    return found


def _gather(fits: Sequence[tuple[FitEvidence, FitEvidence]], metric: Metric, table: Table) -> _Evidence:
    parts: list[dict[str, Any]] = [_score_both(*both, metric) for both in fits]
    joined = {
        name: np.concatenate([part[name] for part in parts])
        for name, value in parts[0].items()
        if isinstance(value, np.ndarray)
    }
    rows, first, place, counts = np.unique(joined["rows"], return_index=True, return_inverse=True, return_counts=True)

    def mean(name: str) -> NDArray[np.float64]:
        return np.asarray(np.bincount(place, joined[name]) / counts)

    every = len(table.y) if table.groups is None else len(np.unique(np.asarray(table.groups)))
    errors = PairedErrors(
        mean("a"),
        mean("b"),
        joined["weights"][first] if "weights" in joined else None,
        joined["units"][first] if "units" in joined else None,
        root=parts[0]["root"],
        tested=len(rows) / every,
    )
    target = joined["target"][first] if "target" in joined else None
    return _Evidence(rows, errors, target, (mean("said_a"), mean("said_b")))


def _score_both(one: FitEvidence, two: FitEvidence, metric: Metric) -> dict[str, Any]:
    """The errors of both on the rows of one split, and what each said."""
    split, task = one.split, one.result.task
    about: Any = {"groups": split.queries, "quantiles": one.spec.quantiles}
    with gather_warnings():  # the cell has warned of it, and its outcome says so
        a, b = (find_errors(task, metric, split.y_true, fit.predictions, split.weights, **about) for fit in (one, two))
    if a is None or b is None:
        raise ConfigError(
            f"{the('metric')} must be made of errors that single rows have, such as {_PER_ROW}."
            f" Got '{metric.spec}' instead."
        )
    at = a.at
    parts: dict[str, Any] = {"rows": split.rows[at], "a": a.errors, "b": b.errors, "root": a.root}
    parts |= {"said_a": _said(one, a, metric), "said_b": _said(two, b, metric)}
    if split.weights is not None:  # those of a split may happen to be all alike
        parts["weights"] = np.ones(len(at)) if a.weights is None else a.weights
    parts |= {} if split.groups is None else {"units": split.groups[at]}
    return parts | ({} if split.queries is not None else {"target": split.y_true[at]})


def _said(fit: FitEvidence, found: RowErrors, metric: Metric) -> NDArray[np.float64]:
    """What a row is told by: its prediction, the probability of its class, or a query's score."""
    task, predictions, labels = fit.result.task, fit.predictions[found.at], fit.split.y_true[found.at]
    if task is Task.BINARY:
        return np.where(labels == 1, predictions, 1 - predictions)
    if task is Task.MULTICLASS:
        return np.asarray(predictions[np.arange(len(labels)), labels.astype(np.intp)])
    if task is Task.REGRESSION and predictions.ndim == 1:
        return predictions
    best = metric.best or 0.0
    return best - found.errors if metric.higher_is_better else best + found.errors


@dataclass(frozen=True)
class _Columns:
    """The columns of the rows, as slices are made of them and as a person reads them."""

    features: Features
    names: tuple[str, ...]
    categories: Mapping[int, Sequence[str]]

    @classmethod
    def of(cls, table: Table, rows: NDArray[np.int64], task: Task) -> _Columns:
        names = table.feature_names or tuple(f"column {column}" for column in range(table.x.shape[1]))
        known = table.category_names or {}
        categories = {place: known[name] for place, name in enumerate(names) if name in known}
        if task is not Task.RANKING or table.groups is None:
            return cls(Features(np.asarray(table.x[rows]), frozenset(table.categorical)), names, categories)
        # Of a query, numbers have a mean; a category is none of the query's own.
        _, query = np.unique(np.asarray(table.groups), return_inverse=True)
        wanted = query[rows]
        plain = [place for place in range(table.x.shape[1]) if place not in table.categorical]
        x, size = np.asarray(table.x[:, plain], dtype=np.float64), np.bincount(query)
        with np.errstate(invalid="ignore"):
            means = [
                (np.bincount(query, np.nan_to_num(column)) / np.bincount(query, ~np.isnan(column)))[wanted]
                for column in x.T
            ]
        titles = (*(f"mean {names[place]}" for place in plain), "rows of the query")
        return cls(Features(np.column_stack([*means, size[wanted]])), titles, {})

    def show(self, place: int, value: float) -> float | str | None:
        """A category by its name; a number as the data has it: 0.1 is no 0.10000000149 for having been single."""
        names = self.categories.get(place, ())
        if not math.isfinite(value):
            return None
        return clean(names[int(value)]) if 0 <= value < len(names) else float(str(np.float32(value)))

    def describe(self, condition: Condition) -> ConditionFound:
        low, high, value = (
            None if each is None else self.show(condition.column, each)
            for each in (condition.low, condition.high, condition.value)
        )
        return ConditionFound.model_validate(
            {"column": clean(self.names[condition.column]), "low": low, "high": high, "value": value}
        )


@dataclass(frozen=True)
class _Told:
    """What was found, in the metric's own scale."""

    evidence: _Evidence
    columns: _Columns
    metric: Metric
    searched: SearchedSlices | None

    def score(self, error: float) -> float:
        best = self.metric.best or 0.0
        return best - error if self.metric.higher_is_better else best + error

    def compare(self, a: float, b: float, bounds: tuple[float, float] | None = None) -> ErrorGap:
        """Both errors, and the interval of their difference where it was tested."""
        low, high = bounds or (None, None)
        percent, percent_low, percent_high = (_percent(each, b) for each in (a - b, low, high))
        return ErrorGap(
            a=self.score(a),
            b=self.score(b),
            difference=a - b,
            low=low,
            high=high,
            percent=percent,
            percent_low=percent_low,
            percent_high=percent_high,
        )

    def tell_slice(self, found: Slice) -> LosingSlice:
        assert self.searched is not None  # noqa: S101 (for the type checker)
        inside = self.columns.features.select(found.conditions)
        rest = self.evidence.errors.take(~inside)
        return LosingSlice(
            conditions=tuple(map(self.columns.describe, found.conditions)),
            rows=int(inside.sum()),
            share=float(inside.mean()),
            gap=self.compare(found.a, found.b, self.searched.interval(found)),
            elsewhere=self.compare(rest.value(rest.a), rest.value(rest.b)),
        )

    def list_worst(self) -> list[LostRow]:
        errors = self.evidence.errors
        lost = errors.a - errors.b
        order = np.argsort(-lost, kind="stable")[:_MOST_ROWS]
        return [self._row(int(place)) for place in order if lost[place] > 0]

    def _row(self, place: int) -> LostRow:
        evidence, values = self.evidence, self.columns.features.values[place]
        a, b = (
            math.sqrt(e[place]) if evidence.errors.root else float(e[place])
            for e in (evidence.errors.a, evidence.errors.b)
        )
        return LostRow(
            row=int(evidence.rows[place]),
            target=None if evidence.target is None else float(evidence.target[place]),
            said_a=float(evidence.said[0][place]),
            said_b=float(evidence.said[1][place]),
            error_a=a,
            error_b=b,
            values={clean(name): self.columns.show(i, float(values[i])) for i, name in enumerate(self.columns.names)},
        )


def _percent(difference: float | None, error: float) -> float | None:
    return None if difference is None or error <= 0 else 100 * difference / error
