"""The program `rescore`: any metric on the predictions that a run has kept, with verdicts, and without a fit."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError, ConfigError, MetricInputError, RunError
from boosters_eval.core.terms import named, the
from boosters_eval.core.text import count_of, join_words
from boosters_eval.datasets.splits import split_rows
from boosters_eval.datasets.store import open_recorded
from boosters_eval.metrics import compute_metrics, find
from boosters_eval.metrics.catalog import gather_warnings
from boosters_eval.metrics.metric import for_task, of_target
from boosters_eval.programs.benchmark.compare import ComparisonFindings, answer_against, several
from boosters_eval.programs.benchmark.evidence import NoEvidence
from boosters_eval.programs.benchmark.fit import score_rules
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import load_run
from boosters_eval.programs.benchmark.spec import find_in_file, metric_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.datasets.config import Table
    from boosters_eval.metrics.task import Task
    from boosters_eval.metrics.trivial import Scores
    from boosters_eval.programs.benchmark.evidence import FitEvidence
    from boosters_eval.programs.benchmark.request import RescoreRequest
    from boosters_eval.runners.result import BenchmarkResult


def rescore(request: RescoreRequest) -> ComparisonFindings:
    """The results of a run with further metrics, of which the first decides."""
    results = rescore_run(request)
    return ComparisonFindings(results, request, answer_against(request, results))


def rescore_run(request: RescoreRequest) -> ResultCollection:
    asked_for = metric_names(several(request.metrics))
    names = declare_metrics(asked_for)
    if not names:
        raise ConfigError(f"{the('metrics')} must name a metric at least. Got none.")
    results = load_run(request.run, request.home)
    fitting = _find_fitting(names, results)
    found = [results.evidence.of(result) for result in results.results if fitting[result.task]]
    lacking = [one.reason.rstrip(".") for one in found if isinstance(one, NoEvidence)]
    damaged = any(isinstance(one, NoEvidence) and one.kind == "lost" for one in found)
    scored, refused = _score_all([one for one in found if not isinstance(one, NoEvidence)], fitting)
    if not scored and refused:
        raise refused[0]
    if not scored or (damaged and not request.continue_on_error):
        why = lacking[0] if lacking else "no cell has finished"
        how = f" {named('continue_on_error')} leaves such results out." if scored else ""
        raise RunError(f"Run {results.run_id} cannot be scored anew: {why}.{how}")
    level = results.metadata.level()
    asked = f"{count_of(len(names), 'metric')} asked for after the run: with what it was judged by"
    remarks = [
        f"{asked}, {1 + len(names)} questions share a risk of {100 * level:g} %, so each is judged more strictly."
    ]
    if lacking:
        remarks.append(f"{count_of(len(lacking), 'result')} left out: {lacking[0]}.")
    unfit = dict.fromkeys(result.dataset_name for result in results.results if not fitting[result.task])
    if unfit:
        remarks.append(f"{join_words(list(unfit))} left out: no metric that was asked for fits the task.")
    remarks += [f"Left out: {error}" for error in refused]
    kept = {result.dataset_name for result in scored}
    margins = results.metadata.margins(request.margin or None).words
    user = {name: metric.higher_is_better for name in names if (metric := find(name)) and not metric.info.built_in}
    changes = {
        "alpha": level / (1 + len(names)),
        "user_metrics": {**results.metadata.user_metrics, **user},
        "remarks": tuple(remarks),
        "rescored": ("--metric", *asked_for, *(("--margin", *margins) if request.margin else ())),
        "left_out": tuple(dict.fromkeys(one.dataset_name for one in results.results if one.dataset_name not in kept)),
        "margin": margins or None,
    }
    return ResultCollection(
        scored,
        results.errors,
        unsupported=results.unsupported,
        unavailable=results.unavailable,
        run_id=results.run_id,
        suite=results.suite,
        metadata=results.metadata.model_copy(update=changes),
        folder=results.folder,
    )


def declare_metrics(texts: Sequence[str]) -> list[str]:
    """The names of the metrics; those of a file are loaded from it."""
    names = []
    for text in texts:
        metric = find_in_file(text)
        if metric is not None:
            metric.load()
        names.append(text if metric is None else metric.name)
    return list(dict.fromkeys(names))


def _find_fitting(names: Sequence[str], results: ResultCollection) -> dict[Task, list[str]]:
    """The metrics that fit each task of a run. One that fits none, or is not known, is refused."""
    tasks = dict.fromkeys(result.task for result in results.results)
    fitting: dict[Task, list[str]] = {task: [] for task in tasks}
    for name in names:
        faults = []
        for task in tasks:
            try:
                fitting[task].append(for_task(name, task).spec)
            except ConfigError as error:
                faults.append(error)
        if faults and len(faults) == len(tasks):
            raise faults[0]
    return fitting


def _score_all(
    found: Sequence[FitEvidence], fitting: Mapping[Task, Sequence[str]]
) -> tuple[list[BenchmarkResult], list[MetricInputError]]:
    """The results anew, in their order; and why a config is left out of a metric that cannot score all its fits."""
    configs: dict[str, list[FitEvidence]] = {}
    for one in found:
        configs.setdefault(one.result.config_name, []).append(one)
    scored: dict[str, BenchmarkResult] = {}
    refused: list[MetricInputError] = []
    for fits in configs.values():
        results, faults = _score_config(fits, fitting[fits[0].result.task])
        scored |= {result.key: result for result in results}
        refused += faults
    return [scored[one.result.key] for one in found if one.result.key in scored], refused


def _score_config(
    fits: Sequence[FitEvidence], names: Sequence[str]
) -> tuple[list[BenchmarkResult], list[MetricInputError]]:
    rules = _Rules(fits[0], names)
    try:
        return [_score(fit, names, rules.of(fit.result)) for fit in fits], []
    except MetricInputError as error:
        if len(names) == 1:
            return [], [error]
    alone = {name: _score_config(fits, [name])[1] for name in names}
    left = [name for name, faults in alone.items() if not faults]
    return _score_config(fits, left)[0] if left else [], [fault for faults in alone.values() for fault in faults]


class _Rules:
    """What the trivial rules score in new metrics on each split of a config, if its data are still there."""

    def __init__(self, fit: FitEvidence, names: Sequence[str]) -> None:
        self._spec = fit.spec.replace(metrics=tuple(names))
        self._scores: dict[Repeat, Scores] = {}
        self._table: Table | None = None
        if fit.result.trivial:
            with contextlib.suppress(BoostersEvalError):
                self._table = open_recorded(fit.spec.data_digest, fit.spec.dataset, fit.spec.task)

    def of(self, result: BenchmarkResult) -> Scores | None:
        """The rules of a result with these metrics first; nothing new where a data set's own splitter split it."""
        if self._table is None or result.trivial is None:
            return result.trivial
        if result.repeat not in self._scores:
            spec = self._spec
            split = split_rows(self._table, spec.task, spec.split, result.seed, result.fold, part=result.part)
            same = split.digest == result.split_digest
            self._scores[result.repeat] = score_rules(spec, self._table, split) if same else {}
        new = self._scores[result.repeat]
        return {rule: {**new.get(rule, {}), **scores} for rule, scores in result.trivial.items()}


