"""The search: a step is a benchmark of a candidate and of the two versions that it lies between."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from boosters_eval.core import machine
from boosters_eval.core.errors import (
    BoostersEvalError,
    BoostersEvalWarning,
    BuildError,
    ConfigError,
    InterruptedRunError,
    RunError,
)
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import is_heard, tell
from boosters_eval.core.text import count_of
from boosters_eval.engine.session import KnownOutcomes, check_names, continue_settings, is_elsewhere, open_session
from boosters_eval.metrics import best_value, for_task, higher_is_better, primary_metric, task_metrics
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.benchmarks import make_comparison
from boosters_eval.programs.benchmark.compare import read_data_settings, read_training
from boosters_eval.programs.benchmark.comparisons import observe
from boosters_eval.programs.benchmark.planning import check_growth, fit_specs, prepare_seeds
from boosters_eval.programs.benchmark.runs import collect, run_once
from boosters_eval.programs.benchmark.spec import find_in_file, metric_names
from boosters_eval.programs.bisect.answer import (
    Bisection,
    BisectionStep,
    NumberShift,
    describe_ends,
    describe_found,
    describe_left_out,
    describe_place,
    describe_share,
    describe_unchanged,
    describe_undecided,
    render_step,
)
from boosters_eval.programs.bisect.versions import Located, list_candidates, locate
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.reference import library_name
from boosters_eval.runners.installed import installed_build
from boosters_eval.stats.sequential import SearchRule, Shift, Yardstick, find_shift, place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.core.machine import Disturbance, MachineInfo
    from boosters_eval.engine.cell import Failure, Outcome
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.session import Session
    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.bisect.answer import StepAnswer
    from boosters_eval.programs.bisect.request import BisectRequest
    from boosters_eval.programs.bisect.versions import Candidate, CandidateAnswer
    from boosters_eval.runners.base import Runner
    from boosters_eval.stats.observations import Side
    from boosters_eval.stats.sequential import Likeness

Found = TypeVar("Found")
_TOLERANCE = 0.01
_TIME_TOLERANCE = 0.05  # times vary with the layout of memory, which is not what anybody looks for
_MEMORY = "peak_memory_mb"
_TIMES = tuple(name for name in RESOURCES if name.endswith("_time_s"))
_NUMBERS = (*_TIMES, _MEMORY, "model_size_mb")  # besides the metrics; what the first use takes is measured only once
_ANY_LIBRARY = "sklearn"  # is always installed; the versions take its place


def bisect(request: BisectRequest) -> Findings:
    bisector = prepare_bisection(request)
    if request.dry_run:
        return PlannedBisection(bisector)
    tell(bisector.sentence)
    found = bisector.run()
    if request.output is not None:
        tell(found.answer)
    return found


def prepare_bisection(request: BisectRequest) -> Bisector:
    """A search that is ready to run: the versions, the data and the metric are known, but nothing is installed."""
    check_names(request)
    name = RUNNERS[library_name(request.library)].name
    return make_bisector(request.replace(library=name), list_candidates(request))


@dataclass(frozen=True)
class PlannedBisection(Findings):
    bisector: Bisector

    def show(self, screen: Screen) -> None:
        screen.say(self.bisector.sentence)
        for candidate in self.bisector.candidates:
            screen.say(f"  {candidate.name} {candidate.detail}".rstrip())


class _UnusableError(BoostersEvalError):
    """A version that cannot be built, installed, imported or trained."""


@dataclass(frozen=True)
class _Look:
    """What the runs of a step have shown so far."""

    sides: list[Side]
    seeds: int
    runs: tuple[str, ...]
    left_out: int = 0  # times taken while other programs used the CPUs


@dataclass
class Bisector:
    """Judges versions by runs, and keeps what they showed."""

    request: BisectRequest
    candidates: Sequence[Candidate]
    benchmarks: Benchmarks
    yardstick: Yardstick
    disturbances: tuple[Disturbance, ...] = ()
    steps: list[BisectionStep] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    _runners: dict[int, type[Runner]] = field(default_factory=dict)
    _known: dict[str, Outcome | Failure] = field(default_factory=dict)
    _machines: dict[str, MachineInfo] = field(default_factory=dict)  # that these name
    _kept_in: dict[Path, None] = field(default_factory=dict)  # the folders of their predictions
    _margin: float = 0.0
    _rising: bool = True
    _evidence: dict[tuple[int, int], Shift] = field(default_factory=dict)  # of the two versions around the change

    @property
    def rule(self) -> SearchRule:
        """How the error rate is shared."""
        return SearchRule(len(self.candidates), self.request.alpha, self.request.max_seeds)

    @property
    def sentence(self) -> str:
        names = [candidate.name for candidate in self.candidates]
        looks = ", ".join(map(str, self.rule.seeds.schedule))
        return (
            f"{count_of(len(names), 'version')} of {self.request.library} from {names[0]} to {names[-1]}: at most"
            f" {count_of(1 + self.rule.tries, 'step')}, each decided with {looks} seeds."
        )

    def run(self) -> Bisection:
        """Compare the ends; if they differ, search between them."""
        self._look_at_machine()
        last = len(self.candidates) - 1
        try:
            whole, seeds = self._ends(0, last)
            found = Located(0, last)
            if whole.outcome == "changed":
                found = locate(len(self.candidates), self._judge, self.rule.tries)
        except KeyboardInterrupt:
            raise InterruptedRunError from None  # between two runs too: what is installed and has run is kept
        return self._answer(whole, seeds, found)

    def _look_at_machine(self) -> None:
        """Refuse to take times that nobody could judge, before a version is installed."""
        here = self.request.timing_mode and not is_elsewhere(self.request)
        self.disturbances = machine.find_disturbances() if here else ()
        for item in self.disturbances:
            if self.yardstick.metric in _TIMES and not item.judged:
                raise RunError(f"Times cannot be judged on this machine now: {item.text}; {item.remedy}.")
            warnings.warn(item.warning, BoostersEvalWarning, stacklevel=4)

    def _ends(self, first: int, last: int) -> tuple[Shift, int]:
        for position in (first, last):
            try:
                self._runner(position)
            except BuildError as error:
                which = f"{self._name(position)}, an end of the search, cannot be used"
                raise BuildError(f"{which}: {error.sentence}", error.said) from error
        if self._same_code(first, last):
            same = Shift("unchanged", None, (0.0, 0.0))
            self._evidence[first, last] = same
            self._keep(first, last, last, "unchanged", f"the same code as {self._name(first)}")
            return same, 0
        level, equal, tolerance = self.rule.seeds.level, self.rule.equal_alpha, self.yardstick.tolerance
        shift, look = self._look_until(
            lambda sides: find_shift(sides[0], sides[1], self.yardstick, alpha=level, equal_alpha=equal),
            lambda found: found.outcome != "undecided",
            (first, last),
        )
        if shift.comparison is None or shift.comparison.mean_b is None:
            why = f" {describe_left_out(look.left_out)}" if look.left_out else ""
            why += f" {shift.comparison.note}" if shift.comparison is not None and shift.comparison.note else ""
            names = f"{self._name(first)} and {self._name(last)}"
            raise RunError(f"The runs of {names} have no '{self.yardstick.metric}' to compare.{why}")
        self._margin = self.yardstick.margin(shift.comparison.mean_b)
        self._rising = shift.size > 0
        self._evidence[first, last] = shift
        self._keep(first, last, last, shift.outcome, describe_ends(shift, tolerance), look)
        return shift, look.seeds

    def _judge(self, low: int, candidate: int, high: int) -> CandidateAnswer:
        names = self._name(candidate), self._name(low), self._name(high)
        try:
            self._runner(candidate)
            likeness: Likeness | None = (
                "earlier" if self._same_code(candidate, low) else "later" if self._same_code(candidate, high) else None
            )
            if likeness is not None:
                same = names[1] if likeness == "earlier" else names[2]
                self._keep(low, candidate, high, likeness, f"the same code as {same}")
                return self._inherit(low, candidate, high, likeness)
            found, look = self._look_until(
                lambda sides: place(
                    sides[0],
                    sides[1],
                    sides[2],
                    self.yardstick,
                    rising=self._rising,
                    level=self.rule.seeds.level,
                    margin=self._margin,
                ),
                lambda placed: placed.settled,
                (low, candidate, high),
            )
        except RunError:  # of a version that worked before, so the search cannot go on
            raise
        except BoostersEvalError as error:
            self.unusable[names[0]] = " ".join(str(error).split())
            self._keep(low, candidate, high, "unusable", f"skipped: {error.lines[0]}")
            return "unusable"
        self._keep(low, candidate, high, found.likeness, describe_place(found, *names), look)
        if found.identical:
            return self._inherit(low, candidate, high, found.likeness)
        if found.likeness == "earlier":
            self._evidence[candidate, high] = found.after
        elif found.likeness == "later":
            self._evidence[low, candidate] = found.before
        return found.likeness

    def _inherit(self, low: int, candidate: int, high: int, likeness: Likeness) -> Likeness:
        """What is known of one version holds for another that is identical."""
        where = (candidate, high) if likeness == "earlier" else (low, candidate)
        self._evidence[where] = self._evidence[low, high]
        return likeness

    def _same_code(self, a: int, b: int) -> bool:
        return installed_build(self._runner(a)).digest == installed_build(self._runner(b)).digest

    def _look_until(
        self, judge: Callable[[list[Side]], Found], settled: Callable[[Found], bool], positions: tuple[int, ...]
    ) -> tuple[Found, _Look]:
        """Add seeds until the step is decided, or no more are allowed."""
        runners = {runner.name: runner for runner in map(self._runner, positions)}
        labels = list(runners)
        is_time = self.yardstick.metric in _TIMES
        known = {} if is_time else self._known  # a time belongs to its minute
        runs: tuple[str, ...] = ()
        schedule = self.rule.seeds.schedule
        with contextlib.ExitStack() as stack:
            session: Session | None = None
            for seeds in schedule:
                prepared = self._prepared(runners, seeds)
                if session is None:
                    settings = continue_settings(self.request, prepared.plan) if self.steps else self.request
                    session = stack.enter_context(open_session(settings, prepared.plan))
                run = self._run(session, prepared, known, runs[-1] if runs else "")
                if run.failures:
                    break
                results = collect(run)
                fair = [result for result in results.results if result.fairly_timed or not is_time]
                by_label = [[result for result in fair if result.library == label] for label in labels]
                sides = [observe(found, self.yardstick.metric, results.evidence) for found in by_label]
                runs = (*runs, results.run_id or "")
                left_out = len(results.results) - len(fair)
                found = judge(sides)
                if settled(found) or seeds == schedule[-1]:
                    return found, _Look(sides, seeds, runs, left_out)
        raise _failed(run.failures[0], labels)

    def _prepared(self, runners: Mapping[str, type[Runner]], seeds: int) -> PreparedRun:
        configs = tuple(config.replace(libraries=tuple(runners)) for config in self.benchmarks.configs)
        prepared = prepare_seeds(replace(self.benchmarks, configs=configs, runners=runners), seeds, self.request)
        check_growth(fit_specs(prepared.plan).values(), dict(prepared.inputs.stored))
        for item in prepared.plan.excluded:
            raise _UnusableError(f"{item.target} cannot do this: {item.reason}")
        return prepared

    def _run(self, session: Session, prepared: PreparedRun, known: dict[str, Outcome | Failure], extends: str) -> Run:
        rule = self.rule.seeds
        run = run_once(
            session,
            prepared,
            self.disturbances,
            known=KnownOutcomes(dict(known), dict(self._machines), kept_in=tuple(self._kept_in)),
            alpha=rule.level,
            rule=f"seeds were added by a bisection, each look at alpha = {rule.level:.2g}",
            extends=extends,
        )
        known.update(run.outcomes)
        self._machines.update(run.machines)
        self._kept_in.update(dict.fromkeys(run.kept_in))
        return run

    def _runner(self, position: int) -> type[Runner]:
        """The competitor; the version is installed on first use."""
        if position not in self._runners:
            self._runners[position] = self.candidates[position].resolve()
        return self._runners[position]

    def _name(self, position: int) -> str:
        return self.candidates[position].name

    def _keep(
        self, low: int, candidate: int, high: int, answer: StepAnswer, reason: str, look: _Look | None = None
    ) -> None:
        if look is not None and look.left_out:
            reason = f"{reason}. {describe_left_out(look.left_out)}"
        positions = dict.fromkeys((low, candidate, high))
        sides = [] if look is None else look.sides
        values = {
            self._name(position): sum(one.value for one in side.values()) / len(side)
            for position, side in zip(positions, sides, strict=False)
            if side
        }
        step = BisectionStep(
            earlier=self._name(low),
            candidate=self._name(candidate),
            later=self._name(high),
            answer=answer,
            reason=reason,
            seeds=0 if look is None else look.seeds,
            values=values,
            runs=() if look is None else look.runs,
        )
        self._end(step)

    def _end(self, step: BisectionStep) -> None:
        self.steps.append(step)
        if is_heard():
            for line in render_step(len(self.steps), step):
                tell(line)
        if self.request.on_step is not None:
            self.request.on_step(step)

    def _answer(self, whole: Shift, seeds: int, found: Located) -> Bisection:
        names = [candidate.name for candidate in self.candidates]
        ends, here = (names[0], names[-1]), (names[found.low], names[found.high])
        subject = f"{self.yardstick.metric} of {self.request.library} on {self.benchmarks.configs[0].dataset.name}"
        shift = self._evidence[found.low, found.high]
        number = NumberShift.of(shift)
        share = shift.size / whole.size if whole.size else None
        undecided = [names[position] for position in found.between if position in found.undecided]
        unusable = [names[position] for position in found.between if position in found.unusable]
        unknown = [name for name in (names[p] for p in found.between) if name not in (*undecided, *unusable)]
        tolerance = self.yardstick.tolerance
        if whole.outcome == "unchanged":
            state, sentence = "unchanged", describe_unchanged(subject, shift, tolerance, ends, seeds)
        elif whole.outcome == "undecided":
            state, sentence = "undecided", describe_undecided(subject, shift, tolerance, ends, seeds)
        else:
            state = "undecided" if undecided or unknown else "found"
            sentence = describe_found(
                subject,
                number,
                earlier=here[0],
                later=here[1],
                unusable=unusable,
                undecided=undecided,
                unknown=unknown,
                detail=self.candidates[found.high].detail,
            ) + describe_share(share, ends=ends, found=here)
        return Bisection(
            answer=sentence,
            state=state,
            library=self.request.library,
            dataset=self.benchmarks.configs[0].dataset.name,
            metric=self.yardstick.metric,
            tolerance=tolerance,
            alpha=self.request.alpha,
            max_seeds=self.request.max_seeds,
            versions=tuple(names),
            earlier=here[0],
            later=here[1],
            shift=number,
            share=share if state != "unchanged" else None,
            unusable=self.unusable,
            undecided=tuple(undecided),
            details={candidate.name: candidate.detail for candidate in self.candidates if candidate.detail},
            steps=tuple(self.steps),
        )


def _failed(failure: Failure, labels: list[str]) -> BoostersEvalError:
    """A candidate that fails is passed over; one that worked before ends the search."""
    text = " ".join(f"{failure.error_type}: {failure.error_message}".split()).rstrip(".")
    sentence = f"{failure.target} failed in phase '{failure.phase}' with {text}."
    return (RunError if failure.target in (labels[0], labels[-1]) else _UnusableError)(sentence)


def make_bisector(request: BisectRequest, candidates: Sequence[Candidate]) -> Bisector:
    """Everything that can be refused is refused here, before a version is installed."""
    if len(candidates) < 2:
        raise ConfigError(f"A bisection needs at least two versions. Got {len(candidates)}.")
    named = request.metric
    if named is not None:
        named = {"memory": _MEMORY}.get(named, named) if isinstance(named, str) else metric_names([named])[0]
    extra = [] if named is None or named in _NUMBERS else [named]
    benchmarks = make_comparison(
        request.dataset,
        _ANY_LIBRARY,
        request.booster,
        training=read_training(request),
        metrics=extra,
        task=request.task,
        data=read_data_settings(request),
        target=request.target,
        split=request.split,
        profile=request.profile,
        home=request.home,
    )
    if len(benchmarks.configs) != 1:
        raise ConfigError(f"A bisection is on one data set and one booster. Got {len(benchmarks.configs)} of them.")
    config = benchmarks.configs[0]
    if config.is_by_time:
        raise ConfigError("A bisection cannot use a split by time: its windows are fixed, so no seeds can be added.")
    metric = named or config.dataset.primary_metric or primary_metric(config.task)
    if metric in _NUMBERS:
        better = False
    else:
        user = find_in_file(metric)
        metric = user.name if user is not None else for_task(metric, config.task).spec
        usual = [item.spec for item in task_metrics(config.task)]
        if metric in usual:
            benchmarks = replace(benchmarks, configs=(config.replace(metrics=()),))
        better = user.higher_is_better if user is not None else higher_is_better(metric)
    measured = request.replace(
        timing_mode=metric in _TIMES or metric == _MEMORY or request.timing_mode,
        measure_memory=request.measure_memory or metric == _MEMORY,
    )
    tolerance = request.tolerance
    if tolerance is None:
        tolerance = _TIME_TOLERANCE if metric in _TIMES else _TOLERANCE
    yardstick = Yardstick(metric, better, metric in _NUMBERS, tolerance, best_value(metric))
    return Bisector(measured, candidates, replace(benchmarks, name="bisect"), yardstick)
