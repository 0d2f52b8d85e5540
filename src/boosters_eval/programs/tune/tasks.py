"""The trials of one data set: chosen on inner splits, valued on outer ones, and told apart by rows."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass, replace
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
from boosters_eval.stats.best_of import find_chances
from boosters_eval.stats.inference import holm
from boosters_eval.stats.observations import Side
from boosters_eval.stats.significance import Criteria
from boosters_eval.stats.tables import compare_sides, compare_table
from boosters_eval.stats.trends import explain_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.tune.plan import Search, Trial
    from boosters_eval.programs.tune.space import Axis
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.observations import Observation
    from boosters_eval.stats.rows import RowScores
    from boosters_eval.stats.significance import Comparison
    from boosters_eval.stats.tables import ComparisonTable

    Floats = NDArray[np.float64]

_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)  # numbers of trials whose gain is bounded
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
    results: ResultCollection
    outer: Mapping[Repeat, Mapping[int, BenchmarkResult]]  # by trial; 0: its defaults
    inner: Mapping[Repeat, Mapping[int, Sequence[BenchmarkResult]]]
    trials: int

    @cached_property
    def repeats(self) -> list[Repeat]:
        return [repeat for repeat in self.outer if math.isfinite(self._loss(repeat, 0))]

    @cached_property
    def losses(self) -> Floats:
        """By split and trial, the defaults first: what is chosen by, infinite where a fit failed."""
        return np.array([[self._loss(repeat, at) for at in range(self.trials + 1)] for repeat in self.repeats])

    def _loss(self, repeat: Repeat, trial: int) -> float:
        parts = self.inner.get(repeat, {}).get(trial, ())
        values = [one.metrics[self.metric] for one in parts if self.metric in one.metrics]
        if not values or len(values) < self._parts or trial not in self.outer[repeat]:
            return math.inf
        mean = fmean(values)
        return -mean if higher_is_better(self.metric) else mean

    @cached_property
    def _parts(self) -> int:
        return max((len(parts) for trials in self.inner.values() for parts in trials.values()), default=1)

    @cached_property
    def scores(self) -> Floats:
        """By split and trial: what is valued."""
        found = [[self._score(repeat, at) for at in range(self.trials + 1)] for repeat in self.repeats]
        return np.array(found)

    def _score(self, repeat: Repeat, trial: int) -> float:
        result = self.outer[repeat].get(trial)
        return 0.0 if result is None else result.metrics[self.metric]  # a failed one is never chosen

    def chances(self, k: int) -> Floats:
        """By split and trial: how likely it is to be the best of k of them and the defaults."""
        found = (find_chances(losses[1:], k, losses[0]) for losses in self.losses)
        return np.array([[own, *chances] for chances, own in found])

    def expect(self, k: int) -> float:
        return float((self.chances(k) * self.scores).sum(axis=1).mean())

    def observe(self, k: int) -> Side:
        """The best of k as one side of a comparison: what it says of each row is the mean over what may be chosen."""
        chances = self.chances(k)
        own = observe([self.outer[repeat][0] for repeat in self.repeats], self.metric, self.results.evidence)
        pairs = (
            (repeat, self._mix(own[repeat], repeat, chances[at], self.scores[at]))
            for at, repeat in enumerate(self.repeats)
        )
        return Side(pairs)

    def _mix(self, own: Observation, repeat: Repeat, chances: Floats, scores: Floats) -> Observation:
        likely = np.flatnonzero(chances)
        rows = [self._rows(repeat, int(at)) for at in likely] if own.rows is not None else []
        whole = [one for one in rows if one is not None]
        mixed: RowScores | None = None
        if whole and len(whole) == len(likely):
            contributions = sum(
                (chances[at] * one.contributions for at, one in zip(likely, whole, strict=True)), np.zeros(1)
            )
            mixed = replace(whole[0], value=float(chances[likely] @ scores[likely]), contributions=contributions)
        only = self.outer[repeat][int(likely[0])].predictions_digest if len(likely) == 1 else None
        return own._replace(value=float(chances @ scores), rows=mixed, predictions_digest=only)

    def _rows(self, repeat: Repeat, trial: int) -> RowScores | None:
        return self.results.evidence.score(self.outer[repeat][trial], self.metric)

    @cached_property
    def choices(self) -> list[int]:
        """The trial that is chosen on each split, of all of them."""
        return [int(at) for at in self.chances(self.trials).argmax(axis=1)]

    @cached_property
    def tuned(self) -> list[BenchmarkResult]:
        return [self.outer[repeat][at] for repeat, at in zip(self.repeats, self.choices, strict=True)]

    @property
    def defaults(self) -> list[BenchmarkResult]:
        return [self.outer[repeat][0] for repeat in self.repeats]

    def cost(self, k: int) -> float | None:
        """CPU seconds of one search with k trials, and of the fit of what it chooses."""
        inner, outer = self._cpu
        if inner is None or outer is None:
            return None
        own, trials = inner[:, 0].mean(), np.nanmean(inner[:, 1:]) if self.trials else 0.0
        return float(own + k * trials + np.nansum(self.chances(k) * outer, axis=1).mean())

    @cached_property
    def _cpu(self) -> tuple[Floats | None, Floats | None]:
        """By split and trial, of the inner and of the outer fits; None if one is not known."""

        def spent(results: Sequence[BenchmarkResult]) -> float:
            times = [one.cpu_time_s for one in results]
            return math.nan if not times else sum(math.inf if time is None else time for time in times)

        inner = np.array(
            [[spent(self.inner.get(r, {}).get(at, ())) for at in range(self.trials + 1)] for r in self.repeats]
        )
        outer = np.array(
            [
                [spent([self.outer[r][at]] if at in self.outer[r] else []) for at in range(self.trials + 1)]
                for r in self.repeats
            ]
        )
        return None if np.isinf(inner).any() else inner, None if np.isinf(outer).any() else outer

    @property
    def total_cpu(self) -> float | None:
        inner, outer = self._cpu
        return None if inner is None or outer is None else float(np.nansum(inner) + np.nansum(outer))


def judge_tasks(search: Search, results: ResultCollection, trials: int) -> Iterator[TunedTask]:
    of = {config.name: trial for trial, config in search.list_trials(trials)}
    suspicions = tell_suspicions(results)
    for base in search.base.configs:
        tried = gather(base.dataset.name, of, results, trials)
        if tried:
            yield _judge(search, results, tried, suspicions.get(base.dataset.name, ""))


def gather(dataset: str, of: Mapping[str, Trial], results: ResultCollection, trials: int) -> list[Tried]:
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
    every = (Tried(name, metric, results, outer[name], inner.get(name, {}), trials) for name in outer)
    return [one for one in every if one.repeats]


def _judge(search: Search, results: ResultCollection, tried: Sequence[Tried], suspicion: str) -> TunedTask:
    first = tried[0].defaults[0]
    metric, higher = tried[0].metric, higher_is_better(tried[0].metric)
    margin = Margins.of(search.request.margin).find(metric)
    alpha = results.metadata.level()
    criteria = Criteria(higher, "rows", alpha / len(tried), best=best_value(metric), **_as_margin(margin))
    tuned = {one.library: one.observe(one.trials) for one in tried}
    how: Any = {
        "metric": metric,
        "higher_is_better": higher,
        "test": "rows",
        "alpha": alpha,
        "best": best_value(metric),
    }
    table = compare_table(tuned, **how, **_as_margin(margin))
    before = compare_table({one.library: one.observe(0) for one in tried}, **how, **_as_margin(margin))
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
        splits=len(tried[0].repeats),
        rows=round(fmean(one.n_valid or 0 for one in tried[0].defaults)),
        which=contest.name_which() if len(tried) > 1 else "",
        sure=contest.tell_sure() if len(tried) > 1 else "",
        winner=contest.leader if contest.won and not contest.lost else None,
        default_leader=before.leader,
        leader=table.leader,
        libraries=libraries,
        overtaking=overtaking,
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
    shown = {one.trials, *(k for k in _SHOWN if k < one.trials)}
    own, axes = one.observe(0), search.axes[one.library]
    compared = {k: compare_sides(one.observe(k), own, metric=one.metric, criteria=criteria) for k in shown}
    gains = {k: _find_gain(pair, criteria) for k, pair in compared.items()}
    ks = range(one.trials + 1)
    curve = [ExpectedBest(trials=k, score=one.expect(k), cpu_s=one.cost(k), **gains.get(k, {})) for k in ks]
    chosen = [_describe(search, one, at, count) for at, count in Counter(one.choices).most_common()]
    means = one.losses.mean(axis=0)
    best = int(means.argmin())
    searched = {axis.name for axis in axes}
    marks = {
        mark.parameter: mark.kind
        for trials in one.outer.values()
        for at, result in trials.items()
        for mark in result.marks
        if at and mark.parameter in searched and mark.kind != "exact"
    }
    return TunedLibrary(
        library=one.library,
        version=clean(one.defaults[0].library_version or ""),
        trials=one.trials,
        default=one.expect(0),
        tuned=one.expect(one.trials),
        worth=compared[one.trials].verdict,
        **gains[one.trials],
        curve=tuple(curve),
        chosen=tuple(chosen),
        best=_describe(search, one, best, one.choices.count(best)),
        parameters=tuple(_explain(search, one, axes, means[1:])),
        marks=marks,
        failed=failed,
        cpu_s=one.total_cpu,
    )


def _find_gain(pair: Comparison, criteria: Criteria) -> dict[str, float | None]:
    """How much lower the error is than with the defaults, in percent of it."""
    turn = 1 if criteria.higher_is_better else -1
    bounds = pair.percent_interval
    low, high = (None, None) if bounds is None else sorted(turn * bound for bound in bounds)
    return {"percent": None if pair.percent is None else turn * pair.percent + 0.0, "low": low, "high": high}


def _describe(search: Search, one: Tried, trial: int, splits: int) -> TunedConfig:
    return TunedConfig(trial=trial, splits=splits, values=dict(search.find_values(one.library, trial, one.trials)))


def _explain(search: Search, one: Tried, axes: Sequence[Axis], losses: Floats) -> Iterator[TunedParameter]:
    """What each parameter explains alone of the order of the trials; what is not told apart from nothing is so too."""
    drawn = [search.find_values(one.library, at + 1, one.trials) for at in range(one.trials)]
    known = np.isfinite(losses)
    if known.sum() < 8:  # too few for any trend
        return
    best = np.argsort(losses, kind="stable")[: max(2, one.trials // 5)]
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


def _find_doubts(tried: Sequence[Tried], failed: Mapping[str, int]) -> Iterator[str]:
    lacking = join_words(f"{name} {count}" for name, count in failed.items() if count)
    if lacking:
        yield f"Some fits failed ({lacking}), which are never chosen"
    if max(len(one.repeats) for one in tried) == 1:
        yield "One split only cannot tell what tuning is worth"


def _advise(search: Search, found: TunedTask) -> tuple[str, str]:
    """Why, and the words of a command; nothing where no command line could run it."""
    words = strip_words(list(search.request.command_line))
    if not words or words[0] != "tune" or len(search.base.configs) > 1:
        return "", ""
    leader = next((one for one in found.libraries if one.library == found.leader), found.libraries[0])
    if _is_moving(leader, found) and leader.trials == search.request.trials:
        more = drop_options(words, "-n", "--trials")
        return "more trials might gain more", shlex.join(["boosters-eval", *more, "--trials", str(2 * leader.trials)])
    if leader.best.trial == 0:
        return "", ""
    words = drop_options(["compare", *words[1:]], *_OF_TUNE, "-l", "--library", "-p", "--param")
    values = [f"{name}={value:g}" for name, value in leader.best.values.items()]
    if search.request.space == "own":
        how = ["--profile", "defaults", "--variants", f"tuned:{','.join(values)}", "default:"]
    else:
        how = ["--param", ",".join([*search.request.param, *values])]
    return f"train {leader.library} as tuned", shlex.join(["boosters-eval", *words, "-l", leader.library, *how])


def _is_moving(leader: TunedLibrary, found: TunedTask) -> bool:
    """Whether the second half of the trials still gained."""
    half, whole = leader.curve[len(leader.curve) // 2], leader.curve[-1]
    gained = (whole.score - half.score) * (1 if found.higher_is_better else -1)
    return gained > _MOVING * abs(whole.score - best_value(found.metric))
