"""The trials of one data set: chosen on inner splits, valued on outer ones, and told apart by rows."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.text import clean, join_words
from boosters_eval.metrics import best_value, higher_is_better
from boosters_eval.programs.benchmark.comparisons import find_unbeaten, observe
from boosters_eval.programs.benchmark.margins import Margin, Margins
from boosters_eval.programs.benchmark.tables.advice import drop_options, strip_words
from boosters_eval.programs.benchmark.tables.answers import Contest
from boosters_eval.programs.benchmark.tables.build import metric_column
from boosters_eval.programs.benchmark.tables.sections import tell_suspicions
from boosters_eval.programs.tune.findings import (
    ExpectedBest,
    Overtaking,
    TunedConfig,
    TunedLibrary,
    TunedParameter,
    TunedTask,
)
from boosters_eval.stats.best_of import SearchedTrials
from boosters_eval.stats.inference import holm
from boosters_eval.stats.significance import Criteria
from boosters_eval.stats.tables import compare_sides, compare_table
from boosters_eval.stats.trends import explain_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.benchmark.evidence import RowEvidence
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.tune.plan import Search, Trial
    from boosters_eval.programs.tune.space import SearchRange
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.inference import FloatArray
    from boosters_eval.stats.significance import Comparison
    from boosters_eval.stats.tables import ComparisonTable

_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)  # numbers of trials whose gain is bounded
_MORE_SPLITS = 10  # to be advised where nothing could be seen
_MOVING = 0.005  # of the error: what the second half of the trials must still gain for more of them to be advised
_OF_TUNE = (
    "-n",
    "--trials",
    "--space",
    "--sampler",
    "--inner",
    "--early-stopping",
    "--budget",
    "--cpu-budget",
    "--reuse",
)


@dataclass(frozen=True)
class Tried:
    """All that one library tried on one data set. Splits on which its defaults failed are left out."""

    library: str
    metric: str
    outer: Mapping[Repeat, Mapping[int, BenchmarkResult]]  # by trial; 0: its defaults
    inner: Mapping[Repeat, Mapping[int, Sequence[BenchmarkResult]]]
    count: int  # of trials
    parts: int  # of the training rows, by which they are chosen
    evidence: RowEvidence

    @cached_property
    def search(self) -> SearchedTrials:
        trials = range(self.count + 1)
        sides = {at: observe(self._results(at), self.metric, self.evidence) for at in trials}
        losses = {repeat: [self._find_loss(repeat, at) for at in trials] for repeat in self.outer}
        repeats = [repeat for repeat, found in losses.items() if math.isfinite(found[0])]
        return SearchedTrials(
            repeats,
            np.array([losses[repeat] for repeat in repeats]),
            [[sides[at].get(repeat) for at in trials] for repeat in repeats],
        )

    def _results(self, trial: int) -> list[BenchmarkResult]:
        return [trials[trial] for trials in self.outer.values() if trial in trials]

    def _find_loss(self, repeat: Repeat, trial: int) -> float:
        """The mean over the inner splits; infinite where any fit of the trial failed."""
        parts = self.inner.get(repeat, {}).get(trial, ())
        if len(parts) < self.parts or trial not in self.outer[repeat]:
            return math.inf
        mean = fmean(one.metrics[self.metric] for one in parts)
        return -mean if higher_is_better(self.metric) else mean

    @property
    def tuned(self) -> list[BenchmarkResult]:
        """The outer fit of what is chosen on each split."""
        return [self.outer[repeat][at] for repeat, at in zip(self.search.repeats, self.search.choices, strict=True)]

    @property
    def defaults(self) -> list[BenchmarkResult]:
        return [self.outer[repeat][0] for repeat in self.search.repeats]

    def find_cost(self, k: int) -> float | None:
        """CPU seconds of one search with k trials, and of the fit of what it chooses; None if a time is not known."""
        inner, outer = self._times
        if math.isnan(self.total_cpu):
            return None
        chosen = (self.search.find_chances(k) * outer).sum(axis=1).mean()
        return float(inner[:, 0].mean() + k * inner[:, 1:].mean() + chosen)

    @property
    def total_cpu(self) -> float:
        return float(sum(times.sum() for times in self._times))

    @cached_property
    def _times(self) -> tuple[FloatArray, FloatArray]:
        """By split and trial, the CPU seconds of the inner and of the outer fits; of a failed one, none."""
        trials = range(self.count + 1)
        inner = [[_spend(self.inner.get(it, {}).get(at, ())) for at in trials] for it in self.search.repeats]
        outer = [
            [_spend([self.outer[it][at]] if at in self.outer[it] else ()) for at in trials]
            for it in self.search.repeats
        ]
        return np.array(inner), np.array(outer)


def _spend(results: Sequence[BenchmarkResult]) -> float:
    return sum(math.nan if one.cpu_time_s is None else one.cpu_time_s for one in results)


def judge_tasks(search: Search, results: ResultCollection, trials: int) -> Iterator[TunedTask]:
    of = {config.name: trial for trial, config in search.list_trials(trials)}
    suspicions = tell_suspicions(results)
    for base in search.base.configs:
        tried = gather(search, base.dataset.name, of, results, trials)
        if tried:
            yield _judge(search, results, tried, suspicions.get(base.dataset.name, ""))


def gather(
    search: Search, dataset: str, of: Mapping[str, Trial], results: ResultCollection, trials: int
) -> list[Tried]:
    """What each library tried on a data set; one whose defaults never finished has tried nothing."""
    outer: dict[str, dict[Repeat, dict[int, BenchmarkResult]]] = {}
    inner: dict[str, dict[Repeat, dict[int, list[BenchmarkResult]]]] = {}
    metric = ""
    for result in results.results:
        if result.dataset_name != dataset:
            continue
        name, _, part = result.config_name.partition("~")
        number, metric = of[name].number, str(result.primary_metric)
        if part:
            inner.setdefault(result.library, {}).setdefault(result.repeat, {}).setdefault(number, []).append(result)
        else:
            outer.setdefault(result.library, {}).setdefault(result.repeat, {})[number] = result
    about = (trials, search.request.inner, results.evidence)
    every = (Tried(name, metric, outer[name], inner.get(name, {}), *about) for name in outer)
    return [one for one in every if one.search.repeats]


def _judge(search: Search, results: ResultCollection, tried: Sequence[Tried], suspicion: str) -> TunedTask:
    first = tried[0].defaults[0]
    metric, higher = tried[0].metric, higher_is_better(tried[0].metric)
    margin = Margins.of(search.request.margin).find(metric)
    alpha = results.metadata.level()
    criteria = Criteria(higher, "rows", alpha / len(tried), best=best_value(metric), **_as_margin(margin))
    tuned = {one.library: one.search.observe(one.count) for one in tried}
    how: Any = {
        "metric": metric,
        "higher_is_better": higher,
        "test": "rows",
        "alpha": alpha,
        "best": best_value(metric),
    }
    table = compare_table(tuned, **how, **_as_margin(margin))
    before = compare_table({one.library: one.search.observe(0) for one in tried}, **how, **_as_margin(margin))
    contest = _contest(tried, table, metric)
    failed = Counter(error.library for error in results.errors if error.dataset_name == first.dataset_name)
    libraries = tuple(_judge_library(search, one, criteria, failed[one.library]) for one in tried)
    overtaking = tuple(_find_overtaking(libraries, table, higher=higher))
    found = TunedTask(
        dataset=first.dataset_name,
        task=first.task.value if first.task else "",
        metric=metric,
        label=metric_column(metric, primary=True).label,
        higher_is_better=higher,
        splits=len(tried[0].search.repeats),
        rows=round(fmean(one.n_valid or 0 for one in tried[0].defaults)),
        which=contest.name_which() if len(tried) > 1 else "",
        sure=contest.tell_sure() if len(tried) > 1 else "",
        winner=contest.leader if contest.won and not contest.lost else None,
        default_leader=before.leader,
        leader=table.leader,
        libraries=libraries,
        overtaking=overtaking,
        **_find_equal_cpu(libraries, higher=higher),
        suspicion=suspicion,
        doubts=tuple(_find_doubts(tried, failed)),
    )
    reason, command = _advise(search, found)
    return found.replace(reason=reason, command=command)


def _as_margin(margin: Margin) -> dict[str, Any]:
    return {"rope": margin.size} if margin.is_share else {"margin": margin.size}


def _contest(tried: Sequence[Tried], table: ComparisonTable, metric: str) -> Contest:
    higher = higher_is_better(metric)
    unbeaten = {
        one.library: rule.text
        for one in tried
        if (rule := find_unbeaten(one.tuned, metric, higher_is_better=higher)) is not None
    }
    sizes = tuple(result.n_valid for one in tried for result in one.tuned if result.n_valid)
    return Contest(metric_column(metric, primary=True), table, sizes, None, unbeaten)


def _judge_library(search: Search, one: Tried, criteria: Criteria, failed: int) -> TunedLibrary:
    tried = one.search
    shown = {one.count, *(k for k in _SHOWN if k < one.count)}
    own, axes = tried.observe(0), search.axes[one.library]
    compared = {k: compare_sides(tried.observe(k), own, metric=one.metric, criteria=criteria) for k in shown}
    gains = {k: _find_gain(pair, criteria) for k, pair in compared.items()}
    ks = range(one.count + 1)
    curve = [ExpectedBest(trials=k, score=tried.expect(k), cpu_s=one.find_cost(k), **gains.get(k, {})) for k in ks]
    chosen = [_describe(search, one, at, count) for at, count in Counter(tried.choices).most_common()]
    means = tried.losses.mean(axis=0)
    best = int(means.argmin())
    searched = {axis.name for axis in axes}
    marks = {
        mark.parameter: mark.kind
        for trials in one.outer.values()
        for at, result in trials.items()
        for mark in result.marks
        if at and mark.parameter in searched and mark.kind != "exact"
    }
    heard = [axis for axis in axes if marks.get(axis.name) != "unsupported"]
    return TunedLibrary(
        library=one.library,
        version=clean(one.defaults[0].library_version or ""),
        trials=one.count,
        default=curve[0].score,
        tuned=curve[-1].score,
        worth=compared[one.count].verdict,
        **gains[one.count],
        curve=tuple(curve),
        chosen=tuple(chosen),
        best=_describe(search, one, best, tried.choices.count(best)),
        parameters=tuple(_explain(search, one, heard, means[1:])),
        marks=marks,
        failed=failed,
        cpu_s=None if math.isnan(one.total_cpu) else one.total_cpu,
    )


def _find_gain(pair: Comparison, criteria: Criteria) -> dict[str, float | None]:
    """How much lower the error is than with the defaults, in percent of it."""
    turn = 1 if criteria.higher_is_better else -1
    bounds = pair.percent_interval
    low, high = (None, None) if bounds is None else sorted(turn * bound for bound in bounds)
    return {"percent": None if pair.percent is None else turn * pair.percent + 0.0, "low": low, "high": high}


def _describe(search: Search, one: Tried, trial: int, splits: int) -> TunedConfig:
    return TunedConfig(trial=trial, splits=splits, values=dict(search.find_values(one.library, trial, one.count)))


def _explain(search: Search, one: Tried, axes: Sequence[SearchRange], losses: FloatArray) -> Iterator[TunedParameter]:
    """What each parameter explains alone of the order of the trials; what is not told apart from nothing is so too."""
    drawn = [search.find_values(one.library, at + 1, one.count) for at in range(one.count)]
    known = np.isfinite(losses)
    if known.sum() < 8:  # too few for any trend
        return
    best = np.argsort(losses, kind="stable")[: max(2, one.count // 5)]
    found = [
        explain_ranks(np.array([float(values[axis.name]) for values in drawn])[known], losses[known]) for axis in axes
    ]
    corrected = holm([p for _, p in found])
    for axis, (share, _), p in zip(axes, found, corrected, strict=True):
        values = [float(drawn[at][axis.name]) for at in best]
        yield TunedParameter(name=axis.name, share=share, p=p, best=(min(values), max(values)))


def _find_overtaking(
    libraries: Sequence[TunedLibrary], table: ComparisonTable, *, higher: bool
) -> Iterator[Overtaking]:
    """Each pair whose order with the defaults is turned by tuning, with the trial from which on it is."""
    sign = -1 if higher else 1
    for a, b in permutations(libraries, 2):
        ahead = [sign * (x.score - y.score) for x, y in zip(a.curve, b.curve, strict=True)]
        if ahead[0] <= 0 or ahead[-1] >= 0:
            continue
        at = max(k for k, gap in enumerate(ahead) if gap >= 0) + 1
        pair = table.get(a.library, b.library)
        apart = pair.verdict in ("better", "worse")
        yield Overtaking(ahead=a.library, behind=b.library, trials=at, cpu_s=a.curve[at].cpu_s, told_apart=apart)


def _find_equal_cpu(libraries: Sequence[TunedLibrary], *, higher: bool) -> dict[str, Any]:
    """Who is best where every search may take as long as the cheapest of them; nothing where times are not known."""
    totals = [one.curve[-1].cpu_s for one in libraries]
    limit = min((total for total in totals if total is not None), default=None)
    if limit is None or None in totals or len(libraries) == 1:
        return {}
    scores: dict[str, float] = {}
    for one in libraries:
        within = [at.score for at in one.curve if at.cpu_s is not None and at.cpu_s <= limit]
        if within:
            scores[one.library] = within[-1]
    leader = (max if higher else min)(scores, key=lambda name: scores[name])
    return {"equal_cpu_s": limit, "equal_cpu_leader": leader}


def _find_doubts(tried: Sequence[Tried], failed: Mapping[str, int]) -> Iterator[str]:
    absent = [name for name in failed if name not in {one.library for one in tried}]
    if absent:
        yield f"{join_words(absent)} took no part: no fit with its defaults has finished"
    lacking = join_words(f"{name} {count}" for name, count in failed.items() if count and name not in absent)
    if lacking:
        yield f"some fits failed ({lacking}), which are never chosen"
    if max(len(one.search.repeats) for one in tried) == 1:
        yield "one split alone cannot tell what tuning is worth"


def _advise(search: Search, found: TunedTask) -> tuple[str, str]:
    """Why, and the words of a command; nothing where no command line could run it."""
    request, words = search.request, strip_words(list(search.request.command_line))
    if not words or words[0] != "tune" or len(search.base.configs) > 1:
        return "", ""
    leader = next((one for one in found.libraries if one.library == found.leader), found.libraries[0])
    unseen = all(one.worth == "inconclusive" for one in found.libraries)
    if unseen and found.splits < _MORE_SPLITS and request.cv is None and request.split in (None, "random"):
        again = drop_options(words, "-s", "--seeds")
        return "more splits would tell more", shlex.join(["boosters-eval", *again, "--seeds", str(_MORE_SPLITS)])
    if _is_moving(leader, found) and leader.trials == request.trials:
        again = drop_options(words, "-n", "--trials")
        return "more trials might gain more", shlex.join(["boosters-eval", *again, "--trials", str(2 * leader.trials)])
    if leader.best.trial == 0:
        return "", ""
    words = drop_options(["compare", *words[1:]], *_OF_TUNE, "-l", "--library", "-p", "--param")
    values = [f"{name}={value}" for name, value in leader.best.values.items()]
    if request.space == "own":
        how = ["--profile", "defaults", "--variants", f"tuned:{','.join(values)}", "default:"]
    else:
        stopping = [f"early_stopping_rounds={request.early_stopping}"] if request.early_stopping else []
        how = ["--param", ",".join([*request.param, *stopping, *values])]
    return f"train {leader.library} as tuned", shlex.join(["boosters-eval", *words, "-l", leader.library, *how])


def _is_moving(leader: TunedLibrary, found: TunedTask) -> bool:
    """Whether the second half of the trials still gained."""
    half, whole = leader.curve[len(leader.curve) // 2], leader.curve[-1]
    gained = (whole.score - half.score) * (1 if found.higher_is_better else -1)
    return gained > _MOVING * abs(whole.score - best_value(found.metric))