@contextlib.contextmanager
def _naming(result: BenchmarkResult) -> Iterator[None]:
    """An error says of which results it is: a function of the user's own may not fit every task of a run."""
    try:
        yield
    except MetricInputError as error:
        raise MetricInputError(f"{str(error).strip(' .')} (on {result.config_name}).") from error


def _score(fit: FitEvidence, wanted: Sequence[str], rules: Scores | None) -> BenchmarkResult:
    """The same result, scored by these metrics as it would have been in the run, with what trivial rules score."""
    result, split = fit.result, fit.split
    with gather_warnings() as said, _naming(result):
        every = compute_metrics(
            result.task,
            split.y_true,
            fit.predictions,
            fit.spec.n_classes,
            split.weights,
            groups=split.queries,
            sensitive=split.sensitive,
            quantiles=fit.spec.quantiles,
            metrics=wanted,
            targets=fit.spec.targets,
        )
    lost = [name for name in wanted if not math.isfinite(every[name])]
    if lost:
        raise MetricInputError(
            f"{join_words(lost)} of {result.library} on {result.config_name}, {result.repeat}, is not a finite number."
        )
    parts = [of_target(name, target) for name in wanted for target in fit.spec.targets]
    new = {name: every[name] for name in (*wanted, *parts) if name in every}
    kept = {name: value for name, value in result.metrics.items() if name not in new}
    warned = tuple(dict.fromkeys((*result.warnings, *said)))
    changed = {"metrics": {**new, **kept}, "primary_metric": wanted[0], "warnings": warned, "trivial": rules}
    return result.model_copy(update=changed)
